/*
 * A million decisions in a row, in this year and in 2100, on a bucket that is always asked for more
 * than it has: what was admitted is known exactly, and nothing that is stored ever is no whole
 * number below 2^53.
 */
#include "asking.h"

enum { DECISIONS = 1000000 };

struct row {
	const char *policy;
	int64_t step_us; /* from one request to the next */
};

/* A bucket's words are kept and packed in place, as a store does, and nothing else: it is a million
 * of them. */
struct runner {
	struct made_limit made;
	int64_t words[2][BUCKET_PACKED_MAX], room[LIMIT_WORDS_MAX + BUCKET_PACKED_MAX];
	size_t len;
	unsigned in; /* which of the words */
	uint64_t admitted;
};

static void
assert_words(const struct bucket *bucket)
{
	for (unsigned i = 0; i < bucket->count; i++) {
		for (unsigned j = 0; j < bucket->fields[i].count; j++)
			assert_true(bucket->fields[i].words[j] >= 0 &&
				bucket->fields[i].words[j] < INT64_C(1) << 53);
	}
}

static void
run_one(struct runner *runner, uint64_t lease, int64_t now_us)
{
	const struct check check = {
		.items = { { .limit = &runner->made.limit } }, .count = 1, .cost = 1, .lease = lease
	};
	struct decision decision;
	struct bucket bucket;

	bucket_unpack(&bucket, runner->words[runner->in], runner->len);
	bucket.room = runner->room;
	decide(&check, &bucket, now_us, &decision);
	assert_false(decision.clamped);
	if (decision.verdict == VERDICT_REJECTED) {
		assert_true(decision.outcomes[0].retry_us > 0);
		return;
	}
	assert_words(&bucket);
	runner->in = 1 - runner->in;
	runner->len = bucket_pack(&bucket, runner->words[runner->in]);
	runner->admitted++;
}

static uint64_t
run(const struct row *row, int64_t start_us)
{
	static struct runner runner;

	memset(&runner, 0, sizeof runner);
	make_limit(&runner.made, "l", row->policy);
	for (unsigned n = 0; n < DECISIONS; n++)
		run_one(&runner, n + 1, start_us + n * row->step_us);
	return runner.admitted;
}

/* From one whole day and second to others, and on whole numbers. */
static const int64_t starts[] = { INT64_C(1781308800) * US_PER_S, INT64_C(4102444800) * US_PER_S };

static void
a_token_bucket_admits_its_burst_and_its_rate_exactly(void **state)
{
	static const struct row rows[] = { { "10/1s", 777 }, { "1000000/1s", 1 },
		{ "3/1s burst 100", 50001 }, { "1/365d burst 2", 400000000 }, { "5/1m", 3000001 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct made_limit made;

		make_limit(&made, "l", rows[i].policy);
		const struct policy *policy = &made.limit.policies[0];
		const int64_t span_us = (DECISIONS - 1) * rows[i].step_us;
		uint64_t expected = policy->burst + (uint64_t)(span_us / policy->interval_us);

		/* At this rate there is one for each. */
		if (expected > DECISIONS)
			expected = DECISIONS;
		for (size_t j = 0; j < LENGTH_OF(starts); j++)
			assert_row(run(&rows[i], starts[j]) == expected, "%s", rows[i].policy);
	}
}

static void
a_log_a_quota_and_leases_admit_n_in_each_window_exactly(void **state)
{
	/* Asked at the beginning of each window, and often enough within. */
	static const struct {
		struct row row;
		uint64_t burst;
		int64_t window_us;
	} rows[] = {
		{ { "7/1s sliding-log", 1000 }, 7, US_PER_S },
		{ { "20/1h sliding-log", 36000000 }, 20, 3600 * US_PER_S },
		{ { "1000/day calendar", 8640000 }, 1000, US_PER_DAY },
		{ { "concurrent 7 lease 1s", 1000 }, 7, US_PER_S },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int64_t windows = DECISIONS * rows[i].row.step_us / rows[i].window_us;

		for (size_t j = 0; j < LENGTH_OF(starts); j++)
			assert_row(
				run(&rows[i].row, starts[j]) == rows[i].burst * (uint64_t)windows,
				"%s", rows[i].row.policy);
	}
}

/* By its estimate it is never full twice in a window, so the rate is approached from below. */
static void
a_window_admits_nearly_its_rate_and_never_more(void **state)
{
	static const struct row rows[] = { { "100/1s sliding-window", 1000 },
		{ "10/1m sliding-window", 500000 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct made_limit made;

		make_limit(&made, "l", rows[i].policy);
		const struct policy *policy = &made.limit.policies[0];
		const uint64_t most = policy->burst *
			(uint64_t)(DECISIONS * rows[i].step_us / policy->window_us + 1);

		for (size_t j = 0; j < LENGTH_OF(starts); j++)
			assert_in_range(run(&rows[i], starts[j]), most / 10 * 8, most);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_bucket_admits_its_burst_and_its_rate_exactly),
		cmocka_unit_test(a_log_a_quota_and_leases_admit_n_in_each_window_exactly),
		cmocka_unit_test(a_window_admits_nearly_its_rate_and_never_more),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("limit/long_run", tests, NULL, NULL);
}
