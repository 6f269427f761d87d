/*
 * What the web server sends, record by record. Order and lengths are checked here, and nothing is
 * believed: a record that has no place in the state is ignored where the specification says so
 * (other ids, 3.3), and is the end of the connection where going on could mix two requests up.
 *
 * The reader hands out content as it comes, so the state of a half-read record is the reader's.
 * Input that must wait (a body before it is wanted, a request behind the current one) is held in
 * front of the next read.
 */
#include "conn.h"

#include "weir/log.h"

/* The connection is closed: what comes is no FastCGI, or contradicts itself. */
static bool
give_up(struct front_conn *conn, enum front_fault fault, const char *why)
{
	counter_add(conn->front->faults[fault], 1);
	log_debug("A connection was closed because of what the web server sent.",
		LOG_TEXT("reason", why));
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_close(conn);
	return false;
}

/* The same when it is our doing: there is not even the memory to refuse it. */
static bool
run_short(struct front_conn *conn)
{
	front_note_shortage(conn->front, "no memory for input");
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn_close(conn);
	return false;
}

static bool
is_current(const struct front_conn *conn, uint16_t id)
{
	return (conn->state == CONN_HEAD || conn->state == CONN_BUSY || conn->state == CONN_SKIP) &&
		conn->request.id == id;
}

/* ---- the head of a record ---- */

static bool
on_begin_head(struct front_conn *conn)
{
	const struct fcgi_record *record = &conn->reader.record;

	if (record->len != sizeof conn->begin)
		return give_up(conn, FAULT_LENGTH, "BEGIN_REQUEST without 8 bytes");
	conn->begin_len = 0;
	if (conn->state == CONN_BUSY && conn->request.body_ended)
		conn->pipelined = true;
	else if (conn->state == CONN_SKIP)
		conn_go(conn, CONN_IDLE);
	else if (is_current(conn, record->id))
		return give_up(conn, FAULT_ORDER, "BEGIN_REQUEST for a request that is going on");
	return true;
}

static bool
on_record(struct front_conn *conn)
{
	const struct fcgi_record *record = &conn->reader.record;

	if (record->id == FCGI_NULL_REQUEST_ID) {
		buf_consume(&conn->manage, conn->manage.len);
		return true;
	}
	if (record->type == FCGI_BEGIN_REQUEST)
		return on_begin_head(conn);
	if (record->type == FCGI_STDIN && conn->state == CONN_HEAD && is_current(conn, record->id))
		return give_up(conn, FAULT_ORDER, "STDIN before the end of PARAMS");
	if (record->type == FCGI_PARAMS && conn->state == CONN_BUSY && is_current(conn, record->id))
		return give_up(conn, FAULT_ORDER, "PARAMS after the end of PARAMS");
	return true;
}

/* ---- content ---- */

static void
on_params(struct front_conn *conn, struct slice content)
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

/* Its length would be known at its end only, and php-fpm, for one, does not read such a body. */
static void
refuse_body_without_length(struct front_conn *conn)
{
	struct front *front = conn->front;
	uint64_t held;

	counter_add(front->faults[FAULT_NO_LENGTH], 1);
	if (log_throttle_pass(&front->length_log, loop_now_us(front->loop), &held))
		log_warn("An upload was answered with 411 because the web server passed it on "
			 "without "
			 "its length; Apache needs \"SetEnv proxy-sendcl 1\", nginx "
			 "\"fastcgi_request_buffering on\".",
			LOG_KEPT_BACK(held));
	conn_lose_request(conn, FRONT_GONE_NO_LENGTH);
	conn_refuse(conn, REFUSAL_NO_LENGTH, "a body without CONTENT_LENGTH");
}

static void
on_stdin(struct front_conn *conn, struct slice content)
{
	if (conn->state == CONN_SKIP) {
		skip_body(conn, content);
		return;
	}
	if (conn->request.role == FRONT_AUTHORIZER || conn->request.body_ended)
		return;
	if (conn->request.body_length == UINT64_MAX) {
		refuse_body_without_length(conn);
		return;
	}
	/* What is beyond CONTENT_LENGTH is no part of the body (RFC 3875 section 4.2). */
	content = slice_first(content, conn->request.body_length - conn->request.body_seen);
	conn->request.body_seen += content.len;
	conn_set_body_deadline(conn);
	if (content.len > 0)
		conn->front->handler->body(&conn->request, content);
}

static bool
on_manage(struct front_conn *conn, struct slice content)
{
	if (content.len > buf_room(&conn->manage))
		return give_up(conn, FAULT_LENGTH, "a long management record");
	return buf_append_slice(&conn->manage, content) == 0 || run_short(conn);
}

static bool
on_content(struct front_conn *conn, struct slice content)
{
	const struct fcgi_record *record = &conn->reader.record;

	if (record->id == FCGI_NULL_REQUEST_ID)
		return on_manage(conn, content);
	if (record->type == FCGI_BEGIN_REQUEST) {
		memcpy(conn->begin + conn->begin_len, content.ptr, content.len);
		conn->begin_len += (unsigned)content.len;
	} else if (record->type == FCGI_PARAMS && conn->state == CONN_HEAD &&
		is_current(conn, record->id)) {
		on_params(conn, content);
	} else if (record->type == FCGI_STDIN && is_current(conn, record->id)) {
		on_stdin(conn, content);
	}
	return true;
}

/* ---- the end of a record ---- */

static void
send_end(struct front_conn *conn, uint16_t id, uint8_t protocol_status)
{
	uint8_t record[16];

	fcgi_put_end(record, id, 0, protocol_status);
	stream_write(conn->stream, slice_make(record, sizeof record));
}

static void
begin(struct front_conn *conn)
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

static void
head_complete(struct front_conn *conn)
{
	struct front_request *request = &conn->request;
	struct front *front = conn->front;
	struct err err;

	enum head_result result =
		head_parse(front->parser, request, front->settings.max_params, &err);

	if (result == HEAD_SOUND && head_check_address(request, &err) != 0)
		result = HEAD_BAD;
	/* An authorizer has no body (6.3), whatever its CONTENT_LENGTH says. */
	if (result == HEAD_SOUND && request->role == FRONT_RESPONDER &&
		head_content_length(request, &request->body_length, &err) != 0)
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

static void
body_complete(struct front_conn *conn)
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
static void
abort_request(struct front_conn *conn)
{
	conn_lose_request(conn, FRONT_GONE_PEER);
	conn->request.body_ended = true;
	front_end(&conn->request, 1);
}

static void
on_record_end(struct front_conn *conn)
{
	const struct fcgi_record record = conn->reader.record;

	if (record.id == FCGI_NULL_REQUEST_ID)
		manage_answer(conn, record.type, buf_slice(&conn->manage));
	else if (record.type == FCGI_BEGIN_REQUEST)
		begin(conn);
	else if (!is_current(conn, record.id))
		return;
	else if (record.type == FCGI_PARAMS && record.len == 0 && conn->state == CONN_HEAD)
		head_complete(conn);
	else if (record.type == FCGI_STDIN && record.len == 0)
		body_complete(conn);
	else if (record.type == FCGI_ABORT_REQUEST && conn->state != CONN_SKIP)
		abort_request(conn);
}

/* ---- the stream of records ---- */

/* What stands at the reader is answered by us, or begins what is. It must not come faster than
 * the answers leave: a peer that does not read them would fill our memory. */
static bool
must_wait_for_output(const struct front_conn *conn)
{
	const struct fcgi_record *record = &conn->reader.record;

	return conn->reader.state == FCGI_READ_BODY && stream_is_full(conn->stream) &&
		(record->id == FCGI_NULL_REQUEST_ID || record->type == FCGI_BEGIN_REQUEST);
}

static bool
must_hold(const struct front_conn *conn)
{
	if (must_wait_for_output(conn))
		return true;
	if (conn->state != CONN_BUSY)
		return false;
	if (conn->pipelined)
		return true;
	return !conn->request.body_wanted && !conn->request.body_ended &&
		conn->reader.state == FCGI_READ_BODY && conn->reader.record.type == FCGI_STDIN &&
		conn->reader.content_left > 0 && conn->reader.record.id == conn->request.id;
}

static bool
hold(struct front_conn *conn, struct slice input)
{
	if (buf_append_slice(&conn->held, input) != 0)
		return run_short(conn);
	conn->holding = true;
	stream_pause(conn->stream);
	if (conn->state == CONN_BUSY)
		conn_set_body_deadline(conn);
	return true;
}

bool
conn_take(struct front_conn *conn, struct slice input)
{
	struct slice content;
	bool going = true;

	while (going && conn->state != CONN_LINGER) {
		if (must_hold(conn))
			return hold(conn, input);
		switch (fcgi_read(&conn->reader, &input, &content)) {
		case FCGI_NEED_MORE:
			return true;
		case FCGI_RECORD:
			going = on_record(conn);
			break;
		case FCGI_CONTENT:
			going = on_content(conn, content);
			break;
		case FCGI_RECORD_END:
			on_record_end(conn);
			break;
		case FCGI_BAD:
			return give_up(conn, FAULT_NOT_FASTCGI, "no FastCGI version 1");
		}
	}
	return going;
}
