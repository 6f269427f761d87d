/*
 * The writer thread and its queue of lines: two halves under one lock, which is held for a memcpy
 * only; each entry is a head (length, level) and the line. The writer takes everything that is
 * there in one go, so it holds the lock a few times a second under load, and the loops never wait
 * for a disk.
 */
#include "weir/log_sink.h"

#include "weir/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

enum { HALF_SIZE = 512 * 1024, CLOSE_WAIT_MS = 500 };

struct entry {
	size_t len;
	enum log_level level;
};

struct log_sink {
	enum log_sink_kind kind;
	char *path;
	int fd; /* -1: to be opened */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *filling, *writing; /* two halves: loops fill one while the thread writes the other */
	size_t filled;
	uint64_t dropped;
	bool closing, done;
};

static const int syslog_priorities[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

static int
open_syslog(void)
{
	const struct sockaddr_un name = { .sun_family = AF_UNIX, .sun_path = "/dev/log" };
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

static int
open_target(const struct log_sink *sink)
{
	switch (sink->kind) {
	case LOG_SINK_STDERR:
		return STDERR_FILENO;
	case LOG_SINK_SYSLOG:
		return open_syslog();
	case LOG_SINK_FILE:
		return open(sink->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
	}
	return -1;
}

/* A file that logrotate has moved away is given up for the new one of that name. */
static void
follow_rename(struct log_sink *sink)
{
	struct stat ours, there;

	if (sink->kind != LOG_SINK_FILE || sink->fd < 0 || fstat(sink->fd, &ours) != 0)
		return;
	if (stat(sink->path, &there) == 0 && there.st_dev == ours.st_dev &&
		there.st_ino == ours.st_ino)
		return;
	const int fd = open_target(sink);

	if (fd < 0)
		return;
	(void)close(sink->fd);
	sink->fd = fd;
}

static int
prefix_of(const struct log_sink *sink, enum log_level level, char *out, size_t size)
{
	const time_t now = (time_t)(clock_wall_us() / 1000000);
	struct tm tm;
	char stamp[40];

	switch (sink->kind) {
	case LOG_SINK_STDERR:
		return snprintf(out, size, "weir: ");
	case LOG_SINK_SYSLOG:
		(void)localtime_r(&now, &tm);
		(void)strftime(stamp, sizeof stamp, "%b %e %H:%M:%S", &tm);
		return snprintf(out, size,
			"<%d>%s weir[%d]: ", LOG_DAEMON | syslog_priorities[level], stamp,
			(int)getpid());
	case LOG_SINK_FILE:
		(void)localtime_r(&now, &tm);
		(void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S%z", &tm);
		return snprintf(out, size, "%s weir[%d] ", stamp, (int)getpid());
	}
	return 0;
}

/* JSON lines stand alone: they carry their own time, and a prefix would make them no JSON. */
static bool
write_line(struct log_sink *sink, enum log_level level, const char *line, size_t len)
{
	char whole[LOG_LINE_MAX + 96];
	const bool bare = sink->kind != LOG_SINK_SYSLOG && len > 0 && line[0] == '{';
	const int prefix = bare ? 0 : prefix_of(sink, level, whole, sizeof whole);
	size_t total = (size_t)prefix + len;

	memcpy(whole + prefix, line, len);
	if (sink->kind != LOG_SINK_SYSLOG)
		whole[total++] = '\n';
	if (sink->fd < 0)
		sink->fd = open_target(sink);
	if (sink->fd < 0)
		return false;
	ssize_t n;

	do {
		n = write(sink->fd, whole, total);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && sink->kind == LOG_SINK_SYSLOG) {
		(void)close(sink->fd);
		sink->fd = -1;
	}
	return n == (ssize_t)total;
}

static uint64_t
write_all(struct log_sink *sink, size_t filled)
{
	uint64_t lost = 0;

	follow_rename(sink);
	for (size_t at = 0; at < filled;) {
		struct entry entry;

		memcpy(&entry, sink->writing + at, sizeof entry);
		at += sizeof entry;
		if (!write_line(sink, entry.level, sink->writing + at, entry.len))
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
	if (sink->fd >= 0 && sink->kind != LOG_SINK_STDERR)
		(void)close(sink->fd);
	free(sink->filling);
	free(sink->writing);
	free(sink->path);
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
	sink->kind = kind;
	sink->path = path == NULL ? NULL : strdup(path);
	sink->filling = malloc(HALF_SIZE);
	sink->writing = malloc(HALF_SIZE);
	sink->fd = open_target(sink);
	if (sink->fd < 0 && kind == LOG_SINK_FILE) {
		(void)err_set(err, "the log file %s cannot be opened: %s", path, strerror(errno));
		destroy(sink);
		return NULL;
	}
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
