/*
 * calendar: a quota for each day or month of the calendar. Two words: when the period ends, and
 * what is used of it.
 *
 * A stored end that is still to come is kept, whatever our calendar says of it: another gateway may
 * keep another clock or time zone, and whoever began the period ends it. But it must be the end of
 * such a period as ours. If it is that of a month and ours is a day, or the reverse, the quota was
 * changed: what is used stays used, until our own period ends.
 */
#include "algorithms.h"

enum { END, USED, WORDS };

/* How much longer than its window a period may be. Clocks are put back by an hour where there is
 * daylight saving, and where a time zone changed it was three in a day. */
#define LONGER_US (3 * INT64_C(3600) * US_PER_S)

static bool
is_sound(const struct bucket_field *field)
{
	return field->words[USED] < COUNT_LIMIT;
}

static int64_t
end_of_period(const struct policy *policy, int64_t now_us)
{
	int64_t ends[3];

	calendar_ends(policy->period, now_us, ends);
	return ends[1];
}

static enum brought
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const int64_t now_us = moment->now_us;
	const bool is_over = field->count == 0 || field->words[END] <= now_us;
	enum brought brought = BROUGHT;

	if (!is_over && field->span_us != policy->span_us)
		brought = BROUGHT_ANEW;
	else if (!is_over &&
		field->words[END] > now_us + policy->span_us + LONGER_US + CLOCK_SLACK_US)
		brought = BROUGHT_CLAMPED;
	if (is_over)
		field->words[USED] = 0;
	if (is_over || brought != BROUGHT)
		field->words[END] = end_of_period(policy, now_us);
	field->count = WORDS;
	field_take_form(field, policy);
	return brought;
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
	.is_sound = is_sound,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};
