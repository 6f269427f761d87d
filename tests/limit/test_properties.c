/*
 * What holds of every algorithm, on random schedules of random policies: a wait that is told is
 * true, what is said to remain passes, what is rejected costs nothing, and a clock that is stepped
 * costs one bucket at the most.
 */
#include "asking.h"

static const enum policy_algorithm all[] = { POLICY_TOKEN_BUCKET, POLICY_SLIDING_WINDOW,
	POLICY_SLIDING_LOG, POLICY_CALENDAR, POLICY_CONCURRENT };

/* A policy as it is written; of a small burst, since that is where the corners are. */
static void
random_policy(uint64_t *random, enum policy_algorithm algorithm, char text[64])
{
	static const char *const windows[] = { "1ms", "7ms", "1s", "10s", "1m", "1h", "1d",
		"365d" };
	const char *window = windows[random_below(random, LENGTH_OF(windows))];
	const unsigned count =
		1 + (unsigned)random_below(random, random_below(random, 3) == 0 ? 3 : 40);

	switch (algorithm) {
	case POLICY_TOKEN_BUCKET:
		(void)snprintf(
			text, 64, "%u/%s burst %zu", count, window, 1 + random_below(random, 30));
		break;
	case POLICY_SLIDING_WINDOW:
		(void)snprintf(text, 64, "%u/%s sliding-window", count, window);
		break;
	case POLICY_SLIDING_LOG:
		(void)snprintf(text, 64, "%u/%s sliding-log", count, window);
		break;
	case POLICY_CALENDAR:
		(void)snprintf(text, 64, "%u/%s calendar", count,
			random_below(random, 2) == 0 ? "day" : "month");
		break;
	case POLICY_CONCURRENT:
		(void)snprintf(
			text, 64, "concurrent %u lease %zus", count, 1 + random_below(random, 100));
		break;
	}
}

/* How long until a policy has about one token more, or is new. */
static int64_t
random_step(uint64_t *random, const struct policy *policy)
{
	const size_t form = (size_t)policy->interval_us;

	switch (random_below(random, 8)) {
	case 0:
		return (int64_t)random_below(random, form + 1);
	case 1:
		return (int64_t)random_below(random, 2 * form / policy->burst + 2);
	case 2:
		return (int64_t)random_below(random, 3);
	case 3:
		return random_below(random, 4) == 0 ? (int64_t)form * 2 : (int64_t)form;
	default:
		return 0;
	}
}

static void
assert_sound(const struct outcome *outcome)
{
	const uint64_t burst = outcome->policy->burst;

	assert_true(outcome->remaining <= burst);
	assert_true(outcome->more_us >= 0 && outcome->reset_us >= 0);
	assert_true((outcome->reset_us > 0) == (outcome->remaining < burst));
	if (outcome->violated)
		assert_true(outcome->retry_us == -1 || outcome->retry_us > 0);
	else
		assert_true(outcome->retry_us == 0 && outcome->more_us <= outcome->reset_us);
}

/* Of a rejected request, and of one token more. */
static void
assert_waits(const struct kept *kept, const struct made_limit *made, const struct outcome *outcome,
	uint64_t cost, int64_t now_us)
{
	const uint64_t burst = outcome->policy->burst;

	if (outcome->violated && outcome->retry_us > 0) {
		assert_false(admits(kept, made, cost, now_us + outcome->retry_us - 1));
		assert_true(admits(kept, made, cost, now_us + outcome->retry_us));
	}
	if (!outcome->violated && outcome->remaining < burst) {
		const uint64_t one_more = outcome->remaining + 1;

		assert_false(admits(kept, made, one_more, now_us + outcome->more_us - 1));
		assert_true(admits(kept, made, one_more, now_us + outcome->more_us));
		assert_false(admits(kept, made, burst, now_us + outcome->reset_us - 1));
	}
	assert_true(admits(kept, made, burst, now_us + outcome->reset_us));
}

static void
assert_remaining_passes(
	const struct kept *kept, const struct made_limit *made, uint64_t remaining, int64_t now_us)
{
	static struct kept copy;

	kept_copy(&copy, kept);
	for (uint64_t i = 0; i < remaining; i++)
		assert_int_equal(ask(&copy, made, 1, now_us).verdict, VERDICT_ADMITTED);
	assert_int_equal(ask(&copy, made, 1, now_us).verdict, VERDICT_REJECTED);
}

static void
run_schedule(uint64_t *random, enum policy_algorithm algorithm)
{
	static struct kept kept, before;
	struct made_limit made;
	char policy[64];
	int64_t now_us = random_below(random, 2) == 0 ? IN_2026_US : IN_2100_US;

	random_policy(random, algorithm, policy);
	make_limit(&made, "l", policy);
	kept.len = 0;
	now_us += (int64_t)random_below(random, 10000000);
	for (unsigned n = 0; n < 60; n++) {
		const uint64_t cost = random_below(random, 3) > 0
			? 1
			: 1 + random_below(random, made.limit.policies[0].burst + 1);

		kept_copy(&before, &kept);
		const struct decision decision = ask(&kept, &made, cost, now_us);
		const struct outcome *outcome = &decision.outcomes[0];

		assert_sound(outcome);
		assert_false(decision.clamped);
		if (decision.verdict == VERDICT_REJECTED)
			assert_true(!kept.changed && kept_is_same(&kept, &before));
		/* Nobody knows when those who have leases give them back. */
		if (algorithm != POLICY_CONCURRENT)
			assert_waits(&kept, &made, outcome, cost, now_us);
		assert_remaining_passes(&kept, &made, outcome->remaining, now_us);
		now_us += random_step(random, &made.limit.policies[0]);
	}
}

static void
what_is_told_is_true_and_what_is_rejected_costs_nothing(void **state)
{
	uint64_t random = 20261202;

	(void)state;
	for (unsigned round = 0; round < 1500; round++)
		run_schedule(&random, all[round % LENGTH_OF(all)]);
}

/* ---- clocks ---- */

static uint64_t
exhausted(struct kept *kept, const struct made_limit *made, int64_t now_us)
{
	uint64_t admitted = 0;

	while (ask(kept, made, 1, now_us).verdict == VERDICT_ADMITTED)
		admitted++;
	return admitted;
}

/* No time passes but on the clock. */
static void
a_clock_that_is_stepped_and_set_right_admits_one_more_bucket(void **state)
{
	static struct kept kept;
	uint64_t random = 12;

	(void)state;
	for (unsigned round = 0; round < 6000; round++) {
		struct made_limit made;
		char policy[64];

		random_policy(&random, all[round % LENGTH_OF(all)], policy);
		make_limit(&made, "l", policy);
		const uint64_t burst = made.limit.policies[0].burst;
		const int64_t now_us = IN_2026_US + (int64_t)random_below(&random, 10000000);
		const int64_t sizes[] = { 1000, US_PER_S, 10 * US_PER_S, US_PER_DAY,
			400 * US_PER_DAY };
		int64_t step_us = (int64_t)random_below(
			&random, (size_t)sizes[random_below(&random, LENGTH_OF(sizes))]);

		if (random_below(&random, 2) == 0)
			step_us = -step_us;
		kept.len = 0;
		uint64_t admitted = exhausted(&kept, &made, now_us);

		assert_int_equal(admitted, burst);
		admitted += exhausted(&kept, &made, now_us + step_us);
		admitted += exhausted(&kept, &made, now_us);
		assert_row(admitted <= 2 * burst, "%s, %ld us: %d", policy, (long)step_us,
			(int)admitted);
	}
}

/* And nobody is locked out for longer than if it were used now. */
static void
a_clock_that_was_set_back_is_waited_for_no_longer_than_a_full_reset(void **state)
{
	static struct kept kept;
	uint64_t random = 13;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		struct made_limit made;
		char policy[64];

		random_policy(&random, all[round % LENGTH_OF(all)], policy);
		make_limit(&made, "l", policy);
		const struct policy *one = &made.limit.policies[0];
		/* The longest that a state may last, and the second that is forgiven. */
		const int64_t longest_us = US_PER_S +
			(one->algorithm == POLICY_CALENDAR ? one->span_us : 2 * one->capacity_us);

		kept.len = 0;
		(void)exhausted(&kept, &made, IN_2100_US);
		(void)ask(&kept, &made, 1, IN_2026_US);
		assert_true(
			admits(&kept, &made, one->algorithm == POLICY_CONCURRENT ? 1 : one->burst,
				IN_2026_US + longest_us));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_told_is_true_and_what_is_rejected_costs_nothing),
		cmocka_unit_test(a_clock_that_is_stepped_and_set_right_admits_one_more_bucket),
		cmocka_unit_test(
			a_clock_that_was_set_back_is_waited_for_no_longer_than_a_full_reset),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("limit/properties", tests, NULL, NULL);
}
