/*
 * What the web server gets: the handler's side of a request, and the answers that the front makes
 * itself.
 *
 * How an answer ends decides whether it arrives. A kept connection stays open behind END_REQUEST,
 * and what comes of the body is read and forgotten: Apache sends all of it, and then its next
 * request. Otherwise our side is shut down behind END_REQUEST and theirs is read to its end: nginx
 * without keep_conn waits for the shutdown, and Apache takes a close with unread bytes for an error
 * (500, 503).
 */
#include "conn.h"

#include "weir/log.h"

#include <stdio.h>

enum { ERROR_TEXT_MAX = 65536 };

enum front_role
front_role_of(const struct front_request *request)
{
	return request->role;
}

struct slice
front_params(const struct front_request *request)
{
	return buf_slice(&request->params);
}

char *const *
front_env(const struct front_request *request)
{
	return request->env;
}

struct arena *
front_arena(struct front_request *request)
{
	return &request->arena;
}

void
front_set_owner(struct front_request *request, void *owner)
{
	request->owner = owner;
}

void *
front_owner(const struct front_request *request)
{
	return request->owner;
}

bool
front_knows_length(const struct front_request *request)
{
	return request->body_length != UINT64_MAX;
}

void
front_want_body(struct front_request *request)
{
	struct front_conn *conn = conn_of(request);

	request->body_wanted = true;
	if (request->body_ended && !request->body_end_told) {
		conn_tell_body_end(conn);
		return;
	}
	if (request->body_ended)
		return;
	if (conn->holding)
		loop_defer(conn->front->loop, &conn->take_held);
	else
		stream_resume(conn->stream);
	conn_set_body_deadline(conn);
}

void
front_hold_body(struct front_request *request)
{
	struct front_conn *conn = conn_of(request);

	if (request->body_ended)
		return;
	request->body_wanted = false;
	stream_pause(conn->stream);
	conn_set_body_deadline(conn);
}

static void
send_records(struct front_request *request, uint8_t type, struct slice bytes)
{
	struct front_conn *conn = conn_of(request);
	uint8_t head[FCGI_HEADER_LEN];

	while (bytes.len > 0) {
		const struct slice content = slice_first(bytes, FCGI_CONTENT_MAX);

		fcgi_put_head(head, type, request->id, (uint16_t)content.len, 0);
		stream_write_pair(conn->stream, slice_make(head, sizeof head), content);
		bytes = slice_skip(bytes, content.len);
	}
}

void
front_send(struct front_request *request, struct slice bytes)
{
	request->has_answered = request->has_answered || bytes.len > 0;
	send_records(request, FCGI_STDOUT, bytes);
}

void
front_send_error_text(struct front_request *request, struct slice bytes)
{
	const struct slice piece = slice_first(bytes, ERROR_TEXT_MAX - request->error_text_sent);

	request->error_text_sent += (uint32_t)piece.len;
	send_records(request, FCGI_STDERR, piece);
}

void
front_promise_length(struct front_request *request)
{
	request->has_promised = true;
}

bool
front_is_full(const struct front_request *request)
{
	return stream_is_full(conn_of(request)->stream);
}

void
front_end(struct front_request *request, uint32_t app_status)
{
	struct front_conn *conn = conn_of(request);
	uint8_t tail[FCGI_HEADER_LEN + 16];

	/* An empty STDOUT ends the stream (5.3), but before any output Apache takes it for an empty
	 * answer. */
	fcgi_put_head(tail, FCGI_STDOUT, request->id, 0, 0);
	fcgi_put_end(tail + FCGI_HEADER_LEN, request->id, app_status, FCGI_REQUEST_COMPLETE);
	if (request->has_answered)
		stream_write(conn->stream, slice_make(tail, sizeof tail));
	else
		stream_write(conn->stream, slice_make(tail + FCGI_HEADER_LEN, 16));
	request->owner = NULL;
	if (request->keep && request->body_ended)
		conn_go(conn, CONN_IDLE);
	else if (request->keep)
		conn_go(conn, CONN_SKIP);
	else
		conn_go(conn, CONN_LINGER);
}

void
front_cut(struct front_request *request)
{
	struct front_conn *conn = conn_of(request);

	request->owner = NULL;
	if (!request->has_promised && head_is_from_mod_fcgid(request)) {
		request->keep = false;
		front_end(request, 1);
		return;
	}
	conn_go(conn, CONN_LINGER);
}

void
front_end_short(struct front_request *request, uint32_t app_status)
{
	if (head_is_from_mod_proxy_fcgi(request))
		front_end(request, app_status);
	else
		front_cut(request);
}

void
front_answer(struct front_request *request, struct slice head, struct slice body)
{
	front_send(request, head);
	front_send(request, body);
	front_end(request, 0);
}

static const struct {
	unsigned status;
	const char *reason, *detail, *field;
} refusals[FRONT_REFUSALS] = {
	[REFUSAL_BAD_HEAD] = { 400, "Bad Request",
		"The web server sent a request that cannot be read.", "" },
	[REFUSAL_SHORT_BODY] = { 400, "Bad Request",
		"The request's body ended before its Content-Length.", "" },
	[REFUSAL_BODY_TIMEOUT] = { 408, "Request Timeout", "The request's body stopped coming.",
		"" },
	[REFUSAL_LARGE_HEAD] = { 431, "Request Header Fields Too Large",
		"The request's parameters are too large or too many.", "" },
	[REFUSAL_SHORTAGE] = { 503, "Service Unavailable",
		"The service is busy. Try again shortly.", "Retry-After: 1\r\n" },
};

void
conn_refuse(struct front_conn *conn, enum front_refusal refusal, const char *why)
{
	const char *reason = refusals[refusal].reason, *detail = refusals[refusal].detail;
	char head[512];

	log_debug("A request was refused because of what was sent of it.",
		LOG_INT("status", refusals[refusal].status), LOG_TEXT("reason", why));
	if (conn->request.has_answered) {
		front_cut(&conn->request);
		return;
	}
	const int n = snprintf(head, sizeof head,
		"Status: %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nCache-Control: "
		"no-store\r\n%s"
		"Content-Length: %zu\r\n\r\n%s\n",
		refusals[refusal].status, reason, refusals[refusal].field, strlen(detail) + 1,
		detail);

	const size_t body = front_is_head(&conn->request) ? strlen(detail) + 1 : 0;

	conn->request.keep = false;
	front_send(&conn->request, slice_make(head, (size_t)n - body));
	front_end(&conn->request, 0);
}
