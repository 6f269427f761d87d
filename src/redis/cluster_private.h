/*
 * A cluster's parts. Private to the room.
 *
 *     cluster.c        the store: a check goes to the server that has its keys
 *     cluster_trip.c   a check whose keys are on several servers, or of which it is not known
 *                      whether they are there
 *     cluster_items.c  what a trip knows of its items, and how it gives back what they have taken
 *     cluster_nodes.c  the servers
 *     cluster_map.c    which of them has which slots
 *     cluster_moves.c  what a server says of keys that it does not have
 *     cluster_slots.c  keys to slots, and the replies that tell of slots. Pure
 */
#ifndef WEIR_CLUSTER_PRIVATE_H
#define WEIR_CLUSTER_PRIVATE_H

#include "redis_private.h"

enum {
	SLOTS = 16384,
	HOPS_MAX = 5, /* of a check, before it is given up */
	SLOTS_REPLY_MAX = 4 * 1024 * 1024, /* bytes */
	SLOTS_ELEMENTS_MAX = 300000, /* 16 for each slot would be 262,144 */
	SLOT_TAG_LEN = 3,
	PROBE_NAME_SIZE = 16,
};

struct node {
	struct cluster *cluster;
	struct address address;
	unsigned index; /* in the cluster's list */
	struct breaker *breaker;
	struct redis *redis; /* NULL: not asked for anything yet */
	bool has_slots; /* by the map */
	bool is_unsure; /* it says that it has not what the map says */
	int64_t used_us; /* when it was last asked for */
};

struct trip;

struct cluster {
	struct store store;
	struct loop *loop;
	struct resolver *resolver;
	struct redis_settings settings; /* `server` is not looked at */
	struct breaker_areas areas;
	struct breaker *breaker; /* open while a server's is; asked by others only */
	struct node *nodes[REDIS_CLUSTER_SERVERS_MAX];
	uint32_t tags[REDIS_CLUSTER_SERVERS_MAX]; /* of their addresses, to find them by; 0: NULL */
	unsigned node_count; /* behind the last one; NULLs may be between */
	uint16_t slots[SLOTS]; /* a node's index + 1; 0: not known */
	bool has_map;
	bool is_doubtful; /* the map */
	int64_t asked_us; /* when a server was last asked for the map */
	unsigned asked_at; /* and which */
	struct load load;
	struct timer *tick;
	struct deferred ask; /* for the map, at the end of the turn */
	struct trip *trips;
};

/* ---- cluster_slots.c ---- */

/* Of a whole key: CRC16 of what is in its first pair of braces, if there is something in it, else
 * of all (Redis Cluster specification, "Hash tags"). */
unsigned slot_of(struct slice key);

/* Letters and digits that choose the slot, in braces. There are some for each. */
struct slice slot_tag(unsigned slot, char out[SLOT_TAG_LEN]);

/* A whole reply to CLUSTER SLOTS from the server at `from`. `each` is called only if all of it is
 * sound. */
typedef void slots_fn(void *context, unsigned first, unsigned last, const struct address *master);
int slots_read(const redisReply *reply, const struct address *from, slots_fn *each, void *context,
	struct err *err) WEIR_MUST_CHECK;

/* The replicas in one that is sound; the same one perhaps more than once. */
typedef void replica_fn(void *context, const struct address *replica);
void slots_read_replicas(
	const redisReply *reply, const struct address *from, replica_fn *each, void *context);

enum redirect_kind {
	REDIRECT_NONE, /* it is something else */
	REDIRECT_MOVED, /* another server has the slot */
	REDIRECT_ASK, /* it is about to have it, and has this key */
	REDIRECT_TRYAGAIN, /* some of several keys are here and some there */
	REDIRECT_DOWN, /* nobody has the slot, or too many servers are away */
};

struct redirect {
	enum redirect_kind kind;
	unsigned slot; /* of MOVED and ASK */
	struct address to;
};

/* An error from the server at `from`. What cannot be read is REDIRECT_NONE. */
struct redirect redirect_read(const redisReply *reply, const struct address *from);

/* ---- cluster_nodes.c ---- */

/* Ready to be asked, though perhaps not connected; NULL: no memory, or too many. */
struct node *nodes_find(struct cluster *cluster, const struct address *address) WEIR_MUST_CHECK;
struct redis *node_redis(struct node *node) WEIR_MUST_CHECK;

/* Who has the slot, as far as is known, or somebody who may know. NULL as above. */
struct redis *nodes_of_slot(struct cluster *cluster, unsigned slot) WEIR_MUST_CHECK;

/* The first that is ready, from `from` on, around; NULL: none is. */
struct node *nodes_next_ready(struct cluster *cluster, unsigned from);

/* Who keeps the lease that ends first. There is one. */
struct redis *nodes_first_kept(const struct cluster *cluster);

/* The nth server of the configuration; NULL as above. */
struct redis *nodes_seed(struct cluster *cluster, unsigned nth) WEIR_MUST_CHECK;

/* Whether the node's server has become usable or unusable is looked at. */
void node_changed(struct node *node);

/* The name of a key that the node has, for its probe. */
struct slice node_probe_name(const struct node *node, char out[PROBE_NAME_SIZE]);

int nodes_start(struct cluster *cluster, struct err *err) WEIR_MUST_CHECK;
void nodes_stop(struct cluster *cluster);

/* ---- cluster_map.c ---- */

/* Takes the reply to CLUSTER SLOTS. */
int map_learn(struct node *node, const redisReply *reply, struct err *err) WEIR_MUST_CHECK;

/* The map may be wrong: a server is asked for it, soon and not too often. */
void map_doubt(struct cluster *cluster);

/* Asks now; and that of cluster.ask. */
void map_ask(struct cluster *cluster);
void map_on_ask(void *cluster);

/* ---- cluster_moves.c ---- */

/* Whether the reply sent the call elsewhere. It is no longer the caller's then. */
bool node_redirect(struct node *node, struct call *call, const redisReply *reply);

/* ---- cluster_trip.c ---- */

/* Decides slot by slot, or key by key. */
void trip_start(struct cluster *cluster, struct check *check, bool by_key);

/* The check is part of a trip. */
bool trip_is_part(const struct check *check);

/* Its keys are to be asked for one by one. */
void trip_split(struct check *part);

/* What was taken is given back, and nobody is told. */
void trip_cancel(struct trip *trip);

/* Behind nodes_stop. */
void trips_free(struct cluster *cluster);

/* ---- cluster.c ---- */

unsigned cluster_slot(const struct cluster *cluster, struct slice name);
void cluster_refuse(struct cluster *cluster, struct check *check, enum unavailable why);

#endif
