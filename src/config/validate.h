/* The checks of the whole: what each value alone cannot show. Nothing is changed. */
#ifndef WEIR_CONFIG_VALIDATE_H
#define WEIR_CONFIG_VALIDATE_H

#include "build.h"

void validate_process(const struct build *build); /* [weir], [memory], [redis] */
void validate_backends(const struct build *build);
void validate_limits(const struct build *build);
void validate_routes(const struct build *build);

/* validate_order.c: which route takes a request away from which, and what is left at the end. */
void validate_order(const struct build *build);

/* The microseconds between two requests at this rate, a whole number, rounded up. */
int64_t config_policy_interval_us(const struct config_policy *policy);

#endif
