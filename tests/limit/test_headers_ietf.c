/* headers.h: the dialects of the IETF's drafts, byte for byte, for every algorithm. */
#include "../unit.h"
#include "weir/headers.h"

#include <stdio.h>

/* ---- limits ---- */

#define BUCKET(count_, window_, burst_, name_)                                                     \
	{                                                                                          \
		.name = name_, .algorithm = POLICY_TOKEN_BUCKET, .count = count_,                  \
		.window_us = window_, .burst = burst_                                              \
	}

#define OTHER(algorithm_, count_, window_, name_)                                                  \
	{                                                                                          \
		.name = name_, .algorithm = algorithm_, .count = count_, .window_us = window_,     \
		.burst = count_                                                                    \
	}

static const struct limit page = {
	.name = "page", .policy_count = 1, .policies = { BUCKET(10, US_PER_S, 60, "1s") }
};
static const struct limit login = { .name = "login",
	.policy_count = 2,
	.policies = { BUCKET(5, 60 * US_PER_S, 5, "1m"), BUCKET(50, US_PER_DAY, 50, "1d") } };
static const struct limit watched = {
	.name = "watched",
	.policy_count = 2,
	.policies = { BUCKET(5, 60 * US_PER_S, 5, "1m"),
		{ .name = "1d", .count = 9, .window_us = US_PER_DAY, .burst = 9, .shadow = true } }
};
static const struct limit window = { .name = "window",
	.policy_count = 1,
	.policies = { OTHER(POLICY_SLIDING_WINDOW, 100, 60 * US_PER_S, "1m") } };
static const struct limit exact = { .name = "exact",
	.policy_count = 1,
	.policies = { OTHER(POLICY_SLIDING_LOG, 7, 10 * US_PER_S, "10s") } };
static const struct limit quota = { .name = "quota",
	.policy_count = 2,
	.policies = { OTHER(POLICY_CALENDAR, 1000, US_PER_DAY, "day"),
		OTHER(POLICY_CALENDAR, 20000, 31 * US_PER_DAY, "month") } };
static const struct limit slots = { .name = "slots",
	.policy_count = 1,
	.policies = { OTHER(POLICY_CONCURRENT, 4, 0, "concurrent") } };
static const struct limit sharded = { .name = "sharded",
	.policy_count = 1,
	.shards = 4,
	.policies = { BUCKET(1000, US_PER_S, 500, "1s") } };

/* ---- outcomes ---- */

#define SPENT(limit_, i, remaining_, more, reset)                                                  \
	{                                                                                          \
		.limit = &(limit_), .policy = &(limit_).policies[i], .remaining = remaining_,      \
		.more_us = more, .reset_us = reset                                                 \
	}

/* Rejected by it: the next token is the one that is waited for. */
#define HIT(limit_, i, retry, reset)                                                               \
	{                                                                                          \
		.limit = &(limit_), .policy = &(limit_).policies[i], .violated = true,             \
		.retry_us = retry, .more_us = (retry) < 0 ? 0 : (retry), .reset_us = reset         \
	}

#define COUNTED(limit_, i)                                                                         \
	{                                                                                          \
		.limit = &(limit_), .policy = &(limit_).policies[i], .shadow = true,               \
		.violated = true, .retry_us = 5, .more_us = 5, .reset_us = 5                       \
	}

/* Lines of each dialect; NULL: none. */
struct row {
	const char *title;
	enum verdict verdict;
	int64_t retry_after_s;
	struct outcome outcomes[4];
	const char *newest, *seven, *six;
};

#define NEWEST(policy, state) "RateLimit-Policy: " policy "\r\nRateLimit: " state "\r\n"
#define SEVEN(policy, limit, remaining, reset)                                                     \
	policy "RateLimit: limit=" limit ", remaining=" remaining ", reset=" reset "\r\n"
#define SIX(policy, limit, remaining, reset)                                                       \
	policy "RateLimit-Limit: " limit "\r\nRateLimit-Remaining: " remaining                     \
	       "\r\nRateLimit-Reset: " reset "\r\n"
#define QUOTAS(list) "RateLimit-Policy: " list "\r\n"

static const struct row rows[] = {
	{ "a bucket larger than its rate's count", VERDICT_ADMITTED, 0,
		{ SPENT(page, 0, 59, 100000, 100000) },
		NEWEST("\"page\";q=60;w=6", "\"page\";r=59;t=1"),
		SEVEN(QUOTAS("60;w=6"), "60", "59", "1"), SIX(QUOTAS("60;w=6"), "60", "59", "1") },
	{ "two policies of a limit", VERDICT_ADMITTED, 0,
		{ SPENT(login, 0, 4, 12000000, 12000000), SPENT(login, 1, 3, 1, 81216000001) },
		NEWEST("\"login-1m\";q=5;w=60, \"login-1d\";q=50;w=86400",
			"\"login-1m\";r=4;t=12, \"login-1d\";r=3;t=1"),
		SEVEN(QUOTAS("5;w=60, 50;w=86400"), "50", "3", "81217"),
		SIX(QUOTAS("5;w=60, 50;w=86400"), "50", "3", "81217") },
	{ "one of them violated", VERDICT_REJECTED, 12,
		{ HIT(login, 0, 11000001, 59000001), SPENT(login, 1, 45, 1728000000, 8640000000) },
		NEWEST("\"login-1m\";q=5;w=60, \"login-1d\";q=50;w=86400", "\"login-1m\";r=0;t=12"),
		SEVEN(QUOTAS("5;w=60, 50;w=86400"), "5", "0", "12"),
		SIX(QUOTAS("5;w=60, 50;w=86400"), "5", "0", "12") },
	{ "both violated, and Retry-After is later than it need be", VERDICT_REJECTED, 1800,
		{ HIT(login, 0, 11000001, 59000001), HIT(login, 1, 1728000000, 86400000000) },
		NEWEST("\"login-1m\";q=5;w=60, \"login-1d\";q=50;w=86400",
			"\"login-1m\";r=0;t=12, \"login-1d\";r=0;t=1728"),
		SEVEN(QUOTAS("5;w=60, 50;w=86400"), "50", "0", "1800"),
		SIX(QUOTAS("5;w=60, 50;w=86400"), "50", "0", "1800") },
	{ "more asked than there ever is", VERDICT_REJECTED, 0,
		{ { .limit = &page,
			.policy = &page.policies[0],
			.violated = true,
			.retry_us = -1,
			.remaining = 60 } },
		NEWEST("\"page\";q=60;w=6", "\"page\";r=60"),
		SEVEN(QUOTAS("60;w=6"), "60", "60", "0"), SIX(QUOTAS("60;w=6"), "60", "60", "0") },
	{ "two limits", VERDICT_ADMITTED, 0,
		{ SPENT(page, 0, 2, 50000, 5750000), SPENT(window, 0, 2, 700000, 61000000) },
		NEWEST("\"page\";q=60;w=6, \"window\";q=100;w=60",
			"\"page\";r=2;t=1, \"window\";r=2;t=1"),
		SEVEN(QUOTAS("60;w=6, 100;w=60"), "100", "2", "61"),
		SIX(QUOTAS("60;w=6, 100;w=60"), "100", "2", "61") },
	{ "a sliding log", VERDICT_ADMITTED, 0, { SPENT(exact, 0, 0, 9999999, 10000000) },
		NEWEST("\"exact\";q=7;w=10", "\"exact\";r=0;t=10"),
		SEVEN(QUOTAS("7;w=10"), "7", "0", "10"), SIX(QUOTAS("7;w=10"), "7", "0", "10") },
	{ "quotas of the calendar", VERDICT_ADMITTED, 0,
		{ SPENT(quota, 0, 999, 3600000000, 3600000000),
			SPENT(quota, 1, 19000, 86403600000000, 86403600000000) },
		NEWEST("\"quota-day\";q=1000;w=86400, \"quota-month\";q=20000;w=2678400",
			"\"quota-day\";r=999;t=3600, \"quota-month\";r=19000;t=86403600"),
		SEVEN(QUOTAS("1000;w=86400, 20000;w=2678400"), "1000", "999", "3600"),
		SIX(QUOTAS("1000;w=86400, 20000;w=2678400"), "1000", "999", "3600") },
	{ "requests at a time", VERDICT_ADMITTED, 0, { SPENT(slots, 0, 3, 600000000, 600000000) },
		NEWEST("\"slots\";q=4;qu=\"concurrent-requests\"", "\"slots\";r=3"),
		SEVEN("", "4", "3", "1"), SIX("", "4", "3", "1") },
	{ "requests at a time beside others", VERDICT_ADMITTED, 0,
		{ SPENT(slots, 0, 0, 600000000, 600000000), SPENT(page, 0, 59, 1, 1) },
		NEWEST("\"slots\";q=4;qu=\"concurrent-requests\", \"page\";q=60;w=6",
			"\"slots\";r=0, \"page\";r=59;t=1"),
		SEVEN(QUOTAS("60;w=6"), "60", "59", "1"), SIX(QUOTAS("60;w=6"), "60", "59", "1") },
	{ "too many requests at a time", VERDICT_REJECTED, 1,
		{ HIT(slots, 0, 1000000, 600000000), SPENT(page, 0, 59, 1, 1) },
		NEWEST("\"slots\";q=4;qu=\"concurrent-requests\", \"page\";q=60;w=6",
			"\"slots\";r=0"),
		SEVEN(QUOTAS("60;w=6"), "4", "0", "1"), SIX(QUOTAS("60;w=6"), "4", "0", "1") },
	{ "what only counts is not told, nor named", VERDICT_ADMITTED, 0,
		{ SPENT(watched, 0, 4, 12000000, 12000000), COUNTED(watched, 1), COUNTED(page, 0) },
		NEWEST("\"watched\";q=5;w=60", "\"watched\";r=4;t=12"),
		SEVEN(QUOTAS("5;w=60"), "5", "4", "12"), SIX(QUOTAS("5;w=60"), "5", "4", "12") },
	{ "nothing but what only counts", VERDICT_ADMITTED, 0, { COUNTED(page, 0) }, "", "", "" },
	{ "a shard", VERDICT_ADMITTED, 0, { SPENT(sharded, 0, 499, 4000, 4000) },
		NEWEST("\"sharded\";q=500;w=2", "\"sharded\";r=499;t=1"),
		SEVEN(QUOTAS("500;w=2"), "500", "499", "1"),
		SIX(QUOTAS("500;w=2"), "500", "499", "1") },
	{ "nothing at all", VERDICT_ADMITTED, 0, { { 0 } }, "", "", "" },
	{ "no decision", VERDICT_UNAVAILABLE, 0, { { 0 } }, "", "", "" },
};

static struct decision
decision_of(const struct row *row)
{
	struct decision decision = { .verdict = row->verdict, .now_us = 1781000000 * US_PER_S };

	while (decision.count < LENGTH_OF(row->outcomes) &&
		row->outcomes[decision.count].limit != NULL) {
		decision.outcomes[decision.count] = row->outcomes[decision.count];
		decision.count++;
	}
	return decision;
}

static void
assert_lines(const struct row *row, unsigned dialect, const char *expected)
{
	const struct decision decision = decision_of(row);
	struct buf out;

	buf_init(&out, 4096);
	assert_int_equal(headers_put(&out, dialect, &decision, row->retry_after_s), 0);
	assert_row(slice_is(buf_slice(&out), slice_of(expected)), "%s:\n%.*sis not\n%s", row->title,
		(int)out.len, buf_slice(&out).ptr, expected);
	buf_release(&out);
}

static void
each_dialect_says_it_in_its_own_way(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_lines(&rows[i], HEADERS_RATELIMIT, rows[i].newest);
		assert_lines(&rows[i], HEADERS_RATELIMIT_07, rows[i].seven);
		assert_lines(&rows[i], HEADERS_RATELIMIT_06, rows[i].six);
	}
}

/* ---- windows ---- */

static void
window_is_the_time_in_which_a_burst_comes(void **state)
{
	static const struct {
		uint64_t count;
		int64_t window_us;
		uint64_t burst;
		const char *quota;
	} buckets[] = {
		{ 3, US_PER_S, 3, "3;w=1" },
		{ 7, 60 * US_PER_S, 7, "7;w=60" },
		{ 7, 60 * US_PER_S, 21, "21;w=180" },
		{ 7, 60 * US_PER_S, 8, "8;w=69" },
		{ 100, 60 * US_PER_S, 10, "10;w=6" },
		{ 1000, US_PER_DAY, 10, "10;w=864" },
		{ 10, 150000, 10, "10;w=1" },
		{ 1, 1500000, 1, "1;w=2" },
		{ 1000000, US_PER_S, 1000000, "1000000;w=1" },
		{ 999983, US_PER_DAY, 999983, "999983;w=86400" },
		{ 1, 365 * US_PER_DAY, 1, "1;w=31536000" },
		{ 1, 365 * US_PER_DAY, 100, "100;w=3153600000" },
		{ 1000000, US_PER_S, 1000000000000000, "999999999999999;w=1000000000" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(buckets); i++) {
		const struct limit limit = { .name = "l",
			.policy_count = 1,
			.policies = { BUCKET(
				buckets[i].count, buckets[i].window_us, buckets[i].burst, "p") } };
		const struct decision decision = { .verdict = VERDICT_ADMITTED,
			.count = 1,
			.outcomes = { SPENT(limit, 0, buckets[i].burst, 0, 0) } };
		char expected[64];
		struct buf out;

		(void)snprintf(
			expected, sizeof expected, "RateLimit-Policy: %s\r\n", buckets[i].quota);
		buf_init(&out, 4096);
		assert_int_equal(headers_put(&out, HEADERS_RATELIMIT_06, &decision, 0), 0);
		assert_row(slice_has_prefix(buf_slice(&out), slice_of(expected)), "%.*sfor %s",
			(int)out.len, buf_slice(&out).ptr, expected);
		buf_release(&out);
	}
}

/* "Two quota policies MUST NOT be associated with the same quota units value." */
static void
older_drafts_list_each_quota_once(void **state)
{
	static const struct limit limit = { .name = "l",
		.policy_count = 4,
		.policies = { BUCKET(10, US_PER_S, 10, "1s"), BUCKET(10, 60 * US_PER_S, 10, "1m"),
			BUCKET(20, 60 * US_PER_S, 20, "2m"),
			OTHER(POLICY_SLIDING_LOG, 10, 60 * US_PER_S, "log") } };
	const struct decision decision = { .verdict = VERDICT_ADMITTED,
		.count = 4,
		.outcomes = { SPENT(limit, 0, 9, 1, 1), SPENT(limit, 1, 9, 1, 1),
			SPENT(limit, 2, 19, 1, 1), SPENT(limit, 3, 9, 1, 1) } };
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	assert_int_equal(headers_put(&out, HEADERS_RATELIMIT_07, &decision, 0), 0);
	assert_slice(buf_slice(&out),
		SLICE("RateLimit-Policy: 10;w=60, 20;w=60\r\n"
		      "RateLimit: limit=10, remaining=9, reset=1\r\n"));
	buf_release(&out);
}

/* ---- names ---- */

static void
name_cannot_leave_its_quotes(void **state)
{
	static const struct {
		const char *limit, *policy, *expected;
	} names[] = {
		{ "a.b_c-d", "1s", "\"a.b_c-d-1s\"" },
		{ "a\"", "\\", "\"a\\\"-\\\\\"" },
		{ "\"\"", "b\"c\\d", "\"\\\"\\\"-b\\\"c\\\\d\"" },
		{ "caf\xc3\xa9", "1\r\nX: y", "\"caf?\?-1?\?X: y\"" },
		{ "\x7f", "\x01~ ", "\"?-?~ \"" },
		{ "", "", "\"-\"" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		const struct limit limit = { .name = names[i].limit,
			.policy_count = 2,
			.policies = { BUCKET(1, 1, 1, names[i].policy), BUCKET(2, 1, 2, "x") } };
		const struct outcome outcome = SPENT(limit, 0, 1, 1, 1);
		struct buf out;

		buf_init(&out, 100);
		assert_int_equal(headers_put_name(&out, &outcome), 0);
		assert_slice(buf_slice(&out), slice_of(names[i].expected));
		buf_release(&out);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_dialect_says_it_in_its_own_way),
		cmocka_unit_test(window_is_the_time_in_which_a_burst_comes),
		cmocka_unit_test(older_drafts_list_each_quota_once),
		cmocka_unit_test(name_cannot_leave_its_quotes),
	};

	return cmocka_run_group_tests_name("limit/headers_ietf", tests, NULL, NULL);
}
