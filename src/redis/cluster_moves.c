/*
 * What a server of a cluster says of keys that it does not have.
 *
 *     MOVED       the map is set right for that slot, and the call goes to who has it now
 *     ASK         the slot is being moved, and this key already was or is new: the call goes there
 *                 this once, and the map stays as it is
 *     TRYAGAIN    of several keys in a slot that is being moved some are here and some there: they
 *                 are asked for one by one
 *     CLUSTERDOWN the check is not decided. The server itself is well, so its breaker stays closed
 *                 and the answer comes at once; it may have the other keys
 *
 * A call keeps its deadline wherever it goes. What a check has spent and is given back does not go
 * on: who has the key now may not know that it was spent. A lease is known by its name, so what
 * gives it back does.
 */
#include "cluster_private.h"

#include <stdlib.h>

/* Nobody waits for it on the server that sent it away. */
static void
take_from(struct redis *redis, struct call *call)
{
	if (call->check != NULL)
		call_forget(redis, call);
}

static void
end(struct call *call, enum unavailable why)
{
	call_unavailable(call->redis, call, why);
	call_free(call);
}

static void
go_on(struct node *node, struct call *call, const struct redirect *redirect)
{
	struct cluster *cluster = node->cluster;
	struct node *to = nodes_find(cluster, &redirect->to);
	struct redis *redis = to == NULL ? NULL : node_redis(to);

	if (to != NULL && redirect->kind == REDIRECT_MOVED) {
		cluster->slots[redirect->slot] = (uint16_t)(to->index + 1);
		to->has_slots = true;
		map_doubt(cluster);
	}
	if (call->kind == CALL_GIVE_BACK || (call->kind == CALL_CHECK && call->check == NULL)) {
		call_free(call);
	} else if (redis == NULL) {
		end(call, UNAVAILABLE_OVERLOAD);
	} else if (++call->hops > HOPS_MAX) {
		end(call, UNAVAILABLE_REPLY);
	} else {
		take_from(call->redis, call);
		call->is_asking = redirect->kind == REDIRECT_ASK;
		call->is_whole = false;
		store_take_over(redis, call);
	}
}

/* Of one key no server says so. */
static void
split(struct node *node, struct call *call)
{
	struct check *check = call->check;

	if (check == NULL) {
		call_lost(call->redis, call, UNAVAILABLE_REPLY);
		return;
	}
	if (check->count < 2) {
		end(call, UNAVAILABLE_REPLY);
		return;
	}
	take_from(call->redis, call);
	check->store_private = NULL;
	call_free(call);
	if (trip_is_part(check))
		trip_split(check);
	else
		trip_start(node->cluster, check, true);
}

bool
node_redirect(struct node *node, struct call *call, const redisReply *reply)
{
	const struct redirect redirect = redirect_read(reply, &node->address);

	switch (redirect.kind) {
	case REDIRECT_NONE:
		return false;
	case REDIRECT_MOVED:
	case REDIRECT_ASK:
		go_on(node, call, &redirect);
		return true;
	case REDIRECT_TRYAGAIN:
		split(node, call);
		return true;
	case REDIRECT_DOWN:
		map_doubt(node->cluster);
		store_log_refusal(call->redis, reply->str);
		call_lost(call->redis, call, UNAVAILABLE_REPLY);
		return true;
	}
	return false;
}
