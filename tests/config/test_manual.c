/*
 * The manual and README: every key of the table stands in weir.ini(5) with its default, and every
 * block of INI in them is sound.
 */
#include "load.h"

/* A file of the source tree as a text, for free(). */
static char *
source_text(const char *name)
{
	const char *top = getenv("TOP_SRCDIR");
	char path[PATH_MAX];
	char *text = calloc(1, 262144);

	assert_non_null(text);
	(void)snprintf(path, sizeof path, "%s/%s", top == NULL ? "." : top, name);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	assert_in_range(fread(text, 1, 262143, file), 1, 262142);
	assert_int_equal(fclose(file), 0);
	return text;
}

/* The line of the manual that presents a key: ".BR key" or ".BR key*", in the section's part. */
static struct slice
entry_of(const char *manual, const struct config_option_help *option)
{
	char head[64], plain[80], starred[80];

	(void)snprintf(head, sizeof head, "\n.SH [%s", option->section);
	(void)snprintf(plain, sizeof plain, "\n.BR %s \" = ", option->key);
	(void)snprintf(starred, sizeof starred, "\n.BR %s * \" = ", option->key);
	const char *part = strstr(manual, head);

	assert_row(part != NULL, "weir.ini(5) has no section [%s]", option->section);
	const char *end = strstr(part + 1, "\n.SH ");
	const char *at = strstr(part, option->repeatable ? starred : plain);

	assert_row(at != NULL && (end == NULL || at < end),
		"weir.ini(5) does not present [%s] %s as `.BR %s%s \" = ...`", option->section,
		option->key, option->key, option->repeatable ? " *" : "");
	return slice_make(at + 1, strcspn(at + 1, "\n"));
}

static bool
has(struct slice line, const char *text)
{
	return memmem(line.ptr, line.len, text, strlen(text)) != NULL;
}

static void
every_key_is_in_the_manual_with_its_default(void **state)
{
	char *manual = source_text("contrib/man/weir.ini.5");
	const struct config_option_help *option;

	(void)state;
	for (unsigned i = 0; (option = config_option_help(i)) != NULL; i++) {
		const struct slice entry = entry_of(manual, option);
		char text[160];

		(void)snprintf(text, sizeof text, "(default: %s", option->default_text);
		assert_row(option->default_text[0] == '\0' ? !has(entry, "(default:")
							   : has(entry, text),
			"weir.ini(5): [%s] %s: its default is \"%s\"", option->section, option->key,
			option->default_text);
		assert_row(has(entry, "restart") == option->needs_restart,
			"weir.ini(5): [%s] %s: whether it needs a restart", option->section,
			option->key);
	}
	free(manual);
}

/* Loads what stands between two marks, each time that they come; returns how often. */
static unsigned
load_blocks(const char *name, const char *begin, const char *end)
{
	char *text = source_text(name), *at = text;
	unsigned count = 0;

	while ((at = strstr(at, begin)) != NULL) {
		at += strlen(begin);
		const size_t len = (size_t)(strstr(at, end) - at);
		struct config *config;

		write_file("weir.ini", slice_make(at, len));
		char *said = said_of_file("weir.ini", &config);

		assert_row(config != NULL, "a block of %s is refused: %s", name, said);
		free(said);
		config_free(config);
		at += len;
		count++;
	}
	free(text);
	return count;
}

static void
every_ini_block_is_sound(void **state)
{
	(void)state;
	assert_true(load_blocks("contrib/man/weir.ini.5", ".EX\n", ".EE\n") >= 1);
	assert_true(load_blocks("README.md", "```ini\n", "```") >= 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_is_in_the_manual_with_its_default),
		cmocka_unit_test(every_ini_block_is_sound),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
