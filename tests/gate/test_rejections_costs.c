/*
 * Whoever varies the cost of his requests gains nothing by it: what is exhausted for one cost is so
 * for every larger one, and Redis is not asked again; nor is anybody told to come back too early.
 */
#include "game.h"

#include <stdlib.h>

static const char *const policies[][4] = {
	{ "1000/1h" },
	{ "1000/1h sliding-log" },
	{ "1000/1h sliding-window" },
	{ "1000/day calendar" },
	{ "100/1m", "1000/1h sliding-log" },
	{ "100/1h sliding-window", "1000/day calendar", "90/1h sliding-log name log" },
};

static uint64_t
rising(unsigned n)
{
	return 2 + n % 900;
}

static uint64_t
falling(unsigned n)
{
	return 900 - n % 899;
}

static uint64_t
any(unsigned n)
{
	(void)n;
	return 1 + (uint64_t)(rand() % 1000);
}

static uint64_t
beyond(unsigned n)
{
	return 1001 + n % 900;
}

static uint64_t
by_turns(unsigned n)
{
	return n % 2 == 0 ? 1 + n % 7 : 1000 - n % 7;
}

/* A minute of a request each millisecond. */
static unsigned
flood(const char *const *policy, uint64_t (*cost)(unsigned n))
{
	struct made_limit made;
	struct game game;

	made_limit_init(&made, "page", policy);
	game_init(&game, &made);
	game.there_us = game.back_us = 50;
	while (request(&game, 1).verdict == VERDICT_ADMITTED)
		game.now_us += 1000;
	game.calls = game.admitted = 0;
	for (unsigned n = 0; n < 60000; n++) {
		game.now_us += 1000;
		(void)request(&game, cost(n));
	}
	rejections_free(game.rejections);
	return game.calls - game.admitted;
}

static void
flood_of_any_costs_is_seldom_asked_about(void **state)
{
	static uint64_t (*const costs[])(unsigned) = { rising, falling, any, beyond, by_turns };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		for (size_t j = 0; j < LENGTH_OF(costs); j++) {
			const unsigned calls = flood(policies[i], costs[j]);

			assert_row(calls <= 61 * (1 + REJECTION_COSTS), "%s, costs %zu: %u calls",
				policies[i][0], j, calls);
		}
	}
}

/* Of costs that fall from request to request each may be one that has room, as far as is known when
 * it comes; but that is so once, and not in each second. */
static unsigned
fall(const char *policy)
{
	struct made_limit made;
	struct game game;

	make_limit(&made, "page", policy);
	game_init(&game, &made);
	for (unsigned n = 0; n < 1000; n++)
		(void)ask_store(&game, 1);
	for (unsigned n = 0; n < 60000; n++) {
		game.now_us += 1000;
		(void)request(&game, falling(n));
	}
	rejections_free(game.rejections);
	return game.calls;
}

static void
costs_that_fall_are_asked_about_once(void **state)
{
	(void)state;
	assert_in_range(fall("1000/1h sliding-log"), 899, 899 + 61 * (1 + REJECTION_COSTS));
	assert_in_range(fall("1000/1h sliding-window"), 899, 899 + 61 * (1 + REJECTION_COSTS));
	/* Of these all is known at once. */
	assert_in_range(fall("1000/day calendar"), 60, 61);
	assert_in_range(fall("1000/1d"), 60, 61);
}

/* ---- what is told ---- */

static const char *const told[][4] = {
	{ "50/10s sliding-log" },
	{ "50/10s sliding-window" },
	{ "50/10s", "60/20s sliding-log name log" },
	{ "40/10s sliding-window", "50/20s sliding-log name log" },
	{ "50/day calendar", "40/10s sliding-log" },
};

/* How many were told more than the store would. */
static unsigned
play(const char *const *policy, unsigned costs)
{
	struct made_limit made;
	struct game game;
	unsigned known = 0, late = 0;

	made_limit_init(&made, "page", policy);
	game_init(&game, &made);
	for (unsigned i = 0; i < 20000; i++) {
		const uint64_t cost = 1 + (uint64_t)rand() % costs;
		struct decision decision;

		game.there_us = rand() % 200;
		game.back_us = rand() % 200;
		game.now_us += rand() % 5000;
		if (!is_known(&game, cost, &decision)) {
			(void)request(&game, cost);
			continue;
		}
		const struct decision right = truth(&game, cost);
		const int64_t wait_us = decision_violated(&decision)->retry_us;

		known++;
		assert_int_equal(right.verdict, VERDICT_REJECTED);
		assert_row(wait_us < 0 || wait_us >= decision_violated(&right)->retry_us,
			"%s: cost %u is told %lld and not %lld", policy[0], (unsigned)cost,
			(long long)wait_us, (long long)decision_violated(&right)->retry_us);
		if ((wait_us < 0) != (decision_violated(&right)->retry_us < 0))
			fail_msg("%s: what never passes is told so, and nothing else", policy[0]);
		late += wait_us > decision_violated(&right)->retry_us + 400 ? 1 : 0;
	}
	assert_row(known > 5000, "%s: %u known", policy[0], known);
	rejections_free(game.rejections);
	return late;
}

static void
nobody_is_told_to_come_back_too_early_whatever_his_cost_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(told); i++)
		(void)play(told[i], 60);
}

static void
who_has_few_costs_is_told_what_redis_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(told); i++)
		assert_int_equal(play(told[i], REJECTION_COSTS), 0);
}

/* The wait of the next larger cost, and beyond all of them until the bucket is full. */
static void
beyond_those_costs_the_next_larger_one_tells(void **state)
{
	struct made_limit made;
	struct game game;
	struct decision decision;

	(void)state;
	make_limit(&made, "page", "10/1m sliding-log");
	game_init(&game, &made);
	for (unsigned i = 0; i < 10; i++) {
		(void)ask_store(&game, 1);
		game.now_us += US_PER_S;
	}
	assert_int_equal(request(&game, 2).verdict, VERDICT_REJECTED);
	assert_false(is_known(&game, 4, &decision));
	assert_int_equal(request(&game, 4).verdict, VERDICT_REJECTED);
	assert_int_equal(request(&game, 7).verdict, VERDICT_REJECTED);
	const unsigned calls = game.calls;
	static const unsigned waits_s[] = { 0, 0, 51, 53, 53, 56, 56, 56, 59, 59, 59 };

	for (unsigned cost = 2; cost <= 10; cost++) {
		const struct decision answer = request(&game, cost);

		assert_int_equal(answer.verdict, VERDICT_REJECTED);
		assert_int_equal(decision_retry_after_s(&answer), waits_s[cost]);
	}
	assert_int_equal(game.calls, calls);
	/* A smaller one is asked about: it might have room. */
	assert_false(is_known(&game, 1, &decision));
	assert_true(is_known(&game, 11, &decision));
	assert_int_equal(decision_retry_after_s(&decision), 0);
	/* And the next second again. */
	game.now_us += US_PER_S;
	assert_int_equal(
		decision_retry_after_s(&(const struct decision[]){ request(&game, 9) }[0]), 57);
	rejections_free(game.rejections);
}

/* Others have made the wait of a small cost longer than that of a larger one was. */
static void
larger_costs_never_wait_shorter(void **state)
{
	struct made_limit made;
	struct game game;

	(void)state;
	make_limit(&made, "page", "10/1m sliding-log");
	game_init(&game, &made);
	(void)ask_store(&game, 2);
	game.now_us += 10 * US_PER_S;
	(void)ask_store(&game, 5);
	assert_int_equal(request(&game, 5).outcomes[0].retry_us, 50 * US_PER_S);
	(void)ask_store(&game, 3);
	assert_int_equal(request(&game, 3).outcomes[0].retry_us, 60 * US_PER_S);
	const unsigned calls = game.calls;

	assert_int_equal(request(&game, 5).outcomes[0].retry_us, 60 * US_PER_S);
	assert_int_equal(game.calls, calls);
	rejections_free(game.rejections);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flood_of_any_costs_is_seldom_asked_about),
		cmocka_unit_test(costs_that_fall_are_asked_about_once),
		cmocka_unit_test(nobody_is_told_to_come_back_too_early_whatever_his_cost_is),
		cmocka_unit_test(who_has_few_costs_is_told_what_redis_says),
		cmocka_unit_test(beyond_those_costs_the_next_larger_one_tells),
		cmocka_unit_test(larger_costs_never_wait_shorter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
