/* The checks of the whole: what each value alone cannot show. Nothing is changed. */
#ifndef WEIR_CONFIG_VALIDATE_H
#define WEIR_CONFIG_VALIDATE_H

#include "build.h"

void validate_process(const struct build *build); /* the secrets of [weir] and [redis] */
void validate_redis(const struct build *build); /* its keys, one with another */
void validate_addresses(const struct build *build); /* what weir opens, and where it connects */
void validate_exempt(const struct build *build); /* whose address is believed, who is not counted */
void validate_backends(const struct build *build);
void validate_limits(const struct build *build);
void validate_memory(const struct build *build); /* what the counters of all limits take */
void validate_overrides(const struct build *build);
void validate_values(const struct build *build); /* what two overrides of a limit both name */
void validate_routes(const struct build *build);
void validate_costs(const struct build *build); /* what a request costs, and what is held */
void validate_caps(const struct build *build); /* local_cap against what stands behind it */
void validate_names(const struct build *build); /* what clients know policies by */
void validate_hosts(const struct build *build); /* a client must not choose its backend */

/* validate_order.c: which route takes a request away from which, and what is left at the end. */
void validate_order(const struct build *build);

/* Only of a configuration without errors, since an error makes all kinds of things look idle, or
 * look as if something were missing. */
void validate_use(const struct build *build); /* what is there for nothing */
void validate_claims(const struct build *build); /* who is counted by what a client claims */
void validate_conditions(const struct build *build); /* limits that a client can get around */

/* ---- claims (validate_claims.c) ---- */

/* What is found there is the client's own word. `param` is as of an identity's part. */
bool config_is_claimed(enum identity_source source, const char *param);

/* The limit can reject a request. */
bool config_limit_bites(const struct config_limit *limit);

/* ---- policies (validate_policies.c) ---- */

/* The microseconds between two requests of one bucket at this rate, a whole number, rounded up: of
 * a shard, that of its part of the rate. */
int64_t config_policy_interval_us(const struct config_policy *policy);

/* What one request can cost at the most: a shard holds only its part of the burst, rounded down. */
uint64_t config_policy_holds(const struct config_policy *policy);

/* What all of its buckets hold together, which is the burst or a little less. */
uint64_t config_policy_holds_in_all(const struct config_policy *policy);

/* Whatever `a` admits, `b` would admit too. Never true when it is not so. */
bool config_policy_is_stricter(const struct config_policy *a, const struct config_policy *b);

/* Each policy by itself, and each against those before it. `key` is theirs in the section. */
void validate_policies(const struct build *build, const struct section *section,
	const struct config_policy *policies, unsigned count);

/* That the rate can be kept in whole microseconds. */
void validate_rate(const struct build *build, const struct section *section, const char *key,
	const struct config_policy *policy);

/* ---- overrides (validate_values.c, validate_nets.c) ---- */

/* Where the nth value or network of the list stands. */
struct place config_for_place(const struct config_for *list, uint32_t n);

/* The section that made the override. */
const struct section *
config_override_section(const struct build *build, const struct config_override *override);

/* Networks that two overrides of the limit name, or that one takes from another. */
void validate_nets(const struct build *build, const struct config_limit *limit);

/* ---- routes (validate_order.c) ---- */

/* The first route behind the nth that takes whatever the pattern would, on no condition that a
 * client could fail; NULL if there is none. */
const struct config_route *config_fallback(const struct config *config, unsigned nth,
	const struct config_pattern *pattern, bool is_script);

/* validate_routes.c: every request comes to some backend's own `listen`, so that a route need not
 * name one. */
bool config_has_owned_listens_only(const struct config *config);

/* The route's nth pattern: those of the URL's path first, then those of the script. */
const struct config_pattern *
config_nth_pattern(const struct config_route *route, unsigned n, bool *is_script);

#endif
