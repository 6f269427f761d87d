/*
 * Where the memory store's file is.
 *
 * Without a path of its own a configuration has a file that is named after it: so all processes
 * that serve with it share their counters, and another configuration has others. The configuration
 * that is read when none is named needs no such name.
 *
 * In /dev/shm any user may make a file by that name first. That must not keep weir from serving: a
 * few names are tried in order, by all processes alike, and if every one is another's, each counts
 * for itself.
 */
#include "command.h"
#include "process.h"

#include "weir/hash.h"
#include "weir/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAMES_MAX = 4, TAG_SIZE = 10 };

/* The same for all paths of one file. */
static uint32_t
tag_of_file(const char *path)
{
	char *real = realpath(path, NULL);
	const uint32_t tag = hash_tag(slice_of(real != NULL ? real : path));

	free(real);
	return tag;
}

static void
name_state(const struct config *config, unsigned nth, char room[STATE_PATH_SIZE])
{
	const uint32_t tag = tag_of_file(config->file);
	char of[TAG_SIZE] = "", next[4] = "";

	if (tag != tag_of_file(DEFAULT_CONFIG))
		(void)snprintf(of, sizeof of, "-%08x", (unsigned)tag);
	if (nth > 0)
		(void)snprintf(next, sizeof next, ".%u", nth + 1);
	if (access(WEIR_RUNDIR, W_OK) == 0)
		(void)snprintf(room, STATE_PATH_SIZE, WEIR_RUNDIR "/state%s%s", of, next);
	else
		(void)snprintf(room, STATE_PATH_SIZE, "/dev/shm/weir-%u%s%s.state",
			(unsigned)geteuid(), of, next);
}

static bool
is_foreign(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && st.st_uid != geteuid();
}

const char *
process_state_path(const struct config *config, char room[STATE_PATH_SIZE])
{
	if (config->memory_state != NULL)
		return config->memory_state;
	for (unsigned i = 0; i < NAMES_MAX; i++) {
		name_state(config, i, room);
		if (!is_foreign(room))
			break;
	}
	return room;
}

static struct memory *
open_at(const char *path, const struct config *config, struct err *err)
{
	uint64_t size = config->memory_size;
	struct memory *memory = memory_open(path, &size, err);

	if (memory != NULL && size != config->memory_size)
		log_warn("The memory store keeps the size that its file has; remove the file while "
			 "weir is stopped to change it.",
			LOG_TEXT("file", path), LOG_INT("size", size),
			LOG_INT("configured", config->memory_size));
	return memory;
}

/* A name may become another's between the look and the opening; then it is passed over too. */
static struct memory *
open_default(const struct config *config, struct err *err)
{
	char room[STATE_PATH_SIZE];

	for (unsigned i = 0; i < NAMES_MAX; i++) {
		name_state(config, i, room);
		struct memory *memory = is_foreign(room) ? NULL : open_at(room, config, err);

		if (memory != NULL || !is_foreign(room))
			return memory;
		log_warn("The memory store's file belongs to another user, so another name is "
			 "tried; [memory] state can name one where only weir may write.",
			LOG_TEXT("file", room));
	}
	log_error("No file is left for the memory store: each weir process counts for itself.",
		LOG_TEXT("file", room));
	return memory_open_private(config->memory_size, err);
}

struct memory *
process_open_memory(const struct config *config, struct err *err)
{
	struct memory *memory = config->memory_state != NULL
		? open_at(config->memory_state, config, err)
		: open_default(config, err);

	if (memory != NULL)
		memory_count(memory);
	return memory;
}
