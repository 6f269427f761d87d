/*
 * Cookies, as they stand in HTTP_COOKIE. RFC 6265 section 5.4 says what browsers send; what a
 * client may send besides, each application reads in its own way.
 */
#include "cookies.h"

#include "weir/url_path.h"

/* ---- one after the other ---- */

static bool
is_blank_at(struct slice s, size_t at)
{
	return at < s.len && (s.ptr[at] == ' ' || s.ptr[at] == '\t');
}

/* CGI::Cookie also ends a cookie at a comma, and http.cookies at a blank that is not beside the
 * equal sign; RFC 6265 section 4.1.1 keeps both out of values. */
static size_t
end_of_cookie(struct slice s)
{
	char before = '=';

	for (size_t i = 0; i < s.len; i++) {
		const size_t start = i;

		while (is_blank_at(s, i))
			i++;
		if (i == s.len || s.ptr[i] == ';' || s.ptr[i] == ',')
			return i;
		if (i > start && before != '=' && s.ptr[i] != '=')
			return start;
		before = s.ptr[i];
	}
	return s.len;
}

static struct slice
cut_cookie(struct pairs *pairs)
{
	const size_t end =
		pairs->is_cut ? end_of_cookie(pairs->rest) : slice_find(pairs->rest, ';');
	const struct slice pair = slice_first(pairs->rest, end);

	pairs->rest = slice_skip(pairs->rest, end < pairs->rest.len ? end + 1 : end);
	return slice_trim(pair);
}

bool
cookie_next(struct pairs *pairs, struct slice *value)
{
	while (pairs->rest.len > 0) {
		const struct slice pair = cut_cookie(pairs);
		const size_t equals = slice_find(pair, '=');
		const struct slice name = slice_trim(slice_first(pair, equals));

		pairs->is_exact = pairs->nocase ? slice_is_nocase(name, pairs->name)
						: slice_is(name, pairs->name);
		if (pair.len == 0 ||
			(!pairs->is_exact && !url_query_is_named(name, pairs->name, pairs->nocase)))
			continue;
		*value = slice_trim(slice_skip(pair, equals < pair.len ? equals + 1 : equals));
		return true;
	}
	return false;
}

/* ---- decoding ---- */

static bool
is_octal(struct slice s)
{
	for (size_t i = 0; i < 3; i++) {
		if (s.len <= i || s.ptr[i] < '0' || s.ptr[i] > (i == 0 ? '3' : '7'))
			return false;
	}
	return true;
}

/* What stands in quotes has escapes of its own, as http.cookies writes them: \" and \054. `out` may
 * be where the value is. */
static struct slice
unquoted(struct slice value, char *out)
{
	size_t len = 0;

	if (value.len < 2 || value.ptr[0] != '"' || value.ptr[value.len - 1] != '"')
		return value;
	value = slice_first(slice_skip(value, 1), value.len - 2);
	while (value.len > 0) {
		const bool is_escape = value.ptr[0] == '\\' && value.len > 1;

		if (is_escape)
			value = slice_skip(value, 1);
		if (is_escape && is_octal(value)) {
			out[len++] = (char)((value.ptr[0] - '0') << 6 | (value.ptr[1] - '0') << 3 |
				(value.ptr[2] - '0'));
			value = slice_skip(value, 3);
		} else {
			out[len++] = value.ptr[0];
			value = slice_skip(value, 1);
		}
	}
	return slice_make(out, len);
}

/* Decoding never makes a text longer, and may be done in place. */
static struct slice
decode(struct slice value, enum cookie_plus plus, char *out)
{
	size_t len = 0;

	if (plus == COOKIE_PLUS_IS_BLANK)
		return slice_make(out, url_query_decode(value, out));
	while (value.len > 0) {
		const size_t n = slice_find(value, '+');

		len += url_query_decode(slice_first(value, n), out + len);
		if (n < value.len)
			out[len++] = '+';
		value = slice_skip(value, n < value.len ? n + 1 : n);
	}
	return slice_make(out, len);
}

bool
cookie_is_coded(struct slice raw)
{
	return slice_find(raw, '%') < raw.len || slice_find(raw, '+') < raw.len ||
		slice_has_prefix(raw, SLICE("\""));
}

struct slice
cookie_decode(struct slice raw, enum cookie_plus plus, char *out)
{
	return cookie_is_coded(raw) ? unquoted(decode(raw, plus, out), out) : raw;
}

struct slice
cookie_normal(struct slice raw, char *out)
{
	struct slice value = cookie_decode(raw, COOKIE_PLUS_STAYS, out);

	if (slice_find(value, ' ') < value.len) {
		memmove(out, value.ptr, value.len);
		for (size_t i = 0; i < value.len; i++)
			out[i] = out[i] == ' ' ? '+' : out[i];
		value.ptr = out;
	}
	while (slice_has_prefix(value, SLICE("+")))
		value = slice_skip(value, 1);
	while (value.len > 0 && value.ptr[value.len - 1] == '+')
		value.len--;
	return value;
}
