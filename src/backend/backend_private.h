/*
 * Pools, their servers and their exchanges. Private to the room.
 *
 *     WAITING (look-up; backlog full) --> CONNECTING --> ASKED --head--> ANSWERING --> gone
 *        ^                                    |
 *        '---------- another server ----------'
 *
 * A kept connection leads to ASKED at once. If the server had closed it before it took anything, or
 * says there that it does not take the request, the exchange is back in WAITING, once.
 */
#ifndef WEIR_BACKEND_PRIVATE_H
#define WEIR_BACKEND_PRIVATE_H

#include "weir/backend.h"
#include "weir/counter.h"
#include "weir/fcgi.h"
#include "weir/log.h"
#include "weir/resolver.h"
#include "weir/stream.h"

struct server {
	struct address address;
	char name[ADDRESS_TEXT_SIZE];
	unsigned in_flight;
	int64_t down_until_us; /* set aside after a failed connect */
	int64_t failing_since_us; /* 0: the last connect went well */
	int64_t told_us; /* when the log was told last that it cannot be connected to; 0: never */
	bool is_told; /* and that it can has not been told since */
	struct resolved addresses[LOOKUP_ADDRESSES_MAX];
	unsigned address_count;
	unsigned preferred; /* the address that took a connection last */
	int64_t resolved_until_us; /* 0: a look-up is needed */
	struct backend_pool *pool;
	struct lookup *lookup; /* for all who wait */
	struct exchange *waiting;
	struct kept *kept; /* connections between two requests */
	unsigned unheard; /* exchanges that have heard nothing on connections of their own */
};

struct backend_pool {
	struct loop *loop;
	struct resolver *resolver;
	int64_t connect_timeout_us, idle_timeout_us;
	int64_t end_wait_us; /* for the end of the request, once the answer's body has ended */
	int64_t head_wait_us; /* the same where the answer has no body */
	unsigned max_in_flight, in_flight;
	unsigned keep_max, kept; /* connections between two requests, of all servers */
	int64_t keep_us; /* for so long */
	unsigned left_behind; /* programs that run although their exchange is gone */
	bool released;
	char *name;
	counter_cell in_flight_gauge;
	const struct framing *framing;
	const struct config_backend *config; /* there as long as exchanges are started */
	struct log_throttle killed_log;
	struct buf request; /* what is being put together for sending */
	unsigned server_count;
	unsigned turn; /* of equally busy servers, the first from here on is taken */
	struct server servers[];
};

enum exchange_state { EXCHANGE_WAITING, EXCHANGE_CONNECTING, EXCHANGE_ASKED, EXCHANGE_ANSWERING };

/*
 * How a request and its answer lie on a connection. The pump (exchange.c, answer.c) knows nothing
 * of it: it moves bytes, holds them back, keeps the deadlines and reads the response.
 */
struct framing {
	const char *name; /* for sentences: "a NAME response" */
	const char *ended; /* why an answer is not whole that the peer has ended */
	/* The request's head, behind what `out` has. Below 0: it cannot be sent, *result and `why`
	 * say how it ends. */
	int (*put_head)(const struct backend_pool *pool, struct buf *out, struct slice params,
		enum exchange_result *result, struct err *why);
	/* Makes a connection, and says so by exchange_connected; or ends the exchange. */
	void (*connect)(struct exchange *exchange);
	/* Before anything else of an exchange. May be NULL. */
	void (*start)(struct exchange *exchange);
	/* A piece of the request's body, and its end, by exchange_send. The latter may be NULL. */
	void (*body)(struct exchange *exchange, struct slice data);
	void (*body_end)(struct exchange *exchange);
	/* What came from the server, for answer_take and its like. False: the exchange is gone. */
	bool (*input)(struct exchange *exchange, struct slice data);
	/* Where no Content-Length says so, the end of the connection is the end of the answer. */
	bool ends_with_connection;
};

extern const struct framing framing_cgi, framing_fastcgi, framing_scgi;

struct fastcgi_state {
	struct fcgi_reader reader;
	uint8_t end_body[8];
	unsigned end_len;
	bool has_strangers; /* records of another request came */
};

union framing_state {
	struct fastcgi_state fastcgi;
};

struct exchange {
	struct backend_pool *pool;
	const struct exchange_handler *handler;
	void *context;
	enum exchange_state state;
	struct server *server;
	unsigned long long tried; /* servers, as bits */
	unsigned long long full; /* those whose backlog was full since the last pause */
	struct exchange *wait_next, **wait_at; /* at is NULL when it waits for no look-up */
	unsigned passed_over; /* addresses of the server that did not take a connection */
	struct timer *wake; /* made when there is something to wait for */
	unsigned retries;
	int64_t connect_until_us;
	struct stream *stream; /* the answer comes from it, and the request goes to it */
	struct cgi_process *process; /* NULL; or the request goes to its standard input */
	struct buf early; /* the request as long as there is no connection to write it to, or as
			     it may be wanted on another one */
	bool is_unheard; /* counted in server->unheard */
	bool may_ask_again; /* on a kept connection; `early` has all that was sent */
	uint64_t taken_before; /* by the kernel, of other requests */
	bool body_given; /* the request's, to its end */
	uint64_t untaken; /* of the request, by the application, when last looked at */
	bool is_reusable; /* its connection, now that the exchange ends */
	bool held;
	bool is_whole; /* nothing is missing of the answer */
	bool body_ended; /* the answer's: only the end of the request is waited for */
	bool ends_with_head; /* the answer: it has no body, whatever comes */
	bool ends_by_client; /* that is so because of HEAD */
	bool is_worked_on; /* a program is silent, and its end is waited for */
	bool has_surplus; /* more body came than its Content-Length said */
	int64_t dropped_us; /* when something came last behind the answer's end; 0: never */
	bool is_endless; /* the application still sent when it was waited for no more */
	bool starved; /* `early` could not take all */
	bool starting; /* exchange_start has not returned: what ends it goes into `failure` */
	enum exchange_result failure;
	struct err failure_why;

	union framing_state framed;
	struct arena arena;
	struct cgi_head_reader head_reader;
	int64_t content_length; /* -1: unknown */
	uint64_t content_seen;
};

enum {
	EARLY_MAX = 4 * 1024 * 1024,
	AGAIN_MAX = 128 * 1024 /* of a request that is kept for another connection */
};

_Static_assert(CONFIG_SERVERS_MAX <= 64, "a server is a bit of exchange.tried");

/* ---- pool.c ---- */

/* The least busy of the servers not tried yet, by turns, those set aside last. NULL: all were
 * tried.
 */
struct server *pool_choose(struct backend_pool *pool, unsigned long long tried);
unsigned pool_index(const struct backend_pool *pool, const struct server *server);
void pool_leave(struct backend_pool *pool);

/* One more program, or one less, is left behind. The pool is there as long as any. */
void pool_count_left(struct backend_pool *pool);
void pool_forget_left(struct backend_pool *pool);

/* ---- params.c ---- */

/* Appends of each name the last pair, in the order in which they came; `params` are sound. The time
 * that it takes does not depend on what the names are. -1: no memory, or the buffer is full. */
int params_put_last(struct buf *out, struct slice params) WEIR_MUST_CHECK;

/* ---- keep.c ---- */

/* The exchange has ended: its connection may serve another one, or is closed. */
void keep_put(struct server *server, struct stream *stream);

/* One on which nothing has come since, for a new owner. NULL: there is none. */
struct stream *keep_take(struct server *server) WEIR_MUST_CHECK;

/* Closes them all; from now on none is kept. */
void keep_none(struct backend_pool *pool);

/* The exchange waits for its server on a new connection, until it hears from it. */
void keep_expect(struct exchange *exchange);
void keep_heard(struct exchange *exchange);

/* ---- connect.c ---- */

/* Tries servers until one is being connected to, or none is left: then the exchange has ended. */
void exchange_connect(struct exchange *exchange);
void exchange_connect_stop(struct exchange *exchange);

/* The server has taken the connection: says so if it was said that it does not. */
void exchange_tell_connected(struct exchange *exchange);

/* A connect that was in progress failed: the next server, or the end with this result. */
void
exchange_connect_failed(struct exchange *exchange, enum exchange_result result, const char *reason);

/* ---- exchange.c ---- */

extern const struct stream_handler exchange_stream_handler;

/* To the server, or to what is kept until there is a connection to it. */
void exchange_send(struct exchange *exchange, struct slice head, struct slice body);

/* Tells the handler and frees. */
void exchange_finish(struct exchange *exchange, enum exchange_result result, uint32_t app_status,
	const char *format, ...) WEIR_PRINTF(4, 5);

/* A stream is there: what was put together before goes out. */
void exchange_connected(struct exchange *exchange);

/* The same with a stream that was kept. */
void exchange_use_kept(struct exchange *exchange, struct stream *stream);

/* ---- again.c ---- */

/* The application may have begun with the request: it is not made on another connection. */
void exchange_is_seen(struct exchange *exchange);

/* A kept connection is over, and it is certain that it has not. */
bool exchange_is_unseen(const struct exchange *exchange);

/* The whole request anew, on a new connection. It may end in this. */
void exchange_ask_again(struct exchange *exchange);

/* ---- answer.c ---- */

/* A piece of the response, head or body. False: the exchange is gone. */
bool answer_take(struct exchange *exchange, struct slice content);

/* The response's body has ended, but not the request: that is waited for only for a while. */
void answer_body_ended(struct exchange *exchange);

/* It was waited for long enough: the answer is complete without. The exchange is gone. */
void answer_waited_enough(struct exchange *exchange);

/* The request is over: complete, or broken off. The exchange is gone. */
void answer_finish(struct exchange *exchange, uint32_t app_status);
void answer_broke_off(struct exchange *exchange, enum exchange_result before_head, const char *why);

/* The output of a program is over, and the program itself, by this signal or 0, unless it runs on:
 * who was killed has not said all. The exchange is gone. */
void answer_program_ended(struct exchange *exchange, int signo);

/* The connection is over, for this reason; whether the answer is complete follows from what came.
 * The exchange is gone. */
void answer_connection_ended(struct exchange *exchange, const char *why);

#endif
