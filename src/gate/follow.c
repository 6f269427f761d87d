/*
 * When what was known of an exhausted bucket has ended, the next request asks Redis again. Those
 * that come before the answer wait for it: else a flood over many connections would ask once for
 * each of them, and a flood is what this is for. Nobody waits longer than the one who asked, whose
 * deadline is the earlier one.
 *
 * Who has waited looks whether it is known to be rejected now, and asks by itself if it is not. If
 * the one was rejected, but for so short a time that this is over, it waits again for the first of
 * those that waited with it: else all would ask a moment before each refill. It does so a few times
 * at the most, and within the first half of its time. If Redis did not decide in time for the one,
 * it is answered as one for which it did not either.
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

bool
follow(struct gate_request *request)
{
	const int64_t now = clock_monotonic_us();

	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);
		struct gate_request *asker = rejections_asker(request->gate->rejections, &key, now);

		if (asker != NULL) {
			request->followed++;
			enlist(&asker->followers, request);
			return true;
		}
	}
	return false;
}

void
follow_lead(struct gate_request *request)
{
	const int64_t now = clock_monotonic_us();

	request->asks_for_all = true;
	for (unsigned i = 0; i < request->check.count; i++) {
		const struct rejection_key key = bounds_key(request, i);

		rejections_set_asker(request->gate->rejections, &key, now, request);
	}
}

void
follow_end(struct gate_request *request, enum follow_end how)
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
		follower->followed_to = how;
		enlist(&gate->resumed, follower);
	}
	if (gate->resumed != NULL)
		loop_defer(gate->loop, &gate->resume);
}

static bool
may_follow_again(const struct gate_request *request)
{
	const int64_t half = request->plant->snapshot->config->redis_deadline_us / 2;

	return request->followed_to == FOLLOW_REJECTED && request->followed < FOLLOWED_MAX &&
		clock_monotonic_us() < request->check.deadline_us - half;
}

static void
go_on(struct gate_request *request)
{
	if (bounds_reject(request))
		return;
	if (request->followed_to == FOLLOW_UNANSWERED)
		ask_is_down(request, request->plant->store);
	else if (!may_follow_again(request) || !follow(request))
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
