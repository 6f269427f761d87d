/*
 * The connection: what is sent over it, and its end. How it comes about is handshake.c's, what
 * comes over it is input.c's.
 *
 * A ready connection that breaks is tried again at once: Redis closes idle connections, and
 * restarts. One that breaks before it was ready, or soon after, opens the breaker.
 */
#include "cluster_private.h"

#include "weir/clock.h"
#include "weir/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLED_US = 1000000 };

/* A command that Redis has not answered for two deadlines will not be answered: the connection is
 * dead. */
static void
watch_silence(struct redis *redis)
{
	const int64_t now = loop_now_us(redis->loop);

	if (redis->state != REDIS_READY)
		return;
	if (redis->sent.first == NULL)
		stream_set_deadline(redis->stream, 0);
	else
		stream_set_deadline(redis->stream, now + 2 * redis->settings.deadline_us);
}

/* In front of what this server is about to have, which it refuses otherwise. */
static void
send_asking(struct redis *redis)
{
	struct call *call = call_new(redis, CALL_ASKING);

	/* Without it, what follows is answered with MOVED, and tried again. */
	if (call != NULL)
		connection_send(redis, call);
}

void
connection_send(struct redis *redis, struct call *call)
{
	if (call->is_asking)
		send_asking(redis);
	const bool was_quiet = redis->sent.first == NULL;

	call->sent_us = clock_monotonic_us();
	/* Only what was sent may wait for a reply. */
	if (command_send(redis, call) != 0) {
		call_lost(redis, call, UNAVAILABLE_OVERLOAD);
		return;
	}
	call_push(&redis->sent, call);
	if (call->kind != CALL_PROBE && call->is_whole)
		redis->scripts_sent[call->script]++;
	if (was_quiet)
		watch_silence(redis);
}

void
connection_step(struct redis *redis, enum call_kind kind, bool whole)
{
	struct call *call = call_new(redis, kind);

	if (call == NULL)
		return; /* the handshake's deadline ends it */
	call->is_whole = whole;
	call->is_bare = redis->node != NULL && (!redis->node->has_slots || redis->node->is_unsure);
	connection_send(redis, call);
}

void
connection_start(struct redis *redis)
{
	redis->reader = reader_new(&redis->reader_bound, ELEMENTS_MAX);
	timer_set(redis->shake_timer, loop_now_us(redis->loop) + redis->settings.deadline_us);
	if (redis->reader == NULL)
		connection_lose(redis, "no memory");
	else
		handshake_start(redis);
}

/* To DOWN. Returns the calls that were under way: to be answered when all else is in order, since
 * who gets an answer may ask anew at once. */
static struct call *
cut(struct redis *redis)
{
	struct call *lost;

	/* Leases that were given back a moment ago. */
	if (redis->state == REDIS_READY) {
		kept_wait_for_checks(redis);
		stream_flush(redis->stream);
	}
	lost = redis->sent.first;
	redis->state = REDIS_DOWN;
	timer_cancel(redis->shake_timer);
	if (redis->lookup != NULL)
		lookup_cancel(redis->lookup);
	redis->lookup = NULL;
	if (redis->sentinel != NULL)
		sentinel_stop(redis->sentinel);
	stream_close(redis->stream);
	redis->stream = NULL;
	if (redis->reader != NULL)
		redisReaderFree(redis->reader);
	redis->reader = NULL;
	redis->has_offset = false;
	redis->is_probe = false;
	redis->has_heard = false;
	store_count_reply(redis, 0);
	memset(redis->scripts_sent, 0, sizeof redis->scripts_sent);
	redis->sent = (struct call_list){ NULL, &redis->sent.first, 0 };
	return lost;
}

static void
answer_lost(struct redis *redis, struct call *lost)
{
	while (lost != NULL) {
		struct call *next = lost->next;

		call_lost(redis, lost, UNAVAILABLE_CONNECTION);
		lost = next;
	}
}

void
connection_close(struct redis *redis)
{
	answer_lost(redis, cut(redis));
}

void
connection_renew(struct redis *redis)
{
	struct call *lost = cut(redis);

	connection_start(redis);
	answer_lost(redis, lost);
}

/* Nothing is wrong with a proxy that ends the connection at a command that it does not know. */
static bool
awaits_hello(const struct redis *redis)
{
	return redis->sent.first != NULL && redis->sent.first->kind == CALL_HELLO;
}

void
connection_lose(struct redis *redis, const char *why)
{
	const bool was_settled = redis->state == REDIS_READY &&
		loop_now_us(redis->loop) - redis->ready_since_us >= SETTLED_US;
	const bool was_probe = redis->is_probe, asked_too_much = awaits_hello(redis);
	char text[320];

	/* Whoever says why may go with the connection. */
	(void)snprintf(text, sizeof text, "%s", why);
	why = text;
	if (redis->sentinel != NULL && !was_settled)
		sentinel_doubt(redis->sentinel);
	if (redis->state == REDIS_SHAKING)
		way_turn(&redis->way);
	struct call *lost = cut(redis);

	if ((was_settled || asked_too_much) && !breaker_is_open(redis->breaker)) {
		log_info("The connection to Redis ended; connecting anew.",
			LOG_TEXT("server", redis->name), LOG_TEXT("reason", why));
		connection_start(redis);
	} else if (outage_open(redis, why)) {
		store_breaker_opened(redis, why);
	} else {
		/* Found open, by whom does not matter. */
		if (was_probe)
			counter_add(COUNT_BREAKER_PROBES_FAILED, 1);
		outage_tell(redis, why);
		store_await_probe(redis);
	}
	answer_lost(redis, lost);
}

/* Behind all that is waited for. A replica that cannot be written to says so of each check;
 * sentinels and clusters know theirs. */
static void
ask_hello(struct redis *redis)
{
	if (redis->sentinel != NULL || redis->node != NULL || redis->was_asked_hello ||
		redis->has_told_replica)
		return;
	redis->was_asked_hello = true;
	connection_step(redis, CALL_HELLO, false);
}

void
connection_ready(struct redis *redis)
{
	redis->state = REDIS_READY;
	redis->is_probe = false;
	redis->ready_since_us = loop_now_us(redis->loop);
	timer_cancel(redis->shake_timer);
	if (breaker_close(redis->breaker)) {
		counter_add(COUNT_BREAKER_CLOSED, 1);
		log_info("Redis answers again: the breaker is closed.",
			LOG_TEXT("server", redis->name));
	} else {
		log_info("Redis answers.", LOG_TEXT("server", redis->name));
	}
	if (redis->sentinel != NULL)
		sentinel_watch(redis->sentinel);
	if (redis->node != NULL)
		node_changed(redis->node);
	kept_send(redis);
	store_send_waiting(redis);
	ask_hello(redis);
	watch_silence(redis);
}

static void
on_input(void *context, struct slice data)
{
	struct redis *redis = context;

	if (input_take(redis, data))
		watch_silence(redis);
}

static void
on_eof(void *context)
{
	struct redis *redis = context;
	static const char why[] = "Redis closed the connection";

	if (redis->state == REDIS_SHAKING)
		handshake_ended(redis, why);
	else
		connection_lose(redis, why);
}

static void
on_drained(void *context)
{
	(void)context;
}

static void
on_failed(void *context, int error)
{
	struct redis *redis = context;

	if (redis->state == REDIS_SHAKING)
		handshake_failed(redis, error);
	else
		connection_lose(redis, stream_reason(redis->stream, error));
}

static void
on_expired(void *context)
{
	connection_lose(context, "Redis is silent");
}

const struct stream_handler connection_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.failed = on_failed,
	.expired = on_expired };
