/*
 * Log calls. A message is a sentence for somebody who has not read the source, followed by fields:
 *
 *     log_warn("Redis did not answer in time.", LOG_TEXT("server", name), LOG_INT("ms", ms));
 *
 * Fields carry what peers sent; they are escaped here, so no peer can forge a line. Floors 0 to 2
 * do not log. Where the lines go is decided by a sink (loop's log sink; standard error before there
 * is one).
 */
#ifndef WEIR_LOG_H
#define WEIR_LOG_H

#include "weir/slice.h"

#include <stdint.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct log_field {
	const char *name; /* NULL ends a list */
	struct slice text;
	int64_t number;
	bool is_number;
};

#define LOG_TEXT(name, cstr) ((struct log_field){ name, slice_of(cstr), 0, false })
#define LOG_SLICE(name, s) ((struct log_field){ name, s, 0, false })
#define LOG_INT(name, n) ((struct log_field){ name, { NULL, 0 }, (int64_t)(n), true })

/* How many lines a throttle has kept back before this one (log_throttle_pass): always as the last
 * field, and left out if there are none. */
#define LOG_KEPT_BACK(held)                                                                        \
	((struct log_field){ (held) > 0 ? "kept_back" : NULL, { NULL, 0 }, (int64_t)(held), true })

/* For how long it has been so, as the last field; left out where it begins. */
#define LOG_FOR_S(s)                                                                               \
	((struct log_field){ (s) > 0 ? "for_s" : NULL, { NULL, 0 }, (int64_t)(s), true })

#define log_error(...) log_fields(LOG_LEVEL_ERROR, __VA_ARGS__, (struct log_field){ 0 })
#define log_warn(...) log_fields(LOG_LEVEL_WARN, __VA_ARGS__, (struct log_field){ 0 })
#define log_info(...) log_fields(LOG_LEVEL_INFO, __VA_ARGS__, (struct log_field){ 0 })
#define log_debug(...) log_fields(LOG_LEVEL_DEBUG, __VA_ARGS__, (struct log_field){ 0 })
#define log_fields(level, message, ...)                                                            \
	log_record(level, message, (const struct log_field[]){ __VA_ARGS__ })

/* The list of fields ends with one whose name is NULL. A line holds LOG_LINE_MAX bytes; what is
 * longer is cut and says so. */
void log_record(enum log_level level, const char *message, const struct log_field *fields);

enum { LOG_LINE_MAX = 2048 };

/* A whole line without its newline. May be called from any thread; must not block. */
typedef void log_sink_fn(void *context, enum log_level level, const char *line, size_t len);

/* Process-wide, set before threads start. sink NULL: standard error again. */
void log_set_sink(log_sink_fn *sink, void *context);

/* Process-wide; may be called at any time. */
void log_configure(enum log_level level, enum log_format format);
bool log_is_on(enum log_level level);

/* The line as the sinks get it, for a sink that is not the process's (the rejection log). Returns
 * its length. */
size_t log_compose(char out[LOG_LINE_MAX], enum log_format format, enum log_level level,
	const char *message, const struct log_field *fields);

/*
 * For what a client can trigger: lets `burst` lines through in each `period_us`, and tells with the
 * first line of the next period how many were kept back.
 */
struct log_throttle {
	int64_t period_us;
	unsigned burst;
	int64_t started_us;
	unsigned passed;
	uint64_t held;
};

/* Whether to log now; *held gets the number of lines kept back before this one. now_us is
 * monotonic. */
bool log_throttle_pass(struct log_throttle *throttle, int64_t now_us, uint64_t *held);

/* How many lines it has kept back in a period that is over at now_us, and forgets them: for who
 * does not want to wait for the next line to tell. INT64_MAX: in any period. */
uint64_t log_throttle_take(struct log_throttle *throttle, int64_t now_us);

#endif
