/* Compiles the limits of the configuration for deciding. */
#include "weir/policy.h"

#include "weir/hash.h"

#include <stdio.h>

/* Counts that a code can say: 1 to 99, then 100 to 990 by tens, then 1000 to 5000 by hundreds. */
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
	static const char *const algorithm_names[] = { [POLICY_TOKEN_BUCKET] = "token-bucket",
		[POLICY_SLIDING_WINDOW] = "sliding-window",
		[POLICY_SLIDING_LOG] = "sliding-log",
		[POLICY_CALENDAR] = "calendar",
		[POLICY_CONCURRENT] = "concurrent" };
	char text[256];
	const int n = snprintf(text, sizeof text, "%s %s", algorithm_names[algorithm], name);

	return hash_tag(slice_make(text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1));
}

static void
policy_init(struct policy *policy, const struct config_policy *config)
{
	*policy = (struct policy){
		.name = config->name,
		.algorithm = config->algorithm,
		.tag = policy_tag(config->name, config->algorithm),
		.count = config->rate.count,
		.window_us = config->rate.window_us,
		.interval_us = interval_of(config->rate.count, config->rate.window_us),
		.burst = config->burst,
		.code = policy_code(
			config->name, config->rate.count, config->rate.window_us, config->burst),
	};
	policy->capacity_us = (int64_t)policy->burst * policy->interval_us;
}

static void
put_signature(struct limit *limit)
{
	size_t len = 0;

	if (limit->policy_count == 1 && limit->policies[0].code != 0) {
		(void)snprintf(
			limit->signature, sizeof limit->signature, "%u", limit->policies[0].code);
		return;
	}
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];
		const int n = snprintf(limit->signature + len, sizeof limit->signature - len,
			"%08x:%lld:%llu%s", policy->tag, (long long)policy->interval_us,
			(unsigned long long)policy->burst, i + 1 < limit->policy_count ? " " : "=");

		len += (size_t)n;
	}
}

/* The configuration refuses what these guard against; here they keep the arithmetic below 2^53
 * whatever comes. */
static bool
is_exact(const struct config_policy *config)
{
	return config->rate.count >= 1 && config->burst >= 1 &&
		config->burst <= (uint64_t)(DURATION_MAX_US /
					 interval_of(config->rate.count, config->rate.window_us));
}

void
limit_init(struct limit *limit, const struct config_limit *config, struct diagnostics *diagnostics)
{
	static const char *const result_names[LIMIT_RESULTS] = { "admitted", "rejected",
		"would_reject" };

	*limit = (struct limit){
		.name = config->name, .enforce = config->enforce, .config = config
	};
	if (config->policy_count > LIMIT_POLICIES_MAX)
		diagnostics_add(diagnostics, SEVERITY_ERROR, config->place, "policy",
			"a limit has at most %d policies; split it into two limits",
			LIMIT_POLICIES_MAX);
	for (unsigned i = 0; i < config->policy_count && i < LIMIT_POLICIES_MAX; i++) {
		if (config->policies[i].algorithm != POLICY_TOKEN_BUCKET) {
			diagnostics_add(diagnostics, SEVERITY_ERROR, config->policies[i].place,
				"policy", "only token buckets are decided by this version");
			continue;
		}
		if (!is_exact(&config->policies[i])) {
			diagnostics_add(diagnostics, SEVERITY_ERROR, config->policies[i].place,
				"policy",
				"a bucket of more than 100 years cannot be counted exactly; lower "
				"the burst or raise the rate");
			continue;
		}
		policy_init(&limit->policies[limit->policy_count], &config->policies[i]);
		for (unsigned j = 0; j < limit->policy_count; j++) {
			if (limit->policies[j].tag == limit->policies[limit->policy_count].tag)
				diagnostics_add(diagnostics, SEVERITY_ERROR,
					config->policies[i].place, "policy",
					"the names \"%s\" and \"%s\" cannot be told apart in "
					"stored state; rename one",
					limit->policies[j].name, config->policies[i].name);
		}
		limit->policy_count++;
	}
	put_signature(limit);
	for (unsigned i = 0; i < LIMIT_RESULTS; i++)
		limit->results[i] = counter_find(COUNT_DECISIONS,
			(const struct slice[]){
				slice_of(config->name), slice_of(result_names[i]) });
}
