/*
 * The order of routes. The first that fits is taken, so a route behind one that takes everything it
 * would is dead, and so is the limit that it carries; and a request that no route fits must not
 * exist, so one of them takes everything, on no condition.
 */
#include "pattern.h"
#include "sections.h"
#include "validate.h"

/* A pattern of the URL's path says nothing of the script and the other way round, but for the one
 * that fits any path: there is always a path. */
static bool
covers(const struct config_pattern *outer, bool outer_is_script, const struct config_pattern *inner,
	bool inner_is_script)
{
	if (outer_is_script != inner_is_script &&
		(outer_is_script || !config_pattern_is_any_path(outer)))
		return false;
	return config_pattern_covers(outer, inner);
}

static bool
route_covers(
	const struct config_route *route, const struct config_pattern *inner, bool inner_is_script)
{
	for (unsigned i = 0; i < route->match_count; i++) {
		if (covers(&route->matches[i], false, inner, inner_is_script))
			return true;
	}
	for (unsigned i = 0; i < route->script_count; i++) {
		if (covers(&route->scripts[i], true, inner, inner_is_script))
			return true;
	}
	return false;
}

/* The first route before the nth that takes all that its pattern would; NULL if there is none. */
static const struct config_route *
taken_by(const struct config *config, unsigned nth, const struct config_pattern *pattern,
	bool is_script)
{
	for (unsigned i = 0; i < nth; i++) {
		if (route_covers(config->routes[i], pattern, is_script) &&
			config_conditions_cover(config->routes[i], config->routes[nth]))
			return config->routes[i];
	}
	return NULL;
}

static bool
is_unconditional(const struct config_route *route)
{
	return route->when_count == 0 && route->host_count == 0;
}

const struct config_route *
config_fallback(const struct config *config, unsigned nth, const struct config_pattern *pattern,
	bool is_script)
{
	for (unsigned i = nth + 1; i < config->route_count; i++) {
		if (is_unconditional(config->routes[i]) &&
			route_covers(config->routes[i], pattern, is_script))
			return config->routes[i];
	}
	return NULL;
}

const struct config_pattern *
config_nth_pattern(const struct config_route *route, unsigned n, bool *is_script)
{
	*is_script = n >= route->match_count;
	return *is_script ? &route->scripts[n - route->match_count] : &route->matches[n];
}

static const struct section *
section_of(const struct build *build, const void *object)
{
	const struct section *section = section_first(build, SECTION_ROUTE);

	while (section->object != object)
		section = section_next(section);
	return section;
}

static void
check_reached(const struct build *build, const struct section *section, unsigned nth)
{
	const struct config *config = build->config;
	const struct config_route *route = config->routes[nth], *by = NULL;
	const unsigned count = route->match_count + route->script_count;
	unsigned dead = 0;
	char place[PLACE_TEXT_SIZE];
	bool is_script;

	for (unsigned i = 0; i < count; i++) {
		const struct config_pattern *pattern = config_nth_pattern(route, i, &is_script);
		const struct config_route *other = taken_by(config, nth, pattern, is_script);

		dead += other != NULL;
		by = other != NULL ? other : by;
	}
	/* One that has lost a condition to an error takes too much. */
	if (by != NULL && section_is_doubtful(build, section_of(build, by)))
		return;
	if (by != NULL && dead == count) {
		complain(build, SEVERITY_ERROR, section, "", NULL,
			"can never match, since route %s at %s takes everything that it would; put "
			"it before that one",
			by->name, complain_place(by->place, place));
		return;
	}
	for (unsigned i = 0; dead > 0 && i < count; i++) {
		const struct config_pattern *pattern = config_nth_pattern(route, i, &is_script);

		by = taken_by(config, nth, pattern, is_script);
		if (by != NULL)
			complain(build, SEVERITY_WARNING, section, is_script ? "script" : "match",
				&pattern->place,
				"is never reached, since route %s at %s takes it first", by->name,
				complain_place(by->place, place));
	}
}

/* ---- what is left ---- */

/* Takes every path but the one that is no path (RFC 9112 section 3.2.4). */
static bool
is_all_but_asterisk(const struct config_pattern *pattern)
{
	return (strcmp(pattern->text, "/") == 0 || strcmp(pattern->text, "/*") == 0) &&
		pattern->kind != PATTERN_EXACT && pattern->kind != PATTERN_REGEX;
}

/* Why the pattern does not take everything, though it looks so; NULL: it does not look so. */
static const char *
shortfall(const struct config_route *route, const struct config_pattern *pattern, bool is_script)
{
	if (!config_pattern_is_any_path(pattern) && !is_all_but_asterisk(pattern))
		return NULL;
	if (route->when_count > 0)
		return "takes only what its `when` holds of";
	if (route->host_count > 0)
		return "takes only its hosts";
	if (is_script)
		return "takes only requests that have a script";
	if (pattern->methods != NULL)
		return "takes only these methods";
	return config_pattern_is_any_path(pattern) ? "" : "does not fit \"OPTIONS *\"";
}

static bool
is_name_free(const struct build *build, const char *name)
{
	for (const struct section *s = build->list.first; s != NULL; s = s->next) {
		if (s->rule == SECTION_ROUTE && strcmp(s->name, name) == 0)
			return false;
	}
	return true;
}

static bool
is_by_address(const struct config_limit *limit)
{
	return limit->identity_count == 1 && limit->identities[0].part_count == 1 &&
		limit->identities[0].parts[0].source == IDENTITY_IP;
}

static const struct config_limit *
choose_limit(const struct config *config)
{
	for (unsigned i = 0; i < config->limit_count; i++) {
		if (is_by_address(config->limits[i]))
			return config->limits[i];
	}
	return config->limit_count == 0 ? NULL : config->limits[0];
}

/* Said at the last route, behind which it belongs. */
static void
propose_last_route(const struct build *build, const struct section *last)
{
	static const char problem[] = "no route takes what the others leave; add";
	const struct config *config = build->config;
	const struct config_limit *limit = choose_limit(config);
	const bool needs_backend = config->backend_count > 1;
	char name[32] = "default", proposal[512];

	for (unsigned i = 2; !is_name_free(build, name); i++)
		(void)snprintf(name, sizeof name, "rest%u", i);
	(void)snprintf(proposal, sizeof proposal, "[route %s]\nmatch = *%s%s%s%s", name,
		limit == NULL ? "" : "\nlimit = ", limit == NULL ? "" : limit->name,
		needs_backend ? "\nbackend = " : "",
		needs_backend ? config->backends[0]->name : "");
	if (last == NULL)
		complain_whole(build, "%s:\n%s", problem, proposal);
	else
		complain(build, SEVERITY_ERROR, last, "", NULL, "%s behind the last one:\n%s",
			problem, proposal);
}

/* The pattern that nearly takes everything, of the last route that has one, and what it lacks. */
struct nearly {
	const struct section *section;
	const struct config_pattern *pattern;
	const char *lacks; /* "": nothing; NULL: there is none */
	bool is_script;
};

static void
look_at(const struct section *section, struct nearly *nearly)
{
	const struct config_route *route = section->object;

	for (unsigned i = 0; i < route->match_count + route->script_count; i++) {
		bool is_script;
		const struct config_pattern *pattern = config_nth_pattern(route, i, &is_script);
		const char *lacks = shortfall(route, pattern, is_script);

		if (lacks == NULL || (nearly->lacks != NULL && nearly->lacks[0] == '\0'))
			continue;
		*nearly = (struct nearly){ section, pattern, lacks, is_script };
	}
}

static void
check_everything_taken(const struct build *build)
{
	const struct section *last = NULL;
	struct nearly nearly = { 0 };

	for (const struct section *s = section_first(build, SECTION_ROUTE); s != NULL;
		s = section_next(s)) {
		look_at(s, &nearly);
		last = s;
	}
	if (nearly.lacks != NULL && nearly.lacks[0] == '\0')
		return;
	if (section_kind_is_doubtful(build, SECTION_ROUTE))
		return;
	/* One with conditions is meant to be as it is. */
	if (nearly.lacks == NULL || nearly.section != last ||
		!is_unconditional(nearly.section->object))
		propose_last_route(build, last);
	else
		complain(build, SEVERITY_ERROR, last, nearly.is_script ? "script" : "match",
			&nearly.pattern->place,
			"%s, so no route takes what the others leave; write match = *",
			nearly.lacks);
	if (nearly.lacks != NULL && !is_unconditional(nearly.section->object))
		complain(build, SEVERITY_WARNING, nearly.section,
			nearly.is_script ? "script" : "match", &nearly.pattern->place,
			"%s, and not what is left", nearly.lacks);
}

void
validate_order(const struct build *build)
{
	unsigned nth = 0;

	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section))
		check_reached(build, section, nth++);
	check_everything_taken(build);
}
