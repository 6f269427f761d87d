/*
 * The store: checks with their deadlines, and what happens when Redis does not keep them.
 *
 * The live checks are kept in the order of their deadlines, so one timer for the first is enough.
 */
#include "cluster_private.h"

#include "weir/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Checks that nobody waits for any more are dropped; they were never sent. */
void
store_send_waiting(struct redis *redis)
{
	struct call_list waiting = redis->waiting;

	call_list_init(&redis->waiting);
	while (waiting.first != NULL) {
		struct call *call = waiting.first;

		waiting.first = call->next;
		if (call->check != NULL)
			connection_send(redis, call);
		else
			call_free(call);
	}
}

static void
drop_waiting(struct redis *redis, enum unavailable why)
{
	struct call *call;

	while ((call = call_pop(&redis->waiting)) != NULL) {
		call_unavailable(redis, call, why);
		call_free(call);
	}
}

/* Whatever the breaker says by now: the timer is set afterwards, or nobody would connect. */
static void
set_probe_timer(struct redis *redis)
{
	const int64_t now = loop_now_us(redis->loop);
	const int64_t at = breaker_probe_at(redis->breaker, now);

	/* Another process has closed it meanwhile: there is no probe to wait for. */
	timer_set(redis->probe_timer, at != 0 ? at : now);
}

void
store_await_probe(struct redis *redis)
{
	if (redis->node != NULL)
		node_changed(redis->node);
	drop_waiting(redis, UNAVAILABLE_BREAKER);
	set_probe_timer(redis);
}

void
store_breaker_opened(struct redis *redis, const char *why)
{
	counter_add(COUNT_BREAKER_OPENED, 1);
	outage_tell(redis, why);
	if (redis->state != REDIS_DOWN)
		connection_close(redis);
	store_await_probe(redis);
}

/* The back-off is over. One process of the host connects, and the others when it has closed the
 * breaker; a connection that is ready has made its probe. A server of a cluster that nothing is
 * asked of would not be connected to otherwise, and may be the only one who knows where the others
 * are. */
static void
on_probe_time(void *context)
{
	struct redis *redis = context;

	if (!breaker_is_open(redis->breaker)) {
		if (redis->state == REDIS_DOWN)
			connection_start(redis);
		return;
	}
	if (!breaker_take_probe(redis->breaker, loop_now_us(redis->loop))) {
		store_await_probe(redis);
		return;
	}
	if (redis->state != REDIS_DOWN)
		connection_close(redis);
	redis->is_probe = true;
	connection_start(redis);
}

static void
on_deadline(void *context)
{
	struct redis *redis = context;
	const int64_t now = loop_now_us(redis->loop);

	while (redis->live != NULL && redis->live->check->deadline_us <= now) {
		call_unavailable(redis, redis->live, UNAVAILABLE_DEADLINE);
		if (breaker_miss(redis->breaker, now))
			store_breaker_opened(redis, "it did not answer within the deadline");
	}
	if (redis->live != NULL)
		timer_set(redis->deadline_timer, redis->live->check->deadline_us);
}

static void
on_shake_deadline(void *context)
{
	struct redis *redis = context;
	const char *why = "it did not answer within the deadline";

	if (redis->state == REDIS_READY) {
		master_is_not_found(redis);
		return;
	}
	if (redis->state == REDIS_ASKING)
		why = "no sentinel answered within the deadline";
	else if (redis->state == REDIS_RESOLVING)
		why = "no name server answered within the deadline";
	else if (redis->server.kind == ADDRESS_TLS && !stream_is_connected(redis->stream))
		why = NO_HANDSHAKE;
	connection_lose(context, why);
}

static void
refuse(struct redis *redis, struct check *check, enum unavailable why)
{
	counter_add(redis->settings.counters->failures[why], 1);
	check->done(check, &(const struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why });
}

void
store_put(struct redis *redis, struct call *call)
{
	if (redis->state == REDIS_READY) {
		connection_send(redis, call);
		return;
	}
	call_push(&redis->waiting, call);
	if (redis->state == REDIS_DOWN)
		connection_start(redis);
}

bool
store_is_idle(const struct redis *redis)
{
	return redis->live == NULL && redis->waiting.count == 0 && redis->sent.count == 0 &&
		redis->kept.calls.count == 0;
}

bool
store_may_ask(struct redis *redis)
{
	if (!breaker_is_open(redis->breaker))
		return true;
	if (!timer_is_set(redis->probe_timer))
		set_probe_timer(redis);
	return false;
}

void
store_take_over(struct redis *redis, struct call *call)
{
	enum unavailable why = UNAVAILABLE_OVERLOAD;

	call->redis = redis;
	if (call->check == NULL) {
		leases_put(redis, call);
		return;
	}
	call_await(redis, call);
	if (!store_may_ask(redis)) {
		why = UNAVAILABLE_BREAKER;
	} else if (store_has_room(redis)) {
		store_put(redis, call);
		return;
	}
	call_unavailable(redis, call, why);
	call_free(call);
}

void
store_ask(struct redis *redis, struct check *check)
{
	if (!store_may_ask(redis)) {
		refuse(redis, check, UNAVAILABLE_BREAKER);
		return;
	}
	struct call *call = store_has_room(redis) ? call_new(redis, CALL_CHECK) : NULL;

	if (call == NULL) {
		refuse(redis, check, UNAVAILABLE_OVERLOAD);
		return;
	}
	call->script = script_of(check);
	call->check = check;
	call->brings_clock = check->now_us != 0;
	check->store_private = call;
	call_await(redis, call);
	store_put(redis, call);
}

static void
redis_decide(struct store *store, struct check *check)
{
	store_ask(redis_of(store), check);
}

static void
redis_cancel(struct store *store, struct check *check)
{
	struct redis *redis = redis_of(store);
	struct call *call = check->store_private;

	if (call == NULL)
		return;
	call->check = NULL;
	check->store_private = NULL;
	call_forget(redis, call);
}

static int
make_parts(struct redis *redis, struct err *err)
{
	redis->deadline_timer = timer_new(redis->loop, on_deadline, redis);
	redis->shake_timer = timer_new(redis->loop, on_shake_deadline, redis);
	redis->probe_timer = timer_new(redis->loop, on_probe_time, redis);
	if (redis->deadline_timer == NULL || redis->shake_timer == NULL ||
		redis->probe_timer == NULL || kept_init(redis) != 0)
		return err_set(err, "no memory for the Redis store");
	if (redis->settings.sentinels.count == 0)
		return 0;
	redis->sentinel = sentinel_new(
		redis->loop, redis->resolver, &redis->settings, &master_handler, redis);
	return redis->sentinel == NULL ? err_set(err, "no memory for the sentinels") : 0;
}

/* Of a master nothing but its name is known yet. */
static void
set_server(struct redis *redis)
{
	const struct redis_settings *settings = &redis->settings;

	if (settings->sentinels.count > 0) {
		(void)snprintf(redis->name, sizeof redis->name, "%s", settings->sentinels.master);
		return;
	}
	redis->server = settings->server;
	(void)address_text(&settings->server, redis->name);
}

void
redis_counters_find(struct redis_counters *counters)
{
	counters->latency = counter_find(COUNT_STORE_LATENCY, &SLICE("redis"));
	/* All but the memory store's. */
	for (unsigned i = 0; i < UNAVAILABLE_LOCK; i++)
		counters->failures[i] = counter_find(COUNT_STORE_FAILURES,
			(const struct slice[]){ SLICE("redis"), slice_of(unavailable_names[i]) });
}

struct redis *
redis_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	struct breaker *breaker, struct err *err)
{
	return store_new(loop, resolver, settings, breaker, NULL, err);
}

struct redis *
store_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	struct breaker *breaker, struct node *node, struct err *err)
{
	struct redis *redis = calloc(1, sizeof *redis);

	if (redis == NULL) {
		(void)err_set(err, "no memory for the Redis store");
		return NULL;
	}
	redis->store = (struct store){ .name = "redis",
		.decide = redis_decide,
		.cancel = redis_cancel,
		.release = leases_release,
		.renew = leases_renew,
		.kept = leases_kept };
	redis->loop = loop;
	redis->resolver = resolver;
	redis->settings = *settings;
	redis->breaker = breaker;
	redis->node = node;
	redis->load = node == NULL ? NULL : &node->cluster->load;
	redis->refusal_log = (struct log_throttle){ .period_us = 60 * US_PER_S, .burst = 1 };
	redis->live_end = &redis->live;
	call_list_init(&redis->waiting);
	call_list_init(&redis->sent);
	set_server(redis);
	if (make_parts(redis, err) != 0) {
		redis_free(redis);
		return NULL;
	}
	if (breaker_is_open(breaker)) {
		outage_found(redis);
		store_await_probe(redis);
	} else {
		connection_start(redis);
	}
	return redis;
}

void
redis_free(struct redis *redis)
{
	struct call *call;

	if (redis == NULL)
		return;
	while (redis->live != NULL)
		redis_cancel(&redis->store, redis->live->check);
	kept_leave(redis);
	connection_close(redis);
	kept_release(redis);
	while ((call = call_pop(&redis->waiting)) != NULL)
		call_free(call);
	sentinel_free(redis->sentinel);
	timer_free(redis->deadline_timer);
	timer_free(redis->shake_timer);
	timer_free(redis->probe_timer);
	free(redis);
}

struct store *
redis_store(struct redis *redis)
{
	return &redis->store;
}
