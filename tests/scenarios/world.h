/*
 * What scenarios are played in: the gate with its front, as a worker has it, on a store of its own;
 * the scenario is the web server before it. The clock is the scenario's (seam.h).
 */
#ifndef WEIR_TESTS_SCENARIOS_WORLD_H
#define WEIR_TESTS_SCENARIOS_WORLD_H

#include "../lib/fake_app.h"
#include "../lib/loop_thread.h"
#include "../lib/redis_server.h"
#include "../unit.h"
#include "seam.h"
#include "weir/arena.h"
#include "weir/gate.h"

#define REDIS_PREFIX "weir:"

enum {
	CONFIGURATIONS_MAX = 16,
	EXPIRIES_MAX = 1024,
	EXPIRY_KEY_MAX = SEEN_KEY_MAX + sizeof REDIS_PREFIX
};

/* When a key of Redis would expire, by the scenario's clock. */
struct expiry {
	char key[EXPIRY_KEY_MAX];
	int64_t at_us;
};

struct world {
	const char *directory; /* for configurations and the files that they name */
	struct arena arena; /* for all that lives as long as the world */
	struct snapshot *snapshots[CONFIGURATIONS_MAX]; /* the last one counts */
	unsigned snapshot_count;
	struct loop_thread thread;
	struct gate_shared shared;
	struct gate *gate; /* NULL before the first configuration */
	int listening, connection; /* -1: there is none */
	struct fake_app *app; /* NULL: there is none */
	const char *app_answer;
	struct redis_server *server; /* NULL: it is the memory store */
	redisContext *direct; /* NULL likewise, and while Redis is away */
	struct expiry expiries[EXPIRIES_MAX];
	unsigned expiry_count;
	unsigned turn; /* of shards */
};

/* server NULL: the memory store. The server is emptied. */
void world_open(struct world *world, const char *directory, struct redis_server *server);
void world_close(struct world *world);

/* What each configuration has besides what the scenario says: the backend that is nothing, [redis],
 * and the application. */
enum { SECTIONS_MAX = 800 };
const char *world_sections(const struct world *world, char out[SECTIONS_MAX]);

/* An application that answers each request with these fields. */
void world_start_app(struct world *world, struct slice fields);

/* The configuration of a file, for all that is asked from now on. err says what is wrong with it.
 */
int world_use(struct world *world, const char *file, struct err *err) WEIR_MUST_CHECK;

enum { QUESTION_PARAMS_MAX = 64, SHARD_BY_TURNS = -1 };

struct question {
	const char *env[2 * QUESTION_PARAMS_MAX + 1]; /* name, value ..., NULL behind the last */
	unsigned params;
	int shard;
	struct slice name; /* for its end; empty if it has none */
	int64_t now_us;
};

/* A request that has a lease and is under way. */
struct under_way {
	void *held; /* NULL: it has ended */
	int connection;
};

struct reply {
	unsigned status;
	bool would_reject; /* something that is only counted */
	bool enforced; /* [weir] enforce */
	struct decision decision; /* count 0 if there was none */
	int64_t retry_after_s; /* 0: none is said */
	struct slice fields; /* the lines of its head */
	struct under_way *under_way; /* NULL: it is over */
};

/* Asks the gate. */
void world_ask(struct world *world, const struct question *question, struct reply *reply);

/* The request is over; nothing if it is already. */
void world_end(struct world *world, struct under_way *request);

/* ---- Redis (world_redis.c); none of them on the memory store ---- */

/* What the request's keys say of their expiry is remembered and taken from them, since Redis's own
 * clock goes on while the scenario's stands still. */
void world_note_keys(struct world *world, const struct seen *seen);

/* Those whose time has come go. */
void world_expire(struct world *world, int64_t now_us);

long long world_keys(struct world *world, int64_t now_us);
void world_empty(struct world *world);

/* Until the end of the world. */
void world_lose_redis(struct world *world);

#endif
