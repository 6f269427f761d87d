/*
 * token-bucket, kept as its theoretical arrival time (GCRA): one word, the time at which the bucket
 * will be full again. What it is later than now is the debt; each token used and not yet refilled
 * is owed for interval_us.
 *
 * A debt that was run up at another rate is the same number of tokens at this one. It is reckoned
 * in doubles, as Lua does, in the same order.
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

static int64_t
rescale(int64_t owed_us, int64_t from_us, int64_t to_us, int64_t most_us)
{
	const double debt = from_us == to_us ? (double)owed_us
					     : (double)owed_us / (double)from_us * (double)to_us;

	/* Compared as it is: what is beyond may be beyond any integer. */
	if (debt >= (double)most_us)
		return most_us;
	return whole_up(debt);
}

/*
 * Until it is spent on, a debt of another rate goes on to shrink at that one. So if it leaves no
 * room, the wait is reckoned at the old rate, and the debt is given such that this wait follows.
 */
static int64_t
at_own_rate(const struct policy *policy, uint64_t cost, int64_t owed_us, int64_t interval_us)
{
	if (cost > policy->burst)
		return rescale(owed_us, interval_us, policy->interval_us, policy->capacity_us);
	const int64_t room = policy->capacity_us - (int64_t)cost * policy->interval_us;
	/* The product may be beyond any integer, and then it is far beyond what can be owed. */
	const double wait = (double)owed_us - (double)(policy->burst - cost) * (double)interval_us;

	if (wait > 0)
		return room + (int64_t)wait;
	return rescale(owed_us, interval_us, policy->interval_us, room);
}

static bool
bring(const struct policy *policy, struct bucket_field *field, const struct moment *moment)
{
	const bool is_clamped = is_impossible(field, moment->now_us);
	int64_t debt_us = debt_of(field, moment->now_us);

	if (is_clamped)
		debt_us = policy->capacity_us;
	else if (debt_us > 0)
		debt_us = at_own_rate(policy, moment->cost, debt_us, field->interval_us);
	field_take_form(field, policy);
	field->words[0] = moment->now_us + debt_us;
	field->count = 1;
	return is_clamped;
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
