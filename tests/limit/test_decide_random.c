/*
 * decision.h against a model of its own kind: tokens that are refilled and taken, in exact
 * fractions, on random schedules. The model knows nothing of theoretical arrival times.
 */
#include "asking.h"
#include "weir/hash.h"

__extension__ typedef __int128 wide;

/* A policy with its tokens: `level` of them in parts of 1 / interval_us, as of `at_us`. */
struct model {
	const struct policy *policy;
	wide level;
	int64_t at_us;
};

static wide
model_full(const struct model *model)
{
	return (wide)model->policy->burst * model->policy->interval_us;
}

static void
model_refill(struct model *model, int64_t now_us)
{
	model->level += now_us - model->at_us;
	if (model->level > model_full(model))
		model->level = model_full(model);
	model->at_us = now_us;
}

static bool
model_has(const struct model *model, uint64_t cost)
{
	return model->level >= (wide)cost * model->policy->interval_us;
}

static void
assert_outcome(const struct outcome *outcome, const struct model *model, uint64_t cost, bool spent)
{
	const wide interval_us = model->policy->interval_us;
	const wide missing = (wide)cost * interval_us - model->level;

	assert_ptr_equal(outcome->policy, model->policy);
	assert_true(outcome->remaining == (uint64_t)(model->level / interval_us));
	assert_true(outcome->reset_us == (int64_t)(model_full(model) - model->level));
	if (outcome->violated)
		assert_true(outcome->more_us == (outcome->retry_us > 0 ? outcome->retry_us : 0));
	else if (outcome->remaining == model->policy->burst)
		assert_int_equal(outcome->more_us, 0);
	else
		assert_true(
			outcome->more_us == (int64_t)(interval_us - model->level % interval_us));
	if (spent)
		assert_false(outcome->violated);
	else
		assert_true(outcome->violated == (missing > 0));
	if (!outcome->violated)
		assert_int_equal(outcome->retry_us, 0);
	else if (cost > model->policy->burst)
		assert_int_equal(outcome->retry_us, -1);
	else
		assert_true(outcome->retry_us == (int64_t)missing);
}

/* ---- random policies and schedules ---- */

static const int64_t scales_us[] = { 1, 1000, US_PER_S, 60 * US_PER_S, US_PER_DAY,
	365 * US_PER_DAY };

/* Intervals from 1 us to 365 days, each with a burst whose bucket is at most 100 years. */
static struct policy
random_policy(uint64_t *random, const char *name)
{
	const int64_t scale = scales_us[random_below(random, LENGTH_OF(scales_us))];
	struct policy policy = {
		.name = name,
		.tag = policy_tag(name, POLICY_TOKEN_BUCKET),
		.count = 1 + random_below(random, 1000),
		.window_us = 1 + (int64_t)random_below(random, (size_t)scale),
		.burst = 1 + random_below(random, random_below(random, 2) == 0 ? 5 : 100),
	};

	policy.interval_us = policy.window_us / (int64_t)policy.count +
		(policy.window_us % (int64_t)policy.count != 0);
	policy.capacity_us = (int64_t)policy.burst * policy.interval_us;
	assert_true(policy.interval_us >= 1 && policy.capacity_us <= DURATION_MAX_US);
	return policy;
}

/* Nothing, a little, about an interval, many. */
static int64_t
random_step(uint64_t *random, int64_t interval_us)
{
	switch (random_below(random, 8)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return (int64_t)random_below(random, 3);
	case 3:
		return interval_us;
	case 4:
		return (int64_t)random_below(random, 10) * interval_us +
			(int64_t)random_below(random, 2);
	default:
		return (int64_t)random_below(random, (size_t)interval_us + 1);
	}
}

enum { LIMITS_MAX = 3, POLICIES_MAX = 3 };

struct trace {
	struct limit limits[LIMITS_MAX];
	struct kept buckets[LIMITS_MAX];
	struct model models[LIMITS_MAX][POLICIES_MAX];
	struct check check;
};

static void
trace_init(struct trace *trace, uint64_t *random, int64_t now_us)
{
	static const char *const names[] = { "a", "b", "c" };

	memset(trace, 0, sizeof *trace);
	trace->check.count = 1 + (unsigned)random_below(random, LIMITS_MAX);
	for (unsigned i = 0; i < trace->check.count; i++) {
		struct limit *limit = &trace->limits[i];

		limit->policy_count = 1 + (unsigned)random_below(random, POLICIES_MAX);
		limit->words = limit->policy_count;
		trace->check.items[i] = (struct check_item){ .limit = limit,
			.shadow = random_below(random, 4) == 0 };
		for (unsigned j = 0; j < limit->policy_count; j++) {
			struct model *model = &trace->models[i][j];

			limit->policies[j] = random_policy(random, names[j]);
			*model = (struct model){ &limit->policies[j], 0, now_us };
			model->level = model_full(model);
		}
	}
}

static void
trace_step(struct trace *trace, int64_t now_us)
{
	const uint64_t cost = trace->check.cost;
	bool admitted = true, admits[LIMITS_MAX];
	unsigned at = 0;

	for (unsigned i = 0; i < trace->check.count; i++) {
		admits[i] = true;
		for (unsigned j = 0; j < trace->limits[i].policy_count; j++) {
			model_refill(&trace->models[i][j], now_us);
			admits[i] = admits[i] && model_has(&trace->models[i][j], cost);
		}
		admitted = admitted && (admits[i] || trace->check.items[i].shadow);
	}
	const struct decision decision = decide_kept(&trace->check,
		(struct kept *[]){ &trace->buckets[0], &trace->buckets[1], &trace->buckets[2] },
		now_us);

	assert_int_equal(decision.verdict, admitted ? VERDICT_ADMITTED : VERDICT_REJECTED);
	assert_false(decision.clamped);
	for (unsigned i = 0; i < trace->check.count; i++) {
		for (unsigned j = 0; j < trace->limits[i].policy_count; j++) {
			struct model *model = &trace->models[i][j];

			if (admitted && admits[i])
				model->level -= (wide)cost * model->policy->interval_us;
			assert_outcome(
				&decision.outcomes[at++], model, cost, admitted && admits[i]);
		}
	}
	assert_int_equal(decision.count, at);
}

static void
decisions_are_those_of_refill_arithmetic(void **state)
{
	static const int64_t starts[] = { 1, IN_2026_US, IN_2100_US };
	uint64_t random = 20261202;
	struct trace trace;

	(void)state;
	for (unsigned round = 0; round < 1500; round++) {
		int64_t now = starts[random_below(&random, LENGTH_OF(starts))];

		trace_init(&trace, &random, now);
		for (unsigned n = 0; n < 100; n++) {
			const struct limit *limit =
				&trace.limits[random_below(&random, trace.check.count)];
			const struct policy *policy =
				&limit->policies[random_below(&random, limit->policy_count)];

			trace.check.cost = random_below(&random, 4) > 0
				? 1
				: 1 + random_below(&random, policy->burst + 2);
			trace_step(&trace, now);
			if (now < IN_2100_US + DURATION_MAX_US / 100)
				now += random_step(&random, policy->interval_us);
		}
	}
}

/* ---- the promise ---- */

enum { SCHEDULE = 250 };

struct admission {
	int64_t at_us;
	uint64_t cost;
};

/* By the rate as it is written, not as it is rounded; every span from one admission to another. */
static void
assert_no_span_exceeds(const struct policy *policy, const struct admission *list, size_t count)
{
	for (size_t from = 0; from < count; from++) {
		wide sum = 0;

		for (size_t to = from; to < count; to++) {
			sum += (wide)list[to].cost;
			const wide span = list[to].at_us - list[from].at_us;

			assert_true((sum - (wide)policy->burst) * policy->window_us <=
				span * (wide)policy->count);
		}
	}
}

/* With clocks that are up to `behind_us` behind, as those of several hosts may be. */
static void
run_schedules(size_t behind_us)
{
	uint64_t random = 4711;

	for (unsigned round = 0; round < 300; round++) {
		struct made_limit made = { .limit = { .policy_count = 1, .words = 1 } };
		const struct policy *policy = &made.limit.policies[0];
		struct kept bucket = { .len = 0 };
		struct admission admissions[SCHEDULE];
		size_t count = 0;
		int64_t now = IN_2026_US;

		made.limit.policies[0] = random_policy(&random, "p");
		for (unsigned n = 0; n < SCHEDULE; n++) {
			const uint64_t cost = random_below(&random, 3) > 0
				? 1
				: 1 + random_below(&random, policy->burst);
			const int64_t at = now - (int64_t)random_below(&random, behind_us + 1);

			if (ask(&bucket, &made, cost, at).verdict == VERDICT_ADMITTED)
				admissions[count++] = (struct admission){ at, cost };
			now += random_step(&random, policy->interval_us);
		}
		assert_true(count > 0);
		assert_no_span_exceeds(policy, admissions, count);
	}
}

static void
no_more_than_burst_and_rate_is_admitted_in_any_span(void **state)
{
	(void)state;
	run_schedules(0);
}

static void
no_more_is_admitted_when_the_clock_wavers_by_a_second(void **state)
{
	(void)state;
	run_schedules(US_PER_S);
}

/* Sooner or later on a random schedule: wait as told, and be admitted. */
static void
whoever_waits_as_told_is_admitted(void **state)
{
	uint64_t random = 99;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		struct made_limit made = { .limit = { .policy_count = 3, .words = 3 } };
		struct kept bucket = { .len = 0 };
		int64_t now = IN_2026_US + (int64_t)random_below(&random, 1000000);
		uint64_t least = UINT64_MAX;

		for (unsigned i = 0; i < 3; i++) {
			static const char *const names[] = { "a", "b", "c" };

			made.limit.policies[i] = random_policy(&random, names[i]);
			if (made.limit.policies[i].burst < least)
				least = made.limit.policies[i].burst;
		}
		const uint64_t cost = 1 + random_below(&random, least);
		const struct decision decision = exhaust(&bucket, &made, cost, now);
		const int64_t retry_us = decision_violated(&decision)->retry_us;

		assert_true(retry_us > 0);
		assert_false(admits(&bucket, &made, cost, now + retry_us - 1));
		assert_true(admits(&bucket, &made, cost, now + retry_us));
		assert_true(admits(
			&bucket, &made, cost, now + decision_retry_after_s(&decision) * US_PER_S));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_are_those_of_refill_arithmetic),
		cmocka_unit_test(no_more_than_burst_and_rate_is_admitted_in_any_span),
		cmocka_unit_test(no_more_is_admitted_when_the_clock_wavers_by_a_second),
		cmocka_unit_test(whoever_waits_as_told_is_admitted),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("limit/decide_random", tests, NULL, NULL);
}
