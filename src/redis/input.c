/*
 * What Redis says: each reply to the call that it answers, in the order of the commands.
 */
#include "redis_private.h"

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
	const bool is_awaited = call->check != NULL || call->kind == CALL_LEASE;

	if (!is_awaited || call->is_whole)
		return false;
	call->is_whole = redis->scripts_sent[call->script] == 0;
	connection_send(redis, call);
	return true;
}

static void
log_refusal(struct redis *redis, const char *error)
{
	uint64_t held;

	/* A key that holds something else is found so by each of its clients' requests. */
	if (log_throttle_pass(&redis->refusal_log, loop_now_us(redis->loop), &held))
		log_warn("Redis refuses a check.", LOG_TEXT("server", redis->name),
			LOG_TEXT("error", error), LOG_KEPT_BACK(held));
}

/* Returns whether the call is under way again. */
static bool
take_check(struct redis *redis, struct call *call, const redisReply *reply)
{
	struct decision decision;
	struct err err;
	int64_t now;

	if (call->is_whole)
		redis->scripts_sent[call->script]--;
	switch (reply_read(reply, call->check, &decision, &now, &err)) {
	case REPLY_DECISION:
		if (!call->brings_clock)
			learn_clock(redis, call, now);
		/* An answer that nobody waits for any more is no sign of health. */
		if (call->check != NULL)
			breaker_hit(redis->breaker);
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
		log_refusal(redis, err.text);
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		return false;
	case REPLY_UNUSABLE:
	case REPLY_ABSURD:
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		if (outage_open(redis, err.text))
			store_breaker_opened(redis, err.text);
		else
			connection_lose(redis, err.text);
		return false;
	}
	return false;
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
		: reply_status(reply, &err);

	if (kind == REPLY_NOSCRIPT && !call->is_whole) {
		connection_step(redis, CALL_PROBE, true);
	} else if (kind != REPLY_DECISION) {
		connection_lose(redis, err.text);
	} else if (call->kind == CALL_PROBE) {
		learn_clock(redis, call, now);
		connection_ready(redis);
	}
}

static void
take_reply(struct redis *redis, const redisReply *reply)
{
	struct call *call = call_pop(&redis->sent);
	bool again = false;

	if (call == NULL) {
		connection_lose(redis, "it answered what was not asked");
		return;
	}
	if (call->kind == CALL_CHECK || call->kind == CALL_LEASE)
		again = take_check(redis, call, reply);
	else
		take_step(redis, call, reply);
	if (!again)
		call_free(call);
}

/* hiredis makes room for as many elements as a reply says that it will have. */
#if HIREDIS_MAJOR >= 1
static void *
make_array(const redisReadTask *task, size_t count)
#else
static void *
make_array(const redisReadTask *task, int count)
#endif
{
	const struct redis *redis = task->privdata;

	return count > ELEMENTS_MAX ? NULL : redis->make_any_array(task, count);
}

redisReader *
input_reader(struct redis *redis)
{
	redisReader *reader = redisReaderCreate();

	if (reader == NULL)
		return NULL;
	redis->reader_functions = *reader->fn;
	redis->make_any_array = reader->fn->createArray;
	redis->reader_functions.createArray = make_array;
	reader->fn = &redis->reader_functions;
	reader->privdata = redis;
	return reader;
}

bool
input_take(struct redis *redis, struct slice data)
{
	const struct stream *stream = redis->stream;

	redis->reply_bytes += data.len;
	if (redisReaderFeed(redis->reader, data.ptr, data.len) != REDIS_OK) {
		connection_lose(redis, "no memory for a reply");
		return false;
	}
	/* The connection may end, and another begin, with any reply. */
	while (redis->stream == stream) {
		void *reply = NULL;

		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
			connection_lose(redis, NOT_REDIS);
			return false;
		}
		if (reply == NULL)
			break;
		redis->reply_bytes = redis->reader->len - redis->reader->pos;
		take_reply(redis, reply);
		freeReplyObject(reply);
	}
	if (redis->stream != stream)
		return false;
	/* Counted by ourselves: the reader keeps what it has read of an array as objects. */
	if (redis->reply_bytes > REPLY_MAX) {
		connection_lose(redis, "its answer does not end");
		return false;
	}
	return true;
}
