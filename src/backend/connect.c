/*
 * From a request to a connection. As long as nothing was sent the next address of the server may be
 * tried, and then the next server: one that no address leads to is set aside for a second. A name
 * is looked up once for all who wait for it, and what was found is used for a while. A full backlog
 * (EAGAIN, which unix sockets answer at once) means that the application is busy and not that it is
 * gone: the others are asked, and when all are full they are waited for with growing pauses.
 */
#include "backend_private.h"

#include "weir/hash.h"
#include "weir/log.h"
#include "weir/socket.h"
#include "weir/units.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum {
	SET_ASIDE_US = 1000000,
	RETRY_FIRST_US = 5000,
	RETRY_LAST_US = 100000,
	RESOLVED_US = 10000000
};

/* A server that comes and goes is told of so often at the most; one that stays away, so often. */
#define TELL_US (10 * US_PER_S)
#define REMIND_US (600 * US_PER_S)

static void connect_address(struct exchange *exchange);
static void lookup_leave(struct exchange *exchange);

static int64_t
now_of(const struct exchange *exchange)
{
	return loop_now_us(exchange->pool->loop);
}

/* Once, and again and again while it lasts: where several servers are, nobody else would notice. */
static void
tell_failed(struct exchange *exchange, const char *reason)
{
	struct server *server = exchange->server;
	const int64_t now = now_of(exchange);

	if (server->failing_since_us == 0)
		server->failing_since_us = now;
	if (server->told_us != 0 && now - server->told_us < (server->is_told ? REMIND_US : TELL_US))
		return;
	server->told_us = now;
	server->is_told = true;
	log_warn("A backend's server cannot be connected to; it is asked last, and tried again "
		 "after a second.",
		LOG_TEXT("backend", exchange->pool->name), LOG_TEXT("server", server->name),
		LOG_TEXT("reason", reason), LOG_FOR_S((now - server->failing_since_us) / US_PER_S));
}

void
exchange_tell_connected(struct exchange *exchange)
{
	struct server *server = exchange->server;
	const int64_t since = server->failing_since_us;

	server->preferred = (server->preferred + exchange->passed_over) % server->address_count;
	exchange->passed_over = 0;
	server->failing_since_us = 0;
	if (!server->is_told)
		return;
	server->is_told = false;
	log_info("A backend's server can be connected to again.",
		LOG_TEXT("backend", exchange->pool->name), LOG_TEXT("server", server->name),
		LOG_INT("after_s", (now_of(exchange) - since) / US_PER_S));
}

/* Ends, or goes on with the next server. */
static void
server_failed(struct exchange *exchange, enum exchange_result result, const char *reason)
{
	struct server *server = exchange->server;
	struct backend_pool *pool = exchange->pool;

	tell_failed(exchange, reason);
	server->down_until_us = now_of(exchange) + SET_ASIDE_US;
	/* Perhaps it has moved. */
	server->resolved_until_us = 0;
	exchange->tried |= 1ULL << pool_index(pool, server);
	if (pool_choose(pool, exchange->tried) == NULL) {
		exchange_finish(exchange, result, 0, "%s: %s", server->name, reason);
		return;
	}
	exchange->connect_until_us = now_of(exchange) + pool->connect_timeout_us;
	if (pool_choose(pool, exchange->tried | exchange->full) == NULL)
		exchange->full = 0;
	exchange_connect(exchange);
}

/* The same with the server's next address. */
static void
address_failed(struct exchange *exchange, enum exchange_result result, const char *reason)
{
	if (++exchange->passed_over < exchange->server->address_count)
		connect_address(exchange);
	else
		server_failed(exchange, result, reason);
}

void
exchange_connect_failed(struct exchange *exchange, enum exchange_result result, const char *reason)
{
	stream_close(exchange->stream);
	exchange->stream = NULL;
	address_failed(exchange, result, reason);
}

/* The pause is over, or the look-up has taken too long. */
static void
on_wake(void *context)
{
	struct exchange *exchange = context;

	if (exchange->wait_at == NULL) {
		exchange->full = 0;
		exchange_connect(exchange);
		return;
	}
	lookup_leave(exchange);
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

/* Another server, if there is one that has not said the same since the last pause. */
static void
ask_less_busy(struct exchange *exchange)
{
	exchange->full |= 1ULL << pool_index(exchange->pool, exchange->server);
	if (pool_choose(exchange->pool, exchange->tried | exchange->full) != NULL)
		exchange_connect(exchange);
	else
		wait_for_backlog(exchange);
}

/* ---- names ---- */

static void
enlist(struct exchange **list, struct exchange *exchange)
{
	exchange->wait_next = *list;
	exchange->wait_at = list;
	if (*list != NULL)
		(*list)->wait_at = &exchange->wait_next;
	*list = exchange;
}

/* The last one takes the look-up with it. */
static void
lookup_leave(struct exchange *exchange)
{
	struct server *server = exchange->server;

	if (exchange->wait_at == NULL)
		return;
	*exchange->wait_at = exchange->wait_next;
	if (exchange->wait_next != NULL)
		exchange->wait_next->wait_at = exchange->wait_at;
	exchange->wait_at = NULL;
	if (server->waiting == NULL && server->lookup != NULL) {
		lookup_cancel(server->lookup);
		server->lookup = NULL;
	}
}

/* The server may go with the last of those who have waited: its pool may have been released. */
static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct server *server = context;
	struct exchange *list = server->waiting;

	server->lookup = NULL;
	server->waiting = NULL;
	if (list != NULL)
		list->wait_at = &list;
	if (error == NULL) {
		memcpy(server->addresses, addresses, count * sizeof addresses[0]);
		server->address_count = count;
		server->preferred = 0;
		server->resolved_until_us = loop_now_us(server->pool->loop) + RESOLVED_US;
	}
	while (list != NULL) {
		struct exchange *exchange = list;

		lookup_leave(exchange);
		timer_cancel(exchange->wake);
		if (error == NULL)
			connect_address(exchange);
		else
			server_failed(exchange, EXCHANGE_REFUSED, error);
	}
}

/* True: the server's addresses are known. False: they are being looked up, or the exchange has
 * ended. */
static bool
resolve(struct exchange *exchange)
{
	struct server *server = exchange->server;
	struct resolved *first = &server->addresses[0];

	if (server->resolved_until_us > now_of(exchange))
		return true;
	if (socket_address(&server->address, &first->address, &first->len) == 0) {
		server->address_count = 1;
		server->resolved_until_us = INT64_MAX;
		return true;
	}
	if (wake_at(exchange, exchange->connect_until_us) && server->lookup == NULL)
		server->lookup =
			lookup_start(exchange->pool->resolver, &server->address, on_lookup, server);
	if (exchange->wake == NULL || server->lookup == NULL)
		exchange_finish(exchange, EXCHANGE_BUSY, 0, "no memory for the look-up");
	else
		enlist(&server->waiting, exchange);
	return false;
}

/* ---- connections ---- */

/* The server has nothing to do with it, and another one would not help. */
static bool
is_our_own(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

static void
connect_refused(struct exchange *exchange, int error)
{
	if (error == EAGAIN)
		ask_less_busy(exchange);
	else if (is_our_own(error))
		exchange_finish(exchange, EXCHANGE_BUSY, 0, "no connection can be made: %s",
			strerror(error));
	else
		address_failed(exchange, EXCHANGE_REFUSED, strerror(error));
}

/* An address gets its part of what is left of the time, so that the last one has some, too. There
 * may be fewer addresses by now than have been tried. */
static int64_t
give_up_at(const struct exchange *exchange)
{
	const int64_t now = now_of(exchange);
	const unsigned count = exchange->server->address_count, tried = exchange->passed_over;

	return now + (exchange->connect_until_us - now) / (count > tried ? count - tried : 1);
}

static void
connect_address(struct exchange *exchange)
{
	const struct server *server = exchange->server;
	const struct resolved *to = &server->addresses[(server->preferred + exchange->passed_over) %
		server->address_count];
	int error = 0;

	/* Nothing else is waited for. */
	assert(exchange->stream == NULL && exchange->wait_at == NULL);
	assert(exchange->wake == NULL || !timer_is_set(exchange->wake));
	exchange->stream =
		stream_connect(exchange->pool->loop, (const struct sockaddr *)&to->address, to->len,
			&exchange_stream_handler, exchange, &error);
	if (exchange->stream == NULL) {
		connect_refused(exchange, error);
		return;
	}
	exchange->state = EXCHANGE_CONNECTING;
	stream_read_on(exchange->stream);
	if (!stream_is_connected(exchange->stream)) {
		stream_set_deadline(exchange->stream, give_up_at(exchange));
		return;
	}
	exchange_tell_connected(exchange);
	exchange_connected(exchange);
}

static void
leave_server(struct exchange *exchange)
{
	if (exchange->server == NULL)
		return;
	keep_heard(exchange);
	exchange->server->in_flight--;
}

void
exchange_connect(struct exchange *exchange)
{
	struct stream *kept = NULL;

	leave_server(exchange);
	exchange->server = pool_choose(exchange->pool, exchange->tried | exchange->full);
	exchange->server->in_flight++;
	exchange->pool->turn = pool_index(exchange->pool, exchange->server) + 1;
	exchange->passed_over = 0;
	/* Only before anything is put together: what has been would have to be sent now. */
	if (exchange->starting)
		kept = keep_take(exchange->server);
	if (kept != NULL) {
		exchange_use_kept(exchange, kept);
		return;
	}
	keep_expect(exchange);
	if (resolve(exchange))
		connect_address(exchange);
}

void
exchange_connect_stop(struct exchange *exchange)
{
	lookup_leave(exchange);
	timer_free(exchange->wake);
	leave_server(exchange);
}
