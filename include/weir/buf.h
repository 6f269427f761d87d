/*
 * A growing byte buffer that is created with its maximum: appended to at the end, consumed from the
 * front. It holds no memory while it is empty and has been told to rest (buf_rest).
 */
#ifndef WEIR_BUF_H
#define WEIR_BUF_H

#include "weir/err.h"
#include "weir/slice.h"

struct buf {
	char *data; /* owned; NULL as long as nothing was appended */
	size_t start; /* of what has not been consumed */
	size_t len; /* bytes from start on */
	size_t size; /* allocated */
	size_t max; /* of len */
};

/* `max` bytes at the most can wait in it, at any time. It takes at most twice as much memory. */
void buf_init(struct buf *buf, size_t max);
void buf_release(struct buf *buf);

/* All or nothing. -1 when it would exceed the maximum or memory is out; the buffer is then as
 * before. */
int buf_append(struct buf *buf, const void *bytes, size_t len) WEIR_MUST_CHECK;
int buf_printf(struct buf *buf, const char *format, ...) WEIR_PRINTF(2, 3) WEIR_MUST_CHECK;

static inline int WEIR_MUST_CHECK
buf_append_slice(struct buf *buf, struct slice s)
{
	return buf_append(buf, s.ptr, s.len);
}

/* Room for `len` bytes behind the end, to be filled by the caller and then taken in by buf_commit.
 * NULL as above. */
char *buf_reserve(struct buf *buf, size_t len) WEIR_MUST_CHECK;
void buf_commit(struct buf *buf, size_t len);

/* Drops the first `len` bytes, which are there. */
void buf_consume(struct buf *buf, size_t len);

/* Gives the memory back if the buffer is empty. */
void buf_rest(struct buf *buf);

/* Valid until the next call that changes the buffer. */
static inline struct slice
buf_slice(const struct buf *buf)
{
	return slice_make(buf->data == NULL ? "" : buf->data + buf->start, buf->len);
}

static inline size_t
buf_room(const struct buf *buf)
{
	return buf->max - buf->len;
}

#endif
