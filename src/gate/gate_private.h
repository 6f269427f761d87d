/*
 * A gate and its requests. Private to the room.
 *
 *     arrival --> asking the store --> asking memory (store_down = local) --> passing on --> gone
 *        |               |                        |                             |
 *        '---------------'------------------------'--- answered by us ----------'
 *
 * At most one of `asked` (a check is under way) and `exchange` (the application is working) is set.
 * A lease is held (`lease_store`) only while it is passed on.
 */
#ifndef WEIR_GATE_PRIVATE_H
#define WEIR_GATE_PRIVATE_H

#include "commons.h"
#include "rejections.h"
#include "weir/backend.h"
#include "weir/redis.h"
#include "weir/view.h"

/* A snapshot at work on this thread: what a reload replaces, and requests under way keep. */
struct plant {
	struct gate *gate;
	struct plant *next; /* in the gate's list */
	struct deferred end;
	struct snapshot *snapshot;
	unsigned users; /* requests, and one for the gate while it is the current one */
	struct timer *rest; /* while it has none and its store keeps leases, */
	int64_t rest_until_us; /* or at the latest; 0: it has users */
	struct breaker *breaker;
	struct redis *redis; /* NULL: without [redis], or it is a cluster */
	struct cluster *cluster; /* NULL: it is none */
	struct store *store; /* Redis, or else memory */
	struct store *caps; /* the buckets of local_cap; NULL: no limit has one */
	struct identities **identities; /* as config->limits; NULL without [redis] */
	uint64_t generation; /* no other plant of the gate has it */
	struct backend_pool **pools; /* as config->backends; NULL for type none */
	unsigned *uploads; /* likewise: how many bodies are stored for it */
};

struct gate {
	struct loop *loop;
	struct gate_shared shared;
	struct resolver *resolver;
	struct front *front;
	struct plant *plant; /* the current one */
	struct plant *plants; /* all that still have users */
	uint64_t generations;
	struct rejections *rejections; /* NULL until a plant has Redis */
	struct gate_request *leases; /* requests that hold one */
	struct gate_request *resumed; /* that have waited for another one's answer */
	struct deferred resume;
	struct gate_request *held; /* that are to ask when a refill has happened */
	struct timer *hold;
	int64_t hold_until_us; /* when the first of them is, or earlier */
	struct timer *renewal;
	int64_t renew_at_us; /* when the first lease has to be renewed, or earlier */
	deferred_fn *empty; /* see gate_stop */
	void *empty_context;
	struct timer *rest; /* no request is left, and stores keep leases */
	unsigned in_flight, max_in_flight;
	struct buf scratch; /* fields of ours */
	struct buf head; /* a response head on its way out */
	struct log_throttle address_log, claim_log, forwarded_log, overflow_log, memory_log,
		homeless_log, length_log, spool_log, password_log;
};

/* What the gate knows of an item of the check. */
struct gate_item {
	unsigned limit; /* index in config->limits */
	struct slice identity; /* the item's key without its shard */
	struct hash_wide bucket; /* of the item's key; only where Redis is asked */
	bool is_overflow; /* it was decided on the bucket that new identities share */
	const char *override; /* whose policies are in force; NULL: the limit's own are */
};

struct gate_request {
	struct gate *gate;
	struct plant *plant;
	struct front_request *front;
	const struct snapshot_route *route;
	unsigned backend; /* index in config->backends */
	struct view view;
	struct check check;
	struct gate_item items[CHECK_LIMITS_MAX]; /* as check.items */
	struct store *asked;
	int64_t sent_us; /* when it was, or earlier */
	struct gate_request *followers; /* who wait for this one's answer */
	struct gate_request *follow_next, **follow_at; /* at is NULL when it waits for nobody */
	bool asks_for_all; /* it may have followers */
	unsigned followed; /* how often it has waited for another one's answer */
	bool is_unanswered; /* it waited for one in vain: Redis did not decide */
	int64_t held_until_us; /* 0: it is not held before it asks */
	enum gate_outcome would; /* of the first thing that is only counted and would have kept it
				    from passing; OUTCOME_ADMITTED: there is none */
	struct store *lease_store; /* where check.lease is held; NULL: nowhere */
	struct gate_request *lease_next, **lease_at;
	int64_t renew_at_us;
	struct decision decision;
	bool has_decision;
	enum gate_outcome outcome;
	struct exchange *exchange;
	struct upload *upload; /* NULL: no body is stored */
	bool head_sent;
};

/* ---- plant.c ---- */

struct plant *
plant_new(struct gate *gate, struct snapshot *snapshot, struct err *err) WEIR_MUST_CHECK;

/* No request will begin with it any more: connections to backends are not kept for one. */
void plant_retire(struct plant *plant);
void plant_hold(struct plant *plant);

/* The last one ends it at the end of the turn, since the call may come from within its own store;
 * or later, when the leases that its store keeps are given back. */
void plant_release(struct plant *plant);

/* Whether it has users or not. */
void plant_free(struct plant *plant);

/* ---- request.c ---- */

void gate_on_request(void *context, struct front_request *front, void *listener);

/* On to the application. */
void request_pass(struct gate_request *request, enum gate_outcome outcome);

/* Something that is only counted would have kept it from passing. */
void request_would(struct gate_request *request, enum gate_outcome outcome);

/* Counts the outcome and lets go of everything but the front's request, which is about to end. */
void request_close(struct gate_request *request);

void gate_log_once_a_minute(struct gate *gate, struct log_throttle *throttle, const char *message);

enum { GATE_BUSY_RETRY_S = 1 };
#define GATE_BUSY_DETAIL "The service is busy. Try again shortly."

/* ---- identify.c ---- */

/* Fills the check with the limits that apply, and who is counted by each. False: the request is
 * settled. */
bool identify(struct gate_request *request) WEIR_MUST_CHECK;

/* ---- ask.c ---- */

/* Decides the request's check, now or later, and does what follows. */
void ask_start(struct gate_request *request);

/* The check is no longer waited for. */
void ask_cancel(struct gate_request *request);

/* ---- settle.c ---- */

/* Counts, logs and does what was decided: passes the request on or answers it. */
void settle(struct gate_request *request, const struct decision *decision);

/* Counts and logs the violated policies that are only counted. */
void settle_shadows(struct gate_request *request, const struct decision *decision);

/* Logs an override's block. */
void settle_block(
	struct gate_request *request, const struct config_override *override, bool is_enforced);

/* Logs that a request is refused with this status, or would be, for what no policy decided.
 * `reason` is as the configuration has it; limit NULL: of none. */
void settle_refused(struct gate_request *request, const char *reason, unsigned status,
	const struct limit *limit, bool is_enforced);

/* The store did not decide: what the route's store_down says. */
void ask_is_down(struct gate_request *request, const struct store *asked);

/* Asks the caps and the store, whatever others have asked. */
void ask_on(struct gate_request *request);

/* ---- follow.c ---- */

/* Whether another request is asking about an exhausted bucket of this one, or it would itself ask
 * too early: then it waits, and goes on later. */
bool follow(struct gate_request *request) WEIR_MUST_CHECK;

/* The request will be the next to ask Redis; others may wait for its answer. */
void follow_lead(struct gate_request *request);

/* It has its answer or has gone, or (is_answered false) Redis did not decide: those who wait go on
 * at the end of the turn. Nothing if it was to ask for nobody. */
void follow_end(struct gate_request *request, bool is_answered);

/* It waits no more. */
void follow_leave(struct gate_request *request);

/* Of the gate's deferred, and of its timer. */
void follow_on_resume(void *context);
void follow_on_hold(void *context);

/* ---- bounds.c ---- */

/* Of an item of the check, in what is known of rejections. */
struct rejection_key bounds_key(const struct gate_request *request, unsigned item);

/* Whether the cache knew that Redis would reject the request: it is settled then. */
bool bounds_reject(struct gate_request *request) WEIR_MUST_CHECK;

/* Remembers what Redis decided. */
void bounds_learn(struct gate_request *request, const struct decision *decision);

/* ---- bounds_caps.c ---- */

/* False: a local_cap rejected the request, and it is settled. Limits whose cap only counts and
 * would have rejected it are taken out of the check. */
bool bounds_cap(struct gate_request *request) WEIR_MUST_CHECK;

/* ---- bounds_identities.c ---- */

/* Identities beyond max_identities get the bucket that they share. */
void bounds_overflow(struct gate_request *request);

/* Counts the identity of an item by what Redis decided; `outcomes` are the item's. False: it was
 * decided on the bucket that is shared, and the check's item is that one from now on. */
bool bounds_count(struct gate_request *request, unsigned item, const struct decision *decision,
	const struct outcome *outcomes) WEIR_MUST_CHECK;

/* The bucket of an item is there until until_us, or perhaps gone. */
void bounds_keep(struct gate_request *request, unsigned item, int64_t until_us);
void bounds_forget(struct gate_request *request, unsigned item);

/* ---- lease.c ---- */

uint64_t lease_draw(void);

/* The store has admitted the request: its lease is renewed until lease_end. Nothing if it has none.
 */
void lease_hold(struct gate_request *request, struct store *store);
void lease_end(struct gate_request *request);

/* Of a check that was sent to this store and whose answer is not known. */
void lease_give_up(struct gate_request *request, struct store *store);

/* Of the gate's timer. */
void lease_on_renewal(void *context);

/* ---- relay.c ---- */

/* Passes an admitted request on, or answers it where there is nothing behind. */
void relay_start(struct gate_request *request);

void relay_on_body(struct front_request *front, struct slice data);
void relay_on_body_end(struct front_request *front);
void relay_on_drained(struct front_request *front);

/* False: it has failed, and the request has ended. */
bool relay_pass_on(struct gate_request *request, struct slice params) WEIR_MUST_CHECK;

/* The request has no exchange, and ends as one that fails so. */
void relay_fail(struct gate_request *request, enum exchange_result result, const char *why);

/* ---- upload.c ---- */

/* A piece of a body of unknown length, and its end. Each may end the request. */
void upload_take(struct gate_request *request, struct slice data);
void upload_end(struct gate_request *request);

/* The application takes more of it. */
void upload_go_on(struct gate_request *request);

void upload_release(struct gate_request *request);

/* ---- quirks.c ---- */

/* How a status of ours other than 200 is told to a web server. */
enum telling {
	TELL_STATUS, /* as what it is */
	TELL_VARIABLE, /* as 200 with Variable-WEIR_STATUS: a variable of the web server's */
	TELL_FORBIDDEN, /* as 403 with the field Weir-Status */
};

struct quirks {
	enum telling telling;
	size_t body_max; /* a longer one does not arrive; 0: none does */
	bool wants_one_record; /* for head and body */
};

const struct quirks *quirks_for(const struct gate_request *request);

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

/* The rate-limit fields for an admitted answer of this route; empty if it has none. Into
 * gate->scratch. */
struct slice answer_fields(struct gate_request *request);

/* ---- wait.c ---- */

enum { WAIT_TEXT_SIZE = 64 };

/* So many seconds, 1 at least, in words that say nothing shorter: "40 seconds", "12 hours and 57
 * minutes". Returns `out`. */
const char *wait_text(int64_t seconds, char out[WAIT_TEXT_SIZE]);

/* ---- accept.c ---- */

enum media { MEDIA_TEXT, MEDIA_HTML, MEDIA_PROBLEM };

/* The form that an Accept field (RFC 9110 section 12.5.1) likes best; text if it does not care. */
enum media accept_media(struct slice accept);

#endif
