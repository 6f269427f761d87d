/* pattern.h against a slow and obvious matcher: what is said to be covered is. */
#include "../unit.h"
#include "../../src/config/pattern.h"

#include <stdio.h>

static bool
glob_is(const char *glob, const char *text)
{
	if (*glob == '\0')
		return *text == '\0';
	if (*glob == '*')
		return glob_is(glob + 1, text) || (*text != '\0' && glob_is(glob, text + 1));
	return *glob == *text && glob_is(glob + 1, text + 1);
}

/* As weir.ini(5) says it, for patterns without nocase. */
static bool
fits(const struct config_pattern *pattern, const char *path)
{
	char part[64];
	const size_t len = strlen(path), text_len = strlen(pattern->text);
	const bool is_directory = pattern->text[text_len - 1] == '/';

	if (pattern->kind == PATTERN_EXACT)
		return strcmp(pattern->text, path) == 0;
	if (glob_is(pattern->text, path))
		return true;
	for (size_t i = 0; i < len; i++) {
		if (path[i] != '/')
			continue;
		(void)snprintf(part, sizeof part, "%.*s", (int)(is_directory ? i + 1 : i), path);
		if (glob_is(pattern->text, part))
			return true;
	}
	return false;
}

static void
random_text(uint64_t *random, const char *letters, char out[16])
{
	const size_t len = random_below(random, 6);

	out[0] = letters[random_below(random, 2)];
	for (size_t i = 1; i <= len; i++)
		out[i] = letters[random_below(random, strlen(letters))];
	out[len + 1] = '\0';
}

static void
random_pattern(uint64_t *random, char text[16], struct config_pattern *pattern)
{
	const bool is_exact = random_below(random, 4) == 0;

	do {
		random_text(random, "/*a/*b", text);
	} while (strstr(text, "//") != NULL || (is_exact && strchr(text, '*') != NULL));
	*pattern = (struct config_pattern){ .text = text,
		.kind = is_exact                    ? PATTERN_EXACT
			: strchr(text, '*') != NULL ? PATTERN_GLOB
						    : PATTERN_BELOW };
}

/* Every path of up to five segments' characters that a normal form can have. */
static const char *
path_that_only_inner_fits(const struct config_pattern *outer, const struct config_pattern *inner)
{
	static char path[8];
	static const char letters[] = "/ab";

	for (unsigned n = 0; n < 3 * 3 * 3 * 3 * 3 * 6; n++) {
		unsigned rest = n / 6;

		path[0] = '/';
		for (unsigned i = 1; i <= n % 6; i++, rest /= 3)
			path[i] = letters[rest % 3];
		path[1 + n % 6] = '\0';
		if (strstr(path, "//") == NULL && fits(inner, path) && !fits(outer, path))
			return path;
	}
	return NULL;
}

static void
what_is_covered_is_covered(void **state)
{
	uint64_t random = 42;
	unsigned covered = 0, missed = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		char a[16], b[16];
		struct config_pattern outer, inner;

		random_pattern(&random, a, &outer);
		random_pattern(&random, b, &inner);
		const bool covers = config_pattern_covers(&outer, &inner);
		const char *path = path_that_only_inner_fits(&outer, &inner);

		assert_row(!covers || path == NULL, "%d %s should cover %d %s but for %s",
			(int)outer.kind, a, (int)inner.kind, b, path);
		covered += covers;
		missed += !covers && path == NULL;
	}
	assert_true(covered > 2000);
	/* A `*` that begins a pattern can only begin with the slash of a path: such pairs may be
	 * missed, and few others. */
	assert_true(missed < covered);
}

static void
rows_are_covered_or_not(void **state)
{
	static const struct {
		struct config_pattern outer, inner;
		bool covers;
	} rows[] = {
#define BELOW(methods, text, nocase) { { NULL, 0 }, methods, PATTERN_BELOW, text, nocase }
#define EXACT(methods, text, nocase)                                                               \
	{                                                                                          \
		{ NULL, 0 }, methods, PATTERN_EXACT, text, nocase                                  \
	}
#define GLOB(methods, text, nocase)                                                                \
	{                                                                                          \
		{ NULL, 0 }, methods, PATTERN_GLOB, text, nocase                                   \
	}
#define REGEX(methods, text, nocase)                                                               \
	{                                                                                          \
		{ NULL, 0 }, methods, PATTERN_REGEX, text, nocase                                  \
	}
		{ GLOB(NULL, "*", false), REGEX(NULL, "x", true), true },
		{ GLOB("GET", "*", false), REGEX(NULL, "x", true), false },
		{ GLOB("GET|POST", "**", false), BELOW("POST", "/x", true), true },
		{ GLOB("GET|POST", "*", false), BELOW("POST|PUT", "/x", true), false },
		{ GLOB("GET", "*", false), BELOW("HEAD", "/x", true), true },
		{ GLOB("HEAD", "*", false), BELOW("GET", "/x", true), false },
		{ BELOW(NULL, "/", false), BELOW(NULL, "/x", true), true },
		{ BELOW(NULL, "/", false), GLOB(NULL, "*", false), false },
		{ BELOW(NULL, "/", false), REGEX(NULL, "^/x", false), false },
		{ BELOW(NULL, "/a", false), BELOW(NULL, "/a", false), true },
		{ BELOW(NULL, "/a", false), BELOW(NULL, "/a/", false), true },
		{ BELOW(NULL, "/a/", false), BELOW(NULL, "/a", false), false },
		{ BELOW(NULL, "/a", false), BELOW(NULL, "/ab", false), false },
		{ BELOW(NULL, "/a", false), GLOB(NULL, "/a/*.php", false), true },
		{ BELOW(NULL, "/a", false), GLOB(NULL, "/a*", false), false },
		{ BELOW(NULL, "/a", false), BELOW(NULL, "/A/b", false), false },
		{ BELOW(NULL, "/a", true), BELOW(NULL, "/A/b", false), true },
		{ BELOW(NULL, "/a", true), BELOW(NULL, "/A/b", true), true },
		{ BELOW(NULL, "/a", false), BELOW(NULL, "/a/b", true), false },
		{ EXACT(NULL, "/a", false), EXACT(NULL, "/a", false), true },
		{ EXACT(NULL, "/a", true), EXACT(NULL, "/A", false), true },
		{ EXACT(NULL, "/a", false), BELOW(NULL, "/a", false), false },
		{ BELOW(NULL, "/a", false), EXACT(NULL, "/a/b", false), true },
		{ GLOB(NULL, "*/x.php", false), BELOW(NULL, "/x.php", false), true },
		{ GLOB(NULL, "*/x.php", false), GLOB(NULL, "/a/*/x.php", false), true },
		{ GLOB(NULL, "*/x.php", false), GLOB(NULL, "*x.php", false), false },
		{ REGEX(NULL, "^/a", false), REGEX(NULL, "^/a", false), true },
		{ REGEX(NULL, "^/a", false), REGEX(NULL, "^/ab", false), false },
		{ REGEX(NULL, ".*", false), BELOW(NULL, "/a", false), false },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(config_pattern_covers(&rows[i].outer, &rows[i].inner) == rows[i].covers,
			"row %zu: %s and %s", i, rows[i].outer.text, rows[i].inner.text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_covered_or_not),
		cmocka_unit_test(what_is_covered_is_covered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
