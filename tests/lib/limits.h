/* Limits as limit_init makes them from a configuration, without the file. */
#ifndef WEIR_TESTS_LIB_LIMITS_H
#define WEIR_TESTS_LIB_LIMITS_H

#include "weir/policy.h"

/* Stays in place once it is made. */
struct made_limit {
	struct limit limit;
	struct config_limit config;
	struct config_override override;
	struct config_policy policies[LIMIT_POLICIES_MAX];
	char names[LIMIT_POLICIES_MAX][32];
};

/*
 * Policies as they are written, `RATE [burst N] [ALGORITHM] [shards N] [lease DURATION] [name N]
 * [shadow]`, `N/day calendar ...`, `concurrent N ...`; NULL behind the last. Ends the test program
 * if they are refused. The limit's name must last.
 */
void made_limit_init(struct made_limit *made, const char *name, const char *const *policies);

/* The limit `from` with an override of these policies. It needs `from`. */
void made_limit_override(
	struct made_limit *made, const struct made_limit *from, const char *const *policies);

/* make_limit(&made, "login", "5/1m", "50/1d burst 10") */
#define make_limit(made, name, ...)                                                                \
	made_limit_init(made, name, (const char *const[]){ __VA_ARGS__, NULL })

/* Times to decide at. */
#define IN_2026_US INT64_C(1781000000123456)
#define IN_2100_US INT64_C(4102444800000001)

#endif
