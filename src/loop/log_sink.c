/*
 * The writer thread and its queue of lines: two halves under one lock, which is held for a memcpy
 * only; each entry is a head (length, level) and the line. The writer takes everything that is
 * there in one go, so it holds the lock a few times a second under load, and the loops never wait
 * for a disk.
 */
#include "log_target.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HALF_SIZE = 512 * 1024, CLOSE_WAIT_MS = 500 };

struct entry {
	size_t len;
	enum log_level level;
};

struct log_sink {
	struct log_target target;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *filling, *writing; /* two halves: loops fill one while the thread writes the other */
	size_t filled;
	uint64_t dropped;
	bool closing, done;
};

static uint64_t
write_all(struct log_sink *sink, size_t filled)
{
	uint64_t lost = 0;

	log_target_follow(&sink->target);
	for (size_t at = 0; at < filled;) {
		struct entry entry;

		memcpy(&entry, sink->writing + at, sizeof entry);
		at += sizeof entry;
		if (!log_target_write(&sink->target, entry.level, sink->writing + at, entry.len))
			lost++;
		at += entry.len;
	}
	return lost;
}

static void *
writer(void *context)
{
	struct log_sink *sink = context;

	(void)pthread_mutex_lock(&sink->lock);
	while (!sink->closing || sink->filled > 0) {
		if (sink->filled == 0) {
			(void)pthread_cond_wait(&sink->changed, &sink->lock);
			continue;
		}
		char *const half = sink->filling;
		const size_t filled = sink->filled;

		sink->filling = sink->writing;
		sink->writing = half;
		sink->filled = 0;
		(void)pthread_mutex_unlock(&sink->lock);
		const uint64_t lost = write_all(sink, filled);

		(void)pthread_mutex_lock(&sink->lock);
		sink->dropped += lost;
	}
	sink->done = true;
	(void)pthread_cond_broadcast(&sink->changed);
	(void)pthread_mutex_unlock(&sink->lock);
	return NULL;
}

static int
start_writer(struct log_sink *sink)
{
	pthread_condattr_t attributes;
	sigset_t all, before;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&sink->lock, NULL);
	(void)pthread_cond_init(&sink->changed, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	/* Signals are the main loop's; SIGPIPE, too, must not be delivered here. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int result = pthread_create(&sink->thread, NULL, writer, sink);

	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return result;
}

static void
destroy(struct log_sink *sink)
{
	log_target_close(&sink->target);
	free(sink->filling);
	free(sink->writing);
	free(sink);
}

struct log_sink *
log_sink_open(enum log_sink_kind kind, const char *path, struct err *err)
{
	struct log_sink *sink = calloc(1, sizeof *sink);

	if (sink == NULL) {
		(void)err_set(err, "no memory for the log");
		return NULL;
	}
	if (log_target_open(&sink->target, kind, path, err) != 0) {
		free(sink);
		return NULL;
	}
	sink->filling = malloc(HALF_SIZE);
	sink->writing = malloc(HALF_SIZE);
	if (sink->filling == NULL || sink->writing == NULL || start_writer(sink) != 0) {
		(void)err_set(err, "no memory for the log");
		destroy(sink);
		return NULL;
	}
	return sink;
}

void
log_sink_close(struct log_sink *sink)
{
	struct timespec until;

	if (sink == NULL)
		return;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += CLOSE_WAIT_MS * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	(void)pthread_mutex_lock(&sink->lock);
	sink->closing = true;
	(void)pthread_cond_broadcast(&sink->changed);
	int waited = 0;

	while (!sink->done && waited == 0)
		waited = pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
	const bool done = sink->done;

	(void)pthread_mutex_unlock(&sink->lock);
	if (!done) {
		/* The writer is stuck in a write that may never end; the process is about to, and
		 * takes it along. */
		(void)pthread_detach(sink->thread);
		return;
	}
	(void)pthread_join(sink->thread, NULL);
	(void)pthread_mutex_destroy(&sink->lock);
	(void)pthread_cond_destroy(&sink->changed);
	destroy(sink);
}

void
log_sink_put(void *context, enum log_level level, const char *line, size_t len)
{
	struct log_sink *sink = context;
	const struct entry entry = { len, level };

	(void)pthread_mutex_lock(&sink->lock);
	if (sizeof entry + len > HALF_SIZE - sink->filled) {
		sink->dropped++;
	} else {
		memcpy(sink->filling + sink->filled, &entry, sizeof entry);
		memcpy(sink->filling + sink->filled + sizeof entry, line, len);
		if (sink->filled == 0)
			(void)pthread_cond_broadcast(&sink->changed);
		sink->filled += sizeof entry + len;
	}
	(void)pthread_mutex_unlock(&sink->lock);
}

uint64_t
log_sink_take_dropped(struct log_sink *sink)
{
	(void)pthread_mutex_lock(&sink->lock);
	const uint64_t dropped = sink->dropped;

	sink->dropped = 0;
	(void)pthread_mutex_unlock(&sink->lock);
	return dropped;
}
