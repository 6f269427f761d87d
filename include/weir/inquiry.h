/*
 * A server asked about itself, once: whether it may be used for limits as it is meant to, by the
 * commands that limits need. For `weir check --connect`; `serve` never asks all this, but may ask
 * a server for its role.
 *
 * All is asked over one connection, one question after the other. Several servers may be asked at
 * the same time. What is written is one key of its own, which is removed, and expires if it cannot
 * be.
 */
#ifndef WEIR_INQUIRY_H
#define WEIR_INQUIRY_H

#include "weir/redis.h"

enum {
	INQUIRY_DEADLINES = 20,
	INQUIRY_WORD_SIZE = 32,
	INQUIRY_TEXT_SIZE = 256,
	INQUIRY_SERVERS_MAX = 256,
	INQUIRY_ALL_SLOTS = 16384, /* of a cluster */
};

/* What the server is to be. */
enum inquiry_kind {
	INQUIRY_ALONE, /* `server` of [redis] */
	INQUIRY_MASTER_OF_SENTINELS, /* what sentinels name */
	INQUIRY_REPLICA, /* of such a master; it is to be as good as its master one day */
	INQUIRY_NODE, /* of a cluster, be it a master or a replica */
	INQUIRY_SENTINEL,
	INQUIRY_CANDIDATE, /* that may have become the master: asked for its role alone */
};

/* In the order in which they are asked. */
enum inquiry_question {
	INQUIRY_AUTH,
	INQUIRY_SELECT,
	INQUIRY_HELLO, /* name, version, mode and role; needs no right */
	INQUIRY_INFO_SERVER, /* the same of a server that does not know HELLO */
	INQUIRY_NAME_OF_MASTER, /* of a sentinel */
	INQUIRY_ROLE,
	INQUIRY_SLOTS,
	INQUIRY_ASKING,
	INQUIRY_TIME,
	INQUIRY_SET,
	INQUIRY_GET,
	INQUIRY_EVAL, /* lua/decide.lua */
	INQUIRY_EVALSHA,
	INQUIRY_ENGINE, /* lua/engine.lua */
	INQUIRY_DEL,
	INQUIRY_MEMORY,
	INQUIRY_QUESTIONS
};

/* The commands as people know them, and the rule of an ACL that allows it. NULL: none is needed. */
extern const struct inquiry_command {
	const char *name, *rule;
} inquiry_commands[INQUIRY_QUESTIONS];

enum inquiry_end {
	INQUIRY_ANSWERED, /* as far as it made sense to ask */
	INQUIRY_UNKNOWN, /* the name leads to no address */
	INQUIRY_UNREACHED, /* no connection, or no TLS */
	INQUIRY_LOST, /* connected, and then silent, gone, or no Redis */
};

enum inquiry_mode {
	INQUIRY_MODE_UNTOLD,
	INQUIRY_MODE_ALONE,
	INQUIRY_MODE_CLUSTER,
	INQUIRY_MODE_SENTINEL,
};

/* Whom a server knows. */
struct inquiry_server {
	struct address address;
	unsigned slots; /* of a cluster, that it has as their master; 0: none, or it is a replica */
};

struct inquiry_report {
	enum inquiry_end end;
	int error; /* the errno of INQUIRY_UNREACHED */
	char reason[INQUIRY_TEXT_SIZE]; /* of any end but INQUIRY_ANSWERED */

	bool was_asked[INQUIRY_QUESTIONS];
	/* The server's words where it did not do what it was asked; else "". */
	char refusals[INQUIRY_QUESTIONS][INQUIRY_TEXT_SIZE];

	char name[INQUIRY_WORD_SIZE], version[INQUIRY_WORD_SIZE]; /* "" if it is not known */
	unsigned major; /* of the version */
	enum inquiry_mode mode;
	char role[INQUIRY_WORD_SIZE]; /* "master", "slave", "replica"; "" if it is not known */

	bool has_clock;
	int64_t ahead_us; /* the server's clock, of ours, about */
	int64_t round_trip_us; /* of a decision, the median of some; 0: none was made */

	bool has_memory;
	uint64_t maxmemory, used_memory; /* bytes; maxmemory 0: as much as there is */
	char policy[INQUIRY_WORD_SIZE];

	/* The master that a sentinel names; the replicas that a master names; all servers of a
	 * cluster. */
	struct inquiry_server servers[INQUIRY_SERVERS_MAX];
	unsigned server_count;
	bool names_more; /* than there is room for */
	bool is_served[INQUIRY_ALL_SLOTS]; /* of a cluster: somebody is named who has the slot */
};

struct inquiry;
typedef void inquiry_fn(void *context, const struct inquiry_report *report);

/* When an inquiry that begins now should be over: in INQUIRY_DEADLINES deadlines of a decision, in
 * 2 s at the least, since whoever asks is a person who would rather wait than be told that it is
 * slow. */
int64_t inquiry_end_us(struct loop *loop, int64_t deadline_us);

/*
 * `settings` as of the store, with `server` the one to be asked; what is pointed to must last. The
 * call comes from the loop, by `end_us` at the latest, never from within. The report lasts until
 * the inquiry is freed, which is not done in the call. NULL: no memory.
 */
struct inquiry *
inquiry_start(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	enum inquiry_kind kind, int64_t end_us, inquiry_fn *done, void *context) WEIR_MUST_CHECK;
void inquiry_free(struct inquiry *inquiry);

/* What may cure it, for the server's own words or a reason; NULL: waiting, perhaps. */
const char *redis_remedy(const char *why);

#endif
