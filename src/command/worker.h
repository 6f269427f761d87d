/* One thread with a loop and a gate. Private to the room. */
#ifndef WEIR_COMMAND_WORKER_H
#define WEIR_COMMAND_WORKER_H

#include "weir/gate.h"

struct worker;

/* Called on the main loop when the worker has no connection left, once, after worker_stop. */
typedef void worker_empty_fn(void *context);

struct worker_settings {
	struct loop *main_loop;
	const struct gate_shared *shared;
	struct snapshot *snapshot;
	const int *sockets; /* listening; the caller's */
	const char *const *backends; /* of each socket, or NULL */
	unsigned socket_count;
	enum front_rest rest; /* what becomes of it at the stop */
	worker_empty_fn *empty;
	void *context;
};

/* Starts the thread, with all signals blocked. */
struct worker *
worker_start(const struct worker_settings *settings, struct err *err) WEIR_MUST_CHECK;

/* The next requests are served by this snapshot. */
void worker_use(struct worker *worker, struct snapshot *snapshot);

/* No new connections beyond what waits; tells `empty`. */
void worker_stop(struct worker *worker);

/* Cuts what is left and ends the thread. Returns how many requests were cut. */
unsigned worker_end(struct worker *worker);

#endif
