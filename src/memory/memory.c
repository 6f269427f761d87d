/*
 * The memory: its file, its header and its stripes.
 *
 * Whoever comes first makes the file, under flock, and writes the magic last; the others find it
 * ready. A file of another layout is unlinked and made anew: processes of the old version keep the
 * old one until they end.
 */
#include "memory_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Changes with every change of the layout. */
static const char magic[8] = "weirm01";

enum { STRIPES = 256, STRIPES_SMALL = 64, SMALL = 4 * 1024 * 1024 };

_Static_assert(sizeof(struct memory_header) <= HEADER_SIZE, "the header fits its page");

struct stripe_view
memory_stripe(const struct memory *memory, const struct hash_wide *key)
{
	const struct memory_header *header = memory->header;
	uint32_t word;

	memcpy(&word, key->bytes, sizeof word);
	return memory_stripe_at(memory, word % header->stripe_count);
}

struct stripe_view
memory_stripe_at(const struct memory *memory, uint32_t index)
{
	const struct memory_header *header = memory->header;
	char *base = (char *)memory->header + HEADER_SIZE + (size_t)index * header->stripe_size;
	const size_t chains_size = header->chain_count * sizeof(uint32_t);

	return (struct stripe_view){
		.stripe = (struct stripe *)(void *)(base + chains_size),
		.chains = (uint32_t *)(void *)base,
		.chain_count = header->chain_count,
		.cells = (struct cell *)(void *)(base + chains_size),
		.cell_count = header->cell_count,
	};
}

static void
lay_out(struct memory_header *header, uint64_t size)
{
	header->size = size;
	header->stripe_count = size < SMALL ? STRIPES_SMALL : STRIPES;
	const uint64_t stripe = (size - HEADER_SIZE) / header->stripe_count / CELL_SIZE * CELL_SIZE;

	/* About one chain a cell: the largest power of two that leaves the cells 31 of 32 parts. */
	header->chain_count = CELL_SIZE / sizeof(uint32_t);
	while (header->chain_count * 2 * (uint64_t)CELL_SIZE <= stripe)
		header->chain_count *= 2;
	header->stripe_size = stripe;
	header->cell_count =
		(uint32_t)((stripe - header->chain_count * sizeof(uint32_t)) / CELL_SIZE);
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

static int
format(struct memory *memory, uint64_t size, struct err *err)
{
	struct memory_header *header = memory->header;

	lay_out(header, size);
	hash_random(header->hash_key, sizeof header->hash_key);
	for (uint32_t i = 0; i < header->stripe_count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);
		const int error = init_lock(&view.stripe->lock);

		if (error != 0)
			return err_set(err, "shared locks cannot be made: %s", strerror(error));
		stripe_init(&view);
	}
	memcpy(header->magic, magic, sizeof magic);
	return 0;
}

static int
map(struct memory *memory, int fd, uint64_t size, struct err *err)
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

static int
check_owner(int fd, struct stat *st, struct err *err)
{
	if (fstat(fd, st) != 0)
		return err_set(err, "%s", strerror(errno));
	if (!S_ISREG(st->st_mode))
		return err_set(err, "it is no regular file");
	if (st->st_uid != geteuid())
		return err_set(err,
			"it belongs to user %u, but weir runs as user %u; choose another [memory] "
			"state",
			(unsigned)st->st_uid, (unsigned)geteuid());
	if ((st->st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(err, "others may write to it (mode %03o); remove it",
			(unsigned)st->st_mode & 0777);
	return 0;
}

/* Whether a mapped file is one of ours, whole and of this layout. */
static bool
is_ours(const struct memory_header *header, uint64_t file_size)
{
	struct memory_header expected;

	if (memcmp(header->magic, magic, sizeof magic) != 0 || header->size != file_size)
		return false;
	lay_out(&expected, file_size);
	return header->stripe_count == expected.stripe_count &&
		header->stripe_size == expected.stripe_size &&
		header->chain_count == expected.chain_count &&
		header->cell_count == expected.cell_count;
}

/* With the file locked. 1: the file is of another layout and must be made anew. */
static int
use_file(struct memory *memory, int fd, uint64_t *size, struct err *err)
{
	struct stat st;

	if (check_owner(fd, &st, err) != 0)
		return -1;
	if (st.st_size == 0) {
		/* Taken from the file system now: later a full one would kill the process at a
		 * store. */
		const int error = posix_fallocate(fd, 0, (off_t)*size);

		if (error != 0)
			return err_set(err, "no room for %llu bytes: %s", (unsigned long long)*size,
				strerror(error));
		return map(memory, fd, *size, err) == 0 ? format(memory, *size, err) : -1;
	}
	if (st.st_size < MEMORY_SIZE_MIN)
		return 1;
	if (map(memory, fd, (uint64_t)st.st_size, err) != 0)
		return -1;
	if (!is_ours(memory->header, (uint64_t)st.st_size)) {
		(void)munmap(memory->header, memory->mapped);
		memory->header = NULL;
		return 1;
	}
	*size = (uint64_t)st.st_size;
	return 0;
}

static int
open_file(struct memory *memory, const char *path, uint64_t *size, struct err *err)
{
	/* Twice: once more when a file of another layout has been taken away. */
	for (int attempt = 0; attempt < 2; attempt++) {
		const int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

		if (fd < 0)
			return err_set(err, "%s", strerror(errno));
		const int locked = flock(fd, LOCK_EX);
		int result = locked == 0 ? use_file(memory, fd, size, err)
					 : err_set(err, "flock: %s", strerror(errno));

		if (result == 1)
			(void)unlink(path);
		else if (result != 0 && memory->header != NULL)
			/* Half made; nobody else shall find it. */
			(void)unlink(path);
		(void)close(fd);
		if (result != 1)
			return result;
	}
	return err_set(err, "it holds something else, and comes back when it is removed");
}

static struct memory *
memory_new(struct err *err)
{
	struct memory *memory = calloc(1, sizeof *memory);

	if (memory == NULL)
		(void)err_set(err, "no memory");
	else
		memory_store_init(memory);
	return memory;
}

struct memory *
memory_open(const char *path, uint64_t *size, struct err *err)
{
	struct memory *memory = memory_new(err);

	if (memory == NULL)
		return NULL;
	if (open_file(memory, path, size, err) != 0) {
		(void)err_prefix(err, "the memory store's file %s", path);
		memory_close(memory);
		return NULL;
	}
	return memory;
}

struct memory *
memory_open_private(uint64_t size, struct err *err)
{
	struct memory *memory = memory_new(err);

	if (memory == NULL)
		return NULL;
	if (map(memory, -1, size, err) != 0 || format(memory, size, err) != 0) {
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
	if (memory->header != NULL)
		(void)munmap(memory->header, memory->mapped);
	free(memory);
}

void *
memory_area(struct memory *memory)
{
	return memory->header->area;
}
