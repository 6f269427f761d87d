/*
 * What a stream writes. Output is gathered and goes to the kernel at the end of the turn, or at
 * once with a large piece. Through TLS it is always gathered: a record that the kernel does not
 * take at once must be given again byte for byte, and what stands in the queue stays as it is.
 */
#include "stream_private.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>

enum {
	FLUSH_AT_ONCE = 32768, /* that much gathered is not kept for the end of the turn */
	WRITE_THROUGH = 8192, /* a piece of this size is worth a system call of its own rather than
				 a copy */
};

static void
on_stalled(void *context)
{
	stream_break(context, ETIMEDOUT);
}

void
stream_end_stall(struct stream *stream)
{
	if (stream->stalled != NULL)
		timer_cancel(stream->stalled);
}

/* Output must wait, from now on or as before. */
static void
limit_stall(struct stream *stream)
{
	if (stream->send_timeout_us == 0)
		return;
	if (stream->stalled == NULL)
		stream->stalled = timer_new(stream->loop, on_stalled, stream);
	if (stream->stalled == NULL)
		stream_break(stream, ENOMEM);
	else if (!timer_is_set(stream->stalled))
		timer_set(stream->stalled, loop_now_us(stream->loop) + stream->send_timeout_us);
}

void
stream_watch_writable(struct stream *stream)
{
	if (!event_pending(&stream->writable, EV_WRITE, NULL))
		(void)event_add(&stream->writable, NULL);
}

/* The peer takes nothing more; what it has said can still be read. */
static void
go_deaf(struct stream *stream)
{
	stream->deaf = true;
	stream_end_stall(stream);
	buf_consume(&stream->out, stream->out.len);
}

/* TLS takes one piece. */
static ssize_t
send_pieces(struct stream *stream, const struct iovec *pieces, int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = (size_t)count };

	if (stream->tls != NULL)
		return tls_write(stream, slice_make(pieces->iov_base, pieces->iov_len));
	if (stream->is_pipe)
		return writev(stream->fd, pieces, count);
	return count == 1 ? send(stream->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
			  : sendmsg(stream->fd, &message, MSG_NOSIGNAL);
}

/* Returns bytes written, 0 if the kernel takes none now; the stream may be broken afterwards. */
static size_t
write_some(struct stream *stream, const struct iovec *pieces, int count)
{
	ssize_t n;

	do {
		n = send_pieces(stream, pieces, count);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		stream_end_stall(stream);
	if (n >= 0) {
		stream->taken += (size_t)n;
		return (size_t)n;
	}
	if (errno == EAGAIN)
		return 0;
	if (stream->read_on && (errno == EPIPE || errno == ECONNRESET))
		go_deaf(stream);
	else
		stream_break(stream, errno);
	return 0;
}

static void
finish_now(struct stream *stream)
{
	/* `drained` may have given more to write. */
	if (stream->finish && !stream->finished && !stream->broken && stream->out.len == 0) {
		stream->finished = true;
		tls_finish(stream);
		if (!stream->is_pipe)
			(void)shutdown(stream->fd, SHUT_WR);
		if (stream->handler->finished != NULL)
			stream->handler->finished(stream->context);
	}
}

void
stream_put_out(struct stream *stream)
{
	if (stream->broken || stream->connecting)
		return;
	if (stream->out.len > 0) {
		const struct slice bytes = buf_slice(&stream->out);
		const struct iovec piece = { (void *)(uintptr_t)bytes.ptr, bytes.len };

		const size_t written = write_some(stream, &piece, 1);

		if (!stream->deaf)
			buf_consume(&stream->out, written);
	}
	if (stream->broken)
		return;
	if (stream->out.len > 0) {
		stream_watch_writable(stream);
		limit_stall(stream);
		return;
	}
	buf_rest(&stream->out);
	if (stream->was_full) {
		stream->was_full = false;
		stream->handler->drained(stream->context);
	}
	finish_now(stream);
}

void
stream_flush(struct stream *stream)
{
	stream_enter(stream);
	stream_put_out(stream);
	stream_leave(stream);
}

void
stream_write(struct stream *stream, struct slice bytes)
{
	stream_write_pair(stream, (struct slice){ NULL, 0 }, bytes);
}

/* Gives the kernel what waits, and the head and the body behind it. Returns what it took of the
 * last two. */
static size_t
write_through(struct stream *stream, struct slice head, struct slice body)
{
	const struct slice waiting = buf_slice(&stream->out);
	const struct iovec pieces[] = {
		{ (void *)(uintptr_t)waiting.ptr, waiting.len },
		{ (void *)(uintptr_t)head.ptr, head.len },
		{ (void *)(uintptr_t)body.ptr, body.len },
	};
	size_t taken = write_some(stream, pieces, 3);
	const size_t of_waiting = taken < waiting.len ? taken : waiting.len;

	if (stream->deaf)
		return head.len + body.len;
	buf_consume(&stream->out, of_waiting);
	return taken - of_waiting;
}

static void
queue(struct stream *stream, struct slice bytes)
{
	if (!stream->broken && buf_append_slice(&stream->out, bytes) != 0)
		stream_break(stream, ENOBUFS);
}

void
stream_write_pair(struct stream *stream, struct slice head, struct slice body)
{
	const bool can_write = !stream->connecting && !stream->was_full && stream->tls == NULL;

	assert(!stream->finish);
	if (stream->broken || stream->deaf)
		return;
	if (can_write && (body.len >= WRITE_THROUGH || stream->out.len >= FLUSH_AT_ONCE)) {
		const size_t taken = write_through(stream, head, body);
		const size_t of_head = taken < head.len ? taken : head.len;

		head = slice_skip(head, of_head);
		body = slice_skip(body, taken - of_head);
	}
	queue(stream, head);
	queue(stream, body);
	if (stream->out.len >= STREAM_FULL)
		stream->was_full = true;
	if (stream->out.len > 0)
		loop_defer(stream->loop, &stream->end_of_turn);
}

bool
stream_is_full(const struct stream *stream)
{
	return stream->was_full;
}

size_t
stream_queued(const struct stream *stream)
{
	return stream->out.len;
}

uint64_t
stream_untaken(const struct stream *stream)
{
	int in_kernel = 0;

	/* A pipe knows the second one only. */
	if (ioctl(stream->fd, SIOCOUTQ, &in_kernel) != 0 &&
		ioctl(stream->fd, FIONREAD, &in_kernel) != 0)
		return stream->out.len;
	return stream->out.len + (uint64_t)in_kernel;
}

uint64_t
stream_taken(const struct stream *stream)
{
	return stream->taken;
}

void
stream_finish(struct stream *stream)
{
	stream->finish = true;
	loop_defer(stream->loop, &stream->end_of_turn);
}

void
stream_set_send_timeout(struct stream *stream, int64_t timeout_us)
{
	stream->send_timeout_us = timeout_us;
}
