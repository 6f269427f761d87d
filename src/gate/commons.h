/* What the gates of a process have in common. Private to the room. */
#ifndef WEIR_GATE_COMMONS_H
#define WEIR_GATE_COMMONS_H

#include "identities.h"
#include "weir/gate.h"

/* The buckets of local_cap, at most CAPS_SIZE bytes, made when they are first asked for. NULL: they
 * cannot be made. */
enum { CAPS_SIZE = 4 * 1024 * 1024 };
struct store *commons_caps(struct gate_commons *commons, struct err *err) WEIR_MUST_CHECK;

/* Those of the limit of this name, the same after a reload. NULL: no memory. */
struct identities *commons_identities(
	struct gate_commons *commons, const char *limit, counter_cell gauge) WEIR_MUST_CHECK;

/* Of a bucket's key, the same on all threads, and so that no client can make two that meet. */
struct hash_wide commons_hash(const struct gate_commons *commons, struct slice key);

#endif
