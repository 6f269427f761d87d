/*
 * A bump allocator over a list of chunks. Pieces are cut off the newest; a piece too large for a
 * chunk gets one of its own, behind the newest, whose room stays in use. So the memory taken is
 * at most about twice what was handed out.
 */
#include "weir/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CHUNK_SIZE = 4096 };

struct arena_chunk {
	struct arena_chunk *older;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

void
arena_init(struct arena *arena, size_t max)
{
	*arena = (struct arena){ .max = max };
}

void
arena_release(struct arena *arena)
{
	while (arena->chunks != NULL) {
		struct arena_chunk *chunk = arena->chunks;

		arena->chunks = chunk->older;
		free(chunk);
	}
	arena->used = 0;
}

static struct arena_chunk *
chunk_new(struct arena *arena, size_t size)
{
	const size_t usual = CHUNK_SIZE - sizeof(struct arena_chunk);
	const size_t room = size > usual ? size : usual;
	struct arena_chunk *chunk = malloc(sizeof *chunk + room);
	struct arena_chunk **place = &arena->chunks;

	if (chunk == NULL)
		return NULL;
	if (size > usual && arena->chunks != NULL)
		place = &arena->chunks->older;
	chunk->older = *place;
	chunk->used = 0;
	chunk->size = room;
	*place = chunk;
	return chunk;
}

void *
arena_alloc(struct arena *arena, size_t size)
{
	const size_t align = alignof(max_align_t);

	if (size > SIZE_MAX / 2)
		return NULL;
	/* Rounded before it is counted: else small pieces would hold many times the maximum. */
	const size_t rounded = (size + align - 1) / align * align;

	if (rounded > arena->max - arena->used)
		return NULL;
	struct arena_chunk *chunk = arena->chunks;

	if (chunk == NULL || rounded > chunk->size - chunk->used)
		chunk = chunk_new(arena, rounded);
	if (chunk == NULL)
		return NULL;
	void *piece = chunk->bytes + chunk->used;

	chunk->used += rounded;
	arena->used += rounded;
	return piece;
}

char *
arena_text(struct arena *arena, struct slice s)
{
	char *copy = arena_alloc(arena, s.len + 1);

	if (copy == NULL)
		return NULL;
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	copy[s.len] = '\0';
	return copy;
}

char *
arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int need = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = need < 0 ? NULL : arena_alloc(arena, (size_t)need + 1);

	if (text != NULL)
		(void)vsnprintf(text, (size_t)need + 1, format, again);
	va_end(again);
	return text;
}
