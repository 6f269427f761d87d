/*
 * The mapped memory and its parts. Private to the room.
 *
 * One page of header, then stripes of equal size. A stripe has a lock, a table of chains and an
 * array of cells. An entry is a head cell and, if its state is longer, further cells; a bucket of
 * up to two policies fits the head. All links are numbers of cells within the stripe, so every
 * process may map the file where it likes.
 */
#ifndef WEIR_MEMORY_CELLS_H
#define WEIR_MEMORY_CELLS_H

#include "weir/hash.h"
#include "weir/memory.h"

#include <pthread.h>
#include <stdint.h>

enum {
	CELL_SIZE = 128,
	CELL_NONE = 0, /* cell 0 of a stripe holds the stripe itself, so no link means it */
	HEAD_BYTES = CELL_SIZE - 40,
	MORE_BYTES = CELL_SIZE - 16,
	STATE_MAX = BUCKET_PACKED_MAX * (int)sizeof(int64_t), /* bytes of state in an entry */
};

_Static_assert(STATE_MAX <= UINT16_MAX, "a cell can tell the length of any state");

enum cell_kind { CELL_FREE, CELL_HEAD, CELL_MORE };

struct cell {
	uint32_t next; /* of a chain, or of the free list */
	uint32_t more; /* the entry's next cell */
	uint8_t kind;
	uint8_t is_claimed; /* only while a stripe is repaired */
	uint16_t len; /* of the state; in a head */
	uint32_t unused;
	union {
		struct {
			struct hash_wide key;
			int64_t worthless_at_us; /* from then on the state says nothing */
			uint8_t bytes[HEAD_BYTES];
		} head;
		uint8_t bytes[MORE_BYTES];
	} u;
};

_Static_assert(sizeof(struct cell) == CELL_SIZE, "a cell is two cache lines");

struct stripe {
	pthread_mutex_t lock; /* robust, shared by processes */
	uint32_t free; /* first of the free list */
	uint32_t hand; /* where the search for room goes on */
	uint32_t is_suspect; /* to be repaired by whoever locks it next */
};

_Static_assert(sizeof(struct stripe) <= CELL_SIZE, "a stripe's own part fits its first cell");

/* What one stripe consists of, in this mapping. */
struct stripe_view {
	struct stripe *stripe;
	uint32_t *chains;
	uint32_t chain_count; /* a power of two */
	struct cell *cells; /* [0] is not one */
	uint32_t cell_count;
	uint32_t index; /* of the stripe in the memory */
};

/* Makes an empty stripe of zeroed memory, or makes one whole again, whatever its bytes are: one
 * that a process died in, or that was written over. */
void stripe_init(const struct stripe_view *view);
void stripe_repair(const struct stripe_view *view);

/* The entry's head, or NULL. All of its cells are there; for that the stripe may be repaired. */
struct cell *stripe_find(const struct stripe_view *view, const struct hash_wide *key);

/* Copies the state out; returns its length. `out` has room for STATE_MAX bytes. */
size_t stripe_read(const struct stripe_view *view, const struct cell *head, uint8_t *out);

/*
 * Stores a state of `len` bytes, at most STATE_MAX, in place of the one that is there. When the
 * stripe is full, an entry that is worthless at now_us gives way, or else of a few the one that is
 * worthless first; *evicted counts the latter.
 */
void stripe_write(const struct stripe_view *view, const struct hash_wide *key, const uint8_t *bytes,
	size_t len, int64_t worthless_at_us, int64_t now_us, unsigned *evicted);

/* ---- for repairing ---- */

/* Whether it is one of its cells. */
static inline bool
stripe_has(const struct stripe_view *view, uint32_t index)
{
	return index != CELL_NONE && index < view->cell_count;
}

/* The chain of a key. */
uint32_t *stripe_chain(const struct stripe_view *view, const struct hash_wide *key);

/* Puts a cell into the free list. */
void stripe_release(const struct stripe_view *view, uint32_t index);

/* As stripe_find, and tells a chain or an entry that cannot be followed. */
struct cell *
stripe_look_up(const struct stripe_view *view, const struct hash_wide *key, bool *is_broken);

#endif
