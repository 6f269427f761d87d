/* The rejection cache of a gateway against a store that decides. Time is the test's. */
#ifndef WEIR_TESTS_GATE_GAME_H
#define WEIR_TESTS_GATE_GAME_H

#include "../../src/gate/rejections.h"
#include "../limit/asking.h"

/* A gateway with its cache, and a store whose clock is not the gateway's. */
struct game {
	struct rejections *rejections;
	struct kept kept;
	const struct made_limit *made;
	struct check_item item;
	int64_t now_us; /* monotonic */
	int64_t offset_us; /* of the store's clock */
	int64_t there_us, back_us; /* how long a check and its answer are under way */
	unsigned calls, admitted;
};

static inline void
game_init(struct game *game, const struct made_limit *made)
{
	memset(game, 0, sizeof *game);
	game->rejections = rejections_new();
	assert_non_null(game->rejections);
	game->made = made;
	game->item = (struct check_item){ .limit = &made->limit };
	game->now_us = 5000000;
	game->offset_us = IN_2026_US;
}

static inline struct rejection_key
key_of(const struct game *game)
{
	return (struct rejection_key){ .generation = 1, .item = &game->item };
}

/* What the store would say now, if it were asked now and nothing were changed by it. */
static inline struct decision
truth(const struct game *game, uint64_t cost)
{
	static struct kept copy;

	kept_copy(&copy, &game->kept);
	return ask(&copy, game->made, cost, game->now_us + game->offset_us);
}

static inline bool
is_known(const struct game *game, uint64_t cost, struct decision *decision)
{
	const struct rejection_key key = key_of(game);

	*decision = (struct decision){ .verdict = VERDICT_ADMITTED };
	return rejections_find(game->rejections, &key, cost, game->now_us, decision);
}

/* By another gateway. */
static inline struct decision
ask_store(struct game *game, uint64_t cost)
{
	return ask(&game->kept, game->made, cost, game->now_us + game->offset_us);
}

/* As the gate does it. */
static inline struct decision
request(struct game *game, uint64_t cost)
{
	const struct rejection_key key = key_of(game);
	const int64_t sent = game->now_us;
	struct decision decision;

	if (is_known(game, cost, &decision))
		return decision;
	game->now_us += game->there_us;
	decision = ask_store(game, cost);
	game->now_us += game->back_us;
	game->calls++;
	game->admitted += decision.verdict == VERDICT_ADMITTED ? 1 : 0;
	rejections_keep(game->rejections, &key, decision.outcomes, cost, sent, game->now_us,
		decision.now_us);
	return decision;
}

#endif
