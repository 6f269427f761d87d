/* Limits, each by itself: whether it means what it seems to say. */
#include "sections.h"
#include "validate.h"

int64_t
config_policy_interval_us(const struct config_policy *policy)
{
	const int64_t count = (int64_t)policy->rate.count, window = policy->rate.window_us;

	return window / count + (window % count != 0);
}

/*
 * Rounding can cost more than 1 % only where the interval is below 100 us, so that there are more
 * than 10,000 requests in a second: the rate that is proposed is then exact enough. The products
 * fit: interval * count is window + count at the most, a few 10^15.
 */
static void
check_rate(const struct build *build, const struct section *section,
	const struct config_policy *policy)
{
	const int64_t interval = config_policy_interval_us(policy);

	if (interval * (int64_t)policy->rate.count * 99 > policy->rate.window_us * 100)
		complain(build, SEVERITY_ERROR, section, "policy", &policy->place,
			"the time between two requests is kept in whole microseconds, so this rate "
			"would become %lld/1s; write that",
			(long long)((US_PER_S + interval - 1) / interval));
	else if ((int64_t)policy->burst > DURATION_MAX_US / interval)
		complain(build, SEVERITY_ERROR, section, "policy", &policy->place,
			"an empty bucket would take more than 100 years to fill; write a smaller "
			"burst or a faster rate");
}

/* A file below these is gone after a reboot. */
static bool
is_state_lost(const struct config *config)
{
	static const char *const lost[] = { "/run/", "/var/run/", "/tmp/", "/dev/shm/",
		WEIR_RUNDIR "/" };
	const struct slice path = slice_of(config->memory_state);

	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
		if (slice_has_prefix(path, slice_of(lost[i])))
			return true;
	}
	return path.len == 0;
}

static void
check_policy(const struct build *build, const struct section *section,
	const struct config_policy *policy)
{
	const int64_t hour = 3600 * US_PER_S;
	char interval[DURATION_TEXT_SIZE];

	check_rate(build, section, policy);
	if (policy->burst == 1 && policy->rate.count > 1)
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"burst 1 rejects a second request within %s; a page with its images and "
			"scripts asks for more at once",
			duration_text(config_policy_interval_us(policy), interval));
	if (!build->config->has_redis && policy->rate.window_us > hour &&
		is_state_lost(build->config))
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"a count over %s is lost at a reboot; add [redis], or [memory] state = a "
			"file on a disk",
			policy->rate.window);
}

static bool
is_stricter(const struct config_policy *a, const struct config_policy *b)
{
	return a->burst <= b->burst && config_policy_interval_us(a) >= config_policy_interval_us(b);
}

/* Each pair once, reported at the later line. */
static void
check_policy_pair(const struct build *build, const struct section *section,
	const struct config_policy *first, const struct config_policy *second)
{
	char place[PLACE_TEXT_SIZE];

	if (strcmp(first->name, second->name) == 0) {
		complain(build, SEVERITY_ERROR, section, "policy", &second->place,
			"\"%s\" names a policy already at %s; give one of them another name, such "
			"as: %llu/%s name second",
			second->name, complain_place(first->place, place),
			(unsigned long long)second->rate.count, second->rate.window);
		return;
	}
	if (!is_stricter(first, second) && !is_stricter(second, first))
		return;
	const bool is_first = is_stricter(first, second);
	const struct config_policy *idle = is_first ? second : first;
	const struct config_policy *strict = is_first ? first : second;

	complain(build, SEVERITY_WARNING, section, "policy", &idle->place,
		"can never reject, since \"%s\" at %s is stricter in burst and in rate",
		strict->name, complain_place(strict->place, place));
}

static void
check_policies(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	if (limit->policy_count == 0 && !section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "policy", NULL,
			"is missing: how much is admitted? Write policy = 10/1s burst 60");
	for (unsigned i = 0; i < limit->policy_count; i++) {
		check_policy(build, section, &limit->policies[i]);
		for (unsigned j = 0; j < i; j++)
			check_policy_pair(build, section, &limit->policies[j], &limit->policies[i]);
	}
}

static void
check_identity(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	bool is_always_there = limit->identity_count == 0;

	for (unsigned i = 0; i < limit->identity_count; i++) {
		const enum identity_source source = limit->identities[i].source;

		is_always_there =
			is_always_there || source == IDENTITY_IP || source == IDENTITY_ALL;
		if (source == IDENTITY_ALL)
			complain(build, SEVERITY_WARNING, section, "identity", NULL,
				"all: one bucket for all clients, so one of them can use up "
				"everybody's");
	}
	if (!is_always_there && limit->on_missing == ON_MISSING_UNSET &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "on_missing", NULL,
			"is missing: what of a request that has none of the identities? Write "
			"skip, "
			"reject or share, or end the list of identities with ip");
}

static bool
is_used(const struct build *build, const struct config_limit *limit)
{
	const struct config *config = build->config;

	for (unsigned i = 0; i < config->route_count; i++) {
		for (unsigned j = 0; j < config->routes[i]->limit_count; j++) {
			if (config->routes[i]->limits[j] == limit)
				return true;
		}
	}
	return section_kind_is_doubtful(build, SECTION_ROUTE);
}

void
validate_limits(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_LIMIT); section != NULL;
		section = section_next(section)) {
		const struct config_limit *limit = section->object;

		check_policies(build, section, limit);
		check_identity(build, section, limit);
		if (!is_used(build, limit))
			complain(build, SEVERITY_WARNING, section, "", NULL,
				"no route uses this limit");
	}
}
