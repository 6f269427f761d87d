/*
 * The store over Redis: one pipelined connection a thread, the scripts of lua/, deadlines that hold
 * in every phase (look-up, connect, login, script, retry), and a breaker. hiredis makes commands
 * and reads replies; the connection is ours.
 */
#ifndef WEIR_REDIS_H
#define WEIR_REDIS_H

#include "weir/address.h"
#include "weir/breaker.h"
#include "weir/counter.h"
#include "weir/loop.h"
#include "weir/resolver.h"
#include "weir/store.h"

struct redis;

/* The cells that stores over Redis count in: found once, while nothing is served (counter.h). */
struct redis_counters {
	counter_cell latency;
	counter_cell failures[UNAVAILABLE_REASONS];
};

void redis_counters_find(struct redis_counters *counters);

/* What is pointed to is the caller's and must last. */
struct redis_settings {
	struct address server;
	const char *username, *password; /* NULL: none */
	uint64_t database; /* SELECT is sent only if it is not 0 */
	const char *prefix; /* of every key */
	int64_t deadline_us; /* of a decision; also of connecting and of a probe */
	const struct redis_counters *counters;
};

/* The breaker of the server as these settings use it. NULL: no memory. */
struct breaker *redis_breaker(
	const struct redis_settings *settings, const struct breaker_areas *areas) WEIR_MUST_CHECK;

/* Begins to connect at once, unless the breaker is open. */
struct redis *
redis_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	struct breaker *breaker, struct err *err) WEIR_MUST_CHECK;

/* Checks under way are dropped without a call. */
void redis_free(struct redis *redis);

/*
 * At most 4,096 calls or 1 MiB wait at once; beyond, the answer is UNAVAILABLE_OVERLOAD. Leases
 * that cannot be given back or prolonged, since there is no room or no Redis, are counted
 * (COUNT_LEASES_LEFT).
 */
struct store *redis_store(struct redis *redis);

#endif
