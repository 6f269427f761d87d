/* The buckets of a check while it is decided. Private to the room. */
#ifndef WEIR_MEMORY_DESK_H
#define WEIR_MEMORY_DESK_H

#include "cells.h"

/* One bucket on its way through a check. */
struct work {
	struct hash_wide key;
	struct stripe_view view;
	const struct cell *head; /* of its entry, once the stripe is locked; NULL: there is none */
};

enum { DESK_WORDS_FEW = 1024 };

/* The words of the buckets, as they are stored and room to change them, and one run to pack any of
 * them into. */
struct desk {
	int64_t few[DESK_WORDS_FEW];
	int64_t *words; /* `few`, or from the heap */
	size_t used;
	int64_t *packed;
};

/* For these buckets; -1: no memory. */
int desk_open(struct desk *desk, const struct check_item *items, const struct work *works,
	unsigned count) WEIR_MUST_CHECK;
void desk_close(struct desk *desk);

/* Each bucket once, in any order. */
void desk_load(struct desk *desk, const struct work *work, const struct limit *limit,
	struct bucket *bucket);
void desk_save(const struct desk *desk, const struct work *work, const struct bucket *bucket,
	int64_t now_us);

#endif
