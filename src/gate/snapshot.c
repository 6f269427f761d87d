/* From a file to something that can serve. */
#include "snapshot_private.h"

#include "weir/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

const char *const gate_outcome_names[GATE_OUTCOMES] = { "admitted", "would_reject", "would_block",
	"would_refuse", "rejected", "undecided", "store_down", "unidentified", "blocked", "busy",
	"backend_failed", "client_gone", "body_timeout", "no_length", "cut", "bad_request" };

enum { SECRET_MIN = 16, SECRET_MAX = 4096 };

/* Whatever the file holds, its hash is the key. */
static int
read_hash_key(struct snapshot *snapshot, const char *path, struct err *err)
{
	char bytes[SECRET_MAX + 1];
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);

	if (n < 0)
		(void)err_set(err, "%s: %s", path, strerror(errno));
	else if (n < SECRET_MIN)
		(void)err_set(err,
			"%s has %zd bytes; a secret has at least %d: head -c 32 /dev/urandom | "
			"base64 > %s",
			path, n, SECRET_MIN, path);
	else if (n > SECRET_MAX)
		(void)err_set(
			err, "%s has more than %d bytes; is it the right file?", path, SECRET_MAX);
	if (fd >= 0)
		(void)close(fd);
	if (n < SECRET_MIN || n > SECRET_MAX)
		return -1;
	const struct hash_wide low = hash_wide(
		(const uint8_t *)"weir hash key, lower half, 32 b.", slice_make(bytes, (size_t)n));
	const struct hash_wide high = hash_wide(
		(const uint8_t *)"weir hash key, upper half, 32 b.", slice_make(bytes, (size_t)n));

	memcpy(snapshot->hash_key, low.bytes, sizeof low.bytes);
	memcpy(snapshot->hash_key + sizeof low.bytes, high.bytes, sizeof high.bytes);
	snapshot->has_hash_key = true;
	return 0;
}

static unsigned
index_of(void *const *list, unsigned count, const void *wanted)
{
	for (unsigned i = 0; i < count; i++) {
		if (list[i] == wanted)
			return i;
	}
	return 0;
}

static void
make_route(struct snapshot *snapshot, unsigned at, struct diagnostics *diagnostics)
{
	const struct config *config = snapshot->config;
	const struct config_route *route = config->routes[at];
	struct snapshot_route *made = &snapshot->route_list[at];
	unsigned policies = 0;

	made->config = route;
	made->backend = route->backend == NULL ? -1
					       : (int)index_of((void *const *)config->backends,
							 config->backend_count, route->backend);
	for (unsigned i = 0; i < route->limit_count && i < CHECK_LIMITS_MAX; i++) {
		const unsigned limit = index_of(
			(void *const *)config->limits, config->limit_count, route->limits[i]);

		made->limits[made->limit_count++] = &snapshot->limits[limit];
		policies += snapshot->limits[limit].policy_count;
	}
	if (route->limit_count > CHECK_LIMITS_MAX || policies > CHECK_POLICIES_MAX)
		diagnostics_add(diagnostics, SEVERITY_ERROR, route->place, "limit",
			"a route has at most %d limits with %d policies in all; this one has %u "
			"with %u",
			CHECK_LIMITS_MAX, CHECK_POLICIES_MAX, route->limit_count, policies);
	/* Of bad requests the route is not known. */
	for (unsigned i = 0; i < OUTCOME_BAD_REQUEST; i++)
		made->outcomes[i] = counter_find(COUNT_REQUESTS,
			(const struct slice[]){
				slice_of(route->name), slice_of(gate_outcome_names[i]) });
}

static void
find_counters(struct snapshot *snapshot)
{
	const struct config *config = snapshot->config;

	snapshot->bad_requests = counter_find(COUNT_REQUESTS,
		(const struct slice[]){
			SLICE(""), slice_of(gate_outcome_names[OUTCOME_BAD_REQUEST]) });
	if (config->has_redis)
		redis_counters_find(&snapshot->redis);
	for (unsigned i = 0; i < config->limit_count; i++) {
		const struct slice name = slice_of(config->limits[i]->name);

		snapshot->identities[i] = counter_find(COUNT_IDENTITIES, &name);
		snapshot->overflows[i] = counter_find(COUNT_IDENTITIES_OVERFLOWED, &name);
	}
	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct slice name = slice_of(config->backends[i]->name);

		snapshot->backends_in_flight[i] = counter_find(COUNT_BACKEND_IN_FLIGHT, &name);
		for (unsigned j = EXCHANGE_COMPLETE + 1; j < EXCHANGE_RESULTS; j++)
			snapshot->backend_failures[i * EXCHANGE_RESULTS + j] = counter_find(
				COUNT_BACKEND_FAILURES,
				(const struct slice[]){ name, slice_of(exchange_result_names[j]) });
	}
}

/* ---- limits ---- */

/* A limit of one policy, which is local_cap, under the limit's own name. */
static void
make_cap(struct snapshot *snapshot, unsigned at, struct diagnostics *diagnostics)
{
	const struct config_limit *limit = snapshot->config->limits[at];
	struct config_limit *config = &snapshot->cap_configs[at];

	if (limit->local_cap == NULL)
		return;
	*config = *limit;
	config->policies = (struct config_policy *)(uintptr_t)limit->local_cap;
	config->policy_count = 1;
	limit_init(&snapshot->caps[at], config, NULL, diagnostics);
	snapshot->has_caps = true;
}

static int
make_plan(struct snapshot *snapshot, unsigned at, struct diagnostics *diagnostics)
{
	const struct config_override *override = snapshot->config->overrides[at];

	if (override->exempt || override->block)
		return 0;
	snapshot->plans[at] = malloc(sizeof *snapshot->plans[at]);
	if (snapshot->plans[at] == NULL)
		return -1;
	limit_init(snapshot->plans[at], override->limit, override, diagnostics);
	return 0;
}

static int
make_limits(struct snapshot *snapshot, struct diagnostics *diagnostics)
{
	const struct config *config = snapshot->config;

	for (unsigned i = 0; i < config->limit_count; i++) {
		limit_init(&snapshot->limits[i], config->limits[i], NULL, diagnostics);
		make_cap(snapshot, i, diagnostics);
	}
	for (unsigned i = 0; i < config->override_count; i++) {
		if (make_plan(snapshot, i, diagnostics) != 0)
			return -1;
	}
	if (config->override_count == 0)
		return 0;
	snapshot->overrides = overrides_new(config);
	return snapshot->overrides == NULL ? -1 : 0;
}

/* ---- the whole ---- */

static int
allocate(struct snapshot *snapshot)
{
	const struct config *config = snapshot->config;
	const size_t limits = config->limit_count + 1;

	snapshot->limits = calloc(limits, sizeof snapshot->limits[0]);
	snapshot->caps = calloc(limits, sizeof snapshot->caps[0]);
	snapshot->cap_configs = calloc(limits, sizeof snapshot->cap_configs[0]);
	snapshot->identities = calloc(limits, sizeof snapshot->identities[0]);
	snapshot->overflows = calloc(limits, sizeof snapshot->overflows[0]);
	snapshot->plans = calloc(config->override_count + 1, sizeof(struct limit *));
	snapshot->route_list = calloc(config->route_count + 1, sizeof snapshot->route_list[0]);
	snapshot->backends_in_flight =
		calloc(config->backend_count + 1, sizeof snapshot->backends_in_flight[0]);
	snapshot->backend_failures = calloc((config->backend_count + 1) * EXCHANGE_RESULTS,
		sizeof snapshot->backend_failures[0]);
	return snapshot->limits != NULL && snapshot->caps != NULL &&
			snapshot->cap_configs != NULL && snapshot->identities != NULL &&
			snapshot->overflows != NULL && snapshot->plans != NULL &&
			snapshot->route_list != NULL && snapshot->backends_in_flight != NULL &&
			snapshot->backend_failures != NULL
		? 0
		: -1;
}

static void
destroy(struct snapshot *snapshot)
{
	for (unsigned i = 0; snapshot->plans != NULL && i < snapshot->config->override_count; i++)
		free(snapshot->plans[i]);
	free(snapshot->plans);
	free(snapshot->limits);
	free(snapshot->caps);
	free(snapshot->cap_configs);
	free(snapshot->identities);
	free(snapshot->overflows);
	free(snapshot->route_list);
	free(snapshot->backends_in_flight);
	free(snapshot->backend_failures);
	tls_free(snapshot->tls);
	overrides_free(snapshot->overrides);
	routes_free(snapshot->routes);
	config_free(snapshot->config);
	free(snapshot);
}

static void
compile(struct snapshot *snapshot, struct diagnostics *diagnostics)
{
	const struct config *config = snapshot->config;
	const struct place whole = { config->file, 0 };
	struct err err;

	snapshot->routes = routes_new(config, diagnostics);
	if (allocate(snapshot) != 0 || make_limits(snapshot, diagnostics) != 0) {
		diagnostics_add(diagnostics, SEVERITY_ERROR, whole, NULL,
			"no memory for the configuration");
		return;
	}
	for (unsigned i = 0; i < config->route_count; i++)
		make_route(snapshot, i, diagnostics);
	find_counters(snapshot);
	snapshot->tls = snapshot_tls(snapshot->config, diagnostics);
	if (config->hash_key_file != NULL &&
		read_hash_key(snapshot, config->hash_key_file, &err) != 0)
		diagnostics_add(
			diagnostics, SEVERITY_ERROR, whole, "[weir] hash_key_file", "%s", err.text);
}

struct snapshot *
snapshot_load(const char *file, struct diagnostics *diagnostics)
{
	struct config *config = config_load(file, diagnostics);
	struct snapshot *snapshot = config == NULL ? NULL : calloc(1, sizeof *snapshot);

	if (snapshot == NULL) {
		config_free(config);
		return NULL;
	}
	atomic_init(&snapshot->references, 1);
	snapshot->config = config;
	compile(snapshot, diagnostics);
	if (diagnostics->errors > 0 || snapshot->routes == NULL) {
		destroy(snapshot);
		return NULL;
	}
	return snapshot;
}

void
snapshot_hold(struct snapshot *snapshot)
{
	(void)atomic_fetch_add(&snapshot->references, 1);
}

void
snapshot_release(struct snapshot *snapshot)
{
	if (snapshot != NULL && atomic_fetch_sub(&snapshot->references, 1) == 1)
		destroy(snapshot);
}
