/*
 * A stream: one non-blocking socket, or the end of a pipe, with a bounded output queue and one
 * deadline; with TLS if its owner wants it.
 *
 * Input is handed to the owner as it is read and must be taken at once; an owner that cannot take
 * more pauses the stream, and the peer is then slowed down by the kernel. Output is gathered and
 * written at the end of the turn; a large piece is written at once, together with what waits, and
 * only what the kernel does not take is copied. An owner that produces for a stream looks at
 * stream_is_full and stops its own source until `drained`.
 *
 * Every call back may close the stream. After stream_close no call back comes.
 */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include "weir/address.h"
#include "weir/err.h"
#include "weir/loop.h"
#include "weir/slice.h"

#include <sys/socket.h>

struct stream;
struct tls; /* tls.h */

struct stream_handler {
	/* At least one byte; valid until the call returns. */
	void (*input)(void *context, struct slice data);
	/* The peer has closed its sending side. Comes once, behind the last input. */
	void (*eof)(void *context);
	/* The queue that was full has emptied. */
	void (*drained)(void *context);
	/* All has been written and our sending side is shut down, after stream_finish. May be NULL.
	 */
	void (*finished)(void *context);
	/* A connect that was in progress has succeeded. May be NULL. */
	void (*connected)(void *context);
	/* The connection is of no more use: an errno. The owner closes the stream. */
	void (*failed)(void *context, int error);
	/* The deadline has passed. May be NULL if none is ever set. */
	void (*expired)(void *context);
};

/* From here on is_full is true. A producer may overshoot by what one turn gives it, up to
 * STREAM_QUEUE_MAX. */
enum { STREAM_FULL = 65536, STREAM_QUEUE_MAX = 4 * 1024 * 1024 };

/* Takes the connected descriptor, and closes it if it returns NULL (no memory). Reading begins with
 * stream_resume. */
struct stream *stream_new(struct loop *loop, int fd, const struct stream_handler *handler,
	void *context) WEIR_MUST_CHECK;

/* The same with the end of a pipe, non-blocking: one way only, and SIGPIPE must be ignored. The
 * writing end is ended by closing it: in `finished`, after stream_finish. */
struct stream *stream_new_pipe(struct loop *loop, int fd, const struct stream_handler *handler,
	void *context) WEIR_MUST_CHECK;

/*
 * Starts to connect. NULL: it failed at once, *error is the errno (EAGAIN: the peer's backlog is
 * full, only on unix sockets). On success it may be connected already (stream_is_connected; always
 * so for unix sockets); bytes may be written in any case. Reading begins with stream_resume.
 */
struct stream *stream_connect(struct loop *loop, const struct sockaddr *address, socklen_t len,
	const struct stream_handler *handler, void *context, int *error) WEIR_MUST_CHECK;

/*
 * Right after stream_connect or stream_new: all bytes go through TLS. The name is the one that the
 * peer must prove, a host's or an IP address; a host's is also told to the peer (SNI). The stream
 * is connected when the handshake is over; until then nothing is read, whether it is paused or not,
 * and what is written waits. `tls` must outlive the stream. -1: no memory, the stream is good only
 * to be closed.
 *
 * A stream that is finished or closed with nothing queued ends TLS too (close_notify).
 */
int
stream_start_tls(struct stream *stream, const struct tls *tls, const char *name) WEIR_MUST_CHECK;

/* From within `failed`: why, in words, as a reason in the log. Valid until the stream is closed, or
 * the next call. */
const char *stream_reason(const struct stream *stream, int error);

/* Drops what is queued. NULL is let pass. */
void stream_close(struct stream *stream);

bool stream_is_connected(const struct stream *stream);

/*
 * Queues bytes. What goes wrong is told by `failed`: when the queue would exceed STREAM_QUEUE_MAX
 * or memory is out with ENOBUFS, otherwise with what the kernel said. Nothing may be written after
 * stream_finish.
 */
void stream_write(struct stream *stream, struct slice bytes);

/* The same for a record: `head` is always copied, `body` only if the kernel does not take it. */
void stream_write_pair(struct stream *stream, struct slice head, struct slice body);

/* Gives the kernel what it takes of the queue now: for an owner that is about to close. */
void stream_flush(struct stream *stream);

bool stream_is_full(const struct stream *stream);

/* Bytes that wait to be written. */
size_t stream_queued(const struct stream *stream);

/*
 * How much the peer has not taken, queued here or in the kernel: to be compared with what it was
 * before, as the kernel counts its own overhead of a unix socket. 0: nothing. Over TCP what has
 * been acknowledged is taken.
 */
uint64_t stream_untaken(const struct stream *stream);

/* Bytes that the kernel has taken since the stream was made. */
uint64_t stream_taken(const struct stream *stream);

/* Shuts the sending side down when what is queued has been written. */
void stream_finish(struct stream *stream);
bool stream_is_finished(const struct stream *stream);

/*
 * When the peer takes no more (EPIPE, ECONNRESET), go on reading what it has sent before it closed:
 * output is dropped then, and `failed` comes only if reading fails. For peers that may answer
 * before they have read everything.
 */
void stream_read_on(struct stream *stream);

/*
 * When the peer takes nothing of what is queued for so long, `failed` comes with ETIMEDOUT. It
 * counts from the first byte that must wait, and anew with each that is taken. 0, as at the start:
 * the peer may take its time for ever.
 */
void stream_set_send_timeout(struct stream *stream, int64_t timeout_us);

void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);
bool stream_is_paused(const struct stream *stream);

/*
 * Also notice that the peer has gone while it is paused, or behind `eof`: `failed` with EPIPE. A
 * TCP peer that has closed its sending side counts as gone.
 */
void stream_watch_close(struct stream *stream);

/* True: from now on such a TCP peer may only have shut its sending side; that it has gone is known
 * when it resets the connection, as it does when more is sent. False, as at the start: see above.
 */
void stream_trust_half_closed(struct stream *stream, bool trusted);

/* After `eof`: whether the peer has closed both directions. Where that cannot be known yet, over
 * TCP, it is as stream_trust_half_closed has said. */
bool stream_peer_is_gone(const struct stream *stream);

/* Whether neither bytes nor an end of the stream wait to be read: the kernel is asked. Not for TLS.
 */
bool stream_is_quiet(const struct stream *stream);

/* Whether bytes wait that were not read, in the kernel. Not for streams with TLS. */
bool stream_has_input(const struct stream *stream);

/* What comes from now on is told to this owner. */
void stream_hand_over(struct stream *stream, const struct stream_handler *handler, void *context);

/* One deadline, monotonic; 0 takes it away. Moving it later costs nothing. */
void stream_set_deadline(struct stream *stream, int64_t at_us);

#endif
