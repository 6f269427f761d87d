/*
 * RFC 9112 for GET and HEAD. What is not understood in full is refused, and the connection ends
 * with it: there is no second opinion on where a request ends.
 */
#include "http_request.h"

enum { BAD_REQUEST = 400, NOT_ALLOWED = 405, TOO_LARGE = 413, VERSION_UNKNOWN = 505 };

/* The first line, without its end (section 2.2: LF alone is taken too). */
static struct slice
take_line(struct slice *rest)
{
	const size_t len = slice_find(*rest, '\n');
	struct slice line = slice_first(*rest, len);

	*rest = slice_skip(*rest, len + 1);
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

size_t
http_head_len(struct slice input)
{
	struct slice rest = input;

	while (slice_find(rest, '\n') < rest.len) {
		if (take_line(&rest).len == 0)
			return input.len - rest.len;
	}
	return 0;
}

/* Section 3.2: origin form, or absolute form, of which the authority is dropped. */
static unsigned
parse_target(struct slice target, struct slice *path)
{
	static const struct slice scheme = { "http://", 7 };

	if (slice_has_prefix(target, scheme)) {
		target = slice_skip(target, scheme.len);
		target = slice_skip(target, slice_find(target, '/'));
		if (target.len == 0)
			target = SLICE("/");
	}
	if (target.len == 0 || target.ptr[0] != '/')
		return BAD_REQUEST;
	for (size_t i = 0; i < target.len; i++) {
		if (target.ptr[i] <= ' ' || target.ptr[i] > '~')
			return BAD_REQUEST;
	}
	target = slice_first(target, slice_find(target, '#'));
	*path = slice_first(target, slice_find(target, '?'));
	return 0;
}

static unsigned
parse_request_line(struct slice line, struct http_request *out)
{
	struct slice method, target;

	if (!slice_split(&line, ' ', &method) || !slice_split(&line, ' ', &target))
		return BAD_REQUEST;
	if (!slice_has_prefix(line, SLICE("HTTP/")))
		return BAD_REQUEST;
	if (line.len != 8 || !slice_has_prefix(line, SLICE("HTTP/1.")))
		return VERSION_UNKNOWN;
	out->is_1_0 = line.ptr[7] == '0';
	out->is_head = slice_is(method, SLICE("HEAD"));
	if (!out->is_head && !slice_is(method, SLICE("GET")))
		return NOT_ALLOWED;
	return parse_target(target, &out->path);
}

static unsigned
parse_field(struct slice line, struct http_request *out)
{
	const size_t len = slice_find(line, ':');
	const struct slice name = slice_first(line, len);
	struct slice value = slice_trim(slice_skip(line, len + 1)), option;

	/* Section 5.1: no blank before the colon; 5.2: no folded lines. */
	if (len == 0 || len == line.len || slice_find(name, ' ') < len ||
		slice_find(name, '\t') < len)
		return BAD_REQUEST;
	if (slice_is_nocase(name, SLICE("Transfer-Encoding")))
		return TOO_LARGE;
	if (slice_is_nocase(name, SLICE("Content-Length")) && !slice_is(value, SLICE("0")))
		return TOO_LARGE;
	while (slice_is_nocase(name, SLICE("Connection")) && slice_split(&value, ',', &option)) {
		if (slice_is_nocase(option, SLICE("close")))
			out->keep = false;
		else if (slice_is_nocase(option, SLICE("keep-alive")))
			out->keep = true;
	}
	return 0;
}

unsigned
http_parse(struct slice head, struct http_request *out)
{
	*out = (struct http_request){ 0 };
	unsigned status = parse_request_line(take_line(&head), out);

	out->keep = !out->is_1_0;
	while (status == 0 && head.len > 0) {
		const struct slice line = take_line(&head);

		if (line.len > 0)
			status = parse_field(line, out);
	}
	return status;
}
