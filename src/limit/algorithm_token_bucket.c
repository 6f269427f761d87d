/*
 * token-bucket, kept as its theoretical arrival time (GCRA): one word, the time at which the bucket
 * will be full again. What it is later than now is the debt; each token used and not yet refilled
 * is owed for interval_us.
 *
 * What a debt is at another rate is reckoned in doubles, as Lua does, in the same order.
 */
#include "algorithms.h"

static int64_t
debt_of(const struct bucket_field *field, int64_t now_us)
{
	return field->count > 0 && field->words[0] > now_us ? field->words[0] - now_us : 0;
}

/* Written by a clock that was ahead of this one. A debt run up under a larger burst is not that. */
static bool
is_impossible(const struct bucket_field *field, int64_t now_us)
{
	return debt_of(field, now_us) > field->capacity_us + CLOCK_SLACK_US;
}

/*
 * A debt of another rate is the same number of tokens at this one, and so it is stored, or whoever
 * is exhausted would go on to wait as long as before. It is never made less: another configuration
 * may know a larger burst, and then that is kept with it. What would be owed for more than a
 * hundred years cannot be stored, and waits at the rate that it had.
 */
static enum brought
take_own_rate(const struct policy *policy, struct bucket_field *field, int64_t *debt_us)
{
	const int64_t from_us = field->interval_us, to_us = policy->interval_us;
	const int64_t owed_us = *debt_us < field->capacity_us ? *debt_us : field->capacity_us;
	/* In doubles, since it may be beyond any integer. */
	const double debt = (double)owed_us / (double)from_us * (double)to_us;
	const int64_t burst = field->capacity_us / from_us;

	field_take_form(field, policy);
	if (debt <= (double)policy->capacity_us) {
		*debt_us = whole_up(debt);
		return BROUGHT_ANEW;
	}
	if (burst <= DURATION_MAX_US / to_us) {
		field->capacity_us = burst * to_us;
		*debt_us = debt < (double)field->capacity_us ? whole_up(debt) : field->capacity_us;
		return BROUGHT_ANEW;
	}
	*debt_us = debt < (double)DURATION_MAX_US ? whole_up(debt) : DURATION_MAX_US;
	return BROUGHT;
}

static enum brought
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	enum brought brought = BROUGHT;
	int64_t debt_us = debt_of(field, moment->now_us);

	if (is_impossible(field, moment->now_us)) {
		debt_us = policy->capacity_us;
		brought = BROUGHT_CLAMPED;
		field_take_form(field, policy);
	} else if (debt_us > 0 && field->interval_us != policy->interval_us) {
		brought = take_own_rate(policy, field, &debt_us);
	} else {
		field_take_form(field, policy);
	}
	field->words[0] = moment->now_us + debt_us;
	field->count = 1;
	return brought;
}

static uint64_t
used(const struct policy *policy, const struct bucket_field *field, const struct moment *moment)
{
	const int64_t debt_us = debt_of(field, moment->now_us);

	return (uint64_t)(debt_us / policy->interval_us + (debt_us % policy->interval_us != 0));
}

static int64_t
until(const struct policy *policy, const struct bucket_field *field, const struct moment *moment,
	uint64_t allowed)
{
	/* Less than the burst is allowed, so the product is within the capacity. */
	const int64_t wait_us =
		debt_of(field, moment->now_us) - (int64_t)allowed * policy->interval_us;

	return wait_us > 0 ? wait_us : 0;
}

static void
spend(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	field->words[0] += (int64_t)moment->cost * policy->interval_us;
}

static int64_t
worthless_at(const struct bucket_field *field, int64_t now_us)
{
	return is_impossible(field, now_us) ? now_us : now_us + debt_of(field, now_us);
}

const struct algorithm algorithm_token_bucket = {
	.name = "token-bucket",
	.record_words = 1,
	.records_max = 1,
	.bring = bring,
	.used = used,
	.until = until,
	.spend = spend,
	.worthless_at = worthless_at,
};
