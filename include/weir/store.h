/* The interface of what keeps buckets: memory, Redis, or what tests put in their place. */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include "weir/decision.h"

struct store {
	const char *name; /* a label: "memory", "redis" */
	void (*decide)(struct store *store, struct check *check);
	void (*cancel)(struct store *store, struct check *check);
	void (*release)(struct store *store, const struct check_item *item, uint64_t lease);
	void (*renew)(struct store *store, const struct check_item *item, uint64_t lease);
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
 * Gives the lease back that item->limit's concurrent policies hold under item->key, or prolongs it
 * by lease_us from now, if it is there. No answer comes: what is lost ends with the lease. The item
 * is needed during the call only.
 *
 * A check that was answered UNAVAILABLE, or was cancelled, may have taken its lease all the same:
 * release it too; that follows the check on its way.
 */
static inline void
store_release(struct store *store, const struct check_item *item, uint64_t lease)
{
	store->release(store, item, lease);
}

static inline void
store_renew(struct store *store, const struct check_item *item, uint64_t lease)
{
	store->renew(store, item, lease);
}

#endif
