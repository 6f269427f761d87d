/*
 * Calls: what is sent to Redis or waits to be, in lists in the order of sending; and those whose
 * checks are waited for, in the order of their deadlines.
 */
#include "redis_private.h"

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

struct call *
call_new(struct redis *redis, enum call_kind kind)
{
	struct call *call = calloc(1, sizeof *call);

	if (call == NULL)
		return NULL;
	call->redis = redis;
	call->kind = kind;
	if (redis->load != NULL)
		redis->load->calls++;
	return call;
}

void
call_free(struct call *call)
{
	call_weigh(call, 0);
	if (call->redis->load != NULL)
		call->redis->load->calls--;
	if (call->twin != NULL)
		call->twin->twin = NULL;
	redisFreeCommand(call->arguments);
	free(call);
}

void
call_weigh(struct call *call, size_t bytes)
{
	struct load *load = call->redis->load;

	if (load != NULL)
		load->bytes = load->bytes - call->bytes + bytes;
	call->bytes = bytes;
}

/* ---- leases ---- */

void
call_pair(struct call *one, struct call *other)
{
	one->twin = other;
	other->twin = one;
}

void
call_given_back(struct call *call, bool was_held)
{
	if (was_held && call->twin != NULL)
		call->twin->is_moot = true;
	else if (!was_held && call->is_last)
		counter_add(COUNT_LEASES_LEFT, 1);
}

void
call_left(struct call *call)
{
	if (call->twin != NULL)
		call->twin->is_last = true;
	else if (!call->is_moot)
		counter_add(COUNT_LEASES_LEFT, 1);
}

/* ---- those that are waited for ---- */

void
call_list_init(struct call_list *list)
{
	*list = (struct call_list){ NULL, &list->first, 0 };
}

/* Nearly all come in the order of their deadlines; those do not that have waited, before they came,
 * for what another one was answered. */
static struct call **
live_place(struct redis *redis, int64_t deadline_us)
{
	struct call **at = redis->live_end;
	const struct call *last =
		(const struct call *)((uintptr_t)at - offsetof(struct call, live_next));

	if (redis->live == NULL || last->check->deadline_us <= deadline_us)
		return at;
	at = &redis->live;
	while ((*at)->check->deadline_us <= deadline_us)
		at = &(*at)->live_next;
	return at;
}

void
call_await(struct redis *redis, struct call *call)
{
	struct call **at = live_place(redis, call->check->deadline_us);

	call->live_next = *at;
	call->live_at = at;
	if (*at != NULL)
		(*at)->live_at = &call->live_next;
	else
		redis->live_end = &call->live_next;
	*at = call;
	if (redis->live == call)
		timer_set(redis->deadline_timer, call->check->deadline_us);
}

void
call_forget(struct redis *redis, struct call *call)
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
	call_forget(redis, call);
	if (decision->verdict == VERDICT_UNAVAILABLE)
		counter_add(redis->settings.counters->failures[decision->why], 1);
	else
		histogram_add(redis->settings.counters->latency,
			loop_now_us(redis->loop) -
				(check->deadline_us - redis->settings.deadline_us));
	check->done(check, decision);
}

void
call_unavailable(struct redis *redis, struct call *call, enum unavailable why)
{
	if (call->kind == CALL_RELEASE)
		call_left(call);
	call_answer(redis, call,
		&(const struct decision){ .verdict = VERDICT_UNAVAILABLE, .why = why });
}

void
call_lost(struct redis *redis, struct call *call, enum unavailable why)
{
	if (call->kind == CALL_RELEASE) {
		kept_put(redis, call);
		return;
	}
	call_unavailable(redis, call, why);
	call_free(call);
}
