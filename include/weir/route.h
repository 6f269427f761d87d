/*
 * Routes: which one a request belongs to, who is counted, and by which exception. Pure: the gate,
 * and the tools that explain or replay, use the same code.
 */
#ifndef WEIR_ROUTE_H
#define WEIR_ROUTE_H

#include "weir/config.h"
#include "weir/hash.h"
#include "weir/view.h"

struct routes;

/*
 * Compiles the routes: patterns, conditions, networks, and trusted_proxies for view_init. What does
 * not compile goes to the diagnostics with its place. The configuration must outlive it. NULL only
 * if memory is out or a pattern was wrong. May be shared by threads.
 */
struct routes *
routes_new(const struct config *config, struct diagnostics *diagnostics) WEIR_MUST_CHECK;
void routes_free(struct routes *routes);

/*
 * The index in config->routes of the first route that fits: one of its patterns, one of its hosts,
 * and all of its conditions. -1: none does. -2: a regular expression exceeded its match limit, so
 * neither "fits" nor "does not fit" would be safe.
 *
 * Of a condition's value that is repeated, any may fit. So may any way in which a usual application
 * reads a parameter of the query or a cookie (url_path.h; src/route/values.c). A header or variable
 * that is empty is not there (RFC 3875 section 4.1); a cookie or parameter is, once it is named.
 */
int routes_match(const struct routes *routes, const struct view *view);

/* Whether the client is one that no limit of the route counts. */
bool route_exempts(const struct routes *routes, unsigned index, const struct view *view);

/* What the request counts for, as struct config_cost says; of a parameter that is repeated, the
 * greatest counts. */
uint64_t cost_of(const struct config_cost *cost, const struct view *view);

/* ---- who asks ---- */

/*
 * The exceptions of all limits, to be looked up in a time that does not depend on their number. The
 * configuration must outlive it. NULL: memory is out. May be shared by threads.
 *
 * Takes about 56 bytes for each value, and 48 for each network, beside the configuration.
 */
struct overrides *overrides_new(const struct config *config) WEIR_MUST_CHECK;
void overrides_free(struct overrides *overrides);

enum { ASKER_DIGESTS_MAX = 4 };

/* A request on its route, and what was found out of it: one for all of its limits. */
struct asker {
	const struct view *view;
	const struct config_route *route;
	const struct config_backend
		*backend; /* the route's; if that is NULL, the caller's to set */
	const struct overrides *overrides; /* NULL: there are none */
	const uint8_t *hash_key; /* NULL, or HASH_KEY_SIZE bytes */
	/* The rest is overrides' own: the digests of values that were looked up. */
	struct {
		unsigned attribute;
		uint8_t bytes[HASH_SHA256_SIZE];
	} digests[ASKER_DIGESTS_MAX];
	unsigned digest_count;
};

void asker_init(struct asker *asker, const struct view *view, const struct config_route *route,
	const struct overrides *overrides, const uint8_t *hash_key);

/*
 * The index in config->overrides of the limit's first override that fits the request; -1: none
 * does. What is compared is the value that an identity would count. Of a parameter of the query
 * that is repeated, any; of a cookie, the first, which is the one of the most exact path (RFC 6265
 * section 5.4), and any that has the name in another spelling.
 */
int overrides_find(struct asker *asker, const struct config_limit *limit);

/* ---- who is counted ---- */

enum identity_result {
	IDENTITY_FOUND,
	IDENTITY_NO_ADDRESS, /* found: a bucket that all share who have no usable REMOTE_ADDR */
	IDENTITY_SKIP, /* none is present, and on_missing says that the limit does not apply then */
	IDENTITY_REJECT, /* ... says that the request is refused */
	IDENTITY_NO_MEMORY,
};

/*
 * The name of the bucket for this limit and request, in the arena: `LIMIT:IDENTITY`, where the
 * parts of an identity are joined by `+`:
 *
 *     page:192.0.2.1                  page:2001:db8:1:2::/64          page:ip=none
 *     page:user=alice                 page:backend=shop+192.0.2.1     page:header#Jk3...
 *     page:env:SSL_CLIENT_CN=alice    page:all                        page:none (on_missing =
 * share)
 *
 * It is printable and short, and cannot be chosen so that two identities meet. Values that are
 * long, or hold other than [A-Za-z0-9._~@/:-], are kept as `#` and a hash (hash.h), keyed with
 * `hash_key` if there is one; so are headers, cookies and parameters of the query in any case,
 * since they may be secrets, and variables HTTP_*. Neither `+`, `=`, `#` nor braces stand in a
 * value, and `LIMIT:WORD` with another word than all and none is nobody's.
 *
 * A parameter or cookie that has several values, of which it depends on the application which one
 * it reads, counts as one value that all such requests share, unless `known` leaves one of them.
 */
enum identity_result identity_key(struct asker *asker, const struct config_limit *limit,
	struct arena *arena, struct slice *key) WEIR_MUST_CHECK;

#endif
