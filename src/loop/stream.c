/*
 * Streams: their life, and what they read.
 *
 * A stream is connecting, open, or broken. Broken is final: the kernel or the queue has failed,
 * nothing more is read or written, and `failed` has been or will be called. `finish` and end of
 * input are independent of each other, as in TCP. A stream with TLS is connecting until the peer
 * has proved who it is.
 *
 * Who calls back may find the stream closed when the call returns. So a call is made between
 * stream_enter() and stream_leave(); closing within it only marks, and stream_leave() frees.
 * `failed` is never called from within the owner's own call (stream_write): it waits for the end of
 * the turn.
 */
#include "stream_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
destroy(struct stream *stream)
{
	timer_free(stream->deadline);
	timer_free(stream->stalled);
	buf_release(&stream->out);
	tls_release(stream);
	free(stream);
}

void
stream_enter(struct stream *stream)
{
	stream->depth++;
}

void
stream_leave(struct stream *stream)
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

void
stream_break(struct stream *stream, int error)
{
	if (stream->broken)
		return;
	stream->broken = true;
	stream->error = error;
	forget_events(stream);
	loop_defer(stream->loop, &stream->end_of_turn);
}

static void
at_end_of_turn(void *context)
{
	struct stream *stream = context;

	stream_enter(stream);
	stream_put_out(stream);
	if (!stream->closed && stream->broken && stream->error != 0) {
		const int error = stream->error;

		stream->error = 0;
		stream->handler->failed(stream->context, error);
	}
	stream_leave(stream);
}

static void
on_input(struct stream *stream)
{
	char *scratch = loop_scratch(stream->loop);
	ssize_t n;

	do {
		n = stream->tls != NULL ? tls_read(stream, scratch, LOOP_SCRATCH_SIZE)
					: read(stream->fd, scratch, LOOP_SCRATCH_SIZE);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		stream->handler->input(stream->context, slice_make(scratch, (size_t)n));
	} else if (n == 0) {
		stream->ended = true;
		(void)event_del(&stream->readable);
		set_watch(stream);
		stream->handler->eof(stream->context);
	} else if (errno != EAGAIN) {
		stream_break(stream, errno);
	}
}

/* The socket has connected, or could not; or it goes on with the handshake over it. */
static void
on_connected(struct stream *stream)
{
	int error = 0;
	socklen_t len = sizeof error;

	if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0) {
		stream_break(stream, error);
		return;
	}
	if (stream->tls != NULL)
		tls_handshake(stream);
	else
		stream->connecting = false;
	if (!stream->connecting && !stream->broken && stream->handler->connected != NULL)
		stream->handler->connected(stream->context);
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
	struct stream *stream = context;

	(void)fd, (void)what;
	stream_enter(stream);
	if (stream->connecting && stream->tls != NULL) {
		on_connected(stream);
		if (!stream->closed)
			stream_put_out(stream);
	} else {
		on_input(stream);
	}
	stream_leave(stream);
}

static void
on_writable(evutil_socket_t fd, short what, void *context)
{
	struct stream *stream = context;

	(void)fd, (void)what;
	stream_enter(stream);
	if (stream->connecting)
		on_connected(stream);
	if (!stream->closed)
		stream_put_out(stream);
	if (!stream->broken && !stream->paused && tls_reads_when_writable(stream)) {
		(void)event_add(&stream->readable, NULL);
		on_input(stream);
	}
	stream_leave(stream);
}

void
stream_hung_up(void *context)
{
	struct stream *stream = context;

	/* Whoever has only shut its sending side still waits for an answer. */
	if (stream_peer_is_gone(stream))
		stream_break(stream, EPIPE);
}

static void
on_deadline(void *context)
{
	struct stream *stream = context;

	stream_enter(stream);
	stream->handler->expired(stream->context);
	stream_leave(stream);
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
stream_new_pipe(struct loop *loop, int fd, const struct stream_handler *handler, void *context)
{
	struct stream *stream = stream_new(loop, fd, handler, context);

	if (stream != NULL)
		stream->is_pipe = true;
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
		stream_watch_writable(stream);
	return stream;
}

void
stream_close(struct stream *stream)
{
	if (stream == NULL || stream->closed)
		return;
	tls_finish(stream);
	stream->closed = true;
	stream->broken = true;
	forget_events(stream);
	loop_undefer(stream->loop, &stream->end_of_turn);
	if (stream->deadline != NULL)
		timer_cancel(stream->deadline);
	stream_end_stall(stream);
	(void)close(stream->fd);
	stream->was_full = false;
	if (stream->depth == 0)
		destroy(stream);
}

const char *
stream_reason(const struct stream *stream, int error)
{
	const char *reason = tls_reason(stream);

	return reason == NULL ? strerror(error) : reason;
}

bool
stream_is_connected(const struct stream *stream)
{
	return !stream->connecting && !stream->broken;
}

void
stream_pause(struct stream *stream)
{
	if (stream->paused || stream->broken)
		return;
	stream->paused = true;
	/* A handshake goes on. */
	if (stream->tls == NULL || !stream->connecting)
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

void
stream_trust_half_closed(struct stream *stream, bool trusted)
{
	stream->trusts_half_closed = trusted;
}

bool
stream_peer_is_gone(const struct stream *stream)
{
	struct pollfd state = { .fd = stream->fd, .events = 0 };
	struct sockaddr_storage name;
	socklen_t len = sizeof name;

	if (!stream->trusts_half_closed &&
		(getsockname(stream->fd, (struct sockaddr *)&name, &len) != 0 ||
			name.ss_family != AF_UNIX))
		return true;
	return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

bool
stream_is_quiet(const struct stream *stream)
{
	char byte;

	return !stream->broken && !stream->ended &&
		recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

bool
stream_has_input(const struct stream *stream)
{
	char byte;

	return recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void
stream_hand_over(struct stream *stream, const struct stream_handler *handler, void *context)
{
	stream->handler = handler;
	stream->context = context;
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
		stream_break(stream, ENOMEM);
	else
		timer_set(stream->deadline, at_us);
}
