/*
 * The decision in C; lua/decide.lua is the same in Lua, and a test feeds both the same random
 * traces. Every number is a whole number below 2^53, so that Lua's doubles hold it exactly; what
 * may be larger or a fraction (a changed rate rescales a debt) is reckoned in doubles here too, in
 * the same order.
 */
#include "weir/decision.h"

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

/* Written by a clock that was ahead of this one. A debt run up under a larger burst is not that. */
static bool
is_impossible(const struct bucket_field *field, int64_t now_us)
{
	return field->tat_us - now_us > field->capacity_us + CLOCK_SLACK_US;
}

/* What a policy owes, and whether the request must not be added to it. */
struct debt {
	int64_t us;
	bool is_violated;
};

/* A debt that was run up at another rate is the same number of tokens at this one. */
static int64_t
rescale(int64_t owed_us, int64_t from_us, int64_t to_us, int64_t most_us)
{
	const double debt = from_us == to_us ? (double)owed_us
					     : (double)owed_us / (double)from_us * (double)to_us;

	/* Compared as it is: what is beyond may be beyond any integer. */
	if (debt >= (double)most_us)
		return most_us;
	const int64_t whole = (int64_t)debt;

	return (double)whole < debt ? whole + 1 : whole;
}

/*
 * Until it is spent on, a debt of another rate goes on to shrink at that one. So if it leaves no
 * room, the wait is reckoned at the old rate, and the debt is given such that this wait follows.
 */
static struct debt
at_own_rate(const struct policy *policy, uint64_t cost, int64_t owed_us, int64_t interval_us)
{
	if (cost > policy->burst)
		return (struct debt){ rescale(owed_us, interval_us, policy->interval_us,
					      policy->capacity_us),
			true };
	const int64_t room = policy->capacity_us - (int64_t)cost * policy->interval_us;
	/* The product may be beyond any integer, and then it is far beyond what can be owed. */
	const double wait = (double)owed_us - (double)(policy->burst - cost) * (double)interval_us;

	if (wait > 0)
		return (struct debt){ room + (int64_t)wait, true };
	return (struct debt){ rescale(owed_us, interval_us, policy->interval_us, room), false };
}

static struct debt
debt_of(struct bucket *bucket, const struct policy *policy, uint64_t cost, int64_t now_us,
	bool *clamped)
{
	struct bucket_field *field = find_field(bucket, policy->tag);

	if (field == NULL || field->tat_us <= now_us)
		return at_own_rate(policy, cost, 0, policy->interval_us);
	/* Stored even if the request is rejected: else it would be so until the clock has come
	 * that far again. */
	if (is_impossible(field, now_us)) {
		*field = (struct bucket_field){ policy->tag, policy->interval_us,
			policy->capacity_us, now_us + policy->capacity_us };
		bucket->changed = true;
		*clamped = true;
	}
	return at_own_rate(policy, cost, field->tat_us - now_us, field->interval_us);
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

static bool
has_policy(const struct limit *limit, uint32_t tag)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].tag == tag)
			return true;
	}
	return false;
}

/* Room there always is: the fields of policies no longer known give way, the first one first. */
static struct bucket_field *
new_field(struct bucket *bucket, const struct limit *limit)
{
	unsigned i = 0;

	if (bucket->count < BUCKET_FIELDS_MAX)
		return &bucket->fields[bucket->count++];
	while (has_policy(limit, bucket->fields[i].tag))
		i++;
	memmove(&bucket->fields[i], &bucket->fields[i + 1],
		(BUCKET_FIELDS_MAX - 1 - i) * sizeof bucket->fields[0]);
	return &bucket->fields[BUCKET_FIELDS_MAX - 1];
}

static void
spend(struct bucket *bucket, const struct limit *limit, const struct policy *policy, int64_t tat_us)
{
	struct bucket_field *field = find_field(bucket, policy->tag);

	if (field == NULL)
		field = new_field(bucket, limit);
	*field = (struct bucket_field){ policy->tag, policy->interval_us, policy->capacity_us,
		tat_us };
	bucket->changed = true;
}

static bool
is_worthless(const struct bucket_field *field, int64_t now_us)
{
	return field->tat_us <= now_us || is_impossible(field, now_us);
}

/* What is full again says nothing, and what is impossible nothing either. What will be spent on
 * keeps its place, so that a process that dies while it stores the bucket leaves no muddle. */
static void
drop_worthless(struct bucket *bucket, const struct limit *spent, int64_t now_us)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < bucket->count; i++) {
		const struct bucket_field *field = &bucket->fields[i];

		if (!is_worthless(field, now_us) ||
			(spent != NULL && has_policy(spent, field->tag)))
			bucket->fields[kept++] = *field;
	}
	bucket->count = kept;
}

/* Whether the item's policies all admit; their debts are left in `debts`. */
static bool
weigh(const struct check_item *item, struct bucket *bucket, uint64_t cost, int64_t now_us,
	struct debt *debts, bool *clamped)
{
	bool admits = true;

	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		debts[i] = debt_of(bucket, &item->limit->policies[i], cost, now_us, clamped);
		admits = admits && !debts[i].is_violated;
	}
	return admits;
}

static void
settle(const struct check *check, const struct check_item *item, struct bucket *bucket, bool spends,
	const struct debt *debts, struct decision *decision)
{
	if (spends || bucket->changed)
		drop_worthless(bucket, spends ? item->limit : NULL, decision->now_us);
	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		const struct policy *policy = &item->limit->policies[i];
		int64_t debt = debts[i].us;

		if (spends) {
			debt += (int64_t)check->cost * policy->interval_us;
			spend(bucket, item->limit, policy, decision->now_us + debt);
		}
		outcome_set(&decision->outcomes[decision->count++], item, policy, debt, check->cost,
			debts[i].is_violated);
	}
}

void
decide(const struct check *check, struct bucket *buckets, int64_t now_us, struct decision *decision)
{
	struct debt debts[CHECK_LIMITS_MAX][LIMIT_POLICIES_MAX];
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
