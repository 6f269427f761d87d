/*
 * A table of sets of WAYS entries, the set chosen by the bucket's hash. An entry is good until its
 * time and never looked for otherwise, so nothing is ever taken out.
 */
#include "rejections.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, SETS = 1024 };

/* What Redis said of one policy. retry_us 0: it is not violated. */
struct part {
	uint64_t remaining;
	int64_t retry_us, more_us, reset_us;
};

struct entry {
	struct hash_wide bucket;
	uint64_t generation;
	const struct limit *limit;
	uint64_t cost; /* rejected, as all that cost more */
	int64_t until_us; /* monotonic, as answered_us; 0: never used */
	int64_t answered_us;
	int64_t store_us;
	void *asker;
	struct part parts[LIMIT_POLICIES_MAX];
};

_Static_assert(sizeof(struct entry) * WAYS * SETS <= 1400000, "as the header says");

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

static struct entry *
entry_of(const struct rejections *rejections, const struct rejection_key *key)
{
	const struct entry *set = &rejections->entries[set_of(key)];

	for (unsigned i = 0; i < WAYS; i++) {
		if (is_of(&set[i], key))
			return (struct entry *)(uintptr_t)&set[i];
	}
	return NULL;
}

/* ---- finding ---- */

static const struct entry *
find(const struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us)
{
	const struct entry *entry = entry_of(rejections, key);

	if (entry == NULL || entry->until_us <= now_us)
		return NULL;
	const bool fits = key->item->limit->is_plain ? cost >= entry->cost : cost == entry->cost;

	return fits ? entry : NULL;
}

static bool
is_beyond(const struct policy *policy, int64_t debt_us, uint64_t cost)
{
	return cost > policy->burst ||
		debt_us > policy->capacity_us - (int64_t)cost * policy->interval_us;
}

static int64_t
later(int64_t us, int64_t passed_us, int64_t least_us)
{
	return us - passed_us > least_us ? us - passed_us : least_us;
}

/* A bucket's debt is all that there is to know of it. */
static void
set_plain(struct outcome *outcome, const struct check_item *item, const struct policy *policy,
	const struct part *part, uint64_t cost, int64_t passed_us)
{
	const int64_t debt = later(part->reset_us, passed_us, 0);

	outcome_set(outcome, item, policy, debt, cost, is_beyond(policy, debt, cost));
}

/* What remains may have become more; it is told when Redis is asked the next time. */
static void
set_moved(struct outcome *outcome, const struct check_item *item, const struct policy *policy,
	const struct part *part, int64_t passed_us)
{
	*outcome = (struct outcome){
		.limit = item->limit,
		.policy = policy,
		.violated = part->retry_us != 0,
		.remaining = part->remaining,
		.retry_us =
			part->retry_us > 0 ? later(part->retry_us, passed_us, 1) : part->retry_us,
		.more_us = part->more_us > 0 ? later(part->more_us, passed_us, 1) : 0,
		.reset_us = later(part->reset_us, passed_us, 0),
	};
}

bool
rejections_find(const struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us, struct decision *decision)
{
	const struct entry *entry = find(rejections, key, cost, now_us);
	const struct limit *limit = key->item->limit;
	bool violated = false;

	if (entry == NULL || decision->count + limit->policy_count > CHECK_POLICIES_MAX)
		return false;
	const int64_t passed = later(now_us, entry->answered_us, 0);

	for (unsigned i = 0; i < limit->policy_count; i++) {
		struct outcome *outcome = &decision->outcomes[decision->count + i];

		if (limit->is_plain)
			set_plain(outcome, key->item, &limit->policies[i], &entry->parts[i], cost,
				passed);
		else
			set_moved(
				outcome, key->item, &limit->policies[i], &entry->parts[i], passed);
		violated = violated || outcome->violated;
	}
	if (!violated)
		return false;
	decision->verdict = VERDICT_REJECTED;
	decision->now_us = entry->store_us + passed;
	decision->count += limit->policy_count;
	return true;
}

/* ---- keeping ---- */

/* For how long the policy rejects the cost; 0: it does not. */
static int64_t
rejects_for(const struct outcome *outcome, uint64_t cost)
{
	if (outcome->violated)
		return outcome->retry_us < 0 || outcome->retry_us > REJECTION_MAX_US
			? REJECTION_MAX_US
			: outcome->retry_us;
	if (outcome->remaining >= cost)
		return 0;
	return outcome->more_us > REJECTION_MAX_US ? REJECTION_MAX_US : outcome->more_us;
}

static struct part
part_of(const struct outcome *outcome, uint64_t cost)
{
	const bool is_empty = !outcome->violated && outcome->remaining < cost;

	return (struct part){
		.remaining = outcome->remaining,
		.retry_us = is_empty ? outcome->more_us : outcome->retry_us,
		.more_us = outcome->more_us,
		.reset_us = outcome->reset_us,
	};
}

/* Its own, or the one that ends first. NULL: what is known rejects more. */
static struct entry *
place_for(struct rejections *rejections, const struct rejection_key *key, uint64_t cost,
	int64_t now_us)
{
	struct entry *set = &rejections->entries[set_of(key)], *place = set;

	for (unsigned i = 0; i < WAYS; i++) {
		if (is_of(&set[i], key))
			return set[i].until_us > now_us && set[i].cost < cost ? NULL : &set[i];
		if (set[i].until_us < place->until_us)
			place = &set[i];
	}
	return place;
}

void
rejections_keep(struct rejections *rejections, const struct rejection_key *key,
	const struct outcome *outcomes, uint64_t cost, int64_t sent_us, int64_t answered_us,
	int64_t store_us)
{
	const struct limit *limit = key->item->limit;
	bool violated = false;
	int64_t longest = 0;

	for (unsigned i = 0; i < limit->policy_count; i++)
		violated = violated || outcomes[i].violated;
	/* What was admitted may have left no room even for one. */
	if (!violated)
		cost = 1;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const int64_t us = rejects_for(&outcomes[i], cost);

		longest = us > longest ? us : longest;
	}
	const int64_t until = sent_us + longest;

	/* What was admitted has made the wait of larger costs longer than it is known. */
	if (!violated && entry_of(rejections, key) != NULL)
		entry_of(rejections, key)->until_us = 0;
	if (until <= answered_us)
		return;
	struct entry *entry = place_for(rejections, key, cost, answered_us);

	if (entry == NULL)
		return;
	*entry = (struct entry){
		.bucket = key->bucket,
		.generation = key->generation,
		.limit = limit,
		.cost = cost,
		.until_us = until,
		.answered_us = answered_us,
		.store_us = store_us,
	};
	for (unsigned i = 0; i < limit->policy_count; i++)
		entry->parts[i] = part_of(&outcomes[i], cost);
}

/* ---- who asks ---- */

/* For as long as a flood would make it known again. */
static bool
has_just_ended(const struct entry *entry, int64_t now_us)
{
	return entry->until_us <= now_us && now_us - entry->until_us < REJECTION_MAX_US;
}

void *
rejections_asker(
	const struct rejections *rejections, const struct rejection_key *key, int64_t now_us)
{
	const struct entry *entry = entry_of(rejections, key);

	return entry != NULL && has_just_ended(entry, now_us) ? entry->asker : NULL;
}

void
rejections_set_asker(
	struct rejections *rejections, const struct rejection_key *key, int64_t now_us, void *asker)
{
	struct entry *entry = entry_of(rejections, key);

	if (entry != NULL && has_just_ended(entry, now_us))
		entry->asker = asker;
}

void
rejections_unset_asker(
	struct rejections *rejections, const struct rejection_key *key, const void *asker)
{
	struct entry *entry = entry_of(rejections, key);

	if (entry != NULL && entry->asker == asker)
		entry->asker = NULL;
}
