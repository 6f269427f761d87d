/*
 * Routes: which one a request belongs to, and who is counted. Pure: the gate, and the tools that
 * explain or replay, use the same code.
 */
#ifndef WEIR_ROUTE_H
#define WEIR_ROUTE_H

#include "weir/config.h"
#include "weir/view.h"

struct routes;

/*
 * Compiles the routes' patterns. What does not compile goes to the diagnostics with its place. The
 * configuration must outlive it. NULL only if memory is out or a pattern was wrong. May be shared
 * by threads.
 */
struct routes *
routes_new(const struct config *config, struct diagnostics *diagnostics) WEIR_MUST_CHECK;
void routes_free(struct routes *routes);

/*
 * The index in config->routes of the first route that fits. -1: none does. -2: a regular expression
 * exceeded its match limit, so neither "fits" nor "does not fit" would be safe.
 */
int routes_match(const struct routes *routes, const struct view *view);

enum identity_result {
	IDENTITY_FOUND,
	IDENTITY_NO_ADDRESS, /* found: the bucket that all share who have no usable REMOTE_ADDR */
	IDENTITY_SKIP, /* none is present, and on_missing says that the limit does not apply then */
	IDENTITY_REJECT, /* ... says that the request is refused */
	IDENTITY_NO_MEMORY,
};

/*
 * The name of the bucket for this limit and request, in the arena: `LIMIT:IDENTITY`. What stands in
 * it is printable, short and cannot be chosen so that two identities meet: values that are long,
 * hold other than [A-Za-z0-9._~@/:-], or are secret (headers) are kept as `#` and a hash (hash.h),
 * keyed with `hash_key` if that is not NULL.
 */
enum identity_result identity_key(const struct config_limit *limit, const struct view *view,
	const uint8_t *hash_key, struct arena *arena, struct slice *key) WEIR_MUST_CHECK;

#endif
