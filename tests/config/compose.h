/* One setting in a configuration where nothing else is wrong. */
#ifndef WEIR_TESTS_CONFIG_COMPOSE_H
#define WEIR_TESTS_CONFIG_COMPOSE_H

#include "load.h"

/* What stands around a section of that kind so that it is used and complete, but for the key. */
static const struct {
	const char *section, *name, *key, *lines;
} compose_needs[] = {
	{ "limit", " l", "policy", "policy = 5/1m\n" },
	{ "override", " o", "limit", "limit = l\n" },
	{ "override", " o", "for", "for = user x\n" },
	{ "route", " r", "match", "match = *\n" },
	{ "route", " r", "script", "match = *\n" },
	{ "backend", " b", "server", "server = unix:/run/b\n" },
};

/* What a backend's key has beside it in the place of a server. */
static const char *const compose_programs[][2] = { { "program", "type = cgi\n" },
	{ "root", "type = cgi\n" }, { "env", "type = cgi\nprogram = /p\n" } };

static inline const char *
compose_lines(const char *key, const char *usual)
{
	for (size_t i = 0; i < LENGTH_OF(compose_programs); i++) {
		if (strcmp(compose_programs[i][0], key) == 0)
			return compose_programs[i][1];
	}
	return usual;
}

static const struct {
	const char *section, *whole;
} compose_rest[] = {
	{ "backend", "[backend b]\nserver = unix:/run/b\n" },
	{ "limit", "[limit l]\npolicy = 5/1m\nidentity = user, ip\n" },
	{ "route", "[route r]\nmatch = *\nlimit = l\n" },
};

static inline void
compose_expand(char *out, size_t size, const char *value)
{
	const char *directory = strstr(value, "DIR/");

	if (directory == NULL)
		(void)snprintf(out, size, "%s", value);
	else
		(void)snprintf(out, size, "%.*s%s%s", (int)(directory - value), value,
			load_directory, directory + 3);
}

/* That setting stands in line 2. DIR in it stands for the test's directory. */
static inline void
compose(char *out, size_t size, const char *section, const char *key, const char *value)
{
	char expanded[PATH_MAX + 256];
	const char *name = "";
	size_t len;

	for (size_t i = 0; i < LENGTH_OF(compose_needs); i++) {
		if (strcmp(compose_needs[i].section, section) == 0)
			name = compose_needs[i].name;
	}
	compose_expand(expanded, sizeof expanded, value);
	(void)snprintf(out, size, "[%s%s]\n%s = %s\n", section, name, key, expanded);
	for (size_t i = 0; i < LENGTH_OF(compose_needs); i++) {
		len = strlen(out);
		if (strcmp(compose_needs[i].section, section) == 0 &&
			strcmp(compose_needs[i].key, key) != 0 &&
			strstr(out, compose_needs[i].lines) == NULL)
			(void)snprintf(out + len, size - len, "%s",
				compose_lines(key, compose_needs[i].lines));
	}
	/* A route with a condition leaves something to another. */
	len = strlen(out);
	if (strcmp(key, "when") == 0 || strcmp(key, "host") == 0)
		(void)snprintf(out + len, size - len, "[route d]\nmatch = *\n");
	for (size_t i = 0; i < LENGTH_OF(compose_rest); i++) {
		len = strlen(out);
		if (strcmp(compose_rest[i].section, section) != 0)
			(void)snprintf(out + len, size - len, "%s", compose_rest[i].whole);
	}
}

static inline void
compose_assert_refused(
	const char *section, const char *key, const char *value, const char *reason, bool is_whole)
{
	char ini[2 * PATH_MAX], expected[PATH_MAX + 512];

	compose(ini, sizeof ini, section, key, value);
	char *said = said_of(ini, NULL);

	(void)snprintf(expected, sizeof expected, "%s: %s%s", key, reason, is_whole ? "\n" : "");
	assert_row(strncmp(said, "weir.ini:2: [", 13) == 0 && strstr(said, expected) != NULL,
		"%swas told:\n%sand not:\n%s", ini, said, expected);
	free(said);
}

/* The setting is refused for that reason, and for one that begins so. */
static inline void
assert_refused(const char *section, const char *key, const char *value, const char *reason)
{
	compose_assert_refused(section, key, value, reason, true);
}

static inline void
assert_refused_so(const char *section, const char *key, const char *value, const char *reason)
{
	compose_assert_refused(section, key, value, reason, false);
}

#endif
