/*
 * What a client can choose by what it claims. Headers, cookies, parameters and the host are its own
 * words: they may bring a request under a limit, but whoever is let out of one by them is let out
 * by writing them, and whoever is counted by them is somebody else in each request.
 */
#include "sections.h"
#include "validate.h"
#include "values.h"

/* FastCGI parameters that say what the client does, beside HTTP_*. The port is the client's, and
 * SERVER_NAME is its Host field under lighttpd and Apache. */
static const char *const claimed_variables[] = { "QUERY_STRING", "REQUEST_URI", "DOCUMENT_URI",
	"PATH_INFO", "PATH_TRANSLATED", "CONTENT_TYPE", "CONTENT_LENGTH", "REQUEST_METHOD",
	"REMOTE_PORT", "SERVER_NAME" };

static bool
is_claimed_source(enum identity_source source, const char *param)
{
	switch (source) {
	case IDENTITY_HEADER:
	case IDENTITY_COOKIE:
	case IDENTITY_PARAM:
		return true;
	case IDENTITY_ENV:
		for (size_t i = 0; i < sizeof claimed_variables / sizeof claimed_variables[0];
			i++) {
			if (strcmp(param, claimed_variables[i]) == 0)
				return true;
		}
		return strncmp(param, "HTTP_", 5) == 0;
	case IDENTITY_IP:
	case IDENTITY_USER:
	case IDENTITY_HOST:
	case IDENTITY_PATH:
	case IDENTITY_BACKEND:
	case IDENTITY_ROUTE:
	case IDENTITY_ALL:
		break;
	}
	return false;
}

/* ---- identities ---- */

/* The route takes so few that nobody can be many by them. */
static bool
is_path_fixed(const struct config_route *route)
{
	for (unsigned i = 0; i < route->match_count; i++) {
		if (route->matches[i].kind != PATTERN_EXACT || route->matches[i].nocase)
			return false;
	}
	return route->script_count == 0;
}

static bool
is_host_fixed(const struct config_route *route)
{
	for (unsigned i = 0; i < route->host_count; i++) {
		if (route->hosts[i].is_below)
			return false;
	}
	return route->host_count > 0;
}

static bool
is_claimed_part(const struct config_route *route, const struct config_identity_part *part)
{
	if (part->source == IDENTITY_HOST)
		return !is_host_fixed(route);
	if (part->source == IDENTITY_PATH)
		return !is_path_fixed(route);
	return !part->known && is_claimed_source(part->source, part->param);
}

/* The first part of the limit's identities that a client writes; NULL if there is none. */
static const struct config_identity_part *
claimed_part(const struct config_route *route, const struct config_limit *limit)
{
	for (unsigned i = 0; i < limit->identity_count; i++) {
		const struct config_identity *identity = &limit->identities[i];

		for (unsigned j = 0; j < identity->part_count; j++) {
			if (is_claimed_part(route, &identity->parts[j]))
				return &identity->parts[j];
		}
	}
	return NULL;
}

/* It can reject a request. */
static bool
bites(const struct config_limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (!limit->policies[i].shadow)
			return limit->enforce;
	}
	return false;
}

/* Nobody can be somebody else to this limit: it ends at the address, or everybody is one. */
static bool
is_by_address(const struct config_route *route, const struct config_limit *limit)
{
	if (!bites(limit) || limit->identity_count == 0 || claimed_part(route, limit) != NULL)
		return false;
	const struct config_identity *last = &limit->identities[limit->identity_count - 1];

	for (unsigned i = 0; i < last->part_count; i++) {
		if (last->parts[i].source == IDENTITY_IP)
			return true;
	}
	return false;
}

static void
check_identities(
	const struct build *build, const struct section *section, const struct config_route *route)
{
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (is_by_address(route, route->limits[i]))
			return;
	}
	for (unsigned i = 0; i < route->limit_count; i++) {
		const struct config_limit *limit = route->limits[i];
		const struct config_identity_part *part = claimed_part(route, limit);
		char text[SOURCE_TEXT_SIZE];

		if (part != NULL)
			complain(build, SEVERITY_WARNING, section, "limit", NULL,
				"limit %s counts by %s, which a client writes: anyone gets a fresh "
				"bucket for each request; add a limit by ip%s",
				limit->name, source_text(part->source, part->name, text),
				part->name == NULL ? "" : ", or write known behind it");
	}
}

/* ---- conditions ---- */

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
	if (!bites(strict) || strict->override_count > 0 ||
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
		bool is_kept = !bites(from->limits[i]);

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

		if (!when->is_not && !is_claimed_source(when->source, when->param))
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

		if (lost == NULL || !is_claimed_source(when->source, when->param))
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

	if (other->backend != route->backend && other->backend != NULL && route->backend != NULL)
		complain(build, SEVERITY_ERROR, section, "host", NULL,
			"a client can write any host, so it may choose a limit, never a backend: "
			"elsewhere the same request goes to route %s with backend %s",
			other->name, other->backend->name);
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

static void
check_conditions(const struct build *build, const struct section *section, unsigned nth)
{
	const struct config *config = build->config;
	const struct config_route *route = config->routes[nth], *last = NULL;
	const unsigned count = route->match_count + route->script_count;

	for (unsigned i = 0; i < count; i++) {
		bool is_script;
		const struct config_pattern *pattern = config_nth_pattern(route, i, &is_script);
		const struct config_route *other = config_fallback(config, nth, pattern, is_script);

		if (other == NULL || other == last)
			continue;
		last = other;
		check_when(build, section, route, other);
		if (route->host_count > 0)
			check_host(build, section, route, other);
	}
}

void
validate_claims(const struct build *build)
{
	unsigned nth = 0;

	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section), nth++) {
		const struct config_route *route = section->object;

		check_identities(build, section, route);
		if (!section_is_doubtful(build, section) &&
			(route->when_count > 0 || route->host_count > 0))
			check_conditions(build, section, nth);
	}
}
