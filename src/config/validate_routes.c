/* Routes, each by itself: whether it can admit anything, and whether it limits whom it should. */
#include "nearest.h"
#include "pattern.h"
#include "sections.h"
#include "validate.h"

bool
config_has_owned_listens_only(const struct config *config)
{
	const struct config_backend *backend;

	return config->listen_count == 0 && config_listen_at(config, 0, &backend) != NULL;
}

static void
check_backend(
	const struct build *build, const struct section *section, const struct config_route *route)
{
	const unsigned count = build->config->backend_count;

	if (route->backend == NULL && count > 1 && !config_has_owned_listens_only(build->config) &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "backend", NULL,
			"is missing: there are %u backends; say which, such as backend = %s", count,
			build->config->backends[0]->name);
}

static bool
takes_everything(const struct config_route *route)
{
	for (unsigned i = 0; i < route->match_count; i++) {
		if (route->matches[i].methods == NULL &&
			config_pattern_is_any_path(&route->matches[i]))
			return route->when_count == 0 && route->host_count == 0;
	}
	return false;
}

static void
check_store_down(
	const struct build *build, const struct section *section, const struct config_route *route)
{
	if (build->config->has_redis && route->store_down == STORE_DOWN_REJECT &&
		route->limit_count > 0 && takes_everything(route))
		complain(build, SEVERITY_WARNING, section, "store_down", NULL,
			"reject on a route that takes everything: with Redis gone the site is "
			"gone; "
			"local counts on this host alone meanwhile");
}

/* The methods of HTTP (RFC 9110, RFC 5789) and the usual ones of WebDAV (RFC 4918). */
static const char *const known_methods[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT",
	"OPTIONS", "TRACE", "PATCH", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK",
	"UNLOCK", "REPORT", "SEARCH", "PURGE" };

/* A misspelt method is a limit that nobody meets. */
static void
check_methods(const struct build *build, const struct section *section, const char *key,
	const struct config_pattern *pattern)
{
	struct slice rest = slice_of(pattern->methods), method;

	while (slice_split(&rest, '|', &method)) {
		struct nearest nearest;

		nearest_init(&nearest, method);
		for (size_t i = 0; i < sizeof known_methods / sizeof known_methods[0]; i++)
			nearest_offer(&nearest, known_methods[i]);
		if (nearest.best != NULL && nearest.distance > 0)
			complain(build, SEVERITY_WARNING, section, key, &pattern->place,
				"\"%.*s\" is no usual method; did you mean \"%s\"?",
				(int)method.len, method.ptr, nearest.best);
	}
}

/* Whether ^ or \A stands anywhere but in a class such as [^/]. */
static bool
has_anchor(const char *regex)
{
	bool is_in_class = false;

	for (const char *c = regex; *c != '\0'; c++) {
		if (*c == '\\' && c[1] == 'A' && !is_in_class)
			return true;
		if (*c == '^' && !is_in_class)
			return true;
		if (*c == '[' && c[1] == '^')
			c++;
		if (*c == '\\' && c[1] != '\0')
			c++;
		else if (*c == '[' || *c == '^')
			is_in_class = true;
		else if (*c == ']')
			is_in_class = false;
	}
	return false;
}

static bool
names_script(const struct config_pattern *pattern)
{
	struct slice text = slice_of(pattern->text);

	if (pattern->kind == PATTERN_REGEX && text.len > 0 && text.ptr[text.len - 1] == '$')
		text.len--;
	if (text.len < 4)
		return false;
	const struct slice end = slice_skip(text, text.len - 4);

	return slice_is_nocase(end, SLICE(".php")) || slice_is_nocase(end, SLICE(".cgi"));
}

/* Another pattern of the list takes the path itself, which "/path/" leaves out, with or without a
 * star. */
static bool
has_path_itself(const struct config_pattern *patterns, unsigned count,
	const struct config_pattern *pattern, const char *path)
{
	struct config_pattern itself = *pattern;

	itself.kind = strchr(path, '*') != NULL ? PATTERN_GLOB : PATTERN_BELOW;
	itself.text = path;
	for (unsigned i = 0; i < count; i++) {
		struct config_pattern exact = itself;

		if (patterns[i].kind == PATTERN_EXACT)
			exact.kind = PATTERN_EXACT;
		if (config_pattern_covers(&patterns[i], &exact))
			return true;
	}
	return false;
}

/* nginx's "location /api/" and a shell's star behind it are taken for "/api and all below it". */
static void
check_slash(const struct build *build, const struct section *section, const char *key,
	const struct config_pattern *patterns, unsigned count, unsigned nth)
{
	const struct config_pattern *pattern = &patterns[nth];
	struct slice text = slice_of(pattern->text);
	char path[256];

	if (pattern->kind != PATTERN_BELOW && pattern->kind != PATTERN_GLOB)
		return;
	while (text.len > 0 && text.ptr[text.len - 1] == '*')
		text.len--;
	if (text.len < 2 || text.len > sizeof path || text.ptr[text.len - 1] != '/')
		return;
	(void)snprintf(path, sizeof path, "%.*s", (int)text.len - 1, text.ptr);
	if (strspn(path, "*") == strlen(path) || has_path_itself(patterns, count, pattern, path))
		return;
	complain(build, SEVERITY_WARNING, section, key, &pattern->place,
		"does not fit %s itself; write %s, which fits all below it too", path, path);
}

static void
check_pattern(const struct build *build, const struct section *section, const char *key,
	const struct config_pattern *pattern)
{
	check_methods(build, section, key, pattern);
	if (pattern->kind == PATTERN_REGEX && !has_anchor(pattern->text))
		complain(build, SEVERITY_WARNING, section, key, &pattern->place,
			"the expression fits anywhere in a path; begin it with ^ to fit from its "
			"start");
}

static void
check_patterns(
	const struct build *build, const struct section *section, const struct config_route *route)
{
	if (route->match_count == 0 && route->script_count == 0 &&
		!section_is_doubtful(build, section))
		complain(build, SEVERITY_ERROR, section, "match", NULL,
			"is missing, and script too, so the route would take nothing; write match "
			"= "
			"/path or script = */name.php");
	for (unsigned i = 0; i < route->match_count; i++) {
		const struct config_pattern *pattern = &route->matches[i];

		check_pattern(build, section, "match", pattern);
		check_slash(build, section, "match", route->matches, route->match_count, i);
		if (route->script_count == 0 && names_script(pattern))
			complain(build, SEVERITY_WARNING, section, "match", &pattern->place,
				"the script can be reached by other URLs too (rewriting, a front "
				"controller); script = holds against the script that runs");
	}
	for (unsigned i = 0; i < route->script_count; i++) {
		check_pattern(build, section, "script", &route->scripts[i]);
		check_slash(build, section, "script", route->scripts, route->script_count, i);
	}
}

void
validate_routes(const struct build *build)
{
	for (const struct section *section = section_first(build, SECTION_ROUTE); section != NULL;
		section = section_next(section)) {
		const struct config_route *route = section->object;

		check_backend(build, section, route);
		check_store_down(build, section, route);
		check_patterns(build, section, route);
	}
}
