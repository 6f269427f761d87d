/* diagnostics.h: what was said, in which order and in which form. */
#include "load.h"

static void
assert_printed(const struct diagnostics *diagnostics, const char *expected)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	diagnostics_print(diagnostics, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text, expected);
	free(text);
}

static void
lines_come_in_the_order_of_file_and_line(void **state)
{
	struct diagnostics diagnostics;

	(void)state;
	diagnostics_init(&diagnostics);
	assert_printed(&diagnostics, "");
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ "b", 2 }, "[x] y", "one");
	diagnostics_add(&diagnostics, SEVERITY_WARNING, (struct place){ "b", 1 }, NULL, "two");
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ "b", 2 }, "", "three %d", 3);
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ "a", 10 }, NULL, "four");
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ "b", 0 }, "[x]", "five");
	diagnostics_add(&diagnostics, SEVERITY_WARNING, (struct place){ NULL, 0 }, "-x", "six");
	assert_printed(&diagnostics,
		"-x: warning: six\n"
		"a:10: four\n"
		"b: [x]: five\n"
		"b:1: warning: two\n"
		"b:2: [x] y: one\n"
		"b:2: three 3\n");
	assert_int_equal(diagnostics.errors, 4);
	assert_int_equal(diagnostics.warnings, 2);
	diagnostics_release(&diagnostics);
}

static void
bytes_that_are_not_printable_are_escaped(void **state)
{
	struct diagnostics diagnostics;

	(void)state;
	diagnostics_init(&diagnostics);
	diagnostics_add(&diagnostics, SEVERITY_ERROR, (struct place){ "a\nb", 1 }, "[\x1b]\n",
		"%s\nan example", "\x01\xff\r\x7f~");
	assert_printed(&diagnostics,
		"a\\x0ab:1: [\\x1b]\\x0a: \\x01\\xff\\x0d\\x7f~\n"
		"    an example\n");
	diagnostics_release(&diagnostics);
}

static void
the_same_is_said_once_and_a_flood_is_only_counted(void **state)
{
	struct diagnostics diagnostics;

	(void)state;
	diagnostics_init(&diagnostics);
	for (unsigned i = 0; i < 3; i++)
		diagnostics_add(
			&diagnostics, SEVERITY_ERROR, (struct place){ "a", 1 }, "[x]", "said");
	assert_int_equal(diagnostics.errors, 1);
	for (unsigned i = 2; i <= DIAGNOSTICS_MAX + 7; i++)
		diagnostics_add(
			&diagnostics, SEVERITY_ERROR, (struct place){ "a", i }, NULL, "said");
	assert_int_equal(diagnostics.count, DIAGNOSTICS_MAX);
	assert_int_equal(diagnostics.errors, DIAGNOSTICS_MAX + 7);

	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	diagnostics_print(&diagnostics, out);
	assert_int_equal(fclose(out), 0);
	assert_string_equal(text + len - strlen("... and 7 more\n"), "... and 7 more\n");
	free(text);
	diagnostics_release(&diagnostics);
	assert_int_equal(diagnostics.count, 0);
}

static void
a_long_text_is_cut(void **state)
{
	struct diagnostics diagnostics;
	char longer[5000];

	(void)state;
	memset(longer, '\xff', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	diagnostics_init(&diagnostics);
	diagnostics_add(
		&diagnostics, SEVERITY_WARNING, (struct place){ longer, 1 }, longer, "%s", longer);
	assert_int_equal(strlen(diagnostics.list[0].text), 4 * 1023);
	diagnostics_release(&diagnostics);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_in_the_order_of_file_and_line),
		cmocka_unit_test(bytes_that_are_not_printable_are_escaped),
		cmocka_unit_test(the_same_is_said_once_and_a_flood_is_only_counted),
		cmocka_unit_test(a_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
