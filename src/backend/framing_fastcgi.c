/*
 * FastCGI 1.0, one request at a time on a connection.
 *
 * php-fpm keeps a child for a connection until the client closes it, so by default we ask for no
 * kept connection and close behind END_REQUEST. With keep_idle the connection may serve the next
 * request (keep.c), if both sides stand behind the end of this one as they should.
 */
#include "backend_private.h"

#include <string.h>

enum { REQUEST_ID = 1 };

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

/* As they came, since they are passed on so: a length may take more bytes than it needs. */
static bool
fit_records(struct slice params)
{
	struct slice rest = params, name, value;

	while (fcgi_pair_next(&rest, &name, &value) > 0) {
		if (params.len - rest.len > FCGI_CONTENT_MAX)
			return false;
		params = rest;
	}
	return true;
}

static int
put_head(const struct backend_pool *pool, struct buf *out, struct slice params,
	enum exchange_result *result, struct err *why)
{
	uint8_t begin[16];

	*result = EXCHANGE_TOO_LARGE;
	if (!fit_records(params))
		return err_set(why,
			"a parameter is longer than %d bytes, so no FastCGI record takes it",
			FCGI_CONTENT_MAX);
	fcgi_put_begin(begin, REQUEST_ID, FCGI_RESPONDER, pool->keep_max > 0 ? FCGI_KEEP_CONN : 0);
	*result = EXCHANGE_BUSY;
	if (buf_append(out, begin, sizeof begin) != 0 ||
		(has_proxy(params) ? put_without_proxy(out, params)
				   : fcgi_params_put(out, REQUEST_ID, params)) != 0)
		return err_set(why, "no memory for the request");
	return 0;
}

static void
put_body(struct exchange *exchange, struct slice data)
{
	uint8_t head[FCGI_HEADER_LEN];

	while (data.len > 0) {
		const struct slice content = slice_first(data, FCGI_CONTENT_MAX);

		fcgi_put_head(head, FCGI_STDIN, REQUEST_ID, (uint16_t)content.len, 0);
		exchange_send(exchange, slice_make(head, sizeof head), content);
		data = slice_skip(data, content.len);
	}
}

static void
put_body_end(struct exchange *exchange)
{
	uint8_t head[FCGI_HEADER_LEN];

	fcgi_put_head(head, FCGI_STDIN, REQUEST_ID, 0, 0);
	exchange_send(exchange, slice_make(head, sizeof head), (struct slice){ NULL, 0 });
}

/* ---- the answer ---- */

static void
start(struct exchange *exchange)
{
	exchange->framed.fastcgi = (struct fastcgi_state){ .end_len = 0 };
	fcgi_reader_init(&exchange->framed.fastcgi.reader);
}

static bool
take_content(struct exchange *exchange, struct slice content)
{
	struct fastcgi_state *state = &exchange->framed.fastcgi;
	const struct fcgi_record *record = &state->reader.record;

	if (record->id != REQUEST_ID)
		return true;
	if (record->type == FCGI_STDOUT || record->type == FCGI_STDERR)
		exchange_is_seen(exchange);
	if (record->type == FCGI_STDOUT)
		return answer_take(exchange, content);
	if (record->type == FCGI_STDERR) {
		exchange->handler->error_text(exchange->context, content);
	} else if (record->type == FCGI_END_REQUEST &&
		content.len <= sizeof state->end_body - state->end_len) {
		memcpy(state->end_body + state->end_len, content.ptr, content.len);
		state->end_len += (unsigned)content.len;
	}
	return true;
}

/* Whether the connection stands where the next request begins; `rest` came behind the end. */
static bool
is_in_step(const struct exchange *exchange, struct slice rest)
{
	return exchange->body_given && stream_queued(exchange->stream) == 0 && rest.len == 0 &&
		!exchange->framed.fastcgi.has_strangers && !exchange->has_surplus;
}

static void
finish(struct exchange *exchange, uint32_t app_status, struct slice rest)
{
	exchange->is_reusable = is_in_step(exchange, rest);
	answer_finish(exchange, app_status);
}

static void
take_end(struct exchange *exchange, struct slice rest)
{
	const struct fastcgi_state *state = &exchange->framed.fastcgi;
	const struct fcgi_end end = fcgi_end_of(state->end_body);
	const char *name = exchange->server->name;

	if (state->end_len != sizeof state->end_body)
		answer_broke_off(exchange, EXCHANGE_BAD_HEAD, "an END_REQUEST of the wrong length");
	else if (end.protocol_status == FCGI_CANT_MPX_CONN && exchange->may_ask_again)
		exchange_ask_again(exchange);
	else if (end.protocol_status == FCGI_OVERLOADED && exchange->state == EXCHANGE_ASKED)
		exchange_finish(
			exchange, EXCHANGE_BUSY, 0, "%s: it says that it is overloaded", name);
	else if (end.protocol_status != FCGI_REQUEST_COMPLETE)
		answer_broke_off(exchange, EXCHANGE_BAD_HEAD, "it does not serve such requests");
	else if (exchange->state == EXCHANGE_ASKED)
		exchange_finish(exchange, EXCHANGE_BAD_HEAD, end.app_status,
			"%s: it ended without a response", name);
	else
		finish(exchange, end.app_status, rest);
}

/* False: the exchange is gone. */
static bool
take_record_end(struct exchange *exchange, struct slice rest)
{
	const struct fcgi_record *record = &exchange->framed.fastcgi.reader.record;

	if (record->id != REQUEST_ID) {
		exchange->framed.fastcgi.has_strangers = true;
		return true;
	}
	if (record->type == FCGI_END_REQUEST) {
		take_end(exchange, rest);
		return false;
	}
	if (record->type == FCGI_STDOUT && record->len == 0 &&
		exchange->state == EXCHANGE_ANSWERING && !exchange->body_ended)
		answer_body_ended(exchange);
	return true;
}

static bool
take_input(struct exchange *exchange, struct slice data)
{
	struct slice content;
	bool going = true;

	while (going) {
		switch (fcgi_read(&exchange->framed.fastcgi.reader, &data, &content)) {
		case FCGI_NEED_MORE:
			return true;
		case FCGI_RECORD:
			break;
		case FCGI_CONTENT:
			going = take_content(exchange, content);
			break;
		case FCGI_RECORD_END:
			going = take_record_end(exchange, data);
			break;
		case FCGI_BAD:
			answer_broke_off(
				exchange, EXCHANGE_BAD_HEAD, "what it answers is no FastCGI");
			return false;
		}
	}
	return false;
}

const struct framing framing_fastcgi = { .name = "FastCGI",
	.ended = "it closed the connection before the answer was complete",
	.put_head = put_head,
	.connect = exchange_connect,
	.start = start,
	.body = put_body,
	.body_end = put_body_end,
	.input = take_input };
