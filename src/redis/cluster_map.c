/*
 * The map: which of the servers has which slots.
 *
 * It comes with each connection, as the first thing that a server is asked; a MOVED sets one slot
 * right. When there is a doubt about it (a MOVED, a server away, a slot that nobody has), some
 * server is asked for the whole, once a second at the most, each time another one. If none is
 * connected, the seeds of the configuration are tried.
 */
#include "cluster_private.h"

enum { PAUSE_US = 1000000 };

static void
take_range(void *context, unsigned first, unsigned last, const struct address *master)
{
	struct cluster *cluster = context;
	const struct node *node = nodes_find(cluster, master);

	/* Of what is beyond all bounds, anybody is asked. */
	for (unsigned slot = first; slot <= last; slot++)
		cluster->slots[slot] = node == NULL ? 0 : (uint16_t)(node->index + 1);
}

static void
note_who_has_slots(struct cluster *cluster)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		if (cluster->nodes[i] != NULL)
			cluster->nodes[i]->has_slots = false;
	}
	for (unsigned slot = 0; slot < SLOTS; slot++) {
		if (cluster->slots[slot] != 0)
			cluster->nodes[cluster->slots[slot] - 1]->has_slots = true;
	}
}

static void
move_kept(struct redis *redis)
{
	struct cluster *cluster = redis->node->cluster;
	struct call_list calls;
	struct call *call;

	kept_take_all(redis, &calls);
	while ((call = call_pop(&calls)) != NULL) {
		struct redis *now = nodes_of_slot(cluster, call->slot);

		kept_put(now == NULL ? redis : now, call);
	}
}

/* What waits for a server that is away goes to the one that has taken its place. */
static void
move_all_kept(struct cluster *cluster)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];

		if (node != NULL && node->redis != NULL && node->redis->kept.calls.count > 0)
			move_kept(node->redis);
	}
}

int
map_learn(struct node *node, const redisReply *reply, struct err *err)
{
	struct cluster *cluster = node->cluster;

	node->is_unsure = false;
	if (slots_read(reply, &node->address, take_range, cluster, err) != 0)
		return -1;
	/* A server that has not met the others yet knows of no slot. */
	if (reply->elements == 0)
		return 0;
	note_who_has_slots(cluster);
	cluster->has_map = true;
	cluster->is_doubtful = false;
	move_all_kept(cluster);
	return 0;
}

void
map_ask(struct cluster *cluster)
{
	struct node *node = nodes_next_ready(cluster, cluster->asked_at + 1);

	cluster->asked_us = loop_now_us(cluster->loop);
	if (node != NULL) {
		cluster->asked_at = node->index;
		connection_step(node->redis, CALL_SLOTS, false);
		return;
	}
	for (unsigned i = 0; i < cluster->settings.cluster.count; i++)
		(void)!nodes_seed(cluster, i);
}

void
map_on_ask(void *context)
{
	struct cluster *cluster = context;

	if (loop_now_us(cluster->loop) - cluster->asked_us >= PAUSE_US)
		map_ask(cluster);
}

void
map_doubt(struct cluster *cluster)
{
	cluster->is_doubtful = true;
	loop_defer(cluster->loop, &cluster->ask);
}
