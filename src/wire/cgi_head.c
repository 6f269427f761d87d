/*
 * Reads the head of a response and writes its normal form.
 *
 * A head that comes whole in one input is taken apart where it stands; this is the usual case and
 * copies nothing. Only when it comes in pieces is it gathered, line by line, so that not a byte of
 * the body is gathered with it. Either way the lines are looked at once the blank one is there.
 */
#include "cgi_private.h"

#include <assert.h>

void
cgi_head_reader_init(struct cgi_head_reader *reader, struct arena *arena)
{
	*reader = (struct cgi_head_reader){ .arena = arena };
	buf_init(&reader->bytes, CGI_HEAD_MAX);
}

void
cgi_head_reader_release(struct cgi_head_reader *reader)
{
	buf_release(&reader->bytes);
}

/* ---- finding the blank line ---- */

/* Whether the last line of s, which begins at the start of a line, is blank and has its end. */
static bool
ends_blank(struct slice s)
{
	if (s.len == 0 || s.ptr[s.len - 1] != '\n')
		return false;
	s.len--;
	if (s.len > 0 && s.ptr[s.len - 1] == '\r')
		s.len--;
	return s.len == 0 || s.ptr[s.len - 1] == '\n';
}

/* The length of the head at the start of s with its blank line; 0 if that is not there. */
static size_t
head_len(struct slice s)
{
	size_t len = 0;

	while (len < s.len) {
		len += slice_find(slice_skip(s, len), '\n') + 1;
		if (len <= s.len && ends_blank(slice_first(s, len)))
			return len;
	}
	return 0;
}

/* 1: a head is whole in reader->bytes; 0: more is needed; -1: see err. */
static int
gather(struct cgi_head_reader *reader, struct slice *input, struct err *err)
{
	while (input->len > 0) {
		const size_t line_end = slice_find(*input, '\n');
		const struct slice line = slice_first(*input, line_end + 1);

		if (line.len > CGI_HEAD_MAX - reader->taken)
			return err_set(
				err, "the response head has more than %d bytes", CGI_HEAD_MAX);
		if (buf_append_slice(&reader->bytes, line) != 0)
			return err_set(err, "no memory for the response head");
		reader->taken += line.len;
		*input = slice_skip(*input, line.len);
		if (ends_blank(buf_slice(&reader->bytes)))
			return 1;
	}
	return 0;
}

/* The same, with the head in *bytes. */
static int
next_head(struct cgi_head_reader *reader, struct slice *input, struct slice *bytes, struct err *err)
{
	const size_t len = reader->bytes.len > 0
		? 0
		: head_len(slice_first(*input, CGI_HEAD_MAX - reader->taken));

	if (len > 0) {
		*bytes = slice_first(*input, len);
		*input = slice_skip(*input, len);
		reader->taken += len;
		return 1;
	}
	const int found = gather(reader, input, err);

	*bytes = buf_slice(&reader->bytes);
	return found;
}

/* ---- lines ---- */

static size_t
count_lines(struct slice s)
{
	size_t lines = 0;

	while (s.len > 0) {
		s = slice_skip(s, slice_find(s, '\n') + 1);
		lines++;
	}
	return lines;
}

/* Cuts a line off *rest, which has one, and returns it without its end. */
static struct slice
cut_line(struct slice *rest)
{
	const size_t end = slice_find(*rest, '\n');
	struct slice line = slice_first(*rest, end);

	*rest = slice_skip(*rest, end + 1);
	if (line.len > 0 && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Whether the next line continues the one before it (obs-fold, RFC 9112 section 5.2). */
static bool
is_folded(struct slice rest)
{
	return rest.len > 0 && (rest.ptr[0] == ' ' || rest.ptr[0] == '\t');
}

/* Joins *line with the lines that continue it. -1: the arena is full. */
static int
unfold(struct arena *arena, struct slice *line, struct slice *rest)
{
	struct slice ahead = *rest;
	size_t size = line->len;

	/* Each begins with the blank that will join it. */
	while (is_folded(ahead))
		size += cut_line(&ahead).len;
	char *joined = arena_alloc(arena, size);

	if (joined == NULL)
		return -1;
	size_t len = cgi_trim_end(*line).len;

	memcpy(joined, line->ptr, len);

	while (is_folded(*rest)) {
		const struct slice part = slice_trim(cut_line(rest));

		if (part.len == 0)
			continue;
		joined[len++] = ' ';
		memcpy(joined + len, part.ptr, part.len);
		len += part.len;
	}
	*line = slice_make(joined, len);
	return 0;
}

static int
parse_head(struct arena *arena, struct slice bytes, struct cgi_head *head, struct err *err)
{
	const size_t lines = count_lines(bytes);
	struct cgi_parse parse = { .head = head,
		.field_room = lines < CGI_FIELDS_MAX ? (unsigned)lines : CGI_FIELDS_MAX };
	bool is_first = true;

	*head = (struct cgi_head){ .content_length = -1 };
	head->fields = arena_alloc(arena, parse.field_room * sizeof *head->fields);
	if (head->fields == NULL)
		return err_set(err, "no memory for the response head");
	for (struct slice line = cut_line(&bytes); line.len > 0; line = cut_line(&bytes)) {
		if (is_folded(bytes) && unfold(arena, &line, &bytes) != 0)
			return err_set(err, "no memory for the response head");
		const bool is_status = is_first && cgi_parse_status_line(&parse, line);

		is_first = false;
		if (!is_status && cgi_parse_field(&parse, line, err) != 0)
			return -1;
	}
	return cgi_parse_end(&parse, err);
}

enum cgi_head_result
cgi_head_read(
	struct cgi_head_reader *reader, struct slice *input, struct cgi_head *head, struct err *err)
{
	for (;;) {
		struct slice bytes;
		const int found = next_head(reader, input, &bytes, err);

		if (found <= 0)
			return found == 0 ? CGI_HEAD_MORE : CGI_HEAD_BAD;
		if (parse_head(reader->arena, bytes, head, err) != 0)
			return CGI_HEAD_BAD;
		if (head->status >= 200)
			return CGI_HEAD_DONE;
		buf_consume(&reader->bytes, reader->bytes.len);
	}
}

/* ---- the head as a whole ---- */

static bool
is_named(const struct cgi_field *field, struct slice name)
{
	return !field->removed && slice_is_nocase(field->name, name);
}

struct cgi_field *
cgi_head_find(const struct cgi_head *head, struct slice name)
{
	for (unsigned i = 0; i < head->field_count; i++) {
		if (is_named(&head->fields[i], name))
			return &head->fields[i];
	}
	return NULL;
}

unsigned
cgi_head_remove(struct cgi_head *head, struct slice name)
{
	unsigned removed = 0;

	for (unsigned i = 0; i < head->field_count; i++) {
		if (!is_named(&head->fields[i], name))
			continue;
		head->fields[i].removed = true;
		removed++;
	}
	return removed;
}

static char *
put(char *at, struct slice s)
{
	if (s.len > 0)
		memcpy(at, s.ptr, s.len);
	return at + s.len;
}

static size_t
written_size(const struct cgi_head *head, struct slice extra)
{
	size_t size = sizeof "Status: NNN \r\n\r\n" - 1 + head->reason.len + extra.len;

	for (unsigned i = 0; i < head->field_count; i++) {
		const struct cgi_field *field = &head->fields[i];

		if (!field->removed)
			size += field->name.len + field->value.len + sizeof ": \r\n" - 1;
	}
	return size;
}

int
cgi_head_write(const struct cgi_head *head, struct slice extra, struct buf *out)
{
	const unsigned status = head->status;
	const size_t size = written_size(head, extra);
	char *start = buf_reserve(out, size), *at = start;

	assert(status >= 100 && status <= 999);
	if (start == NULL)
		return -1;
	at = put(at, SLICE("Status: "));
	*at++ = (char)('0' + status / 100);
	*at++ = (char)('0' + status / 10 % 10);
	*at++ = (char)('0' + status % 10);
	*at++ = ' ';
	at = put(at, head->reason);
	at = put(at, SLICE("\r\n"));
	for (unsigned i = 0; i < head->field_count; i++) {
		const struct cgi_field *field = &head->fields[i];

		if (field->removed)
			continue;
		at = put(at, field->name);
		at = put(at, SLICE(": "));
		at = put(at, field->value);
		at = put(at, SLICE("\r\n"));
	}
	at = put(at, extra);
	at = put(at, SLICE("\r\n"));
	assert((size_t)(at - start) == size);
	buf_commit(out, size);
	return 0;
}
