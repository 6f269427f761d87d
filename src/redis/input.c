/*
 * What Redis says: each reply to the call that it answers, in the order of the commands.
 */
#include "cluster_private.h"

#include "weir/clock.h"

#include <stdlib.h>

/*
 * The reply was made between sending and receiving, so Redis's clock minus ours lies between now_us
 * - received and now_us - sent. The largest lower bound is kept; a bound that contradicts it tells
 * that a clock was set.
 */
static void
learn_clock(struct redis *redis, const struct call *call, int64_t redis_now_us)
{
	const int64_t low = redis_now_us - clock_monotonic_us(),
		      high = redis_now_us - call->sent_us;

	if (!redis->has_offset || low > redis->offset_us || redis->offset_us > high)
		redis->offset_us = low;
	redis->has_offset = true;
}

/* A check that came too late by a clock that was wrong may be asked again: it has spent nothing. */
static bool
repeat(struct redis *redis, struct call *call)
{
	if (call->check == NULL || call->is_repeated)
		return false;
	call->is_repeated = true;
	connection_send(redis, call);
	return true;
}

/* Whoever is the first to miss a script brings it along; what is sent behind finds it there. */
static bool
repeat_with_script(struct redis *redis, struct call *call)
{
	const bool is_awaited = call->check != NULL || call->arguments != NULL;

	if (!is_awaited || call->is_whole)
		return false;
	call->is_whole = redis->scripts_sent[call->script] == 0;
	connection_send(redis, call);
	return true;
}

void
store_log_refusal(struct redis *redis, const char *error)
{
	uint64_t held;

	/* A key that holds something else is found so by each of its clients' requests. */
	if (log_throttle_pass(&redis->refusal_log, loop_now_us(redis->loop), &held))
		log_warn("Redis refuses a check.", LOG_TEXT("server", redis->name),
			LOG_TEXT("error", error), LOG_KEPT_BACK(held));
}

/* A lease that was to be prolonged and was not there had ended, since Redis was away for too long,
 * or a counter of Redis was removed. */
static void
note_lease(struct call *call, const redisReply *reply)
{
	const bool was_held = (reply->element[0]->integer & 1) != 0;

	if (call->kind == CALL_RENEWAL && !was_held)
		counter_add(COUNT_LEASES_LOST, 1);
	if (call->kind == CALL_RELEASE)
		call_given_back(call, was_held);
}

/* The server cannot be used, by its own words or by what it says. What it refuses for the moment
 * and gives a place back is kept. Returns as below. */
static bool
take_outage(struct redis *redis, struct call *call, enum reply_kind kind, const char *why)
{
	const bool is_kept = kind == REPLY_UNUSABLE && call->kind == CALL_RELEASE;

	if (is_kept)
		kept_put(redis, call);
	else
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
	if (outage_open(redis, why))
		store_breaker_opened(redis, why);
	else
		connection_lose(redis, why);
	return is_kept;
}

/* Returns whether the call is under way again, or kept. */
static bool
take_check(struct redis *redis, struct call *call, const redisReply *reply)
{
	struct decision decision;
	struct err err;
	int64_t now;

	if (call->is_whole)
		redis->scripts_sent[call->script]--;
	if (redis->node != NULL && node_redirect(redis->node, call, reply))
		return true;
	const enum reply_kind kind = reply_read(reply, call->check, &decision, &now, &err);

	switch (kind) {
	case REPLY_DECISION:
		if (!call->brings_clock)
			learn_clock(redis, call, now);
		/* An answer that nobody waits for any more is no sign of health. */
		if (call->check != NULL)
			breaker_hit(redis->breaker);
		note_lease(call, reply);
		call_answer(redis, call, &decision);
		return false;
	case REPLY_LATE:
		counter_add(COUNT_LATE_CHECKS, 1);
		learn_clock(redis, call, now);
		if (repeat(redis, call))
			return true;
		call_unavailable(redis, call, UNAVAILABLE_LATE);
		return false;
	case REPLY_NOSCRIPT:
		if (repeat_with_script(redis, call))
			return true;
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		return false;
	case REPLY_ERROR:
		/* It was named as a server of its own, and has a part of the keys. */
		if (redis->node == NULL && reply_is_of_cluster(reply))
			return take_outage(redis, call, REPLY_UNUSABLE, err.text);
		store_log_refusal(redis, err.text);
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		return false;
	case REPLY_UNUSABLE:
	case REPLY_ABSURD:
		return take_outage(redis, call, kind, err.text);
	}
	return false;
}

/* The server has told the cluster's map; then it is asked for something that it has by that. */
static void
take_slots(struct redis *redis, const redisReply *reply)
{
	struct err err;

	if (map_learn(redis->node, reply, &err) != 0)
		connection_lose(redis, err.text);
	else if (redis->state == REDIS_SHAKING)
		connection_step(redis, CALL_PROBE, false);
}

/* It does not have what the map says, or nobody may have anything now. It answers all the same, and
 * says so of each check. */
static bool
is_elsewhere(const struct redis *redis, const struct call *call, const redisReply *reply)
{
	return redis->node != NULL && !call->is_bare &&
		redirect_read(reply, &redis->server).kind != REDIRECT_NONE;
}

/* A step of the handshake. */
static void
take_step(struct redis *redis, struct call *call, const redisReply *reply)
{
	struct decision decision;
	struct err err = { "" };
	int64_t now = 0;
	const enum reply_kind kind = call->kind == CALL_PROBE
		? reply_read(reply, NULL, &decision, &now, &err)
		: call->kind == CALL_ROLE ? reply_role(reply, &err)
					  : reply_status(reply, &err);

	if (kind == REPLY_NOSCRIPT && !call->is_whole) {
		connection_step(redis, CALL_PROBE, true);
	} else if (is_elsewhere(redis, call, reply)) {
		redis->node->is_unsure = true;
		connection_step(redis, CALL_PROBE, false);
	} else if (kind != REPLY_DECISION) {
		connection_lose(redis, err.text);
	} else if (call->kind == CALL_PROBE) {
		learn_clock(redis, call, now);
		connection_ready(redis);
	}
}

/* One that can be written to takes all as if it were a master, and forgets it. */
static void
take_hello(struct redis *redis, const redisReply *reply)
{
	redis->was_asked_hello = false;
	if (redis->has_told_replica || !reply_tells_replica(reply))
		return;
	redis->has_told_replica = true;
	log_error("The server is a replica that can be written to (replica-read-only no): what is "
		  "counted there is lost when it takes its master's data anew.",
		LOG_TEXT("server", redis->name),
		LOG_TEXT("remedy", "name the master with server of [redis], or its sentinels"));
}

static void
take_reply(struct redis *redis, const redisReply *reply)
{
	struct call *call = call_pop(&redis->sent);
	bool again = false;

	redis->reader_bound.sum = 0;
	if (call == NULL) {
		connection_lose(redis, "it answered what was not asked");
		return;
	}
	kept_answered(redis, call);
	switch (call->kind) {
	case CALL_CHECK:
	case CALL_RELEASE:
	case CALL_RENEWAL:
	case CALL_GIVE_BACK:
		again = take_check(redis, call, reply);
		break;
	case CALL_SLOTS:
		take_slots(redis, reply);
		break;
	case CALL_HELLO:
		take_hello(redis, reply);
		break;
	case CALL_ASKING: /* what it says is said again by what follows */
		break;
	case CALL_AUTH:
	case CALL_SELECT:
	case CALL_ROLE:
	case CALL_PROBE:
		take_step(redis, call, reply);
		break;
	}
	if (!again)
		call_free(call);
	kept_send(redis);
}

static bool
is_next_slots(const struct redis *redis)
{
	return redis->sent.first != NULL && redis->sent.first->kind == CALL_SLOTS;
}

/* The map of a large cluster is long. */
static void
set_bounds(struct redis *redis)
{
	struct reader_bound *bound = &redis->reader_bound;
	const bool is_slots = is_next_slots(redis);

	bound->elements_max = is_slots ? SLOTS : ELEMENTS_MAX;
	bound->sum_max = is_slots ? SLOTS_ELEMENTS_MAX : 0;
}

bool
input_take(struct redis *redis, struct slice data)
{
	const struct stream *stream = redis->stream;

	redis->has_heard = true;
	store_count_reply(redis, redis->reply_bytes + data.len);
	if (redisReaderFeed(redis->reader, data.ptr, data.len) != REDIS_OK) {
		connection_lose(redis, "no memory for a reply");
		return false;
	}
	/* The connection may end, and another begin, with any reply. */
	while (redis->stream == stream) {
		void *reply = NULL;

		set_bounds(redis);
		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
			connection_lose(redis, NOT_REDIS);
			return false;
		}
		if (reply == NULL)
			break;
		store_count_reply(redis, redis->reader->len - redis->reader->pos);
		take_reply(redis, reply);
		freeReplyObject(reply);
	}
	if (redis->stream != stream)
		return false;
	if (store_hears_too_much(redis, is_next_slots(redis) ? SLOTS_REPLY_MAX : REPLY_MAX)) {
		connection_lose(redis, "its answer does not end");
		return false;
	}
	return true;
}
