/* One compiled pattern, on a path or on a value. Private to the room. */
#ifndef WEIR_ROUTE_PATTERN_H
#define WEIR_ROUTE_PATTERN_H

#include "weir/config.h"

struct pattern {
	const struct config_pattern *config;
	struct slice text;
	void *regex; /* PCRE2 code; NULL for the other kinds */
};

int pattern_init(struct pattern *pattern, const struct config_pattern *config,
	struct err *err) WEIR_MUST_CHECK;
void pattern_release(struct pattern *pattern);

enum pattern_result { PATTERN_FITS, PATTERN_DIFFERS, PATTERN_LIMIT };

/* Methods and path. */
enum pattern_result
pattern_match(const struct pattern *pattern, struct slice method, struct slice path);

/* What matching may cost, in steps; about a millisecond. */
enum { PATTERN_STEPS_MAX = 50000 };

/* A whole value; nothing lies below it. Takes what it costs off *steps. */
enum pattern_result
pattern_match_value(const struct pattern *pattern, struct slice value, unsigned *steps);

#endif
