/*
 * The gate: a request's way from the web server to its route, the decision, and the reply or the
 * application. One a thread.
 */
#ifndef WEIR_GATE_H
#define WEIR_GATE_H

#include "weir/front.h"
#include "weir/memory.h"
#include "weir/report.h"
#include "weir/resolver.h"
#include "weir/snapshot.h"

struct gate;

/*
 * What the gates of a process have in common besides the store: the buckets of local_cap, and the
 * identities that this process has made in Redis. Reloads keep it.
 */
struct gate_commons;

struct gate_commons *gate_commons_new(struct err *err) WEIR_MUST_CHECK;

/* After the last gate. */
void gate_commons_free(struct gate_commons *commons);

/* The breaker of the snapshot's Redis, the same one that its gates use. NULL: no memory. */
struct breaker *gate_breaker(
	const struct snapshot *snapshot, struct memory *memory, struct err *err) WEIR_MUST_CHECK;

/* What all gates of the process share. */
struct gate_shared {
	struct memory *memory;
	struct report *report;
	struct gate_commons *commons;
	unsigned threads;
	bool by_mod_fcgid; /* it started this process, and gave it its socket */
};

/* Holds the snapshot for as long as it needs it. */
struct gate *gate_new(struct loop *loop, const struct gate_shared *shared,
	struct snapshot *snapshot, struct err *err) WEIR_MUST_CHECK;

/* After gate_cut. */
void gate_free(struct gate *gate);

/* `backend`: the name of the one that what arrives there is for, as long as the gate; or NULL. */
int gate_listen(struct gate *gate, int fd, const char *backend, struct err *err) WEIR_MUST_CHECK;

/* Serves a connection that is there already: non-blocking, and the gate's from now on. */
void gate_take(struct gate *gate, int fd);

/* New requests are served by this configuration from now on. -1: everything stays as it was. */
int gate_use(struct gate *gate, struct snapshot *snapshot, struct err *err) WEIR_MUST_CHECK;

/* Takes no new requests beyond what waits at the sockets; `empty` is called when the last has ended
 * and the leases that it and others held are given back. */
void gate_stop(struct gate *gate, enum front_rest rest, deferred_fn *empty, void *context);

/* Cuts what is left. Returns how many requests that were. */
unsigned gate_cut(struct gate *gate);

#endif
