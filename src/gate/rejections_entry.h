/* An entry of the rejection cache. Private to its files. */
#ifndef WEIR_GATE_REJECTIONS_ENTRY_H
#define WEIR_GATE_REJECTIONS_ENTRY_H

#include "rejections.h"

/* A cost that a policy rejects, as all that are larger. Times are monotonic. */
struct point {
	uint64_t cost;
	int64_t until_us; /* so long for sure */
	int64_t pass_us; /* and then it passes for sure, if nobody else comes */
};

/* What Redis said of one policy. */
struct part {
	uint64_t remaining;
	int64_t full_us; /* when it is full for sure, if nobody comes */
	unsigned count;
	struct point
		points[REJECTION_COSTS]; /* not of token buckets, which the debt tells all of */
};

struct entry {
	struct hash_wide bucket;
	uint64_t generation;
	const struct limit *limit;
	int64_t until_us; /* what it says counts so long; 0: never used */
	int64_t way_us; /* how long the check and its answer were under way */
	int64_t answered_us, store_us;
	void *asker; /* the last one, if somebody asks */
	uint64_t left; /* tokens that Redis was heard to have, without those of who asks */
	struct part parts[LIMIT_POLICIES_MAX];
};

struct entry *
rejections_entry(const struct rejections *rejections, const struct rejection_key *key);

/* The wait until a cost passes, which is not beyond the burst, by what is known at least and at the
 * most. */
struct wait {
	int64_t least_us, most_us; /* 0 or less: it has passed */
	bool is_exact; /* the two differ by the way to Redis only */
};

struct wait part_wait(const struct entry *entry, unsigned policy, uint64_t cost, int64_t now_us);

#endif
