/*
 * calendar: a quota for each day or month of the calendar. Two words: when the period ends, and
 * what is used of it.
 *
 * A stored end that is still to come is kept, whatever our calendar says of it: another gateway may
 * keep another clock or time zone, and whoever began the period ends it.
 */
#include "algorithms.h"

enum { END, USED, WORDS };

#define PERIOD_MAX_US (32 * US_PER_DAY) /* a month of 31 days, and an hour of daylight saving */

static int64_t
end_of_period(const struct policy *policy, int64_t now_us)
{
	int64_t ends[3];

	calendar_ends(policy->period, now_us, ends);
	return ends[1];
}

static bool
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const int64_t now_us = moment->now_us;
	const bool is_over = field->count == 0 || field->words[END] <= now_us;
	const bool is_clamped =
		!is_over && field->words[END] > now_us + PERIOD_MAX_US + CLOCK_SLACK_US;

	if (is_over)
		field->words[USED] = 0;
	if (is_over || is_clamped)
		field->words[END] = end_of_period(policy, now_us);
	field->count = WORDS;
	field_take_form(field, policy);
	return is_clamped;
}

static uint64_t
used(const struct policy *policy, const struct bucket_field *field, const struct moment *moment)
{
	(void)policy, (void)moment;
	return (uint64_t)field->words[USED];
}

static int64_t
until(const struct policy *policy, const struct bucket_field *field, const struct moment *moment,
	uint64_t allowed)
{
	return used(policy, field, moment) <= allowed ? 0 : field->words[END] - moment->now_us;
}

static void
spend(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	(void)policy;
	field->words[USED] += (int64_t)moment->cost;
}

static int64_t
worthless_at(const struct bucket_field *field, int64_t now_us)
{
	(void)now_us;
	return field->count == 0 ? 0 : field->words[END];
}

const struct algorithm algorithm_calendar = {
	.name = "calendar",
	.record_words = WORDS,
	.records_max = 1,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};
