/*
 * What nothing else in the configuration makes use of. Held against a configuration without an
 * error only: in one with a misspelt section, whatever that was to use would seem to be idle.
 */
#include "sections.h"
#include "validate.h"
#include "values.h"

/* ---- who is used ---- */

static bool
has_limit(const struct config_route *route, const struct config_limit *limit)
{
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (route->limits[i] == limit)
			return true;
	}
	return false;
}

static void
check_limit_is_used(const struct build *build, const struct section *section)
{
	const struct config *config = build->config;

	for (unsigned i = 0; i < config->route_count; i++) {
		if (has_limit(config->routes[i], section->object))
			return;
	}
	complain(build, SEVERITY_WARNING, section, "", NULL, "no route uses this limit");
}

static void
check_backend_is_used(const struct build *build, const struct section *section)
{
	const struct config *config = build->config;

	const struct config_backend *backend = section->object;

	for (unsigned i = 0; i < config->route_count; i++) {
		const struct config_backend *used = config->routes[i]->backend;

		if (used == backend || (used == NULL && backend->listen_count > 0))
			return;
	}
	complain(build, SEVERITY_WARNING, section, "", NULL, "no route uses this backend");
}

/* ---- known values ---- */

/* An override of the limit names a value that is found there. */
static bool
has_names(const struct config_limit *limit, const struct config_identity_part *part)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			const struct config_for *list = &override->fors[j];

			if (source_is(part, list->source, list->name, list->param))
				return true;
		}
	}
	return false;
}

static void
check_known(const struct build *build, const struct section *section)
{
	const struct config_limit *limit = section->object;
	char text[SOURCE_TEXT_SIZE];

	for (unsigned i = 0; i < limit->identity_count; i++) {
		const struct config_identity *identity = &limit->identities[i];

		for (unsigned j = 0; j < identity->part_count; j++) {
			const struct config_identity_part *part = &identity->parts[j];

			if (!part->known || has_names(limit, part))
				continue;
			complain(build, SEVERITY_WARNING, section, "identity", NULL,
				"no [override] of this limit names a value of %s, so none is known "
				"and this is never present",
				source_text(part->source, part->name, text));
		}
	}
}

/* ---- what wants [redis] ---- */

/* Which directory of the state a reboot empties; NULL: it lasts. */
static const char *
where_state_is_lost(const struct config *config)
{
	static const char *const lost[] = { "/run/", "/var/run/", "/tmp/", "/dev/shm/",
		WEIR_RUNDIR "/" };
	const struct slice path = slice_of(config->memory_state);

	if (path.len == 0)
		return "";
	for (size_t i = 0; i < sizeof lost / sizeof lost[0]; i++) {
		if (slice_has_prefix(path, slice_of(lost[i])))
			return lost[i];
	}
	return NULL;
}

static void
check_policies_last(const struct build *build, const struct section *section,
	const struct config_policy *policies, unsigned count)
{
	const char *where = where_state_is_lost(build->config);

	for (unsigned i = 0; i < count; i++) {
		const struct config_policy *policy = &policies[i];

		if (policy->rate.window_us > 3600 * US_PER_S)
			complain(build, SEVERITY_WARNING, section, "policy", &policy->place,
				"a count over %s%s is lost at a reboot%s%s; add [redis], or "
				"[memory] state = a file on a disk%s",
				policy->algorithm == POLICY_CALENDAR ? "a " : "",
				policy->rate.window,
				where[0] == '\0' ? "" : ", since [memory] state is in ", where,
				where[0] == '\0' ? "" : ", such as /var/lib/weir/state");
	}
}

static void
check_counts_last(const struct build *build)
{
	if (where_state_is_lost(build->config) == NULL)
		return;
	for (const struct section *s = section_first(build, SECTION_LIMIT); s != NULL;
		s = section_next(s)) {
		const struct config_limit *limit = s->object;

		check_policies_last(build, s, limit->policies, limit->policy_count);
	}
	for (const struct section *s = section_first(build, SECTION_OVERRIDE); s != NULL;
		s = section_next(s)) {
		const struct config_override *override = s->object;

		check_policies_last(build, s, override->policies, override->policy_count);
	}
}

static void
check_store_down_is_heard(const struct build *build, const struct section *section)
{
	const struct setting *setting =
		section == NULL ? NULL : section_own_setting(section, "store_down");

	if (setting != NULL && setting->value[0] != '\0')
		complain(build, SEVERITY_WARNING, section, "store_down", NULL,
			"has no effect without [redis]");
}

/* Of the defaults it may be meant for the other routes. */
static void
check_exempt_is_heard(const struct build *build, const struct section *section)
{
	const struct config_route *route = section->object;
	const struct setting *setting = section_own_setting(section, "exempt_ip");

	if (route->limit_count == 0 && setting != NULL && setting->value[0] != '\0')
		complain(build, SEVERITY_WARNING, section, "exempt_ip", NULL,
			"has no effect: this route has no limit; for all routes write it into "
			"[route]");
}

static void
check_without_redis(const struct build *build)
{
	check_counts_last(build);
	check_store_down_is_heard(build, build->unnamed[SECTION_ROUTE]);
	for (const struct section *s = section_first(build, SECTION_ROUTE); s != NULL;
		s = section_next(s))
		check_store_down_is_heard(build, s);
}

void
validate_use(const struct build *build)
{
	for (const struct section *s = section_first(build, SECTION_LIMIT); s != NULL;
		s = section_next(s)) {
		check_limit_is_used(build, s);
		check_known(build, s);
	}
	for (const struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s))
		check_backend_is_used(build, s);
	for (const struct section *s = section_first(build, SECTION_ROUTE); s != NULL;
		s = section_next(s))
		check_exempt_is_heard(build, s);
	if (!build->config->has_redis)
		check_without_redis(build);
}
