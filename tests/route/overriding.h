/* Overrides as a configuration file has them, and requests that fall under them. */
#ifndef WEIR_TESTS_ROUTE_OVERRIDING_H
#define WEIR_TESTS_ROUTE_OVERRIDING_H

#include "routing.h"

static struct arena arena;
static struct config *config;
static struct overrides *overrides;

static inline int
setup(void **state)
{
	struct err err;

	arena_init(&arena, ARENA_MAX);
	config = NULL;
	overrides = NULL;
	return hash_start(&err) != 0 ? -1 : load_setup(state);
}

static inline int
teardown(void **state)
{
	overrides_free(overrides);
	config_free(config);
	arena_release(&arena);
	return load_teardown(state);
}

/* A limit `l`, and another one, `m`, and these sections. */
static inline void
use(const char *identity, const char *sections)
{
	char *whole = NULL;

	assert_true(asprintf(&whole,
			    "[limit l]\nidentity = %s\npolicy = 5/1m\n"
			    "[limit m]\nidentity = ip/32/128\npolicy = 7/1m\n"
			    "[route r]\nmatch = /r\nlimit = l, m\n%s",
			    identity, sections) > 0);
	overrides_free(overrides);
	overrides = NULL;
	config_free(config);
	config = NULL;
	config = configured(whole);
	free(whole);
	overrides = overrides_new(config);
	assert_non_null(overrides);
}

static inline struct asker
asking(const char *const *env)
{
	static struct view view;
	struct asker asker;

	arena_release(&arena);
	arena_init(&arena, ARENA_MAX);
	assert_int_equal(view_of(&view, env, &arena), 0);
	asker_init(&asker, &view, config->routes[0], overrides, NULL);
	return asker;
}

/* The name of the override, or "". */
static inline const char *
found_for(const char *const *env, unsigned limit)
{
	struct asker asker = asking(env);
	const int found = overrides_find(&asker, config->limits[limit]);

	/* The second time it is known. */
	assert_int_equal(overrides_find(&asker, config->limits[limit]), found);
	return found < 0 ? "" : config->overrides[found]->name;
}

#define assert_found(expected, ...)                                                                \
	assert_string_equal(found_for((const char *const[]){ __VA_ARGS__, NULL }, 0), expected)

#define override_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
