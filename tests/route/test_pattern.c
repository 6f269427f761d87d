/* Patterns of routes, as a configuration file has them, held against requests. */
#include "../../src/route/pattern.h"
#include "routing.h"
#include "weir/clock.h"

static struct arena arena;

static int
setup(void **state)
{
	arena_init(&arena, ARENA_MAX);
	return load_setup(state);
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return load_teardown(state);
}

/* The route of a request: its index, -1 or -2. */
static int
route_of(const struct routes *routes, const char *method, const char *uri, const char *script)
{
	char parts[3][4096];
	struct view view;

	(void)snprintf(parts[0], sizeof parts[0], "REQUEST_METHOD=%s", method);
	(void)snprintf(parts[1], sizeof parts[1], "REQUEST_URI=%s", uri);
	(void)snprintf(parts[2], sizeof parts[2], "SCRIPT_NAME=%s", script);
	arena_release(&arena);
	arena_init(&arena, ARENA_MAX);
	assert_int_equal(
		view_of(&view, (const char *const[]){ parts[0], parts[1], parts[2], NULL }, &arena),
		0);
	return routes_match(routes, &view);
}

/* `line` is of the first route: "match = PATTERN" or "script = PATTERN". */
static int
route_by(const char *line, const char *method, const char *uri, const char *script)
{
	char sections[512];

	(void)snprintf(sections, sizeof sections, "[route first]\n%s\n", line);
	struct config *config = configured(sections);
	struct routes *routes = routes_of(config);
	const int route = route_of(routes, method, uri, script);

	routes_free(routes);
	config_free(config);
	return route;
}

struct row {
	const char *pattern, *method, *uri;
	bool fits;
};

static void
assert_rows(const char *key, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char line[256];

		(void)snprintf(line, sizeof line, "%s = %s", key, rows[i].pattern);
		const int route = route_by(line, rows[i].method, rows[i].uri, "");

		assert_row(route == (rows[i].fits ? 0 : 1), "%s, %s %s: route %d", line,
			rows[i].method, rows[i].uri, route);
	}
}

/* ---- the kinds ---- */

static void
a_plain_pattern_fits_the_path_and_all_below(void **state)
{
	static const struct row rows[] = {
		{ "/wp-login.php", "GET", "/wp-login.php", true },
		{ "/wp-login.php", "GET", "/wp-login.php/", true },
		{ "/wp-login.php", "GET", "/wp-login.php/x", true },
		{ "/wp-login.php", "GET", "/wp-login.phpx", false },
		{ "/wp-login.php", "GET", "/wp-login.ph", false },
		{ "/wp-login.php", "GET", "/x/wp-login.php", false },
		{ "/wp-login.php", "GET", "/WP-LOGIN.PHP", false },
		{ "/", "GET", "/", true },
		{ "/", "GET", "/any/thing", true },
		{ "/a/", "GET", "/a/", true },
		{ "/a/", "GET", "/a/b", true },
		{ "/a/", "GET", "/a", false },
		{ "/a", "OPTIONS", "*", false },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

/* What servers run for these, /wp-login.php, a pattern must not miss (facts of the field). */
static void
no_spelling_escapes(void **state)
{
	static const char *const patterns[] = { "/wp-login.php", "*/wp-login.php",
		"= /wp-login.php", "/wp-login.php nocase", "~ ^/wp-login\\.php",
		"~ /wp-login\\.php(/.*)?$" };
	static const char *const exact[] = { "//wp-login.php", "/./wp-login.php",
		"/x/../wp-login.php", "/x/%2e%2e/wp-login.php", "/%77p-login.php",
		"/wp-login%2ephp", "/wp-login.php?x=1", "/wp-login.php#x", "/wp-login.php?#",
		"http://other.test/wp-login.php?q=1", "HTTP://other.test:80//wp-login.php",
		"/x%2f..%2fwp-login.php", "/..//wp-login.php", "/.//./wp-login.php" };
	static const char *const below[] = { "/wp-login.php/", "/wp-login.php/x",
		"/wp-login.php%2fx", "/wp-login.php//", "/wp-login.php/%0a",
		"/wp-login.php/a%0ab" };
	char line[128];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(patterns); i++) {
		(void)snprintf(line, sizeof line, "match = %s", patterns[i]);
		for (size_t j = 0; j < LENGTH_OF(exact); j++)
			assert_row(
				route_by(line, "GET", exact[j], "") == 0, "%s: %s", line, exact[j]);
		/* An exact one says what it fits. */
		for (size_t j = 0; j < LENGTH_OF(below) && patterns[i][0] != '='; j++)
			assert_row(
				route_by(line, "GET", below[j], "") == 0, "%s: %s", line, below[j]);
	}
}

static void
an_exact_pattern_fits_itself_only(void **state)
{
	static const struct row rows[] = {
		{ "= /a", "GET", "/a", true },
		{ "= /a", "GET", "/a/", false },
		{ "= /a", "GET", "/a/b", false },
		{ "= /a", "GET", "/ab", false },
		{ "= /a", "GET", "/A", false },
		{ "= /a nocase", "GET", "/A", true },
		{ "= /a/", "GET", "/a/", true },
		{ "= /a/", "GET", "/a", false },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

static void
a_star_stands_for_any_characters(void **state)
{
	static const struct row rows[] = {
		{ "*/wp-login.php", "GET", "/wp-login.php", true },
		{ "*/wp-login.php", "GET", "/blog/wp-login.php", true },
		{ "*/wp-login.php", "GET", "/a/b/wp-login.php/x", true },
		{ "*/wp-login.php", "GET", "/wp-login.phpx", false },
		{ "*/wp-login.php", "GET", "/xwp-login.php", false },
		{ "*/wp-login.php", "GET", "/wp-login.phpx/wp-login.php", true },
		{ "/a*z", "GET", "/az", true },
		{ "/a*z", "GET", "/a/b/z", true },
		{ "/a*z", "GET", "/abzc", false },
		{ "/a*z", "GET", "/abzc/z", true },
		{ "/a*", "GET", "/abc", true },
		{ "/a*", "GET", "/b", false },
		{ "*.php", "GET", "/a.php5", false },
		{ "*.php", "GET", "/a.php/b", true },
		{ "*.PHP nocase", "GET", "/a.php", true },
		{ "/*/x/*/y", "GET", "/1/x/2/y", true },
		{ "/*/x/*/y", "GET", "/1/x/y", false },
		{ "/**a", "GET", "/bca", true },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

static void
an_expression_is_anchored_nowhere(void **state)
{
	static const struct row rows[] = {
		{ "~ login", "GET", "/a/login/b", true },
		{ "~ ^/login$", "GET", "/login", true },
		{ "~ ^/login$", "GET", "/login/", false },
		{ "~ ^/\\d+$", "GET", "/12", true },
		{ "~ ^/\\d+$", "GET", "/d", false },
		{ "~ (?i)^/LOGIN", "GET", "/login", true },
		{ "~ ^/LOGIN nocase", "GET", "/login", true },
		{ "~ ^/(a|b)/(?!private)", "GET", "/a/public", true },
		{ "~ ^/(a|b)/(?!private)", "GET", "/a/private", false },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

/* A path may hold any byte; a line end in it must not lead around a limit. */
static void
a_line_end_is_a_character_like_any_other(void **state)
{
	static const struct row rows[] = {
		{ "~ ^/index\\.php(/.*)?$", "GET", "/index.php/%0a", true },
		{ "~ ^/index\\.php(/.*)?$", "GET", "/index.php/%0ax%0ay", true },
		{ "~ ^/index\\.php(/.*)?$", "GET", "/index.php%0a", false },
		{ "~ ^/admin/.*\\.php$", "GET", "/admin/%0a.php", true },
		{ "~ ^/x$", "GET", "/a%0a/x", false },
		{ "~ ^/x$", "GET", "/x%0a", false },
		{ "~ ^/x.y$", "GET", "/x%0dy", true },
		{ "*/x", "GET", "/a%0ab/x", true },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

static void
bytes_that_are_no_text_fit_as_bytes(void **state)
{
	static const struct row rows[] = {
		{ "/a*b", "GET", "/a%ff%feb", true },
		{ "~ ^/a.b$", "GET", "/a%ffb", true },
		{ "~ ^/a[^/]*$", "GET", "/a%c3%28%80", true },
		{ "/\xc3\xa4", "GET", "/%c3%a4", true },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

/* ---- methods ---- */

static void
methods_are_told_apart_in_their_case(void **state)
{
	static const struct row rows[] = {
		{ "POST /a", "POST", "/a", true },
		{ "POST /a", "GET", "/a", false },
		{ "POST /a", "post", "/a", false },
		{ "POST /a", "POSTS", "/a", false },
		{ "POST /a", "POS", "/a", false },
		{ "POST /a", "", "/a", false },
		{ "GET|HEAD /a", "HEAD", "/a", true },
		{ "GET /a", "HEAD", "/a", true }, /* which runs the same program */
		{ "POST|GET /a", "HEAD", "/a", true },
		{ "POST /a", "HEAD", "/a", false },
		{ "HEAD /a", "GET", "/a", false },
		{ "GET|HEAD /a", "GET|HEAD", "/a", false },
		{ "GET|HEAD /a", "PUT", "/a", false },
		{ "/a", "ANYTHING", "/a", true },
		{ "/a", "", "/a", true },
		{ "POST *", "POST", "/a", true },
		{ "POST *", "GET", "/a", false },
	};

	(void)state;
	assert_rows("match", rows, LENGTH_OF(rows));
}

/* ---- routes ---- */

static void
a_script_is_what_the_server_chose(void **state)
{
	(void)state;
	assert_int_equal(
		route_by("script = */wp-login.php", "POST", "/pretty/login", "/wp-login.php"), 0);
	assert_int_equal(
		route_by("script = */wp-login.php", "POST", "/wp-login.php", "/index.php"), 1);
	assert_int_equal(route_by("script = POST */wp-login.php", "GET", "/x", "/wp-login.php"), 1);
	/* Where none was chosen, as by an authorizer's server, it is the path. */
	assert_int_equal(route_by("script = */wp-login.php", "POST", "//wp-login.php", ""), 0);
	assert_int_equal(
		route_by("match = /a\nscript = /b.php\nscript = /c.php", "GET", "/x", "/c.php"), 0);
	assert_int_equal(route_by("match = /a\nscript = /b.php", "GET", "/a", "/x.php"), 0);
	assert_int_equal(route_by("match = /a\nscript = /b.php", "GET", "/b.php", "/x.php"), 1);
}

static void
the_first_route_that_fits_is_taken(void **state)
{
	struct config *config = configured("[route one]\nmatch = /a/b\n"
					   "[route two]\nmatch = POST /a\nmatch = /c\n"
					   "[route three]\nmatch = /a\n");
	struct routes *routes = routes_of(config);

	(void)state;
	assert_int_equal(route_of(routes, "GET", "/a/b/c", ""), 0);
	assert_int_equal(route_of(routes, "POST", "/a/x", ""), 1);
	assert_int_equal(route_of(routes, "GET", "/c", ""), 1);
	assert_int_equal(route_of(routes, "GET", "/a/x", ""), 2);
	assert_int_equal(route_of(routes, "GET", "/", ""), 3);
	assert_int_equal(route_of(routes, "OPTIONS", "*", ""), 3);
	routes_free(routes);
	config_free(config);
}

/* The configuration refuses this; the tools that replay may have it. */
static void
no_route_is_minus_one(void **state)
{
	struct config_pattern pattern = { .kind = PATTERN_BELOW, .text = "/a" };
	struct config_route route = { .name = "only", .matches = &pattern, .match_count = 1 };
	struct config_route *list[] = { &route };
	const struct config config = { .routes = list, .route_count = 1 };
	struct routes *routes = routes_of(&config);

	(void)state;
	assert_int_equal(route_of(routes, "GET", "/a", ""), 0);
	assert_int_equal(route_of(routes, "GET", "/b", ""), -1);
	routes_free(routes);
	routes_free(NULL);
}

/* ---- expressions that run away ---- */

static void
an_expression_beyond_its_limit_fits_not_and_differs_not(void **state)
{
	static const char *const patterns[] = { "match = ~ ^/(a|aa)+$", "match = ~ ^/(a*)*b$",
		"match = ~ ^/(.*)\\1y$", "script = ~ ^/(a|a?)+$" };
	char uri[2000];

	(void)state;
	memset(uri, 'a', sizeof uri - 1);
	uri[0] = '/';
	uri[sizeof uri - 2] = 'x';
	uri[sizeof uri - 1] = '\0';
	for (size_t i = 0; i < LENGTH_OF(patterns); i++) {
		const int64_t start_us = clock_monotonic_us();
		const int route = route_by(patterns[i], "GET", uri, "");

		assert_row(route == -2 || route == 1, "%s: %d", patterns[i], route);
		/* It is a millisecond or two. */
		assert_in_range(clock_monotonic_us() - start_us, 0, 2 * US_PER_S);
	}
	assert_int_equal(route_by(patterns[0], "GET", uri, ""), -2);
	assert_int_equal(route_by(patterns[3], "GET", uri, ""), -2);
	/* Nor is a later route asked, which might fit. */
	assert_int_equal(route_by("match = ~ ^/(a|aa)+$\nmatch = /", "GET", uri, ""), -2);
}

static void
expressions_that_do_not_compile_are_told_with_their_place(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = { { "a(b", "missing closing parenthesis" }, { "[a", "missing terminating ]" },
		{ "*a", "quantifier does not follow" }, { "a\\", "\\ at end of pattern" },
		{ "(?<n>a)(?<n>b)", "two named subpatterns have the same name" },
		{ "\\C", "\\C" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct config_pattern patterns[] = {
			{ .kind = PATTERN_REGEX, .text = "fine" },
			{ .place = { "weir.ini", 7 }, .kind = PATTERN_REGEX, .text = rows[i].text }
		};
		struct config_route route = { .name = "r", .scripts = patterns, .script_count = 2 };
		struct config_route *list[] = { &route };
		const struct config config = { .routes = list, .route_count = 1 };
		struct diagnostics diagnostics;

		diagnostics_init(&diagnostics);
		assert_null(routes_new(&config, &diagnostics));
		assert_int_equal(diagnostics.errors, 1);
		assert_int_equal(diagnostics.list[0].place.line, 7);
		assert_string_equal(diagnostics.list[0].where, "[route r] script");
		assert_row(strstr(diagnostics.list[0].text, rows[i].said) != NULL, "%s",
			diagnostics.list[0].text);
		diagnostics_release(&diagnostics);
	}
}

/* ---- against a slow and obvious matcher ---- */

static bool
glob_is(const char *glob, const char *text)
{
	if (*glob == '\0')
		return *text == '\0';
	if (*glob == '*')
		return glob_is(glob + 1, text) || (*text != '\0' && glob_is(glob, text + 1));
	return *glob == *text && glob_is(glob + 1, text + 1);
}

/* The path itself, or one of the paths that it is below. */
static bool
fits_obviously(const char *text, const char *path)
{
	char part[64];

	if (glob_is(text, path))
		return true;
	for (size_t i = 0; path[i] != '\0'; i++) {
		if (path[i] != '/')
			continue;
		(void)snprintf(part, sizeof part, "%.*s",
			(int)(text[strlen(text) - 1] == '/' ? i + 1 : i), path);
		if (glob_is(text, part))
			return true;
	}
	return false;
}

static void
random_text(uint64_t *random, const char *letters, char out[24])
{
	const size_t len = 1 + random_below(random, 12);

	out[0] = '/';
	for (size_t i = 1; i < len; i++)
		out[i] = letters[random_below(random, strlen(letters))];
	out[len] = '\0';
}

static void
any_glob_fits_what_an_obvious_matcher_says(void **state)
{
	uint64_t random = 31;
	unsigned fitting = 0;

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		char text[24], path[24];
		struct err err;

		random_text(&random, i % 2 == 0 ? "ab/**" : "aab*", text);
		random_text(&random, "aab/", path);
		const struct config_pattern config = {
			.kind = strchr(text, '*') == NULL ? PATTERN_BELOW : PATTERN_GLOB,
			.text = text
		};
		struct pattern pattern;

		assert_int_equal(pattern_init(&pattern, &config, &err), 0);
		const bool fits =
			pattern_match(&pattern, SLICE("GET"), slice_of(path)) == PATTERN_FITS;

		assert_row(fits == fits_obviously(text, path), "\"%s\" and \"%s\": %d", text, path,
			fits);
		fitting += fits;
		pattern_release(&pattern);
	}
	assert_in_range(fitting, 10000, 190000);
}

#define pattern_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		pattern_test(a_plain_pattern_fits_the_path_and_all_below),
		pattern_test(no_spelling_escapes),
		pattern_test(an_exact_pattern_fits_itself_only),
		pattern_test(a_star_stands_for_any_characters),
		pattern_test(an_expression_is_anchored_nowhere),
		pattern_test(a_line_end_is_a_character_like_any_other),
		pattern_test(bytes_that_are_no_text_fit_as_bytes),
		pattern_test(methods_are_told_apart_in_their_case),
		pattern_test(a_script_is_what_the_server_chose),
		pattern_test(the_first_route_that_fits_is_taken),
		pattern_test(no_route_is_minus_one),
		pattern_test(an_expression_beyond_its_limit_fits_not_and_differs_not),
		pattern_test(expressions_that_do_not_compile_are_told_with_their_place),
		pattern_test(any_glob_fits_what_an_obvious_matcher_says),
	};

	return cmocka_run_group_tests_name("route/pattern", tests, NULL, NULL);
}
