/* Decisions of any kind, for tests of what is made of them. */
#ifndef WEIR_TESTS_LIMIT_ANY_DECISION_H
#define WEIR_TESTS_LIMIT_ANY_DECISION_H

#include "weir/decision.h"

enum { ANY_LIMITS = 4, ANY_NAME_SIZE = 80 };

struct any_decision {
	uint64_t random; /* begin with any but 0 */
	struct limit limits[ANY_LIMITS];
	char names[ANY_LIMITS][LIMIT_POLICIES_MAX + 1][ANY_NAME_SIZE];
	struct decision decision;
	int64_t retry_after_s; /* of a rejection; 0: none */
};

/* The next one: names of any bytes, numbers small and large. */
void any_decision(struct any_decision *any);

#endif
