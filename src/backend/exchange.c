/*
 * One request and its answer. The body goes out and the answer comes in at the same time, each at
 * the other side's pace: an application that answers before it has read everything is not waited
 * for, and neither is one that writes while we still send.
 *
 * php-fpm keeps a child for a connection until the client closes it, so we ask for no kept
 * connection and close behind END_REQUEST.
 */
#include "backend_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REQUEST_ID = 1,
	HEAD_ARENA_MAX = 256 * 1024,
};

/* ---- the end ---- */

static void
destroy(struct exchange *exchange)
{
	struct backend_pool *pool = exchange->pool;

	exchange_connect_stop(exchange);
	stream_close(exchange->stream);
	buf_release(&exchange->early);
	cgi_head_reader_release(&exchange->head_reader);
	arena_release(&exchange->arena);
	free(exchange);
	pool_leave(pool);
}

void
exchange_finish(struct exchange *exchange, enum exchange_result result, uint32_t app_status,
	const char *format, ...)
{
	const struct exchange_handler *handler = exchange->handler;
	void *context = exchange->context;
	struct err why;
	va_list args;

	va_start(args, format);
	(void)vsnprintf(why.text, sizeof why.text, format, args);
	va_end(args);
	if (exchange->starting) {
		exchange->failure = result;
		exchange->failure_why = why;
		return;
	}
	destroy(exchange);
	handler->end(context, result, app_status, why.text);
}

void
exchange_cancel(struct exchange *exchange)
{
	destroy(exchange);
}

/* Before the head nothing has been answered; behind it the answer is cut. */
static void
broke_off(struct exchange *exchange, enum exchange_result before_head, const char *why)
{
	const enum exchange_result result =
		exchange->state == EXCHANGE_ANSWERING ? EXCHANGE_TRUNCATED : before_head;

	exchange_finish(exchange, result, 0, "%s: %s", exchange->server->name, why);
}

static void
finish_whole(struct exchange *exchange, uint32_t app_status)
{
	if (exchange->has_surplus)
		exchange_finish(exchange, EXCHANGE_SURPLUS, app_status,
			"%s: it sent more than the Content-Length that it had said; the rest was "
			"left out",
			exchange->server->name);
	else
		exchange_finish(exchange, EXCHANGE_COMPLETE, app_status, "%s", "");
}

/* ---- deadlines ---- */

static void
touch(struct exchange *exchange)
{
	const int64_t now = loop_now_us(exchange->pool->loop);

	/* Only END_REQUEST is waited for then, see take_record_end. */
	if (exchange->stdout_ended)
		return;
	/* While the web server is slow the application's silence is our doing. */
	stream_set_deadline(
		exchange->stream, exchange->held ? 0 : now + exchange->pool->idle_timeout_us);
}

static void
on_expired(void *context)
{
	struct exchange *exchange = context;

	if (exchange->state == EXCHANGE_CONNECTING)
		exchange_connect_failed(
			exchange, EXCHANGE_TIMEOUT, "not connected within connect_timeout");
	else if (exchange->stdout_ended)
		finish_whole(exchange, 0);
	else
		broke_off(exchange, EXCHANGE_TIMEOUT, "silent for idle_timeout");
}

/* ---- the request ---- */

static bool
has_proxy(struct slice params)
{
	struct slice name, value;

	while (fcgi_pair_next(&params, &name, &value) > 0) {
		if (slice_is(name, SLICE("HTTP_PROXY")))
			return true;
	}
	return false;
}

/* A client's "Proxy:" header would become the application's own proxy (httpoxy). */
static int
put_without_proxy(struct buf *out, struct slice params)
{
	struct buf pairs;
	struct slice name, value;
	int result = 0;

	buf_init(&pairs, EARLY_MAX);
	while (result == 0 && fcgi_pair_next(&params, &name, &value) > 0) {
		if (!slice_is(name, SLICE("HTTP_PROXY")))
			result = fcgi_pair_put(&pairs, name, value);
	}
	if (result == 0)
		result = fcgi_params_put(out, REQUEST_ID, buf_slice(&pairs));
	buf_release(&pairs);
	return result;
}

static int
put_request(struct buf *out, struct slice params)
{
	uint8_t begin[16];

	buf_consume(out, out->len);
	fcgi_put_begin(begin, REQUEST_ID, FCGI_RESPONDER, 0);
	if (buf_append(out, begin, sizeof begin) != 0)
		return -1;
	return has_proxy(params) ? put_without_proxy(out, params)
				 : fcgi_params_put(out, REQUEST_ID, params);
}

/* To the stream, or to what is kept until there is a connection: the next server may need it from
 * its start. */
static void
send_bytes(struct exchange *exchange, struct slice head, struct slice body)
{
	if (exchange->state >= EXCHANGE_ASKED)
		stream_write_pair(exchange->stream, head, body);
	else if (buf_append_slice(&exchange->early, head) != 0 ||
		buf_append_slice(&exchange->early, body) != 0)
		exchange->starved = true;
}

void
exchange_body(struct exchange *exchange, struct slice data)
{
	uint8_t head[FCGI_HEADER_LEN];

	while (data.len > 0) {
		const struct slice content = slice_first(data, FCGI_CONTENT_MAX);

		fcgi_put_head(head, FCGI_STDIN, REQUEST_ID, (uint16_t)content.len, 0);
		send_bytes(exchange, slice_make(head, sizeof head), content);
		data = slice_skip(data, content.len);
	}
	if (exchange->state >= EXCHANGE_ASKED)
		touch(exchange);
}

void
exchange_body_end(struct exchange *exchange)
{
	uint8_t head[FCGI_HEADER_LEN];

	fcgi_put_head(head, FCGI_STDIN, REQUEST_ID, 0, 0);
	send_bytes(exchange, slice_make(head, sizeof head), (struct slice){ NULL, 0 });
}

bool
exchange_is_full(const struct exchange *exchange)
{
	if (exchange->state >= EXCHANGE_ASKED)
		return stream_is_full(exchange->stream);
	return exchange->early.len >= STREAM_FULL;
}

void
exchange_connected(struct exchange *exchange)
{
	const bool was_full = exchange_is_full(exchange);

	exchange_tell_connected(exchange);
	if (exchange->starved) {
		exchange_finish(exchange, EXCHANGE_BUSY, 0, "no memory for the request's body");
		return;
	}
	exchange->state = EXCHANGE_ASKED;
	stream_write(exchange->stream, buf_slice(&exchange->early));
	buf_release(&exchange->early);
	touch(exchange);
	if (!exchange->held)
		stream_resume(exchange->stream);
	if (was_full && !stream_is_full(exchange->stream))
		exchange->handler->drained(exchange->context);
}

struct exchange *
exchange_start(struct backend_pool *pool, struct slice params,
	const struct exchange_handler *handler, void *context, enum exchange_result *result,
	struct err *why)
{
	struct exchange *exchange = NULL;

	*result = EXCHANGE_BUSY;
	if (pool->in_flight >= pool->max_in_flight)
		(void)err_set(why, "max_in_flight is reached");
	else if (put_request(&pool->request, params) != 0 ||
		(exchange = calloc(1, sizeof *exchange)) == NULL)
		(void)err_set(why, "no memory for the request");
	if (exchange == NULL)
		return NULL;
	exchange->pool = pool;
	exchange->handler = handler;
	exchange->context = context;
	exchange->content_length = -1;
	exchange->connect_until_us = loop_now_us(pool->loop) + pool->connect_timeout_us;
	buf_init(&exchange->early, EARLY_MAX);
	arena_init(&exchange->arena, HEAD_ARENA_MAX);
	fcgi_reader_init(&exchange->reader);
	cgi_head_reader_init(&exchange->head_reader, &exchange->arena);
	pool->in_flight++;
	counter_add(pool->in_flight_gauge, 1);
	exchange->starting = true;
	exchange->failure = EXCHANGE_COMPLETE;
	exchange_connect(exchange);
	exchange->starting = false;
	if (exchange->failure != EXCHANGE_COMPLETE) {
		*result = exchange->failure;
		*why = exchange->failure_why;
		destroy(exchange);
		return NULL;
	}
	send_bytes(exchange, buf_slice(&pool->request), (struct slice){ NULL, 0 });
	return exchange;
}

void
exchange_hold(struct exchange *exchange)
{
	exchange->held = true;
	if (exchange->stream != NULL && exchange->state >= EXCHANGE_ASKED) {
		stream_pause(exchange->stream);
		touch(exchange);
	}
}

void
exchange_resume(struct exchange *exchange)
{
	exchange->held = false;
	if (exchange->stream != NULL && exchange->state >= EXCHANGE_ASKED) {
		stream_resume(exchange->stream);
		touch(exchange);
	}
}

/* ---- the answer ---- */

/* False: the exchange is gone, or its answer is no response. */
static bool
take_head(struct exchange *exchange, struct slice *content)
{
	struct cgi_head head;
	struct err err;

	switch (cgi_head_read(&exchange->head_reader, content, &head, &err)) {
	case CGI_HEAD_MORE:
		return true;
	case CGI_HEAD_BAD:
		exchange_finish(
			exchange, EXCHANGE_BAD_HEAD, 0, "%s: %s", exchange->server->name, err.text);
		return false;
	case CGI_HEAD_DONE:
		break;
	}
	if (head.chunked) {
		exchange_finish(exchange, EXCHANGE_BAD_HEAD, 0,
			"%s: Transfer-Encoding has no place in a FastCGI response",
			exchange->server->name);
		return false;
	}
	if (!exchange->handler->head(exchange->context, &head)) {
		exchange_finish(exchange, EXCHANGE_UNTAKEN, 0,
			"%s: the head of its answer cannot be passed on", exchange->server->name);
		return false;
	}
	exchange->state = EXCHANGE_ANSWERING;
	exchange->content_length = head.content_length;
	return true;
}

/* What is beyond Content-Length would be taken for the next response on the client's connection
 * where the web server does not cut it off (mod_fcgid). */
static struct slice
within_length(struct exchange *exchange, struct slice content)
{
	if (exchange->content_length < 0)
		return content;
	const uint64_t left = (uint64_t)exchange->content_length - exchange->content_seen;

	if (content.len > left)
		exchange->has_surplus = true;
	return slice_first(content, left);
}

static bool
take_stdout(struct exchange *exchange, struct slice content)
{
	if (exchange->state == EXCHANGE_ASKED && !take_head(exchange, &content))
		return false;
	if (exchange->state != EXCHANGE_ANSWERING)
		return true;
	content = within_length(exchange, content);
	if (content.len > 0) {
		exchange->content_seen += content.len;
		exchange->handler->data(exchange->context, content);
	}
	return true;
}

static bool
take_content(struct exchange *exchange, struct slice content)
{
	const struct fcgi_record *record = &exchange->reader.record;

	if (record->id != REQUEST_ID)
		return true;
	if (record->type == FCGI_STDOUT)
		return take_stdout(exchange, content);
	if (record->type == FCGI_STDERR) {
		exchange->handler->error_text(exchange->context, content);
	} else if (record->type == FCGI_END_REQUEST &&
		content.len <= sizeof exchange->end_body - exchange->end_len) {
		memcpy(exchange->end_body + exchange->end_len, content.ptr, content.len);
		exchange->end_len += (unsigned)content.len;
	}
	return true;
}

static void
take_end(struct exchange *exchange)
{
	const struct fcgi_end end = fcgi_end_of(exchange->end_body);
	const char *name = exchange->server->name;

	if (exchange->end_len != sizeof exchange->end_body)
		broke_off(exchange, EXCHANGE_BAD_HEAD, "an END_REQUEST of the wrong length");
	else if (end.protocol_status == FCGI_OVERLOADED && exchange->state == EXCHANGE_ASKED)
		exchange_finish(
			exchange, EXCHANGE_BUSY, 0, "%s: it says that it is overloaded", name);
	else if (end.protocol_status != FCGI_REQUEST_COMPLETE)
		broke_off(exchange, EXCHANGE_BAD_HEAD, "it does not serve such requests");
	else if (exchange->state == EXCHANGE_ASKED)
		exchange_finish(exchange, EXCHANGE_BAD_HEAD, end.app_status,
			"%s: it ended without a response", name);
	else
		finish_whole(exchange, end.app_status);
}

/* False: the exchange is gone. */
static bool
take_record_end(struct exchange *exchange)
{
	const struct fcgi_record *record = &exchange->reader.record;

	if (record->id != REQUEST_ID)
		return true;
	if (record->type == FCGI_END_REQUEST) {
		take_end(exchange);
		return false;
	}
	if (record->type == FCGI_STDOUT && record->len == 0 &&
		exchange->state == EXCHANGE_ANSWERING && !exchange->stdout_ended) {
		exchange->stdout_ended = true;
		stream_set_deadline(exchange->stream,
			loop_now_us(exchange->pool->loop) + exchange->pool->end_wait_us);
	}
	return true;
}

static void
on_input(void *context, struct slice data)
{
	struct exchange *exchange = context;
	struct slice content;
	bool going = true;

	while (going) {
		switch (fcgi_read(&exchange->reader, &data, &content)) {
		case FCGI_NEED_MORE:
			touch(exchange);
			return;
		case FCGI_RECORD:
			break;
		case FCGI_CONTENT:
			going = take_content(exchange, content);
			break;
		case FCGI_RECORD_END:
			going = take_record_end(exchange);
			break;
		case FCGI_BAD:
			broke_off(exchange, EXCHANGE_BAD_HEAD, "what it answers is no FastCGI");
			return;
		}
	}
}

/* Without END_REQUEST the answer is complete only if it can be known to be. An application that
 * does not read all of the request resets the connection when it closes. */
static void
connection_ended(struct exchange *exchange, const char *why)
{
	const bool has_all = exchange->content_length >= 0 &&
		exchange->content_seen >= (uint64_t)exchange->content_length;

	if (exchange->state == EXCHANGE_ANSWERING && (exchange->stdout_ended || has_all))
		finish_whole(exchange, 0);
	else
		broke_off(exchange, EXCHANGE_CLOSED, why);
}

static void
on_eof(void *context)
{
	connection_ended(context, "it closed the connection before the answer was complete");
}

static void
on_drained(void *context)
{
	struct exchange *exchange = context;

	touch(exchange);
	exchange->handler->drained(exchange->context);
}

static void
on_failed(void *context, int error)
{
	struct exchange *exchange = context;

	if (exchange->state == EXCHANGE_CONNECTING)
		exchange_connect_failed(exchange, EXCHANGE_REFUSED, strerror(error));
	else
		connection_ended(exchange, strerror(error));
}

static void
on_connected(void *context)
{
	exchange_connected(context);
}

const struct stream_handler exchange_stream_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.connected = on_connected,
	.failed = on_failed,
	.expired = on_expired };
