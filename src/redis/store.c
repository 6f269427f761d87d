/*
 * The store: checks with their deadlines, and what happens when Redis does not keep them.
 *
 * All checks have the same deadline from their start, so the live ones, in the order in which they
 * came, are in the order of their deadlines, and one timer for the first is enough.
 */
#include "redis_private.h"

#include "weir/log.h"

#include <stdlib.h>

void
call_push(struct call_list *list, struct call *call)
{
	call->next = NULL;
	*list->end = call;
	list->end = &call->next;
	list->count++;
}

struct call *
call_pop(struct call_list *list)
{
	struct call *call = list->first;

	if (call == NULL)
		return NULL;
	list->first = call->next;
	if (list->first == NULL)
		list->end = &list->first;
	list->count--;
	return call;
}

static void
list_init(struct call_list *list)
{
	*list = (struct call_list){ NULL, &list->first, 0 };
}

static void
live_add(struct redis *redis, struct call *call)
{
	call->live_next = NULL;
	call->live_at = redis->live_end;
	*redis->live_end = call;
	redis->live_end = &call->live_next;
	if (redis->live == call)
		timer_set(redis->deadline_timer, call->check->deadline_us);
}

static void
live_remove(struct redis *redis, struct call *call)
{
	*call->live_at = call->live_next;
	if (call->live_next != NULL)
		call->live_next->live_at = call->live_at;
	else
		redis->live_end = call->live_at;
	if (redis->live == NULL)
		timer_cancel(redis->deadline_timer);
}

void
call_answer(struct redis *redis, struct call *call, const struct decision *decision)
{
	struct check *check = call->check;

	if (check == NULL)
		return;
	call->check = NULL;
	check->store_private = NULL;
	live_remove(redis, call);
	if (decision->verdict == VERDICT_UNAVAILABLE)
		counter_add(redis->failures[decision->why], 1);
	else
		histogram_add(redis->latency,
			loop_now_us(redis->loop) -
				(check->deadline_us - redis->settings.deadline_us));
	check->done(check, decision);
}

void
call_unavailable(struct redis *redis, struct call *call, enum unavailable why)
{
	call_answer(redis, call,
		&(const struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why });
}

/* Calls that nobody waits for any more are dropped; they were never sent. */
void
store_send_waiting(struct redis *redis)
{
	struct call_list waiting = redis->waiting;

	list_init(&redis->waiting);
	while (waiting.first != NULL) {
		struct call *call = waiting.first;

		waiting.first = call->next;
		if (call->check != NULL)
			connection_send(redis, call);
		else
			free(call);
	}
}

static void
drop_waiting(struct redis *redis, enum unavailable why)
{
	struct call *call;

	while ((call = call_pop(&redis->waiting)) != NULL) {
		call_unavailable(redis, call, why);
		free(call);
	}
}

void
store_await_probe(struct redis *redis)
{
	const int64_t at = breaker_probe_at(redis->breaker);

	drop_waiting(redis, UNAVAILABLE_BREAKER);
	if (at != 0)
		timer_set(redis->probe_timer, at);
}

void
store_breaker_opened(struct redis *redis, const char *why)
{
	counter_add(COUNT_BREAKER_OPENED, 1);
	log_warn("Redis cannot be used: the breaker is open, and routes do what their store_down "
		 "says.",
		LOG_TEXT("server", redis->name), LOG_TEXT("reason", why));
	if (redis->state != REDIS_DOWN)
		connection_close(redis);
	store_await_probe(redis);
}

/* The back-off is over. One process of the host connects; a connection that is ready has made its
 * probe. */
static void
on_probe_time(void *context)
{
	struct redis *redis = context;

	if (!breaker_is_open(redis->breaker))
		return;
	if (!breaker_take_probe(redis->breaker, loop_now_us(redis->loop))) {
		store_await_probe(redis);
		return;
	}
	if (redis->state != REDIS_DOWN)
		connection_close(redis);
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
	connection_lose(context, "it did not answer within the deadline");
}

static struct redis *
redis_of(struct store *store)
{
	return (struct redis *)((uintptr_t)store - offsetof(struct redis, store));
}

static void
refuse(struct redis *redis, struct check *check, enum unavailable why)
{
	counter_add(redis->failures[why], 1);
	check->done(check, &(const struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why });
}

static void
redis_decide(struct store *store, struct check *check)
{
	struct redis *redis = redis_of(store);

	if (breaker_is_open(redis->breaker)) {
		if (!timer_is_set(redis->probe_timer))
			timer_set(redis->probe_timer, breaker_probe_at(redis->breaker));
		refuse(redis, check, UNAVAILABLE_BREAKER);
		return;
	}
	/* Also those that nobody waits for any more: they still hold memory. */
	if (redis->waiting.count + redis->sent.count >= CHECKS_MAX ||
		(redis->stream != NULL && stream_queued(redis->stream) >= QUEUED_MAX)) {
		refuse(redis, check, UNAVAILABLE_OVERLOAD);
		return;
	}
	struct call *call = calloc(1, sizeof *call);

	if (call == NULL) {
		refuse(redis, check, UNAVAILABLE_OVERLOAD);
		return;
	}
	call->kind = CALL_CHECK;
	call->check = check;
	call->brings_clock = check->now_us != 0;
	check->store_private = call;
	live_add(redis, call);
	if (redis->state == REDIS_READY) {
		connection_send(redis, call);
		return;
	}
	call_push(&redis->waiting, call);
	if (redis->state == REDIS_DOWN)
		connection_start(redis);
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
	live_remove(redis, call);
}

static int
make_parts(struct redis *redis, struct err *err)
{
	redis->deadline_timer = timer_new(redis->loop, on_deadline, redis);
	redis->shake_timer = timer_new(redis->loop, on_shake_deadline, redis);
	redis->probe_timer = timer_new(redis->loop, on_probe_time, redis);
	if (redis->deadline_timer == NULL || redis->shake_timer == NULL ||
		redis->probe_timer == NULL)
		return err_set(err, "no memory for the Redis store");
	redis->latency = counter_find(COUNT_STORE_LATENCY, &SLICE("redis"));
	for (unsigned i = 0; i < UNAVAILABLE_REASONS; i++)
		redis->failures[i] = counter_find(COUNT_STORE_FAILURES,
			(const struct slice[]){ SLICE("redis"), slice_of(unavailable_names[i]) });
	return 0;
}

struct redis *
redis_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	struct breaker *breaker, struct err *err)
{
	struct redis *redis = calloc(1, sizeof *redis);

	if (redis == NULL) {
		(void)err_set(err, "no memory for the Redis store");
		return NULL;
	}
	redis->store =
		(struct store){ .name = "redis", .decide = redis_decide, .cancel = redis_cancel };
	redis->loop = loop;
	redis->resolver = resolver;
	redis->settings = *settings;
	redis->breaker = breaker;
	redis->refusal_log = (struct log_throttle){ .period_us = 60 * US_PER_S, .burst = 1 };
	redis->live_end = &redis->live;
	list_init(&redis->waiting);
	list_init(&redis->sent);
	(void)address_text(&settings->server, redis->name);
	if (make_parts(redis, err) != 0) {
		redis_free(redis);
		return NULL;
	}
	if (breaker_is_open(breaker))
		store_await_probe(redis);
	else
		connection_start(redis);
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
	connection_close(redis);
	while ((call = call_pop(&redis->waiting)) != NULL)
		free(call);
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
