/* The interface of what keeps buckets: memory, Redis, or what tests put in their place. */
#ifndef WEIR_STORE_H
#define WEIR_STORE_H

#include "weir/decision.h"

struct store {
	const char *name; /* a label: "memory", "redis" */
	void (*decide)(struct store *store, struct check *check);
	void (*cancel)(struct store *store, struct check *check);
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

#endif
