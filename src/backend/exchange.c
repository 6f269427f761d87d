/*
 * The pump: one request and its answer, in whatever framing. The body goes out and the answer comes
 * in at the same time, each at the other side's pace: an application that answers before it has
 * read everything is not waited for, and neither is one that writes while we still send.
 */
#include "cgi_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_ARENA_MAX = 256 * 1024 };

/* ---- the end ---- */

/* How long the program may run on: what the application has answered whole may be worked on, what
 * the client cut short may not. */
static int64_t
may_run_us(const struct exchange *exchange)
{
	const bool is_answered =
		exchange->is_whole || (exchange_is_answered(exchange) && !exchange->ends_by_client);

	return is_answered && !exchange->is_endless ? exchange->pool->idle_timeout_us : 0;
}

static void
destroy(struct exchange *exchange)
{
	struct backend_pool *pool = exchange->pool;

	exchange_connect_stop(exchange);
	if (exchange->is_reusable)
		keep_put(exchange->server, exchange->stream);
	else
		stream_close(exchange->stream);
	if (exchange->process != NULL)
		cgi_process_leave(exchange->process, may_run_us(exchange));
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

bool
exchange_is_answered(const struct exchange *exchange)
{
	return exchange->body_ended && exchange->body_given;
}

void
exchange_cancel(struct exchange *exchange)
{
	destroy(exchange);
}

/* ---- deadlines ---- */

static void
touch(struct exchange *exchange)
{
	const int64_t now = loop_now_us(exchange->pool->loop);

	/* See answer_body_ended. */
	if (exchange->body_ended)
		return;
	/* While the web server is slow the application's silence is our doing. */
	stream_set_deadline(
		exchange->stream, exchange->held ? 0 : now + exchange->pool->idle_timeout_us);
}

/* NULL: what comes of the request is read no more. */
static struct stream *
output_of(const struct exchange *exchange)
{
	return exchange->process == NULL ? exchange->stream : cgi_process_input(exchange->process);
}

/* Also something of the request was taken, or there is nothing to take before the client sends
 * more, whose silence is the front's to end. */
static bool
is_alive(struct exchange *exchange)
{
	const struct stream *output = output_of(exchange);

	if (output == NULL)
		return false;
	const uint64_t before = exchange->untaken;

	exchange->untaken = stream_untaken(output);
	return exchange->untaken < before || (exchange->untaken == 0 && !exchange->body_given);
}

/* The answer is whole, but what the client uploads is still taken: a program that has said 204 and
 * writes its input to a file would take our leaving for the upload's end. */
static bool
is_uploading(struct exchange *exchange)
{
	return !exchange->body_given && (exchange->process != NULL || exchange->ends_with_head) &&
		is_alive(exchange);
}

static void
on_expired(void *context)
{
	struct exchange *exchange = context;

	if (exchange->state == EXCHANGE_CONNECTING)
		exchange_connect_failed(
			exchange, EXCHANGE_TIMEOUT, "not connected within connect_timeout");
	else if (exchange->body_ended && is_uploading(exchange))
		answer_body_ended(exchange);
	else if (exchange->body_ended)
		answer_waited_enough(exchange);
	else if (is_alive(exchange))
		touch(exchange);
	else
		answer_broke_off(exchange, EXCHANGE_TIMEOUT, "silent for idle_timeout");
}

/* Something of the request was written, or room made for more. */
static void
touch_output(struct exchange *exchange)
{
	const struct stream *output = output_of(exchange);

	if (output != NULL)
		exchange->untaken = stream_untaken(output);
	touch(exchange);
}

/* ---- the request ---- */

static bool
add_early(struct exchange *exchange, struct slice head, struct slice body)
{
	return buf_append_slice(&exchange->early, head) == 0 &&
		buf_append_slice(&exchange->early, body) == 0;
}

/* To the stream, or to what is kept until there is a connection: the next server may need it from
 * its start. */
void
exchange_send(struct exchange *exchange, struct slice head, struct slice body)
{
	if (exchange->state < EXCHANGE_ASKED) {
		exchange->starved = !add_early(exchange, head, body) || exchange->starved;
		return;
	}
	struct stream *output = output_of(exchange);

	if (exchange->may_ask_again &&
		(exchange->early.len + head.len + body.len > AGAIN_MAX ||
			!add_early(exchange, head, body)))
		exchange_is_seen(exchange);
	if (output != NULL)
		stream_write_pair(output, head, body);
}

void
exchange_body(struct exchange *exchange, struct slice data)
{
	exchange->pool->framing->body(exchange, data);
	if (exchange->state >= EXCHANGE_ASKED)
		touch_output(exchange);
}

void
exchange_body_end(struct exchange *exchange)
{
	exchange->body_given = true;
	if (exchange->pool->framing->body_end != NULL)
		exchange->pool->framing->body_end(exchange);
	/* Before it the application had nothing to be silent about. */
	if (exchange->state >= EXCHANGE_ASKED)
		touch(exchange);
}

bool
exchange_is_full(const struct exchange *exchange)
{
	if (exchange->state >= EXCHANGE_ASKED) {
		const struct stream *output = output_of(exchange);

		return output != NULL && stream_is_full(output);
	}
	return exchange->early.len >= STREAM_FULL;
}

void
exchange_connected(struct exchange *exchange)
{
	const bool was_full = exchange_is_full(exchange);

	if (exchange->starved) {
		exchange_finish(exchange, EXCHANGE_BUSY, 0, "no memory for the request's body");
		return;
	}
	exchange->state = EXCHANGE_ASKED;
	exchange_send(exchange, buf_slice(&exchange->early), (struct slice){ NULL, 0 });
	buf_release(&exchange->early);
	touch(exchange);
	if (!exchange->held)
		stream_resume(exchange->stream);
	if (was_full && !exchange_is_full(exchange))
		exchange->handler->drained(exchange->context);
}

void
exchange_use_kept(struct exchange *exchange, struct stream *stream)
{
	stream_hand_over(stream, &exchange_stream_handler, exchange);
	exchange->stream = stream;
	exchange->taken_before = stream_taken(stream);
	exchange->may_ask_again = true;
	exchange->state = EXCHANGE_ASKED;
	touch(exchange);
}

static struct exchange *
exchange_new(struct backend_pool *pool, const struct exchange_handler *handler, void *context,
	struct err *why)
{
	struct exchange *exchange = calloc(1, sizeof *exchange);

	if (exchange == NULL) {
		(void)err_set(why, "no memory for the request");
		return NULL;
	}
	exchange->pool = pool;
	exchange->handler = handler;
	exchange->context = context;
	exchange->content_length = -1;
	exchange->connect_until_us = loop_now_us(pool->loop) + pool->connect_timeout_us;
	buf_init(&exchange->early, EARLY_MAX);
	arena_init(&exchange->arena, HEAD_ARENA_MAX);
	if (pool->framing->start != NULL)
		pool->framing->start(exchange);
	cgi_head_reader_init(&exchange->head_reader, &exchange->arena);
	pool->in_flight++;
	counter_add(pool->in_flight_gauge, 1);
	return exchange;
}

struct exchange *
exchange_start(struct backend_pool *pool, struct slice params,
	const struct exchange_handler *handler, void *context, enum exchange_result *result,
	struct err *why)
{
	struct exchange *exchange = NULL;

	*result = EXCHANGE_BUSY;
	buf_consume(&pool->request, pool->request.len);
	if (pool->in_flight + pool->left_behind >= pool->max_in_flight)
		(void)err_set(why, "max_in_flight is reached");
	else if (pool->framing->put_head(pool, &pool->request, params, result, why) == 0) {
		*result = EXCHANGE_BUSY;
		exchange = exchange_new(pool, handler, context, why);
	}
	if (exchange == NULL)
		return NULL;
	exchange->starting = true;
	exchange->failure = EXCHANGE_COMPLETE;
	pool->framing->connect(exchange);
	exchange->starting = false;
	if (exchange->failure != EXCHANGE_COMPLETE) {
		*result = exchange->failure;
		*why = exchange->failure_why;
		destroy(exchange);
		return NULL;
	}
	exchange_send(exchange, buf_slice(&pool->request), (struct slice){ NULL, 0 });
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

/* ---- the stream ---- */

static void
on_input(void *context, struct slice data)
{
	struct exchange *exchange = context;

	keep_heard(exchange);
	if (exchange->pool->framing->input(exchange, data))
		touch(exchange);
}

static void
on_eof(void *context)
{
	struct exchange *exchange = context;

	if (exchange->process != NULL && !exchange->body_ended)
		cgi_process_await(exchange->process);
	else
		answer_connection_ended(exchange, exchange->pool->framing->ended);
}

static void
on_drained(void *context)
{
	struct exchange *exchange = context;

	touch_output(exchange);
	exchange->handler->drained(exchange->context);
}

static void
on_failed(void *context, int error)
{
	struct exchange *exchange = context;

	if (exchange->state == EXCHANGE_CONNECTING)
		exchange_connect_failed(exchange, EXCHANGE_REFUSED, strerror(error));
	else
		answer_connection_ended(exchange, strerror(error));
}

static void
on_connected(void *context)
{
	exchange_tell_connected(context);
	exchange_connected(context);
}

const struct stream_handler exchange_stream_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.connected = on_connected,
	.failed = on_failed,
	.expired = on_expired };
