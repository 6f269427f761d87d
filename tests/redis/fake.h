/*
 * Servers that are not quite Redis, each in a process of its own that ends with the test. A
 * connection is served by a function of the test's; what it has seen is told by shared memory.
 */
#ifndef WEIR_TESTS_REDIS_FAKE_H
#define WEIR_TESTS_REDIS_FAKE_H

#include "../lib/directory.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <sys/types.h>

struct fake_seen {
	_Atomic unsigned connections, commands, checks, probes;
	_Atomic uint64_t bytes_sent;
};

struct fake_peer {
	int fd;
	redisReader *reader;
	struct fake_seen *seen;
};

/* Serves one connection, in a thread; the connection ends when it returns. */
typedef void fake_fn(struct fake_peer *peer);

struct fake {
	struct directory directory;
	struct address address;
	struct fake_seen *seen;
	fake_fn *serve;
	int listener;
	pid_t pid; /* 0 while it does not run */
};

/* The socket, and a server behind it. */
void fake_open(struct fake *fake, fake_fn *serve);
void fake_close(struct fake *fake);

/* Ends the server; the socket refuses from then on. And one in its place. */
void fake_stop(struct fake *fake);
void fake_start(struct fake *fake, fake_fn *serve);

/* Serves each connection in a thread of its own, until the listener is shut or fails. Within this
 * process: `seen` and `context` must last as long as any connection. */
typedef void fake_context_fn(void *context, struct fake_peer *peer);
void fake_accept_all(int listener, struct fake_seen *seen, fake_context_fn *serve, void *context);

/* ---- for the functions that serve ---- */

/* The next command, for freeReplyObject(); NULL at the end. */
redisReply *fake_read(struct fake_peer *peer);

/* Reads and forgets, to the end. */
void fake_read_on(struct fake_peer *peer);

bool fake_is(const redisReply *command, const char *name);

/* Whether it is the script on a client's bucket. */
bool fake_is_check(const redisReply *command);

/* False when nobody takes it any more. */
bool fake_send(struct fake_peer *peer, struct slice bytes);

/* What Redis would answer if every bucket were full: admitted. */
bool fake_answer(struct fake_peer *peer, const redisReply *command);

/* Reads and answers, until a check comes, which is for the caller; NULL at the end. */
redisReply *fake_answer_until_check(struct fake_peer *peer);

#endif
