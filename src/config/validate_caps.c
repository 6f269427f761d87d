/*
 * local_cap against what stands behind it. A cap that is looser than a policy of its limit changes
 * nothing; one that is stricter than a customer's plan takes from it, since no override changes the
 * cap.
 */
#include "sections.h"
#include "validate.h"

/* The cap is all that there is while Redis is away and requests pass. */
static bool
may_stand_alone(const struct config *config, const struct config_limit *limit)
{
	for (unsigned i = 0; config->has_redis && i < config->route_count; i++) {
		const struct config_route *route = config->routes[i];

		for (unsigned j = 0; j < route->limit_count; j++) {
			if (route->limits[j] == limit && route->store_down == STORE_DOWN_ADMIT)
				return true;
		}
	}
	return false;
}

static bool
is_replaced(const struct config_limit *limit, const struct config_policy *policy)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->policy_count; j++) {
			if (strcmp(override->policies[j].name, policy->name) == 0)
				return true;
		}
	}
	return false;
}

/* Of shards a request can be rejected by one and admitted by the next, so a cap keeps a flood from
 * them that nothing else does. */
static void
check_use(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	char place[PLACE_TEXT_SIZE];

	/* One for all limits is not meant for each of them. */
	if (section_own_setting(section, "local_cap") == NULL ||
		may_stand_alone(build->config, limit))
		return;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct config_policy *policy = &limit->policies[i];

		if (policy->shards > 1 || is_replaced(limit, policy) ||
			!config_policy_is_stricter(policy, limit->local_cap))
			continue;
		complain(build, SEVERITY_WARNING, section, "local_cap", &limit->local_cap->place,
			"changes nothing, since policy \"%s\" at %s is stricter in burst and in "
			"rate; write less than that, or leave it out",
			policy->name, complain_place(policy->place, place));
		return;
	}
}

/* Whether the policy would admit more than the cap, at once or in the long run. */
static bool
is_beyond(const struct config_policy *policy, const struct config_policy *cap)
{
	const struct rate *rate = &policy->rate;
	const double per_us = (double)rate->count / (double)rate->window_us;

	if (policy->shadow || policy->algorithm == POLICY_CONCURRENT)
		return false;
	if (policy->algorithm == POLICY_TOKEN_BUCKET && policy->burst > cap->burst)
		return true;
	return per_us > (double)cap->rate.count / (double)cap->rate.window_us;
}

static void
check_override(const struct build *build, const struct section *section)
{
	const struct config_override *override = section->object;
	const struct config_limit *limit = override->limit;
	const struct config_policy *cap = limit == NULL ? NULL : limit->local_cap;
	char place[PLACE_TEXT_SIZE];

	for (unsigned i = 0; cap != NULL && i < override->policy_count; i++) {
		if (is_beyond(&override->policies[i], cap))
			complain(build, SEVERITY_WARNING, section, "policy",
				&override->policies[i].place,
				"is more than local_cap of limit %s at %s, which is the same for "
				"all: no process admits more than %llu at once and %llu/%s; write "
				"a larger local_cap",
				limit->name, complain_place(cap->place, place),
				(unsigned long long)cap->burst, (unsigned long long)cap->rate.count,
				cap->rate.window);
	}
}

void
validate_caps(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_LIMIT); section != NULL;
		section = section_next(section)) {
		const struct config_limit *limit = section->object;

		if (limit->local_cap != NULL)
			check_use(build, section, limit);
	}
	for (const struct section *section = section_first(build, SECTION_OVERRIDE);
		section != NULL; section = section_next(section))
		check_override(build, section);
}
