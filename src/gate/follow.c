/*
 * When what was known of an exhausted bucket has ended, the next request asks Redis again, and
 * those that come before the answer wait for it: else a flood over many connections would ask once
 * for each of them, and a flood is what this is for.
 *
 * What is known ends early: by as much as the check was under way, since nobody is to be refused
 * whom Redis would admit. Whoever asks then may be there a moment before the refill, in vain, and
 * the next as well. So the one who is to ask is held until the refill has surely happened, and the
 * others wait for it meanwhile. Nobody is refused for that, and the delay is shorter than one way
 * to Redis and back has been.
 *
 * Who has waited looks whether it is known to be rejected now. If it is not, it asks by itself when
 * there is enough left for it too, and else waits again, for the last of those who ask. It waits a
 * few times at the most, and within the first half of its time. If Redis did not decide in time for
 * the one, it is answered as one for which it did not either.
 */
#include "gate_private.h"

#include "weir/clock.h"

enum { FOLLOWED_MAX = 4 };

static void
enlist(struct gate_request **list, struct gate_request *request)
{
	request->follow_next = *list;
	request->follow_at = list;
	if (*list != NULL)
		(*list)->follow_at = &request->follow_next;
	*list = request;
}

void
follow_leave(struct gate_request *request)
{
	if (request->follow_at == NULL)
		return;
	*request->follow_at = request->follow_next;
	if (request->follow_next != NULL)
		request->follow_next->follow_at = request->follow_at;
	request->follow_at = NULL;
}

/* From then on it waits for nothing but the answer of its own. */
static int64_t
patience_us(const struct gate_request *request)
{
	return request->check.deadline_us - request->plant->snapshot->config->redis_deadline_us / 2;
}

/* Joins those who wait for the one that asks about a bucket of this request. */
static bool
follow_asker(struct gate_request *request, int64_t now_us)
{
	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);
		struct gate_request *asker = rejections_asker(
			request->gate->rejections, &key, request->check.cost, now_us);

		if (asker != NULL) {
			request->followed++;
			enlist(&asker->followers, request);
			return true;
		}
	}
	return false;
}

/* The one who is to ask waits for the refill. */
static bool
hold(struct gate_request *request, int64_t now_us)
{
	struct gate *gate = request->gate;
	int64_t at = now_us;

	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);
		const int64_t then =
			rejections_ask_at(gate->rejections, &key, request->check.cost, now_us);

		at = then > at ? then : at;
	}
	if (at > patience_us(request))
		at = patience_us(request);
	if (at <= now_us)
		return false;
	follow_lead(request);
	request->held_until_us = at;
	enlist(&gate->held, request);
	if (!timer_is_set(gate->hold) || at < gate->hold_until_us) {
		gate->hold_until_us = at;
		timer_set(gate->hold, at);
	}
	return true;
}

bool
follow(struct gate_request *request)
{
	const int64_t now = clock_monotonic_us();

	return follow_asker(request, now) || hold(request, now);
}

void
follow_on_hold(void *context)
{
	struct gate *gate = context;
	const int64_t now = loop_now_us(gate->loop);
	int64_t next_us = INT64_MAX;

	for (struct gate_request *request = gate->held, *next; request != NULL; request = next) {
		next = request->follow_next;
		if (request->held_until_us <= now) {
			follow_leave(request);
			enlist(&gate->resumed, request);
		} else if (request->held_until_us < next_us) {
			next_us = request->held_until_us;
		}
	}
	if (gate->resumed != NULL)
		loop_defer(gate->loop, &gate->resume);
	if (gate->held != NULL) {
		gate->hold_until_us = next_us;
		timer_set(gate->hold, next_us);
	}
}

void
follow_lead(struct gate_request *request)
{
	const int64_t now = clock_monotonic_us();

	if (request->asks_for_all)
		return;
	request->asks_for_all = true;
	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);

		rejections_set_asker(
			request->gate->rejections, &key, request->check.cost, now, request);
	}
}

void
follow_end(struct gate_request *request, bool is_answered)
{
	struct gate *gate = request->gate;

	if (!request->asks_for_all)
		return;
	request->asks_for_all = false;
	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);

		rejections_unset_asker(gate->rejections, &key, request);
	}
	/* The last that came is the first, and so the first is again the first. */
	while (request->followers != NULL) {
		struct gate_request *follower = request->followers;

		follow_leave(follower);
		follower->is_unanswered = !is_answered;
		enlist(&gate->resumed, follower);
	}
	if (gate->resumed != NULL)
		loop_defer(gate->loop, &gate->resume);
}

static void
go_on(struct gate_request *request)
{
	const bool may_wait =
		request->followed < FOLLOWED_MAX && clock_monotonic_us() < patience_us(request);

	if (request->held_until_us != 0) {
		request->held_until_us = 0;
		ask_on(request);
		return;
	}
	if (bounds_reject(request))
		return;
	if (request->is_unanswered)
		ask_is_down(request, request->plant->store);
	else if (!may_wait || !follow(request))
		ask_on(request);
}

void
follow_on_resume(void *context)
{
	struct gate *gate = context;

	while (gate->resumed != NULL) {
		struct gate_request *request = gate->resumed;

		follow_leave(request);
		go_on(request);
	}
}
