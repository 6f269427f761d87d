/*
 * The request on a connection, from its BEGIN_REQUEST to the end of its body. records.c sees to it
 * that each part comes in its place.
 */
#include "conn.h"

void
request_params(struct front_conn *conn, struct slice content)
{
	struct buf *params = &conn->request.params;
	const bool is_too_large = content.len > buf_room(params);

	if (buf_append_slice(params, content) == 0)
		return;
	if (is_too_large) {
		counter_add(conn->front->faults[FAULT_HEAD_TOO_LARGE], 1);
		conn_refuse(conn, REFUSAL_LARGE_HEAD, "the parameters exceed max_head");
	} else {
		front_note_shortage(conn->front, "no memory for a head");
		conn_refuse(conn, REFUSAL_SHORTAGE, "no memory");
	}
}

static void
skip_body(struct front_conn *conn, struct slice content)
{
	const bool is_longer_than_said =
		content.len > conn->request.body_length - conn->request.body_seen;

	conn->request.body_seen += content.len;
	if (!linger_discard(conn, content.len) || is_longer_than_said)
		conn_go(conn, CONN_LINGER);
}

void
request_stdin(struct front_conn *conn, struct slice content)
{
	if (conn->state == CONN_SKIP) {
		skip_body(conn, content);
		return;
	}
	if (conn->request.role == FRONT_AUTHORIZER || conn->request.body_ended)
		return;
	/* What is beyond CONTENT_LENGTH is no part of the body (RFC 3875 section 4.2). */
	content = slice_first(content, conn->request.body_length - conn->request.body_seen);
	conn->request.body_seen += content.len;
	conn_set_body_deadline(conn);
	if (content.len > 0)
		conn->front->handler->body(&conn->request, content);
}

static void
send_end(struct front_conn *conn, uint16_t id, uint8_t protocol_status)
{
	uint8_t record[16];

	fcgi_put_end(record, id, 0, protocol_status);
	stream_write(conn->stream, slice_make(record, sizeof record));
}

void
request_begin(struct front_conn *conn)
{
	const struct fcgi_begin begin = fcgi_begin_of(conn->begin);
	const uint16_t id = conn->reader.record.id;

	if (conn->state != CONN_IDLE) {
		send_end(conn, id, FCGI_CANT_MPX_CONN);
		return;
	}
	if (begin.role != FCGI_RESPONDER && begin.role != FCGI_AUTHORIZER) {
		send_end(conn, id, FCGI_UNKNOWN_ROLE);
		if ((begin.flags & FCGI_KEEP_CONN) == 0)
			conn_go(conn, CONN_LINGER);
		return;
	}
	conn->request.id = id;
	conn->request.role = begin.role == FCGI_RESPONDER ? FRONT_RESPONDER : FRONT_AUTHORIZER;
	conn->request.keep = (begin.flags & FCGI_KEEP_CONN) != 0;
	conn_go(conn, CONN_HEAD);
}

void
request_head_complete(struct front_conn *conn)
{
	struct front_request *request = &conn->request;
	struct front *front = conn->front;
	struct err err;

	enum head_result result =
		head_parse(front->parser, request, front->settings.max_params, &err);

	if (result == HEAD_SOUND && head_check_address(request, &err) != 0)
		result = HEAD_BAD;
	switch (result) {
	case HEAD_SOUND:
		break;
	case HEAD_BAD:
		counter_add(conn->front->faults[FAULT_BAD_PARAMS], 1);
		conn_refuse(conn, REFUSAL_BAD_HEAD, err.text);
		return;
	case HEAD_TOO_LARGE:
		counter_add(conn->front->faults[FAULT_HEAD_TOO_LARGE], 1);
		conn_refuse(conn, REFUSAL_LARGE_HEAD, err.text);
		return;
	case HEAD_SHORTAGE:
		front_note_shortage(conn->front, err.text);
		conn_refuse(conn, REFUSAL_SHORTAGE, err.text);
		return;
	}
	/* Most web servers send not even its end. */
	request->body_ended = request->role == FRONT_AUTHORIZER;
	conn_go(conn, CONN_BUSY);
	front->handler->request(front->context, request, conn->listener);
}

void
request_body_complete(struct front_conn *conn)
{
	struct front_request *request = &conn->request;

	if (conn->state == CONN_SKIP) {
		conn_go(conn, CONN_IDLE);
		return;
	}
	if (request->body_ended)
		return;
	request->body_ended = true;
	conn_set_body_deadline(conn);
	if (request->body_wanted)
		conn_tell_body_end(conn);
}

/* FCGI_ABORT_REQUEST (5.4): answered with END_REQUEST; the connection goes on if it is kept.
 * Nothing more of the body will come. */
void
request_abort(struct front_conn *conn)
{
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn->request.body_ended = true;
	front_end(&conn->request, 1);
}
