/*
 * Policies compiled for deciding, and the tags that stand for their names in stored state.
 */
#include "policy_private.h"

#include "weir/algorithm.h"
#include "weir/hash.h"

#include <stdio.h>

#define BURST_MAX UINT64_C(1000000000000000)

uint32_t
policy_tag(const char *name, enum policy_algorithm algorithm)
{
	char text[256];
	const int n = snprintf(text, sizeof text, "%s %s", algorithms[algorithm]->name, name);

	return hash_tag(slice_make(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1));
}

/* A shard has its part of the rate and of the burst, each rounded to its own disadvantage, so that
 * all of them together never exceed the limit. */
static void
init_bucket(struct policy *policy, const struct config_policy *config)
{
	policy->burst = config->burst / config->shards;
	policy->interval_us =
		policy_interval(config->rate.count, config->rate.window_us * config->shards);
	policy->capacity_us = (int64_t)policy->burst * policy->interval_us;
	if (config->shards == 1)
		policy->code = form_code(
			config->name, config->rate.count, config->rate.window_us, config->burst);
}

void
policy_init(struct policy *policy, const struct config_policy *config)
{
	*policy = (struct policy){
		.name = config->name,
		.algorithm = config->algorithm,
		.tag = policy_tag(config->name, config->algorithm),
		.count = config->rate.count,
		.window_us = config->rate.window_us,
		.burst = config->burst,
		.shadow = config->shadow,
		.period = config->period,
		.lease_us = config->lease_us,
	};
	switch (config->algorithm) {
	case POLICY_TOKEN_BUCKET:
		init_bucket(policy, config);
		break;
	case POLICY_SLIDING_WINDOW:
	case POLICY_SLIDING_LOG:
	case POLICY_CALENDAR:
		policy->interval_us = policy->capacity_us = config->rate.window_us;
		break;
	case POLICY_CONCURRENT:
		policy->interval_us = policy->capacity_us = config->lease_us;
		break;
	}
}

/* Of a number that is no duration the arithmetic below would not be sound. */
static bool
is_duration(int64_t us)
{
	return us >= 1 && us <= DURATION_MAX_US;
}

const char *
policy_fault(const struct config_policy *config)
{
	static const char too_long[] =
		"a bucket of more than 100 years cannot be counted exactly; lower the burst or "
		"raise the rate";
	const uint64_t count = config->rate.count;
	const int64_t window_us = config->rate.window_us;
	uint64_t most = BURST_MAX;

	switch (config->algorithm) {
	case POLICY_TOKEN_BUCKET:
		if (count < 1 || config->shards < 1 || config->shards > POLICY_SHARDS_MAX ||
			config->burst < config->shards || !is_duration(window_us))
			return too_long;
		most = (uint64_t)(DURATION_MAX_US /
			policy_interval(count, window_us * config->shards));
		return config->burst / config->shards <= most ? NULL : too_long;
	case POLICY_SLIDING_LOG:
		most = POLICY_LOG_MAX;
		break;
	case POLICY_CONCURRENT:
		most = POLICY_CONCURRENT_MAX;
		break;
	case POLICY_SLIDING_WINDOW:
	case POLICY_CALENDAR:
		break;
	}
	if (config->burst < 1 || config->burst > most ||
		!is_duration(config->algorithm == POLICY_CONCURRENT ? config->lease_us : window_us))
		return "a count or time that cannot be counted exactly; lower it";
	return NULL;
}
