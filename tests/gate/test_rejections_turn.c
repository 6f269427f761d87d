/* Who asks about a bucket of which it is no longer known that it is exhausted, and when. */
#include "game.h"

#include <stdlib.h>

static void *
asker_of(const struct game *game, uint64_t cost)
{
	const struct rejection_key key = key_of(game);

	return rejections_asker(game->rejections, &key, cost, game->now_us);
}

static void
set_asker(struct game *game, uint64_t cost, void *asker)
{
	const struct rejection_key key = key_of(game);

	rejections_set_asker(game->rejections, &key, cost, game->now_us, asker);
}

static void
unset_asker(struct game *game, const void *asker)
{
	const struct rejection_key key = key_of(game);

	rejections_unset_asker(game->rejections, &key, asker);
}

static int64_t
ask_at(const struct game *game, uint64_t cost)
{
	const struct rejection_key key = key_of(game);

	return rejections_ask_at(game->rejections, &key, cost, game->now_us);
}

static void
empty(struct game *game)
{
	while (request(game, 1).verdict == VERDICT_ADMITTED)
		;
}

static void
nobody_is_waited_for_before_a_bucket_was_exhausted_and_a_second_after_it(void **state)
{
	struct made_limit made;
	struct game game;
	int somebody = 0;

	(void)state;
	make_limit(&made, "page", "10/1s");
	game_init(&game, &made);
	set_asker(&game, 1, &somebody);
	assert_null(asker_of(&game, 1));
	empty(&game);
	assert_null(asker_of(&game, 1));
	set_asker(&game, 1, &somebody);
	game.now_us += US_PER_S;
	assert_ptr_equal(asker_of(&game, 1), &somebody);
	assert_ptr_equal(asker_of(&game, 7), &somebody);
	unset_asker(&game, &made);
	assert_ptr_equal(asker_of(&game, 1), &somebody);
	game.now_us += US_PER_S - 1;
	assert_ptr_equal(asker_of(&game, 1), &somebody);
	game.now_us++;
	assert_null(asker_of(&game, 1));
	game.now_us--;
	unset_asker(&game, &somebody);
	assert_null(asker_of(&game, 1));
	rejections_free(game.rejections);
}

/* Redis was heard to have enough for them. */
static void
costs_for_which_there_is_enough_wait_for_nobody(void **state)
{
	struct made_limit made;
	struct game game;
	int somebody = 0;

	(void)state;
	make_limit(&made, "page", "10/1s");
	game_init(&game, &made);
	game.there_us = game.back_us = 1000;
	assert_int_equal(request(&game, 7).verdict, VERDICT_ADMITTED);
	assert_int_equal(request(&game, 5).verdict, VERDICT_REJECTED);
	game.now_us += 197000;
	assert_int_equal(ask_at(&game, 3), game.now_us);
	assert_true(ask_at(&game, 5) > game.now_us);
	set_asker(&game, 1, &somebody);
	assert_null(asker_of(&game, 2));
	assert_ptr_equal(asker_of(&game, 3), &somebody);
	rejections_free(game.rejections);
}

/* As after an operator's reset: no more ask than it has room for. */
static void
as_many_ask_at_once_as_there_are_tokens_left(void **state)
{
	struct made_limit made;
	struct game game;
	int askers[6] = { 0 };

	(void)state;
	make_limit(&made, "page", "5/1h");
	game_init(&game, &made);
	empty(&game);
	game.now_us += US_PER_S;
	set_asker(&game, 1, &askers[0]);
	assert_ptr_equal(asker_of(&game, 1), &askers[0]);
	game.kept.len = 0;
	unset_asker(&game, &askers[0]);
	assert_int_equal(request(&game, 1).verdict, VERDICT_ADMITTED);
	for (unsigned i = 1; i < 5; i++) {
		assert_null(asker_of(&game, 1));
		set_asker(&game, 1, &askers[i]);
	}
	assert_ptr_equal(asker_of(&game, 1), &askers[4]);
	/* The answer of the first of them says nothing of what the others have taken. */
	unset_asker(&game, &askers[1]);
	assert_int_equal(request(&game, 1).verdict, VERDICT_ADMITTED);
	assert_ptr_equal(asker_of(&game, 1), &askers[4]);
	/* The last one's does. */
	unset_asker(&game, &askers[4]);
	assert_int_equal(request(&game, 1).verdict, VERDICT_ADMITTED);
	set_asker(&game, 2, &askers[5]);
	assert_ptr_equal(asker_of(&game, 1), &askers[5]);
	rejections_free(game.rejections);
}

static const char *const policies[][4] = {
	{ "1/1s" },
	{ "10/1s burst 3" },
	{ "7/1m", "100/1d" },
	{ "3/1s burst 9", "5/1s burst 2 name b" },
	{ "5/1s sliding-window" },
	{ "4/2s sliding-log" },
	{ "2/1s", "9/5s sliding-log name log" },
};

/*
 * However long the way takes, the store has what is waited for when it is asked then, and it is
 * asked no later than a way there and back after what is known has ended.
 */
static void
play(const char *const *policy)
{
	struct made_limit made;
	struct game game;
	unsigned held = 0;

	made_limit_init(&made, "page", policy);
	game_init(&game, &made);
	for (unsigned i = 0; i < 2000; i++) {
		struct decision decision;

		game.there_us = rand() % 3000;
		game.back_us = rand() % 3000;
		decision = request(&game, 1);
		const int64_t way = game.there_us + game.back_us, learnt = game.now_us;

		for (int64_t step = 1 << 20; step > 0; step /= 2) {
			game.now_us += step;
			if (!is_known(&game, 1, &decision))
				game.now_us -= step;
		}
		game.now_us++;
		const int64_t at = ask_at(&game, 1);

		if (at <= game.now_us)
			continue;
		held++;
		assert_true(at - game.now_us <= way);
		assert_true(at - learnt <= US_PER_S);
		game.now_us = at;
		/* Unless it was the second that has ended. */
		if (at - learnt + way < US_PER_S)
			assert_int_equal(truth(&game, 1).verdict, VERDICT_ADMITTED);
	}
	assert_row(held > 50, "%s: held %u times", policy[0], held);
	rejections_free(game.rejections);
}

static void
the_store_is_asked_when_it_surely_has_what_is_waited_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++)
		play(policies[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			nobody_is_waited_for_before_a_bucket_was_exhausted_and_a_second_after_it),
		cmocka_unit_test(costs_for_which_there_is_enough_wait_for_nobody),
		cmocka_unit_test(as_many_ask_at_once_as_there_are_tokens_left),
		cmocka_unit_test(the_store_is_asked_when_it_surely_has_what_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
