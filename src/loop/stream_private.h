/* What the files of a stream share: its life and input (stream.c), its output (stream_output.c),
 * and TLS over it (stream_tls.c). */
#ifndef WEIR_STREAM_PRIVATE_H
#define WEIR_STREAM_PRIVATE_H

#include "weir/stream.h"

#include "loop_private.h"
#include "weir/buf.h"

#include <event2/event_struct.h>
#include <sys/uio.h>

struct stream_tls;

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
	uint64_t taken; /* bytes, by the kernel */
	struct stream_tls *tls; /* NULL: bytes go as they are */
	int error; /* an errno that `failed` has still to tell */
	bool is_pipe;
	bool trusts_half_closed;
	bool connecting, broken, paused, ended, was_full, finish, finished, watch_close, watched,
		read_on, deaf;
	bool closed; /* by the owner; freed by stream_leave() */
	unsigned depth;
};

/* ---- stream.c ---- */

void stream_enter(struct stream *stream);
void stream_leave(struct stream *stream);

/* Nothing more is read or written. The owner is told at the end of the turn. */
void stream_break(struct stream *stream, int error);

/* ---- stream_output.c ---- */

/* Writes what the kernel takes, and tells `drained` and `finished`. */
void stream_put_out(struct stream *stream);

void stream_watch_writable(struct stream *stream);
void stream_end_stall(struct stream *stream);

/* ---- stream_tls.c ---- */

/* The socket is connected, or something came: the handshake goes on. At its end the stream is no
 * longer connecting, or it is broken. */
void tls_handshake(struct stream *stream);

/* As recv and send; -1 with EAGAIN: not now, and what it waits for is watched. */
ssize_t tls_read(struct stream *stream, char *out, size_t size);
ssize_t tls_write(struct stream *stream, struct slice bytes);

/* Whether reading has to be tried again because the socket can be written to. */
bool tls_reads_when_writable(const struct stream *stream);

/* Tells the peer that nothing more comes (close_notify), if it can be told at once. */
void tls_finish(struct stream *stream);

void tls_release(struct stream *stream);

/* What a failure was; NULL: what the errno says. */
const char *tls_reason(const struct stream *stream);

#endif
