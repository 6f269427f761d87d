/*
 * Composes log lines. Peers' bytes are escaped as \xHH in text and as \u00HH in JSON, so a line is
 * always printable ASCII or valid UTF-8 and is always one line.
 */
#include "weir/log.h"
#include "weir/clock.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static _Atomic int log_level = LOG_LEVEL_INFO;
static _Atomic int log_format = LOG_FORMAT_TEXT;
static log_sink_fn *log_sink;
static void *log_sink_context;

static const char *const level_names[] = { "error", "warning", "info", "debug" };

/* A line under construction: what does not fit is cut, and `cut` remembers it. */
struct line {
	char *out;
	size_t len;
	bool cut;
};

enum { LINE_TAIL = 16 }; /* kept free for the closing of a line that was cut */

static void
put(struct line *line, const char *bytes, size_t len)
{
	if (line->cut || len > LOG_LINE_MAX - LINE_TAIL - line->len) {
		line->cut = true;
		return;
	}
	memcpy(line->out + line->len, bytes, len);
	line->len += len;
}

static void
put_text(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

static bool
is_plain(unsigned char c)
{
	return c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '=';
}

static void
put_escaped(struct line *line, struct slice s, bool json)
{
	for (size_t i = 0; i < s.len; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		char code[8];

		if (c == '"' || c == '\\') {
			put(line, (char[]){ '\\', (char)c }, 2);
		} else if (c >= ' ' && c < 0x7f) {
			put(line, (char *)&c, 1);
		} else {
			int n = json ? snprintf(code, sizeof code, "\\u%04x", c)
				     : snprintf(code, sizeof code, "\\x%02x", c);

			put(line, code, (size_t)n);
		}
	}
}

static void
put_value_text(struct line *line, struct slice value)
{
	bool plain = value.len > 0;

	for (size_t i = 0; plain && i < value.len; i++)
		plain = is_plain((unsigned char)value.ptr[i]);
	if (!plain)
		put_text(line, "\"");
	put_escaped(line, value, false);
	if (!plain)
		put_text(line, "\"");
}

static void
put_number(struct line *line, int64_t number)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%lld", (long long)number);

	put(line, text, (size_t)n);
}

static void
compose_text(struct line *line, enum log_level level, const char *message,
	const struct log_field *fields)
{
	put_text(line, level_names[level]);
	put_text(line, ": ");
	put_text(line, message);
	for (; fields->name != NULL; fields++) {
		put_text(line, " ");
		put_text(line, fields->name);
		put_text(line, "=");
		if (fields->is_number)
			put_number(line, fields->number);
		else
			put_value_text(line, fields->text);
	}
	if (line->cut) {
		memcpy(line->out + line->len, " ...", 4);
		line->len += 4;
	}
}

static void
put_json_pair(struct line *line, const char *name, struct slice value)
{
	put_text(line, "\"");
	put_text(line, name);
	put_text(line, "\":\"");
	put_escaped(line, value, true);
	put_text(line, "\"");
}

static void
put_json_time(struct line *line)
{
	const int64_t now = clock_wall_us();
	const time_t seconds = (time_t)(now / 1000000);
	struct tm tm;
	char text[40];

	(void)gmtime_r(&seconds, &tm);
	size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);

	(void)snprintf(text + n, sizeof text - n, ".%03dZ", (int)(now / 1000 % 1000));
	put_json_pair(line, "time", slice_of(text));
}

/* A field that does not fit is left out whole, so that the line stays JSON, and "cut" says so. */
static void
compose_json(struct line *line, enum log_level level, const char *message,
	const struct log_field *fields)
{
	put_text(line, "{");
	put_json_time(line);
	put_text(line, ",\"pid\":");
	put_number(line, getpid());
	put_text(line, ",");
	put_json_pair(line, "level", slice_of(level_names[level]));
	put_text(line, ",");
	put_json_pair(line, "message", slice_of(message));
	bool cut = false;

	for (; fields->name != NULL; fields++) {
		const struct line before = *line;

		put_text(line, ",");
		if (fields->is_number) {
			put_text(line, "\"");
			put_text(line, fields->name);
			put_text(line, "\":");
			put_number(line, fields->number);
		} else {
			put_json_pair(line, fields->name, fields->text);
		}
		if (line->cut) {
			*line = before;
			cut = true;
		}
	}
	const struct slice tail = cut ? SLICE(",\"cut\":true}") : SLICE("}");

	memcpy(line->out + line->len, tail.ptr, tail.len);
	line->len += tail.len;
}

size_t
log_compose(char out[LOG_LINE_MAX], enum log_format format, enum log_level level,
	const char *message, const struct log_field *fields)
{
	struct line line = { .out = out };

	switch (format) {
	case LOG_FORMAT_TEXT:
		compose_text(&line, level, message, fields);
		break;
	case LOG_FORMAT_JSON:
		compose_json(&line, level, message, fields);
		break;
	}
	return line.len;
}

static void
stderr_sink(void *context, enum log_level level, const char *line, size_t len)
{
	char whole[LOG_LINE_MAX + 8];
	int n = snprintf(whole, sizeof whole, "weir: %.*s\n", (int)len, line);

	(void)context, (void)level;
	/* Nobody is left to be told when standard error fails. */
	if (n > 0 &&
		write(STDERR_FILENO, whole, (size_t)n < sizeof whole ? (size_t)n : sizeof whole) <
			0)
		return;
}

void
log_set_sink(log_sink_fn *sink, void *context)
{
	log_sink = sink;
	log_sink_context = context;
}

void
log_configure(enum log_level level, enum log_format format)
{
	atomic_store_explicit(&log_level, (int)level, memory_order_relaxed);
	atomic_store_explicit(&log_format, (int)format, memory_order_relaxed);
}

bool
log_is_on(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

void
log_record(enum log_level level, const char *message, const struct log_field *fields)
{
	char line[LOG_LINE_MAX];

	if (!log_is_on(level))
		return;
	const enum log_format format =
		(enum log_format)atomic_load_explicit(&log_format, memory_order_relaxed);
	const size_t len = log_compose(line, format, level, message, fields);

	(log_sink != NULL ? log_sink : stderr_sink)(log_sink_context, level, line, len);
}

bool
log_throttle_pass(struct log_throttle *throttle, int64_t now_us, uint64_t *held)
{
	assert(throttle->burst > 0); /* one that nobody has set up lets nothing through */
	*held = 0;
	const bool is_new = throttle->passed == 0 && throttle->held == 0;

	if (is_new || now_us - throttle->started_us >= throttle->period_us) {
		*held = throttle->held;
		throttle->started_us = now_us;
		throttle->passed = 0;
		throttle->held = 0;
	}
	if (throttle->passed >= throttle->burst) {
		throttle->held++;
		return false;
	}
	throttle->passed++;
	return true;
}

uint64_t
log_throttle_take(struct log_throttle *throttle, int64_t now_us)
{
	const uint64_t held = throttle->held;

	if (held == 0 || now_us - throttle->started_us < throttle->period_us)
		return 0;
	throttle->held = 0;
	throttle->passed = 0;
	return held;
}
