/*
 * Makes sense of the lines of a response head. A few names have a meaning for us and a row in a
 * table; all other fields are kept as they are, in their order. What would be read differently by
 * different web servers is left out here or makes the head bad, never passed on.
 */
#include "cgi_private.h"

#include "weir/units.h"

/* tchar of RFC 9110 section 5.6.2, a bit for each. */
static bool
is_token_char(unsigned char c)
{
	static const uint32_t set[8] = { 0, 0x03ff6cfa, 0xc7fffffe, 0x57ffffff };

	return (set[c >> 5] >> (c & 31) & 1) != 0;
}

static bool
is_token(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		if (!is_token_char((unsigned char)name.ptr[i]))
			return false;
	}
	return name.len > 0;
}

/* Whether no byte is a control character other than tab. */
static bool
is_clean(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		const unsigned char c = (unsigned char)text.ptr[i];

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static int
keep(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	struct cgi_head *head = parse->head;

	if (!is_clean(value)) {
		head->dropped++;
		return 0;
	}
	if (head->field_count == parse->field_room)
		return err_set(err, "the response head has more than %d fields", CGI_FIELDS_MAX);
	head->fields[head->field_count++] = (struct cgi_field){ name, value, false };
	parse->understood = true;
	return 0;
}

/* Three digits, then the end or a blank and a reason. */
static void
take_status(struct cgi_parse *parse, struct slice text)
{
	struct cgi_head *head = parse->head;
	uint64_t status;

	if (parse_uint(slice_first(text, 3), 599, &status) != 0 || status < 100 ||
		(text.len > 3 && text.ptr[3] != ' ' && text.ptr[3] != '\t') || !is_clean(text)) {
		parse->bad_status = true;
		head->dropped++;
		return;
	}
	parse->understood = true;
	if (head->status != 0)
		return;
	head->status = (unsigned)status;
	head->reason = slice_trim(slice_skip(text, 3));
}

static int
on_status(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	(void)name, (void)err;
	take_status(parse, value);
	return 0;
}

/* The connection is ours, not the program's. */
static int
on_connection(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	(void)name, (void)value, (void)err;
	parse->understood = true;
	return 0;
}

static int
on_transfer_encoding(
	struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	(void)name;
	/* A second "chunked" would be a body in chunks within chunks. */
	if (!slice_is_nocase(value, SLICE("chunked")) || parse->head->chunked)
		return err_set(
			err, "the response has a transfer coding other than \"chunked\", once");
	parse->head->chunked = true;
	parse->understood = true;
	return 0;
}

static int
on_content_length(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	struct cgi_head *head = parse->head;
	uint64_t length;

	if (parse_uint(value, INT64_MAX, &length) != 0) {
		head->dropped++;
		return 0;
	}
	if (head->content_length == (int64_t)length)
		return 0;
	if (head->content_length >= 0)
		return err_set(err, "the response has two Content-Length fields that differ");
	head->content_length = (int64_t)length;
	return keep(parse, name, value, err);
}

static int
on_location(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err)
{
	const unsigned before = parse->head->field_count;
	const int result = keep(parse, name, value, err);

	parse->has_location = parse->has_location || parse->head->field_count > before;
	return result;
}

typedef int
on_field_fn(struct cgi_parse *parse, struct slice name, struct slice value, struct err *err);

static const struct {
	struct slice name;
	on_field_fn *on_field;
} meanings[] = {
	{ { "status", 6 }, on_status },
	{ { "location", 8 }, on_location },
	{ { "connection", 10 }, on_connection },
	{ { "keep-alive", 10 }, on_connection },
	{ { "proxy-connection", 16 }, on_connection },
	{ { "te", 2 }, on_connection },
	{ { "trailer", 7 }, on_connection },
	{ { "content-length", 14 }, on_content_length },
	{ { "transfer-encoding", 17 }, on_transfer_encoding },
};

static on_field_fn *
meaning_of(struct slice name)
{
	for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++) {
		/* Nearly all names differ in length already. */
		if (meanings[i].name.len == name.len && slice_is_nocase(meanings[i].name, name))
			return meanings[i].on_field;
	}
	return keep;
}

int
cgi_parse_field(struct cgi_parse *parse, struct slice line, struct err *err)
{
	const size_t colon = slice_find(line, ':');
	const struct slice name = cgi_trim_end(slice_first(line, colon));

	if (colon == line.len || !is_token(name)) {
		parse->head->dropped++;
		return 0;
	}
	return meaning_of(name)(parse, name, slice_trim(slice_skip(line, colon + 1)), err);
}

bool
cgi_parse_status_line(struct cgi_parse *parse, struct slice line)
{
	if (!slice_has_prefix(line, SLICE("HTTP/")))
		return false;
	take_status(parse, slice_trim(slice_skip(line, slice_find(line, ' '))));
	return true;
}

int
cgi_parse_end(struct cgi_parse *parse, struct err *err)
{
	struct cgi_head *head = parse->head;

	if (head->status == 0 && parse->bad_status)
		return err_set(err, "the response has no valid status");
	if (!parse->understood)
		return err_set(err, "the response begins without a single valid field");
	if (head->chunked && head->content_length >= 0)
		return err_set(err, "the response has both Content-Length and Transfer-Encoding");
	if (head->status == 0)
		head->status = parse->has_location ? 302 : 200;
	if (head->reason.len == 0)
		head->reason = slice_of(cgi_reason(head->status));
	return 0;
}
