/*
 * Where log lines go without ever blocking a loop: a thread of its own writes them, from a bounded
 * queue. A standard error that nobody reads, a stuck /dev/log or a slow disk cost lines, which are
 * counted, and nothing else.
 */
#ifndef WEIR_LOG_SINK_H
#define WEIR_LOG_SINK_H

#include "weir/err.h"
#include "weir/log.h"

struct log_sink;

enum log_sink_kind {
	LOG_SINK_STDERR, /* with time and process, as a file; to the journal (JOURNAL_STREAM of
			    systemd.exec(5)), which knows both, with the level in its form */
	LOG_SINK_SYSLOG, /* /dev/log, facility daemon, RFC 3164's form as glibc writes it */
	LOG_SINK_FILE, /* opened anew when it has been renamed or removed, so logrotate needs no
			  signal */
};

/* `path` only for a file. */
struct log_sink *
log_sink_open(enum log_sink_kind kind, const char *path, struct err *err) WEIR_MUST_CHECK;

/* Waits half a second at the most for what is queued. NULL is let pass. */
void log_sink_close(struct log_sink *sink);

/* A log_sink_fn (log.h); the context is the sink. From any thread. */
void log_sink_put(void *context, enum log_level level, const char *line, size_t len);

/* Lines dropped since the last call. */
uint64_t log_sink_take_dropped(struct log_sink *sink);

#endif
