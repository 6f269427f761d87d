/* Records and pairs, in the simplest way. */
#include "fcgi_peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { BYTES_MAX = 256 * 1024 * 1024 };

void
bytes_init(struct buf *bytes)
{
	buf_init(bytes, BYTES_MAX);
}

void
bytes_add(struct buf *bytes, struct slice s)
{
	if (buf_append_slice(bytes, s) == 0)
		return;
	(void)fputs("no memory for what a test sends\n", stderr);
	abort();
}

static void
add_byte(struct buf *bytes, size_t byte)
{
	const char c = (char)byte;

	bytes_add(bytes, slice_make(&c, 1));
}

void
put_record(struct buf *out, uint8_t type, uint16_t id, struct slice content, uint8_t padding)
{
	static const char zeros[256];

	add_byte(out, FCGI_VERSION_1);
	add_byte(out, type);
	add_byte(out, id >> 8);
	add_byte(out, id & 0xff);
	add_byte(out, content.len >> 8);
	add_byte(out, content.len & 0xff);
	add_byte(out, padding);
	add_byte(out, 0);
	bytes_add(out, content);
	bytes_add(out, slice_make(zeros, padding));
}

void
put_begin(struct buf *out, uint16_t id, uint16_t role, uint8_t flags)
{
	const char body[8] = { (char)(role >> 8), (char)role, (char)flags };

	put_record(out, FCGI_BEGIN_REQUEST, id, slice_make(body, sizeof body), 0);
}

void
put_end(struct buf *out, uint16_t id, uint32_t app_status, uint8_t protocol_status)
{
	const char body[8] = { (char)(app_status >> 24), (char)(app_status >> 16),
		(char)(app_status >> 8), (char)app_status, (char)protocol_status };

	put_record(out, FCGI_END_REQUEST, id, slice_make(body, sizeof body), 0);
}

void
put_stream(struct buf *out, uint8_t type, uint16_t id, struct slice bytes, size_t piece)
{
	while (bytes.len > 0) {
		const struct slice content = slice_first(bytes, piece);

		put_record(out, type, id, content, 0);
		bytes = slice_skip(bytes, content.len);
	}
}

static void
put_length(struct buf *out, size_t len)
{
	if (len >= 0x80) {
		add_byte(out, 0x80 | len >> 24);
		add_byte(out, len >> 16);
		add_byte(out, len >> 8);
	}
	add_byte(out, len);
}

void
put_pair(struct buf *out, struct slice name, struct slice value)
{
	put_length(out, name.len);
	put_length(out, value.len);
	bytes_add(out, name);
	bytes_add(out, value);
}

void
put_pairs(struct buf *out, const char *const *pairs)
{
	for (; pairs[0] != NULL; pairs += 2)
		put_pair(out, slice_of(pairs[0]), slice_of(pairs[1]));
}

/* GOT_RECORD if all of it came. `at_start`: an end before the first byte is no cut. */
static enum got
read_all(int fd, uint8_t *out, size_t len, bool at_start)
{
	size_t have = 0;

	while (have < len) {
		const ssize_t n = recv(fd, out + have, len - have, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return GOT_NOTHING;
		if (n <= 0)
			return n == 0 && at_start && have == 0 ? GOT_END : GOT_CUT;
		have += (size_t)n;
	}
	return GOT_RECORD;
}

enum got
read_record(int fd, struct record *record)
{
	uint8_t head[8], padding[255];
	enum got got = read_all(fd, head, sizeof head, true);

	if (got != GOT_RECORD)
		return got;
	record->type = head[1];
	record->id = (uint16_t)(head[2] << 8 | head[3]);
	record->len = (uint16_t)(head[4] << 8 | head[5]);
	if (head[0] != FCGI_VERSION_1)
		return GOT_CUT;
	got = read_all(fd, record->content, record->len, false);
	if (got == GOT_RECORD)
		got = read_all(fd, padding, head[6], false);
	return got;
}
