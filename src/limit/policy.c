/*
 * Policies compiled for deciding, and what stands for them in stored state: tags, and codes for the
 * common ones.
 */
#include "policy_private.h"

#include "weir/algorithm.h"
#include "weir/hash.h"

#include <stdio.h>

/* Counts that a code can say: 1 to 99, then 100 to 990 by tens, then 1000 to 5000 by hundreds. */
#define BURST_MAX UINT64_C(1000000000000000)

enum { CODES_PER_WINDOW = 230, CODE_TENS = 100, CODE_HUNDREDS = 190 };

static const struct {
	const char *name;
	int64_t us;
} code_windows[] = { { "1s", US_PER_S }, { "1m", 60 * US_PER_S }, { "1h", 3600 * US_PER_S },
	{ "1d", US_PER_DAY } };

enum { CODE_WINDOWS = sizeof code_windows / sizeof code_windows[0] };

static unsigned
code_of_count(uint64_t count)
{
	if (count >= 1 && count < 100)
		return (unsigned)count;
	if (count >= 100 && count < 1000 && count % 10 == 0)
		return CODE_TENS + (unsigned)(count - 100) / 10;
	if (count >= 1000 && count <= 5000 && count % 100 == 0)
		return CODE_HUNDREDS + (unsigned)(count - 1000) / 100;
	return 0;
}

static uint64_t
count_of_code(unsigned code)
{
	if (code < CODE_TENS)
		return code;
	if (code < CODE_HUNDREDS)
		return 100 + 10 * (uint64_t)(code - CODE_TENS);
	return 1000 + 100 * (uint64_t)(code - CODE_HUNDREDS);
}

static int64_t
interval_of(uint64_t count, int64_t window_us)
{
	return (int64_t)(((uint64_t)window_us + count - 1) / count);
}

unsigned
policy_code(const char *name, uint64_t count, int64_t window_us, uint64_t burst)
{
	const unsigned code = burst == count ? code_of_count(count) : 0;

	for (unsigned i = 0; i < CODE_WINDOWS && code != 0; i++) {
		if (window_us == code_windows[i].us && strcmp(name, code_windows[i].name) == 0)
			return i * CODES_PER_WINDOW + code;
	}
	return 0;
}

bool
policy_of_code(unsigned code, uint32_t *tag, int64_t *interval_us, int64_t *capacity_us)
{
	if (code < 1 || code > CODE_WINDOWS * CODES_PER_WINDOW)
		return false;
	const unsigned window = (code - 1) / CODES_PER_WINDOW;
	const uint64_t count = count_of_code((code - 1) % CODES_PER_WINDOW + 1);

	*tag = policy_tag(code_windows[window].name, POLICY_TOKEN_BUCKET);
	*interval_us = interval_of(count, code_windows[window].us);
	*capacity_us = (int64_t)count * *interval_us;
	return true;
}

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
		interval_of(config->rate.count, config->rate.window_us * config->shards);
	policy->capacity_us = (int64_t)policy->burst * policy->interval_us;
	if (config->shards == 1)
		policy->code = policy_code(
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
		most = (uint64_t)(DURATION_MAX_US / interval_of(count, window_us * config->shards));
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
