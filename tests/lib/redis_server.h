/*
 * A Redis server of the test's own, on a unix socket in a directory of its own. It ends with the
 * test program, however that ends.
 */
#ifndef WEIR_TESTS_LIB_REDIS_SERVER_H
#define WEIR_TESTS_LIB_REDIS_SERVER_H

#include "directory.h"

#include <hiredis/hiredis.h>
#include <sys/types.h>

struct redis_server {
	struct directory directory;
	struct address address;
	pid_t pid; /* 0 while it does not run */
};

/* Without one the test program is skipped: `return REDIS_SERVER_SKIPPED` from main. */
bool redis_server_is_installed(void);
enum { REDIS_SERVER_SKIPPED = 77 };

/* The directory, and a server that answers. `options` are of its command line, NULL behind the
 * last; NULL: none. */
void redis_server_open(struct redis_server *server, const char *const *options);
void redis_server_close(struct redis_server *server);

/* Kills it, with all that it knew; and starts one in its place. */
void redis_server_kill(struct redis_server *server);
void redis_server_start(struct redis_server *server, const char *const *options);

/* SIGSTOP: returns when it has stopped. */
void redis_server_freeze(const struct redis_server *server);
void redis_server_thaw(const struct redis_server *server);

/* A connection of the test's own, blocking; for redisFree(). */
redisContext *redis_server_connect(const struct redis_server *server);

/* One command over a connection, with spaces between its words; for freeReplyObject(). Ends the
 * test program if there is no reply. */
redisReply *redis_command(redisContext *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same when all is well: the reply is an integer, or +OK. */
long long redis_number(redisContext *connection, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void
redis_ok(redisContext *connection, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
