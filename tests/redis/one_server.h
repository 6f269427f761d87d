/* A server for all the tests of a program, and a connection to it beside weir's own. */
#ifndef WEIR_TESTS_REDIS_ONE_SERVER_H
#define WEIR_TESTS_REDIS_ONE_SERVER_H

#include "../lib/redis_server.h"

static struct redis_server server;
static redisContext *direct;

static inline int
group_setup(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	return 0;
}

static inline int
group_teardown(void **state)
{
	(void)state;
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

#endif
