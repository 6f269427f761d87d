/*
 * When days and months begin, in the time zone of the process (src/command sets it).
 *
 * mktime alone does not know: where clocks are put forward at midnight there is none, where they
 * are put back to it there are two, and Samoa once left out a day. A period begins at the first
 * second whose date belongs to it; mktime's answer is taken if it is that, and else it is searched.
 */
#include "weir/algorithm.h"

#include <time.h>

enum { GUESS_WRONG_S = 26 * 3600 };

static struct tm
local_time(time_t at)
{
	struct tm tm = { 0 };

	(void)localtime_r(&at, &tm);
	return tm;
}

/* Counts up from one period to the next, not always by one. */
static int64_t
number_of(enum calendar_period period, time_t at)
{
	const struct tm tm = local_time(at);
	const int64_t month = (int64_t)tm.tm_year * 12 + tm.tm_mon;

	switch (period) {
	case CALENDAR_DAY:
		return month * 31 + tm.tm_mday;
	case CALENDAR_MONTH:
		return month;
	}
	return 0;
}

/* The first second of a period of at least this number; it is after `low`, and at `high` at the
 * latest. */
static time_t
first_second(enum calendar_period period, int64_t number, time_t guess, time_t low, time_t high)
{
	if (guess > low && guess <= high && number_of(period, guess) >= number &&
		number_of(period, guess - 1) < number)
		return guess;
	while (high - low > 1) {
		const time_t middle = low + (high - low) / 2;

		if (number_of(period, middle) >= number)
			high = middle;
		else
			low = middle;
	}
	return high;
}

/* What mktime takes to be the beginning of the period that is `ahead` of `at`. */
static time_t
guess_beginning(enum calendar_period period, time_t at, int ahead)
{
	const struct tm tm = local_time(at);
	const bool is_day = period == CALENDAR_DAY;
	struct tm first = {
		.tm_year = tm.tm_year,
		.tm_mon = is_day ? tm.tm_mon : tm.tm_mon + ahead,
		.tm_mday = is_day ? tm.tm_mday + ahead : 1,
		.tm_isdst = -1,
	};

	return mktime(&first);
}

static time_t
next_beginning(enum calendar_period period, time_t at)
{
	const time_t guess = guess_beginning(period, at, 1);

	return first_second(period, number_of(period, at) + 1, guess, at, guess + GUESS_WRONG_S);
}

void
calendar_ends(enum calendar_period period, int64_t now_us, int64_t ends[3])
{
	const time_t now = (time_t)(now_us / US_PER_S);
	const time_t guess = guess_beginning(period, now, 0);
	const time_t begun =
		first_second(period, number_of(period, now), guess, guess - GUESS_WRONG_S, now);
	const time_t next = next_beginning(period, now);

	ends[0] = (int64_t)begun * US_PER_S;
	ends[1] = (int64_t)next * US_PER_S;
	ends[2] = (int64_t)next_beginning(period, next) * US_PER_S;
}
