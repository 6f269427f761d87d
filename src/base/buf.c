/*
 * Capped buffers. Consuming moves a cursor; the bytes are moved to the front only when the tail has
 * no room and at least as many were consumed before them as are moved. Otherwise the buffer grows,
 * to twice its maximum at the most. So a long stream moves each byte about once, even if the buffer
 * stays nearly full and is drained in small steps.
 */
#include "weir/buf.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUF_FIRST_SIZE = 256 };

void
buf_init(struct buf *buf, size_t max)
{
	*buf = (struct buf){ .max = max };
}

void
buf_release(struct buf *buf)
{
	free(buf->data);
	*buf = (struct buf){ .max = buf->max };
}

static int
grow(struct buf *buf, size_t need)
{
	size_t size = buf->size == 0 ? BUF_FIRST_SIZE : 2 * buf->size;

	if (need > SIZE_MAX / 4)
		return -1;
	while (size < need)
		size *= 2;
	/* Twice the maximum is enough: without room behind it, half of it is consumed before. */
	if (buf->max <= SIZE_MAX / 4 && size > 2 * buf->max && 2 * buf->max >= need)
		size = 2 * buf->max;
	char *data = malloc(size);
	if (data == NULL)
		return -1;
	if (buf->len > 0)
		memcpy(data, buf->data + buf->start, buf->len);
	free(buf->data);
	buf->data = data;
	buf->start = 0;
	buf->size = size;
	return 0;
}

/* Room for `len` bytes behind the end, whatever the maximum says. */
static char *
make_room(struct buf *buf, size_t len)
{
	if (buf->data == NULL || len > buf->size - buf->start - buf->len) {
		if (buf->data != NULL && buf->start >= buf->len && len <= buf->size - buf->len) {
			memmove(buf->data, buf->data + buf->start, buf->len);
			buf->start = 0;
		} else if (len > SIZE_MAX - buf->len || grow(buf, buf->len + len) != 0) {
			return NULL;
		}
	}
	return buf->data + buf->start + buf->len;
}

char *
buf_reserve(struct buf *buf, size_t len)
{
	return len > buf_room(buf) ? NULL : make_room(buf, len);
}

void
buf_commit(struct buf *buf, size_t len)
{
	assert(len <= buf_room(buf) && len <= buf->size - buf->start - buf->len);
	buf->len += len;
}

int
buf_append(struct buf *buf, const void *bytes, size_t len)
{
	if (len == 0)
		return 0;
	char *to = buf_reserve(buf, len);

	if (to == NULL)
		return -1;
	memcpy(to, bytes, len);
	buf_commit(buf, len);
	return 0;
}

int
buf_printf(struct buf *buf, const char *format, ...)
{
	va_list args, again;

	va_start(args, format);
	va_copy(again, args);
	int need = vsnprintf(NULL, 0, format, args);
	va_end(args);
	/* The terminator needs room but does not count. */
	char *to =
		need < 0 || (size_t)need > buf_room(buf) ? NULL : make_room(buf, (size_t)need + 1);

	if (to != NULL) {
		(void)vsnprintf(to, (size_t)need + 1, format, again);
		buf_commit(buf, (size_t)need);
	}
	va_end(again);
	return to == NULL ? -1 : 0;
}

void
buf_consume(struct buf *buf, size_t len)
{
	assert(len <= buf->len);
	buf->len -= len;
	buf->start = buf->len == 0 ? 0 : buf->start + len;
}

void
buf_rest(struct buf *buf)
{
	if (buf->len == 0)
		buf_release(buf);
}
