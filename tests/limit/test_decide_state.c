/* decision.h: buckets that another configuration or another clock has written. */
#include "asking.h"

static uint64_t
remaining(const struct kept *bucket, const struct made_limit *made, int64_t now_us)
{
	struct kept copy = *bucket;
	const struct decision decision = ask(&copy, made, UINT64_C(1000000000000000), now_us);

	assert_int_equal(decision.outcomes[0].retry_us, -1);
	return decision.outcomes[0].remaining;
}

/* As stored; 0 if it is not. */
static int64_t
tat_of(const struct kept *bucket, const struct policy *policy)
{
	const int64_t *words = kept_words(bucket, policy);

	return words == NULL ? 0 : words[0];
}

static unsigned
fields_of(const struct kept *bucket)
{
	return kept_bucket(bucket).count;
}

/* ---- a changed limit ---- */

static void
a_changed_rate_leaves_the_tokens_spent(void **state)
{
	static const char *const rates[] = { "10/1s burst 10 name p", "1/1s burst 10 name p",
		"7/1m burst 10 name p", "1000/1ms burst 10 name p", "3/1d burst 10 name p",
		"1/365d burst 10 name p" };
	struct made_limit from, to;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rates); i++) {
		for (size_t j = 0; j < LENGTH_OF(rates); j++) {
			struct kept bucket = { .len = 0 };

			make_limit(&from, "l", rates[i]);
			make_limit(&to, "l", rates[j]);
			(void)ask(&bucket, &from, 4, IN_2026_US);
			assert_row(remaining(&bucket, &to, IN_2026_US) == 6, "%s to %s", rates[i],
				rates[j]);
			assert_int_equal(ask(&bucket, &to, 1, IN_2026_US).outcomes[0].remaining, 5);
			assert_row(remaining(&bucket, &from, IN_2026_US) == 5, "%s to %s and back",
				rates[i], rates[j]);
		}
	}
}

/* Half a token that has come back stays half a token. */
static void
a_debt_is_rescaled_in_parts_of_tokens(void **state)
{
	struct made_limit from, to;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&from, "l", "10/1s burst 10 name p");
	make_limit(&to, "l", "1/1m burst 10 name p");
	(void)exhaust(&bucket, &from, 1, IN_2026_US);
	const int64_t now = IN_2026_US + 150000; /* 1.5 of 10 are back */
	const struct decision decision = ask(&bucket, &to, 1, now);

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(decision.outcomes[0].remaining, 0);
	assert_int_equal(decision.outcomes[0].more_us, 30 * US_PER_S);
	assert_int_equal(decision.outcomes[0].reset_us, 9 * 60 * US_PER_S + 30 * US_PER_S);
}

static void
a_wait_told_after_the_change_is_exact(void **state)
{
	static const char *const limits[] = { "10/1s burst 100 name p", "10/1s burst 10 name p",
		"1/1s burst 10 name p", "100/1d burst 100 name p", "10000/1d burst 10000 name p",
		"7/1s burst 3 name p", "1000/1ms burst 7 name p" };
	struct made_limit from, to;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(limits); i++) {
		for (size_t j = 0; j < LENGTH_OF(limits); j++) {
			struct kept bucket = { .len = 0 };

			make_limit(&from, "l", limits[i]);
			make_limit(&to, "l", limits[j]);
			(void)exhaust(&bucket, &from, 1, IN_2026_US);
			for (uint64_t cost = 1; cost <= to.limit.policies[0].burst; cost += 3) {
				const struct decision decision =
					ask(&bucket, &to, cost, IN_2026_US);
				const int64_t retry_us = decision.outcomes[0].retry_us;

				if (decision.verdict == VERDICT_ADMITTED)
					break;
				assert_false(decision.clamped);
				assert_true(retry_us > 0);
				assert_row(!admits(&bucket, &to, cost, IN_2026_US + retry_us - 1),
					"%s to %s, cost %d: early", limits[i], limits[j],
					(int)cost);
				assert_row(admits(&bucket, &to, cost, IN_2026_US + retry_us),
					"%s to %s, cost %d: late", limits[i], limits[j], (int)cost);
			}
		}
	}
}

/* As during a rollout: hosts of the old and of the new configuration on the same keys. */
static void
two_configurations_side_by_side_mint_nothing(void **state)
{
	static const char *const pairs[][2] = {
		{ "10/1s burst 100 name p", "10/1s burst 10 name p" },
		{ "10/1s burst 100 name p", "1/1s burst 10 name p" },
		{ "10000/1d burst 10000 name p", "100/1d burst 100 name p" },
		{ "7/1s burst 70 name p", "11/1s burst 3 name p" },
	};
	struct made_limit made[2];
	uint64_t random = 7;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(pairs); i++) {
		struct kept bucket = { .len = 0 };
		uint64_t admitted = 0;
		int64_t now = IN_2026_US, interval_us;

		make_limit(&made[0], "l", pairs[i][0]);
		make_limit(&made[1], "l", pairs[i][1]);
		interval_us = made[0].limit.policies[0].interval_us;
		if (made[1].limit.policies[0].interval_us < interval_us)
			interval_us = made[1].limit.policies[0].interval_us;
		for (unsigned n = 0; n < 5000; n++) {
			const struct decision decision =
				ask(&bucket, &made[random_below(&random, 2)], 1, now);

			assert_false(decision.clamped);
			admitted += decision.verdict == VERDICT_ADMITTED;
			now += (int64_t)random_below(&random, (size_t)interval_us / 2);
		}
		/* The larger bucket, and the higher rate. */
		assert_in_range(admitted, 1,
			made[0].limit.policies[0].burst +
				(uint64_t)((now - IN_2026_US) / interval_us));
	}
}

static void
a_renamed_policy_begins_full_and_the_old_name_finds_its_state_again(void **state)
{
	struct made_limit before, after;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&before, "l", "5/1m");
	make_limit(&after, "l", "5/1m name new");
	(void)ask(&bucket, &before, 5, IN_2026_US);
	assert_int_equal(ask(&bucket, &after, 1, IN_2026_US).outcomes[0].remaining, 4);
	assert_int_equal(remaining(&bucket, &before, IN_2026_US), 0);
	/* What is full again is not carried on. */
	(void)ask(&bucket, &after, 1, IN_2026_US + 60 * US_PER_S);
	assert_int_equal(fields_of(&bucket), 1);
}

/* ---- fields of others ---- */

/* Fills the bucket to the brim with policies of names that are given up again. */
static void
fill(struct kept *bucket, unsigned count, int64_t now_us)
{
	struct made_limit made;
	char policy[40];

	for (unsigned i = 0; fields_of(bucket) < count; i++) {
		(void)snprintf(policy, sizeof policy, "5/1d name old%u", i);
		make_limit(&made, "l", policy);
		(void)ask(bucket, &made, 1, now_us + i);
	}
}

static void
the_fields_of_a_limit_never_give_way_to_its_own(void **state)
{
	struct made_limit one, two;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&one, "l", "5/1d name kept");
	make_limit(&two, "l", "5/1d name kept", "50/1d name added");
	(void)ask(&bucket, &one, 3, IN_2026_US);
	fill(&bucket, BUCKET_FIELDS_MAX, IN_2026_US);
	const struct decision decision = ask(&bucket, &two, 1, IN_2026_US);

	assert_int_equal(decision.outcomes[0].remaining, 1);
	assert_int_equal(fields_of(&bucket), BUCKET_FIELDS_MAX);
	assert_int_equal(remaining(&bucket, &one, IN_2026_US), 1);
	assert_int_equal(ask(&bucket, &two, 1, IN_2026_US).outcomes[1].remaining, 48);
}

static void
the_largest_limit_fits_a_full_bucket(void **state)
{
	struct made_limit made;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&made, "l", "9/1d name a", "9/1d name b", "9/1d name c", "9/1d name d",
		"9/1d name e", "9/1d name f", "9/1d name g", "9/1d name h");
	fill(&bucket, BUCKET_FIELDS_MAX, IN_2026_US);
	for (unsigned n = 1; n <= 9; n++) {
		const struct decision decision = ask(&bucket, &made, 1, IN_2026_US);

		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		for (unsigned i = 0; i < decision.count; i++)
			assert_int_equal(decision.outcomes[i].remaining, 9 - n);
	}
	assert_int_equal(ask(&bucket, &made, 1, IN_2026_US).verdict, VERDICT_REJECTED);
	assert_int_equal(fields_of(&bucket), BUCKET_FIELDS_MAX);
}

/* ---- a clock that was set back ---- */

static void
a_clock_that_is_a_little_behind_mints_nothing(void **state)
{
	struct made_limit made;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&made, "l", "10/1s");
	(void)exhaust(&bucket, &made, 1, IN_2026_US);
	const struct decision decision = ask(&bucket, &made, 1, IN_2026_US - 999999);

	assert_false(decision.clamped);
	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(decision.outcomes[0].remaining, 0);
	assert_int_equal(decision.outcomes[0].retry_us, 999999 + 100000);
}

static void
a_clock_that_is_far_behind_costs_one_refill(void **state)
{
	static const int64_t steps[] = { 600 * US_PER_S, 9 * 365 * US_PER_DAY,
		IN_2026_US - 1 }; /* failover, a battery, the epoch */
	static const char *const limits[] = { "10/1s", "5/1m", "3/1h burst 1" };
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(steps); i++) {
		for (size_t j = 0; j < LENGTH_OF(limits); j++) {
			struct kept bucket = { .len = 0 };
			int64_t now = IN_2026_US;

			make_limit(&made, "l", limits[j]);
			const struct policy *policy = &made.limit.policies[0];

			(void)exhaust(&bucket, &made, 1, now);
			now -= steps[i];
			if (steps[i] <= US_PER_S + policy->interval_us)
				continue;
			struct decision decision = ask(&bucket, &made, 1, now);

			assert_true(decision.clamped);
			assert_int_equal(decision.verdict, VERDICT_REJECTED);
			assert_int_equal(decision.outcomes[0].retry_us, policy->interval_us);
			assert_int_equal(decision.outcomes[0].reset_us, policy->capacity_us);
			assert_true(bucket.changed);
			/* Once; then it is a bucket like any other. */
			decision = ask(&bucket, &made, 1, now + policy->interval_us - 1);
			assert_false(decision.clamped);
			assert_int_equal(decision.outcomes[0].retry_us, 1);
			decision = ask(&bucket, &made, 1, now + policy->interval_us);
			assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		}
	}
}

static void
a_bucket_is_set_right_whoever_rejects(void **state)
{
	struct made_limit ahead, full;
	struct kept buckets[2] = { { .len = 0 } };
	struct check check = { .count = 2, .cost = 1 };

	(void)state;
	make_limit(&ahead, "a", "5/1m");
	make_limit(&full, "f", "1/1d");
	check.items[0] = (struct check_item){ .limit = &ahead.limit, .shadow = true };
	check.items[1] = (struct check_item){ .limit = &full.limit };
	(void)exhaust(&buckets[0], &ahead, 1, IN_2026_US + 3600 * US_PER_S);
	(void)exhaust(&buckets[1], &full, 1, IN_2026_US);
	const struct decision decision =
		decide_kept(&check, (struct kept *[]){ &buckets[0], &buckets[1] }, IN_2026_US);

	assert_true(decision.clamped);
	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(tat_of(&buckets[0], &ahead.limit.policies[0]), IN_2026_US + 60 * US_PER_S);
	assert_true(buckets[0].changed);
	assert_false(buckets[1].changed);
}

static void
only_what_is_beyond_the_writers_own_bucket_is_a_clock(void **state)
{
	struct made_limit large, small;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&large, "l", "10/1s burst 600 name p");
	make_limit(&small, "l", "10/1s burst 10 name p");
	(void)exhaust(&bucket, &large, 1, IN_2026_US);
	assert_false(ask(&bucket, &small, 1, IN_2026_US).clamped);
	assert_false(ask(&bucket, &small, 1, IN_2026_US - US_PER_S).clamped);
	assert_true(ask(&bucket, &small, 1, IN_2026_US - US_PER_S - 1).clamped);
	assert_int_equal(tat_of(&bucket, &small.limit.policies[0]), IN_2026_US - 1);
}

static void
impossible_fields_of_others_are_not_carried_on(void **state)
{
	struct made_limit other, own;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&other, "l", "5/1m name other");
	make_limit(&own, "l", "5/1m");
	(void)ask(&bucket, &other, 1, IN_2026_US + 3600 * US_PER_S);
	(void)ask(&bucket, &own, 1, IN_2026_US);
	assert_int_equal(fields_of(&bucket), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_changed_rate_leaves_the_tokens_spent),
		cmocka_unit_test(a_debt_is_rescaled_in_parts_of_tokens),
		cmocka_unit_test(a_wait_told_after_the_change_is_exact),
		cmocka_unit_test(two_configurations_side_by_side_mint_nothing),
		cmocka_unit_test(
			a_renamed_policy_begins_full_and_the_old_name_finds_its_state_again),
		cmocka_unit_test(the_fields_of_a_limit_never_give_way_to_its_own),
		cmocka_unit_test(the_largest_limit_fits_a_full_bucket),
		cmocka_unit_test(a_clock_that_is_a_little_behind_mints_nothing),
		cmocka_unit_test(a_clock_that_is_far_behind_costs_one_refill),
		cmocka_unit_test(a_bucket_is_set_right_whoever_rejects),
		cmocka_unit_test(only_what_is_beyond_the_writers_own_bucket_is_a_clock),
		cmocka_unit_test(impossible_fields_of_others_are_not_carried_on),
	};

	return cmocka_run_group_tests_name("limit/decide_state", tests, NULL, NULL);
}
