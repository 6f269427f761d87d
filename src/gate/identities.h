/*
 * The identities of one limit that this process has made buckets for in Redis, so that no more than
 * max_identities are made at a time. Bounded by that number, and allocated as it grows: 21 to 43
 * bytes for each identity, and never given back. Private to the room; any thread may use it.
 *
 * An identity is kept by 64 bits of a keyed hash, with the time from which its bucket says nothing
 * and Redis drops it. Two that share the 64 bits count as one: then one bucket more is made.
 */
#ifndef WEIR_GATE_IDENTITIES_H
#define WEIR_GATE_IDENTITIES_H

#include "weir/counter.h"
#include "weir/err.h"

#include <stdint.h>

struct identities;

/* `gauge` tells how many there are. NULL: no memory. */
struct identities *identities_new(counter_cell gauge) WEIR_MUST_CHECK;
void identities_free(struct identities *identities);

/*
 * Whether a bucket may be made, or is there: true if the identity is known, or fewer than `max`
 * are, and then it is until until_us at least. Times are monotonic.
 */
bool identities_take(struct identities *identities, uint64_t identity, uint64_t max, int64_t now_us,
	int64_t until_us) WEIR_MUST_CHECK;

/* The bucket is there until until_us at least, whatever the maximum is. */
void
identities_keep(struct identities *identities, uint64_t identity, int64_t now_us, int64_t until_us);

/* The bucket is gone. */
void identities_forget(struct identities *identities, uint64_t identity);

/* Including those whose time is over and that were not yet come across. */
uint64_t identities_count(const struct identities *identities);

#endif
