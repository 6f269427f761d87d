/* What a route wants of a request besides its path: one `when`. Private to the room. */
#ifndef WEIR_ROUTE_CONDITION_H
#define WEIR_ROUTE_CONDITION_H

#include "net_map.h"
#include "pattern.h"
#include "weir/view.h"

struct condition {
	const struct config_when *config;
	struct pattern pattern; /* if config->pattern.text is not NULL */
	struct net_map nets; /* of ip */
};

/* err says what is wrong with the pattern, or that memory is out. Released either way. */
int condition_init(struct condition *condition, const struct config_when *config,
	struct err *err) WEIR_MUST_CHECK;
void condition_release(struct condition *condition);

/* PATTERN_FITS: it holds. */
enum pattern_result condition_check(const struct condition *condition, const struct view *view);

#endif
