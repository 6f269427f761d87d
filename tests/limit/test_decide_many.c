/* decision.h: several policies and limits in one decision, and what is said of the worst of them.
 */
#include "asking.h"

/* ---- several policies and limits ---- */

enum { LIMITS = 3 };

struct several {
	struct made_limit made[LIMITS];
	struct kept buckets[LIMITS];
	struct check check;
};

static void
several_init(struct several *several)
{
	memset(several, 0, sizeof *several);
	make_limit(&several->made[0], "user", "2/1s", "100/1d");
	make_limit(&several->made[1], "host", "10/1s", "20/1m", "1000/1d");
	make_limit(&several->made[2], "all", "50/1s");
	several->check = (struct check){ .count = LIMITS, .cost = 1 };
	for (unsigned i = 0; i < LIMITS; i++)
		several->check.items[i].limit = &several->made[i].limit;
}

static struct decision
ask_all(struct several *several, int64_t now_us)
{
	return decide_kept(&several->check,
		(struct kept *[]){
			&several->buckets[0], &several->buckets[1], &several->buckets[2] },
		now_us);
}

static void
a_rejected_request_spends_nothing_on_any_policy_of_any_limit(void **state)
{
	struct several several;

	(void)state;
	several_init(&several);
	assert_int_equal(ask_all(&several, IN_2026_US).verdict, VERDICT_ADMITTED);
	assert_int_equal(ask_all(&several, IN_2026_US).verdict, VERDICT_ADMITTED);
	const struct several before = several;

	for (unsigned n = 0; n < 100; n++) {
		const struct decision decision = ask_all(&several, IN_2026_US + 1000 * n);

		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		for (unsigned i = 0; i < LIMITS; i++) {
			assert_false(several.buckets[i].changed);
			assert_true(kept_is_same(&several.buckets[i], &before.buckets[i]));
		}
		for (unsigned i = 0; i < decision.count; i++)
			assert_true(decision.outcomes[i].violated == (i == 0));
	}
}

static void
outcomes_come_in_the_order_of_limits_and_policies(void **state)
{
	struct several several;
	unsigned at = 0;

	(void)state;
	several_init(&several);
	const struct decision decision = ask_all(&several, IN_2026_US);

	for (unsigned i = 0; i < LIMITS; i++) {
		for (unsigned j = 0; j < several.made[i].limit.policy_count; j++, at++) {
			const struct outcome *outcome = &decision.outcomes[at];

			assert_ptr_equal(outcome->limit, &several.made[i].limit);
			assert_ptr_equal(outcome->policy, &several.made[i].limit.policies[j]);
			assert_int_equal(outcome->remaining, outcome->policy->burst - 1);
		}
	}
	assert_int_equal(decision.count, at);
}

static void
the_day_counts_only_what_was_admitted(void **state)
{
	struct made_limit made;
	struct kept bucket = { .len = 0 };
	unsigned admitted = 0;

	(void)state;
	make_limit(&made, "l", "10/1s", "1000/1d");
	for (unsigned n = 0; n < 5000; n++) {
		const struct decision decision = ask(&bucket, &made, 1, IN_2026_US + 2000 * n);

		admitted += decision.verdict == VERDICT_ADMITTED;
		if (decision.verdict == VERDICT_ADMITTED)
			assert_int_equal(decision.outcomes[1].remaining, 1000 - admitted);
	}
	assert_int_equal(admitted, 10 + 99);
}

/* A client that always sends too much gets its rate all the same. */
static void
steady_excess_is_admitted_at_the_rate(void **state)
{
	struct made_limit made;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&made, "l", "5/1s");
	for (unsigned second = 0; second < 60; second++) {
		unsigned admitted = 0;

		for (unsigned n = 0; n < 10; n++)
			admitted +=
				ask(&bucket, &made, 1, IN_2026_US + second * US_PER_S + n * 100000)
					.verdict == VERDICT_ADMITTED;
		if (second > 1)
			assert_int_equal(admitted, 5);
	}
}

/* ---- Retry-After ---- */

static struct decision
rejected_for(const struct made_limit *made, const int64_t *retry_us, unsigned count)
{
	struct decision decision = { .verdict = VERDICT_REJECTED, .count = count };

	for (unsigned i = 0; i < count; i++)
		decision.outcomes[i] = (struct outcome){ .limit = &made->limit,
			.policy = &made->limit.policies[0],
			.violated = retry_us[i] != 0,
			.retry_us = retry_us[i] };
	return decision;
}

static void
retry_after_is_whole_seconds_rounded_up(void **state)
{
	static const struct {
		int64_t retry_us, seconds;
	} rows[] = { { 1, 1 }, { 1000, 1 }, { 200000, 1 }, { 999000, 1 }, { 1000000, 1 },
		{ 1000001, 2 }, { 1001000, 2 }, { 59999999, 60 }, { 60000000, 60 },
		{ DURATION_MAX_US, 3155760000 }, { -1, 0 } };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct decision decision = rejected_for(&made, &rows[i].retry_us, 1);

		assert_row(decision_retry_after_s(&decision) == rows[i].seconds, "row %zu", i);
	}
}

static void
retry_after_is_the_longest_of_what_was_violated(void **state)
{
	static const int64_t waits[] = { 3000000, 0, 70000000, 5000000 };
	static const int64_t never[] = { 3000000, -1, 70000000 };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	struct decision decision = rejected_for(&made, waits, 4);

	assert_ptr_equal(decision_violated(&decision), &decision.outcomes[2]);
	assert_int_equal(decision_retry_after_s(&decision), 70);
	decision.outcomes[2].shadow = true;
	assert_ptr_equal(decision_violated(&decision), &decision.outcomes[3]);
	decision = rejected_for(&made, never, 3);
	assert_ptr_equal(decision_violated(&decision), &decision.outcomes[1]);
	assert_int_equal(decision_retry_after_s(&decision), 0);
}

static void
an_admitted_request_has_no_retry_after(void **state)
{
	struct several several;

	(void)state;
	several_init(&several);
	const struct decision decision = ask_all(&several, IN_2026_US);

	assert_null(decision_violated(&decision));
	assert_int_equal(decision_retry_after_s(&decision), 0);
}

/* ---- limits that do not reject ---- */

static void
a_shadow_limit_counts_and_never_rejects(void **state)
{
	struct several several;
	unsigned would_reject = 0, admitted = 0;

	(void)state;
	several_init(&several);
	several.check.items[0].shadow = true; /* 2 at once; the enforced ones let 10 pass */
	for (unsigned n = 0; n < 15; n++) {
		const struct decision decision = ask_all(&several, IN_2026_US);

		admitted += decision.verdict == VERDICT_ADMITTED;
		would_reject += decision.outcomes[0].violated;
		assert_true(decision.outcomes[0].shadow && decision.outcomes[1].shadow);
		assert_false(decision.outcomes[2].shadow);
		/* It spends only what it would have let pass. */
		assert_int_equal(decision.outcomes[1].remaining, n == 0 ? 99 : 98);
	}
	assert_int_equal(admitted, 10);
	assert_int_equal(would_reject, 13);
}

static void
a_shadow_limit_is_not_spent_on_what_another_rejects(void **state)
{
	struct several several;

	(void)state;
	several_init(&several);
	several.check.items[2].shadow = true;
	for (unsigned n = 0; n < 10; n++)
		(void)ask_all(&several, IN_2026_US);
	const struct decision decision = ask_all(&several, IN_2026_US);

	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(decision.outcomes[5].remaining, 48);
	assert_false(decision.outcomes[5].violated);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rejected_request_spends_nothing_on_any_policy_of_any_limit),
		cmocka_unit_test(outcomes_come_in_the_order_of_limits_and_policies),
		cmocka_unit_test(the_day_counts_only_what_was_admitted),
		cmocka_unit_test(steady_excess_is_admitted_at_the_rate),
		cmocka_unit_test(retry_after_is_whole_seconds_rounded_up),
		cmocka_unit_test(retry_after_is_the_longest_of_what_was_violated),
		cmocka_unit_test(an_admitted_request_has_no_retry_after),
		cmocka_unit_test(a_shadow_limit_counts_and_never_rejects),
		cmocka_unit_test(a_shadow_limit_is_not_spent_on_what_another_rejects),
	};

	return cmocka_run_group_tests_name("limit/decide_many", tests, NULL, NULL);
}
