/*
 * The memory: its header and its stripes. Where it lies is file.c's, or it is this process's own.
 *
 * A file may outlive all who used it, and on a disk also the system. Its buckets are good then, but
 * not its locks, nor what holds monotonic times (the area), and power may have failed while it was
 * written: whoever is alone on it makes all of that anew, and has each stripe repaired when it is
 * used first, since that takes a while for all of a large file.
 */
#include "memory_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Changes with every change of the layout. */
const char memory_magic[MAGIC_SIZE] = "weirm05";

/* As many as there may be for a stripe to hold the largest state several times over. */
enum { STRIPE_SIZE_MIN = 4 * STATE_MAX };

_Static_assert(MEMORY_SIZE_MIN >= HEADER_SIZE + 4 * STRIPE_SIZE_MIN, "there are some stripes");

_Static_assert(sizeof(struct memory_header) <= HEADER_SIZE, "the header fits its pages");

struct stripe_view
memory_stripe(const struct memory *memory, const struct hash_wide *key)
{
	uint32_t word;

	memcpy(&word, key->bytes, sizeof word);
	return memory_stripe_at(memory, word % memory->layout.stripe_count);
}

struct stripe_view
memory_stripe_at(const struct memory *memory, uint32_t index)
{
	const struct memory_layout *layout = &memory->layout;
	char *base = (char *)memory->header + HEADER_SIZE + (size_t)index * layout->stripe_size;
	const size_t chains_size = layout->chain_count * sizeof(uint32_t);

	return (struct stripe_view){
		.stripe = (struct stripe *)(void *)(base + chains_size),
		.chains = (uint32_t *)(void *)base,
		.chain_count = layout->chain_count,
		.cells = (struct cell *)(void *)(base + chains_size),
		.cell_count = layout->cell_count,
		.index = index,
	};
}

static void
lay_out(struct memory_layout *layout, uint64_t size)
{
	layout->size = size;
	layout->stripe_count = STRIPES_MAX;
	while ((size - HEADER_SIZE) / layout->stripe_count < STRIPE_SIZE_MIN)
		layout->stripe_count /= 2;
	const uint64_t stripe = (size - HEADER_SIZE) / layout->stripe_count / CELL_SIZE * CELL_SIZE;

	/* About one chain a cell: the largest power of two that leaves the cells 31 of 32 parts. */
	layout->chain_count = CELL_SIZE / sizeof(uint32_t);
	while (layout->chain_count * 2 * (uint64_t)CELL_SIZE <= stripe)
		layout->chain_count *= 2;
	layout->stripe_size = stripe;
	layout->cell_count =
		(uint32_t)((stripe - layout->chain_count * sizeof(uint32_t)) / CELL_SIZE);
}

static int
init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attributes;
	int result = pthread_mutexattr_init(&attributes);

	if (result != 0)
		return result;
	result = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (result == 0)
		result = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (result == 0)
		result = pthread_mutex_init(lock, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
	return result;
}

/* Which nobody holds. */
static int
make_locks(struct memory *memory, struct err *err)
{
	for (uint32_t i = 0; i < memory->layout.stripe_count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);
		const int error = init_lock(&view.stripe->lock);

		if (error != 0)
			return err_set(err, "shared locks cannot be made: %s", strerror(error));
	}
	return 0;
}

int
memory_format(struct memory *memory, uint64_t size, struct err *err)
{
	struct memory_header *header = memory->header;

	lay_out(&memory->layout, size);
	hash_random(memory->layout.hash_key, sizeof memory->layout.hash_key);
	header->layout = memory->layout;
	if (make_locks(memory, err) != 0)
		return -1;
	for (uint32_t i = 0; i < memory->layout.stripe_count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);

		stripe_init(&view);
	}
	memcpy(header->magic, memory_magic, sizeof header->magic);
	return 0;
}

int
memory_revive(struct memory *memory, struct err *err)
{
	if (make_locks(memory, err) != 0)
		return -1;
	for (uint32_t i = 0; i < memory->layout.stripe_count; i++)
		memory_stripe_at(memory, i).stripe->is_suspect = 1;
	memset(memory->header->area, 0, sizeof memory->header->area);
	return 0;
}

int
memory_map(struct memory *memory, int fd, uint64_t size, struct err *err)
{
	const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		return err_set(err, "%llu bytes cannot be mapped: %s", (unsigned long long)size,
			strerror(errno));
	memory->header = at;
	memory->mapped = size;
	return 0;
}

void
memory_unmap(struct memory *memory)
{
	if (memory->header != NULL)
		(void)munmap(memory->header, memory->mapped);
	memory->header = NULL;
}

bool
memory_adopt(struct memory *memory)
{
	const struct memory_layout found = memory->header->layout;
	struct memory_layout *expected = &memory->layout;

	if (memcmp(memory->header->magic, memory_magic, MAGIC_SIZE) != 0 ||
		found.size != memory->mapped)
		return false;
	lay_out(expected, memory->mapped);
	memcpy(expected->hash_key, found.hash_key, sizeof expected->hash_key);
	return found.stripe_count == expected->stripe_count &&
		found.stripe_size == expected->stripe_size &&
		found.chain_count == expected->chain_count &&
		found.cell_count == expected->cell_count;
}

struct memory *
memory_new(struct err *err)
{
	struct memory *memory = calloc(1, sizeof *memory);

	if (memory == NULL) {
		(void)err_set(err, "no memory");
		return NULL;
	}
	memory_store_init(memory);
	return memory;
}

struct memory *
memory_open_private(uint64_t size, struct err *err)
{
	struct memory *memory = memory_new(err);

	if (memory == NULL)
		return NULL;
	if (memory_map(memory, -1, size, err) != 0 || memory_format(memory, size, err) != 0) {
		memory_close(memory);
		return NULL;
	}
	return memory;
}

void
memory_close(struct memory *memory)
{
	if (memory == NULL)
		return;
	memory_unmap(memory);
	free(memory->path);
	free(memory);
}

void *
memory_area(struct memory *memory)
{
	return memory->header->area;
}

void *
memory_process_area(struct memory *memory)
{
	return memory->process_area;
}
