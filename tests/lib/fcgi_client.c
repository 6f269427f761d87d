/* Answers are gathered whole, and looked at afterwards. */
#include "fcgi_client.h"

#include "sockets.h"

static uint16_t
id_of(const struct request_spec *spec)
{
	return spec->id == 0 ? 1 : spec->id;
}

static uint16_t
role_of(const struct request_spec *spec)
{
	return spec->role == 0 ? FCGI_RESPONDER : spec->role;
}

void
put_head(struct buf *out, const struct request_spec *spec)
{
	static const char *const none[] = { NULL };
	const uint16_t id = id_of(spec);
	struct buf pairs;

	bytes_init(&pairs);
	put_pairs(&pairs, spec->params == NULL ? none : spec->params);
	put_begin(out, id, role_of(spec), spec->keep ? FCGI_KEEP_CONN : 0);
	put_stream(out, FCGI_PARAMS, id, buf_slice(&pairs), 32768);
	put_record(out, FCGI_PARAMS, id, SLICE(""), 0);
	buf_release(&pairs);
}

void
put_request(struct buf *out, const struct request_spec *spec)
{
	put_head(out, spec);
	if (role_of(spec) == FCGI_AUTHORIZER)
		return;
	put_stream(out, FCGI_STDIN, id_of(spec), spec->body, 32768);
	put_record(out, FCGI_STDIN, id_of(spec), SLICE(""), 0);
}

bool
send_body(int fd, size_t len, bool with_end)
{
	static const char zeros[1 << 20];
	struct buf bytes;
	bool taken = true;

	bytes_init(&bytes);
	while (taken && len > 0) {
		const struct slice piece = slice_first(slice_make(zeros, sizeof zeros), len);

		put_stream(&bytes, FCGI_STDIN, 1, piece, 32768);
		taken = socket_send(fd, buf_slice(&bytes));
		buf_consume(&bytes, bytes.len);
		len -= piece.len;
	}
	if (taken && with_end) {
		put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
		taken = socket_send(fd, buf_slice(&bytes));
	}
	buf_release(&bytes);
	return taken;
}

static void
take_end(struct answer *answer, const struct record *record)
{
	const uint8_t *body = record->content;

	if (record->len != 8) {
		answer->strays++;
		return;
	}
	answer->ended = true;
	answer->app_status = (uint32_t)body[0] << 24 | (uint32_t)body[1] << 16 |
		(uint32_t)body[2] << 8 | body[3];
	answer->protocol_status = body[4];
	memcpy(answer->reserved, body + 5, sizeof answer->reserved);
}

static void
take_record(struct answer *answer, const struct record *record, uint16_t id)
{
	const struct slice content = slice_make(record->content, record->len);

	if (record->id == id && record->type == FCGI_STDOUT && !answer->out_ended) {
		answer->out_ended = record->len == 0;
		bytes_add(&answer->out, content);
	} else if (record->id == id && record->type == FCGI_STDERR) {
		bytes_add(&answer->err, content);
	} else if (record->id == id && record->type == FCGI_END_REQUEST) {
		take_end(answer, record);
	} else {
		answer->strays++;
	}
}

void
answer_read(struct answer *answer, int fd, uint16_t id)
{
	static _Thread_local struct record record;

	*answer = (struct answer){ .got = GOT_RECORD };
	bytes_init(&answer->out);
	bytes_init(&answer->err);
	while (!answer->ended) {
		answer->got = read_record(fd, &record);
		if (answer->got != GOT_RECORD)
			return;
		take_record(answer, &record, id);
	}
}

void
answer_release(struct answer *answer)
{
	buf_release(&answer->out);
	buf_release(&answer->err);
}

void
answer_to(struct answer *answer, int fd, const struct request_spec *spec)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_request(&bytes, spec);
	/* If it is not all taken the answer says why. */
	(void)socket_send(fd, buf_slice(&bytes));
	buf_release(&bytes);
	answer_read(answer, fd, id_of(spec));
}

/* ---- the head ---- */

static const char blank_line[] = "\r\n\r\n";

static struct slice
head_of(const struct answer *answer)
{
	const struct slice all = buf_slice(&answer->out);
	const char *end = memmem(all.ptr, all.len, blank_line, 4);

	return slice_first(all, end == NULL ? 0 : (size_t)(end - all.ptr) + 2);
}

struct slice
answer_body(const struct answer *answer)
{
	const struct slice head = head_of(answer);

	return slice_skip(buf_slice(&answer->out), head.len == 0 ? 0 : head.len + 2);
}

unsigned
answer_status(const struct answer *answer)
{
	const struct slice head = head_of(answer), name = SLICE("Status: ");
	unsigned status = 0;

	if (!slice_has_prefix(head, name) || head.len < name.len + 5 ||
		head.ptr[name.len + 3] != ' ')
		return 0;
	for (size_t i = 0; i < 3; i++)
		status = status * 10 + (unsigned)(head.ptr[name.len + i] - '0');
	return status;
}

/* The first of them, and how many there are. */
static unsigned
find_fields(const struct answer *answer, const char *name, struct slice *value)
{
	struct slice rest = head_of(answer), line;
	unsigned count = 0;

	while (rest.len > 0 && slice_split(&rest, '\n', &line)) {
		const size_t colon = slice_find(line, ':');

		if (!slice_is_nocase(slice_first(line, colon), slice_of(name)))
			continue;
		line = slice_skip(line, colon < line.len ? colon + 1 : colon);
		if (line.len > 0 && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (count++ == 0)
			*value = slice_trim(line);
	}
	return count;
}

struct slice
answer_field(const struct answer *answer, const char *name)
{
	struct slice value = { NULL, 0 };

	(void)find_fields(answer, name, &value);
	return value;
}

unsigned
answer_field_count(const struct answer *answer, const char *name)
{
	struct slice ignored;

	return find_fields(answer, name, &ignored);
}

bool
answer_is_whole(const struct answer *answer)
{
	return answer->got == GOT_RECORD && answer->ended && answer->out_ended &&
		answer->protocol_status == FCGI_REQUEST_COMPLETE && answer->strays == 0;
}
