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

/* Takes every path but the one that is no path (RFC 9112 section 3.2.4). */
static bool
is_all_but_asterisk(const struct config_pattern *pattern)
{
	return pattern->methods == NULL &&
		(strcmp(pattern->text, "/") == 0 || strcmp(pattern->text, "/*") == 0) &&
		pattern->kind != PATTERN_EXACT && pattern->kind != PATTERN_REGEX;
}

static bool
is_by_address(const struct config_limit *limit)
{
	return limit->identity_count == 1 && limit->identities[0].part_count == 1 &&
		limit->identities[0].parts[0].source == IDENTITY_IP;
}

static void
propose_last_route(const struct build *build)
{
	const struct config *config = build->config;
	const struct config_limit *limit = config->limit_count == 0 ? NULL : config->limits[0];
	const bool needs_backend = config->backend_count > 1;

	for (unsigned i = 0; i < config->limit_count; i++) {
		if (is_by_address(config->limits[i])) {
			limit = config->limits[i];
			break;
		}
	}
	complain_whole(build,
		"no route takes what the others leave; add as the last one:\n"
		"[route default]\n"
		"match = *%s%s%s%s",
		limit == NULL ? "" : "\nlimit = ", limit == NULL ? "" : limit->name,
		needs_backend ? "\nbackend = " : "",
		needs_backend ? config->backends[0]->name : "");
}

typedef bool pattern_is_fn(const struct config_pattern *pattern);

static bool
is_everything(const struct config_pattern *pattern)
{
	return pattern->methods == NULL && config_pattern_is_any_path(pattern);
}

/* The first such pattern of the URL's path, of a route with conditions or of one without, and where
 * it stands; NULL if there is none. */
static const struct config_pattern *
find_match(const struct build *build, pattern_is_fn *is, bool with_conditions,
	const struct section **section)
{
	for (*section = section_first(build, SECTION_ROUTE); *section != NULL;
		*section = section_next(*section)) {
		const struct config_route *route = (*section)->object;

		for (unsigned i = 0; i < route->match_count; i++) {
			if (is(&route->matches[i]) && is_unconditional(route) != with_conditions)
				return &route->matches[i];
		}
	}
	return NULL;
}

static void
check_everything_taken(const struct build *build)
{
	const struct section *section;

	if (find_match(build, is_everything, false, &section) != NULL)
		return;
	const struct config_pattern *nearly =
		find_match(build, is_all_but_asterisk, false, &section);

	if (nearly != NULL) {
		complain(build, SEVERITY_ERROR, section, "match", &nearly->place,
			"%s does not fit \"OPTIONS *\", so no route takes what the others leave; "
			"write match = *",
			nearly->text);
		return;
	}
	if (section_kind_is_doubtful(build, SECTION_ROUTE))
		return;
	propose_last_route(build);
	nearly = find_match(build, is_everything, true, &section);
	if (nearly != NULL)
		complain(build, SEVERITY_WARNING, section, "match", &nearly->place,
			"does not take what is left, since the route has %s",
			((const struct config_route *)section->object)->when_count > 0 ? "when"
										       : "host");
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
