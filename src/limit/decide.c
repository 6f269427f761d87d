/*
 * The decision in C; lua/ has the same in Lua, and a test feeds both the same random traces. Every
 * number is a whole number below 2^53, so that Lua's doubles hold it exactly; what may be larger or
 * a fraction is reckoned in doubles here too, in the same order (algorithm_*.c).
 *
 * First all policies of all limits are weighed, on copies of their states. Then what is spent is
 * spent on these copies, and they take the place of the stored ones. So what is not spent on stays
 * as it was stored, in whatever form, unless it could not be understood so later (BROUGHT_ANEW).
 */
#include "bucket.h"

#include <assert.h>

const char *const unavailable_names[UNAVAILABLE_REASONS] = { "deadline", "breaker", "connection",
	"overload", "reply", "late", "lock" };

/* One policy of a check. */
struct part {
	const struct policy *policy;
	struct moment moment;
	struct bucket_field field; /* its state, brought to the moment; in the bucket's room */
	uint64_t used;
	bool is_violated;
	enum brought brought; /* what is to be stored in any case would else be so with each
				 request until one is admitted */
};

/* One limit of a check. */
struct weighed {
	struct part *parts;
	bool admits; /* by all policies that can reject */
};

static void
part_weigh(struct part *part, struct bucket *bucket, int64_t *words)
{
	const struct algorithm *algorithm = algorithms[part->policy->algorithm];
	const struct policy *policy = part->policy;
	const struct bucket_field *stored = bucket_find(bucket, policy);

	part->field = (struct bucket_field){ .tag = policy->tag,
		.algorithm = (uint16_t)policy->algorithm,
		.interval_us = policy->interval_us,
		.capacity_us = policy->capacity_us };
	if (stored != NULL) {
		part->field = *stored;
		memcpy(words, stored->words, stored->count * sizeof words[0]);
	}
	part->field.words = words;
	part->brought = algorithm->bring(policy, &part->field, &part->moment);
	part->used = algorithm->used(policy, &part->field, &part->moment);
	part->is_violated =
		part->moment.cost > policy->burst || part->used > policy->burst - part->moment.cost;
}

/* The room of the bucket is for all states that are stored, and for as much as new ones take. */
static struct weighed
weigh(const struct check *check, const struct check_item *item, struct bucket *bucket,
	int64_t now_us, struct part *parts)
{
	struct weighed weighed = { parts, true };
	int64_t *words = bucket->room;

	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		const struct policy *policy = &item->limit->policies[i];
		const struct bucket_field *stored = bucket_find(bucket, policy);
		const unsigned own = algorithm_words(policy);

		parts[i].policy = policy;
		parts[i].moment = (struct moment){ .now_us = now_us,
			.cost = policy->algorithm == POLICY_CONCURRENT ? 1 : check->cost,
			.lease = check->lease };
		part_weigh(&parts[i], bucket, words);
		words += stored != NULL && stored->count > own ? stored->count : own;
		weighed.admits = weighed.admits && (policy->shadow || !parts[i].is_violated);
	}
	return weighed;
}

static void
part_spend(struct part *part)
{
	algorithms[part->policy->algorithm]->spend(part->policy, &part->field, &part->moment);
	part->used += part->moment.cost;
}

static int64_t
part_until(const struct part *part, uint64_t allowed)
{
	return algorithms[part->policy->algorithm]->until(
		part->policy, &part->field, &part->moment, allowed);
}

static void
part_tell(const struct part *part, const struct check_item *item, struct outcome *outcome)
{
	const uint64_t burst = part->policy->burst, cost = part->moment.cost;
	const uint64_t remaining = part->used < burst ? burst - part->used : 0;
	const int64_t used = (int64_t)part->used;
	int64_t wait_us = 0;

	if (part->is_violated)
		wait_us = cost > burst ? -1 : part_until(part, burst - cost);
	else if (remaining < burst)
		wait_us = part_until(part, burst - remaining - 1);
	outcome_set_numbers(outcome, item, part->policy, part->is_violated ? -1 - used : used,
		wait_us, part_until(part, 0));
}

static void
settle(const struct check_item *item, struct bucket *bucket, const struct weighed *weighed,
	struct decision *decision)
{
	const bool is_admitted = decision->verdict == VERDICT_ADMITTED;
	const struct limit *limit = item->limit;
	bool is_worth_dropping = true;

	for (unsigned i = 0; i < limit->policy_count; i++) {
		struct part *part = &weighed->parts[i];
		const bool spends = is_admitted &&
			(part->policy->shadow ? !part->is_violated : weighed->admits);

		if (spends)
			part_spend(part);
		if (spends || part->brought != BROUGHT) {
			if (is_worth_dropping)
				bucket_drop_worthless(bucket, decision->now_us);
			is_worth_dropping = false;
			bucket_put(bucket, limit, &part->field);
		}
		part_tell(part, item, &decision->outcomes[decision->count++]);
	}
	if (bucket->changed)
		bucket_trim(bucket, limit);
}

void
decide(const struct check *check, struct bucket *buckets, int64_t now_us, struct decision *decision)
{
	struct part parts[CHECK_POLICIES_MAX];
	struct weighed weighed[CHECK_LIMITS_MAX];
	unsigned at = 0;

	*decision = (struct decision){ .verdict = VERDICT_ADMITTED, .now_us = now_us };
	for (unsigned i = 0; i < check->count; i++) {
		const struct check_item *item = &check->items[i];

		assert(at + item->limit->policy_count <= CHECK_POLICIES_MAX);
		weighed[i] = weigh(check, item, &buckets[i], now_us, &parts[at]);
		for (unsigned j = 0; j < item->limit->policy_count; j++)
			decision->clamped =
				decision->clamped || parts[at + j].brought == BROUGHT_CLAMPED;
		at += item->limit->policy_count;
		if (!weighed[i].admits && !item->shadow)
			decision->verdict = VERDICT_REJECTED;
	}
	for (unsigned i = 0; i < check->count; i++)
		settle(&check->items[i], &buckets[i], &weighed[i], decision);
}
