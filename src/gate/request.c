/*
 * A request's life: from its arrival, when its head is whole, to its end, of which there are many
 * and which all come through request_close. Three outcomes are never merged: rejected by a policy
 * (429), not decided because the store is away (what the route's store_down says), and not a
 * request that could be decided (400, 403).
 */
#include "gate_private.h"

#include "weir/log.h"

#include <string.h>

void
request_close(struct gate_request *request)
{
	struct plant *plant = request->plant;

	lease_end(request);
	upload_release(request);
	counter_add(request->route->outcomes[request->outcome], 1);
	counter_add(COUNT_REQUESTS_IN_FLIGHT, -1);
	request->gate->in_flight--;
	front_set_owner(request->front, NULL);
	plant_release(plant);
}

void
request_pass(struct gate_request *request, enum gate_outcome outcome)
{
	request->outcome = outcome == OUTCOME_ADMITTED ? request->would : outcome;
	relay_start(request);
}

void
request_would(struct gate_request *request, enum gate_outcome outcome)
{
	if (request->would == OUTCOME_ADMITTED)
		request->would = outcome;
}

void
gate_log_once_a_minute(struct gate *gate, struct log_throttle *throttle, const char *message)
{
	uint64_t held;

	if (log_throttle_pass(throttle, loop_now_us(gate->loop), &held))
		log_warn(message, LOG_KEPT_BACK(held));
}

/* What is sent by mistake more often than not. */
static void
look_at_client(struct gate *gate, const struct view *view)
{
	char proxy[IP_TEXT_SIZE];
	uint64_t held;

	if (view->user_is_claimed)
		gate_log_once_a_minute(gate, &gate->claim_log,
			"REMOTE_USER came without AUTH_TYPE and is not believed: nginx passes on "
			"what any client claims.");
	if (!view->proxy_names_nobody)
		return;
	counter_add(COUNT_FORWARDED_MISSING, 1);
	if (log_throttle_pass(&gate->forwarded_log, loop_now_us(gate->loop), &held))
		log_warn("A trusted proxy named no client in X-Forwarded-For, so its request "
			 "counts as its own; that is right for a health check only.",
			LOG_TEXT("proxy", ip_text(view->ip, proxy)), LOG_KEPT_BACK(held));
}

static void
start(struct gate_request *request)
{
	struct gate *gate = request->gate;

	look_at_client(gate, &request->view);
	if (gate->in_flight > gate->max_in_flight) {
		request->outcome = OUTCOME_BUSY;
		settle_refused(request, "max_in_flight of [weir]", 503, NULL, true);
		answer_error(request, 503, GATE_BUSY_DETAIL, GATE_BUSY_RETRY_S);
		return;
	}
	if (identify(request))
		ask_start(request);
}

static void
refuse(struct gate *gate, struct front_request *front, unsigned status, const char *why)
{
	counter_add(gate->plant->snapshot->bad_requests, 1);
	log_debug("A request was refused.", LOG_INT("status", status), LOG_TEXT("reason", why));
	answer_bare(front, status, status == 400 ? "Bad request." : GATE_BUSY_DETAIL,
		status == 503 ? GATE_BUSY_RETRY_S : 0);
}

/* Its route names no backend, and it came to a socket that belongs to none: an inherited one, or
 * one whose backend is gone since a reload. */
static void
refuse_homeless(struct gate *gate, struct front_request *front, const char *route)
{
	uint64_t held;

	counter_add(gate->plant->snapshot->bad_requests, 1);
	if (log_throttle_pass(&gate->homeless_log, loop_now_us(gate->loop), &held))
		log_warn("A request came to a socket that is no backend's, and its route names "
			 "none.",
			LOG_TEXT("route", route), LOG_KEPT_BACK(held));
	answer_bare(front, 502, "There is no application here.", 0);
}

/* The route's, or the one whose socket it came to. -1: there is none. */
static int
backend_of(
	const struct snapshot *snapshot, const struct snapshot_route *route, const char *listener)
{
	const struct config *config = snapshot->config;

	if (route->backend >= 0 || listener == NULL)
		return route->backend;
	for (unsigned i = 0; i < config->backend_count; i++) {
		if (strcmp(config->backends[i]->name, listener) == 0)
			return (int)i;
	}
	return -1;
}

void
gate_on_request(void *context, struct front_request *front, void *listener)
{
	struct gate *gate = context;
	struct gate_request *request = arena_alloc(front_arena(front), sizeof *request);
	struct err err;

	if (request == NULL) {
		refuse(gate, front, 503, "no memory");
		return;
	}
	memset(request, 0, sizeof *request);
	if (view_init(&request->view, gate->plant->snapshot->routes, front_env(front),
		    front_arena(front), &err) != 0) {
		refuse(gate, front, 400, err.text);
		return;
	}
	const struct snapshot *snapshot = gate->plant->snapshot;
	const int route = routes_match(snapshot->routes, &request->view);

	if (route < 0) {
		refuse(gate, front, 400,
			route == -2 ? "a pattern's match limit was exceeded" : "no route fits");
		return;
	}
	const int backend = backend_of(snapshot, &snapshot->route_list[route], listener);

	if (backend < 0) {
		refuse_homeless(gate, front, snapshot->route_list[route].config->name);
		return;
	}
	request->gate = gate;
	request->backend = (unsigned)backend;
	request->front = front;
	request->plant = gate->plant;
	request->route = &snapshot->route_list[route];
	plant_hold(request->plant);
	gate->in_flight++;
	counter_add(COUNT_REQUESTS_IN_FLIGHT, 1);
	front_set_owner(front, request);
	start(request);
}
