/*
 * Rates: COUNT/WINDOW, and those of the calendar, whose window is a day or a month with a date.
 */
#include "foreign.h"
#include "values.h"

#include <stdio.h>

static const struct {
	const char *window;
	enum calendar_period period;
	unsigned days;
	const char *even; /* the bucket that is meant if it is not the calendar */
} periods[] = {
	{ "day", CALENDAR_DAY, 1, "1d" },
	{ "month", CALENDAR_MONTH, 31, "30d" },
};

enum { PERIODS = sizeof periods / sizeof periods[0] };

/* The index of the period; PERIODS if the window is none. */
static size_t
period_of(struct slice window)
{
	size_t i = 0;

	while (i < PERIODS && !slice_is(window, slice_of(periods[i].window)))
		i++;
	return i;
}

int
rate_parse(struct slice text, struct rate *rate, struct err *err)
{
	const size_t slash = slice_find(text, '/');
	const struct slice count = slice_first(text, slash);
	const struct slice window = slice_skip(text, slash < text.len ? slash + 1 : slash);
	const size_t period = period_of(window);

	if (period < PERIODS)
		return err_set(err,
			"\"/%.*s\" is a window of the calendar: write %.*s/%.*s calendar for a "
			"quota that begins anew with each %.*s, or %.*s/%s for one without a date",
			SHOWN(window), SHOWN(count), SHOWN(window), SHOWN(window), SHOWN(count),
			periods[period].even);
	return parse_rate(text, rate, err);
}

int
rate_parse_calendar(struct slice text, struct config_policy *policy, struct err *err)
{
	const size_t slash = slice_find(text, '/');
	const struct slice count = slice_first(text, slash);
	const size_t period = period_of(slice_skip(text, slash < text.len ? slash + 1 : slash));
	char plain[32];

	if (period == PERIODS)
		return err_set(err,
			"calendar goes with /day or /month, such as %.*s/day calendar; \"%.*s\" "
			"is neither",
			SHOWN(count), SHOWN(text));
	/* The count is read as that of any rate. */
	(void)snprintf(
		plain, sizeof plain, "%.*s/1d", (int)(count.len < 24 ? count.len : 24), count.ptr);
	if (parse_rate(slice_of(plain), &policy->rate, err) != 0)
		return -1;
	policy->period = periods[period].period;
	policy->rate.window_us = periods[period].days * US_PER_DAY;
	(void)snprintf(
		policy->rate.window, sizeof policy->rate.window, "%s", periods[period].window);
	return 0;
}

int
rate_check_foreign(struct slice text, struct err *err)
{
	char right[FOREIGN_RATE_SIZE];
	struct slice rest = text, word;
	struct rate rate;
	struct err unused;

	(void)word_next(&rest, &word);
	const size_t slash = slice_find(word, '/');

	if (parse_rate(word, &rate, &unused) == 0 || !foreign_rate(text, right) ||
		slice_is(word, slice_of(right)) ||
		period_of(slice_skip(word, slash < word.len ? slash + 1 : slash)) < PERIODS)
		return 0;
	return err_set(err, "this rate is written %s", right);
}
