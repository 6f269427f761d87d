/*
 * What an entry of the rejection cache says of a cost and a time: whether it is rejected for sure,
 * and for how long it is so at the most.
 */
#include "rejections_entry.h"

/* ---- waits ---- */

/* A bucket's debt is all that there is to know of it. */
static struct wait
bucket_wait(const struct entry *entry, const struct policy *policy, int64_t full_us, uint64_t cost,
	int64_t now_us)
{
	const int64_t most =
		full_us - now_us - (int64_t)(policy->burst - cost) * policy->interval_us;

	return (struct wait){ most - entry->way_us, most, true };
}

static struct wait
points_wait(const struct part *part, uint64_t cost, int64_t now_us)
{
	int64_t least_us = 0, most_us = part->full_us, pass_us = 0;
	bool is_exact = false;

	for (unsigned i = 0; i < part->count; i++) {
		const struct point *point = &part->points[i];

		is_exact = is_exact || point->cost == cost;
		if (point->cost >= cost && point->pass_us < most_us)
			most_us = point->pass_us;
		if (point->cost > cost)
			continue;
		if (point->until_us > least_us)
			least_us = point->until_us;
		if (point->pass_us > pass_us)
			pass_us = point->pass_us;
	}
	/* Others may have made the wait of a smaller cost longer than that of a larger one was. */
	if (pass_us > most_us)
		most_us = pass_us;
	return (struct wait){ least_us - now_us, most_us - now_us, is_exact };
}

struct wait
part_wait(const struct entry *entry, unsigned policy, uint64_t cost, int64_t now_us)
{
	const struct policy *its = &entry->limit->policies[policy];
	const struct part *part = &entry->parts[policy];

	if (its->algorithm == POLICY_TOKEN_BUCKET)
		return bucket_wait(entry, its, part->full_us, cost, now_us);
	if (cost <= part->remaining)
		return (struct wait){ .is_exact = true };
	struct wait wait = points_wait(part, cost, now_us);

	/* Of a quota all comes back at once. */
	wait.is_exact = wait.is_exact || its->algorithm == POLICY_CALENDAR;
	return wait;
}

/* ---- finding ---- */

static int64_t
later(int64_t us, int64_t least_us)
{
	return us > least_us ? us : least_us;
}

/* Until one token more. */
static int64_t
more_us(const struct entry *entry, unsigned i, int64_t now_us)
{
	const uint64_t remaining = entry->parts[i].remaining;

	if (remaining >= entry->limit->policies[i].burst)
		return 0;
	return later(part_wait(entry, i, remaining + 1, now_us).most_us, 1);
}

/* What remains may have become more; it is told when Redis is asked the next time. */
static struct outcome
moved(const struct entry *entry, unsigned i, int64_t retry_us, int64_t now_us)
{
	return (struct outcome){
		.limit = entry->limit,
		.policy = &entry->limit->policies[i],
		.violated = retry_us != 0,
		.remaining = entry->parts[i].remaining,
		.retry_us = retry_us,
		.more_us = retry_us == 0 ? more_us(entry, i, now_us) : later(retry_us, 0),
		.reset_us = later(entry->parts[i].full_us - now_us, 0),
	};
}

/* Says what is known of a policy. False: Redis has to be asked. */
static bool
say(const struct entry *entry, unsigned i, const struct check_item *item, uint64_t cost,
	int64_t now_us, struct outcome *outcome)
{
	const struct policy *policy = &entry->limit->policies[i];
	const struct part *part = &entry->parts[i];
	const bool is_never = cost > policy->burst;
	const struct wait wait =
		is_never ? (struct wait){ .is_exact = true } : part_wait(entry, i, cost, now_us);
	const int64_t retry_us = is_never ? -1 : later(wait.most_us, 0);

	if (policy->algorithm == POLICY_TOKEN_BUCKET)
		outcome_set(outcome, item, policy, later(part->full_us - now_us, 0), cost,
			retry_us != 0);
	else
		*outcome = moved(entry, i, retry_us, now_us);
	return wait.is_exact || part->count == REJECTION_COSTS;
}

static bool
rejects(const struct entry *entry, uint64_t cost, int64_t now_us)
{
	for (unsigned i = 0; i < entry->limit->policy_count; i++) {
		if (cost > entry->limit->policies[i].burst ||
			part_wait(entry, i, cost, now_us).least_us > 0)
			return true;
	}
	return false;
}

bool
rejections_find(const struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us, struct decision *decision)
{
	const struct entry *entry = rejections_entry(rejections, key);
	const struct limit *limit = key->item->limit;

	if (entry == NULL || entry->until_us <= now_us || !rejects(entry, cost, now_us) ||
		decision->count + limit->policy_count > CHECK_POLICIES_MAX)
		return false;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (!say(entry, i, key->item, cost, now_us,
			    &decision->outcomes[decision->count + i]))
			return false;
	}
	decision->verdict = VERDICT_REJECTED;
	decision->now_us = entry->store_us + later(now_us - entry->answered_us, 0);
	decision->count += limit->policy_count;
	return true;
}
