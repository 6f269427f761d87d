/*
 * One connection of the HTTP server.
 *
 *     READING --whole head--> ANSWERING --all is queued--> READING, if the client wants more
 *        '------refused-----------'------otherwise-------> LINGERING: our side shut, theirs read
 *
 * Each state has one deadline, which bytes do not move but for the progress of an answer. While it
 * answers nothing is read.
 */
#include "http_conn.h"

#include "http_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	ANSWER_MAX = 16 * 1024 * 1024,
	HEAD_MAX = 8192,
	PATH_MAX_LEN = 255,
	PIECE = 65536,
	TIMEOUT_US = 10 * 1000000
};

static void
set_deadline(struct http_conn *conn)
{
	stream_set_deadline(conn->stream, loop_now_us(conn->server->loop) + TIMEOUT_US);
}

void
http_conn_close(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	http_server_remove(conn);
	stream_close(conn->stream);
	buf_release(&conn->head);
	buf_release(&conn->body);
	free(conn);
	http_server_look(server);
}

bool
http_conn_is_idle(const struct http_conn *conn)
{
	return conn->state != HTTP_ANSWERING && stream_queued(conn->stream) == 0;
}

static void
go(struct http_conn *conn, enum http_state state)
{
	conn->state = state;
	set_deadline(conn);
	switch (state) {
	case HTTP_ANSWERING:
		stream_pause(conn->stream);
		break;
	case HTTP_READING:
		http_server_remove(conn);
		http_server_append(conn);
		stream_resume(conn->stream);
		break;
	case HTTP_LINGERING:
		stream_finish(conn->stream);
		stream_resume(conn->stream);
		break;
	}
	http_server_look(conn->server);
}

static void
send_more(struct http_conn *conn)
{
	while (conn->body.len > 0 && !stream_is_full(conn->stream)) {
		const struct slice piece = slice_first(buf_slice(&conn->body), PIECE);

		stream_write(conn->stream, piece);
		buf_consume(&conn->body, piece.len);
	}
	set_deadline(conn);
	if (conn->body.len > 0)
		return;
	buf_release(&conn->body);
	go(conn, conn->keep ? HTTP_READING : HTTP_LINGERING);
}

/* ---- answers ---- */

static const char *
reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 413, "Content Too Large" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 503, "Service Unavailable" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "";
}

static void
send_answer(struct http_conn *conn, const struct http_request *request,
	const struct http_answer *answer)
{
	const time_t now = time(NULL);
	char head[1024], date[64];
	struct tm tm;

	(void)strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &tm));
	const int len = snprintf(head, sizeof head,
		"HTTP/1.%c %d %s\r\nDate: %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		"Cache-Control: no-store\r\n%sConnection: %s\r\n\r\n",
		request->is_1_0 ? '0' : '1', answer->status, reason_of(answer->status), date,
		answer->content_type, answer->body.len,
		answer->status == 405 ? "Allow: GET, HEAD\r\n" : "",
		conn->keep ? "keep-alive" : "close");

	conn->body = answer->body;
	if (request->is_head)
		buf_consume(&conn->body, conn->body.len);
	stream_write(conn->stream, slice_make(head, (size_t)len));
	go(conn, HTTP_ANSWERING);
	send_more(conn);
}

static void
answer_plainly(struct http_answer *answer)
{
	if (buf_printf(&answer->body, "%s\n", reason_of(answer->status)) != 0)
		answer->status = 500;
}

static void
refuse(struct http_conn *conn, const struct http_request *request, unsigned status)
{
	struct http_answer answer = { .status = (int)status, .content_type = "text/plain" };

	buf_init(&answer.body, ANSWER_MAX);
	answer_plainly(&answer);
	conn->keep = false;
	send_answer(conn, request, &answer);
}

static void
answer_request(struct http_conn *conn, const struct http_request *request)
{
	const struct http_server *server = conn->server;
	struct http_answer answer = { .status = 404, .content_type = "text/plain; charset=utf-8" };
	char path[PATH_MAX_LEN + 1];

	buf_init(&answer.body, ANSWER_MAX);
	(void)snprintf(path, sizeof path, "%.*s", (int)request->path.len, request->path.ptr);
	if (request->path.len <= PATH_MAX_LEN)
		server->fn(server->context, path, &answer);
	if (answer.status == 404 && answer.body.len == 0)
		answer_plainly(&answer);
	send_answer(conn, request, &answer);
}

/* ---- what the client sends ---- */

static void
take_head(struct http_conn *conn)
{
	const struct slice input = buf_slice(&conn->head);
	const size_t len = http_head_len(input);
	struct http_request request = { 0 };

	if (len == 0)
		return;
	const unsigned status = http_parse(slice_first(input, len), &request);

	/* Who sends more before the answer is told that nobody reads it. */
	conn->keep = request.keep && len == input.len;
	if (status != 0)
		refuse(conn, &request, status);
	else
		answer_request(conn, &request);
	buf_consume(&conn->head, conn->head.len);
	buf_rest(&conn->head);
}

static void
on_input(void *context, struct slice data)
{
	struct http_conn *conn = context;

	if (conn->state != HTTP_READING)
		return;
	if (buf_append_slice(&conn->head, data) == 0)
		take_head(conn);
	else
		refuse(conn, &(const struct http_request){ 0 }, 431);
}

static void
on_eof(void *context)
{
	struct http_conn *conn = context;
	const bool is_answered = conn->state == HTTP_READING && stream_queued(conn->stream) == 0;

	/* Who has only shut its side waits for the answer. */
	conn->ended = true;
	conn->keep = false;
	if (is_answered || stream_is_finished(conn->stream))
		http_conn_close(conn);
	else if (conn->state == HTTP_READING)
		go(conn, HTTP_LINGERING);
}

static void
on_finished(void *context)
{
	struct http_conn *conn = context;

	if (conn->ended)
		http_conn_close(conn);
}

static void
on_drained(void *context)
{
	struct http_conn *conn = context;

	if (conn->state == HTTP_ANSWERING)
		send_more(conn);
	else
		http_server_look(conn->server);
}

static void
on_failed(void *context, int error)
{
	(void)error;
	http_conn_close(context);
}

static void
on_expired(void *context)
{
	http_conn_close(context);
}

static const struct stream_handler handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.finished = on_finished,
	.failed = on_failed,
	.expired = on_expired };

void
http_conn_open(struct http_server *server, int fd)
{
	struct http_conn *conn = calloc(1, sizeof *conn);

	if (conn == NULL) {
		(void)close(fd);
		return;
	}
	conn->server = server;
	buf_init(&conn->head, HEAD_MAX);
	buf_init(&conn->body, ANSWER_MAX);
	conn->stream = stream_new(server->loop, fd, &handler, conn);
	if (conn->stream == NULL) {
		free(conn);
		return;
	}
	http_server_append(conn);
	go(conn, HTTP_READING);
}
