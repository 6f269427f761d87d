/*
 * The memory of one request: taken piece by piece, given back at once. Never hands out more than
 * its maximum, and takes about twice that from the system at the most, so a peer cannot make a
 * request large.
 */
#ifndef WEIR_ARENA_H
#define WEIR_ARENA_H

#include "weir/err.h"
#include "weir/slice.h"

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* the newest first */
	size_t used; /* bytes handed out, each piece rounded up to the alignment */
	size_t max;
};

void arena_init(struct arena *arena, size_t max);
void arena_release(struct arena *arena);

/* Aligned for any type. NULL beyond the maximum or when memory is out. */
void *arena_alloc(struct arena *arena, size_t size) WEIR_MUST_CHECK;

/* A terminated copy. NULL likewise. */
char *arena_text(struct arena *arena, struct slice s) WEIR_MUST_CHECK;
char *arena_printf(struct arena *arena, const char *format, ...) WEIR_PRINTF(2, 3) WEIR_MUST_CHECK;

#endif
