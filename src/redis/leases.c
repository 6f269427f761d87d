/*
 * Leases of concurrent policies, given back or prolonged, and what a check of a cluster has spent
 * that is to be taken back. No answer is waited for, so there is no deadline: the call is sent
 * behind the checks that are under way, also behind the one that took the lease.
 *
 * What gives a place back and cannot be sent is kept (kept.c). What prolongs one is not: whoever
 * holds the lease is still there, and tries again.
 */
#include "cluster_private.h"

#include <stdlib.h>

static struct call *
make_call(struct redis *redis, const struct check_item *item, uint64_t lease, bool renew)
{
	struct call *call = call_new(redis, renew ? CALL_RENEWAL : CALL_RELEASE);

	if (call == NULL)
		return NULL;
	call->script = SCRIPT_ENGINE;
	if (command_keep_lease(redis, call, item, lease, renew) != 0) {
		call_free(call);
		return NULL;
	}
	return call;
}

/* A lease was prolonged now, at the latest. */
static int64_t
over_us(struct redis *redis, const struct limit *limit)
{
	int64_t longest = 0;

	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];

		if (policy->algorithm == POLICY_CONCURRENT && policy->lease_us > longest)
			longest = policy->lease_us;
	}
	return loop_now_us(redis->loop) + longest;
}

static bool
may_send(struct redis *redis)
{
	return redis->state == REDIS_READY && !breaker_is_open(redis->breaker) &&
		store_has_room(redis);
}

void
leases_put(struct redis *redis, struct call *call)
{
	call->redis = redis;
	if (may_send(redis))
		connection_send(redis, call);
	else
		call_lost(redis, call, UNAVAILABLE_CONNECTION);
}

/* NULL: no memory, or no server. */
static struct call *
make_release(struct redis *redis, const struct check_item *item, uint64_t lease)
{
	struct call *call = redis == NULL ? NULL : make_call(redis, item, lease, false);

	if (call == NULL)
		return NULL;
	call->ends_us = over_us(redis, item->limit);
	if (redis->node != NULL)
		call->slot = cluster_slot(redis->node->cluster, item->key);
	return call;
}

void
leases_release(struct store *store, const struct check_item *item, uint64_t lease)
{
	struct redis *redis = redis_of(store);
	struct call *call = make_release(redis, item, lease);

	if (call == NULL)
		counter_add(COUNT_LEASES_LEFT, 1);
	else
		leases_put(redis, call);
}

void
leases_release_either(struct redis *redis, const struct check_item *item, struct redis *other_redis,
	const struct check_item *other, uint64_t lease)
{
	struct call *one = make_release(redis, item, lease);
	struct call *two = make_release(other_redis, other, lease);

	if (one == NULL && two == NULL)
		counter_add(COUNT_LEASES_LEFT, 1);
	else if (one != NULL && two != NULL)
		call_pair(one, two);
	else
		(one != NULL ? one : two)->is_last = true;
	if (one != NULL)
		leases_put(redis, one);
	if (two != NULL)
		leases_put(other_redis, two);
}

bool
leases_renew(struct store *store, const struct check_item *item, uint64_t lease)
{
	struct redis *redis = redis_of(store);
	struct call *call = may_send(redis) ? make_call(redis, item, lease, true) : NULL;

	if (call == NULL)
		return false;
	connection_send(redis, call);
	return true;
}

unsigned
leases_kept(const struct store *store)
{
	const struct redis *redis =
		(const struct redis *)((uintptr_t)store - offsetof(struct redis, store));

	return redis->kept.calls.count;
}

/* Over no other connection than the one that it was spent over, and not again: a server that has
 * taken the place of that one may never have heard of it. */
void
leases_give_back(struct redis *redis, const struct check_item *item, const struct outcome *spent,
	int64_t taken_us, uint64_t cost)
{
	struct call *call = store_has_room(redis) ? call_new(redis, CALL_GIVE_BACK) : NULL;

	if (call == NULL)
		return;
	call->script = SCRIPT_GIVE_BACK;
	if (command_keep_give_back(redis, call, item, spent, taken_us, cost) != 0)
		call_free(call);
	else
		connection_send(redis, call);
}
