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
#include "cluster_trip_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void go_on(struct trip *trip);

static struct trip *
trip_of(struct check *part)
{
	return (struct trip *)((uintptr_t)part - offsetof(struct trip, part));
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

/* Of a policy that could not be looked at nothing is known, so nothing is claimed. */
static void
fill_in(struct trip *trip)
{
	for (unsigned i = 0; i < trip->check->count; i++) {
		const struct check_item *item = &trip->check->items[i];

		for (unsigned j = 0; !trip_has(trip->settled, i) && j < item->limit->policy_count;
			j++)
			outcome_set_numbers(&trip_outcomes(trip, i)[j], item,
				&item->limit->policies[j], 0, 0, 0);
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
	trip_give_back(trip);
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

		memcpy(trip_outcomes(trip, place), from, count * sizeof from[0]);
		from += count;
		trip->settled |= 1U << place;
	}
	trip->decision.now_us = decision->now_us;
	trip->decision.clamped = trip->decision.clamped || decision->clamped;
}

/* What was spent is put back before it is looked at: over the same connection, if it is put back at
 * all. */
static void
turn_back(struct trip *trip)
{
	unsigned rejecting = 0;

	for (unsigned i = 0; i < trip->part.count; i++)
		rejecting |= 1U << trip->places[i];
	trip_give_back(trip);
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
			trip_note_takings(trip, decision);
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
	item->key = trip_key(trip, i);
	item->overflow = (struct slice){ NULL, 0 };
	trip->places[trip->part.count++] = i;
}

/* The item and those behind it that are in its slot. */
static void
gather(struct trip *trip, unsigned first)
{
	const unsigned slot = trip_slot(trip, first);

	add_to_part(trip, first);
	for (unsigned i = first + 1; !trip->by_key && i < trip->check->count; i++) {
		if (!trip_has(trip->settled, i) && !trip_is_to_peek(trip, i) &&
			trip_slot(trip, i) == slot)
			add_to_part(trip, i);
	}
}

static void
ask(struct trip *trip, unsigned first)
{
	struct redis *redis;

	trip->part.count = 0;
	trip->part.lease = trip->is_looking ? LEASE_LOOK : trip->check->lease;
	trip->is_peeking = trip_is_to_peek(trip, first);
	if (trip->is_peeking) {
		trip->part.lease = LEASE_PEEK;
		add_to_part(trip, first);
	} else {
		gather(trip, first);
	}
	redis = nodes_of_slot(trip->cluster, trip_slot(trip, first));
	if (redis == NULL)
		cluster_refuse(trip->cluster, &trip->part, UNAVAILABLE_OVERLOAD);
	else
		store_ask(redis, &trip->part);
}

static void
go_on(struct trip *trip)
{
	unsigned first = 0;

	while (first < trip->check->count && trip_has(trip->settled, first))
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
	trip_give_back(trip);
	trip_free(trip);
}

void
trips_free(struct cluster *cluster)
{
	while (cluster->trips != NULL)
		trip_free(cluster->trips);
}
