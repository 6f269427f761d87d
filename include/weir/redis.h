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
#include "weir/tls.h"

struct redis;
struct cluster;

/* The cells that stores over Redis count in: found once, while nothing is served (counter.h). */
struct redis_counters {
	counter_cell latency;
	counter_cell failures[UNAVAILABLE_REASONS];
};

void redis_counters_find(struct redis_counters *counters);

/* Who knows where the server is: all with tcp:, or all with tls:, as the server itself then. */
struct redis_sentinels {
	const struct address *addresses;
	unsigned count; /* 0: there are none, and the server is where its address says */
	const char *master; /* the server's name there */
	const char *username, *password; /* theirs; NULL: none */
};

/* Any few servers of a cluster; the others are reached as they are, with tcp: or tls:. */
struct redis_cluster {
	const struct address *addresses;
	unsigned count; /* 0: it is none */
};

/* Beyond that a cluster's servers are not known; each thread has a connection, and so a descriptor,
 * for each of them at the most. */
enum { REDIS_CLUSTER_SERVERS_MAX = 1000 };

/* What is pointed to is the caller's and must last. */
struct redis_settings {
	struct address server; /* not looked at with sentinels, or with a cluster */
	struct redis_sentinels sentinels;
	struct redis_cluster cluster;
	const struct tls *tls; /* for tls: addresses */
	const char *tls_name; /* what certificates must be for; NULL: the host of the address */
	const char *username, *password; /* NULL: none */
	uint64_t database; /* SELECT is sent only if it is not 0 */
	const char *prefix; /* of every key */
	int64_t deadline_us; /* of a decision; also of connecting and of a probe */
	const struct redis_counters *counters;
};

/* The key in Redis of the bucket of this name. In a cluster what is behind the limit's name, who is
 * counted, is in braces: it alone chooses the slot, so all limits that count by the same share one.
 */
enum { REDIS_KEY_MAX = 520 };
struct slice
redis_key(const char *prefix, bool is_in_cluster, struct slice name, char out[REDIS_KEY_MAX]);

/* The breaker of the server as these settings use it; of a master by its name, wherever it is. Of
 * a cluster, one of this process alone that is open while it does not ask any of the servers. NULL:
 * no memory. */
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
 * that cannot be given back now are kept until they can or are over, 16,384 of them or 8 MiB; those
 * that were kept for the longest time give way.
 */
struct store *redis_store(struct redis *redis);

/*
 * The store over a Redis Cluster: a store of its own, with its breaker, over each of its servers,
 * so that one which is away takes no more with it than its keys. `breaker` is redis_breaker's; the
 * servers' own are in `areas`. Seeds are connected to at once.
 *
 * However many servers there are, and whatever they say: together they have four times as many
 * calls that wait as one store, 16 MiB of commands that are not answered and 16 MiB of answers that
 * are not whole; and they keep as many leases as one store. A server that would have more is
 * refused it (UNAVAILABLE_OVERLOAD), or loses its connection.
 *
 * A check whose keys are in several slots is decided slot by slot, by the one deadline. What was
 * spent before a slot rejects is given back unless that might let more pass; so some may stay
 * spent. What a server spends that does not answer in time stays spent.
 */
struct cluster *cluster_new(struct loop *loop, struct resolver *resolver,
	const struct redis_settings *settings, const struct breaker_areas *areas,
	struct breaker *breaker, struct err *err) WEIR_MUST_CHECK;
void cluster_free(struct cluster *cluster);
struct store *cluster_store(struct cluster *cluster);

#endif
