/* config_compare(): what is told of two configurations that differ. */
#include "load.h"

enum { TOLD_SIZE = 4000 };

static struct config *
load(const char *ini)
{
	struct config *config;

	write_file("weir.ini", slice_of(ini));
	char *said = said_of_file("weir.ini", &config);

	assert_row(config != NULL, "%s", said);
	free(said);
	return config;
}

static void
tell(void *context, const struct config_change *change)
{
	static const char *const marks[] = { "", "+", "-", "order of " };
	char *told = context;
	const size_t len = strlen(told);

	(void)snprintf(told + len, TOLD_SIZE - len, "%s[%s%s%s]", marks[change->what], change->kind,
		change->name[0] == '\0' ? "" : " ", change->name);
	if (change->what == CONFIG_KEY_CHANGED)
		(void)snprintf(told + strlen(told), TOLD_SIZE - strlen(told), " %s (%s) (%s)%s",
			change->key, change->before == NULL ? "NULL" : change->before,
			change->after == NULL ? "NULL" : change->after,
			change->needs_restart ? " restart" : "");
	(void)snprintf(told + strlen(told), TOLD_SIZE - strlen(told), "\n");
}

static void
assert_told(const char *before, const char *after, const char *expected)
{
	struct config *old = load(before), *new = load(after);
	char told[TOLD_SIZE] = "";

	config_compare(old, new, tell, told);
	assert_string_equal(told, expected);
	config_free(old);
	config_free(new);
}

#define NONE "[backend none]\ntype = none\n"
#define ALL "[route all]\nmatch = *\n"

static void
same_text_is_no_change(void **state)
{
	(void)state;
	assert_told(NONE ALL, NONE ALL, "");
	/* Nor is another place, a comment, or the default written out. */
	assert_told(
		NONE ALL, "; x\n[weir]\nthreads = 1\n" ALL "\n" NONE "[weir]\nenforce = yes\n", "");
}

static void
keys_are_told_with_both_values(void **state)
{
	(void)state;
	assert_told("[weir]\nenforce = no\n" NONE ALL, NONE ALL, "[weir] enforce (no) (yes)\n");
	assert_told(NONE ALL, "[weir]\nthreads = 3\n" NONE ALL, "[weir] threads (1) (3) restart\n");
	assert_told("[weir]\nhead_timeout = 3s\n" NONE ALL,
		"[weir]\nhead_timeout = 4s\ndrain = 1s\n" NONE ALL,
		"[weir] head_timeout (3s) (4s)\n[weir] drain (7s) (1s)\n");
	/* A socket's owner and mode are part of it. */
	assert_told("[weir]\nlisten = unix:/run/a/b mode 0660\n" NONE ALL,
		"[weir]\nlisten = unix:/run/a/b mode 0600\n" NONE ALL,
		"[weir] listen (unix:/run/a/b mode 0660) (unix:/run/a/b mode 0600) restart\n");
}

/* Their order counts. */
static void
repeated_keys_are_one_change(void **state)
{
	static const char *const bodies[] = { "policy = 1/1s\npolicy = 9/1m\n",
		"policy = 9/1m\npolicy = 1/1s\n", "policy = 1/1s\n", "policy = 2/1s\n" };
	static const char *const values[] = { "(NULL)", "(NULL)", "(1/1s)", "(2/1s)" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(bodies); i++) {
		for (size_t j = 0; j < LENGTH_OF(bodies); j++) {
			char before[200], after[200], expected[200] = "";

			(void)snprintf(before, sizeof before, "[limit l]\n%s%s%slimit = l\n",
				bodies[i], NONE, ALL);
			(void)snprintf(after, sizeof after, "[limit l]\n%s%s%slimit = l\n",
				bodies[j], NONE, ALL);
			if (i != j)
				(void)snprintf(expected, sizeof expected,
					"[limit l] policy %s %s\n", values[i], values[j]);
			assert_told(before, after, expected);
		}
	}
}

static void
sections_come_and_go(void **state)
{
	(void)state;
	assert_told("[limit a]\npolicy = 1/1s\n" NONE ALL "limit = a\n",
		"[limit b]\npolicy = 1/1s\n" NONE ALL "limit = b\n",
		"+[limit b]\n[route all] limit (a) (b)\n-[limit a]\n");
	assert_told(NONE ALL, "[redis]\n" NONE ALL, "+[redis]\n");
	assert_told("[redis]\n" NONE ALL, NONE ALL, "-[redis]\n");
	/* Defaults are what their keys are. */
	assert_told("[route]\nheaders = ratelimit\n" NONE ALL, NONE ALL,
		"[route] headers (ratelimit) (none)\n");
	assert_told("[weir]\n[route]\n" NONE ALL, NONE ALL, "");
}

static void
order_of_routes_is_told(void **state)
{
	static const char a[] = "[route a]\nmatch = /a\n", b[] = "[route b]\nmatch = /b\n",
			  c[] = "[route c]\nmatch = /c\n";
	char before[300], after[300];

	(void)state;
	(void)snprintf(before, sizeof before, "%s%s%s%s", a, b, NONE, ALL);
	(void)snprintf(after, sizeof after, "%s%s%s%s", b, a, NONE, ALL);
	assert_told(before, after, "order of [route]\n");
	assert_told(before, before, "");
	/* One more or less is no other order. */
	(void)snprintf(after, sizeof after, "%s%s%s%s%s", a, c, b, NONE, ALL);
	assert_told(before, after, "+[route c]\n");
	assert_told(after, before, "-[route c]\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, load_setup, load_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(same_text_is_no_change),
		TEST(keys_are_told_with_both_values),
		TEST(repeated_keys_are_one_change),
		TEST(sections_come_and_go),
		TEST(order_of_routes_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
