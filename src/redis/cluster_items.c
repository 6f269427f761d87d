/*
 * What a trip knows of its items: which key each is decided on, where its outcomes stand, and how
 * it was taken. What was taken is given back over the connection that it was taken over, or not at
 * all; a lease is known by its name and is given back wherever it is.
 */
#include "cluster_trip_private.h"

struct slice
trip_key(const struct trip *trip, unsigned i)
{
	const struct check_item *item = &trip->check->items[i];

	return trip_has(trip->overflowed, i) ? item->overflow : item->key;
}

bool
trip_is_to_peek(const struct trip *trip, unsigned i)
{
	return trip->check->items[i].overflow.len > 0 && !trip_has(trip->peeked, i);
}

struct outcome *
trip_outcomes(struct trip *trip, unsigned i)
{
	struct outcome *outcome = trip->decision.outcomes;

	for (unsigned before = 0; before < i; before++)
		outcome += trip->check->items[before].limit->policy_count;
	return outcome;
}

unsigned
trip_slot(const struct trip *trip, unsigned i)
{
	return cluster_slot(trip->cluster, trip_key(trip, i));
}

/* ---- what was taken ---- */

/* Where the key is now there may be another server than the one that it was spent on. */
static void
give_back_item(struct trip *trip, unsigned i)
{
	const struct taking *taking = &trip->takings[i];
	struct check_item item = trip->check->items[i];
	struct redis *redis;

	if (taking->redis == NULL)
		return;
	item.key = trip_key(trip, i);
	item.overflow = (struct slice){ NULL, 0 };
	if (item.limit->has_leases)
		store_release(&trip->cluster->store, &item, trip->check->lease);
	redis = nodes_of_slot(trip->cluster, trip_slot(trip, i));
	if (redis != NULL && redis == taking->redis && redis->state == REDIS_READY &&
		redis->ready_since_us == taking->ready_since_us)
		leases_give_back(
			redis, &item, trip_outcomes(trip, i), taking->now_us, trip->check->cost);
}

void
trip_give_back(struct trip *trip)
{
	for (unsigned i = 0; i < trip->check->count; i++) {
		give_back_item(trip, i);
		trip->takings[i].redis = NULL;
	}
}

void
trip_note_takings(struct trip *trip, const struct decision *decision)
{
	const struct redis *redis = nodes_of_slot(trip->cluster, trip_slot(trip, trip->places[0]));

	for (unsigned i = 0; redis != NULL && i < trip->part.count; i++)
		trip->takings[trip->places[i]] =
			(struct taking){ redis, redis->ready_since_us, decision->now_us };
}
