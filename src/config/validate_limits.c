/* Limits, each by itself: whether it means what it seems to say. */
#include "sections.h"
#include "validate.h"
#include "values.h"

static void
check_policies(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	if (limit->policy_count == 0 && !section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "policy", NULL,
			"is missing: how much is admitted? Write policy = 10/1s burst 60");
	validate_policies(build, section, limit->policies, limit->policy_count);
	if (limit->local_cap != NULL)
		validate_rate(build, section, "local_cap", limit->local_cap);
}

static void
check_identity(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	bool is_always_there = limit->identity_count == 0;

	for (unsigned i = 0; i < limit->identity_count; i++) {
		const struct config_identity *identity = &limit->identities[i];

		is_always_there = is_always_there || identity_is_always_present(identity);
		if (identity->parts[0].source == IDENTITY_ALL)
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

/* Requests at a time are counted from admission to end, and that has to be seen. */
static void
check_lease(const struct build *build, const struct section *section,
	const struct config_policy *policy, const struct config_route *route,
	const struct config_backend *backend)
{
	char lease[DURATION_TEXT_SIZE], idle[DURATION_TEXT_SIZE];

	if (backend->type == BACKEND_NONE)
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"backend %s of route %s is of type none, so weir does not see how long a "
			"request runs, and concurrent counts nothing",
			backend->name, route->name);
	else if (policy->lease_us < backend->idle_timeout_us)
		complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
			"the lease of %s ends before a request that backend %s may leave in "
			"silence for %s (idle_timeout), and its place is given away; write a "
			"longer lease",
			duration_text(policy->lease_us, lease), backend->name,
			duration_text(backend->idle_timeout_us, idle));
}

/* With the route's backend, or with each that it may get from a listener. */
static void
check_policy_leases(const struct build *build, const struct section *section,
	const struct config_policy *policy, const struct config_route *route)
{
	const struct config *config = build->config;

	if (policy->algorithm != POLICY_CONCURRENT)
		return;
	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct config_backend *backend = config->backends[i];

		if (route->backend == NULL ? backend->listen_count > 0 : route->backend == backend)
			check_lease(build, section, policy, route, backend);
	}
}

static void
check_leases(
	const struct build *build, const struct section *section, const struct config_limit *limit)
{
	const struct config *config = build->config;

	for (unsigned i = 0; i < config->route_count; i++) {
		const struct config_route *route = config->routes[i];

		for (unsigned j = 0; j < route->limit_count; j++) {
			for (unsigned k = 0; k < limit->policy_count && route->limits[j] == limit;
				k++)
				check_policy_leases(build, section, &limit->policies[k], route);
		}
	}
}

void
validate_limits(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_LIMIT); section != NULL;
		section = section_next(section)) {
		const struct config_limit *limit = section->object;

		check_policies(build, section, limit);
		check_identity(build, section, limit);
		check_leases(build, section, limit);
	}
}
