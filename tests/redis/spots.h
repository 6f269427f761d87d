/* Sentinels and masters that say what a test tells them to, each connection in a thread. */
#ifndef WEIR_TESTS_REDIS_SPOTS_H
#define WEIR_TESTS_REDIS_SPOTS_H

#include "../lib/sockets.h"
#include "client.h"
#include "fake.h"

#include <pthread.h>
#include <stdatomic.h>

enum { SPOTS = 5 };

struct spot {
	int listener;
	uint16_t port;
	pthread_t thread;
	void (*serve)(struct spot *spot, struct fake_peer *peer);
	_Atomic(const char *)
		answer; /* of a sentinel: RESP; NULL: it is silent. Of a server: its role */
	struct fake_seen seen;
	_Atomic unsigned asked, logins;
	/* Of a server: what it says to a check; "": it closes the connection; NULL: admitted. */
	_Atomic(const char *) refusal;
	_Atomic bool is_gone; /* of a sentinel: it closes each connection when it is asked */
};

extern _Atomic bool spots_are_mute; /* the first one answers no checks */

/* What they can be. */
void serve_as_sentinel(struct spot *spot, struct fake_peer *peer);
void serve_as_redis(struct spot *spot, struct fake_peer *peer);

struct spot *spot_open(
	unsigned at, void (*serve)(struct spot *spot, struct fake_peer *peer), const char *answer);
void spot_close(struct spot *spot);
int spots_tear_down(void **state);

struct address address_of(const struct spot *spot);

/* The answer that names it. The text is static, one for each spot. */
const char *named(const struct spot *spot, const char *host);

/* Of a store whose master those know as "main". */
struct redis_settings
settings_of(const struct address *sentinels, unsigned count, int64_t deadline_us);

#endif
