/* The rejection cache never refuses what the store would admit, and never gives another answer. */
#include "game.h"

#include <stdlib.h>

static void
assert_same_outcome(const struct outcome *a, const struct outcome *b)
{
	assert_ptr_equal(a->policy, b->policy);
	assert_ptr_equal(a->limit, b->limit);
	assert_int_equal(a->violated, b->violated);
	assert_int_equal(a->shadow, b->shadow);
	assert_int_equal(a->remaining, b->remaining);
	assert_int_equal(a->retry_us, b->retry_us);
	assert_int_equal(a->more_us, b->more_us);
	assert_int_equal(a->reset_us, b->reset_us);
}

static const char *const plain[][4] = {
	{ "1/1s" },
	{ "10/1s burst 3" },
	{ "7/1m", "1000/1d" },
	{ "3/1s burst 9", "5/1s burst 2 name b", "100/1h" },
};

static const char *const others[][4] = {
	{ "5/1s sliding-window" },
	{ "4/2s sliding-log" },
	{ "30/day calendar" },
	{ "5/1s sliding-window", "20/1m" },
	{ "2/1s", "9/5s sliding-log name log" },
};

static void
play(const char *const *policies, bool is_plain)
{
	struct made_limit made;
	struct game game;
	unsigned known = 0;

	made_limit_init(&made, "page", policies);
	assert_int_equal(made.limit.is_plain, is_plain);
	game_init(&game, &made);
	for (unsigned i = 0; i < 20000; i++) {
		const uint64_t cost = 1 + (uint64_t)(rand() % (rand() % 4 == 0 ? 12 : 2));
		struct decision decision;

		game.now_us += rand() % 3 == 0 ? rand() % 400000 : rand() % 2000;
		if (rand() % 5 == 0)
			(void)ask_store(&game, cost);
		if (!is_known(&game, cost, &decision)) {
			(void)request(&game, cost);
			continue;
		}
		const struct decision right = truth(&game, cost);

		known++;
		assert_int_equal(right.verdict, VERDICT_REJECTED);
		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		assert_int_equal(decision.count, right.count);
		assert_int_equal(decision.now_us, right.now_us);
		assert_true(decision_retry_after_s(&decision) >= 0);
	}
	assert_row(known > 500, "the cache was of little use: %u, %s", known, policies[0]);
	rejections_free(game.rejections);
}

static void
nothing_is_refused_that_the_store_would_admit(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(plain); i++)
		play(plain[i], true);
	for (size_t i = 0; i < LENGTH_OF(others); i++)
		play(others[i], false);
}

/* Without other gateways, all is known of a token bucket, to the microsecond. */
static void
the_answer_is_the_stores_with_the_times_moved_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(plain); i++) {
		struct made_limit made;
		struct game game;
		unsigned known = 0;

		made_limit_init(&made, "page", plain[i]);
		game_init(&game, &made);
		for (unsigned n = 0; n < 20000; n++) {
			const uint64_t cost = 1 + (uint64_t)(rand() % 12);
			struct decision decision;

			game.now_us += rand() % 20000;
			if (!is_known(&game, cost, &decision)) {
				(void)request(&game, cost);
				continue;
			}
			const struct decision right = truth(&game, cost);

			known++;
			for (unsigned j = 0; j < right.count; j++)
				assert_same_outcome(&decision.outcomes[j], &right.outcomes[j]);
		}
		assert_true(known > 500);
		rejections_free(game.rejections);
	}
}

/* Of the others, what is told of the violated policy. */
static void
the_wait_is_the_stores_with_every_algorithm(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		struct made_limit made;
		struct game game;
		unsigned known = 0;

		made_limit_init(&made, "page", others[i]);
		game_init(&game, &made);
		for (unsigned n = 0; n < 20000; n++) {
			struct decision decision;

			game.now_us += rand() % 20000;
			if (!is_known(&game, 1, &decision)) {
				(void)request(&game, 1);
				continue;
			}
			const struct decision right = truth(&game, 1);

			known++;
			assert_same_outcome(
				decision_violated(&decision), decision_violated(&right));
		}
		assert_true(known > 500);
		rejections_free(game.rejections);
	}
}

/* However long the way takes, it is exact, and nobody is told to come back too early. */
static void
the_way_to_the_store_never_makes_a_wait_too_short(void **state)
{
	struct made_limit made;
	struct game game;
	unsigned known = 0;

	(void)state;
	make_limit(&made, "page", "10/1s burst 3", "600/1h burst 50");
	game_init(&game, &made);
	for (unsigned i = 0; i < 50000; i++) {
		const uint64_t cost = 1 + (uint64_t)(rand() % 3);
		struct decision decision;

		game.there_us = rand() % 30000;
		game.back_us = rand() % 30000;
		game.now_us += rand() % 5000;
		if (!is_known(&game, cost, &decision)) {
			(void)request(&game, cost);
			continue;
		}
		const struct decision right = truth(&game, cost);

		known++;
		assert_int_equal(right.verdict, VERDICT_REJECTED);
		assert_true(decision_violated(&decision)->retry_us >=
			decision_violated(&right)->retry_us);
		assert_true(decision_violated(&decision)->retry_us <=
			decision_violated(&right)->retry_us + 60000);
	}
	assert_true(known > 500);
	rejections_free(game.rejections);
}

/* ---- rates that have changed ---- */

/* A bucket that another configuration has left, at another rate. */
static unsigned
play_after_a_change(const char *former_policy, const char *policy)
{
	struct made_limit former, made;
	struct game game;
	unsigned known = 0;

	make_limit(&former, "page", former_policy);
	make_limit(&made, "page", policy);
	game_init(&game, &made);
	for (int n = rand() % 40; n > 0; n--) {
		(void)ask(&game.kept, &former, 1 + (uint64_t)(rand() % 3),
			game.now_us + game.offset_us);
		game.now_us += rand() % 100000;
	}
	for (unsigned n = 0; n < 30; n++) {
		const uint64_t cost = 1 + (uint64_t)(rand() % 5);
		struct decision decision;

		game.now_us += rand() % 100000;
		if (!is_known(&game, cost, &decision)) {
			(void)request(&game, cost);
			continue;
		}
		const struct decision right = truth(&game, cost);

		known++;
		assert_int_equal(right.verdict, VERDICT_REJECTED);
		assert_row(decision_violated(&decision)->retry_us ==
				decision_violated(&right)->retry_us,
			"%s, then %s: cost %u is told %lld and not %lld", former_policy, policy,
			(unsigned)cost, (long long)decision_violated(&decision)->retry_us,
			(long long)decision_violated(&right)->retry_us);
	}
	rejections_free(game.rejections);
	return known;
}

static void
waits_are_the_stores_whatever_the_rate_was_before(void **state)
{
	static const char *const rates[] = { "10/1s name p", "10/3s name p", "20/10s name p",
		"4/2s name p", "10/1h name p", "10/1s burst 40 name p" };
	unsigned known = 0;

	(void)state;
	for (unsigned i = 0; i < 3000; i++)
		known += play_after_a_change(
			rates[rand() % LENGTH_OF(rates)], rates[rand() % LENGTH_OF(rates)]);
	assert_true(known > 5000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_refused_that_the_store_would_admit),
		cmocka_unit_test(the_answer_is_the_stores_with_the_times_moved_on),
		cmocka_unit_test(the_wait_is_the_stores_with_every_algorithm),
		cmocka_unit_test(the_way_to_the_store_never_makes_a_wait_too_short),
		cmocka_unit_test(waits_are_the_stores_whatever_the_rate_was_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
