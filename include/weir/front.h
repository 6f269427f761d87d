/*
 * The web server's side: connections, requests and their answers. Knows FastCGI and nothing of
 * limits or backends. One front a thread; all of it belongs to that thread's loop.
 *
 * A request is handed over when its head is whole and sound, and is then the handler's until one of
 * these ends it: front_end, front_cut, or the handler's `gone`. After that it must not be touched.
 * Management records, heads that are not sound, pipelining, draining and lingering are dealt with
 * here and never seen by the handler.
 */
#ifndef WEIR_FRONT_H
#define WEIR_FRONT_H

#include "weir/arena.h"
#include "weir/err.h"
#include "weir/loop.h"
#include "weir/slice.h"

#include <stdint.h>

struct front;
struct front_request;

enum front_role { FRONT_RESPONDER, FRONT_AUTHORIZER };

enum front_gone {
	FRONT_GONE_PEER, /* the web server closed the connection or sent FCGI_ABORT_REQUEST */
	FRONT_GONE_BODY_TIMEOUT, /* the body stopped coming; a 408 is answered if nothing was sent
				    before */
	FRONT_GONE_CUT, /* front_cut_all */
};

struct front_handler {
	/* May answer at once. `context` is the front's, `listener` what front_listen was given. */
	void (*request)(void *context, struct front_request *request, void *listener);
	/* A piece of the body, at least one byte, while the body is wanted. Valid until the call
	 * returns. */
	void (*body)(struct front_request *request, struct slice data);
	/* The body is complete. Comes once, after front_want_body, also when there is no body at
	 * all. */
	void (*body_end)(struct front_request *request);
	/* What was sent has left, after front_is_full was true. */
	void (*drained)(struct front_request *request);
	/* Nobody waits for an answer any more. */
	void (*gone)(struct front_request *request, enum front_gone why);
};

struct front_settings {
	uint64_t max_connections; /* of this front */
	uint64_t told_connections, told_requests; /* of the process, for FCGI_GET_VALUES only */
	uint64_t max_head; /* bytes of parameters; beyond: 431 */
	uint64_t max_params; /* beyond: 431 */
	int64_t head_timeout_us;
	int64_t body_timeout_us;
	/* Usually 0: as FRONT_SEND_TIMEOUT_US and so on say. */
	int64_t send_timeout_us; /* nothing of an answer is taken for so long: the connection goes
				  */
	int64_t linger_timeout_us; /* silence behind an answer, when the body was not read to its
				      end or the connection is not kept */
	int64_t linger_total_us; /* the same, whatever comes */
	uint64_t linger_bytes; /* so much of a body is read that nobody wants */
	int64_t stop_grace_us; /* for a request that is on its way when the front is stopped */
	bool by_mod_fcgid; /* it started this process, and gave it its socket */
};

/*
 * A web server that reads no more has a client that reads no more, and ends it by itself (nginx
 * after 60 s, Debian's Apache after 300 s): the send timeout is for one that does not. A refused
 * upload is read for so long that the web server has read the answer: it may send all of it first.
 */
#define FRONT_SEND_TIMEOUT_US (300 * INT64_C(1000000))
#define FRONT_LINGER_TIMEOUT_US (5 * INT64_C(1000000))
#define FRONT_LINGER_TOTAL_US (60 * INT64_C(1000000))
#define FRONT_LINGER_BYTES (UINT64_C(4) << 30)
#define FRONT_STOP_GRACE_US INT64_C(250000)

/* Once in the process, before its own signal handlers are set: libfcgi installs some. */
int front_start(struct err *err) WEIR_MUST_CHECK;

struct front *front_new(struct loop *loop, const struct front_settings *settings,
	const struct front_handler *handler, void *context, struct err *err) WEIR_MUST_CHECK;

/* There must be no request left (front_cut_all). */
void front_free(struct front *front);

/* For what comes from now on. */
void front_configure(struct front *front, const struct front_settings *settings);

/* Accepts on a listening descriptor, which stays the caller's. */
int front_listen(struct front *front, int fd, void *listener, struct err *err) WEIR_MUST_CHECK;

/* Takes a connection that is there already, with what front_listen would give its requests. */
void front_take(struct front *front, int fd, void *listener);

/* What becomes of connections that wait to be accepted when the front is stopped. */
enum front_rest {
	FRONT_REST_LEFT, /* somebody else serves the sockets: they are his */
	FRONT_REST_TAKEN, /* accepted, as long as some wait */
	FRONT_REST_LAST, /* the same, and nobody comes behind us: the sockets are shut when none
			    waits, and what cannot be accepted is cut by front_cut_all */
};

/* Accepts no more beyond what waits, closes what is idle, lets requests end. `empty` is called,
 * once, when no connection is left. */
void front_stop(struct front *front, enum front_rest rest, deferred_fn *empty, void *context);

/* Ends every request (`gone`) and closes every connection. Returns how many requests were cut. */
unsigned front_cut_all(struct front *front);

/* ---- a request ---- */

enum front_role front_role_of(const struct front_request *request);

/* Whether it is HEAD, whose answer has no body (RFC 9110 section 9.3.2), as far as its parameters
 * can be read: HAProxy takes no answer to it that has one. */
bool front_is_head(const struct front_request *request);

/* The name-value pairs as they came, for passing on; but CONTENT_LENGTH is there once at the most.
 */
struct slice front_params(const struct front_request *request);

/* What libfcgi made of them: "NAME=value", NULL behind the last. In the request's arena. */
char *const *front_env(const struct front_request *request);

/* Freed when the request ends. */
struct arena *front_arena(struct front_request *request);

void front_set_owner(struct front_request *request, void *owner);
void *front_owner(const struct front_request *request);

/* Whether CONTENT_LENGTH says how long the body is. If not, there may be none: its end shows. */
bool front_knows_length(const struct front_request *request);

/* Pieces of the body may come from now on; front_hold_body stops them until the next
 * front_want_body. The end of a body that is there already is told from within: by body_end, or by
 * `gone` if the body is shorter than CONTENT_LENGTH says (the peer has gone in the middle of it).
 */
void front_want_body(struct front_request *request);
void front_hold_body(struct front_request *request);

/* Bytes of the response: a head that starts with "Status:", then the body. */
void front_send(struct front_request *request, struct slice bytes);

/* The application's FCGI_STDERR, for the web server's error log. At most 64 KiB a request are
 * passed on. */
void front_send_error_text(struct front_request *request, struct slice bytes);

/* Whether the producer should wait for `drained`. */
bool front_is_full(const struct front_request *request);

/* The answer is complete. The rest of the body, if any, is discarded. */
void front_end(struct front_request *request, uint32_t app_status);

/* The head that was sent tells a Content-Length, and so much is to follow. */
void front_promise_length(struct front_request *request);

/*
 * The answer cannot be completed: the web server is made to see that it is cut short, as it may
 * send the next response on the same connection of the client's, within what was promised of this
 * one (RFC 9112 section 6.3). mod_fcgid ends the process that does so, which costs a start; without
 * a promise nothing is mixed up, and it gets an end.
 */
void front_cut(struct front_request *request);

/* The application has ended its answer before the length that was promised: cut, but where the
 * web server makes a length of its own (mod_proxy_fcgi). */
void front_end_short(struct front_request *request, uint32_t app_status);

/* A whole answer of ours: head (with Status first, ends with the blank line) and body, then
 * front_end. */
void front_answer(struct front_request *request, struct slice head, struct slice body);

#endif
