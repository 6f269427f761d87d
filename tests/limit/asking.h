/* Asking decide() about one limit and one bucket. */
#ifndef WEIR_TESTS_LIMIT_ASKING_H
#define WEIR_TESTS_LIMIT_ASKING_H

#include "../lib/limits.h"
#include "../unit.h"
#include "weir/decision.h"

static inline struct decision
ask(struct bucket *bucket, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	const struct check check = {
		.items = { { .limit = &made->limit } }, .count = 1, .cost = cost
	};
	struct decision decision;

	bucket->changed = false;
	decide(&check, bucket, now_us, &decision);
	assert_int_equal(decision.count, made->limit.policy_count);
	assert_int_equal(decision.now_us, now_us);
	return decision;
}

/* The same on a copy: whether it would be admitted then. */
static inline bool
admits(const struct bucket *bucket, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	struct bucket copy = *bucket;

	return ask(&copy, made, cost, now_us).verdict == VERDICT_ADMITTED;
}

/* Spends until the cost is rejected; returns the rejection. */
static inline struct decision
exhaust(struct bucket *bucket, const struct made_limit *made, uint64_t cost, int64_t now_us)
{
	for (;;) {
		const struct decision decision = ask(bucket, made, cost, now_us);

		if (decision.verdict == VERDICT_REJECTED)
			return decision;
	}
}

#endif
