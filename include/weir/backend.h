/*
 * The application's side: pools of servers and exchanges with them. One pool for each backend of
 * the configuration and thread.
 *
 * An exchange is one request with its answer. It is never made twice: another server or connection
 * is tried only while the application has seen nothing of it, which a server says itself or which
 * is so when the kernel has taken no byte. It ends with `end`, or when it is cancelled; after that
 * it must not be touched.
 */
#ifndef WEIR_BACKEND_H
#define WEIR_BACKEND_H

#include "weir/cgi_head.h"
#include "weir/config.h"
#include "weir/counter.h"
#include "weir/loop.h"
#include "weir/resolver.h"
#include "weir/slice.h"

struct backend_pool;
struct exchange;

enum exchange_result {
	EXCHANGE_COMPLETE,
	EXCHANGE_BUSY, /* max_in_flight, or the server's backlog was full all the time: 503 */
	EXCHANGE_REFUSED, /* no server could be connected to: 502 */
	EXCHANGE_TIMEOUT, /* connecting, or silence for idle_timeout: 504 */
	EXCHANGE_CLOSED, /* the server closed before a whole head: 502 */
	EXCHANGE_BAD_HEAD, /* what it answered is no response: 502 */
	EXCHANGE_TRUNCATED, /* it broke off behind the head: the answer cannot be completed */
	EXCHANGE_SHORT, /* it ended in order, but before the Content-Length that it had said */
	EXCHANGE_SURPLUS, /* complete, but more came than its Content-Length said: that is left out
			   */
	EXCHANGE_UNTAKEN, /* the handler did not take the head: 502 */
	/* Of programs (CGI): */
	EXCHANGE_NOT_FOUND, /* there is none of that name: 404 */
	EXCHANGE_FORBIDDEN, /* it may not be started: 403 */
	/* A parameter is longer than a FastCGI record, or all are more than a program can be told:
	 * 431. */
	EXCHANGE_TOO_LARGE,
	EXCHANGE_RESULTS
};

extern const char *const exchange_result_names[EXCHANGE_RESULTS];

/* None of the first three may cancel the exchange; they may hold it. */
struct exchange_handler {
	/* The response's head in its normal form; may be changed. Valid until the call returns.
	 * False: it cannot be used, and the exchange ends with EXCHANGE_UNTAKEN. */
	bool (*head)(void *context, struct cgi_head *head);
	void (*data)(void *context, struct slice body);
	/* The application's error output. */
	void (*error_text)(void *context, struct slice text);
	/* More of the request's body may be given, after exchange_is_full was true. */
	void (*drained)(void *context);
	/* why: a sentence for the log if it is not complete, with the server's address; else "". */
	void (*end)(
		void *context, enum exchange_result result, uint32_t app_status, const char *why);
};

/* `share`: how many threads have a pool for this backend; each gets its part of max_in_flight, at
 * least 1. `in_flight`: the cell of COUNT_BACKEND_IN_FLIGHT. */
struct backend_pool *
backend_pool_new(struct loop *loop, struct resolver *resolver, const struct config_backend *config,
	unsigned share, counter_cell in_flight, struct err *err) WEIR_MUST_CHECK;

/* Of servers that are equally busy the nth is the first to be asked, any number modulo theirs; then
 * they take turns. 0 as long as nothing is said. */
void backend_pool_begin_with(struct backend_pool *pool, unsigned nth);

/* Closes the connections that are kept between requests, and keeps no more. NULL is let pass. */
void backend_pool_retire(struct backend_pool *pool);

/* What is known of servers that both have goes over to `pool`, which stands in the place of
 * `before` from now on. */
void backend_pool_take_over(struct backend_pool *pool, struct backend_pool *before);

/* The name of its backend. */
const char *backend_pool_name(const struct backend_pool *pool);

/* Exchanges that are under way keep it alive until they have ended. */
void backend_pool_release(struct backend_pool *pool);

/*
 * Starts to pass a request on. `params` are its name-value pairs, needed during the call only;
 * HTTP_PROXY is left out (it would be taken for the application's own proxy). `handler` must last
 * as long as the exchange. NULL: it was refused at once, *result and `why` say how. `end` never
 * comes before this has returned.
 */
struct exchange *exchange_start(struct backend_pool *pool, struct slice params,
	const struct exchange_handler *handler, void *context, enum exchange_result *result,
	struct err *why) WEIR_MUST_CHECK;

/* The request's body, piece by piece, and its end. */
void exchange_body(struct exchange *exchange, struct slice data);
void exchange_body_end(struct exchange *exchange);

/* Whether the giver should wait for `drained`. */
bool exchange_is_full(const struct exchange *exchange);

/* Stops the answer from coming, until exchange_resume. */
void exchange_hold(struct exchange *exchange);
void exchange_resume(struct exchange *exchange);

/*
 * From within `head` only: the answer is whole with its head. Of the body that an application may
 * send nevertheless nothing is told. It has 2 seconds to end the request by itself, or idle_timeout
 * if that is less, from when it takes no more of the request's body. Then the exchange ends as
 * complete, and an application that is still sending is ended as by exchange_cancel.
 *
 * With `by_client` it was the client who wanted no body (HEAD), so that is no word of the
 * application's on its work. A program that has not closed its output then keeps the exchange, as
 * it does with a body, for as long as idle_timeout, and is ended then and by exchange_cancel: HEAD
 * must not get more programs at a time than GET.
 */
void exchange_end_with_head(struct exchange *exchange, bool by_client);

/* Whether all of the request has been given and all of the answer been told, as its Content-Length
 * says, though the application has not ended the request yet. */
bool exchange_is_answered(const struct exchange *exchange);

/* Closes the connection; no call comes any more. A program is ended, unless the answer is there:
 * then it may work on for idle_timeout. */
void exchange_cancel(struct exchange *exchange);

#endif
