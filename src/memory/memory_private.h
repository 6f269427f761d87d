/* The mapped header and what a process knows of it. Private to the room. */
#ifndef WEIR_MEMORY_PRIVATE_H
#define WEIR_MEMORY_PRIVATE_H

#include "cells.h"

#include <stdalign.h>
#include <sys/types.h>

enum { HEADER_SIZE = 4096 + MEMORY_AREA_SIZE, MAGIC_SIZE = 8, STRIPES_MAX = 256 };

struct memory_layout {
	uint64_t size;
	uint32_t stripe_count, chain_count, cell_count;
	uint64_t stripe_size;
	uint8_t hash_key[HASH_KEY_SIZE]; /* so that nobody can make keys that meet in one chain */
};

struct memory_header {
	char magic[MAGIC_SIZE];
	struct memory_layout layout;
	alignas(64) uint8_t area[MEMORY_AREA_SIZE];
};

struct memory {
	struct store store;
	struct memory_header *header;
	uint64_t mapped;
	struct memory_layout layout; /* the header's, which may be written over while we run */
	char *path; /* of the file, our own copy; NULL: memory of this process */
	dev_t device; /* and the file that it was */
	ino_t inode;
	_Atomic bool stuck[STRIPES_MAX]; /* a lock that was waited for in vain (locks.c) */
	alignas(16) uint8_t process_area[MEMORY_AREA_SIZE];
	struct memory_counters {
		bool are_found;
		counter_cell latency;
		counter_cell failures[UNAVAILABLE_REASONS];
	} counters;
};

extern const char memory_magic[MAGIC_SIZE];

struct memory *memory_new(struct err *err) WEIR_MUST_CHECK;

/* `fd` -1: memory of this process. */
int memory_map(struct memory *memory, int fd, uint64_t size, struct err *err) WEIR_MUST_CHECK;
void memory_unmap(struct memory *memory);

/* Makes zeroed memory an empty one; the magic is written last. */
int memory_format(struct memory *memory, uint64_t size, struct err *err) WEIR_MUST_CHECK;

/* Takes what is mapped for ours if it is whole and of this layout. */
bool memory_adopt(struct memory *memory);

/* Makes the locks and the area anew, and all else suspect; the buckets stay. While nobody else uses
 * it. */
int memory_revive(struct memory *memory, struct err *err) WEIR_MUST_CHECK;

/* The stripe that a key belongs to. */
struct stripe_view memory_stripe(const struct memory *memory, const struct hash_wide *key);
struct stripe_view memory_stripe_at(const struct memory *memory, uint32_t index);

/* ---- store.c ---- */

void memory_store_init(struct memory *memory);

#endif
