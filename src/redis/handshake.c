/*
 * To where the server is: what the sentinels say, the look-up of its name, one address after the
 * other, and the login. All of it is done by one deadline.
 *
 * Every connection begins with a probe, a check on a key of its own, so READY means that the server
 * does what is asked of it; and its reply tells the server's clock before the first client's check
 * is sent.
 *
 * With sentinels each connection begins with their word, so a failover needs nothing of its own:
 * whatever ends the connection (the old master is gone, or says READONLY) leads to the new master,
 * in the back-off of the breaker while they still name the old one.
 */
#include "redis_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Of several addresses, what says most: who listens on one of IPv4 and IPv6 alone refuses on the
 * other. */
static void
lose_tried(struct redis *redis, int error, const char *why)
{
	connection_lose(
		redis, error == ECONNREFUSED && redis->tried[0] != '\0' ? redis->tried : why);
}

static void
shake(struct redis *redis)
{
	int error;

	redis->state = REDIS_SHAKING;
	redis->stream = redis_dial(redis->loop, &redis->settings, &redis->server, &redis->way,
		&connection_handler, redis, &error);
	if (redis->stream == NULL) {
		lose_tried(redis, error, strerror(error));
		return;
	}
	/* Who ends it at once may have said why (maxclients). */
	stream_read_on(redis->stream);
	stream_resume(redis->stream);
	if (redis->settings.password != NULL)
		connection_step(redis, CALL_AUTH, false);
	if (redis->settings.database != 0)
		connection_step(redis, CALL_SELECT, false);
	if (redis->sentinel != NULL)
		connection_step(redis, CALL_ROLE, false);
	connection_step(redis, redis->node != NULL ? CALL_SLOTS : CALL_PROBE, false);
}

/* Not connected, though there is an address that was not tried: what was queued for the one before
 * is made anew for it. Nothing but the login and the probe is queued then. */
static void
shake_anew(struct redis *redis)
{
	stream_close(redis->stream);
	redis->stream = NULL;
	while (redis->sent.first != NULL) {
		struct call *call = redis->sent.first;

		redis->sent.first = call->next;
		call_free(call);
	}
	call_list_init(&redis->sent);
	/* What the one before has said of a reply is not the beginning of this one's. */
	redisReaderFree(redis->reader);
	redis->reader = reader_new(&redis->reader_bound, ELEMENTS_MAX);
	store_count_reply(redis, 0);
	redis->has_heard = false;
	if (redis->reader == NULL)
		connection_lose(redis, "no memory");
	else
		shake(redis);
}

static void
on_lookup(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct redis *redis = context;

	redis->lookup = NULL;
	if (error != NULL) {
		connection_lose(redis, error);
		return;
	}
	way_set(&redis->way, addresses, count);
	shake(redis);
}

/* To where the server is. */
static void
resolve(struct redis *redis)
{
	if (way_begin(&redis->way, &redis->server) == 0) {
		shake(redis);
		return;
	}
	redis->state = REDIS_RESOLVING;
	redis->lookup = lookup_start(redis->resolver, &redis->server, on_lookup, redis);
	if (redis->lookup == NULL)
		connection_lose(redis, "no memory for the look-up");
}

void
handshake_go_to(struct redis *redis, const struct address *server)
{
	if (!address_is(&redis->server, server))
		redis->way.first = 0;
	redis->server = *server;
	(void)address_text(server, redis->name);
	resolve(redis);
}

void
handshake_start(struct redis *redis)
{
	redis->tried[0] = '\0';
	if (redis->sentinel == NULL) {
		resolve(redis);
	} else {
		redis->state = REDIS_ASKING;
		sentinel_ask(redis->sentinel);
	}
}

/* A tls-port takes what is no TLS for an attack. */
static const char *
why_ended(const struct redis *redis, int error, const char *why)
{
	const bool was_connected = stream_is_connected(redis->stream) || error == ECONNRESET;
	const bool is_mute = redis->server.kind == ADDRESS_TCP && !redis->has_heard;

	return is_mute && was_connected ? NO_WORD : why;
}

void
handshake_ended(struct redis *redis, const char *why)
{
	why = why_ended(redis, 0, why);
	if (!way_has_more(&redis->way)) {
		connection_lose(redis, why);
		return;
	}
	(void)snprintf(redis->tried, sizeof redis->tried, "%s", why);
	shake_anew(redis);
}

void
handshake_failed(struct redis *redis, int error)
{
	if (!way_has_more(&redis->way)) {
		lose_tried(
			redis, error, why_ended(redis, error, stream_reason(redis->stream, error)));
		return;
	}
	if (error != ECONNREFUSED)
		(void)snprintf(redis->tried, sizeof redis->tried, "%s",
			why_ended(redis, error, stream_reason(redis->stream, error)));
	shake_anew(redis);
}
