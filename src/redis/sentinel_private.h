/* Sentinels: who is asked and when (sentinel.c), and one of them (sentinel_link.c). */
#ifndef WEIR_SENTINEL_PRIVATE_H
#define WEIR_SENTINEL_PRIVATE_H

#include "redis_private.h"

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

struct sentinel {
	struct loop *loop;
	struct resolver *resolver;
	const struct redis_settings *settings;
	const struct sentinel_handler *handler;
	void *context;
	struct sentinel_link *links; /* as settings->sentinels */
	unsigned first; /* who is asked first */
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

#endif
