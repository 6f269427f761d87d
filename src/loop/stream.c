/*
 * Streams over plain sockets.
 *
 * A stream is connecting, open, or broken. Broken is final: the kernel or the queue has failed,
 * nothing more is read or written, and `failed` has been or will be called. `finish` and end of
 * input are independent of each other, as in TCP.
 *
 * Who calls back may find the stream closed when the call returns. So a call is made between
 * enter() and leave(); closing within it only marks, and leave() frees. `failed` is never called
 * from within the owner's own call (stream_write): it waits for the end of the turn.
 */
#include "weir/stream.h"

#include "loop_private.h"
#include "weir/buf.h"

#include <event2/event_struct.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	FLUSH_AT_ONCE = 32768, /* that much gathered is not kept for the end of the turn */
	WRITE_THROUGH = 8192, /* a piece of this size is worth a system call of its own rather than
				 a copy */
};

struct stream {
	struct loop *loop;
	const struct stream_handler *handler;
	void *context;
	int fd;
	struct event readable, writable;
	struct timer *deadline, *stalled; /* made when they are first needed */
	int64_t send_timeout_us; /* 0: none */
	struct deferred end_of_turn;
	struct buf out;
	int error; /* an errno that `failed` has still to tell */
	bool connecting, broken, paused, ended, was_full, finish, finished, watch_close, watched,
		read_on, deaf;
	bool closed; /* by the owner; freed by leave() */
	unsigned depth;
};

static void
destroy(struct stream *stream)
{
	timer_free(stream->deadline);
	timer_free(stream->stalled);
	buf_release(&stream->out);
	free(stream);
}

static void
enter(struct stream *stream)
{
	stream->depth++;
}

static void
leave(struct stream *stream)
{
	if (--stream->depth == 0 && stream->closed)
		destroy(stream);
}

/* Whether the peer has gone is told by reading; where nobody reads, it is watched for. */
static void
set_watch(struct stream *stream)
{
	const bool wanted =
		stream->watch_close && !stream->broken && (stream->paused || stream->ended);

	if (wanted == stream->watched)
		return;
	if (!wanted)
		hangups_forget(loop_hangups(stream->loop), stream->fd);
	stream->watched = wanted && hangups_watch(loop_hangups(stream->loop), stream->fd, stream);
}

/* For good: the stream is broken. */
static void
forget_events(struct stream *stream)
{
	(void)event_del(&stream->readable);
	(void)event_del(&stream->writable);
	set_watch(stream);
}

/* Nothing more is read or written. The owner is told at the end of the turn. */
static void
break_stream(struct stream *stream, int error)
{
	if (stream->broken)
		return;
	stream->broken = true;
	stream->error = error;
	forget_events(stream);
	loop_defer(stream->loop, &stream->end_of_turn);
}

static void
on_stalled(void *context)
{
	break_stream(context, ETIMEDOUT);
}

static void
end_stall(struct stream *stream)
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
		break_stream(stream, ENOMEM);
	else if (!timer_is_set(stream->stalled))
		timer_set(stream->stalled, loop_now_us(stream->loop) + stream->send_timeout_us);
}

static void
watch_writable(struct stream *stream)
{
	if (!event_pending(&stream->writable, EV_WRITE, NULL))
		(void)event_add(&stream->writable, NULL);
}

/* The peer takes nothing more; what it has said can still be read. */
static void
go_deaf(struct stream *stream)
{
	stream->deaf = true;
	end_stall(stream);
	buf_consume(&stream->out, stream->out.len);
}

/* Returns bytes written, 0 if the kernel takes none now; the stream may be broken afterwards. */
static size_t
write_some(struct stream *stream, const struct iovec *pieces, int count)
{
	const struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)pieces,
		.msg_iovlen = (size_t)count };
	ssize_t n;

	do {
		n = count == 1 ? send(stream->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL)
			       : sendmsg(stream->fd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		end_stall(stream);
	if (n >= 0)
		return (size_t)n;
	if (errno == EAGAIN)
		return 0;
	if (stream->read_on && (errno == EPIPE || errno == ECONNRESET))
		go_deaf(stream);
	else
		break_stream(stream, errno);
	return 0;
}

static void
finish_now(struct stream *stream)
{
	/* `drained` may have given more to write. */
	if (stream->finish && !stream->finished && !stream->broken && stream->out.len == 0) {
		stream->finished = true;
		(void)shutdown(stream->fd, SHUT_WR);
		if (stream->handler->finished != NULL)
			stream->handler->finished(stream->context);
	}
}

static void
flush(struct stream *stream)
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
		watch_writable(stream);
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
	enter(stream);
	flush(stream);
	leave(stream);
}

static void
at_end_of_turn(void *context)
{
	struct stream *stream = context;

	enter(stream);
	flush(stream);
	if (!stream->closed && stream->broken && stream->error != 0) {
		const int error = stream->error;

		stream->error = 0;
		stream->handler->failed(stream->context, error);
	}
	leave(stream);
}

static void
on_input(struct stream *stream)
{
	char *scratch = loop_scratch(stream->loop);
	ssize_t n;

	do {
		n = recv(stream->fd, scratch, LOOP_SCRATCH_SIZE, 0);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		stream->handler->input(stream->context, slice_make(scratch, (size_t)n));
	} else if (n == 0) {
		stream->ended = true;
		(void)event_del(&stream->readable);
		set_watch(stream);
		stream->handler->eof(stream->context);
	} else if (errno != EAGAIN) {
		break_stream(stream, errno);
	}
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
	struct stream *stream = context;

	(void)fd, (void)what;
	enter(stream);
	on_input(stream);
	leave(stream);
}

static void
on_connected(struct stream *stream)
{
	int error = 0;
	socklen_t len = sizeof error;

	if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0) {
		break_stream(stream, error);
		return;
	}
	stream->connecting = false;
	if (stream->handler->connected != NULL)
		stream->handler->connected(stream->context);
}

static void
on_writable(evutil_socket_t fd, short what, void *context)
{
	struct stream *stream = context;

	(void)fd, (void)what;
	enter(stream);
	if (stream->connecting)
		on_connected(stream);
	if (!stream->closed)
		flush(stream);
	leave(stream);
}

void
stream_hung_up(void *context)
{
	struct stream *stream = context;

	/* Whoever has only shut its sending side still waits for an answer. */
	if (stream_peer_is_gone(stream))
		break_stream(stream, EPIPE);
}

static void
on_deadline(void *context)
{
	struct stream *stream = context;

	enter(stream);
	stream->handler->expired(stream->context);
	leave(stream);
}

struct stream *
stream_new(struct loop *loop, int fd, const struct stream_handler *handler, void *context)
{
	struct stream *stream = calloc(1, sizeof *stream);
	struct event_base *base = loop_base(loop);

	if (stream == NULL) {
		(void)close(fd);
		return NULL;
	}
	stream->loop = loop;
	stream->handler = handler;
	stream->context = context;
	stream->fd = fd;
	stream->paused = true;
	stream->end_of_turn.run = at_end_of_turn;
	stream->end_of_turn.context = stream;
	buf_init(&stream->out, STREAM_QUEUE_MAX);
	(void)event_assign(&stream->readable, base, fd, EV_READ | EV_PERSIST, on_readable, stream);
	(void)event_assign(&stream->writable, base, fd, EV_WRITE, on_writable, stream);
	return stream;
}

struct stream *
stream_connect(struct loop *loop, const struct sockaddr *address, socklen_t len,
	const struct stream_handler *handler, void *context, int *error)
{
	const int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int one = 1;

	if (fd < 0) {
		*error = errno;
		return NULL;
	}
	if (address->sa_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	const bool in_progress = connect(fd, address, len) != 0;

	if (in_progress && errno != EINPROGRESS) {
		*error = errno;
		(void)close(fd);
		return NULL;
	}
	struct stream *stream = stream_new(loop, fd, handler, context);

	if (stream == NULL) {
		*error = ENOMEM;
		return NULL;
	}
	stream->connecting = in_progress;
	if (in_progress)
		watch_writable(stream);
	return stream;
}

void
stream_close(struct stream *stream)
{
	if (stream == NULL || stream->closed)
		return;
	stream->closed = true;
	stream->broken = true;
	forget_events(stream);
	loop_undefer(stream->loop, &stream->end_of_turn);
	if (stream->deadline != NULL)
		timer_cancel(stream->deadline);
	end_stall(stream);
	(void)close(stream->fd);
	stream->was_full = false;
	if (stream->depth == 0)
		destroy(stream);
}

bool
stream_is_connected(const struct stream *stream)
{
	return !stream->connecting && !stream->broken;
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
		break_stream(stream, ENOBUFS);
}

void
stream_write_pair(struct stream *stream, struct slice head, struct slice body)
{
	const bool can_write = !stream->connecting && !stream->was_full;

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

void
stream_finish(struct stream *stream)
{
	stream->finish = true;
	loop_defer(stream->loop, &stream->end_of_turn);
}

void
stream_pause(struct stream *stream)
{
	if (stream->paused || stream->broken)
		return;
	stream->paused = true;
	(void)event_del(&stream->readable);
	set_watch(stream);
}

void
stream_resume(struct stream *stream)
{
	if (!stream->paused || stream->broken)
		return;
	stream->paused = false;
	set_watch(stream);
	if (!stream->ended)
		(void)event_add(&stream->readable, NULL);
}

bool
stream_is_finished(const struct stream *stream)
{
	return stream->finished;
}

bool
stream_is_paused(const struct stream *stream)
{
	return stream->paused;
}

void
stream_read_on(struct stream *stream)
{
	stream->read_on = true;
}

void
stream_watch_close(struct stream *stream)
{
	stream->watch_close = true;
	set_watch(stream);
}

bool
stream_peer_is_gone(const struct stream *stream)
{
	struct pollfd state = { .fd = stream->fd, .events = 0 };
	struct sockaddr_storage name;
	socklen_t len = sizeof name;

	if (getsockname(stream->fd, (struct sockaddr *)&name, &len) != 0 ||
		name.ss_family != AF_UNIX)
		return true;
	return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

void
stream_set_send_timeout(struct stream *stream, int64_t timeout_us)
{
	stream->send_timeout_us = timeout_us;
}

void
stream_set_deadline(struct stream *stream, int64_t at_us)
{
	if (at_us == 0) {
		if (stream->deadline != NULL)
			timer_cancel(stream->deadline);
		return;
	}
	if (stream->deadline == NULL)
		stream->deadline = timer_new(stream->loop, on_deadline, stream);
	/* Without memory for a timer there can be no bound on the peer: better to end it. */
	if (stream->deadline == NULL)
		break_stream(stream, ENOMEM);
	else
		timer_set(stream->deadline, at_us);
}
