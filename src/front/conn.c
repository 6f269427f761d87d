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

#include <stdlib.h>
#include <unistd.h>

enum {
	HELD_MAX = 256 * 1024, /* more than one read, and what was left of the one before */
	MANAGE_MAX = 4096,
	LINGER_IDLE_US = 5 * 1000000,
	LINGER_ALL_US = 60 * 1000000,
};

/* A refused upload is read on for so long that the web server has read the answer: it may send all
 * of it first. */
static const uint64_t discard_max = UINT64_C(4) << 30;

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

	buf_init(&conn->held, HELD_MAX);
	if (held.len > 0 && !conn_take(conn, buf_slice(&held))) {
		buf_release(&held);
		return;
	}
	buf_release(&held);
	if (conn->held.len == 0 &&
		(conn->state != CONN_BUSY || conn->request.body_ended || conn->request.body_wanted))
		stream_resume(conn->stream);
	if (conn->state == CONN_BUSY)
		conn_set_body_deadline(conn);
}

int
conn_open(struct front *front, int fd, void *listener)
{
	struct front_conn *conn = calloc(1, sizeof *conn);

	if (conn == NULL) {
		(void)close(fd);
		return -1;
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
		free(conn);
		return -1;
	}
	front_move(conn, &front->active);
	counter_add(COUNT_CONNECTIONS, 1);
	stream_watch_close(conn->stream);
	stream_set_deadline(
		conn->stream, loop_now_us(front->loop) + front->settings.head_timeout_us);
	stream_resume(conn->stream);
	return 0;
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
conn_set_body_deadline(struct front_conn *conn)
{
	const struct front_request *request = &conn->request;
	const bool waiting = request->body_wanted && !request->body_ended && conn->held.len == 0;

	stream_set_deadline(conn->stream,
		waiting ? loop_now_us(conn->front->loop) + conn->front->settings.body_timeout_us
			: 0);
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
	conn_lose_request(conn, FRONT_GONE_PEER);
	front_end(request, 1);
}

static void
go_linger(struct front_conn *conn)
{
	const int64_t now = loop_now_us(conn->front->loop);

	front_move(conn, &conn->front->active);
	request_release(conn);
	conn->discarded = 0;
	conn->discard_until_us = now + LINGER_ALL_US;
	buf_release(&conn->held);
	stream_finish(conn->stream);
	stream_set_deadline(conn->stream, now + LINGER_IDLE_US);
	stream_resume(conn->stream);
}

static void
go_idle(struct front_conn *conn)
{
	request_release(conn);
	conn->pipelined = false;
	stream_set_deadline(conn->stream, 0);
	front_move(conn, &conn->front->idle);
	if (conn->held.len > 0 || stream_is_paused(conn->stream))
		loop_defer(conn->front->loop, &conn->take_held);
}

void
conn_go(struct front_conn *conn, enum conn_state state)
{
	struct front *front = conn->front;
	const int64_t now = loop_now_us(front->loop);

	/* Nothing new is begun on a connection when we stop, or when the web server will send no
	 * more. */
	if (state == CONN_IDLE && (front->stopping || conn->peer_ended))
		state = CONN_LINGER;
	conn->state = state;
	switch (state) {
	case CONN_IDLE:
		go_idle(conn);
		break;
	case CONN_HEAD:
		front_move(conn, &front->active);
		stream_set_deadline(conn->stream, now + front->settings.head_timeout_us);
		break;
	case CONN_BUSY:
		stream_set_deadline(conn->stream, 0);
		break;
	case CONN_SKIP:
		conn->discarded = 0;
		conn->discard_until_us = now + LINGER_ALL_US;
		stream_set_deadline(conn->stream, now + LINGER_IDLE_US);
		stream_resume(conn->stream);
		if (conn->held.len > 0)
			loop_defer(front->loop, &conn->take_held);
		break;
	case CONN_LINGER:
		go_linger(conn);
		break;
	}
}

bool
conn_discard(struct front_conn *conn, size_t len)
{
	const int64_t now = loop_now_us(conn->front->loop);
	const int64_t idle = now + LINGER_IDLE_US;

	conn->discarded += len;
	stream_set_deadline(
		conn->stream, idle < conn->discard_until_us ? idle : conn->discard_until_us);
	return conn->discarded <= discard_max && now < conn->discard_until_us;
}

void
conn_lose_request(struct front_conn *conn, enum front_gone why)
{
	if (conn->state != CONN_BUSY || conn->request.owner == NULL)
		return;
	if (why == FRONT_GONE_PEER)
		counter_add(COUNT_CLIENT_GONE, 1);
	conn->front->handler->gone(&conn->request, why);
	conn->request.owner = NULL;
}

static void
on_input(void *context, struct slice data)
{
	struct front_conn *conn = context;

	if (conn->state != CONN_LINGER)
		(void)conn_take(conn, data);
	else if (!conn_discard(conn, data.len))
		conn_close(conn);
}

/* The web server has ended: as a rule it has given up, but who only shuts its side still waits for
 * the answer. */
static void
on_eof(void *context)
{
	struct front_conn *conn = context;

	conn->peer_ended = true;
	if (conn->state == CONN_BUSY && conn->request.body_ended &&
		!stream_peer_is_gone(conn->stream))
		return;
	if (conn->state == CONN_LINGER && !stream_is_finished(conn->stream) &&
		!stream_peer_is_gone(conn->stream))
		return;
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_close(conn);
}

static void
on_drained(void *context)
{
	struct front_conn *conn = context;

	if (conn->state == CONN_BUSY && conn->request.owner != NULL)
		conn->front->handler->drained(&conn->request);
}

static void
on_finished(void *context)
{
	struct front_conn *conn = context;

	if (conn->peer_ended)
		conn_close(conn);
}

static void
on_failed(void *context, int error)
{
	struct front_conn *conn = context;

	(void)error;
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_close(conn);
}

static void
on_expired(void *context)
{
	struct front_conn *conn = context;

	switch (conn->state) {
	case CONN_IDLE:
	case CONN_HEAD:
		counter_add(COUNT_HEAD_TIMEOUTS, 1);
		conn_close(conn);
		break;
	case CONN_BUSY:
		counter_add(COUNT_BODY_TIMEOUTS, 1);
		conn_lose_request(conn, FRONT_GONE_BODY_TIMEOUT);
		if (conn->request.has_answered)
			conn_close(conn);
		else
			conn_refuse(
				conn, 408, "Request Timeout", "the request's body stopped coming");
		break;
	case CONN_SKIP:
		/* The rest of the body is not sent, or for ever. */
		if (loop_now_us(conn->front->loop) < conn->discard_until_us)
			conn_go(conn, CONN_IDLE);
		else
			conn_go(conn, CONN_LINGER);
		break;
	case CONN_LINGER:
		conn_close(conn);
		break;
	}
}
