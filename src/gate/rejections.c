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
