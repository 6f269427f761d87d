/*
 * Asking who decides: what is known already, the caps of this process, the store, and when that is
 * away what the route's store_down says.
 */
#include "gate_private.h"

enum { STORE_DOWN_RETRY_S = 2 };

static struct gate_request *
request_of(struct check *check)
{
	return (struct gate_request *)((uintptr_t)check - offsetof(struct gate_request, check));
}

static void
ask(struct gate_request *request, struct store *store)
{
	request->asked = store;
	request->sent_us = loop_now_us(request->gate->loop);
	store_decide(store, &request->check);
}

/* Whether any policy that was asked about could have rejected the request. */
static bool
is_enforced(const struct gate_request *request)
{
	const struct check *check = &request->check;

	if (!request->plant->snapshot->config->enforce)
		return false;
	for (unsigned i = 0; i < check->count; i++) {
		const struct limit *limit = check->items[i].limit;

		for (unsigned j = 0; !check->items[i].shadow && j < limit->policy_count; j++) {
			if (!limit->policies[j].shadow)
				return true;
		}
	}
	return false;
}

static void
refuse_undecided(struct gate_request *request)
{
	const bool is_refused = is_enforced(request);

	settle_refused(request, "store_down = reject", 503, NULL, is_refused);
	if (!is_refused) {
		request_pass(request, OUTCOME_WOULD_REFUSE);
		return;
	}
	request->outcome = OUTCOME_STORE_DOWN;
	answer_error(request, 503,
		"The service cannot decide about requests at the moment. Try again shortly.",
		STORE_DOWN_RETRY_S);
}

void
ask_is_down(struct gate_request *request, const struct store *asked)
{
	struct store *memory = memory_store(request->gate->shared.memory);
	const enum store_down what = request->route->config->store_down;

	if (asked == memory)
		gate_log_once_a_minute(request->gate, &request->gate->memory_log,
			"The memory store did not decide: a process that stands still may hold "
			"its lock. Requests pass, unless store_down = reject.");
	if (what == STORE_DOWN_LOCAL && asked != memory)
		ask(request, memory);
	else if (what == STORE_DOWN_REJECT)
		refuse_undecided(request);
	else
		request_pass(request, OUTCOME_UNDECIDED);
}

static void
on_decision(struct check *check, const struct decision *decision)
{
	struct gate_request *request = request_of(check);
	struct store *asked = request->asked;

	request->asked = NULL;
	switch (decision->verdict) {
	case VERDICT_ADMITTED:
		follow_end(request, true);
		lease_hold(request, asked);
		break;
	case VERDICT_REJECTED:
		follow_end(request, true);
		break;
	case VERDICT_UNAVAILABLE:
		follow_end(request, false);
		if (decision->why != UNAVAILABLE_BREAKER && decision->why != UNAVAILABLE_OVERLOAD)
			lease_give_up(request, asked);
		ask_is_down(request, asked);
		return;
	}
	if (asked != memory_store(request->gate->shared.memory))
		bounds_learn(request, decision);
	settle(request, decision);
}

void
ask_on(struct gate_request *request)
{
	const struct plant *plant = request->plant;

	if (plant->caps != NULL) {
		/* It may end here, and items may leave the check. */
		follow_end(request, true);
		if (!bounds_cap(request))
			return;
	}
	if (request->check.count == 0) {
		request_pass(request, OUTCOME_ADMITTED);
		return;
	}
	if (plant->identities != NULL) {
		bounds_overflow(request);
		follow_lead(request);
	}
	ask(request, plant->store);
}

void
ask_start(struct gate_request *request)
{
	const struct plant *plant = request->plant;

	/* Also of who waits for another one's answer. */
	request->check.deadline_us =
		loop_now_us(request->gate->loop) + plant->snapshot->config->redis_deadline_us;
	request->check.done = on_decision;
	if (plant->identities != NULL && (bounds_reject(request) || follow(request)))
		return;
	ask_on(request);
}

void
ask_cancel(struct gate_request *request)
{
	struct store *asked = request->asked;

	follow_leave(request);
	follow_end(request, true);
	if (asked == NULL)
		return;
	request->asked = NULL;
	store_cancel(asked, &request->check);
	lease_give_up(request, asked);
}
