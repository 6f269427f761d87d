/*
 * What a request costs, against what is held by whatever it must pass: the policies of its limits
 * and of their overrides, and the caps. A request that costs more is never admitted.
 */
#include "sections.h"
#include "validate.h"

#include <stdio.h>

enum { WHAT_SIZE = 200 };

/* Who holds the least. */
struct least {
	uint64_t holds; /* so much is enough, or what `policy` holds */
	const struct config_policy *policy; /* NULL: all hold enough */
	const char *kind, *name; /* of whom it is */
	bool is_cap;
};

/* Requests at a time are one each, whatever they cost. */
static void
consider(struct least *least, const struct config_policy *policies, unsigned count,
	const char *kind, const char *name)
{
	for (unsigned i = 0; i < count; i++) {
		if (policies[i].algorithm == POLICY_CONCURRENT ||
			config_policy_holds(&policies[i]) >= least->holds)
			continue;
		*least = (struct least){ config_policy_holds(&policies[i]), &policies[i], kind,
			name, false };
	}
}

static void
consider_cap(struct least *least, const struct config_limit *limit)
{
	if (limit->local_cap == NULL)
		return;
	consider(least, limit->local_cap, 1, "limit", limit->name);
	least->is_cap = least->policy == limit->local_cap;
}

static struct least
least_of(const struct config_limit *limit, uint64_t cost)
{
	struct least least = { .holds = cost };

	consider(&least, limit->policies, limit->policy_count, "limit", limit->name);
	consider_cap(&least, limit);
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		consider(&least, override->policies, override->policy_count, "override",
			override->name);
	}
	return least;
}

static void
say(const struct build *build, const struct section *section, const struct config_cost *cost,
	const struct least *least)
{
	const struct config_policy *policy = least->policy;
	const char *of_shard = policy->shards > 1 ? " in each shard" : "";
	const unsigned long long holds = least->holds;
	char what[WHAT_SIZE];

	if (least->is_cap)
		(void)snprintf(what, sizeof what, "local_cap of limit %s", least->name);
	else
		(void)snprintf(what, sizeof what, "policy \"%s\" of %s %s", policy->name,
			least->kind, least->name);
	if (cost->source == COST_FIXED)
		complain(build, SEVERITY_ERROR, section, "cost", NULL,
			"%llu is more than %s ever holds (burst %llu%s), so no request would be "
			"admitted",
			(unsigned long long)cost->max, what, holds, of_shard);
	else
		complain(build, SEVERITY_WARNING, section, "cost", NULL,
			"a request may cost more than %s ever holds (burst %llu%s), and would "
			"never be admitted; write max %llu",
			what, holds, of_shard, holds);
}

void
validate_costs(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section)) {
		const struct config_route *route = section->object;

		for (unsigned i = 0; i < route->limit_count; i++) {
			const struct least least = least_of(route->limits[i], route->cost.max);

			if (least.policy != NULL)
				say(build, section, &route->cost, &least);
		}
	}
}
