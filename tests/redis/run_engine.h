/* lua/engine.lua called as a gateway calls it, with its clock and the server's given. */
#ifndef WEIR_TESTS_REDIS_RUN_ENGINE_H
#define WEIR_TESTS_REDIS_RUN_ENGINE_H

#include "weir/decision.h"

#include <hiredis/hiredis.h>

enum { ENGINE_NUMBERS_MAX = 3 + 3 * LIMIT_POLICIES_MAX };

struct engine_call {
	const struct limit *limit;
	const char *key; /* without a prefix */
	int64_t now_us; /* the server's clock */
	int64_t skew_us; /* how far the gateway's clock is ahead of that */
	int64_t cost; /* 0: the lease is given back; -1: prolonged */
	uint64_t lease;
};

struct engine_reply {
	size_t count;
	int64_t numbers[ENGINE_NUMBERS_MAX]; /* as lua/engine.lua says */
};

/* Ends the test if there is no such reply. The key does not expire while the test lasts. */
struct engine_reply engine_run(redisContext *redis, const struct engine_call *call);

#endif
