/* What a log sink writes to: the form of its lines, and how it is opened. Private to the room. */
#ifndef WEIR_LOOP_LOG_TARGET_H
#define WEIR_LOOP_LOG_TARGET_H

#include "weir/log_sink.h"

struct log_target {
	enum log_sink_kind kind;
	char *path; /* of a file */
	int fd; /* -1: to be opened */
	bool is_journal; /* standard error is */
	bool is_cut; /* the last line has no end: the disk was full in its middle */
};

/* -1: no memory, or the file cannot be opened; then there is nothing to close. */
int log_target_open(struct log_target *target, enum log_sink_kind kind, const char *path,
	struct err *err) WEIR_MUST_CHECK;
void log_target_close(struct log_target *target);

/* A file that logrotate has moved away is given up for the new one of that name. */
void log_target_follow(struct log_target *target);

/* False: the line, or a part of it, was not taken. May block. */
bool
log_target_write(struct log_target *target, enum log_level level, const char *line, size_t len);

#endif
