/*
 * The life of a connection; its states are drawn in conn.h. Here are what happens to it (input, end
 * of input, failure, deadline) and the one function that changes its state. What the input means is
 * in records.c.
 *
 * A connection is freed by conn_close only, which is called by the stream's call backs, by
 * records.c for a peer that speaks no FastCGI, and by the front; never from within a call that the
 * handler makes.
 */
#include "conn.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	HELD_MAX = 256 * 1024, /* a read and, if that is looked behind, what ahead.c reads */
	MANAGE_MAX = 4096,
};

/* A body that is held for so long is looked behind. */
static const int64_t ahead_after_us = 100000;

/* For the rest of what is no request yet, while we stop. */
static const int64_t last_silence_us = 1000000;

static void on_input(void *context, struct slice data);
static void on_eof(void *context);
static void on_drained(void *context);
static void on_finished(void *context);
static void on_failed(void *context, int error);
static void on_expired(void *context);

static const struct stream_handler stream_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.finished = on_finished,
	.failed = on_failed,
	.expired = on_expired };

static void
request_init(struct front_conn *conn)
{
	const struct front_settings *settings = &conn->front->settings;

	conn->request = (struct front_request){ .body_length = UINT64_MAX };
	buf_init(&conn->request.params, settings->max_head);
	/* The parameters as strings, their list, and what the handler needs. */
	arena_init(
		&conn->request.arena, 2 * settings->max_head + 32 * settings->max_params + 65536);
}

static void
request_release(struct front_conn *conn)
{
	buf_release(&conn->request.params);
	arena_release(&conn->request.arena);
	request_init(conn);
}

static void
take_held(void *context)
{
	struct front_conn *conn = context;
	struct buf held = conn->held;

	/* Output has left, but not enough, or a body is still not wanted. */
	if (conn->holding && conn_must_hold(conn))
		return;
	buf_init(&conn->held, HELD_MAX);
	conn->holding = false;
	conn->looks_ahead = false;
	const bool going = conn_take(conn, buf_slice(&held));

	buf_release(&held);
	if (!going)
		return;
	if (!conn->holding &&
		(conn->state != CONN_BUSY || conn->request.body_ended || conn->request.body_wanted))
		stream_resume(conn->stream);
	if (conn->state == CONN_BUSY)
		conn_set_body_deadline(conn);
	if (conn->peer_ended && !conn->holding)
		on_eof(conn);
}

void
conn_open(struct front *front, int fd, void *listener)
{
	struct front_conn *conn = calloc(1, sizeof *conn);

	if (conn == NULL) {
		front_note_shortage(front, "no memory for a connection");
		(void)close(fd);
		return;
	}
	conn->front = front;
	conn->listener = listener;
	fcgi_reader_init(&conn->reader);
	buf_init(&conn->manage, MANAGE_MAX);
	buf_init(&conn->held, HELD_MAX);
	conn->take_held.run = take_held;
	conn->take_held.context = conn;
	request_init(conn);
	conn->stream = stream_new(front->loop, fd, &stream_handler, conn);
	if (conn->stream == NULL) {
		front_note_shortage(front, "no memory for a connection");
		free(conn);
		return;
	}
	front_move(conn, &front->active);
	counter_add(COUNT_CONNECTIONS, 1);
	stream_watch_close(conn->stream);
	stream_trust_half_closed(conn->stream, true);
	stream_set_send_timeout(conn->stream, front->settings.send_timeout_us);
	conn->head_until_us = loop_now_us(front->loop) + front->settings.head_timeout_us;
	stream_set_deadline(conn->stream,
		front->stopping ? loop_now_us(front->loop) + front->settings.stop_grace_us
				: conn->head_until_us);
	stream_resume(conn->stream);
}

void
conn_close(struct front_conn *conn)
{
	counter_add(COUNT_CONNECTIONS, -1);
	stream_close(conn->stream);
	loop_undefer(conn->front->loop, &conn->take_held);
	front_move(conn, NULL);
	request_release(conn);
	buf_release(&conn->manage);
	buf_release(&conn->held);
	free(conn);
}

void
conn_hasten(struct front_conn *conn)
{
	const int64_t now = loop_now_us(conn->front->loop), at = now + last_silence_us;

	if (conn->state != CONN_HEAD &&
		(conn->state != CONN_IDLE || fcgi_reader_is_between(&conn->reader)))
		return;
	if (conn->head_until_us == 0)
		conn->head_until_us = now + conn->front->settings.head_timeout_us;
	stream_set_deadline(conn->stream, at < conn->head_until_us ? at : conn->head_until_us);
}

static bool
waits_for_body(const struct front_conn *conn)
{
	return conn->request.body_wanted && !conn->request.body_ended && !conn->holding;
}

void
conn_set_body_deadline(struct front_conn *conn)
{
	const int64_t now = loop_now_us(conn->front->loop);
	int64_t at = 0;

	if (waits_for_body(conn))
		at = now + conn->front->settings.body_timeout_us;
	else if (ahead_may_begin(conn))
		at = now + ahead_after_us;
	stream_set_deadline(conn->stream, at);
}

/* A body that ends before its CONTENT_LENGTH is what a client leaves that has gone; an application
 * would wait for the rest (php-fpm does). */
void
conn_tell_body_end(struct front_conn *conn)
{
	struct front_request *request = &conn->request;

	request->body_end_told = true;
	if (request->body_length == UINT64_MAX || request->body_seen == request->body_length) {
		conn->front->handler->body_end(request);
		return;
	}
	counter_add(conn->front->faults[FAULT_SHORT_BODY], 1);
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_refuse(conn, REFUSAL_SHORT_BODY, "the body ended before its CONTENT_LENGTH");
}

static void
go_idle(struct front_conn *conn)
{
	request_release(conn);
	conn->pipelined = false;
	conn->head_until_us = 0;
	stream_set_deadline(conn->stream, 0);
	front_move(conn, &conn->front->idle);
	if (conn->holding || stream_is_paused(conn->stream))
		loop_defer(conn->front->loop, &conn->take_held);
}

void
conn_go(struct front_conn *conn, enum conn_state state)
{
	struct front *front = conn->front;

	/* Nothing new is begun on a connection when we stop, or when the web server will send no
	 * more. */
	if (state == CONN_IDLE && (front->stopping || conn->peer_ended))
		state = CONN_LINGER;
	conn->state = state;
	/* Who has gone while his request is worked on must be noticed; what is left of an answer
	 * costs nothing but the queue. */
	stream_trust_half_closed(conn->stream, state != CONN_BUSY);
	switch (state) {
	case CONN_IDLE:
		go_idle(conn);
		break;
	case CONN_HEAD:
		front_move(conn, &front->active);
		conn->head_until_us = loop_now_us(front->loop) + front->settings.head_timeout_us;
		stream_set_deadline(conn->stream, conn->head_until_us);
		break;
	case CONN_BUSY:
		stream_set_deadline(conn->stream, 0);
		break;
	case CONN_SKIP:
		linger_skip(conn);
		break;
	case CONN_LINGER:
		front_move(conn, &front->active);
		request_release(conn);
		linger_begin(conn);
		break;
	}
}

void
conn_lose_request(struct front_conn *conn, enum front_gone why)
{
	if (conn->state != CONN_BUSY || conn->request.owner == NULL)
		return;
	conn->front->handler->gone(&conn->request, why);
	conn->request.owner = NULL;
}

static void
on_input(void *context, struct slice data)
{
	struct front_conn *conn = context;

	if (conn->state == CONN_LINGER) {
		if (!linger_discard(conn, data.len))
			conn_close(conn);
	} else if (conn->holding) {
		ahead_take(conn, data);
	} else if (conn_take(conn, data) && conn->front->stopping) {
		conn_hasten(conn);
	}
}

/* The web server has ended: as a rule it has given up, but who only shuts its side still waits for
 * the answer, and for what is left of the one before. */
static void
on_eof(void *context)
{
	struct front_conn *conn = context;

	conn->peer_ended = true;
	/* Its last bytes are to be taken first (take_held). */
	if (conn->holding && !stream_peer_is_gone(conn->stream))
		return;
	if (conn->state == CONN_BUSY && conn->request.body_ended &&
		!stream_peer_is_gone(conn->stream))
		return;
	conn_lose_request(conn, FRONT_GONE_PEER);
	if (stream_queued(conn->stream) == 0 || stream_peer_is_gone(conn->stream))
		conn_close(conn);
	else if (conn->state != CONN_LINGER)
		conn_go(conn, CONN_LINGER);
}

static void
on_drained(void *context)
{
	struct front_conn *conn = context;

	if (conn->state == CONN_BUSY && conn->request.owner != NULL)
		conn->front->handler->drained(&conn->request);
	if (conn->holding)
		loop_defer(conn->front->loop, &conn->take_held);
}

static void
on_finished(void *context)
{
	linger_on_finished(context);
}

/* The web server has taken nothing of an answer for the send timeout. */
static void
note_cut(struct front_conn *conn)
{
	struct front *front = conn->front;
	uint64_t held;

	counter_add(COUNT_SEND_TIMEOUTS, 1);
	if (log_throttle_pass(&front->send_log, loop_now_us(front->loop), &held))
		log_warn("An answer was cut because the web server did not read on.",
			LOG_INT("bytes_left", (int64_t)stream_queued(conn->stream)),
			LOG_KEPT_BACK(held));
}

static void
on_failed(void *context, int error)
{
	struct front_conn *conn = context;

	if (error == ETIMEDOUT && stream_queued(conn->stream) > 0)
		note_cut(conn);
	else if (error == ENOMEM || error == ENOBUFS)
		front_note_shortage(conn->front, "no memory for output");
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_close(conn);
}

static void
on_expired(void *context)
{
	struct front_conn *conn = context;

	switch (conn->state) {
	case CONN_IDLE:
		if (conn->front->stopping) {
			linger_dismiss(conn);
			break;
		}
		counter_add(COUNT_HEAD_TIMEOUTS, 1);
		conn_close(conn);
		break;
	case CONN_HEAD:
		counter_add(COUNT_HEAD_TIMEOUTS, 1);
		linger_dismiss(conn);
		break;
	case CONN_BUSY:
		if (!waits_for_body(conn)) {
			ahead_begin(conn);
			break;
		}
		counter_add(COUNT_BODY_TIMEOUTS, 1);
		conn_lose_request(conn, FRONT_GONE_BODY_TIMEOUT);
		conn_refuse(conn, REFUSAL_BODY_TIMEOUT, "the request's body stopped coming");
		break;
	case CONN_SKIP:
		/* The rest of the body is not sent, or for ever. */
		conn_go(conn, linger_is_over(conn) ? CONN_LINGER : CONN_IDLE);
		break;
	case CONN_LINGER:
		conn_close(conn);
		break;
	}
}
