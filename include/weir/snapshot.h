/*
 * A configuration made ready for serving: its routes compiled, its limits prepared, its counters
 * found. Immutable and counted: a reload makes a new one, and requests that are under way keep the
 * one that they began with.
 */
#ifndef WEIR_SNAPSHOT_H
#define WEIR_SNAPSHOT_H

#include "weir/config.h"
#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/policy.h"
#include "weir/redis.h"
#include "weir/route.h"

/* What became of a request; a label of weir_requests_total. */
enum gate_outcome {
	OUTCOME_ADMITTED, /* by every limit, or there was none */
	OUTCOME_WOULD_REJECT, /* passed only because of enforce = no or shadow: else 429 */
	OUTCOME_WOULD_BLOCK, /* ... else blocked */
	OUTCOME_WOULD_REFUSE, /* ... else unidentified, or refused by store_down = reject */
	OUTCOME_REJECTED, /* 429 */
	OUTCOME_UNDECIDED, /* passed without a decision: store_down = admit */
	OUTCOME_STORE_DOWN, /* 503: store_down = reject */
	OUTCOME_UNIDENTIFIED, /* 403: on_missing = reject */
	OUTCOME_BLOCKED, /* 403: an override's block */
	OUTCOME_BUSY, /* 503: max_in_flight */
	OUTCOME_BACKEND_FAILED, /* 502, 503, 504, or an answer cut short */
	OUTCOME_CLIENT_GONE, /* the web server gave it up */
	OUTCOME_BODY_TIMEOUT, /* 408, or the answer cut short */
	OUTCOME_NO_LENGTH, /* 411, 413: a body whose length was not said */
	OUTCOME_CUT, /* it had not ended within drain */
	OUTCOME_BAD_REQUEST, /* 400 */
	GATE_OUTCOMES
};

extern const char *const gate_outcome_names[GATE_OUTCOMES];

struct snapshot_route {
	const struct config_route *config;
	const struct limit *limits[CHECK_LIMITS_MAX];
	unsigned limit_count;
	int backend; /* index in config->backends; -1: the one that the request came to */
	counter_cell outcomes[GATE_OUTCOMES];
};

struct snapshot {
	_Atomic unsigned references;
	struct config *config;
	struct routes *routes;
	struct overrides *overrides; /* NULL: there are none */
	struct limit *limits; /* as config->limits */
	struct limit **plans; /* as config->overrides: the limit with the override's policies; NULL
				 for exempt and block */
	struct limit *caps; /* as config->limits: local_cap, with a name that is the limit's; no
			       policies: none */
	bool has_caps;
	struct snapshot_route *route_list; /* as config->routes */
	counter_cell bad_requests; /* of no route */
	counter_cell *identities, *overflows; /* as config->limits */
	struct redis_counters redis; /* only with [redis] */
	struct tls *tls; /* of [redis]; NULL: no address is tls: */
	counter_cell *backends_in_flight; /* as config->backends */
	counter_cell *backend_failures; /* by backend and exchange_result */
	struct config_limit *cap_configs; /* what the caps were made of */
	bool has_hash_key;
	uint8_t hash_key[HASH_KEY_SIZE];
};

/* NULL if there is an error in the diagnostics. The caller holds it. */
struct snapshot *snapshot_load(const char *file, struct diagnostics *diagnostics) WEIR_MUST_CHECK;

void snapshot_hold(struct snapshot *snapshot);
void snapshot_release(struct snapshot *snapshot);

#endif
