/*
 * The master that sentinels name, as the store's server. When it becomes another one while the
 * connection is ready, nothing is wrong with that connection, so the breaker has no part in it.
 */
#include "redis_private.h"

static void
on_found(void *context, const struct address *master)
{
	handshake_go_to(context, master);
}

static void
on_failed(void *context, const char *why)
{
	connection_lose(context, why);
}

/* What an old master has spent for them is lost with it, so checks under way are for the new one.
 */
static void
take_back_checks(struct redis *redis)
{
	struct call_list others;
	struct call *call;

	call_list_init(&others);
	while ((call = call_pop(&redis->sent)) != NULL) {
		call->is_whole = false;
		call_push(call->check != NULL ? &redis->waiting : &others, call);
	}
	while ((call = call_pop(&others)) != NULL)
		call_push(&redis->sent, call);
}

static void
on_moved(void *context, const struct address *master)
{
	struct redis *redis = context;
	char name[ADDRESS_TEXT_SIZE];

	if (redis->state != REDIS_READY || address_is(&redis->server, master))
		return;
	log_info("The sentinels name another master; connecting anew.",
		LOG_TEXT("server", redis->name), LOG_TEXT("master", address_text(master, name)));
	take_back_checks(redis);
	connection_renew(redis);
}

const struct sentinel_handler master_handler = {
	.found = on_found, .failed = on_failed, .moved = on_moved
};
