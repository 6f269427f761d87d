/* decision.h: one policy and its bucket, case by case. Several at once are in test_decide_many.c,
 * changed limits and clocks in test_decide_state.c, random schedules in test_decide_random.c. */
#include "asking.h"

/* A bucket of a hundred years that is used then is full again when 16 digits still say it. */
#define LATEST_US INT64_C(6500000000000000)

/* ---- tables of policies, times and costs ---- */

static const char *const policies[] = { "10/1s", "10/1s burst 60", "5/1m", "7/1s", "1/1s",
	"1000/1ms", "1000/1ms burst 3", "1/1ms burst 2", "999999/1s burst 50", "3/1d burst 1",
	"50/1d", "1/365d burst 4", "1/36525d" };

static const int64_t times[] = { 1, IN_2026_US, IN_2100_US };

static int64_t
worthless_at(const struct kept *kept, int64_t now_us)
{
	const struct bucket bucket = kept_bucket(kept);

	return bucket_worthless_at(&bucket, now_us);
}

#define each_policy(made, now)                                                                     \
	for (size_t i_ = 0; i_ < LENGTH_OF(policies); i_++)                                        \
		for (size_t j_ = 0; j_ < LENGTH_OF(times) &&                                       \
			(make_limit(made, "l", policies[i_]), (now) = times[j_], true);            \
			j_++)

static void
a_whole_burst_passes_at_once_and_one_more_does_not(void **state)
{
	struct made_limit made;
	int64_t now;

	(void)state;
	each_policy(&made, now)
	{
		const struct policy *policy = &made.limit.policies[0];
		struct kept bucket = { .len = 0 };

		for (uint64_t n = 0; n < policy->burst; n++) {
			const struct decision decision = ask(&bucket, &made, 1, now);

			assert_int_equal(decision.verdict, VERDICT_ADMITTED);
			assert_int_equal(decision.outcomes[0].remaining, policy->burst - n - 1);
		}
		assert_false(admits(&bucket, &made, 1, now));
	}
}

/* Alone on its key, and not a microsecond too long. */
static void
waiting_exactly_retry_us_admits(void **state)
{
	struct made_limit made;
	int64_t now;

	(void)state;
	each_policy(&made, now)
	{
		const uint64_t burst = made.limit.policies[0].burst;
		const uint64_t costs[] = { 1, 2, burst - 1, burst };
		struct kept bucket = { .len = 0 };

		for (size_t i = 0; i < LENGTH_OF(costs); i++) {
			if (costs[i] < 1 || costs[i] > burst)
				continue;
			const struct decision decision = exhaust(&bucket, &made, costs[i], now);
			const int64_t retry_us = decision.outcomes[0].retry_us;

			assert_true(retry_us > 0);
			assert_false(admits(&bucket, &made, costs[i], now + retry_us - 1));
			assert_true(admits(&bucket, &made, costs[i], now + retry_us));
			assert_true(decision_retry_after_s(&decision) >= 1);
			assert_true(admits(&bucket, &made, costs[i],
				now + decision_retry_after_s(&decision) * US_PER_S));
		}
	}
}

static void
what_remains_passes_at_once_and_one_more_does_not(void **state)
{
	struct made_limit made;
	int64_t now;

	(void)state;
	each_policy(&made, now)
	{
		struct kept bucket = { .len = 0 };

		for (unsigned n = 0; n < 40 && now < LATEST_US;
			n++, now += made.limit.policies[0].interval_us * 2 / 3) {
			const uint64_t remaining =
				ask(&bucket, &made, 1, now).outcomes[0].remaining;

			if (remaining > 0)
				assert_true(admits(&bucket, &made, remaining, now));
			assert_false(admits(&bucket, &made, remaining + 1, now));
			struct kept copy = bucket;

			for (uint64_t i = 0; i < remaining; i++)
				assert_int_equal(
					ask(&copy, &made, 1, now).verdict, VERDICT_ADMITTED);
			assert_int_equal(ask(&copy, &made, 1, now).verdict, VERDICT_REJECTED);
		}
	}
}

static void
one_token_more_comes_after_more_us_and_all_after_reset_us(void **state)
{
	struct made_limit made;
	int64_t now;

	(void)state;
	each_policy(&made, now)
	{
		const uint64_t burst = made.limit.policies[0].burst;
		struct kept bucket = { .len = 0 };

		for (unsigned n = 0; n < 10 && now < LATEST_US;
			n++, now += made.limit.policies[0].interval_us * 2 / 3) {
			const struct outcome outcome = ask(&bucket, &made, 1, now).outcomes[0];

			assert_true(outcome.more_us > 0 && outcome.more_us <= outcome.reset_us);
			assert_false(admits(
				&bucket, &made, outcome.remaining + 1, now + outcome.more_us - 1));
			assert_true(admits(
				&bucket, &made, outcome.remaining + 1, now + outcome.more_us));
			assert_false(admits(&bucket, &made, burst, now + outcome.reset_us - 1));
			assert_true(admits(&bucket, &made, burst, now + outcome.reset_us));
			assert_int_equal(worthless_at(&bucket, now), now + outcome.reset_us);
		}
	}
}

static void
a_full_bucket_has_no_more_to_come(void **state)
{
	struct made_limit made;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&made, "l", "5/1m");
	const struct decision decision = ask(&bucket, &made, 6, IN_2026_US);

	assert_int_equal(decision.outcomes[0].remaining, 5);
	assert_int_equal(decision.outcomes[0].more_us, 0);
	assert_int_equal(decision.outcomes[0].reset_us, 0);
	assert_int_equal(bucket.len, 0);
}

static void
a_cost_beyond_the_burst_never_passes(void **state)
{
	static const uint64_t costs[] = { 11, 20, UINT64_C(1000000000000000) };
	struct made_limit made;
	struct kept bucket = { .len = 0 };

	(void)state;
	make_limit(&made, "l", "10/1s");
	(void)ask(&bucket, &made, 3, IN_2026_US);
	for (size_t i = 0; i < LENGTH_OF(costs); i++) {
		const struct decision decision = ask(&bucket, &made, costs[i], IN_2026_US);

		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		assert_int_equal(decision.outcomes[0].retry_us, -1);
		assert_int_equal(decision.outcomes[0].remaining, 7);
		assert_int_equal(decision_retry_after_s(&decision), 0);
		assert_false(bucket.changed);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_whole_burst_passes_at_once_and_one_more_does_not),
		cmocka_unit_test(waiting_exactly_retry_us_admits),
		cmocka_unit_test(what_remains_passes_at_once_and_one_more_does_not),
		cmocka_unit_test(one_token_more_comes_after_more_us_and_all_after_reset_us),
		cmocka_unit_test(a_full_bucket_has_no_more_to_come),
		cmocka_unit_test(a_cost_beyond_the_burst_never_passes),
	};

	return cmocka_run_group_tests_name("limit/decide", tests, NULL, NULL);
}
