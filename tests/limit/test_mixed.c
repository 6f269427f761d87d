/*
 * decision.h: policies of all algorithms in one limit and in several, those that reject and those
 * that only count. All or nothing whatever they are made of.
 */
#include "asking.h"

/* ---- all or nothing ---- */

enum { LIMITS = 3 };

static struct made_limit made[LIMITS];
static struct kept kept[LIMITS];
static struct check check;

static int
setup(void **state)
{
	(void)state;
	make_limit(&made[0], "user", "20/1m", "30/1h sliding-log", "100/day calendar");
	make_limit(&made[1], "host", "25/1m sliding-window", "concurrent 15 lease 1h");
	make_limit(&made[2], "all", "1000/1s", "500/month calendar", "40/3h sliding-log name log");
	check = (struct check){ .count = LIMITS, .cost = 1 };
	for (unsigned i = 0; i < LIMITS; i++) {
		check.items[i] = (struct check_item){ .limit = &made[i].limit };
		kept[i].len = 0;
	}
	return 0;
}

static struct decision
ask_all(int64_t now_us)
{
	static struct kept *const list[] = { &kept[0], &kept[1], &kept[2] };

	check.lease++;
	return decide_kept(&check, list, now_us);
}

/* Whichever policy it is that rejects. */
static void
a_rejected_request_changes_no_state(void **state)
{
	static struct kept before[LIMITS];
	uint64_t random = 21;
	unsigned seen[8] = { 0 };
	int64_t now_us = IN_2026_US;

	(void)state;
	for (unsigned n = 0; n < 30000; n++) {
		for (unsigned i = 0; i < LIMITS; i++)
			kept_copy(&before[i], &kept[i]);
		check.cost = 1 + random_below(&random, 3);
		const struct decision decision = ask_all(now_us);

		assert_int_equal(decision.count, 8);
		assert_true((decision_violated(&decision) != NULL) ==
			(decision.verdict == VERDICT_REJECTED));
		for (unsigned i = 0; i < LIMITS && decision.verdict == VERDICT_REJECTED; i++)
			assert_true(!kept[i].changed && kept_is_same(&kept[i], &before[i]));
		for (unsigned i = 0; i < decision.count; i++)
			seen[i] += decision.outcomes[i].violated;
		now_us += (int64_t)random_below(
			&random, random_below(&random, 50) == 0 ? 8000000000 : 4000000);
	}
	/* All but the one that is never reached. */
	for (unsigned i = 0; i < LENGTH_OF(seen); i++)
		assert_row((seen[i] > 0) == (i != 5), "policy %u rejected %u times", i, seen[i]);
}

static void
each_policy_counts_what_was_admitted_and_no_more(void **state)
{
	unsigned admitted = 0;

	(void)state;
	for (unsigned n = 0; n < 200; n++) {
		const struct decision decision = ask_all(IN_2026_US + n * US_PER_S);

		admitted += decision.verdict == VERDICT_ADMITTED;
		assert_int_equal(decision.outcomes[1].remaining, 30 - admitted);
		assert_int_equal(decision.outcomes[2].remaining, 100 - admitted);
		assert_int_equal(decision.outcomes[4].remaining, 15 - admitted);
		assert_int_equal(decision.outcomes[6].remaining, 500 - admitted);
	}
	/* None of them has ended. */
	assert_int_equal(admitted, 15);
}

/* ---- shadows ---- */

static void
a_shadow_policy_never_rejects_and_is_spent_by_itself(void **state)
{
	struct made_limit one;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(
		&one, "l", "10/1h", "3/1h name tight shadow", "4/1h sliding-log name log shadow");
	for (unsigned n = 1; n <= 12; n++) {
		const struct decision decision = ask(&bucket, &one, 1, IN_2026_US);
		const struct outcome *outcomes = decision.outcomes;

		assert_true((decision.verdict == VERDICT_ADMITTED) == (n <= 10));
		assert_true(!outcomes[0].shadow && outcomes[1].shadow && outcomes[2].shadow);
		assert_true(outcomes[0].violated == (n > 10));
		assert_true(outcomes[1].violated == (n > 3));
		assert_true(outcomes[2].violated == (n > 4));
		assert_int_equal(outcomes[0].remaining, n < 10 ? 10 - n : 0);
		assert_int_equal(outcomes[1].remaining, n < 3 ? 3 - n : 0);
		assert_int_equal(outcomes[2].remaining, n < 4 ? 4 - n : 0);
		assert_true((decision_violated(&decision) == NULL) == (n <= 10));
	}
}

/* What another policy rejects did not happen, for shadows neither. */
static void
a_shadow_policy_is_not_spent_on_what_is_rejected(void **state)
{
	struct made_limit one;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&one, "l", "2/1h", "10/1h name wide shadow");
	for (unsigned n = 0; n < 20; n++)
		(void)ask(&bucket, &one, 1, IN_2026_US);
	assert_int_equal(ask(&bucket, &one, 1, IN_2026_US).outcomes[1].remaining, 8);
}

/* A limit that does not enforce, with a policy that would not either. */
static void
a_shadow_policy_of_a_shadow_limit_is_spent_when_its_limit_is_not(void **state)
{
	(void)state;
	make_limit(&made[0], "quiet", "2/1h", "5/1h name tight shadow");
	check.items[0].shadow = true;
	check.count = 2;
	for (unsigned n = 1; n <= 8; n++) {
		const struct decision decision = ask_all(IN_2026_US);

		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		assert_true(decision.outcomes[0].shadow && decision.outcomes[1].shadow);
		assert_true(decision.outcomes[0].violated == (n > 2));
		assert_true(decision.outcomes[1].violated == (n > 5));
		assert_int_equal(decision.outcomes[3].remaining, 15 - n);
	}
}

/* A violated shadow policy keeps what it has, in the form that it has. */
static void
what_is_not_spent_stays_as_it_was_written(void **state)
{
	struct made_limit before, after;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&before, "l", "100/1h", "10/1m sliding-window name w", "4/1s burst 40 name t");
	make_limit(&after, "l", "100/1h", "5/1h sliding-window name w shadow",
		"1/1h burst 5 name t shadow");
	(void)ask(&bucket, &before, 10, IN_2026_US);
	const int64_t window_end_us = kept_word(&bucket, &before.limit.policies[1]);
	const struct decision decision = ask(&bucket, &after, 1, IN_2026_US);

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_true(decision.outcomes[1].violated && decision.outcomes[2].violated);
	assert_int_equal(decision.outcomes[0].remaining, 89);
	assert_int_equal(kept_word(&bucket, &before.limit.policies[1]), window_end_us);
	/* Of a token bucket the tokens stay: there are as many owed at the new rate. */
	assert_int_equal(kept_word(&bucket, &before.limit.policies[2]) - IN_2026_US,
		10 * after.limit.policies[2].interval_us);
	/* So the old configuration finds its own: 10 of 40 are owed, and none of 10 left. */
	const struct decision old = ask(&bucket, &before, 41, IN_2026_US);

	assert_int_equal(old.outcomes[1].remaining, 0);
	assert_int_equal(old.outcomes[2].remaining, 30);
}

/* ---- too much to keep ---- */

/* Names that were given up, with logs as long as can be. */
static void
states_of_others_give_way_when_there_are_too_many_words(void **state)
{
	static struct kept bucket;
	struct made_limit old, one;
	char policy[64];

	(void)state;
	bucket.len = 0;
	make_limit(
		&one, "l", "9/1h", "1000/1h sliding-log name mine", "1000/1h sliding-log name too");
	for (unsigned i = 0; i < 10; i++) {
		(void)snprintf(policy, sizeof policy, "1000/1h sliding-log name old%u", i);
		make_limit(&old, "l", policy);
		for (unsigned n = 0; n < 1000; n++)
			assert_int_equal(
				ask(&bucket, &old, 1, IN_2026_US + n).verdict, VERDICT_ADMITTED);
		assert_true(bucket.len <= BUCKET_PACKED_MAX);
	}
	const struct decision decision = ask(&bucket, &one, 1, IN_2026_US + 1000);

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_non_null(kept_words(&bucket, &one.limit.policies[0]));
	assert_non_null(kept_words(&bucket, &one.limit.policies[1]));
	/* The last one of the others is there, the first one is not. */
	assert_non_null(kept_words(&bucket, &old.limit.policies[0]));
	make_limit(&old, "l", "1000/1h sliding-log name old0");
	assert_null(kept_words(&bucket, &old.limit.policies[0]));
}

/* Then what a policy has kept since it was larger, if it is not spent on: else a bucket of policies
 * that were all lowered would have no room for the new ones. */
static void
what_was_kept_of_a_larger_policy_gives_way_next(void **state)
{
	static const char *const large[] = { "concurrent 1000 name a", "concurrent 1000 name b" };
	static const char *const small[] = { "concurrent 1 name a shadow",
		"concurrent 1 name b shadow" };
	static struct kept bucket;
	struct made_limit old, one;

	(void)state;
	bucket.len = 0;
	make_limit(&old, "l", large[0], large[1]);
	make_limit(
		&one, "l", small[0], small[1], "concurrent 1000 name c", "concurrent 1000 name d");
	for (unsigned n = 0; n < 1000; n++)
		assert_int_equal(ask(&bucket, &old, 1, IN_2026_US).verdict, VERDICT_ADMITTED);
	unsigned words = 2 * 2000;

	for (unsigned n = 1; n <= 1000; n++) {
		const struct decision decision = ask(&bucket, &one, 1, IN_2026_US);

		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(decision.outcomes[2].remaining, 1000 - n);
		assert_int_equal(decision.outcomes[3].remaining, 1000 - n);
		/* While there is room they stay, and then one of them goes. */
		words += 2 * 2;
		if (words > BUCKET_WORDS_MAX) {
			words -= 2000;
			assert_null(kept_words(&bucket, &one.limit.policies[0]));
		}
		assert_true(bucket.len <= BUCKET_PACKED_MAX);
		assert_non_null(kept_words(&bucket, &one.limit.policies[1]));
		assert_true(decision.outcomes[1].violated);
	}
	/* Whoever has been forgotten is counted anew. */
	assert_int_equal(ask(&bucket, &one, 1, IN_2026_US).verdict, VERDICT_REJECTED);
}

#define mixed_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		mixed_test(a_rejected_request_changes_no_state),
		mixed_test(each_policy_counts_what_was_admitted_and_no_more),
		mixed_test(a_shadow_policy_never_rejects_and_is_spent_by_itself),
		mixed_test(a_shadow_policy_is_not_spent_on_what_is_rejected),
		mixed_test(a_shadow_policy_of_a_shadow_limit_is_spent_when_its_limit_is_not),
		mixed_test(what_is_not_spent_stays_as_it_was_written),
		mixed_test(states_of_others_give_way_when_there_are_too_many_words),
		mixed_test(what_was_kept_of_a_larger_policy_gives_way_next),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("limit/mixed", tests, NULL, NULL);
}
