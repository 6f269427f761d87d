/* Whether two stores have decided alike, number for number. */
#ifndef WEIR_TESTS_REDIS_AGREE_H
#define WEIR_TESTS_REDIS_AGREE_H

#include "weir/decision.h"

bool decisions_agree(const struct decision *a, const struct decision *b);

/* All that it says, for a failed test. */
void print_decision(const char *who, const struct decision *decision);

#endif
