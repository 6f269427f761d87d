/*
 * Leases of concurrent policies, given back or prolonged. No answer is waited for, so there is no
 * deadline either: the call is sent behind the checks that are under way, also behind the one that
 * took the lease. What cannot be sent is counted; the lease then ends with its time.
 *
 * A connection that we close, because the server is silent, may have checks on their way that it
 * will still decide. Releases follow them before the end.
 */
#include "redis_private.h"

#include <stdlib.h>

static struct call *
make_call(struct redis *redis, const struct check_item *item, uint64_t lease, bool renew)
{
	struct call *call = calloc(1, sizeof *call);

	if (call == NULL)
		return NULL;
	call->redis = redis;
	call->kind = CALL_LEASE;
	call->script = SCRIPT_ENGINE;
	if (command_keep_lease(redis, call, item, lease, renew) != 0) {
		free(call);
		return NULL;
	}
	return call;
}

static void
change(struct redis *redis, const struct check_item *item, uint64_t lease, bool renew)
{
	const bool may_wait = !breaker_is_open(redis->breaker) && store_has_room(redis);
	struct call *call = may_wait ? make_call(redis, item, lease, renew) : NULL;

	if (call == NULL)
		counter_add(COUNT_LEASES_LEFT, 1);
	else
		store_put(redis, call);
}

void
leases_release(struct store *store, const struct check_item *item, uint64_t lease)
{
	change(redis_of(store), item, lease, false);
}

void
leases_renew(struct store *store, const struct check_item *item, uint64_t lease)
{
	change(redis_of(store), item, lease, true);
}

/* Over no other connection than the one that it was spent over, and not again: a server that has
 * taken the place of that one may never have heard of it. */
void
leases_give_back(struct redis *redis, const struct check_item *item, const struct outcome *spent,
	int64_t taken_us, uint64_t cost)
{
	struct call *call = store_has_room(redis) ? calloc(1, sizeof *call) : NULL;

	if (call == NULL)
		return;
	call->redis = redis;
	call->kind = CALL_GIVE_BACK;
	call->script = SCRIPT_GIVE_BACK;
	if (command_keep_give_back(redis, call, item, spent, taken_us, cost) != 0)
		call_free(call);
	else
		connection_send(redis, call);
}

static void
send_release(struct redis *redis, const struct check_item *item, uint64_t lease)
{
	struct call *call = make_call(redis, item, lease, false);

	if (call != NULL)
		connection_send(redis, call);
}

/* It may stand under either key. */
static void
follow_check(struct redis *redis, const struct check *check)
{
	for (unsigned i = 0; i < check->count; i++) {
		struct check_item item = check->items[i];

		if (!item.limit->has_leases)
			continue;
		send_release(redis, &item, check->lease);
		if (item.overflow.len == 0)
			continue;
		item.key = item.overflow;
		send_release(redis, &item, check->lease);
	}
}

void
leases_follow(struct redis *redis)
{
	const struct call *call = redis->sent.first;

	/* Those that are sent here are put behind the last one. */
	for (unsigned left = redis->sent.count; left > 0; left--, call = call->next) {
		if (call->check != NULL && call->check->lease != 0)
			follow_check(redis, call->check);
	}
}
