/* Sentinels: who is asked and when (sentinel.c), one of them (sentinel_link.c), and whom most of
 * them name (majority.c). */
#ifndef WEIR_SENTINEL_PRIVATE_H
#define WEIR_SENTINEL_PRIVATE_H

#include "redis_private.h"

#include "weir/inquiry.h"

enum { SENTINEL_REPLY_MAX = 4096 };

/* A connection to one sentinel, which may be asked again. */
struct sentinel_link {
	struct sentinel *sentinel;
	const struct address *address;
	struct lookup *lookup;
	struct way way;
	struct stream *stream; /* NULL: closed, or its address is looked up */
	redisReader *reader;
	struct reader_bound bound;
	size_t reply_bytes; /* read since the last whole reply */
	bool is_asked, logs_in; /* replies that are waited for: the second before the first */
	bool has_answer;
	struct address answer; /* the last, over this connection */
};

/* See majority.c. */
struct majority {
	bool is_sought; /* the sentinel that named the master is gone */
	struct address other; /* that most name, and that is not in use */
	unsigned times; /* in a row */
	struct inquiry *inquiry; /* of the other's role; NULL: it was not asked */
	bool has_role, is_master; /* what came of it: the second if the first */
};

struct sentinel {
	struct loop *loop;
	struct resolver *resolver;
	const struct redis_settings *settings;
	const struct sentinel_handler *handler;
	void *context;
	struct sentinel_link *links; /* as settings->sentinels */
	unsigned first; /* who is asked first, and watched */
	struct address found; /* what was told last */
	struct majority majority;
	bool asks; /* a round is under way */
	unsigned asked, lost; /* in this round: how many were asked, and of those have failed */
	struct timer *next_timer; /* of a round: until the next one is asked as well */
	struct timer *watch_timer;
	char why[256]; /* the last failure */
};

/* ---- sentinel_link.c ---- */

/* Asks, after connecting if need be. What comes of it is told by one of those below; a failure
 * perhaps from within. */
void link_ask(struct sentinel_link *link);
void link_close(struct sentinel_link *link);

/* A sentinel's answer to the question where the master is. -1: it is none. */
int link_read_address(
	const redisReply *reply, enum address_kind kind, struct address *address) WEIR_MUST_CHECK;

/* One of the replicas in a master's answer to ROLE. */
int link_read_replica(
	const redisReply *reply, enum address_kind kind, struct address *address) WEIR_MUST_CHECK;

/* ---- sentinel.c ---- */

/* is_news: over this connection it has told of another master before. */
void sentinel_answered(struct sentinel_link *link, bool is_news);

/* The link is closed. */
void sentinel_failed(struct sentinel_link *link, const char *why);

/* What its last answer names is in use from now on, and it alone is watched. */
void sentinel_settle(struct sentinel_link *link);

/* The same, and the owner is told that the master has moved there: the watch may be over by then,
 * and another round under way. */
void sentinel_follow(struct sentinel_link *link);

/* ---- majority.c ---- */

/* From the next look on most of the sentinels are believed, until one of them is settled on. */
void majority_seek(struct sentinel *sentinel);
void majority_stop(struct sentinel *sentinel);

/* While it is sought, with each watch: takes what they have answered since the last one, and asks
 * all of them again. */
void majority_look(struct sentinel *sentinel);

#endif
