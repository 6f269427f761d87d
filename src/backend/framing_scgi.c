/*
 * SCGI: the request's parameters as a netstring of names and values that each end in a zero byte,
 * CONTENT_LENGTH first, and behind it the body as it is. The answer is a CGI response as it is, and
 * ends with the connection.
 */
#include "backend_private.h"

#include <stdio.h>
#include <string.h>

static bool
has_zero_byte(struct slice text)
{
	return text.len > 0 && memchr(text.ptr, 0, text.len) != NULL;
}

static int
put_pair(struct buf *out, struct slice name, struct slice value)
{
	const struct slice zero = slice_make("", 1);

	if (buf_append_slice(out, name) != 0 || buf_append_slice(out, zero) != 0 ||
		buf_append_slice(out, value) != 0)
		return -1;
	return buf_append_slice(out, zero);
}

/* As the request has it; a request without a body has none, but SCGI wants to be told so. */
static struct slice
content_length(struct slice params)
{
	struct slice name, value;

	while (fcgi_pair_next(&params, &name, &value) > 0) {
		if (slice_is(name, SLICE("CONTENT_LENGTH")) && value.len > 0)
			return value;
	}
	return SLICE("0");
}

/* What is ours to say, and what would be taken for the application's own proxy (httpoxy). */
static bool
is_left_out(struct slice name)
{
	return slice_is(name, SLICE("CONTENT_LENGTH")) || slice_is(name, SLICE("SCGI")) ||
		slice_is(name, SLICE("HTTP_PROXY"));
}

static int
put_pairs(struct buf *out, struct slice params, enum exchange_result *result, struct err *why)
{
	struct slice name, value;

	*result = EXCHANGE_BUSY;
	if (put_pair(out, SLICE("CONTENT_LENGTH"), content_length(params)) != 0 ||
		put_pair(out, SLICE("SCGI"), SLICE("1")) != 0)
		return err_set(why, "no memory for the request");
	while (fcgi_pair_next(&params, &name, &value) > 0) {
		if (has_zero_byte(name) || has_zero_byte(value)) {
			*result = EXCHANGE_UNTAKEN;
			return err_set(why, "a parameter has a zero byte, which SCGI cannot say");
		}
		if (!is_left_out(name) && put_pair(out, name, value) != 0)
			return err_set(why, "no memory for the request");
	}
	return 0;
}

static int
put_head(const struct backend_pool *pool, struct buf *out, struct slice params,
	enum exchange_result *result, struct err *why)
{
	struct buf single, pairs;
	char length[32];
	int status;

	(void)pool;
	*result = EXCHANGE_BUSY;
	buf_init(&single, EARLY_MAX);
	buf_init(&pairs, EARLY_MAX);
	/* No name may come twice. */
	if (params_put_last(&single, params) != 0)
		status = err_set(why, "no memory for the request");
	else
		status = put_pairs(&pairs, buf_slice(&single), result, why);
	(void)snprintf(length, sizeof length, "%zu:", pairs.len);
	if (status == 0 &&
		(buf_append_slice(out, slice_of(length)) != 0 ||
			buf_append_slice(out, buf_slice(&pairs)) != 0 ||
			buf_append_slice(out, SLICE(",")) != 0))
		status = err_set(why, "no memory for the request");
	buf_release(&pairs);
	buf_release(&single);
	return status;
}

static void
put_body(struct exchange *exchange, struct slice data)
{
	exchange_send(exchange, data, (struct slice){ NULL, 0 });
}

const struct framing framing_scgi = { .name = "SCGI",
	.ended = "it closed the connection before the answer was complete",
	.put_head = put_head,
	.connect = exchange_connect,
	.body = put_body,
	.input = answer_take,
	.ends_with_connection = true };
