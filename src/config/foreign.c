/*
 * What people write who know nginx, Apache, haproxy or php-fpm. It is refused like any unknown
 * word, since a file that means something else tomorrow helps nobody; but the sentence that refuses
 * it can say what it is called here.
 */
#include "foreign.h"

#include <stdio.h>

/* ---- words ---- */

static const struct {
	const char *theirs, *ours;
} words_elsewhere[] = {
	{ "on", "yes" },
	{ "true", "yes" },
	{ "1", "yes" },
	{ "enabled", "yes" },
	{ "off", "no" },
	{ "false", "no" },
	{ "0", "no" },
	{ "disabled", "no" },
	{ "fcgi", "fastcgi" },
	{ "open", "admit" },
	{ "allow", "admit" },
	{ "pass", "admit" },
	{ "closed", "reject" },
	{ "deny", "reject" },
	{ "warn", "warning" },
	{ "notice", "info" },
	{ "err", "error" },
	{ "crit", "error" },
	{ "addr", "ip" },
	{ "address", "ip" },
	{ "client", "ip" },
	{ "src", "ip" },
	{ "remote_addr", "ip" },
	{ "$remote_addr", "ip" },
	{ "$binary_remote_addr", "ip" },
	{ "arg", "param" },
	{ "query", "param" },
	{ "parameter", "param" },
	{ "uri", "path" },
	{ "url", "path" },
	{ "variable", "env" },
	{ "global", "all" },
	{ "draft", "ratelimit" },
	{ "ietf", "ratelimit" },
	{ "standard", "ratelimit" },
	{ "ratelimit-policy", "ratelimit" },
	{ "x-ratelimit-limit", "x-ratelimit" },
};

const char *
foreign_word(const struct word *words, struct slice text)
{
	for (size_t i = 0; i < sizeof words_elsewhere / sizeof words_elsewhere[0]; i++) {
		if (!slice_is_nocase(text, slice_of(words_elsewhere[i].theirs)))
			continue;
		for (const struct word *word = words; word->text != NULL; word++) {
			if (word->number != WORD_LATER &&
				strcmp(word->text, words_elsewhere[i].ours) == 0)
				return word->text;
		}
	}
	return NULL;
}

/* ---- keys ---- */

static const struct {
	const char *section, *theirs, *ours;
} keys_elsewhere[] = {
	{ "limit", "rate", "policy = 10/1s" },
	{ "limit", "limit", "policy = 10/1s" },
	{ "limit", "requests", "policy = 10/1s" },
	{ "limit", "burst", "policy = 10/1s burst 60" },
	{ "limit", "concurrent", "policy = concurrent 6" },
	{ "limit", "connections", "policy = concurrent 6" },
	{ "limit", "key", "identity = ip" },
	{ "limit", "by", "identity = ip" },
	{ "limit", "zone", "identity = ip" },
	{ "limit", "window", "policy = 10/1s" },
	{ "backend", "pass", "server = unix:/PATH" },
	{ "backend", "fastcgi_pass", "server = unix:/PATH" },
	{ "backend", "socket", "server = unix:/PATH" },
	{ "backend", "address", "server = tcp:HOST:PORT" },
	{ "backend", "host", "server = tcp:HOST:PORT" },
	{ "backend", "timeout", "idle_timeout = 10m" },
	{ "route", "location", "match = /path" },
	{ "route", "path", "match = /path" },
	{ "route", "pattern", "match = /path" },
	{ "route", "uri", "match = /path" },
	{ "route", "url", "match = /path" },
	{ "route", "method", "match = POST /path" },
	{ "route", "header", "when = header NAME VALUE" },
	{ "route", "server_name", "host = example.org" },
	{ "route", "whitelist", "exempt_ip = 192.0.2.0/24" },
	{ "route", "allow", "exempt_ip = 192.0.2.0/24" },
	{ "weir", "bind", "listen = unix:/PATH" },
	{ "weir", "port", "listen = tcp:127.0.0.1:PORT" },
	{ "weir", "socket", "listen = unix:/PATH" },
	{ "weir", "workers", "threads = auto" },
	{ "weir", "error_log", "log = file:/PATH" },
	{ "redis", "host", "server = tcp:HOST:PORT" },
	{ "redis", "port", "server = tcp:HOST:PORT" },
	{ "redis", "socket", "server = unix:/PATH" },
	{ "redis", "password", "password_file = /PATH" },
	{ "redis", "db", "database = 1" },
	{ "redis", "timeout", "deadline = 150ms" },
};

const char *
foreign_key(const char *section, const char *key)
{
	for (size_t i = 0; i < sizeof keys_elsewhere / sizeof keys_elsewhere[0]; i++) {
		if (strcmp(keys_elsewhere[i].section, section) == 0 &&
			strcmp(keys_elsewhere[i].theirs, key) == 0)
			return keys_elsewhere[i].ours;
	}
	return NULL;
}

/* ---- rates ---- */

/* Each with its unit here, and how many of that unit it is. */
static const struct {
	const char *word, *unit;
	unsigned times;
} windows[] = {
	{ "ms", "ms", 1 },
	{ "s", "s", 1 },
	{ "sec", "s", 1 },
	{ "secs", "s", 1 },
	{ "second", "s", 1 },
	{ "seconds", "s", 1 },
	{ "m", "m", 1 },
	{ "min", "m", 1 },
	{ "mins", "m", 1 },
	{ "minute", "m", 1 },
	{ "minutes", "m", 1 },
	{ "h", "h", 1 },
	{ "hr", "h", 1 },
	{ "hour", "h", 1 },
	{ "hours", "h", 1 },
	{ "d", "d", 1 },
	{ "day", "d", 1 },
	{ "days", "d", 1 },
	{ "w", "d", 7 },
	{ "week", "d", 7 },
	{ "weeks", "d", 7 },
	{ "month", "d", 30 },
	{ "months", "d", 30 },
	{ "y", "d", 365 },
	{ "year", "d", 365 },
	{ "years", "d", 365 },
};

static const char *const counted[] = { "r", "req", "reqs", "request", "requests", "hits", "x" };

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

typedef bool char_is_fn(char c);

/* What the text begins with, and blanks behind it, are cut off. */
static struct slice
take(struct slice *rest, char_is_fn *is)
{
	size_t n = 0;

	while (n < rest->len && is(rest->ptr[n]))
		n++;
	const struct slice taken = slice_first(*rest, n);

	*rest = slice_trim(slice_skip(*rest, n));
	return taken;
}

static bool
take_per(struct slice *rest)
{
	if (rest->len > 0 && rest->ptr[0] == '/') {
		*rest = slice_trim(slice_skip(*rest, 1));
		return true;
	}
	return slice_is_nocase(take(rest, is_letter), SLICE("per"));
}

static void
take_counted(struct slice *rest)
{
	struct slice behind = *rest;
	const struct slice word = take(&behind, is_letter);

	for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
		if (slice_is_nocase(word, slice_of(counted[i])))
			*rest = behind;
	}
}

bool
foreign_rate(struct slice text, char out[FOREIGN_RATE_SIZE])
{
	struct slice rest = slice_trim(text);
	const struct slice count = take(&rest, is_digit);
	uint64_t times = 1;

	take_counted(&rest);
	if (count.len == 0 || count.len > 15 || !take_per(&rest))
		return false;
	const struct slice number = take(&rest, is_digit);

	if (number.len > 0 && parse_uint(number, 1000000, &times) != 0)
		return false;
	const size_t before = rest.len;
	const struct slice word = take(&rest, is_letter);
	const bool is_ended = rest.len == 0 || before - rest.len > word.len;

	for (size_t i = 0; is_ended && i < sizeof windows / sizeof windows[0]; i++) {
		if (!slice_is_nocase(word, slice_of(windows[i].word)))
			continue;
		(void)snprintf(out, FOREIGN_RATE_SIZE, "%.*s/%llu%s", (int)count.len, count.ptr,
			(unsigned long long)times * windows[i].times, windows[i].unit);
		return true;
	}
	return false;
}
