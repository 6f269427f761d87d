/* A cluster whose servers say of slots what they are told to, each in a thread of its own, and the
 * store over it. */
#ifndef WEIR_TESTS_REDIS_LIARS_H
#define WEIR_TESTS_REDIS_LIARS_H

#include "../../src/redis/cluster_private.h"
#include "../lib/sockets.h"
#include "client.h"
#include "fake.h"

#include <pthread.h>
#include <stdatomic.h>

enum { LIARS = 2, DEADLINE_MS = 300, LATE_MS = 5000 };

struct liar {
	int listener;
	uint16_t port;
	pthread_t thread;
	const char *slots; /* the answer to CLUSTER SLOTS; NULL: one that never ends */
	/* To a check: NULL: admitted; "": none. To the two below: NULL: as to any. */
	const char *answer;
	const char *answer_to_script; /* that comes whole */
	const char *answer_to_give_back;
	_Atomic bool waits; /* before it answers a check */
	struct fake_seen seen;
	_Atomic unsigned checks, asking, maps; /* that it was asked for */
	_Atomic unsigned scripts, given_back; /* of the checks: with EVAL; of lua/give_back.lua */
};

extern struct liar liars[LIARS];
extern struct client rig; /* without a store over one server */
extern struct cluster *cluster;
extern int64_t liars_deadline_us;
extern struct breaker_areas liars_areas; /* none, unless a test sets them */

/* The listeners, and then, when it is set what they say, the store. */
int liars_set_up(void **state);
void liars_open(void);
int liars_tear_down(void **state);

/* Of "*1\r\n..." of CLUSTER SLOTS: each has so many slots, up to the last. */
void liars_share_slots(char out[256], unsigned first_of_second);

/* "-MOVED 1 127.0.0.1:PORT", of one of them. */
void liar_name(char out[64], const char *word, unsigned at);

/* By the deadline, of one limit or two (`second` NULL: one). */
struct decision liars_decide(const struct made_limit *made, const char *key,
	const struct made_limit *other, const char *second);

#endif
