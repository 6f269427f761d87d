/*
 * Looking ahead of a body that is held. A web server may give a request up while nobody wants its
 * body, because the application is slow or the decision is waited for: with FCGI_ABORT_REQUEST, or
 * with an end of the connection that TCP delivers only behind the bytes before it. So what follows
 * is read meanwhile, AHEAD_ENOUGH bytes of it and the rest of the last read. It stays in order in
 * `held`, and but for these two it is taken as if it had not come yet. What is behind is not seen.
 *
 * A body that has been held for a moment only is left to the kernel: one that moves on is not
 * copied. The look ends at a BEGIN_REQUEST, since what is behind that is about another request,
 * mostly of the same id.
 */
#include "conn.h"

/* HELD_MAX without a read of the stream's. */
enum { AHEAD_ENOUGH = 192 * 1024 };

static void
end_look(struct front_conn *conn)
{
	conn->looks_ahead = false;
	stream_pause(conn->stream);
}

/* False: there is nothing more to look for. */
static bool
look_at_event(struct front_conn *conn, enum fcgi_event event)
{
	const struct fcgi_record *record = &conn->ahead.record;

	switch (event) {
	case FCGI_NEED_MORE:
	case FCGI_CONTENT:
		return true;
	case FCGI_RECORD:
		return record->type != FCGI_BEGIN_REQUEST;
	case FCGI_RECORD_END:
		return record->type != FCGI_ABORT_REQUEST || record->id != conn->request.id;
	case FCGI_BAD:
		return false;
	}
	return false;
}

static void
look(struct front_conn *conn, struct slice input)
{
	struct slice content;
	enum fcgi_event event;

	do {
		event = fcgi_read(&conn->ahead, &input, &content);
		if (!look_at_event(conn, event)) {
			end_look(conn);
			if (event == FCGI_RECORD_END)
				request_abort(conn);
			return;
		}
	} while (event != FCGI_NEED_MORE);
	if (conn->held.len >= AHEAD_ENOUGH)
		end_look(conn);
}

bool
ahead_may_begin(const struct front_conn *conn)
{
	return conn->state == CONN_BUSY && !conn->looks_ahead && !conn->pipelined &&
		(conn->holding || !conn->request.body_ended);
}

void
ahead_begin(struct front_conn *conn)
{
	conn->holding = true;
	conn->looks_ahead = true;
	conn->ahead = conn->reader;
	stream_resume(conn->stream);
	look(conn, buf_slice(&conn->held));
}

void
ahead_take(struct front_conn *conn, struct slice input)
{
	if (conn_keep(conn, input) && conn->looks_ahead && conn->state == CONN_BUSY)
		look(conn, input);
}
