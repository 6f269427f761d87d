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
	FRONT_GONE_BODY_TIMEOUT, /* the body stopped coming; a 408 has been answered if nothing was
				    sent before */
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
	uint64_t max_in_flight; /* told to FCGI_GET_VALUES only */
	uint64_t max_head; /* bytes of parameters; beyond: 431 */
	uint64_t max_params; /* beyond: 431 */
	int64_t head_timeout_us;
	int64_t body_timeout_us;
	bool is_spawned; /* the web server started this process and gave it its socket */
};

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

/* Accepts no more, closes what is idle, lets requests end. `empty` is called, once, when no
 * connection is left. */
void front_stop(struct front *front, deferred_fn *empty, void *context);

/* Ends every request (`gone`) and closes every connection. Returns how many requests were cut. */
unsigned front_cut_all(struct front *front);

/* ---- a request ---- */

enum front_role front_role_of(const struct front_request *request);

/* The name-value pairs as they came, for passing on. */
struct slice front_params(const struct front_request *request);

/* What libfcgi made of them: "NAME=value", NULL behind the last. In the request's arena. */
char *const *front_env(const struct front_request *request);

/* Freed when the request ends. */
struct arena *front_arena(struct front_request *request);

void front_set_owner(struct front_request *request, void *owner);
void *front_owner(const struct front_request *request);

/* Pieces of the body may come from now on; front_hold_body stops them until the next
 * front_want_body. The end of a body that is there already is told from within: by body_end, or by
 * `gone` if the body is shorter than CONTENT_LENGTH says. */
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

/* The answer cannot be completed: the web server is made to see that it is cut short. */
void front_cut(struct front_request *request);

/* A whole answer of ours: head (with Status first, ends with the blank line) and body, then
 * front_end. */
void front_answer(struct front_request *request, struct slice head, struct slice body);

#endif
