/* Between policies and the limits that consist of them. Private to the room. */
#ifndef WEIR_LIMIT_POLICY_PRIVATE_H
#define WEIR_LIMIT_POLICY_PRIVATE_H

#include "weir/policy.h"

/* Why the policy cannot be decided exactly, and what would help; NULL if it can. The configuration
 * refuses all that; here it keeps the arithmetic below 2^53 whatever comes. */
const char *policy_fault(const struct config_policy *config);

/* The time for one of `count` tokens in the window, such that the rate is never above it. */
static inline int64_t
policy_interval(uint64_t count, int64_t window_us)
{
	return (int64_t)(((uint64_t)window_us + count - 1) / count);
}

/* Of a policy without a fault. */
void policy_init(struct policy *policy, const struct config_policy *config);

#endif
