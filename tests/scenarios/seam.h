/*
 * Where scenarios reach into the gate: the program is linked such that the clocks, the choice of a
 * shard, and the places where a request is asked about, passed on and over are ours first
 * (-Wl,--wrap). All else is the gate as it is.
 *
 * The gate runs on a loop's thread of its own, and the scenario in another one.
 */
#ifndef WEIR_TESTS_SCENARIOS_SEAM_H
#define WEIR_TESTS_SCENARIOS_SEAM_H

#include "weir/decision.h"
#include "weir/snapshot.h"

enum { SEEN_KEYS_MAX = 2 * CHECK_LIMITS_MAX, SEEN_KEY_MAX = 512 };

/* What became of a request. */
struct seen {
	void *held; /* it holds a lease, and is kept where it would be passed on; else NULL */
	bool is_over;
	bool would; /* something that is only counted would have kept it from passing */
	bool has_decision;
	struct decision decision;
	unsigned key_count;
	char keys[SEEN_KEYS_MAX][SEEN_KEY_MAX]; /* of its buckets, and of those for overflow */
};

/* From now on the clocks are the scenario's; seam_close: the host's again. */
void seam_open(void);
void seam_close(void);

/* Both clocks stand still until they are set. This one is since 1970. */
void seam_set_now(int64_t now_us);

/* The next request is about to be sent. */
void seam_begin(unsigned shard);

/* What was seen of it by now. */
struct seen seam_look(void);

/* Lets a request go that was held. On the loop's thread. */
void seam_let_go(void *held);

#endif
