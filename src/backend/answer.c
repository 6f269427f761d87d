/*
 * The answer, once it is out of its framing: a CGI response's head (RFC 3875, 6), then its body, of
 * which no more is passed on than its Content-Length says. How it ends: whole, or broken off.
 */
#include "backend_private.h"

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
	else
		answer_broke_off(exchange, EXCHANGE_CLOSED, why);
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
	exchange->body_ended = true;
	stream_set_deadline(
		exchange->stream, loop_now_us(exchange->pool->loop) + exchange->pool->end_wait_us);
}
