/*
 * Who is counted by what a client claims. Headers, cookies, parameters and the host are its own
 * words, and whoever is counted by them is somebody else in each request.
 */
#include "sections.h"
#include "validate.h"
#include "values.h"

/* FastCGI parameters that say what the client does, beside HTTP_*. The port is the client's, and
 * SERVER_NAME is its Host field under lighttpd and Apache. */
static const char *const claimed_variables[] = { "QUERY_STRING", "REQUEST_URI", "DOCUMENT_URI",
	"PATH_INFO", "PATH_TRANSLATED", "CONTENT_TYPE", "CONTENT_LENGTH", "REQUEST_METHOD",
	"REMOTE_PORT", "SERVER_NAME" };

bool
config_is_claimed(enum identity_source source, const char *param)
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
	return !part->known && config_is_claimed(part->source, part->param);
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

bool
config_limit_bites(const struct config_limit *limit)
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
	if (!config_limit_bites(limit) || limit->identity_count == 0 ||
		claimed_part(route, limit) != NULL)
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

void
validate_claims(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section))
		check_identities(build, section, section->object);
}
