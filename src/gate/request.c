/*
 * A request from its arrival to its decision. Three outcomes are never merged: rejected by a policy
 * (429), not decided because the store is away (what the route's store_down says), and not a
 * request that could be decided (400, 403).
 */
#include "gate_private.h"

#include "weir/log.h"

#include <string.h>

enum { STORE_DOWN_RETRY_S = 2, BUSY_RETRY_S = 1 };

static void on_decision(struct check *check, const struct decision *decision);

static struct gate_request *
request_of(struct check *check)
{
	return (struct gate_request *)((uintptr_t)check - offsetof(struct gate_request, check));
}

void
request_close(struct gate_request *request)
{
	struct plant *plant = request->plant;

	counter_add(request->route->outcomes[request->outcome], 1);
	counter_add(COUNT_REQUESTS_IN_FLIGHT, -1);
	request->gate->in_flight--;
	front_set_owner(request->front, NULL);
	plant_release(plant);
}

/* ---- the decision ---- */

static void
pass(struct gate_request *request, enum gate_outcome outcome)
{
	request->outcome = outcome;
	relay_start(request);
}

static struct slice
client_text(const struct gate_request *request, char out[IP_TEXT_SIZE])
{
	return request->view.has_ip ? slice_of(ip_text(request->view.ip, out))
				    : view_param(&request->view, "REMOTE_ADDR");
}

static void
report(const struct gate_request *request, const struct outcome *outcome, bool is_enforced)
{
	char client[IP_TEXT_SIZE];
	struct report_rejection rejection = {
		.client = client_text(request, client),
		.route = slice_of(request->route->config->name),
		.method = request->view.method,
		.path = request->view.path,
		.outcome = outcome,
		.retry_after_s = decision_retry_after_s(&request->decision),
		.is_enforced = is_enforced,
	};

	for (unsigned i = 0; i < request->check.count; i++) {
		if (request->check.items[i].limit == outcome->limit)
			rejection.identity = request->check.items[i].key;
	}
	report_rejected(request->gate->shared.report, &rejection);
}

/* By limit: rejected, would be, or spent. A limit that was spared because another one rejected is
 * not counted. */
static void
count_limits(const struct gate_request *request, bool enforce)
{
	const struct decision *decision = &request->decision;

	for (unsigned item = 0, at = 0; item < request->check.count; item++) {
		const struct limit *limit = request->check.items[item].limit;
		bool violated = false;

		for (unsigned i = 0; i < limit->policy_count; i++)
			violated = decision->outcomes[at++].violated || violated;
		if (violated)
			counter_add(limit->results[enforce && limit->enforce ? LIMIT_REJECTED
									     : LIMIT_WOULD_REJECT],
				1);
		else if (decision->verdict == VERDICT_ADMITTED)
			counter_add(limit->results[LIMIT_ADMITTED], 1);
	}
}

/* The first violated policy of a limit that does not reject; NULL if there is none. */
static const struct outcome *
shadow_violated(const struct decision *decision)
{
	for (unsigned i = 0; i < decision->count; i++) {
		if (decision->outcomes[i].violated && decision->outcomes[i].shadow)
			return &decision->outcomes[i];
	}
	return NULL;
}

static void
settle(struct gate_request *request, const struct decision *decision)
{
	const bool enforce = request->plant->snapshot->config->enforce;
	const struct outcome *violated = decision_violated(decision),
			     *shadow = shadow_violated(decision);

	request->decision = *decision;
	request->has_decision = true;
	if (decision->clamped)
		counter_add(COUNT_CLOCK_CLAMPED, 1);
	count_limits(request, enforce);
	if (shadow != NULL)
		report(request, shadow, false);
	if (decision->verdict == VERDICT_ADMITTED) {
		pass(request, shadow == NULL ? OUTCOME_ADMITTED : OUTCOME_WOULD_REJECT);
		return;
	}
	report(request, violated, enforce);
	if (!enforce) {
		request->has_decision = false;
		pass(request, OUTCOME_WOULD_REJECT);
		return;
	}
	request->outcome = OUTCOME_REJECTED;
	answer_rejected(request);
}

static void
ask(struct gate_request *request, struct store *store)
{
	request->asked = store;
	store_decide(store, &request->check);
}

static void
store_is_down(struct gate_request *request, const struct store *asked)
{
	struct store *memory = memory_store(request->gate->shared.memory);
	const enum store_down what = request->route->config->store_down;

	if (what == STORE_DOWN_LOCAL && asked != memory) {
		ask(request, memory);
	} else if (what == STORE_DOWN_REJECT) {
		request->outcome = OUTCOME_STORE_DOWN;
		answer_error(request, 503,
			"The service cannot decide about requests at the moment. Try again "
			"shortly.",
			STORE_DOWN_RETRY_S);
	} else {
		pass(request, OUTCOME_UNDECIDED);
	}
}

static void
on_decision(struct check *check, const struct decision *decision)
{
	struct gate_request *request = request_of(check);
	const struct store *asked = request->asked;

	request->asked = NULL;
	switch (decision->verdict) {
	case VERDICT_ADMITTED:
	case VERDICT_REJECTED:
		settle(request, decision);
		break;
	case VERDICT_UNAVAILABLE:
		store_is_down(request, asked);
		break;
	}
}

/* ---- the arrival ---- */

static void
log_once_a_minute(struct gate *gate, struct log_throttle *throttle, const char *message)
{
	uint64_t held;

	if (log_throttle_pass(throttle, loop_now_us(gate->loop), &held))
		log_warn(message, LOG_INT("kept_back", held));
}

/* True: the check has the limit's bucket, or the limit does not apply. False: the request was
 * answered. */
static bool
add_limit(struct gate_request *request, const struct limit *limit)
{
	struct gate *gate = request->gate;
	const struct snapshot *snapshot = request->plant->snapshot;
	struct check_item *item = &request->check.items[request->check.count];

	switch (identity_key(limit->config, &request->view,
		snapshot->has_hash_key ? snapshot->hash_key : NULL, front_arena(request->front),
		&item->key)) {
	case IDENTITY_NO_ADDRESS:
		counter_add(COUNT_ADDRESS_MISSING, 1);
		log_once_a_minute(gate, &gate->address_log,
			"A request came without a usable REMOTE_ADDR; all such requests share one "
			"bucket. Does the web "
			"server send it?");
		break;
	case IDENTITY_FOUND:
		break;
	case IDENTITY_SKIP:
		return true;
	case IDENTITY_REJECT:
		request->outcome = OUTCOME_UNIDENTIFIED;
		answer_error(request, 403, "This request does not say who it comes from.", 0);
		return false;
	case IDENTITY_NO_MEMORY:
		request->outcome = OUTCOME_BUSY;
		answer_error(request, 503, "The service is busy. Try again shortly.", BUSY_RETRY_S);
		return false;
	}
	item->limit = limit;
	item->shadow = !limit->enforce;
	request->check.count++;
	return true;
}

static void
start(struct gate_request *request)
{
	struct gate *gate = request->gate;
	const struct config *config = request->plant->snapshot->config;
	const struct snapshot_route *route = request->route;

	if (request->view.user_is_claimed)
		log_once_a_minute(gate, &gate->claim_log,
			"REMOTE_USER came without AUTH_TYPE and is not believed: nginx passes on "
			"what any client claims.");
	if (gate->in_flight > gate->max_in_flight) {
		request->outcome = OUTCOME_BUSY;
		answer_error(request, 503, "The service is busy. Try again shortly.", BUSY_RETRY_S);
		return;
	}
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (!add_limit(request, route->limits[i]))
			return;
	}
	if (request->check.count == 0) {
		pass(request, OUTCOME_ADMITTED);
		return;
	}
	request->check.cost = route->config->cost.fixed;
	request->check.deadline_us = loop_now_us(gate->loop) + config->redis_deadline_us;
	request->check.done = on_decision;
	ask(request, request->plant->store);
}

static void
refuse(struct gate *gate, struct front_request *front, unsigned status, const char *why)
{
	counter_add(gate->plant->snapshot->bad_requests, 1);
	log_debug("A request was refused.", LOG_INT("status", status), LOG_TEXT("reason", why));
	answer_bare(front, status,
		status == 400 ? "Bad request." : "The service is busy. Try again shortly.",
		status == 503 ? BUSY_RETRY_S : 0);
}

void
gate_on_request(void *context, struct front_request *front, void *listener)
{
	struct gate *gate = context;
	struct gate_request *request = arena_alloc(front_arena(front), sizeof *request);
	struct err err;

	(void)listener;
	if (request == NULL) {
		refuse(gate, front, 503, "no memory");
		return;
	}
	memset(request, 0, sizeof *request);
	if (view_init(&request->view, front_env(front), front_arena(front), &err) != 0) {
		refuse(gate, front, 400, err.text);
		return;
	}
	const int route = routes_match(gate->plant->snapshot->routes, &request->view);

	if (route < 0) {
		refuse(gate, front, 400,
			route == -2 ? "a pattern's match limit was exceeded" : "no route fits");
		return;
	}
	request->gate = gate;
	request->front = front;
	request->plant = gate->plant;
	request->route = &gate->plant->snapshot->route_list[route];
	plant_hold(request->plant);
	gate->in_flight++;
	counter_add(COUNT_REQUESTS_IN_FLIGHT, 1);
	front_set_owner(front, request);
	start(request);
}
