/*
 * The list of routes, tried from top to bottom. A route fits if one of its patterns does, one of
 * its hosts, and all of its conditions; the cheap questions are asked first.
 */
#include "routes.h"

#include "condition.h"

#include <stdlib.h>

struct compiled_route {
	const struct config_route *config;
	struct pattern *matches, *scripts;
	struct condition *conditions;
	struct net_map exempt;
	unsigned match_count, script_count, condition_count; /* as far as they are compiled */
};

struct routes {
	struct net_map trusted;
	unsigned count;
	struct compiled_route list[];
};

static void
complain(struct diagnostics *diagnostics, const struct config_route *route, struct place place,
	const char *key, const struct err *err)
{
	char where[128];

	(void)snprintf(where, sizeof where, "[route %.80s] %s", route->name, key);
	diagnostics_add(diagnostics, SEVERITY_ERROR, place, where, "%s", err->text);
}

/* ---- compiling ---- */

static int
compile_patterns(struct pattern **out, unsigned *out_count, const struct config_pattern *list,
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

		if (pattern_init(&(*out)[i], &list[i], &err) == 0)
			continue;
		complain(diagnostics, route, list[i].place, key, &err);
		result = -1;
	}
	return result;
}

static int
compile_conditions(struct compiled_route *compiled, const struct config_route *route,
	struct diagnostics *diagnostics)
{
	const unsigned count = route->when_count;
	int result = 0;

	compiled->conditions = calloc(count == 0 ? 1 : count, sizeof compiled->conditions[0]);
	if (compiled->conditions == NULL)
		return -1;
	compiled->condition_count = count;
	for (unsigned i = 0; i < count; i++) {
		struct err err;

		if (condition_init(&compiled->conditions[i], &route->whens[i], &err) == 0)
			continue;
		complain(diagnostics, route, route->whens[i].place, "when", &err);
		result = -1;
	}
	return result;
}

/* Goes on behind an error, so that all of them are told. */
static int
compile_route(struct compiled_route *compiled, const struct config_route *route,
	struct diagnostics *diagnostics)
{
	int result = 0;

	compiled->config = route;
	if (compile_patterns(&compiled->matches, &compiled->match_count, route->matches,
		    route->match_count, route, "match", diagnostics) != 0)
		result = -1;
	if (compile_patterns(&compiled->scripts, &compiled->script_count, route->scripts,
		    route->script_count, route, "script", diagnostics) != 0)
		result = -1;
	if (compile_conditions(compiled, route, diagnostics) != 0)
		result = -1;
	if (net_map_of(&compiled->exempt, route->exempt_nets, route->exempt_net_count) != 0)
		result = -1;
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
	if (net_map_of(&routes->trusted, config->trusted_proxies, config->trusted_proxy_count) != 0)
		result = -1;
	for (unsigned i = 0; i < routes->count; i++) {
		if (compile_route(&routes->list[i], config->routes[i], diagnostics) != 0)
			result = -1;
	}
	if (result == 0)
		return routes;
	routes_free(routes);
	return NULL;
}

static void
release_patterns(struct pattern *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		pattern_release(&list[i]);
	free(list);
}

void
routes_free(struct routes *routes)
{
	if (routes == NULL)
		return;
	for (unsigned i = 0; i < routes->count; i++) {
		struct compiled_route *route = &routes->list[i];

		release_patterns(route->matches, route->match_count);
		release_patterns(route->scripts, route->script_count);
		for (unsigned j = 0; j < route->condition_count; j++)
			condition_release(&route->conditions[j]);
		free(route->conditions);
		net_map_release(&route->exempt);
	}
	net_map_release(&routes->trusted);
	free(routes);
}

/* ---- asking ---- */

const struct net_map *
routes_trusted(const struct routes *routes)
{
	return &routes->trusted;
}

static bool
fits_host(const struct config_route *route, struct slice host)
{
	for (unsigned i = 0; i < route->host_count; i++) {
		const struct slice name = slice_of(route->hosts[i].name);
		const size_t below = host.len > name.len ? host.len - name.len : 0;

		if (!route->hosts[i].is_below && slice_is(host, name))
			return true;
		if (route->hosts[i].is_below && below > 1 && host.ptr[below - 1] == '.' &&
			slice_is(slice_skip(host, below), name))
			return true;
	}
	return route->host_count == 0;
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

static enum pattern_result
match_route(const struct compiled_route *route, const struct view *view)
{
	if (!fits_host(route->config, view->host))
		return PATTERN_DIFFERS;
	enum pattern_result result =
		match_any(route->matches, route->match_count, view->method, view->path);

	if (result == PATTERN_DIFFERS)
		result = match_any(route->scripts, route->script_count, view->method, view->script);
	for (unsigned i = 0; i < route->condition_count && result == PATTERN_FITS; i++)
		result = condition_check(&route->conditions[i], view);
	return result;
}

int
routes_match(const struct routes *routes, const struct view *view)
{
	for (unsigned i = 0; i < routes->count; i++) {
		switch (match_route(&routes->list[i], view)) {
		case PATTERN_FITS:
			return (int)i;
		case PATTERN_LIMIT:
			return -2;
		case PATTERN_DIFFERS:
			break;
		}
	}
	return -1;
}

bool
route_exempts(const struct routes *routes, unsigned index, const struct view *view)
{
	return view->has_ip && net_map_find(&routes->list[index].exempt, view->ip) != NET_MAP_NONE;
}
