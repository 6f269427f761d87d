/* algorithm.h: when calendar periods end, wherever the process believes to be. */
#include "weir/algorithm.h"

#include "../lib/limits.h"
#include "zones.h"

struct row {
	const char *zone;
	enum calendar_period period;
	const char *now, *ends[3]; /* UTC */
};

static const struct row rows[] = {
	{ "UTC", CALENDAR_DAY, "2026-06-09 10:13",
		{ "2026-06-09 00:00", "2026-06-10 00:00", "2026-06-11 00:00" } },
	{ "UTC", CALENDAR_DAY, "2026-06-09 00:00",
		{ "2026-06-09 00:00", "2026-06-10 00:00", "2026-06-11 00:00" } },
	{ "UTC", CALENDAR_DAY, "2026-12-31 23:59",
		{ "2026-12-31 00:00", "2027-01-01 00:00", "2027-01-02 00:00" } },
	{ "UTC", CALENDAR_MONTH, "2026-01-31 12:00",
		{ "2026-01-01 00:00", "2026-02-01 00:00", "2026-03-01 00:00" } },
	{ "UTC", CALENDAR_MONTH, "2026-12-31 23:59",
		{ "2026-12-01 00:00", "2027-01-01 00:00", "2027-02-01 00:00" } },
	/* Leap years, and one that is none. */
	{ "UTC", CALENDAR_DAY, "2028-02-28 12:00",
		{ "2028-02-28 00:00", "2028-02-29 00:00", "2028-03-01 00:00" } },
	{ "UTC", CALENDAR_MONTH, "2028-02-29 23:59",
		{ "2028-02-01 00:00", "2028-03-01 00:00", "2028-04-01 00:00" } },
	{ "UTC", CALENDAR_DAY, "2100-02-28 12:00",
		{ "2100-02-28 00:00", "2100-03-01 00:00", "2100-03-02 00:00" } },
	{ "UTC", CALENDAR_DAY, "1970-01-01 00:00",
		{ "1970-01-01 00:00", "1970-01-02 00:00", "1970-01-03 00:00" } },
	/* Far from Greenwich, and by half hours. */
	{ "Pacific/Kiritimati", CALENDAR_MONTH, "2026-01-31 10:00",
		{ "2026-01-31 10:00", "2026-02-28 10:00", "2026-03-31 10:00" } },
	{ "Pacific/Marquesas", CALENDAR_DAY, "2026-06-09 09:29",
		{ "2026-06-08 09:30", "2026-06-09 09:30", "2026-06-10 09:30" } },
	{ "Asia/Kolkata", CALENDAR_DAY, "2026-06-09 18:30",
		{ "2026-06-09 18:30", "2026-06-10 18:30", "2026-06-11 18:30" } },
	/* Days of 23 and of 25 hours, and months that differ by one. */
	{ "Europe/Berlin", CALENDAR_DAY, "2026-03-29 12:00",
		{ "2026-03-28 23:00", "2026-03-29 22:00", "2026-03-30 22:00" } },
	{ "Europe/Berlin", CALENDAR_DAY, "2026-10-25 12:00",
		{ "2026-10-24 22:00", "2026-10-25 23:00", "2026-10-26 23:00" } },
	{ "Europe/Berlin", CALENDAR_MONTH, "2026-03-15 12:00",
		{ "2026-02-28 23:00", "2026-03-31 22:00", "2026-04-30 22:00" } },
	{ "America/New_York", CALENDAR_DAY, "2026-11-01 05:30",
		{ "2026-11-01 04:00", "2026-11-02 05:00", "2026-11-03 05:00" } },
	/* Without a midnight: the day begins at one. */
	{ "Asia/Beirut", CALENDAR_DAY, "2025-03-29 12:00",
		{ "2025-03-28 22:00", "2025-03-29 22:00", "2025-03-30 21:00" } },
	{ "America/Santiago", CALENDAR_DAY, "2025-09-07 12:00",
		{ "2025-09-07 04:00", "2025-09-08 03:00", "2025-09-09 03:00" } },
	/* With two of them: it begins at the first. */
	{ "America/Havana", CALENDAR_DAY, "2025-11-02 05:30",
		{ "2025-11-02 04:00", "2025-11-03 05:00", "2025-11-04 05:00" } },
	{ "America/Santiago", CALENDAR_DAY, "2026-04-05 03:30",
		{ "2026-04-04 03:00", "2026-04-05 04:00", "2026-04-06 04:00" } },
	/* Samoa went over the date line, from Thursday to Saturday. */
	{ "Pacific/Apia", CALENDAR_DAY, "2011-12-30 09:00",
		{ "2011-12-29 10:00", "2011-12-30 10:00", "2011-12-31 10:00" } },
};

/* Where there is no midnight, or there are two, what mktime says depends on what it was asked
 * before. */
static void
ask_mktime_of_month(int month)
{
	struct tm tm = { .tm_year = 126, .tm_mon = month, .tm_mday = 15, .tm_isdst = -1 };

	(void)mktime(&tm);
}

static void
periods_end_when_the_date_changes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows) * 12; i++) {
		const struct row *row = &rows[i / 12];
		int64_t ends[3];

		live_in(row->zone);
		ask_mktime_of_month((int)(i % 12));
		calendar_ends(row->period, utc(row->now), ends);
		for (size_t j = 0; j < LENGTH_OF(ends); j++)
			assert_row(ends[j] == utc(row->ends[j]), "row %zu: end %zu is %ld s off",
				i / 12, j, (long)((ends[j] - utc(row->ends[j])) / US_PER_S));
	}
}

static void
now_is_always_between_the_first_end_and_the_second(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(zones); i++) {
		live_in(zones[i]);
		for (unsigned n = 0; n < 6000; n++) {
			const enum calendar_period period =
				n % 4 == 0 ? CALENDAR_MONTH : CALENDAR_DAY;
			const int64_t most_us = (period == CALENDAR_DAY ? 2 : 32) * US_PER_DAY;
			int64_t now_us = (int64_t)random_below(&random, (size_t)IN_2100_US);
			int64_t ends[3];

			calendar_ends(period, now_us, ends);
			/* Also at the end itself, and just before it. */
			if (n % 3 > 0) {
				now_us = ends[1] - n % 3 + 1;
				calendar_ends(period, now_us, ends);
			}
			assert_true(ends[0] <= now_us && now_us < ends[1] && ends[1] < ends[2]);
			assert_row(ends[1] - ends[0] <= most_us && ends[2] - ends[1] <= most_us,
				"%s: a period of %ld s", zones[i],
				(long)((ends[1] - ends[0]) / US_PER_S));
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(periods_end_when_the_date_changes),
		cmocka_unit_test(now_is_always_between_the_first_end_and_the_second),
	};

	return cmocka_run_group_tests_name("limit/calendar", tests, NULL, NULL);
}
