/* Routes as a configuration file has them, and requests as a web server sends them. */
#ifndef WEIR_TESTS_ROUTE_ROUTING_H
#define WEIR_TESTS_ROUTE_ROUTING_H

#include "../config/load.h"
#include "weir/hash.h"
#include "weir/route.h"

enum { ARENA_MAX = 1024 * 1024 };

/* A configuration of which some sections are given; what every one needs is added. */
static inline struct config *
configured(const char *sections)
{
	char *whole = NULL;

	assert_true(asprintf(&whole,
			    "%s\n[backend rest]\nserver = unix:/run/rest.sock\n"
			    "[route rest]\nmatch = *\n",
			    sections) > 0);
	struct config *config = loaded(whole);

	free(whole);
	return config;
}

static inline struct routes *
routes_of(const struct config *config)
{
	struct diagnostics diagnostics;

	diagnostics_init(&diagnostics);
	struct routes *routes = routes_new(config, &diagnostics);

	assert_row(routes != NULL && diagnostics.count == 0, "%s",
		diagnostics.count > 0 ? diagnostics.list[0].text : "no routes");
	diagnostics_release(&diagnostics);
	return routes;
}

/* A view over "NAME=value" texts, NULL behind the last; -1: there is none. */
static inline int
view_of(struct view *view, const char *const *env, struct arena *arena)
{
	struct err err = { "" };
	const int result = view_init(view, NULL, (char *const *)(uintptr_t)env, arena, &err);

	assert_true((result == 0) == (err.text[0] == '\0'));
	return result;
}

#endif
