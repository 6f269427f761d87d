/*
 * The answer, once it is out of its framing: a CGI response's head (RFC 3875, 6), then its body, of
 * which no more is passed on than its Content-Length says. How it ends: whole, or broken off.
 */
#include "backend_private.h"

#include <stdio.h>

enum { STILL_US = 1000000 }; /* who has sent something within it is still sending */

/* ---- the end ---- */

/* Before the head nothing has been answered; behind it the answer is cut. */
void
answer_broke_off(struct exchange *exchange, enum exchange_result before_head, const char *why)
{
	const enum exchange_result result =
		exchange->state == EXCHANGE_ANSWERING ? EXCHANGE_TRUNCATED : before_head;

	exchange_finish(exchange, result, 0, "%s: %s", exchange->server->name, why);
}

void
answer_finish(struct exchange *exchange, uint32_t app_status)
{
	const bool is_short = exchange->content_length >= 0 &&
		exchange->content_seen < (uint64_t)exchange->content_length;

	exchange->is_whole = true;
	if (is_short)
		exchange_finish(exchange, EXCHANGE_SHORT, app_status,
			"%s: it sent %llu bytes of the Content-Length of %lld that it had said",
			exchange->server->name, (unsigned long long)exchange->content_seen,
			(long long)exchange->content_length);
	else if (exchange->has_surplus)
		exchange_finish(exchange, EXCHANGE_SURPLUS, app_status,
			"%s: it sent more than the Content-Length that it had said; the rest was "
			"left out",
			exchange->server->name);
	else
		exchange_finish(exchange, EXCHANGE_COMPLETE, app_status, "%s", "");
}

/* Nothing is missing of the answer. A program that is silent may be working on, and has its time
 * for that, within the exchange if the client wanted no body; who goes on sending what nobody takes
 * would do so for ever. */
void
answer_waited_enough(struct exchange *exchange)
{
	const int64_t now = loop_now_us(exchange->pool->loop);
	const bool is_sending = exchange->dropped_us > 0 && now - exchange->dropped_us < STILL_US;

	if (exchange->process != NULL && exchange->ends_by_client && !is_sending &&
		!exchange->is_worked_on) {
		exchange->is_worked_on = true;
		stream_set_deadline(exchange->stream, now + exchange->pool->idle_timeout_us);
		return;
	}
	exchange->is_endless = is_sending || exchange->is_worked_on;
	answer_finish(exchange, 0);
}

/* Where the framing has not said so, the answer is complete only if it can be known to be. An
 * application that does not read all of the request resets the connection when it closes. */
void
answer_connection_ended(struct exchange *exchange, const char *why)
{
	if (exchange_is_unseen(exchange)) {
		exchange_ask_again(exchange);
		return;
	}
	const bool has_length = exchange->content_length >= 0;
	const bool has_all = has_length
		? exchange->content_seen >= (uint64_t)exchange->content_length
		: exchange->pool->framing->ends_with_connection;

	if (exchange->state == EXCHANGE_ANSWERING && (exchange->body_ended || has_all))
		answer_finish(exchange, 0);
	else if (exchange->state == EXCHANGE_ASKED && exchange->head_reader.taken > 0 &&
		exchange->pool->framing->ends_with_connection)
		exchange_finish(exchange, EXCHANGE_BAD_HEAD, 0,
			"%s: no head, or half of one: a response begins with fields, such as "
			"Content-Type: text/plain, and an empty line",
			exchange->server->name);
	else
		answer_broke_off(exchange, EXCHANGE_CLOSED, why);
}

void
answer_program_ended(struct exchange *exchange, int signo)
{
	char why[64];

	(void)snprintf(why, sizeof why, "the program was ended by signal %d", signo);
	if (signo > 0)
		answer_broke_off(exchange, EXCHANGE_CLOSED, why);
	else
		answer_connection_ended(exchange, exchange->pool->framing->ended);
}

/* ---- what comes ---- */

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
			"%s: Transfer-Encoding has no place in a %s response",
			exchange->server->name, exchange->pool->framing->name);
		return false;
	}
	if (!exchange->handler->head(exchange->context, &head)) {
		exchange_finish(exchange, EXCHANGE_UNTAKEN, 0,
			"%s: the head of its answer cannot be passed on", exchange->server->name);
		return false;
	}
	exchange->state = EXCHANGE_ANSWERING;
	exchange->content_length = exchange->ends_with_head ? 0 : head.content_length;
	return true;
}

void
exchange_end_with_head(struct exchange *exchange, bool by_client)
{
	exchange->ends_with_head = true;
	exchange->ends_by_client = by_client;
}

/* What is beyond Content-Length would be taken for the next response on the client's connection
 * where the web server does not cut it off (mod_fcgid). */
static struct slice
within_length(struct exchange *exchange, struct slice content)
{
	if (exchange->content_length < 0)
		return content;
	const uint64_t left = (uint64_t)exchange->content_length - exchange->content_seen;

	if (content.len > left) {
		exchange->dropped_us = loop_now_us(exchange->pool->loop);
		/* To HEAD a body is sent by most applications, and is no mistake worth telling. */
		exchange->has_surplus = !exchange->ends_with_head;
		if (exchange->is_worked_on) {
			exchange->is_worked_on = false;
			answer_body_ended(exchange);
		}
	}
	return slice_first(content, left);
}

static bool
has_whole_length(const struct exchange *exchange)
{
	return exchange->content_length >= 0 &&
		exchange->content_seen >= (uint64_t)exchange->content_length;
}

bool
answer_take(struct exchange *exchange, struct slice content)
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
	if (has_whole_length(exchange) && !exchange->body_ended)
		answer_body_ended(exchange);
	return true;
}

void
answer_body_ended(struct exchange *exchange)
{
	const struct backend_pool *pool = exchange->pool;

	exchange->body_ended = true;
	stream_set_deadline(exchange->stream,
		loop_now_us(pool->loop) +
			(exchange->ends_with_head ? pool->head_wait_us : pool->end_wait_us));
}
