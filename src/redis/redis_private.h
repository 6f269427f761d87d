/*
 * The store's parts. Private to the room.
 *
 *     DOWN --> ASKING --> RESOLVING --> SHAKING (connect, TLS, AUTH, SELECT, ROLE, probe) --> READY
 *      ^         |            |            |                                                 |
 *      '---------'------------'------------'-------------------------------------------------'
 *                                                                          connection_lose
 *
 * ASKING, and ROLE, are only with sentinels; CLUSTER SLOTS, before the probe, is only in a cluster.
 *
 * A check is live from redis_decide until it has been answered, here or by its deadline. Its call
 * lives longer: until Redis has replied to it, or the connection is closed, since replies come in
 * the order of the commands.
 */
#ifndef WEIR_REDIS_PRIVATE_H
#define WEIR_REDIS_PRIVATE_H

#include "weir/log.h"
#include "weir/redis.h"
#include "weir/stream.h"

#include <hiredis/hiredis.h>

enum {
	CHECKS_MAX = 4096,
	QUEUED_MAX = 1024 * 1024,
	KEPT_MAX = 16384,
	KEPT_BYTES_MAX = 8 * 1024 * 1024,
	REPLY_MAX = 65536, /* bytes */
	/* of all servers of a cluster together: a few of them that hang leave room for the others
	 */
	CLUSTER_CALLS_MAX = 4 * CHECKS_MAX,
	CLUSTER_BYTES_MAX = 16 * QUEUED_MAX,
	CLUSTER_REPLIES_MAX = 16 * 1024 * 1024, /* bytes */
	ELEMENTS_MAX = 3 + 3 * CHECK_POLICIES_MAX,
};

enum call_kind {
	CALL_AUTH,
	CALL_SELECT,
	CALL_ROLE,
	CALL_HELLO, /* of one that was named as a server: whether it is a replica */
	CALL_SLOTS, /* of a cluster: which server has which keys */
	CALL_PROBE,
	CALL_ASKING, /* in front of what another server of the cluster has sent here */
	CALL_CHECK,
	CALL_RELEASE, /* of a lease */
	CALL_RENEWAL,
	CALL_GIVE_BACK, /* what a check has spent that another server has rejected */
};

/* lua/decide.lua for token buckets alone, which is the faster; lua/engine.lua for all else that is
 * decided; lua/give_back.lua only in clusters. */
enum script { SCRIPT_DECIDE, SCRIPT_ENGINE, SCRIPT_GIVE_BACK, SCRIPTS };

/* What the servers of a cluster take together. */
struct load {
	unsigned calls;
	size_t bytes; /* of commands that are not answered */
	unsigned kept; /* of the calls: those that are kept.c's */
	size_t kept_bytes;
	size_t reply_bytes; /* of replies that are not whole */
};

struct call {
	struct redis *redis; /* that it is put to. First, see struct trip */
	struct call *next; /* in `waiting` or `sent` */
	struct call *live_next, **live_at;
	enum call_kind kind;
	enum script script;
	struct check *check; /* NULL: nobody waits for it */
	char *arguments; /* of leases and of CALL_GIVE_BACK, ready to be sent: whoever asked is gone
			    by then */
	size_t arguments_len;
	size_t bytes; /* of the command, as it was sent */
	unsigned argument_count;
	int64_t sent_us;
	bool is_whole; /* sent with EVAL, after NOSCRIPT */
	bool is_repeated; /* sent again, after "late" */
	bool brings_clock; /* its reply says nothing of Redis's */
	bool is_asking; /* sent to a server that is about to have the key, behind ASKING */
	bool is_bare; /* a probe that touches no key */
	unsigned hops; /* how often another server of the cluster was named instead */
	int64_t ends_us; /* of CALL_RELEASE: when the lease is over in any case */
	unsigned slot; /* of CALL_RELEASE in a cluster */
	bool was_kept; /* and counts among those of kept.under_way */
	/* Of CALL_RELEASE: the lease stands under one of two keys, and each has a call. */
	struct call *twin; /* NULL: there is no other call, or none any more */
	bool is_moot; /* the other one has given it back */
	bool is_last; /* the other one could not be sent */
};

struct call_list {
	struct call *first, **end;
	unsigned count;
};

/* See kept.c. */
struct kept {
	struct call_list calls; /* of CALL_RELEASE */
	size_t bytes; /* that they take */
	unsigned under_way; /* how many that were kept are sent and not answered */
	int64_t not_before_us;
	struct timer *timer; /* set while there are any */
};

enum redis_state { REDIS_DOWN, REDIS_ASKING, REDIS_RESOLVING, REDIS_SHAKING, REDIS_READY };

/* See reader.c. */
struct reader_bound {
	redisReplyObjectFunctions functions; /* hiredis's, but for arrays */
#if HIREDIS_MAJOR >= 1
	void *(*make_any_array)(const redisReadTask *task, size_t count);
#else
	void *(*make_any_array)(const redisReadTask *task, int count);
#endif
	size_t elements_max;
	size_t sum, sum_max; /* of all arrays since sum was set to 0; sum_max 0: any */
};

struct sentinel;
struct node;

/* The addresses of a server's name, which are tried one after the other; all 0: none. */
struct way {
	struct resolved addresses[LOOKUP_ADDRESSES_MAX];
	unsigned count;
	unsigned first; /* where a connection begins: behind one that led nowhere */
	unsigned tried; /* for this connection */
};

struct redis {
	struct store store;
	struct loop *loop;
	struct resolver *resolver;
	struct redis_settings settings;
	struct sentinel *sentinel; /* NULL: there are none */
	struct node *node; /* as a server of a cluster; NULL: it stands alone */
	struct load *load; /* the cluster's; NULL likewise */
	struct address server; /* where it is, as far as is known */
	struct address named; /* by sentinels, while it is looked up whether that is elsewhere */
	char name[ADDRESS_TEXT_SIZE]; /* the server's, for the log */
	struct breaker *breaker;

	enum redis_state state;
	struct lookup *lookup;
	struct way way;
	char tried[160]; /* why an address led nowhere, if it did more than refuse; else "" */
	struct timer *shake_timer; /* the deadline of look-up and handshake; of READY, master.c's */
	struct stream *stream;
	redisReader *reader;
	struct reader_bound reader_bound;
	size_t reply_bytes; /* read since the last whole reply */
	unsigned scripts_sent[SCRIPTS]; /* with calls that have no reply yet */
	int64_t ready_since_us;

	struct call_list waiting; /* not sent: there is no connection yet */
	struct call_list sent; /* in the order of their replies */
	struct call *live, **live_end;
	struct timer *deadline_timer; /* of the first live check */
	struct timer *probe_timer; /* while the breaker is open */
	bool is_probe; /* the connection that is being made: the breaker stays open if it fails */
	bool has_heard; /* something has come over this connection */
	bool was_asked_hello; /* and has not answered: some proxies end the connection then */
	bool has_told_replica;
	struct kept kept;

	bool has_offset;
	int64_t offset_us; /* Redis's clock minus our monotonic one; never too large, so an expiry
			      is never late */

	struct period_ends {
		int64_t at[3];
	} period_ends[CALENDAR_MONTH + 1]; /* as last reckoned, see calendar_ends() */

	struct log_throttle refusal_log;
};

static inline struct redis *
redis_of(struct store *store)
{
	return (struct redis *)((uintptr_t)store - offsetof(struct redis, store));
}

/* ---- calls.c ---- */

void call_list_init(struct call_list *list);
void call_push(struct call_list *list, struct call *call);
struct call *call_pop(struct call_list *list);

/* NULL: no memory. */
struct call *call_new(struct redis *redis, enum call_kind kind) WEIR_MUST_CHECK;
void call_free(struct call *call);

/* So many bytes were sent for it. */
void call_weigh(struct call *call, size_t bytes);

/* Two calls of one lease. */
void call_pair(struct call *one, struct call *other);

/* What a CALL_RELEASE has come to: the server held the lease, or not; or it is given up, so the
 * place stays taken if it is there (COUNT_LEASES_LEFT). */
void call_given_back(struct call *call, bool was_held);
void call_left(struct call *call);

/* Somebody waits for the call's check from now on, until its deadline; or no longer. */
void call_await(struct redis *redis, struct call *call);
void call_forget(struct redis *redis, struct call *call);

/* Answers the check of a live call and makes the call one that nobody waits for. */
void call_answer(struct redis *redis, struct call *call, const struct decision *decision);
void call_unavailable(struct redis *redis, struct call *call, enum unavailable why);

/* The call was not sent, or its answer was lost, or the server refuses everything for the moment:
 * what gives a place back is kept, and all else is unavailable. Takes the call. */
void call_lost(struct redis *redis, struct call *call, enum unavailable why);

/* ---- store.c ---- */

/* As redis_new; of a server of a cluster, if `node` is not NULL. */
struct redis *
store_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	struct breaker *breaker, struct node *node, struct err *err) WEIR_MUST_CHECK;

/* Asks, if the breaker lets; the answer may come from within. */
void store_ask(struct redis *redis, struct check *check);

/* Takes a call that was put to another server: a check that somebody waits for, or of a lease. */
void store_take_over(struct redis *redis, struct call *call);

/* Nothing waits for it. */
bool store_is_idle(const struct redis *redis);

/* Whether the breaker lets ask; if it is open, the next probe is seen to. */
bool store_may_ask(struct redis *redis);

/* Sends the call, as soon as there is a connection. */
void store_put(struct redis *redis, struct call *call);

/* The connection is ready: what waited is sent. */
void store_send_waiting(struct redis *redis);

/* A refusal of one check: in the log, now and then. */
void store_log_refusal(struct redis *redis, const char *error);

/* The breaker has just been opened by us (`why` for the log), or was found open. Ends what is under
 * way and waits for the probe. */
void store_breaker_opened(struct redis *redis, const char *why);
void store_await_probe(struct redis *redis);

/* ---- load.c ---- */

/* Whether one more call may wait. */
bool store_has_room(const struct redis *redis);

/* Of the reply that is being read, so much has come. */
void store_count_reply(struct redis *redis, size_t bytes);

/* Which is more than `max`, or more than all of a cluster may send together. */
bool store_hears_too_much(const struct redis *redis, size_t max);

/* ---- outage.c ---- */

#define NOT_REDIS "what it sends is not Redis's protocol"
#define NO_SENTINEL "no sentinel answers"
/* What a port does that is of the other kind than its address says. */
#define NO_WORD                                                                                    \
	"it ended the connection without a word, as a tls-port does; if it is one, write tls: in " \
	"place of tcp:"
#define NO_HANDSHAKE                                                                               \
	"no TLS handshake comes about; if it is a port without TLS, write tcp: in place of tls:"

/* Opens the breaker, for this process alone if the reason is ours. True if this call opened it. */
bool outage_open(struct redis *redis, const char *why);

/* We have come while it is open: says so in the log. */
void outage_found(struct redis *redis);

/* The breaker is open, for this reason: says so in the log if it is time to. */
void outage_tell(struct redis *redis, const char *why);

/* ---- leases.c ---- */

void leases_release(struct store *store, const struct check_item *item, uint64_t lease);
bool leases_renew(struct store *store, const struct check_item *item, uint64_t lease);
unsigned leases_kept(const struct store *store);

/* As leases_release, of one that stands under the one key or under the other; each has its server.
 */
void leases_release_either(struct redis *redis, const struct check_item *item,
	struct redis *other_redis, const struct check_item *other, uint64_t lease);

/* Takes a CALL_RELEASE or CALL_RENEWAL: sends it now, or keeps the one and drops the other. */
void leases_put(struct redis *redis, struct call *call);

/* Sends what takes back what a check has spent on an item. `spent` are the outcomes of the item's
 * policies, as they were at `taken_us` by the server's clock. Only over a ready connection. */
void leases_give_back(struct redis *redis, const struct check_item *item,
	const struct outcome *spent, int64_t taken_us, uint64_t cost);

/* ---- kept.c ---- */

int kept_init(struct redis *redis) WEIR_MUST_CHECK;
void kept_release(struct redis *redis);

/* The store is about to go: what is kept is dropped, counted and told in the log. */
void kept_leave(struct redis *redis);

/* Takes a CALL_RELEASE that cannot be sent now. At most KEPT_MAX of KEPT_BYTES_MAX are kept, by all
 * servers of a cluster; beyond that the first one is dropped and counted (COUNT_LEASES_LEFT). */
void kept_put(struct redis *redis, struct call *call);

/* Sends some, if there are any and the connection is ready; and goes on with each that is answered.
 */
void kept_send(struct redis *redis);
void kept_answered(struct redis *redis, struct call *call);

/* The connection is about to be closed: nothing is sent before the checks that are under way are
 * decided or late. */
void kept_wait_for_checks(struct redis *redis);

/* They are the caller's then. */
void kept_take_all(struct redis *redis, struct call_list *calls);

/* ---- connection.c ---- */

/* From DOWN. */
void connection_start(struct redis *redis);

/* Sends a call over the ready connection, or as part of the handshake. The call is the connection's
 * from then on. */
void connection_send(struct redis *redis, struct call *call);

/* Makes and sends a call of the handshake. */
void connection_step(struct redis *redis, enum call_kind kind, bool whole);

/* The handshake is over. To READY. */
void connection_ready(struct redis *redis);

/* Closes, as below, and begins another at once. */
void connection_renew(struct redis *redis);

/* Closes; what was under way is UNAVAILABLE_CONNECTION. To DOWN. */
void connection_close(struct redis *redis);

/* The same for a connection that broke, and decides whether to try again at once or to open the
 * breaker. */
void connection_lose(struct redis *redis, const char *why);

/* What happens to the stream. The context is the store. */
extern const struct stream_handler connection_handler;

/* ---- handshake.c ---- */

/* From DOWN, with a reader and a deadline. */
void handshake_start(struct redis *redis);

/* That is where the server is. From ASKING. */
void handshake_go_to(struct redis *redis, const struct address *server);

/* The connection has failed, or was closed, while it was SHAKING: the next address is tried, if
 * there is one. */
void handshake_failed(struct redis *redis, int error);
void handshake_ended(struct redis *redis, const char *why);

/* ---- dial.c ---- */

/* As stream_connect, to the first of the addresses not tried yet that is no failure at once; with
 * TLS if the server's is tls:. NULL with the last one's errno, 0 if all were tried. */
struct stream *redis_dial(struct loop *loop, const struct redis_settings *settings,
	const struct address *server, struct way *way, const struct stream_handler *handler,
	void *context, int *error) WEIR_MUST_CHECK;

/* A new connection to the server, whose address needs no look-up; or -1: way_set is to tell. */
int way_begin(struct way *way, const struct address *server) WEIR_MUST_CHECK;
void way_set(struct way *way, const struct resolved *addresses, unsigned count);

bool way_has_more(const struct way *way);

/* The one that was tried last; there was one. */
const struct resolved *way_current(const struct way *way);

/* It led nowhere, perhaps without a word: the next connection begins with the one behind it. */
void way_turn(struct way *way);

/* ---- reader.c ---- */

/* A reader that takes no array of more elements; NULL: no memory. `bound` must last as long. */
redisReader *reader_new(struct reader_bound *bound, size_t elements_max) WEIR_MUST_CHECK;

/* ---- sentinel.c ---- */

struct sentinel_handler {
	/* The answer to sentinel_ask; perhaps from within. */
	void (*found)(void *context, const struct address *master);
	void (*failed)(void *context, const char *why);
	/* While it is watched: the master is another one now. */
	void (*moved)(void *context, const struct address *master);
};

/* `settings` must last. NULL: no memory. */
struct sentinel *
sentinel_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	const struct sentinel_handler *handler, void *context) WEIR_MUST_CHECK;
void sentinel_free(struct sentinel *sentinel);

/* Whatever was asked before is forgotten. */
void sentinel_ask(struct sentinel *sentinel);

/* No answer comes any more, and the master is not watched. */
void sentinel_stop(struct sentinel *sentinel);

/* What was found is in use. */
void sentinel_watch(struct sentinel *sentinel);

/* There was no master where it was said to be: another sentinel is asked first the next time. */
void sentinel_doubt(struct sentinel *sentinel);

/* ---- master.c ---- */

/* What the sentinels say. The context is the store. */
extern const struct sentinel_handler master_handler;

/* Where the master is that they name was not found out in time: it is another one. */
void master_is_not_found(struct redis *redis);

/* ---- input.c ---- */

/* Takes what has come. False if the connection has ended by it. */
bool input_take(struct redis *redis, struct slice data);

/* ---- command.c ---- */

/* Appends the command for a call to the stream. -1: no memory. */
int command_send(struct redis *redis, struct call *call) WEIR_MUST_CHECK;

/* Makes the arguments of a call of a lease, so that it can be sent at any time. -1: no memory. */
int command_keep_lease(struct redis *redis, struct call *call, const struct check_item *item,
	uint64_t lease, bool renew) WEIR_MUST_CHECK;

/* The same of a CALL_GIVE_BACK. */
int command_keep_give_back(struct redis *redis, struct call *call, const struct check_item *item,
	const struct outcome *spent, int64_t taken_us, uint64_t cost) WEIR_MUST_CHECK;

/* ---- arguments.c ---- */

enum {
	/* command, script and number of keys; the script's own; of each limit, of each policy */
	ARGS_MAX = 3 + 2 * CHECK_LIMITS_MAX + 3 + 3 * CHECK_LIMITS_MAX + 6 * CHECK_POLICIES_MAX,
	ARG_NUMBER_SIZE = 24,
};

/* Arguments and the room that numbers and keys are written into. */
struct args {
	int count;
	unsigned keys;
	const char *at[ARGS_MAX];
	size_t len[ARGS_MAX];
	char numbers[ARGS_MAX][ARG_NUMBER_SIZE];
	char key_room[2 * CHECK_LIMITS_MAX][REDIS_KEY_MAX];
};

void args_add(struct args *args, const char *text, size_t len);
void args_add_text(struct args *args, const char *text);
void args_add_number(struct args *args, int64_t n);

/* EVALSHA, or the whole script with EVAL. */
void args_add_script(struct args *args, enum script script, bool whole);

/* The script's arguments, from the number of keys on. */
void args_add_probe(struct args *args, const struct redis *redis);
void args_add_bare_probe(struct args *args);
void args_add_check(struct args *args, struct redis *redis, const struct check *check);
void args_add_lease(struct args *args, struct redis *redis, const struct check_item *item,
	uint64_t lease, bool renew);

void args_add_give_back(struct args *args, const struct redis *redis, const struct check_item *item,
	const struct outcome *spent, int64_t taken_us, uint64_t cost);

/* What the parts of a check in a cluster have as their lease when they are no decisions: what would
 * be decided; and whether the bucket is there (ADMITTED: it is; without outcomes). */
#define LEASE_LOOK UINT64_MAX
#define LEASE_PEEK (UINT64_MAX - 1)

/* The script that decides the check. */
enum script script_of(const struct check *check);

/* ---- reply.c ---- */

enum reply_kind {
	REPLY_DECISION, /* *decision is filled */
	REPLY_LATE, /* it had expired when it came */
	REPLY_NOSCRIPT, /* the script is not there (any more) */
	REPLY_ERROR, /* this command failed; err has the server's words */
	REPLY_UNUSABLE, /* the server cannot serve now (READONLY, LOADING, OOM, NOAUTH ...); err has
			   its words */
	REPLY_ABSURD, /* no answer to what was asked: the stream of replies cannot be trusted */
};

/* For the replies to the scripts; `check` is NULL if nobody waits for more than the clock. *now_us
 * gets Redis's with REPLY_DECISION and REPLY_LATE. */
enum reply_kind reply_read(const redisReply *reply, const struct check *check,
	struct decision *decision, int64_t *now_us, struct err *err);

/* For replies to the other commands: REPLY_DECISION stands for +OK, and for the role of a master.
 */
enum reply_kind reply_status(const redisReply *reply, struct err *err);
enum reply_kind reply_role(const redisReply *reply, struct err *err);

/* To HELLO: it says that the server is a replica. */
bool reply_tells_replica(const redisReply *reply);

/* It is of a server that has only a part of the keys (MOVED). */
bool reply_is_of_cluster(const redisReply *reply);

#endif
