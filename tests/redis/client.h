/* The store over Redis as a worker has it: a loop, a resolver, a breaker; and checks that are asked
 * of it. */
#ifndef WEIR_TESTS_REDIS_CLIENT_H
#define WEIR_TESTS_REDIS_CLIENT_H

#include "../lib/limits.h"
#include "../lib/run_loop.h"
#include "weir/redis.h"

struct client {
	struct loop *loop;
	struct resolver *resolver;
	struct breaker *breaker;
	struct redis_settings settings;
	struct redis_counters counters;
	struct redis *redis;
	unsigned answers; /* to all that was asked */
};

/* A check, and what became of it. Stays in place until it is answered. */
struct asked {
	struct check check;
	struct client *client;
	unsigned answers;
	int64_t asked_at_us, answered_at_us;
	struct decision decision;
};

/* Of the settings, what is not given is as in the configuration's defaults, with the deadline of
 * the tests. */
void client_open(struct client *client, const struct redis_settings *settings);
void client_close(struct client *client);

/* The same with a breaker that others share: MEMORY_AREA_SIZE bytes of memory. */
void client_open_shared(struct client *client, const struct redis_settings *settings, void *area);

/* And with names from elsewhere. */
void client_open_with(struct client *client, const struct redis_settings *settings, void *area,
	const char *resolv_conf);

/* Long enough for a busy machine; for tests in which nothing is to fail. */
#define PATIENT_US (20 * US_PER_S)

/* One limit, one bucket; more may be added to the check before it is sent. */
void asked_init(
	struct asked *asked, struct client *client, const struct made_limit *made, const char *key);
void asked_add(struct asked *asked, const struct made_limit *made, const char *key);

/* By the client's deadline from now. */
void asked_send(struct asked *asked);
void asked_wait(struct asked *asked);

/* All of it for one check. */
struct decision
client_decide(struct client *client, const struct made_limit *made, const char *key);

/* Until the store is connected: an answer has come that is one. */
void client_wait_until_ready(struct client *client);

/* While the loop runs. */
void client_wait_for_breaker(struct client *client, bool open);

#endif
