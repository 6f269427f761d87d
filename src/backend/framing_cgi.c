/*
 * A CGI program in the place of a connection: the request's head is its environment, the body its
 * standard input, and its standard output the answer, which ends when that is closed. What it takes
 * of the body is its own affair.
 */
#include "cgi_private.h"

#include <string.h>

/* The program's path and its environment, each string with its zero byte: for connect_program. */
static int
put_head(const struct backend_pool *pool, struct buf *out, struct slice params,
	enum exchange_result *result, struct err *why)
{
	struct cgi_program program;

	*result = cgi_program_find(pool->config, params, &program, why);
	if (*result != EXCHANGE_COMPLETE)
		return -1;
	if (buf_append(out, program.path, strlen(program.path) + 1) != 0) {
		*result = EXCHANGE_BUSY;
		return err_set(why, "no memory for the request");
	}
	*result = cgi_environment_put(out, pool->config, &program, params, why);
	return *result == EXCHANGE_COMPLETE ? 0 : -1;
}

static void
connect_program(struct exchange *exchange)
{
	struct buf *head = &exchange->pool->request;
	const struct slice strings = buf_slice(head);
	enum exchange_result result;
	struct err why;

	exchange->server = &exchange->pool->servers[0];
	exchange->server->in_flight++;
	exchange->process = cgi_process_start(
		exchange, strings.ptr, slice_skip(strings, strlen(strings.ptr) + 1), &result, &why);
	buf_consume(head, head->len);
	if (exchange->process == NULL)
		exchange_finish(exchange, result, 0, "%s", why.text);
	else
		exchange_connected(exchange);
}

static void
put_body(struct exchange *exchange, struct slice data)
{
	exchange_send(exchange, data, (struct slice){ NULL, 0 });
}

static void
put_body_end(struct exchange *exchange)
{
	struct stream *input = cgi_process_input(exchange->process);

	if (input != NULL)
		stream_finish(input);
}

const struct framing framing_cgi = { .name = "CGI",
	.ended = "the program closed its output before the answer was complete",
	.put_head = put_head,
	.connect = connect_program,
	.body = put_body,
	.body_end = put_body_end,
	.input = answer_take,
	.ends_with_connection = true };
