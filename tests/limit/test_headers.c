/* headers.h: what all dialects share, and the X-RateLimit ones. */
#include "../lib/limits.h"
#include "../unit.h"
#include "weir/headers.h"

#include <stdio.h>

enum { NOW_S = 1781000000 };

/* An outcome of policy `i`; what a test does not care about is the same everywhere. */
static struct outcome
outcome_of(const struct made_limit *made, unsigned i, uint64_t remaining, int64_t reset_us)
{
	return (struct outcome){ .limit = &made->limit,
		.policy = &made->limit.policies[i],
		.remaining = remaining,
		.more_us = reset_us,
		.reset_us = reset_us };
}

static struct outcome
violated(struct outcome outcome, int64_t retry_us)
{
	outcome.violated = true;
	outcome.retry_us = retry_us;
	return outcome;
}

static struct outcome
shadow(struct outcome outcome)
{
	outcome.shadow = true;
	return outcome;
}

static void
assert_headers(unsigned dialects, const struct decision *decision, const char *expected)
{
	struct buf out;

	buf_init(&out, 1000);
	assert_int_equal(headers_put(&out, dialects, decision, 0), 0);
	assert_slice(buf_slice(&out), slice_of(expected));
	buf_release(&out);
}

#define LINES(limit, remaining, reset)                                                             \
	"X-RateLimit-Limit: " limit "\r\nX-RateLimit-Remaining: " remaining                        \
	"\r\nX-RateLimit-Reset: " reset "\r\n"

static void
admitted_answer_speaks_of_the_longest_window(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "10/1s burst 60", "1000/1d", "100/1m");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.now_us = NOW_S * US_PER_S,
		.count = 3,
		.outcomes = { outcome_of(&made, 0, 0, 6000000), outcome_of(&made, 1, 998, 1500000),
			outcome_of(&made, 2, 1, 59000000) } };

	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("1000", "998", "2"));
	assert_headers(HEADERS_X_RATELIMIT_EPOCH, &decision, LINES("1000", "998", "1781000002"));
}

static void
rejection_speaks_of_the_violated_policy(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "10/1s burst 60", "1000/1d", "100/1m");
	const struct decision decision = { .verdict = VERDICT_REJECTED,
		.now_us = NOW_S * US_PER_S,
		.count = 3,
		.outcomes = { violated(outcome_of(&made, 0, 0, 6000000), 1),
			outcome_of(&made, 1, 998, 1500000),
			violated(outcome_of(&made, 2, 0, 60000000), 600000) } };

	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("100", "0", "60"));
}

static void
reset_is_whole_seconds_and_never_too_early(void **state)
{
	static const struct {
		int64_t reset_us;
		const char *delta, *epoch;
	} rows[] = {
		{ 0, LINES("5", "0", "0"), LINES("5", "0", "1781000001") },
		{ 1, LINES("5", "0", "1"), LINES("5", "0", "1781000001") },
		{ 600000, LINES("5", "0", "1"), LINES("5", "0", "1781000001") },
		{ 600001, LINES("5", "0", "1"), LINES("5", "0", "1781000002") },
		{ 1000000, LINES("5", "0", "1"), LINES("5", "0", "1781000002") },
		{ 1000001, LINES("5", "0", "2"), LINES("5", "0", "1781000002") },
	};
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct decision decision = { .verdict = VERDICT_ADMITTED,
			.now_us = NOW_S * US_PER_S + 400000,
			.count = 1,
			.outcomes = { outcome_of(&made, 0, 0, rows[i].reset_us) } };

		assert_headers(HEADERS_X_RATELIMIT, &decision, rows[i].delta);
		assert_headers(HEADERS_X_RATELIMIT_EPOCH, &decision, rows[i].epoch);
	}
}

/* What is only counted is nothing that a client must heed. */
static void
a_limit_that_does_not_reject_is_not_told(void **state)
{
	struct made_limit made, counted;

	(void)state;
	make_limit(&made, "l", "5/1m");
	make_limit(&counted, "c", "1000/1d");
	struct decision decision = { .verdict = VERDICT_ADMITTED,
		.now_us = NOW_S * US_PER_S,
		.count = 2,
		.outcomes = { shadow(violated(outcome_of(&counted, 0, 0, 86400000000), 600000000)),
			outcome_of(&made, 0, 4, 12000000) } };

	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("5", "4", "12"));
	decision.count = 1;
	assert_headers(HEADERS_X_RATELIMIT, &decision, "");
}

static void
nothing_is_told_of_what_was_not_decided(void **state)
{
	const struct decision decision = { .verdict = VERDICT_UNAVAILABLE };

	(void)state;
	assert_headers(HEADERS_X_RATELIMIT, &decision, "");
	assert_headers(HEADERS_X_RATELIMIT_EPOCH, &decision, "");
}

static void
nothing_is_told_unasked(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.count = 1,
		.outcomes = { outcome_of(&made, 0, 4, 12000000) } };

	assert_headers(0, &decision, "");
}

/* The largest count, a hundred years. */
static void
the_largest_numbers_are_whole(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1000/1ms burst 999999999999999");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.now_us = IN_2100_US,
		.count = 1,
		.outcomes = { outcome_of(&made, 0, 999999999999998, DURATION_MAX_US) } };

	assert_headers(HEADERS_X_RATELIMIT, &decision,
		LINES("999999999999999", "999999999999998", "3155760000"));
	assert_headers(HEADERS_X_RATELIMIT_EPOCH, &decision,
		LINES("999999999999999", "999999999999998", "7258204801"));
}

static void
concurrent_counts_only_if_there_is_nothing_else(void **state)
{
	static const struct limit limit = { .name = "l",
		.policy_count = 2,
		.policies = {
			{ .name = "concurrent",
				.algorithm = POLICY_CONCURRENT,
				.count = 4,
				.burst = 4 },
			{ .name = "1s", .count = 5, .window_us = US_PER_S, .burst = 5 },
		} };
	struct decision decision = { .verdict = VERDICT_ADMITTED,
		.now_us = NOW_S * US_PER_S,
		.count = 2,
		.outcomes = {
			{ .limit = &limit,
				.policy = &limit.policies[0],
				.remaining = 3,
				.more_us = 600000000,
				.reset_us = 600000000 },
			{ .limit = &limit,
				.policy = &limit.policies[1],
				.remaining = 2,
				.more_us = 200000,
				.reset_us = 600000 },
		} };

	(void)state;
	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("5", "2", "1"));
	decision.count = 1;
	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("4", "3", "1"));
	assert_headers(HEADERS_X_RATELIMIT_EPOCH, &decision, LINES("4", "3", "1781000001"));
	decision.outcomes[0].remaining = 4;
	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("4", "4", "0"));
	decision.count = 2;
	decision.verdict = VERDICT_REJECTED;
	decision.outcomes[0] = violated(decision.outcomes[0], US_PER_S);
	decision.outcomes[0].remaining = 0;
	assert_headers(HEADERS_X_RATELIMIT, &decision, LINES("4", "0", "1"));
}

/* From the first second to the last, whatever comes between. */
static void
reset_of_a_calendar_stands_still(void **state)
{
	static const struct limit limit = { .name = "l",
		.policy_count = 1,
		.policies = { { .name = "day",
			.algorithm = POLICY_CALENDAR,
			.count = 1000,
			.window_us = US_PER_DAY,
			.burst = 1000 } } };
	const int64_t end_us = (int64_t)NOW_S * US_PER_S;

	(void)state;
	for (int64_t left_us = 1; left_us <= US_PER_DAY; left_us = left_us * 3 / 2 + 1) {
		const struct decision decision = { .verdict = VERDICT_ADMITTED,
			.now_us = end_us - left_us,
			.count = 1,
			.outcomes = { { .limit = &limit,
				.policy = &limit.policies[0],
				.remaining = 1,
				.more_us = left_us,
				.reset_us = left_us } } };

		assert_headers(
			HEADERS_X_RATELIMIT_EPOCH, &decision, LINES("1000", "1", "1781000000"));
	}
}

/* ---- for all dialects ---- */

static const unsigned every_dialect[] = { HEADERS_X_RATELIMIT, HEADERS_X_RATELIMIT_EPOCH,
	HEADERS_RATELIMIT, HEADERS_RATELIMIT_07, HEADERS_RATELIMIT_06,
	HEADERS_X_RATELIMIT | HEADERS_RATELIMIT, HEADERS_X_RATELIMIT_EPOCH | HEADERS_RATELIMIT_06 };

static void
a_full_buffer_is_told_and_left_as_it_was(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m", "50/1d");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.count = 2,
		.outcomes = { outcome_of(&made, 0, 4, 12000000), outcome_of(&made, 1, 49, 9) } };

	for (size_t i = 0; i < LENGTH_OF(every_dialect); i++) {
		int result = -1;

		for (size_t room = 0; result != 0; room++) {
			struct buf out;

			assert_row(room < 1000, "dialects %u never fit", every_dialect[i]);
			buf_init(&out, 6 + room);
			assert_int_equal(buf_append(&out, "before", 6), 0);
			result = headers_put(&out, every_dialect[i], &decision, 0);
			if (result != 0)
				assert_slice(buf_slice(&out), SLICE("before"));
			else
				assert_int_equal(buf_room(&out), 0);
			buf_release(&out);
		}
	}
}

static void
several_dialects_stand_side_by_side(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.count = 1,
		.outcomes = { outcome_of(&made, 0, 4, 12000000) } };

	assert_headers(HEADERS_X_RATELIMIT | HEADERS_RATELIMIT, &decision,
		LINES("5", "4", "12") "RateLimit-Policy: \"l\";q=5;w=60\r\n"
				      "RateLimit: \"l\";r=4;t=12\r\n");
}

static bool
is_in_list(struct slice name)
{
	for (size_t i = 0; header_names[i] != NULL; i++) {
		if (slice_is(name, slice_of(header_names[i])))
			return true;
	}
	return false;
}

static void
every_name_that_is_written_is_in_the_list(void **state)
{
	struct made_limit made;
	struct buf out;

	(void)state;
	make_limit(&made, "l", "5/1m");
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.count = 1,
		.outcomes = { outcome_of(&made, 0, 4, 12000000) } };

	buf_init(&out, 1000);
	for (size_t i = 0; i < LENGTH_OF(every_dialect); i++)
		assert_int_equal(headers_put(&out, every_dialect[i], &decision, 0), 0);
	struct slice rest = buf_slice(&out), line;

	while (slice_split(&rest, '\n', &line)) {
		const struct slice name = slice_first(line, slice_find(line, ':'));

		assert_row(line.len == 0 || is_in_list(name), "%.*s is not in the list",
			(int)name.len, name.ptr);
	}
	/* And the other way round; the buffer begins with a line of the first name. */
	for (size_t i = 1; header_names[i] != NULL; i++) {
		char begin[64];
		const int len = snprintf(begin, sizeof begin, "\n%s: ", header_names[i]);

		assert_row(memmem(out.data, out.len, begin, (size_t)len) != NULL,
			"%s is never written", header_names[i]);
	}
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(admitted_answer_speaks_of_the_longest_window),
		cmocka_unit_test(rejection_speaks_of_the_violated_policy),
		cmocka_unit_test(reset_is_whole_seconds_and_never_too_early),
		cmocka_unit_test(a_limit_that_does_not_reject_is_not_told),
		cmocka_unit_test(nothing_is_told_of_what_was_not_decided),
		cmocka_unit_test(nothing_is_told_unasked),
		cmocka_unit_test(the_largest_numbers_are_whole),
		cmocka_unit_test(concurrent_counts_only_if_there_is_nothing_else),
		cmocka_unit_test(reset_of_a_calendar_stands_still),
		cmocka_unit_test(a_full_buffer_is_told_and_left_as_it_was),
		cmocka_unit_test(several_dialects_stand_side_by_side),
		cmocka_unit_test(every_name_that_is_written_is_in_the_list),
	};

	return cmocka_run_group_tests_name("limit/headers", tests, NULL, NULL);
}
