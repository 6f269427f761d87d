/* Which pattern takes everything that another one would. */
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

#endif
