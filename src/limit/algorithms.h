/* The rows of the table, and what they share. Private to the room. */
#ifndef WEIR_LIMIT_ALGORITHMS_H
#define WEIR_LIMIT_ALGORITHMS_H

#include "weir/algorithm.h"

/* A stored time that is later than it can be by more than this is no clock that wavers but one that
 * was set back. */
#define CLOCK_SLACK_US US_PER_S

/* No stored count is as large, so that no sum of two is beyond 2^53. */
#define COUNT_LIMIT (INT64_C(1) << 52)

extern const struct algorithm algorithm_token_bucket, algorithm_sliding_window,
	algorithm_sliding_log, algorithm_calendar, algorithm_concurrent;

/* Rounded to a whole number, of what is not negative and below 2^63. */
static inline int64_t
whole_up(double value)
{
	const int64_t whole = (int64_t)value;

	return (double)whole < value ? whole + 1 : whole;
}

static inline int64_t
whole_down(double value)
{
	return (int64_t)value;
}

/* The state is in the policy's form from now on. */
static inline void
field_take_form(struct bucket_field *field, const struct policy *policy)
{
	field->interval_us = policy->interval_us;
	field->capacity_us = policy->capacity_us;
}

#endif
