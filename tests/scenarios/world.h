/*
 * What scenarios are played in: a store, and what stands before it in the gate, with the clock as
 * an argument. Routes, identities, overrides and cost are found by the same code as in the gate.
 */
#ifndef WEIR_TESTS_SCENARIOS_WORLD_H
#define WEIR_TESTS_SCENARIOS_WORLD_H

#include "../redis/client.h"
#include "weir/memory.h"
#include "weir/snapshot.h"

#include <hiredis/hiredis.h>

struct redis_server;

enum { CONFIGURATIONS_MAX = 16 };

struct world {
	const char *directory; /* for configurations and the files that they name */
	struct arena arena; /* for all that lives as long as the world */
	struct snapshot *snapshots[CONFIGURATIONS_MAX]; /* the last one counts */
	unsigned snapshot_count;
	struct store *store;
	struct memory *memory; /* NULL: it is Redis */
	struct client client;
	redisContext *direct;
	unsigned turn; /* of shards */
	uint64_t leases;
};

/* server NULL: the memory store. The server is emptied. */
void world_open(struct world *world, const char *directory, const struct redis_server *server);
void world_close(struct world *world);

/* The configuration of a file, for all that is asked from now on. err says what is wrong with it.
 */
int world_use(struct world *world, const char *file, struct err *err) WEIR_MUST_CHECK;

enum { QUESTION_PARAMS_MAX = 64, SHARD_BY_TURNS = -1 };

struct question {
	char *env[QUESTION_PARAMS_MAX + 1]; /* "NAME=value", NULL behind the last */
	unsigned params;
	int shard;
	struct slice name; /* for its end; empty if it has none */
	int64_t now_us;
};

struct answer {
	unsigned status;
	bool would_reject; /* something that is only counted */
	bool enforced; /* [weir] enforce */
	bool has_decision;
	struct decision decision;
	int64_t retry_after_s; /* 0: none is said */
	struct slice fields; /* rate-limit lines */
	struct check check; /* its items are good as long as the world is */
};

/* -1: the question could not be asked; err says why. */
int world_ask(struct world *world, const struct question *question, struct answer *answer,
	struct err *err) WEIR_MUST_CHECK;

/* Gives the leases back that it holds. */
void world_end(struct world *world, const struct check *check);

#endif
