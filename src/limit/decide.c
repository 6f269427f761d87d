/*
 * The decision in C; lua/decide.lua is the same in Lua, and a test feeds both the same random
 * traces. Every number is a whole number below 2^53, so that Lua's doubles hold it exactly; the one
 * division (a changed rate rescales a debt) is made in doubles here too, in the same order.
 */
#include "weir/decision.h"

#include <math.h>

/* Beyond this a stored time is no debt but a clock that was set back. */
#define CLOCK_SLACK_US US_PER_S

const char *const unavailable_names[UNAVAILABLE_REASONS] = { "deadline", "breaker", "connection",
	"overload", "reply", "late", "lock" };

static struct bucket_field *
find_field(struct bucket *bucket, uint32_t tag)
{
	for (unsigned i = 0; i < bucket->count; i++) {
		if (bucket->fields[i].tag == tag)
			return &bucket->fields[i];
	}
	return NULL;
}

/* A debt that was run up at another rate is the same number of tokens at this one. */
static int64_t
debt_of(const struct bucket_field *field, const struct policy *policy, int64_t now_us,
	bool *clamped)
{
	if (field == NULL || field->tat_us <= now_us)
		return 0;
	double debt = (double)(field->tat_us - now_us);

	if (field->interval_us != policy->interval_us)
		debt = ceil(debt / (double)field->interval_us * (double)policy->interval_us);
	/* Compared as it is: what is beyond may be beyond any integer. */
	if (debt > (double)(policy->capacity_us + CLOCK_SLACK_US)) {
		*clamped = true;
		return policy->capacity_us;
	}
	return (int64_t)debt;
}

static bool
is_violated(const struct policy *policy, int64_t debt_us, uint64_t cost)
{
	return cost > policy->burst ||
		debt_us + (int64_t)cost * policy->interval_us > policy->capacity_us;
}

void
outcome_set(struct outcome *outcome, const struct check_item *item, const struct policy *policy,
	int64_t debt_us, uint64_t cost, bool violated)
{
	const int64_t left = policy->capacity_us > debt_us ? policy->capacity_us - debt_us : 0;

	*outcome = (struct outcome){
		.limit = item->limit,
		.shadow = item->shadow,
		.policy = policy,
		.violated = violated,
		.remaining = (uint64_t)(left / policy->interval_us),
		.reset_us = debt_us,
	};
	if (outcome->remaining < policy->burst)
		outcome->more_us = debt_us +
			(int64_t)(outcome->remaining + 1) * policy->interval_us -
			policy->capacity_us;
	if (violated)
		outcome->retry_us = cost > policy->burst
			? -1
			: debt_us + (int64_t)cost * policy->interval_us - policy->capacity_us;
}

static void
spend(struct bucket *bucket, const struct policy *policy, int64_t tat_us)
{
	struct bucket_field *field = find_field(bucket, policy->tag);

	if (field == NULL) {
		/* Room there always is: the fields of policies no longer known give way, the first
		 * one first. */
		if (bucket->count == BUCKET_FIELDS_MAX) {
			memmove(bucket->fields, bucket->fields + 1,
				(BUCKET_FIELDS_MAX - 1) * sizeof bucket->fields[0]);
			bucket->count--;
		}
		field = &bucket->fields[bucket->count++];
	}
	*field = (struct bucket_field){ policy->tag, policy->interval_us, tat_us };
	bucket->changed = true;
}

/* What is full again says nothing, and need not be carried on. */
static void
drop_full(struct bucket *bucket, int64_t now_us)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < bucket->count; i++) {
		if (bucket->fields[i].tat_us > now_us)
			bucket->fields[kept++] = bucket->fields[i];
	}
	bucket->count = kept;
}

/* Whether the item's policies all admit; their debts are left in `debts`. */
static bool
weigh(const struct check_item *item, struct bucket *bucket, uint64_t cost, int64_t now_us,
	int64_t *debts, bool *clamped)
{
	bool admits = true;

	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		const struct policy *policy = &item->limit->policies[i];

		debts[i] = debt_of(find_field(bucket, policy->tag), policy, now_us, clamped);
		admits = admits && !is_violated(policy, debts[i], cost);
	}
	return admits;
}

static void
settle(const struct check *check, const struct check_item *item, struct bucket *bucket, bool spends,
	const int64_t *debts, struct decision *decision)
{
	if (spends)
		drop_full(bucket, decision->now_us);
	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		const struct policy *policy = &item->limit->policies[i];
		const bool violated = is_violated(policy, debts[i], check->cost);
		int64_t debt = debts[i];

		if (spends) {
			debt += (int64_t)check->cost * policy->interval_us;
			spend(bucket, policy, decision->now_us + debt);
		}
		outcome_set(&decision->outcomes[decision->count++], item, policy, debt, check->cost,
			violated);
	}
}

void
decide(const struct check *check, struct bucket *buckets, int64_t now_us, struct decision *decision)
{
	int64_t debts[CHECK_LIMITS_MAX][LIMIT_POLICIES_MAX];
	bool admits[CHECK_LIMITS_MAX];

	*decision = (struct decision){ .verdict = VERDICT_ADMITTED, .now_us = now_us };
	for (unsigned i = 0; i < check->count; i++) {
		const struct check_item *item = &check->items[i];

		admits[i] =
			weigh(item, &buckets[i], check->cost, now_us, debts[i], &decision->clamped);
		if (!admits[i] && !item->shadow)
			decision->verdict = VERDICT_REJECTED;
	}
	for (unsigned i = 0; i < check->count; i++) {
		const bool spends = admits[i] && decision->verdict == VERDICT_ADMITTED;

		settle(check, &check->items[i], &buckets[i], spends, debts[i], decision);
	}
}

int64_t
bucket_full_at(const struct bucket *bucket)
{
	int64_t at = 0;

	for (unsigned i = 0; i < bucket->count; i++) {
		if (bucket->fields[i].tat_us > at)
			at = bucket->fields[i].tat_us;
	}
	return at;
}

const struct outcome *
decision_violated(const struct decision *decision)
{
	const struct outcome *worst = NULL;

	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		if (!outcome->violated || outcome->shadow)
			continue;
		if (worst == NULL || outcome->retry_us < 0 ||
			(worst->retry_us >= 0 && outcome->retry_us > worst->retry_us))
			worst = outcome;
	}
	return worst;
}

int64_t
decision_retry_after_s(const struct decision *decision)
{
	const struct outcome *worst = decision_violated(decision);

	if (worst == NULL || worst->retry_us < 0)
		return 0;
	const int64_t seconds = (worst->retry_us + US_PER_S - 1) / US_PER_S;

	return seconds < 1 ? 1 : seconds;
}
