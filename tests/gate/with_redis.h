/* The gate with a Redis of the test's own, which can be looked into. */
#ifndef WEIR_TESTS_GATE_WITH_REDIS_H
#define WEIR_TESTS_GATE_WITH_REDIS_H

#include "../lib/redis_server.h"
#include "serve.h"

extern struct redis_server server;
extern redisContext *look; /* at it */

/* For each test: a server, and its end after serve_tear_down. */
int with_redis_set_up(void **state);
int with_redis_tear_down(void **state);

#define REDIS_TEST(name)                                                                           \
	cmocka_unit_test_setup_teardown(name, with_redis_set_up, with_redis_tear_down)

/* A configuration with [redis] between `before` and `ini`. Good until the next call. */
const char *with_redis(const char *before, const char *deadline, const char *ini);

/* Scripts that it has run, by either command. */
unsigned long redis_calls(void);

/* A request of this client, on a connection that is kept. */
void put_ask(struct buf *out, const char *uri, const char *address);

#endif
