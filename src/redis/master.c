/*
 * The master that sentinels name, as the store's server. When it becomes another one while the
 * connection is ready, nothing is wrong with that connection, so the breaker has no part in it.
 *
 * Sentinels may name one server in several ways: by its address and by its name, an IPv4 address as
 * such and as one of IPv6. What was asked of it is asked anew only of another server, or it would
 * be spent twice; so where the name leads is looked up first, and compared.
 */
#include "redis_private.h"

#include "weir/socket.h"

#include <netinet/in.h>
#include <string.h>

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
move(struct redis *redis)
{
	char name[ADDRESS_TEXT_SIZE];

	log_info("The sentinels name another master; connecting anew.",
		LOG_TEXT("server", redis->name),
		LOG_TEXT("master", address_text(&redis->named, name)));
	take_back_checks(redis);
	connection_renew(redis);
}

/* ---- whether it is another one ---- */

struct peer {
	struct in6_addr ip;
	uint32_t zone;
	in_port_t port;
};

/* IPv4 as IPv6 (RFC 4291 section 2.5.5.2). */
static struct peer
peer_of(const struct resolved *at)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&at->address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&at->address;
	struct peer peer = { .zone = 0 };

	if (at->address.ss_family == AF_INET6)
		return (struct peer){ v6->sin6_addr, v6->sin6_scope_id, v6->sin6_port };
	peer.ip.s6_addr[10] = peer.ip.s6_addr[11] = 0xff;
	memcpy(&peer.ip.s6_addr[12], &v4->sin_addr, sizeof v4->sin_addr);
	peer.port = v4->sin_port;
	return peer;
}

static bool
is_same_peer(const struct resolved *a, const struct resolved *b)
{
	const struct peer one = peer_of(a), other = peer_of(b);

	return IN6_ARE_ADDR_EQUAL(&one.ip, &other.ip) && one.zone == other.zone &&
		one.port == other.port;
}

static void
compare(struct redis *redis, const struct resolved *addresses, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (!is_same_peer(&addresses[i], way_current(&redis->way)))
			continue;
		/* By its new name from the next connection on. */
		redis->server = redis->named;
		(void)address_text(&redis->server, redis->name);
		return;
	}
	move(redis);
}

static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct redis *redis = context;

	redis->lookup = NULL;
	timer_cancel(redis->shake_timer);
	if (error != NULL)
		move(redis);
	else
		compare(redis, addresses, count);
}

void
master_is_not_found(struct redis *redis)
{
	lookup_cancel(redis->lookup);
	redis->lookup = NULL;
	move(redis);
}

static void
on_moved(void *context, const struct address *master)
{
	struct redis *redis = context;
	struct resolved at;

	if (redis->state != REDIS_READY)
		return;
	if (redis->lookup != NULL)
		lookup_cancel(redis->lookup);
	redis->lookup = NULL;
	timer_cancel(redis->shake_timer);
	redis->named = *master;
	if (address_is(&redis->server, master))
		return;
	if (socket_address(master, &at.address, &at.len) == 0) {
		compare(redis, &at, 1);
		return;
	}
	redis->lookup = lookup_start(redis->resolver, master, on_lookup, redis);
	if (redis->lookup == NULL)
		move(redis);
	else
		timer_set(
			redis->shake_timer, loop_now_us(redis->loop) + redis->settings.deadline_us);
}

const struct sentinel_handler master_handler = {
	.found = on_found, .failed = on_failed, .moved = on_moved
};
