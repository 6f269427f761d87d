/*
 * Request targets. The web servers pass on what the client wrote, each in its own degree of
 * rawness, and then serve what they make of it; here the same is made of it in the same order:
 * cut, decode once, fold slashes, resolve dots. Decoding comes before the dots, since `%2e%2e%2f`
 * climbs behind lighttpd and nginx.
 */
#include "weir/url_path.h"

static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Cuts the byte that an escape at the start of *s stands for off it. -1: it is no escape. */
static int
cut_escape(struct slice *s)
{
	if (s->len < 3 || s->ptr[0] != '%')
		return -1;
	const int high = hex_value(s->ptr[1]), low = hex_value(s->ptr[2]);

	if (high < 0 || low < 0)
		return -1;
	*s = slice_skip(*s, 3);
	return high << 4 | low;
}

/* `scheme:` at the start, as RFC 3986 section 3.1 has it; its length with the colon, or 0. */
static size_t
scheme_len(struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		const char c = s.ptr[i];
		const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (is_letter)
			continue;
		if (i == 0)
			return 0;
		if (c == ':')
			return i + 1;
		if ((c < '0' || c > '9') && c != '+' && c != '-' && c != '.')
			return 0;
	}
	return 0;
}

static struct slice
without_fragment(struct slice target)
{
	return slice_first(target, slice_find(target, '#'));
}

/* The raw path of a target: Apache passes `http://any.host/path` on as it came. Its authority goes
 * to *authority, empty without one. */
static struct slice
raw_path(struct slice target, struct slice *authority)
{
	struct slice path = without_fragment(target);

	*authority = slice_first(path, 0);
	path = slice_first(path, slice_find(path, '?'));
	const struct slice rest = slice_skip(path, scheme_len(path));

	if (rest.len == path.len || !slice_has_prefix(rest, SLICE("//")))
		return path;
	const struct slice behind = slice_skip(rest, 2);
	const size_t len = slice_find(behind, '/');

	*authority = slice_first(behind, len);
	return slice_skip(behind, len);
}

struct slice
url_host(struct slice target)
{
	struct slice authority;

	(void)raw_path(target, &authority);
	const size_t at = slice_find(authority, '@');

	return slice_skip(authority, at == authority.len ? 0 : at + 1);
}

/*
 * The segment that began at `start`, behind a slash, is complete: keeps it, or takes it back if it
 * is a dot, and takes the one before it back too if it is two. Returns where out ends then.
 */
static size_t
close_segment(const char *out, size_t start, size_t end)
{
	const struct slice segment = slice_make(out + start, end - start);

	if (slice_is(segment, SLICE(".")))
		return start;
	if (!slice_is(segment, SLICE("..")))
		return end;
	/* out[start - 1] is the slash before the dots; the root's has nothing to climb over. */
	if (start > 1)
		start--;
	while (out[start - 1] != '/')
		start--;
	return start;
}

int
url_path_normal(struct slice target, char *out, size_t *len, struct err *err)
{
	struct slice authority, path = raw_path(target, &authority);
	size_t start = 1, end = 1; /* of the segment at the end of out */

	if (slice_is(target, SLICE("*"))) {
		out[0] = '*';
		*len = 1;
		return 0;
	}
	if (path.len > 0 && path.ptr[0] != '/')
		return err_set(err, "the path does not begin with a slash");
	out[0] = '/';
	while (path.len > 0) {
		int c = (unsigned char)path.ptr[0];

		if (c != '%')
			path = slice_skip(path, 1);
		else if ((c = cut_escape(&path)) < 0)
			return err_set(err, "the path has a %% without two hexadecimal digits");
		if (c == '\0')
			return err_set(err, "the path has a NUL");
		if (c != '/') {
			out[end++] = (char)c;
			continue;
		}
		end = close_segment(out, start, end);
		if (out[end - 1] != '/')
			out[end++] = '/';
		start = end;
	}
	*len = close_segment(out, start, end);
	return 0;
}

int
url_path_fold(struct slice path, char *out, size_t *len)
{
	size_t start = 0, end = 0; /* of the segment at the end of out */

	for (size_t i = 0; i <= path.len; i++) {
		if (i < path.len && path.ptr[i] != '/') {
			out[end++] = path.ptr[i];
			continue;
		}
		const struct slice segment = slice_make(out + start, end - start);

		if (slice_is(segment, SLICE("..")))
			return -1;
		if (slice_is(segment, SLICE(".")))
			end = start;
		if (i < path.len && (end == 0 || out[end - 1] != '/'))
			out[end++] = '/';
		start = end;
	}
	*len = end;
	return 0;
}

struct slice
url_query(struct slice target)
{
	const struct slice whole = without_fragment(target);
	const size_t mark = slice_find(whole, '?');

	return slice_skip(whole, mark == whole.len ? mark : mark + 1);
}

/* `%uXXXX` of an ASCII character, as Perl's CGI.pm reads it. -1: it is none. */
static int
cut_wide_escape(struct slice *s)
{
	if (s->len < 6 || s->ptr[1] != 'u' || s->ptr[2] != '0' || s->ptr[3] != '0')
		return -1;
	const int high = hex_value(s->ptr[4]), low = hex_value(s->ptr[5]);

	if (high < 0 || high > 7 || low < 0)
		return -1;
	*s = slice_skip(*s, 6);
	return high << 4 | low;
}

/* The next character of a name or value. A bad escape stands for itself, as in PHP. */
static char
cut_decoded(struct slice *raw)
{
	const char first = raw->ptr[0];
	int c = -1;

	if (first == '%' && (c = cut_escape(raw)) < 0)
		c = cut_wide_escape(raw);
	if (c >= 0)
		return (char)c;
	*raw = slice_skip(*raw, 1);
	return first == '+' ? ' ' : first;
}

/* A character of a name as PHP keeps it. */
static char
folded(char c)
{
	return c == '.' || c == ' ' || c == '[' ? '_' : c;
}

/* Cuts the name off the front of *raw. */
static bool
cut_name(struct slice *raw, struct slice name, bool nocase)
{
	while (name.len > 0) {
		if (raw->len == 0)
			return false;
		const char c = folded(cut_decoded(raw)), wanted = folded(name.ptr[0]);

		if (c != wanted &&
			!(nocase && slice_is_nocase(slice_make(&c, 1), slice_make(&wanted, 1))))
			return false;
		name = slice_skip(name, 1);
	}
	return true;
}

/* What stands behind a name and is no part of it: an array's index, and in PHP all from a NUL on.
 */
static bool
is_behind_name(struct slice raw)
{
	if (raw.len == 0)
		return true;
	const char c = cut_decoded(&raw);

	return c == '\0' || c == '[' || c == ']';
}

/* PHP passes over blanks in front of a name, Ruby's Rack over brackets. */
bool
url_query_is_named(struct slice raw, struct slice name, bool nocase)
{
	for (;;) {
		struct slice rest = raw;

		if (cut_name(&rest, name, nocase) && is_behind_name(rest))
			return true;
		if (raw.len == 0)
			return false;
		const char c = cut_decoded(&raw);

		if (c != ' ' && c != '[' && c != ']')
			return false;
	}
}

bool
url_query_next(struct slice *rest, enum url_query_separators separators, struct slice name,
	bool nocase, struct slice *value)
{
	while (rest->len > 0) {
		struct slice pair = slice_first(*rest, slice_find(*rest, '&'));

		if (separators == URL_QUERY_SEMICOLONS)
			pair = slice_first(pair, slice_find(pair, ';'));
		const size_t equals = slice_find(pair, '=');

		*rest = slice_skip(*rest, pair.len < rest->len ? pair.len + 1 : pair.len);
		if (pair.len == 0 || !url_query_is_named(slice_first(pair, equals), name, nocase))
			continue;
		*value = slice_skip(pair, equals < pair.len ? equals + 1 : equals);
		return true;
	}
	return false;
}

size_t
url_query_decode(struct slice value, char *out)
{
	size_t len = 0;

	while (value.len > 0)
		out[len++] = cut_decoded(&value);
	return len;
}
