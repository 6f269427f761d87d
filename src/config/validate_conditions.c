/*
 * Conditions that a client meets by what it claims. They may bring a request under a limit, but
 * whoever is let out of one by them is let out by writing them; and a client must not choose its
 * backend by a host that it writes.
 */
#include "sections.h"
#include "validate.h"
#include "values.h"

/* ---- limits ---- */

static bool
is_same_who(const struct config_limit *a, const struct config_limit *b)
{
	if (a->identity_count != b->identity_count)
		return false;
	for (unsigned i = 0; i < a->identity_count; i++) {
		if (!identity_is(&a->identities[i], &b->identities[i]))
			return false;
	}
	return a->on_missing == b->on_missing;
}

/* Everybody is one to it, so it takes in whomever another limit tells apart. */
static bool
is_for_all(const struct config_limit *limit)
{
	return limit->identity_count == 1 && limit->identities[0].parts[0].source == IDENTITY_ALL;
}

static bool
has_stricter(const struct config_limit *limit, const struct config_policy *policy)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (config_policy_is_stricter(&limit->policies[i], policy))
			return true;
	}
	return false;
}

/* Whoever passes `strict` would pass `limit` too. */
static bool
is_as_strict(const struct config_limit *strict, const struct config_limit *limit)
{
	if (strict == limit)
		return true;
	if (!config_limit_bites(strict) || strict->override_count > 0 ||
		(!is_for_all(strict) && !is_same_who(strict, limit)))
		return false;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (!limit->policies[i].shadow && !has_stricter(strict, &limit->policies[i]))
			return false;
	}
	return true;
}

/* A limit of the route `from` that a request is rid of when it goes to `to`; NULL if none. */
static const struct config_limit *
lost_limit(const struct config_route *from, const struct config_route *to)
{
	for (unsigned i = 0; i < from->limit_count; i++) {
		bool is_kept = !config_limit_bites(from->limits[i]);

		for (unsigned j = 0; j < to->limit_count && !is_kept; j++)
			is_kept = is_as_strict(to->limits[j], from->limits[i]);
		if (!is_kept)
			return from->limits[i];
	}
	return NULL;
}

/* The conditions cannot be met by writing something. */
static bool
wants_more_than_claims(const struct config_route *route)
{
	for (unsigned i = 0; i < route->when_count; i++) {
		const struct config_when *when = &route->whens[i];

		if (!when->is_not && !config_is_claimed(when->source, when->param))
			return true;
	}
	return false;
}

/* A client that writes what a condition asks for goes to the route, and one that writes what `not`
 * asks for goes to the other; neither may be rid of a limit by that. */
static void
check_when(const struct build *build, const struct section *section,
	const struct config_route *route, const struct config_route *other)
{
	const struct config_limit *lost_here =
		wants_more_than_claims(route) ? NULL : lost_limit(other, route);
	const struct config_limit *lost_there = lost_limit(route, other);

	for (unsigned i = 0; i < route->when_count; i++) {
		const struct config_when *when = &route->whens[i];
		const struct config_limit *lost = when->is_not ? lost_there : lost_here;
		char text[SOURCE_TEXT_SIZE];

		if (lost == NULL || !config_is_claimed(when->source, when->param))
			continue;
		complain(build, SEVERITY_WARNING, section, "when", &when->place,
			"a client can write that: with the right %s it gets from route %s to "
			"route %s and so around limit %s; give that route a limit as strict",
			source_text(when->source, when->name, text),
			when->is_not ? route->name : other->name,
			when->is_not ? other->name : route->name, lost->name);
	}
}

static void
check_host(const struct build *build, const struct section *section,
	const struct config_route *route, const struct config_route *other)
{
	const struct config_limit *lost_here = lost_limit(other, route);
	const struct config_limit *lost_there = lost_limit(route, other);

	if (lost_here != NULL && !wants_more_than_claims(route))
		complain(build, SEVERITY_WARNING, section, "host", NULL,
			"a client can write that: with this host it gets from route %s to this "
			"one and so around limit %s; give this route a limit as strict",
			other->name, lost_here->name);
	if (lost_there != NULL)
		complain(build, SEVERITY_WARNING, section, "host", NULL,
			"the same path under another host goes to route %s, without limit %s; a "
			"client can write any host",
			other->name, lost_there->name);
}

/* ---- routes ---- */

typedef void pair_fn(const struct build *build, const struct section *section,
	const struct config_route *route, const struct config_route *other);

/* Calls back for each route that gets what the conditions of the nth keep from it. */
static void
each_other(const struct build *build, const struct section *section, unsigned nth, pair_fn *each)
{
	const struct config *config = build->config;
	const struct config_route *route = config->routes[nth], *last = NULL;
	const unsigned count = route->match_count + route->script_count;

	if (route->when_count == 0 && route->host_count == 0)
		return;
	for (unsigned i = 0; i < count; i++) {
		bool is_script;
		const struct config_pattern *pattern = config_nth_pattern(route, i, &is_script);
		const struct config_route *other = config_fallback(config, nth, pattern, is_script);

		if (other == NULL || other == last)
			continue;
		last = other;
		each(build, section, route, other);
	}
}

static void
check_conditions(const struct build *build, const struct section *section,
	const struct config_route *route, const struct config_route *other)
{
	check_when(build, section, route, other);
	if (route->host_count > 0)
		check_host(build, section, route, other);
}

void
validate_conditions(const struct build *build)
{
	unsigned nth = 0;

	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section))
		each_other(build, section, nth++, check_conditions);
}

static void
check_backend_of_host(const struct build *build, const struct section *section,
	const struct config_route *route, const struct config_route *other)
{
	const bool may_be_none = config_has_owned_listens_only(build->config);

	if (route->host_count > 0 && other->backend != route->backend &&
		(may_be_none || (other->backend != NULL && route->backend != NULL)))
		complain(build, SEVERITY_ERROR, section, "host", NULL,
			"a client can write any host, so it may choose a limit, never a backend: "
			"elsewhere the same request goes to route %s with %s%s",
			other->name, other->backend == NULL ? "its listener's backend" : "backend ",
			other->backend == NULL ? "" : other->backend->name);
}

void
validate_hosts(const struct build *build)
{
	unsigned nth = 0;

	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section), nth++) {
		if (!section_is_doubtful(build, section))
			each_other(build, section, nth, check_backend_of_host);
	}
}
