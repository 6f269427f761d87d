/* The list of routes, tried from top to bottom. */
#include "weir/route.h"

#include "pattern.h"

#include <stdlib.h>

struct route_patterns {
	struct pattern *matches, *scripts;
	unsigned match_count, script_count;
};

struct routes {
	unsigned count;
	struct route_patterns list[];
};

static int
compile(struct pattern **out, unsigned *out_count, const struct config_pattern *list,
	unsigned count, const struct config_route *route, const char *key,
	struct diagnostics *diagnostics)
{
	int result = 0;

	*out = calloc(count == 0 ? 1 : count, sizeof **out);
	if (*out == NULL)
		return -1;
	*out_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct err err;
		char where[128];

		if (pattern_init(&(*out)[i], &list[i], &err) == 0)
			continue;
		(void)snprintf(where, sizeof where, "[route %.80s] %s", route->name, key);
		diagnostics_add(diagnostics, SEVERITY_ERROR, list[i].place, where, "%s", err.text);
		result = -1;
	}
	return result;
}

struct routes *
routes_new(const struct config *config, struct diagnostics *diagnostics)
{
	struct routes *routes =
		calloc(1, sizeof *routes + config->route_count * sizeof routes->list[0]);
	int result = 0;

	if (routes == NULL)
		return NULL;
	routes->count = config->route_count;
	for (unsigned i = 0; i < routes->count; i++) {
		const struct config_route *route = config->routes[i];
		struct route_patterns *patterns = &routes->list[i];

		if (compile(&patterns->matches, &patterns->match_count, route->matches,
			    route->match_count, route, "match", diagnostics) != 0)
			result = -1;
		if (compile(&patterns->scripts, &patterns->script_count, route->scripts,
			    route->script_count, route, "script", diagnostics) != 0)
			result = -1;
	}
	if (result == 0)
		return routes;
	routes_free(routes);
	return NULL;
}

static void
release(struct pattern *list, unsigned count)
{
	for (unsigned i = 0; list != NULL && i < count; i++)
		pattern_release(&list[i]);
	free(list);
}

void
routes_free(struct routes *routes)
{
	if (routes == NULL)
		return;
	for (unsigned i = 0; i < routes->count; i++) {
		release(routes->list[i].matches, routes->list[i].match_count);
		release(routes->list[i].scripts, routes->list[i].script_count);
	}
	free(routes);
}

static enum pattern_result
match_any(const struct pattern *list, unsigned count, struct slice method, struct slice path)
{
	for (unsigned i = 0; i < count; i++) {
		const enum pattern_result result = pattern_match(&list[i], method, path);

		if (result != PATTERN_DIFFERS)
			return result;
	}
	return PATTERN_DIFFERS;
}

int
routes_match(const struct routes *routes, const struct view *view)
{
	for (unsigned i = 0; i < routes->count; i++) {
		const struct route_patterns *patterns = &routes->list[i];
		enum pattern_result result = match_any(
			patterns->matches, patterns->match_count, view->method, view->path);

		if (result == PATTERN_DIFFERS)
			result = match_any(patterns->scripts, patterns->script_count, view->method,
				view->script);
		if (result == PATTERN_LIMIT)
			return -2;
		if (result == PATTERN_FITS)
			return (int)i;
	}
	return -1;
}
