/*
 * Targets of the log. Standard error and files get time and process in front of each line, syslog
 * its own form, and the journal, which knows both, the level in the form of sd-daemon(3).
 */
#include "log_target.h"

#include "weir/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

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
open_fd(const struct log_target *target)
{
	switch (target->kind) {
	case LOG_SINK_STDERR:
		return STDERR_FILENO;
	case LOG_SINK_SYSLOG:
		return open_syslog();
	case LOG_SINK_FILE:
		return open(
			target->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
	}
	return -1;
}

/* JOURNAL_STREAM is inherited by whoever is started, also with another standard error. */
static bool
stderr_is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char ours[48];
	struct stat st;

	if (stream == NULL || fstat(STDERR_FILENO, &st) != 0)
		return false;
	(void)snprintf(ours, sizeof ours, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return strcmp(stream, ours) == 0;
}

void
log_target_follow(struct log_target *target)
{
	struct stat ours, there;

	if (target->kind != LOG_SINK_FILE || target->fd < 0 || fstat(target->fd, &ours) != 0)
		return;
	if (stat(target->path, &there) == 0 && there.st_dev == ours.st_dev &&
		there.st_ino == ours.st_ino)
		return;
	const int fd = open_fd(target);

	if (fd < 0)
		return;
	(void)close(target->fd);
	target->fd = fd;
}

static int
prefix_of(const struct log_target *target, enum log_level level, char *out, size_t size)
{
	const time_t now = (time_t)(clock_wall_us() / 1000000);
	struct tm tm;
	char stamp[40];

	if (target->is_journal)
		return snprintf(out, size, "<%d>", syslog_priorities[level]);
	switch (target->kind) {
	case LOG_SINK_SYSLOG:
		(void)localtime_r(&now, &tm);
		(void)strftime(stamp, sizeof stamp, "%b %e %H:%M:%S", &tm);
		return snprintf(out, size,
			"<%d>%s weir[%d]: ", LOG_DAEMON | syslog_priorities[level], stamp,
			(int)getpid());
	case LOG_SINK_STDERR:
	case LOG_SINK_FILE:
		(void)gmtime_r(&now, &tm);
		(void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S%z", &tm);
		return snprintf(out, size, "%s weir[%d] ", stamp, (int)getpid());
	}
	return 0;
}

/* JSON lines stand alone: they carry their own time, and a prefix that nobody takes off would make
 * them no JSON. */
bool
log_target_write(struct log_target *target, enum log_level level, const char *line, size_t len)
{
	char room[LOG_LINE_MAX + 97] = "\n";
	char *whole = room + 1;
	const bool bare =
		target->kind != LOG_SINK_SYSLOG && !target->is_journal && len > 0 && line[0] == '{';
	const int prefix = bare ? 0 : prefix_of(target, level, whole, sizeof room - 1);
	size_t total = (size_t)prefix + len;

	memcpy(whole + prefix, line, len);
	if (target->kind != LOG_SINK_SYSLOG)
		whole[total++] = '\n';
	if (target->fd < 0)
		target->fd = open_fd(target);
	if (target->fd < 0)
		return false;
	/* A part of a line ends where the next one begins. */
	if (target->is_cut) {
		whole = room;
		total++;
	}
	ssize_t n;

	do {
		n = write(target->fd, whole, total);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && target->kind == LOG_SINK_SYSLOG) {
		(void)close(target->fd);
		target->fd = -1;
	}
	if (n > 0 && target->kind != LOG_SINK_SYSLOG)
		target->is_cut = whole[n - 1] != '\n';
	return n == (ssize_t)total;
}

int
log_target_open(
	struct log_target *target, enum log_sink_kind kind, const char *path, struct err *err)
{
	*target = (struct log_target){ .kind = kind, .fd = -1 };
	if (path != NULL && (target->path = strdup(path)) == NULL)
		return err_set(err, "no memory for the log");
	target->is_journal = kind == LOG_SINK_STDERR && stderr_is_journal();
	target->fd = open_fd(target);
	/* syslog may come later. */
	if (target->fd >= 0 || kind != LOG_SINK_FILE)
		return 0;
	(void)err_set_open(err, path, errno);
	log_target_close(target);
	return err_prefix(err, "the log file %s cannot be opened", path);
}

void
log_target_close(struct log_target *target)
{
	if (target->fd >= 0 && target->kind != LOG_SINK_STDERR)
		(void)close(target->fd);
	free(target->path);
}
