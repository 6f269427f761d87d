/* Policies, by themselves and against each other: whether they mean what they seem to say. */
#include "sections.h"
#include "validate.h"

int64_t
config_policy_interval_us(const struct config_policy *policy)
{
	const int64_t count = (int64_t)policy->rate.count;
	const int64_t window = policy->rate.window_us * policy->shards;

	return window / count + (window % count != 0);
}

uint64_t
config_policy_holds(const struct config_policy *policy)
{
	return policy->burst / policy->shards;
}

uint64_t
config_policy_holds_in_all(const struct config_policy *policy)
{
	return config_policy_holds(policy) * policy->shards;
}

/*
 * Rounding can cost more than 1 % only where the interval is below 100 us, so that there are more
 * than 10,000 requests in a second: the rate that is proposed is then exact enough. The products
 * fit: interval * count is all windows and count at the most, a few 10^17, and what is lost by
 * rounding is less than count.
 */
void
validate_rate(const struct build *build, const struct section *section, const char *key,
	const struct config_policy *policy)
{
	const int64_t interval = config_policy_interval_us(policy);
	const int64_t windows = policy->rate.window_us * policy->shards;

	if ((interval * (int64_t)policy->rate.count - windows) * 99 > windows)
		complain(build, SEVERITY_ERROR, section, key, &policy->place,
			"the time between two requests is kept in whole microseconds, so this rate "
			"would become %lld/1s; write that",
			(long long)((US_PER_S * policy->shards + interval - 1) / interval));
	else if ((int64_t)config_policy_holds(policy) > DURATION_MAX_US / interval)
		complain(build, SEVERITY_ERROR, section, key, &policy->place,
			"an empty bucket would take more than 100 years to fill; write a smaller "
			"burst or a faster rate");
}

/* Each shard holds the same whole number. */
static void
check_shards(const struct build *build, const struct section *section,
	const struct config_policy *policy)
{
	const unsigned long long burst = policy->burst, all = config_policy_holds_in_all(policy);

	if ((burst - all) * 100 > burst)
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"%u shards of %llu hold %llu together, and not %llu; write burst %llu",
			policy->shards, (unsigned long long)config_policy_holds(policy), all, burst,
			all + policy->shards);
}

static void
check_bucket(const struct build *build, const struct section *section,
	const struct config_policy *policy)
{
	char interval[DURATION_TEXT_SIZE];

	validate_rate(build, section, "policy", policy);
	check_shards(build, section, policy);
	if (config_policy_holds(policy) == 1 && policy->rate.count > policy->shards)
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"burst 1%s rejects a second request within %s; a page with its images and "
			"scripts asks for more at once",
			policy->shards > 1 ? " in each shard" : "",
			duration_text(config_policy_interval_us(policy), interval));
}

static void
check_policy(const struct build *build, const struct section *section,
	const struct config_policy *policy)
{
	if (policy->algorithm == POLICY_TOKEN_BUCKET)
		check_bucket(build, section, policy);
}

/* All shards of `a` may meet in one of `b`. */
bool
config_policy_is_stricter(const struct config_policy *a, const struct config_policy *b)
{
	const int64_t window_a = a->rate.window_us, window_b = b->rate.window_us;

	if (a->shadow || a->algorithm != b->algorithm ||
		config_policy_holds_in_all(a) > config_policy_holds(b))
		return false;
	switch (a->algorithm) {
	case POLICY_TOKEN_BUCKET:
		return config_policy_interval_us(a) >= config_policy_interval_us(b) * a->shards;
	case POLICY_SLIDING_WINDOW: /* an estimate over another window is another estimate */
		return window_a == window_b;
	case POLICY_SLIDING_LOG:
	case POLICY_CALENDAR:
		return window_a >= window_b;
	case POLICY_CONCURRENT:
		return true;
	}
	return false;
}

static void
propose_name(const struct build *build, const struct section *section,
	const struct config_policy *first, const struct config_policy *second)
{
	char place[PLACE_TEXT_SIZE];

	complain(build, SEVERITY_ERROR, section, "policy", &second->place,
		"\"%s\" names a policy already at %s; give one of them another name, such as: "
		"%s%llu%s%s name second",
		second->name, complain_place(first->place, place),
		second->algorithm == POLICY_CONCURRENT ? "concurrent " : "",
		(unsigned long long)second->rate.count,
		second->algorithm == POLICY_CONCURRENT ? "" : "/",
		second->algorithm == POLICY_CONCURRENT ? "" : second->rate.window);
}

/* Each pair once, reported at the later line. */
static void
check_pair(const struct build *build, const struct section *section,
	const struct config_policy *first, const struct config_policy *second)
{
	char place[PLACE_TEXT_SIZE];

	if (strcmp(first->name, second->name) == 0) {
		propose_name(build, section, first, second);
		return;
	}
	const bool is_first = config_policy_is_stricter(first, second);

	if (!is_first && !config_policy_is_stricter(second, first))
		return;
	const struct config_policy *idle = is_first ? second : first;
	const struct config_policy *strict = is_first ? first : second;
	const bool is_bucket = strict->algorithm == POLICY_TOKEN_BUCKET;

	complain(build, SEVERITY_WARNING, section, "policy", &idle->place,
		"can never reject, since \"%s\" at %s is stricter%s", strict->name,
		complain_place(strict->place, place), is_bucket ? " in burst and in rate" : "");
}

void
validate_policies(const struct build *build, const struct section *section,
	const struct config_policy *policies, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		check_policy(build, section, &policies[i]);
		for (unsigned j = 0; j < i; j++)
			check_pair(build, section, &policies[j], &policies[i]);
	}
}
