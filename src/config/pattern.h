/* Which pattern, and which conditions, take everything that others would. */
#ifndef WEIR_CONFIG_PATTERN_H
#define WEIR_CONFIG_PATTERN_H

#include "weir/config.h"

/* Fits every path; its methods may be limited. */
bool config_pattern_is_any_path(const struct config_pattern *pattern);

/*
 * Whatever fits `inner` fits `outer` too, both held against the same path. Exact for plain patterns
 * and `*`; expressions are covered only by one that takes everything or is the same. Never true
 * when it is not so.
 */
bool config_pattern_covers(const struct config_pattern *outer, const struct config_pattern *inner);

/* What the conditions of `inner` hold of, those of `outer` hold of too: `when` and `host`. Never
 * true when it is not so. */
bool config_conditions_cover(const struct config_route *outer, const struct config_route *inner);

#endif
