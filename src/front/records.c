/*
 * What the web server sends, record by record. Order and lengths are checked here, and nothing is
 * believed: a record that has no place in the state is ignored where the specification says so
 * (other ids, 3.3), and is the end of the connection where going on could mix two requests up.
 *
 * The reader hands out content as it comes, so the state of a half-read record is the reader's.
 * Input that must wait (a body before it is wanted, a request behind the current one) is held in
 * front of the next read; what follows it may be looked at meanwhile (ahead.c).
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
		request_params(conn, content);
	} else if (record->type == FCGI_STDIN && is_current(conn, record->id)) {
		request_stdin(conn, content);
	}
	return true;
}

/* ---- the end of a record ---- */

static void
on_record_end(struct front_conn *conn)
{
	const struct fcgi_record record = conn->reader.record;

	if (record.id == FCGI_NULL_REQUEST_ID)
		manage_answer(conn, record.type, buf_slice(&conn->manage));
	else if (record.type == FCGI_BEGIN_REQUEST)
		request_begin(conn);
	else if (!is_current(conn, record.id))
		return;
	else if (record.type == FCGI_PARAMS && record.len == 0 && conn->state == CONN_HEAD)
		request_head_complete(conn);
	else if (record.type == FCGI_STDIN && record.len == 0)
		request_body_complete(conn);
	else if (record.type == FCGI_ABORT_REQUEST && conn->state != CONN_SKIP)
		request_abort(conn);
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

bool
conn_must_hold(const struct front_conn *conn)
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

bool
conn_keep(struct front_conn *conn, struct slice input)
{
	return buf_append_slice(&conn->held, input) == 0 || run_short(conn);
}

static bool
hold(struct front_conn *conn, struct slice input)
{
	if (!conn_keep(conn, input))
		return false;
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
		if (conn_must_hold(conn))
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
