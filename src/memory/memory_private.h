/* The mapped header and what a process knows of it. Private to the room. */
#ifndef WEIR_MEMORY_PRIVATE_H
#define WEIR_MEMORY_PRIVATE_H

#include "cells.h"

#include <stdalign.h>

enum { HEADER_SIZE = 4096 };

struct memory_header {
	char magic[8];
	uint64_t size;
	uint32_t stripe_count, chain_count, cell_count;
	uint64_t stripe_size;
	uint8_t hash_key[HASH_KEY_SIZE]; /* so that nobody can make keys that meet in one chain */
	alignas(64) uint8_t area[MEMORY_AREA_SIZE];
};

struct memory {
	struct store store;
	struct memory_header *header;
	uint64_t mapped;
};

/* The stripe that a key belongs to. */
struct stripe_view memory_stripe(const struct memory *memory, const struct hash_wide *key);
struct stripe_view memory_stripe_at(const struct memory *memory, uint32_t index);

/* ---- store.c ---- */

void memory_store_init(struct memory *memory);

#endif
