/*
 * The servers of a cluster.
 *
 * Each is a store of its own (store.c), with its own connection and its own breaker, so one that is
 * away takes no more with it than its slots. It is made when it is first asked for. One that has no
 * slots any more, and was not asked for lately, goes.
 *
 * A slot that is not known is asked of anybody: the answer tells who has it.
 */
#include "cluster_private.h"

#include "weir/hash.h"

#include <stdio.h>
#include <stdlib.h>

enum { TICK_US = 1000000, KEPT_US = 60 * 1000000 };

/* ---- one ---- */

static bool
is_open(const struct node *node)
{
	return breaker_is_open(node->breaker);
}

static bool
is_ready(const struct node *node)
{
	return node->redis != NULL && node->redis->state == REDIS_READY && !is_open(node);
}

static uint32_t
tag_of(const struct address *address)
{
	char text[ADDRESS_TEXT_SIZE];

	return hash_tag(slice_of(address_text(address, text))) | 1;
}

static struct redis_settings
settings_of(const struct cluster *cluster, const struct address *address)
{
	struct redis_settings settings = cluster->settings;

	settings.server = *address;
	settings.cluster.count = 0;
	return settings;
}

static struct node *
node_new(struct cluster *cluster, const struct address *address)
{
	const struct redis_settings settings = settings_of(cluster, address);
	struct node *node = calloc(1, sizeof *node);

	if (node == NULL)
		return NULL;
	node->cluster = cluster;
	node->address = *address;
	node->used_us = loop_now_us(cluster->loop);
	node->breaker = redis_breaker(&settings, &cluster->areas);
	if (node->breaker != NULL)
		return node;
	free(node);
	return NULL;
}

static void
node_free(struct node *node)
{
	struct cluster *cluster = node->cluster;

	cluster->nodes[node->index] = NULL;
	cluster->tags[node->index] = 0;
	redis_free(node->redis);
	breaker_free(node->breaker);
	free(node);
}

struct redis *
node_redis(struct node *node)
{
	struct cluster *cluster = node->cluster;
	const struct redis_settings settings = settings_of(cluster, &node->address);
	struct err err;

	node->used_us = loop_now_us(cluster->loop);
	if (node->redis == NULL)
		node->redis = store_new(
			cluster->loop, cluster->resolver, &settings, node->breaker, node, &err);
	return node->redis;
}

struct slice
node_probe_name(const struct node *node, char out[PROBE_NAME_SIZE])
{
	const struct cluster *cluster = node->cluster;
	char tag[SLOT_TAG_LEN];

	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (cluster->slots[slot] != node->index + 1)
			continue;
		const struct slice letters = slot_tag(slot, tag);
		const int len =
			snprintf(out, PROBE_NAME_SIZE, "probe:%.*s", (int)letters.len, letters.ptr);

		return slice_make(out, (size_t)len);
	}
	return SLICE("probe:none");
}

/* ---- all ---- */

struct node *
nodes_find(struct cluster *cluster, const struct address *address)
{
	const uint32_t tag = tag_of(address);
	unsigned place = cluster->node_count;

	for (unsigned i = 0; i < cluster->node_count; i++) {
		if (cluster->tags[i] == tag && address_is(&cluster->nodes[i]->address, address))
			return cluster->nodes[i];
		if (cluster->tags[i] == 0 && i < place)
			place = i;
	}
	struct node *node = place < REDIS_CLUSTER_SERVERS_MAX ? node_new(cluster, address) : NULL;

	if (node == NULL)
		return NULL;
	node->index = place;
	cluster->nodes[place] = node;
	cluster->tags[place] = tag;
	if (place == cluster->node_count)
		cluster->node_count++;
	return node;
}

struct node *
nodes_next_ready(struct cluster *cluster, unsigned from)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->nodes[(from + i) % cluster->node_count];

		if (node != NULL && is_ready(node))
			return node;
	}
	return NULL;
}

struct redis *
nodes_first_kept(const struct cluster *cluster)
{
	struct redis *first = NULL;

	for (unsigned i = 0; i < cluster->node_count; i++) {
		struct redis *redis = cluster->nodes[i] == NULL ? NULL : cluster->nodes[i]->redis;

		if (redis == NULL || redis->kept.calls.count == 0)
			continue;
		if (first == NULL ||
			redis->kept.calls.first->ends_us < first->kept.calls.first->ends_us)
			first = redis;
	}
	return first;
}

struct redis *
nodes_seed(struct cluster *cluster, unsigned nth)
{
	struct node *node = nodes_find(cluster, &cluster->settings.cluster.addresses[nth]);

	return node == NULL ? NULL : node_redis(node);
}

/* One whose breaker is closed, if there is any. */
static struct redis *
any_seed(struct cluster *cluster)
{
	const unsigned count = cluster->settings.cluster.count;
	struct redis *any = NULL;

	for (unsigned i = 0; i < count; i++) {
		struct redis *redis = nodes_seed(cluster, i);

		if (redis != NULL && !breaker_is_open(redis->breaker))
			return redis;
		any = redis != NULL ? redis : any;
	}
	return any;
}

struct redis *
nodes_of_slot(struct cluster *cluster, unsigned slot)
{
	const unsigned known = cluster->slots[slot];

	if (known != 0)
		return node_redis(cluster->nodes[known - 1]);
	map_doubt(cluster);
	struct node *node = nodes_next_ready(cluster, 0);

	return node != NULL ? node_redis(node) : any_seed(cluster);
}

/* ---- time ---- */

/* Before there is a map, of the seeds. */
static bool
is_any_open(const struct cluster *cluster)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];

		if (node != NULL && (node->has_slots || !cluster->has_map) && is_open(node))
			return true;
	}
	return false;
}

static bool
look_at_breakers(struct cluster *cluster)
{
	const bool open = is_any_open(cluster);

	if (open)
		(void)breaker_open(cluster->breaker, loop_now_us(cluster->loop));
	else if (breaker_is_open(cluster->breaker))
		(void)breaker_close(cluster->breaker);
	return open;
}

void
node_changed(struct node *node)
{
	(void)look_at_breakers(node->cluster);
	if (is_open(node))
		map_doubt(node->cluster);
}

static void
drop_unused(struct cluster *cluster)
{
	const int64_t now = loop_now_us(cluster->loop);

	for (unsigned i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->nodes[i];

		if (node != NULL && !node->has_slots && now - node->used_us > KEPT_US &&
			(node->redis == NULL || store_is_idle(node->redis)))
			node_free(node);
	}
}

static void
on_tick(void *context)
{
	struct cluster *cluster = context;

	timer_set(cluster->tick, loop_now_us(cluster->loop) + TICK_US);
	if (look_at_breakers(cluster) || cluster->is_doubtful || !cluster->has_map)
		map_ask(cluster);
	drop_unused(cluster);
}

int
nodes_start(struct cluster *cluster, struct err *err)
{
	cluster->ask = (struct deferred){ .run = map_on_ask, .context = cluster };
	cluster->tick = timer_new(cluster->loop, on_tick, cluster);
	if (cluster->tick == NULL)
		return err_set(err, "no memory for the cluster");
	on_tick(cluster);
	return 0;
}

void
nodes_stop(struct cluster *cluster)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		if (cluster->nodes[i] != NULL)
			node_free(cluster->nodes[i]);
	}
	loop_undefer(cluster->loop, &cluster->ask);
	timer_free(cluster->tick);
}
