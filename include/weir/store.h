/* The interface of what keeps buckets: memory, Redis, or what tests put in their place. */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include "weir/decision.h"

struct store {
	const char *name; /* a label: "memory", "redis" */
	void (*decide)(struct store *store, struct check *check);
	void (*cancel)(struct store *store, struct check *check);
	void (*release)(struct store *store, const struct check_item *item, uint64_t lease);
	bool (*renew)(struct store *store, const struct check_item *item, uint64_t lease);
	unsigned (*kept)(const struct store *store); /* NULL: it never keeps any */
};

/* Calls check->done with the decision, now or later, but by check->deadline_us. */
static inline void
store_decide(struct store *store, struct check *check)
{
	store->decide(store, check);
}

/* No call comes any more; what is under way may still be spent. Only between store_decide and
 * `done`. */
static inline void
store_cancel(struct store *store, struct check *check)
{
	store->cancel(store, check);
}

/*
 * Gives the lease back that item->limit's concurrent policies hold under item->key, or under
 * item->overflow if it stands there; nothing if it is not there. No answer comes. The item is
 * needed during the call only.
 *
 * A store that is away keeps it until it is back, or the lease is over: bounded, and as long as the
 * store lives (store_kept). What is not given back is taken until the lease ends, and counted
 * (COUNT_LEASES_LEFT).
 *
 * A check that was answered UNAVAILABLE, or was cancelled, may have taken its lease all the same:
 * release it too; it is given back behind the check on its way.
 */
static inline void
store_release(struct store *store, const struct check_item *item, uint64_t lease)
{
	store->release(store, item, lease);
}

/*
 * Prolongs the lease under item->key to lease_us from now, if it is there. True: the store was
 * told. False: it is away, or busy, and nothing is kept: try again soon. A lease that has ended
 * meanwhile is not taken anew, so its place may be another's: that is counted (COUNT_LEASES_LOST).
 */
static inline bool
store_renew(struct store *store, const struct check_item *item, uint64_t lease)
{
	return store->renew(store, item, lease);
}

/* How many leases wait to be given back until the store is no longer away. Those that still do when
 * it is freed are lost, and it says so in the log. */
static inline unsigned
store_kept(const struct store *store)
{
	return store->kept == NULL ? 0 : store->kept(store);
}

#endif
