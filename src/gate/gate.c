/* The gate of one thread: it ties the front, the stores and the backends together. */
#include "weir/gate.h"

#include "gate_private.h"

#include <stdlib.h>

enum { SCRATCH_MAX = 16384, HEAD_MAX = 2 * CGI_HEAD_MAX, REST_US = 20000 };

/* No two of these are one operator's question: a client's impatience, a client that stalls, our own
 * end. */
static enum gate_outcome
outcome_of(enum front_gone why)
{
	switch (why) {
	case FRONT_GONE_PEER:
		return OUTCOME_CLIENT_GONE;
	case FRONT_GONE_BODY_TIMEOUT:
		return OUTCOME_BODY_TIMEOUT;
	case FRONT_GONE_CUT:
		return OUTCOME_CUT;
	}
	return OUTCOME_CLIENT_GONE;
}

static void
on_gone(struct front_request *front, enum front_gone why)
{
	struct gate_request *request = front_owner(front);

	/* nginx closes as soon as it has Content-Length bytes: nothing was given up. */
	const bool is_answered = why == FRONT_GONE_PEER && request->exchange != NULL &&
		exchange_is_answered(request->exchange);

	ask_cancel(request);
	if (request->exchange != NULL)
		exchange_cancel(request->exchange);
	if (!is_answered)
		request->outcome = outcome_of(why);
	if (!is_answered && why == FRONT_GONE_PEER)
		counter_add(COUNT_CLIENT_GONE, 1);
	request_close(request);
}

static const struct front_handler front_handler = { .request = gate_on_request,
	.body = relay_on_body,
	.body_end = relay_on_body_end,
	.drained = relay_on_drained,
	.gone = on_gone };

/* This thread's share of what is given for the process. */
static uint64_t
share(uint64_t all, unsigned threads)
{
	return (all + threads - 1) / threads;
}

static struct front_settings
settings_of(const struct gate *gate, const struct config *config)
{
	return (struct front_settings){
		.max_connections = share(config->max_connections, gate->shared.threads),
		.told_connections = config->max_connections,
		.told_requests = config->max_in_flight,
		.max_head = config->max_head,
		.max_params = config->max_params,
		.head_timeout_us = config->head_timeout_us,
		.body_timeout_us = config->body_timeout_us,
		.by_mod_fcgid = gate->shared.by_mod_fcgid,
	};
}

int
gate_use(struct gate *gate, struct snapshot *snapshot, struct err *err)
{
	const struct front_settings settings = settings_of(gate, snapshot->config);
	struct plant *plant = plant_new(gate, snapshot, err);

	if (plant == NULL)
		return -1;
	if (gate->plant != NULL) {
		plant_retire(gate->plant);
		plant_release(gate->plant);
	}
	gate->plant = plant;
	gate->max_in_flight =
		(unsigned)share(snapshot->config->max_in_flight, gate->shared.threads);
	resolver_renew(gate->resolver);
	if (gate->front != NULL)
		front_configure(gate->front, &settings);
	return 0;
}

/* The drain's deadline ends the wait. */
static void
on_empty(void *context)
{
	struct gate *gate = context;
	unsigned kept = 0;

	for (const struct plant *plant = gate->plants; plant != NULL; plant = plant->next)
		kept += store_kept(plant->store);
	if (kept == 0)
		gate->empty(gate->empty_context);
	else
		timer_set(gate->rest, loop_now_us(gate->loop) + REST_US);
}

static int
make_parts(struct gate *gate, struct snapshot *snapshot, struct err *err)
{
	const struct front_settings settings = settings_of(gate, snapshot->config);

	gate->resolver = resolver_new(gate->loop, err);
	gate->renewal = timer_new(gate->loop, lease_on_renewal, gate);
	gate->hold = timer_new(gate->loop, follow_on_hold, gate);
	gate->rest = timer_new(gate->loop, on_empty, gate);
	if (gate->renewal == NULL || gate->hold == NULL || gate->rest == NULL)
		return err_set(err, "no memory for the gate");
	if (gate->resolver == NULL || gate_use(gate, snapshot, err) != 0)
		return -1;
	gate->front = front_new(gate->loop, &settings, &front_handler, gate, err);
	return gate->front == NULL ? -1 : 0;
}

struct gate *
gate_new(struct loop *loop, const struct gate_shared *shared, struct snapshot *snapshot,
	struct err *err)
{
	struct gate *gate = calloc(1, sizeof *gate);

	if (gate == NULL) {
		(void)err_set(err, "no memory for the gate");
		return NULL;
	}
	gate->loop = loop;
	gate->shared = *shared;
	buf_init(&gate->scratch, SCRATCH_MAX);
	buf_init(&gate->head, HEAD_MAX);
	gate->address_log = (struct log_throttle){ .period_us = 60 * US_PER_S, .burst = 1 };
	gate->claim_log = gate->address_log;
	gate->resume.run = follow_on_resume;
	gate->resume.context = gate;
	gate->overflow_log = gate->address_log;
	gate->memory_log = gate->address_log;
	gate->homeless_log = gate->address_log;
	gate->length_log = gate->address_log;
	gate->spool_log = gate->address_log;
	gate->password_log = gate->address_log;
	gate->forwarded_log = (struct log_throttle){ .period_us = 3600 * US_PER_S, .burst = 1 };
	if (make_parts(gate, snapshot, err) != 0) {
		gate_free(gate);
		return NULL;
	}
	return gate;
}

void
gate_free(struct gate *gate)
{
	if (gate == NULL)
		return;
	front_free(gate->front);
	while (gate->plants != NULL)
		plant_free(gate->plants);
	loop_undefer(gate->loop, &gate->resume);
	timer_free(gate->renewal);
	timer_free(gate->rest);
	timer_free(gate->hold);
	rejections_free(gate->rejections);
	resolver_free(gate->resolver);
	buf_release(&gate->scratch);
	buf_release(&gate->head);
	free(gate);
}

int
gate_listen(struct gate *gate, int fd, const char *backend, struct err *err)
{
	return front_listen(gate->front, fd, (void *)(uintptr_t)backend, err);
}

void
gate_take(struct gate *gate, int fd)
{
	front_take(gate->front, fd, NULL);
}

void
gate_stop(struct gate *gate, enum front_rest rest, deferred_fn *empty, void *context)
{
	gate->empty = empty;
	gate->empty_context = context;
	plant_retire(gate->plant);
	front_stop(gate->front, rest, on_empty, gate);
}

unsigned
gate_cut(struct gate *gate)
{
	const unsigned cut = front_cut_all(gate->front);

	counter_add(COUNT_DRAIN_CUT, cut);
	return cut;
}
