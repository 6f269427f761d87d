/*
 * Quotas of the calendar end by the server's clock, whatever the gateways' clocks say: each tells
 * when periods end by its own, and the first end that is still to come counts.
 */
#include "../limit/asking.h"
#include "../limit/zones.h"
#include "one_server.h"
#include "run_engine.h"

#define KEY "quota"

static int
setup(void **state)
{
	(void)state;
	live_in("UTC");
	redis_ok(direct, "FLUSHALL");
	return 0;
}

static struct engine_reply
ask_by(const struct made_limit *made, int64_t now_us, int64_t skew_us)
{
	return engine_run(direct,
		&(const struct engine_call){ .limit = &made->limit,
			.key = KEY,
			.now_us = now_us,
			.skew_us = skew_us,
			.cost = 1 });
}

/* When the period that is stored ends. */
static int64_t
stored_end(void)
{
	redisReply *reply = redis_command(direct, "GET " KEY);

	assert_int_equal(reply->type, REDIS_REPLY_STRING);
	const int64_t end = strtoll(strchr(reply->str, '=') + 1, NULL, 10);

	freeReplyObject(reply);
	return end;
}

/* ---- clocks that differ by less than a period ---- */

static const int64_t differences_us[] = { 0, 1, 100000, US_PER_S, 3600 * US_PER_S,
	20 * 3600 * US_PER_S };

/* Mostly about the end of a period, and not before. */
static int64_t
next_time(uint64_t *random, const struct policy *policy, int64_t now_us, int64_t difference_us)
{
	const int64_t offsets_us[] = { 0, -1, 1, -difference_us, difference_us, difference_us - 1 };
	int64_t ends[3];

	calendar_ends(policy->period, now_us, ends);
	const int64_t at = ends[1] + offsets_us[random_below(random, LENGTH_OF(offsets_us))];

	if (random_below(random, 3) == 0 || at < now_us)
		return now_us + (int64_t)random_below(random, 100000);
	return at;
}

/* The memory store knows one clock only, and decides the same. */
static void
gateways_whose_clocks_differ_begin_and_end_a_quota_alike(void **state)
{
	static const char *const policies[] = { "4/day calendar", "4/month calendar" };
	uint64_t random = 14;

	(void)state;
	for (size_t n = 0; n < LENGTH_OF(policies) * LENGTH_OF(differences_us); n++) {
		const int64_t difference_us = differences_us[n / LENGTH_OF(policies)];
		struct kept kept = { .len = 0 };
		struct made_limit made;
		int64_t now_us = IN_2026_US;
		unsigned periods = 0;

		redis_ok(direct, "FLUSHALL");
		make_limit(&made, "l", policies[n % LENGTH_OF(policies)]);
		for (unsigned i = 0; i < 150; i++) {
			const int64_t skew_us =
				((int64_t)random_below(&random, 3) - 1) * difference_us;
			const struct engine_reply reply = ask_by(&made, now_us, skew_us);
			const struct decision decision = ask(&kept, &made, 1, now_us);
			const bool is_admitted = decision.verdict == VERDICT_ADMITTED;

			assert_row(reply.numbers[0] == is_admitted &&
					reply.numbers[5] == decision.outcomes[0].reset_us,
				"%s, clocks differ by %ld us", made.limit.signature,
				(long)difference_us);
			periods += decision.outcomes[0].remaining == 3;
			now_us = next_time(&random, &made.limit.policies[0], now_us, difference_us);
		}
		assert_in_range(periods, 10, 150);
	}
}

/* ---- clocks that differ by more ---- */

/* Then a period is as long as it can be, and begins anew as every other. */
static void
a_quota_of_a_clock_that_is_periods_off_begins_anew_all_the_same(void **state)
{
	static const struct {
		const char *policy;
		int64_t window_us, skew_us;
	} rows[] = {
		{ "3/day calendar", US_PER_DAY, 3 * US_PER_DAY },
		{ "3/day calendar", US_PER_DAY, -3 * US_PER_DAY },
		{ "3/day calendar", US_PER_DAY, 400 * US_PER_DAY },
		{ "3/day calendar", US_PER_DAY, -400 * US_PER_DAY },
		{ "3/month calendar", 31 * US_PER_DAY, 90 * US_PER_DAY },
		{ "3/month calendar", 31 * US_PER_DAY, -90 * US_PER_DAY },
		{ "3/month calendar", 31 * US_PER_DAY, 4000 * US_PER_DAY },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int64_t now_us = IN_2026_US, end_us = now_us + rows[i].window_us;
		struct made_limit made;

		redis_ok(direct, "FLUSHALL");
		make_limit(&made, "l", rows[i].policy);
		for (unsigned n = 0; n < 5; n++) {
			assert_int_equal(ask_by(&made, now_us, rows[i].skew_us).numbers[0], n < 3);
			assert_row(stored_end() == end_us, "row %zu: %ld s too late", i,
				(long)((stored_end() - end_us) / US_PER_S));
		}
		/* Who is right agrees, and so does he at the end. */
		assert_int_equal(ask_by(&made, end_us - 1, 0).numbers[0], 0);
		assert_int_equal(ask_by(&made, end_us - 1, rows[i].skew_us).numbers[0], 0);
		assert_int_equal(ask_by(&made, end_us, rows[i].skew_us).numbers[0], 1);
		assert_int_equal(stored_end(), end_us + rows[i].window_us);
	}
}

/* ---- a server whose clock was ahead ---- */

/* By the gateways' ends it is seen at once, and once. */
static void
a_server_whose_clock_was_ahead_shuts_nobody_out_for_longer_than_a_period(void **state)
{
	static const int64_t ahead_us[] = { 2 * US_PER_DAY, 20 * US_PER_DAY, 31 * US_PER_DAY,
		1000 * US_PER_DAY };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(ahead_us); i++) {
		const int64_t now_us = IN_2026_US;
		struct made_limit made;
		int64_t ends[3];

		redis_ok(direct, "FLUSHALL");
		make_limit(&made, "l", "3/day calendar");
		calendar_ends(CALENDAR_DAY, now_us, ends);
		for (unsigned n = 0; n < 3; n++)
			(void)ask_by(&made, now_us + ahead_us[i], 0);
		assert_int_equal(ask_by(&made, now_us, 0).numbers[0], 2);
		assert_int_equal(stored_end(), ends[1]);
		assert_int_equal(ask_by(&made, now_us, 0).numbers[0], 0);
		assert_int_equal(ask_by(&made, ends[1], 0).numbers[0], 1);
	}
}

#define clock_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		clock_test(gateways_whose_clocks_differ_begin_and_end_a_quota_alike),
		clock_test(a_quota_of_a_clock_that_is_periods_off_begins_anew_all_the_same),
		clock_test(
			a_server_whose_clock_was_ahead_shuts_nobody_out_for_longer_than_a_period),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests_name(
		"redis/engine_clocks", tests, group_setup, group_teardown);
}
