/*
 * From a request to a connection. As long as nothing was sent the next server may be tried: a
 * refused connect sets its server aside for a second. A full backlog (EAGAIN, which unix sockets
 * answer at once) is waited for with growing pauses, since it means that the application is busy
 * and not that it is gone.
 */
#include "backend_private.h"

#include "weir/hash.h"
#include "weir/socket.h"

#include <errno.h>
#include <string.h>

enum {
	SET_ASIDE_US = 1000000,
	RETRY_FIRST_US = 5000,
	RETRY_LAST_US = 100000,
	RESOLVED_US = 10000000
};

static int64_t
now_of(const struct exchange *exchange)
{
	return loop_now_us(exchange->pool->loop);
}

/* Ends, or goes on with the next server. */
static void
server_failed(struct exchange *exchange, enum exchange_result result, const char *reason)
{
	struct server *server = exchange->server;
	struct backend_pool *pool = exchange->pool;

	server->down_until_us = now_of(exchange) + SET_ASIDE_US;
	exchange->tried |= 1ULL << pool_index(pool, server);
	if (pool_choose(pool, exchange->tried) == NULL) {
		exchange_finish(exchange, result, 0, "%s: %s", server->name, reason);
		return;
	}
	exchange->connect_until_us = now_of(exchange) + pool->connect_timeout_us;
	exchange_connect(exchange);
}

void
exchange_connect_failed(struct exchange *exchange, enum exchange_result result, const char *reason)
{
	stream_close(exchange->stream);
	exchange->stream = NULL;
	server_failed(exchange, result, reason);
}

/* The pause is over, or the look-up has taken too long. */
static void
on_wake(void *context)
{
	struct exchange *exchange = context;

	if (exchange->lookup == NULL) {
		exchange_connect(exchange);
		return;
	}
	lookup_cancel(exchange->lookup);
	exchange->lookup = NULL;
	server_failed(
		exchange, EXCHANGE_TIMEOUT, "its name was not looked up within connect_timeout");
}

/* False: no memory for a timer. */
static bool
wake_at(struct exchange *exchange, int64_t at_us)
{
	exchange->state = EXCHANGE_WAITING;
	if (exchange->wake == NULL)
		exchange->wake = timer_new(exchange->pool->loop, on_wake, exchange);
	if (exchange->wake == NULL)
		return false;
	timer_set(exchange->wake, at_us);
	return true;
}

static void
wait_for_backlog(struct exchange *exchange)
{
	const int64_t now = now_of(exchange);
	int64_t pause = RETRY_FIRST_US << (exchange->retries < 5 ? exchange->retries : 5);
	uint32_t random;

	exchange->retries++;
	if (pause > RETRY_LAST_US)
		pause = RETRY_LAST_US;
	hash_random(&random, sizeof random);
	if (now >= exchange->connect_until_us ||
		!wake_at(exchange, now + pause / 2 + random % pause))
		exchange_finish(exchange, EXCHANGE_BUSY, 0, "%s: its backlog is full",
			exchange->server->name);
}

static void
on_lookup(void *context, const struct sockaddr *address, socklen_t len, const char *error)
{
	struct exchange *exchange = context;
	struct server *server = exchange->server;

	exchange->lookup = NULL;
	timer_cancel(exchange->wake);
	if (error != NULL) {
		server_failed(exchange, EXCHANGE_REFUSED, error);
		return;
	}
	memcpy(&server->resolved, address, len);
	server->resolved_len = len;
	server->resolved_until_us = now_of(exchange) + RESOLVED_US;
	exchange_connect(exchange);
}

/* True: the server's address is known. False: a look-up is under way, or the exchange has ended. */
static bool
resolve(struct exchange *exchange)
{
	struct server *server = exchange->server;

	if (socket_address(&server->address, &server->resolved, &server->resolved_len) == 0)
		return true;
	if (server->resolved_until_us > now_of(exchange))
		return true;
	if (wake_at(exchange, exchange->connect_until_us))
		exchange->lookup = lookup_start(
			exchange->pool->resolver, &server->address, on_lookup, exchange);
	if (exchange->lookup == NULL)
		server_failed(exchange, EXCHANGE_REFUSED, "no memory for the look-up");
	return false;
}

void
exchange_connect(struct exchange *exchange)
{
	struct backend_pool *pool = exchange->pool;
	int error = 0;

	if (exchange->server != NULL)
		exchange->server->in_flight--;
	exchange->server = pool_choose(pool, exchange->tried);
	exchange->server->in_flight++;
	if (!resolve(exchange))
		return;
	exchange->stream =
		stream_connect(pool->loop, (const struct sockaddr *)&exchange->server->resolved,
			exchange->server->resolved_len, &exchange_stream_handler, exchange, &error);
	if (exchange->stream == NULL) {
		if (error == EAGAIN)
			wait_for_backlog(exchange);
		else
			server_failed(exchange, EXCHANGE_REFUSED, strerror(error));
		return;
	}
	exchange->state = EXCHANGE_CONNECTING;
	stream_read_on(exchange->stream);
	if (stream_is_connected(exchange->stream))
		exchange_connected(exchange);
	else
		stream_set_deadline(exchange->stream, exchange->connect_until_us);
}

void
exchange_connect_stop(struct exchange *exchange)
{
	if (exchange->lookup != NULL)
		lookup_cancel(exchange->lookup);
	timer_free(exchange->wake);
	if (exchange->server != NULL)
		exchange->server->in_flight--;
}
