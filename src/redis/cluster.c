/*
 * The store over a Redis Cluster: each check goes to the server that has its keys.
 *
 * Who is counted chooses the slot (redis_key), so the keys of a usual check are in one: it is
 * handed to that server's store as it is, and takes one round trip. Where they are not, or where it
 * is to be seen first whether a bucket is there, since the one that would be decided on otherwise
 * has a slot of its own, it becomes a trip.
 */
#include "cluster_private.h"

#include <stdlib.h>

static struct cluster *
cluster_of(struct store *store)
{
	return (struct cluster *)((uintptr_t)store - offsetof(struct cluster, store));
}

unsigned
cluster_slot(const struct cluster *cluster, struct slice name)
{
	char room[REDIS_KEY_MAX];

	return slot_of(redis_key(cluster->settings.prefix, true, name, room));
}

void
cluster_refuse(struct cluster *cluster, struct check *check, enum unavailable why)
{
	counter_add(cluster->settings.counters->failures[why], 1);
	check->done(check, &(const struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why });
}

static bool
is_of_one_slot(const struct cluster *cluster, const struct check *check, unsigned slot)
{
	for (unsigned i = 0; i < check->count; i++) {
		if (check->items[i].overflow.len > 0 ||
			(i > 0 && cluster_slot(cluster, check->items[i].key) != slot))
			return false;
	}
	return true;
}

static void
cluster_decide(struct store *store, struct check *check)
{
	struct cluster *cluster = cluster_of(store);
	const unsigned slot = cluster_slot(cluster, check->items[0].key);

	if (!is_of_one_slot(cluster, check, slot)) {
		trip_start(cluster, check, false);
		return;
	}
	struct redis *redis = nodes_of_slot(cluster, slot);

	if (redis == NULL)
		cluster_refuse(cluster, check, UNAVAILABLE_OVERLOAD);
	else
		store_ask(redis, check);
}

/* What it points to begins with the server that the check was put to, or NULL if it is a trip. */
static void
cluster_cancel(struct store *store, struct check *check)
{
	struct redis *const *redis = check->store_private;

	(void)store;
	if (redis == NULL)
		return;
	if (*redis == NULL)
		trip_cancel(check->store_private);
	else
		store_cancel(&(*redis)->store, check);
}

/* ---- leases ---- */

/* A server of its own has the lease, whatever else the item says. */
static struct check_item
item_at(const struct check_item *item, struct slice key)
{
	return (struct check_item){ .limit = item->limit, .key = key, .shadow = item->shadow };
}

/* It may stand under either key, and they are not in one slot. */
static void
cluster_release(struct store *store, const struct check_item *item, uint64_t lease)
{
	struct cluster *cluster = cluster_of(store);

	const struct check_item at = item_at(item, item->key);
	const struct check_item other = item_at(item, item->overflow);
	struct redis *redis = nodes_of_slot(cluster, cluster_slot(cluster, item->key));

	if (item->overflow.len > 0 && !slice_is(item->overflow, item->key))
		leases_release_either(redis, &at,
			nodes_of_slot(cluster, cluster_slot(cluster, item->overflow)), &other,
			lease);
	else if (redis != NULL)
		leases_release(&redis->store, &at, lease);
	else
		counter_add(COUNT_LEASES_LEFT, 1);
}

static bool
cluster_renew(struct store *store, const struct check_item *item, uint64_t lease)
{
	struct cluster *cluster = cluster_of(store);
	const struct check_item at = item_at(item, item->key);
	struct redis *redis = nodes_of_slot(cluster, cluster_slot(cluster, item->key));

	return redis != NULL && leases_renew(&redis->store, &at, lease);
}

static unsigned
cluster_kept(const struct store *store)
{
	const struct cluster *cluster =
		(const struct cluster *)((uintptr_t)store - offsetof(struct cluster, store));
	unsigned kept = 0;

	for (unsigned i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];

		if (node != NULL && node->redis != NULL)
			kept += leases_kept(&node->redis->store);
	}
	return kept;
}

/* ---- its life ---- */

struct cluster *
cluster_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	const struct breaker_areas *areas, struct breaker *breaker, struct err *err)
{
	struct cluster *cluster = calloc(1, sizeof *cluster);

	if (cluster == NULL) {
		(void)err_set(err, "no memory for the cluster");
		return NULL;
	}
	cluster->store = (struct store){ .name = "redis",
		.decide = cluster_decide,
		.cancel = cluster_cancel,
		.release = cluster_release,
		.renew = cluster_renew,
		.kept = cluster_kept };
	cluster->loop = loop;
	cluster->resolver = resolver;
	cluster->settings = *settings;
	cluster->areas = *areas;
	cluster->breaker = breaker;
	if (nodes_start(cluster, err) != 0) {
		cluster_free(cluster);
		return NULL;
	}
	return cluster;
}

void
cluster_free(struct cluster *cluster)
{
	if (cluster == NULL)
		return;
	nodes_stop(cluster);
	trips_free(cluster);
	free(cluster);
}

struct store *
cluster_store(struct cluster *cluster)
{
	return &cluster->store;
}
