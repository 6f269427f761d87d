/* Quotas of the calendar: when they begin anew, and what is made of ends that others have written.
 */
#include "asking.h"
#include "zones.h"

static void
a_quota_begins_anew_with_each_period(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;
	unsigned admitted = 0;

	(void)state;
	live_in("Europe/Berlin");
	make_limit(&made, "l", "10/day calendar");
	/* Every minute of a week with a day of 23 hours in it. */
	for (int64_t now_us = utc("2026-03-25 23:00"); now_us < utc("2026-04-01 22:00");
		now_us += 60 * US_PER_S)
		admitted += ask(&kept, &made, 1, now_us).verdict == VERDICT_ADMITTED;
	assert_int_equal(admitted, 70);
	make_limit(&made, "l", "100/month calendar");
	kept.len = admitted = 0;
	for (int64_t now_us = utc("2026-01-15 12:00"); now_us < utc("2027-01-15 12:00");
		now_us += 3600 * US_PER_S)
		admitted += ask(&kept, &made, 1, now_us).verdict == VERDICT_ADMITTED;
	assert_int_equal(admitted, 1300);
}

static void
who_waits_for_the_end_is_admitted(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;
	const int64_t now_us = utc("2026-10-24 22:00") + 123;

	(void)state;
	live_in("Europe/Berlin");
	make_limit(&made, "l", "3/day calendar");
	const struct outcome outcome = exhaust(&kept, &made, 2, now_us).outcomes[0];

	assert_int_equal(outcome.remaining, 1);
	assert_int_equal(outcome.retry_us, 25 * 3600 * US_PER_S - 123);
	assert_false(admits(&kept, &made, 2, now_us + outcome.retry_us - 1));
	assert_true(admits(&kept, &made, 3, now_us + outcome.retry_us));
}

/* ---- ends that others have written ---- */

/* Another zone, or a clock that is behind: who began the period ends it. */
static void
an_end_that_is_stored_is_kept_while_it_is_to_come(void **state)
{
	struct kept kept = { .len = 0 };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "3/day calendar");
	live_in("Pacific/Marquesas"); /* the day ends at 09:30 */
	(void)ask(&kept, &made, 1, utc("2026-06-09 20:00"));
	live_in("UTC");
	(void)ask(&kept, &made, 1, utc("2026-06-09 23:00"));
	assert_int_equal(ask(&kept, &made, 1, utc("2026-06-10 01:00")).outcomes[0].remaining, 0);
	assert_false(admits(&kept, &made, 1, utc("2026-06-10 09:29")));
	assert_true(admits(&kept, &made, 3, utc("2026-06-10 09:30")));
	/* And by a clock that has not come to the day yet. */
	assert_false(admits(&kept, &made, 1, utc("2026-06-08 12:00")));
}

/* Written by a clock that was ahead: by hours nobody can tell, by more than a period it is seen. */
static void
an_end_further_off_than_a_period_is_set_right(void **state)
{
	static const struct {
		const char *policy, *ahead, *own_end;
		bool clamped;
	} clocks[] = {
		{ "3/day calendar", "2026-06-09 23:59", "2026-06-10 00:00", false },
		{ "3/day calendar", "2026-06-10 00:00", "2026-06-10 00:00", true },
		{ "3/day calendar", "2026-06-29 12:00", "2026-06-10 00:00", true },
		{ "3/day calendar", "2036-06-29 12:00", "2026-06-10 00:00", true },
		{ "3/month calendar", "2026-06-29 12:00", "2026-07-01 00:00", false },
		{ "3/month calendar", "2026-07-01 00:00", "2026-07-01 00:00", true },
		{ "3/month calendar", "2100-01-01 00:00", "2026-07-01 00:00", true },
	};
	const int64_t now_us = utc("2026-06-09 12:00");

	(void)state;
	live_in("UTC");
	for (size_t i = 0; i < LENGTH_OF(clocks); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", clocks[i].policy);
		(void)exhaust(&kept, &made, 1, utc(clocks[i].ahead));
		const struct decision decision = ask(&kept, &made, 1, now_us);

		assert_row(
			decision.clamped == clocks[i].clamped && kept.changed == clocks[i].clamped,
			"clock %zu", i);
		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		assert_int_equal(decision.outcomes[0].remaining, 0);
		assert_row(decision.outcomes[0].retry_us == utc(clocks[i].own_end) - now_us,
			"clock %zu: shut for %ld s", i,
			(long)(decision.outcomes[0].retry_us / US_PER_S));
		assert_false(ask(&kept, &made, 1, now_us).clamped);
		assert_true(admits(&kept, &made, 3, utc(clocks[i].own_end)));
	}
}

/* However long the day is on which it begins. */
static void
no_period_of_any_zone_is_taken_for_one_that_cannot_be(void **state)
{
	uint64_t random = 12;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(zones); i++) {
		live_in(zones[i]);
		for (unsigned n = 0; n < 1500; n++) {
			const bool is_day = n % 2 == 0;
			struct kept kept = { .len = 0 };
			struct made_limit made;
			/* From 2015, for the next thirty years. */
			int64_t now_us = INT64_C(1420070400) * US_PER_S +
				(int64_t)random_below(&random, (size_t)(30 * 365 * US_PER_DAY));
			int64_t ends[3];

			/* At the very beginning, when the end is furthest off. */
			calendar_ends(is_day ? CALENDAR_DAY : CALENDAR_MONTH, now_us, ends);
			now_us = ends[0];
			make_limit(&made, "l", is_day ? "3/day calendar" : "3/month calendar");
			(void)ask(&kept, &made, 1, now_us);
			assert_false(ask(&kept, &made, 1, now_us).clamped);
			assert_int_equal(kept_word(&kept, &made.limit.policies[0]), ends[1]);
		}
	}
}

/* ---- quotas that became others ---- */

/* Also of who is rejected: else a quota of a day would not begin anew for a month. */
static void
a_quota_of_another_period_ends_with_ours_and_keeps_what_is_used(void **state)
{
	static const char *const policies[] = { "3/day calendar name q",
		"3/month calendar name q" };
	static const char *const own_ends[] = { "2026-06-10 00:00", "2026-07-01 00:00" };
	const int64_t now_us = utc("2026-06-09 12:00");

	(void)state;
	live_in("UTC");
	for (unsigned to = 0; to < 2; to++) {
		for (uint64_t used = 1; used <= 3; used++) {
			struct kept kept = { .len = 0 };
			struct made_limit before, after;

			make_limit(&before, "l", policies[1 - to]);
			make_limit(&after, "l", policies[to]);
			(void)ask(&kept, &before, used, now_us);
			const struct decision decision = ask(&kept, &after, 1, now_us + 1);

			assert_true(kept.changed && !decision.clamped);
			assert_int_equal(
				decision.outcomes[0].remaining, used < 3 ? 3 - used - 1 : 0);
			assert_int_equal(
				decision.outcomes[0].reset_us, utc(own_ends[to]) - now_us - 1);
			(void)ask(&kept, &after, 1, now_us + 2);
			(void)ask(&kept, &after, 1, now_us + 3);
			assert_false(admits(&kept, &after, 1, utc(own_ends[to]) - 1));
			assert_true(admits(&kept, &after, 3, utc(own_ends[to])));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_quota_begins_anew_with_each_period),
		cmocka_unit_test(who_waits_for_the_end_is_admitted),
		cmocka_unit_test(an_end_that_is_stored_is_kept_while_it_is_to_come),
		cmocka_unit_test(an_end_further_off_than_a_period_is_set_right),
		cmocka_unit_test(no_period_of_any_zone_is_taken_for_one_that_cannot_be),
		cmocka_unit_test(a_quota_of_another_period_ends_with_ours_and_keeps_what_is_used),
	};

	return cmocka_run_group_tests_name("limit/quotas", tests, NULL, NULL);
}
