/* A trip, and its items. Private to cluster_trip.c and cluster_items.c. */
#ifndef WEIR_CLUSTER_TRIP_PRIVATE_H
#define WEIR_CLUSTER_TRIP_PRIVATE_H

#include "cluster_private.h"

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

/* Of a set of items. */
static inline bool
trip_has(unsigned bits, unsigned i)
{
	return (bits >> i & 1) != 0;
}

/* ---- cluster_items.c, of item i of the check ---- */

/* The one that it is decided on, as far as is known. */
struct slice trip_key(const struct trip *trip, unsigned i);
unsigned trip_slot(const struct trip *trip, unsigned i);

/* It is to be seen first whether its bucket is there. */
bool trip_is_to_peek(const struct trip *trip, unsigned i);

/* Of its policies, in the trip's decision. */
struct outcome *trip_outcomes(struct trip *trip, unsigned i);

/* The part was admitted, by this decision: its items are taken. */
void trip_note_takings(struct trip *trip, const struct decision *decision);

/* All that were taken are put back, where that may be. */
void trip_give_back(struct trip *trip);

#endif
