/*
 * A check whose keys are in several slots, decided slot by slot in the order of its items, each
 * time as one call. It is all or nothing as any check: when a slot rejects, what the slots before
 * it have spent is given back (lua/give_back.lua says when that cannot be), and what the other
 * policies would say is looked at, so that the answer names every one that is violated and waiting
 * as long as it says is enough.
 *
 *     taking --> admitted
 *        '-----> looking --> rejected
 *
 * Of an item that has a second key it is first seen whether the bucket of the first one is there.
 *
 * A trip is there from its start until the check is answered or cancelled. The part that is asked
 * now is a check of its own inside the trip; its answer may come from within the asking.
 */
#include "cluster_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* How an item's part was taken, for giving it back. */
struct taking {
	const struct redis *redis; /* NULL: it was not */
	int64_t ready_since_us; /* of the connection */
	int64_t now_us; /* by its clock */
};

struct trip {
	struct redis *redis; /* NULL; where a call has its server, so that it is known from one */
	struct trip *next, **at; /* in the cluster's list */
	struct cluster *cluster;
	struct check *check; /* whose it is */
	struct check part;
	unsigned places[CHECK_LIMITS_MAX]; /* of the part's items among the check's */
	bool is_peeking; /* at the one item of the part */
	bool is_looking; /* it is rejected */
	bool by_key;
	unsigned settled; /* bit i: item i needs no more */
	unsigned peeked, overflowed; /* bit i: it is known whether its bucket is there; it is not */
	struct taking takings[CHECK_LIMITS_MAX];
	struct decision decision; /* the outcomes of all items in their places */
};

static void go_on(struct trip *trip);

static struct trip *
trip_of(struct check *part)
{
	return (struct trip *)((uintptr_t)part - offsetof(struct trip, part));
}

/* ---- items ---- */

static bool
has(unsigned bits, unsigned i)
{
	return (bits >> i & 1) != 0;
}

static struct slice
key_of(const struct trip *trip, unsigned i)
{
	const struct check_item *item = &trip->check->items[i];

	return has(trip->overflowed, i) ? item->overflow : item->key;
}

static bool
is_to_peek(const struct trip *trip, unsigned i)
{
	return trip->check->items[i].overflow.len > 0 && !has(trip->peeked, i);
}

static struct outcome *
outcomes_of(struct trip *trip, unsigned i)
{
	struct outcome *outcome = trip->decision.outcomes;

	for (unsigned before = 0; before < i; before++)
		outcome += trip->check->items[before].limit->policy_count;
	return outcome;
}

static unsigned
slot_of_item(const struct trip *trip, unsigned i)
{
	return cluster_slot(trip->cluster, key_of(trip, i));
}

/* ---- the end ---- */

static void
trip_free(struct trip *trip)
{
	*trip->at = trip->next;
	if (trip->next != NULL)
		trip->next->at = trip->at;
	free(trip);
}

static void
finish(struct trip *trip)
{
	const struct decision decision = trip->decision;
	struct check *check = trip->check;

	check->store_private = NULL;
	trip_free(trip);
	check->done(check, &decision);
}

/* Where the key is now there may be another server than the one that it was spent on. */
static void
give_back_item(struct trip *trip, unsigned i)
{
	const struct taking *taking = &trip->takings[i];
	struct check_item item = trip->check->items[i];
	struct redis *redis;

	if (taking->redis == NULL)
		return;
	item.key = key_of(trip, i);
	item.overflow = (struct slice){ NULL, 0 };
	if (item.limit->has_leases)
		store_release(&trip->cluster->store, &item, trip->check->lease);
	redis = nodes_of_slot(trip->cluster, slot_of_item(trip, i));
	if (redis != NULL && redis == taking->redis && redis->state == REDIS_READY &&
		redis->ready_since_us == taking->ready_since_us)
		leases_give_back(
			redis, &item, outcomes_of(trip, i), taking->now_us, trip->check->cost);
}

static void
give_back(struct trip *trip)
{
	for (unsigned i = 0; i < trip->check->count; i++) {
		give_back_item(trip, i);
		trip->takings[i].redis = NULL;
	}
}

/* Of a policy that could not be looked at nothing is known, so nothing is claimed. */
static void
fill_in(struct trip *trip)
{
	for (unsigned i = 0; i < trip->check->count; i++) {
		const struct check_item *item = &trip->check->items[i];

		for (unsigned j = 0; !has(trip->settled, i) && j < item->limit->policy_count; j++)
			outcome_set_numbers(
				&outcomes_of(trip, i)[j], item, &item->limit->policies[j], 0, 0, 0);
	}
}

static void
conclude(struct trip *trip)
{
	for (unsigned i = 0; i < trip->check->count; i++)
		trip->decision.count += trip->check->items[i].limit->policy_count;
	trip->decision.overflowed = trip->overflowed;
	trip->decision.verdict = trip->is_looking ? VERDICT_REJECTED : VERDICT_ADMITTED;
	finish(trip);
}

static void
fail(struct trip *trip, enum unavailable why)
{
	if (trip->is_looking) {
		fill_in(trip);
		conclude(trip);
		return;
	}
	give_back(trip);
	trip->decision = (struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why };
	finish(trip);
}

/* ---- one part ---- */

static void
keep_outcomes(struct trip *trip, const struct decision *decision)
{
	const struct outcome *from = decision->outcomes;

	for (unsigned i = 0; i < trip->part.count; i++) {
		const unsigned place = trip->places[i];
		const unsigned count = trip->part.items[i].limit->policy_count;

		memcpy(outcomes_of(trip, place), from, count * sizeof from[0]);
		from += count;
		trip->settled |= 1U << place;
	}
	trip->decision.now_us = decision->now_us;
	trip->decision.clamped = trip->decision.clamped || decision->clamped;
}

static void
note_takings(struct trip *trip, const struct decision *decision)
{
	const struct redis *redis =
		nodes_of_slot(trip->cluster, slot_of_item(trip, trip->places[0]));

	for (unsigned i = 0; redis != NULL && i < trip->part.count; i++)
		trip->takings[trip->places[i]] =
			(struct taking){ redis, redis->ready_since_us, decision->now_us };
}

/* What was spent is put back before it is looked at: over the same connection, if it is put back at
 * all. */
static void
turn_back(struct trip *trip)
{
	unsigned rejecting = 0;

	for (unsigned i = 0; i < trip->part.count; i++)
		rejecting |= 1U << trip->places[i];
	give_back(trip);
	trip->is_looking = true;
	trip->settled = rejecting;
}

static void
on_part(struct check *part, const struct decision *decision)
{
	struct trip *trip = trip_of(part);

	if (decision->verdict == VERDICT_UNAVAILABLE) {
		fail(trip, decision->why);
		return;
	}
	if (trip->is_peeking) {
		trip->peeked |= 1U << trip->places[0];
		if (decision->verdict == VERDICT_REJECTED)
			trip->overflowed |= 1U << trip->places[0];
	} else {
		keep_outcomes(trip, decision);
		if (!trip->is_looking && decision->verdict == VERDICT_ADMITTED)
			note_takings(trip, decision);
		else if (!trip->is_looking)
			turn_back(trip);
	}
	go_on(trip);
}

static void
add_to_part(struct trip *trip, unsigned i)
{
	struct check_item *item = &trip->part.items[trip->part.count];

	*item = trip->check->items[i];
	item->key = key_of(trip, i);
	item->overflow = (struct slice){ NULL, 0 };
	trip->places[trip->part.count++] = i;
}

/* The item and those behind it that are in its slot. */
static void
gather(struct trip *trip, unsigned first)
{
	const unsigned slot = slot_of_item(trip, first);

	add_to_part(trip, first);
	for (unsigned i = first + 1; !trip->by_key && i < trip->check->count; i++) {
		if (!has(trip->settled, i) && !is_to_peek(trip, i) && slot_of_item(trip, i) == slot)
			add_to_part(trip, i);
	}
}

static void
ask(struct trip *trip, unsigned first)
{
	struct redis *redis;

	trip->part.count = 0;
	trip->part.lease = trip->is_looking ? LEASE_LOOK : trip->check->lease;
	trip->is_peeking = is_to_peek(trip, first);
	if (trip->is_peeking) {
		trip->part.lease = LEASE_PEEK;
		add_to_part(trip, first);
	} else {
		gather(trip, first);
	}
	redis = nodes_of_slot(trip->cluster, slot_of_item(trip, first));
	if (redis == NULL)
		cluster_refuse(trip->cluster, &trip->part, UNAVAILABLE_OVERLOAD);
	else
		store_ask(redis, &trip->part);
}

static void
go_on(struct trip *trip)
{
	unsigned first = 0;

	while (first < trip->check->count && has(trip->settled, first))
		first++;
	if (first < trip->check->count)
		ask(trip, first);
	else
		conclude(trip);
}

/* ---- from outside ---- */

void
trip_start(struct cluster *cluster, struct check *check, bool by_key)
{
	struct trip *trip = calloc(1, sizeof *trip);

	if (trip == NULL) {
		cluster_refuse(cluster, check, UNAVAILABLE_OVERLOAD);
		return;
	}
	trip->cluster = cluster;
	trip->check = check;
	trip->by_key = by_key;
	trip->part = (struct check){ .cost = check->cost,
		.now_us = check->now_us,
		.deadline_us = check->deadline_us,
		.done = on_part };
	trip->next = cluster->trips;
	trip->at = &cluster->trips;
	if (trip->next != NULL)
		trip->next->at = &trip->next;
	cluster->trips = trip;
	check->store_private = trip;
	go_on(trip);
}

bool
trip_is_part(const struct check *check)
{
	return check->done == on_part;
}

void
trip_split(struct check *part)
{
	struct trip *trip = trip_of(part);

	trip->by_key = true;
	go_on(trip);
}

void
trip_cancel(struct trip *trip)
{
	struct redis *const *redis = trip->part.store_private;

	assert(redis != NULL && *redis != NULL);
	store_cancel(&(*redis)->store, &trip->part);
	trip->check->store_private = NULL;
	give_back(trip);
	trip_free(trip);
}

void
trips_free(struct cluster *cluster)
{
	while (cluster->trips != NULL)
		trip_free(cluster->trips);
}
