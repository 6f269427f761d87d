/*
 * FastCGI records and pairs. The reader is a state machine over single bytes of the head and runs
 * of content; it knows nothing of requests, roles or order, which are the business of front and
 * backend.
 */
#include "weir/fcgi.h"

#include <string.h>

enum { LENGTH_MAX = 0x7fffffff }; /* what the four bytes of a long length hold */

void
fcgi_reader_init(struct fcgi_reader *reader)
{
	*reader = (struct fcgi_reader){ .state = FCGI_READ_HEAD };
}

static enum fcgi_event
read_head(struct fcgi_reader *reader, struct slice *input)
{
	const size_t need = FCGI_HEADER_LEN - reader->head_len;
	const size_t n = input->len < need ? input->len : need;

	if (n > 0)
		memcpy(reader->head + reader->head_len, input->ptr, n);
	reader->head_len += (unsigned)n;
	*input = slice_skip(*input, n);
	/* Told at the first byte, so that a peer that speaks another protocol is not waited for. */
	if (reader->head_len > 0 && reader->head[0] != FCGI_VERSION_1)
		return FCGI_BAD;
	if (reader->head_len < FCGI_HEADER_LEN)
		return FCGI_NEED_MORE;
	const uint8_t *head = reader->head;

	reader->record = (struct fcgi_record){
		.type = head[1],
		.id = (uint16_t)(head[2] << 8 | head[3]),
		.len = (uint16_t)(head[4] << 8 | head[5]),
		.padding = head[6],
	};
	reader->head_len = 0;
	reader->content_left = reader->record.len;
	reader->padding_left = reader->record.padding;
	reader->state = FCGI_READ_BODY;
	return FCGI_RECORD;
}

static enum fcgi_event
read_body(struct fcgi_reader *reader, struct slice *input, struct slice *content)
{
	if (reader->content_left > 0) {
		if (input->len == 0)
			return FCGI_NEED_MORE;
		*content = slice_first(*input, reader->content_left);
		*input = slice_skip(*input, content->len);
		reader->content_left -= (uint32_t)content->len;
		return FCGI_CONTENT;
	}
	const size_t n = input->len < reader->padding_left ? input->len : reader->padding_left;

	*input = slice_skip(*input, n);
	reader->padding_left -= (uint32_t)n;
	if (reader->padding_left > 0)
		return FCGI_NEED_MORE;
	reader->state = FCGI_READ_HEAD;
	return FCGI_RECORD_END;
}

enum fcgi_event
fcgi_read(struct fcgi_reader *reader, struct slice *input, struct slice *content)
{
	switch (reader->state) {
	case FCGI_READ_HEAD:
		return read_head(reader, input);
	case FCGI_READ_BODY:
		return read_body(reader, input, content);
	}
	return FCGI_BAD;
}

struct fcgi_begin
fcgi_begin_of(const uint8_t content[8])
{
	return (struct fcgi_begin){ .role = (uint16_t)(content[0] << 8 | content[1]),
		.flags = content[2] };
}

struct fcgi_end
fcgi_end_of(const uint8_t content[8])
{
	return (struct fcgi_end){
		.app_status = (uint32_t)content[0] << 24 | (uint32_t)content[1] << 16 |
			(uint32_t)content[2] << 8 | content[3],
		.protocol_status = content[4],
	};
}

void
fcgi_put_head(
	uint8_t out[FCGI_HEADER_LEN], uint8_t type, uint16_t id, uint16_t len, uint8_t padding)
{
	const uint8_t head[FCGI_HEADER_LEN] = { FCGI_VERSION_1, type, (uint8_t)(id >> 8),
		(uint8_t)id, (uint8_t)(len >> 8), (uint8_t)len, padding, 0 };

	memcpy(out, head, sizeof head);
}

void
fcgi_put_begin(uint8_t out[16], uint16_t id, uint16_t role, uint8_t flags)
{
	const uint8_t body[8] = { (uint8_t)(role >> 8), (uint8_t)role, flags };

	fcgi_put_head(out, FCGI_BEGIN_REQUEST, id, sizeof body, 0);
	memcpy(out + FCGI_HEADER_LEN, body, sizeof body);
}

void
fcgi_put_end(uint8_t out[16], uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	const uint8_t body[8] = { (uint8_t)(app_status >> 24), (uint8_t)(app_status >> 16),
		(uint8_t)(app_status >> 8), (uint8_t)app_status, protocol_status };

	fcgi_put_head(out, FCGI_END_REQUEST, id, sizeof body, 0);
	memcpy(out + FCGI_HEADER_LEN, body, sizeof body);
}

/* One length of a pair: one byte, or four with the highest bit set. -1 if it is not all there. */
static int
length_next(struct slice *pairs, size_t *out)
{
	if (pairs->len == 0)
		return -1;
	const uint8_t *at = (const uint8_t *)pairs->ptr;

	if (at[0] < 0x80) {
		*out = at[0];
		*pairs = slice_skip(*pairs, 1);
		return 0;
	}
	if (pairs->len < 4)
		return -1;
	*out = (size_t)(at[0] & 0x7f) << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
	*pairs = slice_skip(*pairs, 4);
	return 0;
}

int
fcgi_pair_next(struct slice *pairs, struct slice *name, struct slice *value)
{
	size_t name_len, value_len;

	if (pairs->len == 0)
		return 0;
	if (length_next(pairs, &name_len) != 0 || length_next(pairs, &value_len) != 0)
		return -1;
	if (name_len > pairs->len || value_len > pairs->len - name_len)
		return -1;
	*name = slice_first(*pairs, name_len);
	*value = slice_first(slice_skip(*pairs, name_len), value_len);
	*pairs = slice_skip(*pairs, name_len + value_len);
	return 1;
}

static size_t
length_size(size_t len)
{
	return len < 0x80 ? 1 : 4;
}

size_t
fcgi_pair_size(size_t name_len, size_t value_len)
{
	return length_size(name_len) + length_size(value_len) + name_len + value_len;
}

static size_t
length_put(uint8_t *out, size_t len)
{
	if (len < 0x80) {
		out[0] = (uint8_t)len;
		return 1;
	}
	out[0] = (uint8_t)(0x80 | len >> 24);
	out[1] = (uint8_t)(len >> 16);
	out[2] = (uint8_t)(len >> 8);
	out[3] = (uint8_t)len;
	return 4;
}

int
fcgi_pair_put(struct buf *out, struct slice name, struct slice value)
{
	if (name.len > LENGTH_MAX || value.len > LENGTH_MAX)
		return -1;
	uint8_t *at = (uint8_t *)buf_reserve(out, fcgi_pair_size(name.len, value.len));

	if (at == NULL)
		return -1;
	size_t n = length_put(at, name.len);

	n += length_put(at + n, value.len);
	if (name.len > 0)
		memcpy(at + n, name.ptr, name.len);
	if (value.len > 0)
		memcpy(at + n + name.len, value.ptr, value.len);
	buf_commit(out, n + name.len + value.len);
	return 0;
}

static int
params_record(struct buf *out, uint16_t id, struct slice content)
{
	uint8_t head[FCGI_HEADER_LEN];

	fcgi_put_head(head, FCGI_PARAMS, id, (uint16_t)content.len, 0);
	if (buf_append(out, head, sizeof head) != 0)
		return -1;
	return buf_append_slice(out, content);
}

int
fcgi_params_put(struct buf *out, uint16_t id, struct slice pairs)
{
	while (pairs.len > 0) {
		/* As many whole pairs as one record takes. */
		struct slice rest = pairs, name, value;
		size_t taken = 0;

		while (rest.len > 0) {
			if (fcgi_pair_next(&rest, &name, &value) < 0)
				return -1;
			if (pairs.len - rest.len > FCGI_CONTENT_MAX)
				break;
			taken = pairs.len - rest.len;
		}
		if (taken == 0 || params_record(out, id, slice_first(pairs, taken)) != 0)
			return -1;
		pairs = slice_skip(pairs, taken);
	}
	return params_record(out, id, slice_make("", 0));
}
