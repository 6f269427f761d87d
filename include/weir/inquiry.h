/*
 * A server asked about itself, once: whether it may be used for limits as it is meant to, by the
 * commands that limits need. For `weir check --connect`; `serve` never asks all this.
 *
 * All is asked over one connection, one question after the other, and in all that takes
 * INQUIRY_DEADLINES deadlines of a decision at the most, 2 s at the least: whoever asks is a person
 * who would rather wait than be told that it is slow. What is written is one key of its own, which
 * is removed, and expires if it cannot be.
 */
#ifndef WEIR_INQUIRY_H
#define WEIR_INQUIRY_H

#include "weir/redis.h"

enum {
	INQUIRY_DEADLINES = 20,
	INQUIRY_WORD_SIZE = 32,
	INQUIRY_TEXT_SIZE = 256,
	INQUIRY_MASTERS_MAX = 64,
};

/* What the server is to be. */
enum inquiry_kind {
	INQUIRY_ALONE, /* `server` of [redis] */
	INQUIRY_MASTER_OF_SENTINELS, /* what sentinels name */
	INQUIRY_NODE, /* of a cluster */
	INQUIRY_SENTINEL,
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

	/* The one that a sentinel names, or those of a cluster. */
	struct address masters[INQUIRY_MASTERS_MAX];
	unsigned master_count;
};

struct inquiry;
typedef void inquiry_fn(void *context, const struct inquiry_report *report);

/*
 * `settings` as of the store, with `server` the one to be asked, and must last. The call comes from
 * the loop, never from within; the inquiry is freed behind it. NULL: no memory.
 */
struct inquiry *
inquiry_start(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	enum inquiry_kind kind, inquiry_fn *done, void *context) WEIR_MUST_CHECK;
void inquiry_free(struct inquiry *inquiry);

/* What may cure it, for the server's own words or a reason; NULL: waiting, perhaps. */
const char *redis_remedy(const char *why);

#endif
