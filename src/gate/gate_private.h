/*
 * A gate and its requests. Private to the room.
 *
 *     arrival --> asking the store --> asking memory (store_down = local) --> passing on --> gone
 *        |               |                        |                             |
 *        '---------------'------------------------'--- answered by us ----------'
 *
 * At most one of `asked` (a check is under way) and `exchange` (the application is working) is set.
 */
#ifndef WEIR_GATE_PRIVATE_H
#define WEIR_GATE_PRIVATE_H

#include "weir/backend.h"
#include "weir/gate.h"
#include "weir/redis.h"
#include "weir/view.h"

/* A snapshot at work on this thread: what a reload replaces, and requests under way keep. */
struct plant {
	struct gate *gate;
	struct plant *next; /* in the gate's list */
	struct deferred end;
	struct snapshot *snapshot;
	unsigned users; /* requests, and one for the gate while it is the current one */
	struct breaker *breaker;
	struct redis *redis; /* NULL: without [redis] */
	struct store *store; /* Redis, or else memory */
	struct backend_pool **pools; /* as config->backends; NULL for type none */
};

struct gate {
	struct loop *loop;
	struct gate_shared shared;
	struct resolver *resolver;
	struct front *front;
	struct plant *plant; /* the current one */
	struct plant *plants; /* all that still have users */
	unsigned in_flight, max_in_flight;
	struct buf scratch; /* fields of ours */
	struct buf head; /* a response head on its way out */
	struct log_throttle backend_log, address_log, claim_log;
	deferred_fn *empty;
	void *empty_context;
};

struct gate_request {
	struct gate *gate;
	struct plant *plant;
	struct front_request *front;
	const struct snapshot_route *route;
	struct view view;
	struct check check;
	struct store *asked;
	struct decision decision;
	bool has_decision;
	enum gate_outcome outcome;
	struct exchange *exchange;
	bool head_sent, without_body;
};

/* ---- plant.c ---- */

struct plant *
plant_new(struct gate *gate, struct snapshot *snapshot, struct err *err) WEIR_MUST_CHECK;
void plant_hold(struct plant *plant);

/* The last one ends it at the end of the turn: the call may come from within its own store. */
void plant_release(struct plant *plant);

/* Whether it has users or not. */
void plant_free(struct plant *plant);

/* ---- request.c ---- */

void gate_on_request(void *context, struct front_request *front, void *listener);

/* Counts the outcome and lets go of everything but the front's request, which is about to end. */
void request_close(struct gate_request *request);

/* ---- relay.c ---- */

/* Passes an admitted request on, or answers it where there is nothing behind. */
void relay_start(struct gate_request *request);

void relay_on_body(struct front_request *front, struct slice data);
void relay_on_body_end(struct front_request *front);
void relay_on_drained(struct front_request *front);

/* ---- answers.c ---- */

/* Each ends the request. */
void answer_admitted(struct gate_request *request);
void answer_rejected(struct gate_request *request);

/* `detail` is told to the client; retry_after_s 0: no Retry-After. */
void answer_error(
	struct gate_request *request, unsigned status, const char *detail, int64_t retry_after_s);

/* The same for a request of which nothing could be made. */
void answer_bare(
	struct front_request *front, unsigned status, const char *detail, int64_t retry_after_s);

/* The rate-limit fields for an admitted answer of this route; "" if it has none. Into
 * gate->scratch. */
struct slice answer_fields(struct gate_request *request);

/* ---- accept.c ---- */

enum media { MEDIA_TEXT, MEDIA_HTML, MEDIA_PROBLEM };

/* The form that an Accept field (RFC 9110 section 12.5.1) likes best; text if it does not care. */
enum media accept_media(struct slice accept);

#endif
