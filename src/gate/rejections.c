/*
 * A table of sets of WAYS entries, the set chosen by the bucket's hash. An entry is good until its
 * time and says nothing afterwards but whose turn it is to ask (rejections_turn.c), so nothing is
 * ever taken out.
 */
#include "rejections_entry.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, SETS = 1024 };

_Static_assert(sizeof(struct entry) * WAYS * SETS <= 3500000, "as the header says");

struct rejections {
	struct entry entries[SETS * WAYS];
};

struct rejections *
rejections_new(void)
{
	return calloc(1, sizeof(struct rejections));
}

void
rejections_free(struct rejections *rejections)
{
	free(rejections);
}

bool
rejections_may_keep(const struct check_item *item)
{
	if (item->shadow || item->limit->has_leases || item->limit->shards > 1)
		return false;
	for (unsigned i = 0; i < item->limit->policy_count; i++) {
		if (item->limit->policies[i].shadow)
			return false;
	}
	return true;
}

static size_t
set_of(const struct rejection_key *key)
{
	uint32_t word;

	memcpy(&word, key->bucket.bytes, sizeof word);
	return word % SETS * WAYS;
}

static bool
is_of(const struct entry *entry, const struct rejection_key *key)
{
	return entry->limit == key->item->limit && entry->generation == key->generation &&
		memcmp(&entry->bucket, &key->bucket, sizeof entry->bucket) == 0;
}

struct entry *
rejections_entry(const struct rejections *rejections, const struct rejection_key *key)
{
	const struct entry *set = &rejections->entries[set_of(key)];

	for (unsigned i = 0; i < WAYS; i++) {
		if (is_of(&set[i], key))
			return (struct entry *)(uintptr_t)&set[i];
	}
	return NULL;
}

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

/* ---- keeping ---- */

static void
put_point(struct part *part, const struct point *point)
{
	struct point *place = &part->points[0];

	for (unsigned i = 0; i < part->count; i++) {
		if (part->points[i].cost < place->cost)
			place = &part->points[i];
		if (part->points[i].cost == point->cost) {
			part->points[i] = *point;
			return;
		}
	}
	/* If there is none left, the smallest: Redis was asked since the cost was smaller still. */
	if (part->count < REJECTION_COSTS)
		place = &part->points[part->count++];
	*place = *point;
}

/*
 * What was known of costs for which there is still no room goes on to count, since everything that
 * was used meanwhile made it last longer. Of another second it is only the smallest cost, so that
 * Redis is asked anew about the others, and they are told what is right.
 */
static void
weed(struct part *part, uint64_t remaining, bool is_of_this_second, int64_t now_us)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < part->count; i++) {
		const struct point point = part->points[i];

		if (point.cost <= remaining || point.until_us <= now_us)
			continue;
		if (is_of_this_second || kept == 0)
			part->points[kept++] = point;
		else if (point.cost < part->points[0].cost)
			part->points[0] = point;
	}
	part->count = kept;
}

static void
part_keep(
	struct part *part, const struct outcome *outcome, uint64_t cost, const struct entry *entry)
{
	const int64_t answered_us = entry->answered_us;
	const int64_t wait_us = outcome->violated ? outcome->retry_us : outcome->more_us;
	struct point point = {
		.cost = outcome->violated ? cost : outcome->remaining + 1,
		.until_us = answered_us - entry->way_us + wait_us,
		.pass_us = answered_us + wait_us,
	};

	part->remaining = outcome->remaining;
	part->full_us = answered_us + outcome->reset_us;
	if (outcome->policy->algorithm == POLICY_CALENDAR)
		point.cost = outcome->remaining + 1;
	/* Of what never passes the burst tells. */
	if (wait_us > 0)
		put_point(part, &point);
}

/* Its own, or the one that ends first. */
static struct entry *
place_for(struct rejections *rejections, const struct rejection_key *key)
{
	struct entry *set = &rejections->entries[set_of(key)], *place = set;

	for (unsigned i = 0; i < WAYS; i++) {
		if (is_of(&set[i], key))
			return &set[i];
		if (set[i].until_us < place->until_us)
			place = &set[i];
	}
	*place = (struct entry){
		.bucket = key->bucket, .generation = key->generation, .limit = key->item->limit
	};
	return place;
}

/* What is left of the limit, by all of its policies. */
static uint64_t
left_of(const struct limit *limit, const struct outcome *outcomes)
{
	uint64_t left = UINT64_MAX;

	for (unsigned i = 0; i < limit->policy_count; i++)
		left = outcomes[i].remaining < left ? outcomes[i].remaining : left;
	return left;
}

static bool
is_violated(const struct limit *limit, const struct outcome *outcomes)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (outcomes[i].violated)
			return true;
	}
	return false;
}

void
rejections_keep(struct rejections *rejections, const struct rejection_key *key,
	const struct outcome *outcomes, uint64_t cost, int64_t sent_us, int64_t answered_us,
	int64_t store_us)
{
	const struct limit *limit = key->item->limit;
	const bool violated = is_violated(limit, outcomes);
	const uint64_t left = left_of(limit, outcomes);
	struct entry *entry = rejections_entry(rejections, key);

	if (entry == NULL) {
		if (!violated && left > 0)
			return;
		entry = place_for(rejections, key);
	}
	const bool is_of_this_second = entry->until_us > answered_us;

	entry->until_us = violated || left == 0 ? sent_us + REJECTION_MAX_US : answered_us;
	entry->way_us = answered_us - sent_us;
	entry->answered_us = answered_us;
	entry->store_us = store_us;
	/* While others ask, what they take is not in what is left. */
	if (entry->asker == NULL)
		entry->left = left;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		/* What was admitted has made the waits of larger costs longer than is known. */
		if (violated)
			weed(&entry->parts[i], outcomes[i].remaining, is_of_this_second,
				answered_us);
		else
			entry->parts[i].count = 0;
		part_keep(&entry->parts[i], &outcomes[i], cost, entry);
	}
}
