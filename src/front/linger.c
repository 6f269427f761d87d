/*
 * What the web server sends when nobody wants it any more, is read and forgotten: in SKIP, behind
 * an answer on a kept connection, and in LINGER, behind our last byte. Both end at the peer's end,
 * or after a silence, a time or a number of bytes.
 *
 * LINGER has no clock before our last byte has left: a slow reader may take its time, and one that
 * takes nothing is ended by the stream's send timeout.
 */
#include "conn.h"

static int64_t
silence_ends_us(const struct front_conn *conn)
{
	const int64_t at = loop_now_us(conn->front->loop) + conn->front->settings.linger_timeout_us;

	return at < conn->discard_until_us ? at : conn->discard_until_us;
}

static void
start_clock(struct front_conn *conn)
{
	conn->discard_until_us =
		loop_now_us(conn->front->loop) + conn->front->settings.linger_total_us;
	stream_set_deadline(conn->stream, silence_ends_us(conn));
}

void
linger_skip(struct front_conn *conn)
{
	conn->discarded = 0;
	start_clock(conn);
	/* The body may be held, or wait in the kernel. */
	loop_defer(conn->front->loop, &conn->take_held);
}

void
linger_begin(struct front_conn *conn)
{
	conn->discarded = 0;
	conn->discard_until_us = 0;
	buf_release(&conn->held);
	conn->holding = false;
	conn->looks_ahead = false;
	stream_set_deadline(conn->stream, 0);
	stream_finish(conn->stream);
	stream_resume(conn->stream);
}

/* If the peer has ended before, both directions are closed now, and the stream says so. */
void
linger_on_finished(struct front_conn *conn)
{
	start_clock(conn);
}

bool
linger_is_over(const struct front_conn *conn)
{
	return conn->discard_until_us != 0 &&
		loop_now_us(conn->front->loop) >= conn->discard_until_us;
}

bool
linger_discard(struct front_conn *conn, size_t len)
{
	conn->discarded += len;
	if (conn->discard_until_us != 0)
		stream_set_deadline(conn->stream, silence_ends_us(conn));
	return conn->discarded <= conn->front->settings.linger_bytes && !linger_is_over(conn);
}

void
linger_dismiss(struct front_conn *conn)
{
	if (stream_queued(conn->stream) > 0)
		conn_go(conn, CONN_LINGER);
	else
		conn_close(conn);
}
