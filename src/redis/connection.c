/*
 * The connection: look-up, connect, login, and the stream of replies.
 *
 * Every connection begins with a probe, a check on a key of its own, so READY means that the server
 * does what is asked of it; and its reply tells the server's clock before the first client's check
 * is sent.
 *
 * A ready connection that breaks is tried again at once: Redis closes idle connections, and
 * restarts. One that breaks before it was ready, or soon after, opens the breaker.
 */
#include "redis_private.h"

#include "weir/clock.h"
#include "weir/log.h"
#include "weir/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SETTLED_US = 1000000 };

static void on_input(void *context, struct slice data);
static void on_eof(void *context);
static void on_drained(void *context);
static void on_failed(void *context, int error);
static void on_expired(void *context);

static const struct stream_handler stream_handler = { .input = on_input,
	.eof = on_eof,
	.drained = on_drained,
	.failed = on_failed,
	.expired = on_expired };

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

void
connection_send(struct redis *redis, struct call *call)
{
	const bool was_quiet = redis->sent.first == NULL;

	call->sent_us = clock_monotonic_us();
	/* Only what was sent may wait for a reply. */
	if (command_send(redis, call) != 0) {
		call_unavailable(redis, call, UNAVAILABLE_OVERLOAD);
		free(call);
		return;
	}
	call_push(&redis->sent, call);
	if (was_quiet)
		watch_silence(redis);
}

static void
send_step(struct redis *redis, enum call_kind kind, bool whole)
{
	struct call *call = calloc(1, sizeof *call);

	if (call == NULL)
		return; /* the handshake's deadline ends it */
	call->kind = kind;
	call->is_whole = whole;
	connection_send(redis, call);
}

static void
shake(struct redis *redis, const struct sockaddr *address, socklen_t len)
{
	int error;

	redis->state = REDIS_SHAKING;
	redis->stream = stream_connect(redis->loop, address, len, &stream_handler, redis, &error);
	if (redis->stream == NULL) {
		connection_lose(redis, strerror(error));
		return;
	}
	stream_resume(redis->stream);
	if (redis->settings.password != NULL)
		send_step(redis, CALL_AUTH, false);
	if (redis->settings.database != 0)
		send_step(redis, CALL_SELECT, false);
	send_step(redis, CALL_PROBE, false);
}

static void
on_lookup(void *context, const struct sockaddr *address, socklen_t len, const char *error)
{
	struct redis *redis = context;

	redis->lookup = NULL;
	if (error != NULL)
		connection_lose(redis, error);
	else
		shake(redis, address, len);
}

void
connection_start(struct redis *redis)
{
	struct sockaddr_storage address;
	socklen_t len;

	redis->reader = redisReaderCreate();
	timer_set(redis->shake_timer, loop_now_us(redis->loop) + redis->settings.deadline_us);
	if (redis->reader == NULL) {
		connection_lose(redis, "no memory");
		return;
	}
	if (socket_address(&redis->settings.server, &address, &len) == 0) {
		shake(redis, (const struct sockaddr *)&address, len);
		return;
	}
	redis->state = REDIS_RESOLVING;
	redis->lookup = lookup_start(redis->resolver, &redis->settings.server, on_lookup, redis);
	if (redis->lookup == NULL)
		connection_lose(redis, "no memory for the look-up");
}

void
connection_close(struct redis *redis)
{
	struct call_list sent = redis->sent;

	redis->state = REDIS_DOWN;
	timer_cancel(redis->shake_timer);
	if (redis->lookup != NULL)
		lookup_cancel(redis->lookup);
	redis->lookup = NULL;
	stream_close(redis->stream);
	redis->stream = NULL;
	if (redis->reader != NULL)
		redisReaderFree(redis->reader);
	redis->reader = NULL;
	redis->has_offset = false;
	redis->sent = (struct call_list){ NULL, &redis->sent.first, 0 };
	for (struct call *call = sent.first; call != NULL;) {
		struct call *next = call->next;

		call_unavailable(redis, call, UNAVAILABLE_CONNECTION);
		free(call);
		call = next;
	}
}

void
connection_lose(struct redis *redis, const char *why)
{
	const int64_t now = loop_now_us(redis->loop);
	const bool was_settled =
		redis->state == REDIS_READY && now - redis->ready_since_us >= SETTLED_US;

	connection_close(redis);
	if (was_settled && !breaker_is_open(redis->breaker)) {
		log_info("The connection to Redis ended; connecting anew.",
			LOG_TEXT("server", redis->name), LOG_TEXT("reason", why));
		connection_start(redis);
		return;
	}
	/* Found open, and by whom does not matter, if a probe of ours failed. */
	if (breaker_open(redis->breaker, now))
		store_breaker_opened(redis, why);
	else
		store_await_probe(redis);
}

static void
become_ready(struct redis *redis)
{
	redis->state = REDIS_READY;
	redis->ready_since_us = loop_now_us(redis->loop);
	timer_cancel(redis->shake_timer);
	if (breaker_close(redis->breaker))
		log_info("Redis answers again: the breaker is closed.",
			LOG_TEXT("server", redis->name));
	else
		log_debug("Connected to Redis.", LOG_TEXT("server", redis->name));
	store_send_waiting(redis);
	watch_silence(redis);
}

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
repeat(struct redis *redis, struct call *call, bool whole)
{
	if (call->check == NULL || (whole ? call->is_whole : call->is_repeated))
		return false;
	call->is_whole = call->is_whole || whole;
	call->is_repeated = call->is_repeated || !whole;
	connection_send(redis, call);
	return true;
}

/* Returns whether the call is under way again. */
static bool
take_check(struct redis *redis, struct call *call, const redisReply *reply)
{
	struct decision decision;
	struct err err;
	int64_t now;

	switch (reply_read(reply, call->check, &decision, &now, &err)) {
	case REPLY_DECISION:
		learn_clock(redis, call, now);
		breaker_hit(redis->breaker);
		call_answer(redis, call, &decision);
		return false;
	case REPLY_LATE:
		counter_add(COUNT_LATE_CHECKS, 1);
		learn_clock(redis, call, now);
		if (repeat(redis, call, false))
			return true;
		call_unavailable(redis, call, UNAVAILABLE_LATE);
		return false;
	case REPLY_NOSCRIPT:
		if (repeat(redis, call, true))
			return true;
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		return false;
	case REPLY_ERROR:
		log_warn("Redis refuses a check.", LOG_TEXT("server", redis->name),
			LOG_TEXT("error", err.text));
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		return false;
	case REPLY_UNUSABLE:
	case REPLY_ABSURD:
		call_unavailable(redis, call, UNAVAILABLE_REPLY);
		if (breaker_open(redis->breaker, loop_now_us(redis->loop)))
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
		send_step(redis, CALL_PROBE, true);
	} else if (kind != REPLY_DECISION) {
		connection_lose(redis, err.text);
	} else if (call->kind == CALL_PROBE) {
		learn_clock(redis, call, now);
		become_ready(redis);
	}
}

static void
take_reply(struct redis *redis, const redisReply *reply)
{
	struct call *call = call_pop(&redis->sent);
	bool again = false;

	if (call == NULL) {
		connection_lose(redis, "a reply to nothing");
		return;
	}
	if (call->kind == CALL_CHECK)
		again = take_check(redis, call, reply);
	else
		take_step(redis, call, reply);
	if (!again)
		free(call);
}

static void
on_input(void *context, struct slice data)
{
	struct redis *redis = context;
	const struct stream *stream = redis->stream;

	if (redisReaderFeed(redis->reader, data.ptr, data.len) != REDIS_OK) {
		connection_lose(redis, "no memory for a reply");
		return;
	}
	/* The connection may end, and another begin, with any reply. */
	while (redis->stream == stream) {
		void *reply = NULL;

		if (redisReaderGetReply(redis->reader, &reply) != REDIS_OK) {
			connection_lose(redis, "a reply that is no RESP");
			return;
		}
		if (reply == NULL)
			break;
		take_reply(redis, reply);
		freeReplyObject(reply);
	}
	if (redis->stream != stream)
		return;
	if (redis->reader->len - redis->reader->pos > REPLY_MAX) {
		connection_lose(redis, "a reply without end");
		return;
	}
	watch_silence(redis);
}

static void
on_eof(void *context)
{
	connection_lose(context, "Redis closed the connection");
}

static void
on_drained(void *context)
{
	(void)context;
}

static void
on_failed(void *context, int error)
{
	connection_lose(context, strerror(error));
}

static void
on_expired(void *context)
{
	connection_lose(context, "Redis is silent");
}
