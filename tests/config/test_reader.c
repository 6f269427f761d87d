/* The files as such: lines, sections, comments, includes, and everything that can be wrong with a
 * line whatever its key. */
#include "../lib/valgrind.h"
#include "load.h"

#define REST "[backend b]\nserver = unix:/run/b\n[route r]\nmatch = *\n"

static void
blanks_comments_and_indentation_do_not_matter(void **state)
{
	static const char *const sound[] = {
		REST,
		"\n\n ; one\n\t# two \xff\x01\n;\n#\n" REST,
		"  [weir]  ; comment # and more ; of it\n\t enforce\t=\tno\t; comment\n" REST,
		"[weir]\nenforce=no\nthreads =2 ;\n   max_params= 16 ; x ;y #z\n" REST,
		"[ weir\t]\nenforce = no\n" REST,
		"[weir]\n" REST "limit = ; none\n",
		"[limit a.B-_9]\npolicy = 1/1s\n[backend b]\nserver = unix:/run/b\n"
		"[route r]\nmatch = *\nlimit = a.B-_9",
		"[backend b]\nserver = unix:/run/b;c\n[route r]\nmatch = *\nmatch = ~ ^/a=[ ];b[ "
		"]#c\n",
		"[backend b]\nserver = unix:/run/\xc3\xa4\n[route r]\nmatch = *\n",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++) {
		struct config *config;
		char *said = said_of(sound[i], &config);

		assert_row(config != NULL, "%s\n%s", sound[i], said);
		free(said);
		config_free(config);
	}
}

static void
values_keep_equal_signs_colons_and_semicolons(void **state)
{
	struct config *config = loaded("[weir]\n reject_log \t= /a = b : c;d\n" REST);

	(void)state;
	assert_string_equal(config->reject_log, "/a = b : c;d");
	config_free(config);
}

static const struct {
	const char *line, *said;
} faults[] = {
	{ "threads: 4", "there is no \"=\" in this line; did you mean \"threads = 4\"?" },
	{ "threads : = 4", "a \":\" stands in front of the \"=\"; a setting is \"threads = ...\"" },
	{ "server unix:/run/x.sock",
		"there is no \"=\" in this line; did you mean \"server = unix:/run/x.sock\"?" },
	{ "tcp:127.0.0.1:9180",
		"an address stands here without a key; did you mean \"server = "
		"tcp:127.0.0.1:9180\"?" },
	{ "enforce", "there is no \"=\" in this line; did you mean \"enforce = ...\"?" },
	{ "/x/y",
		"there is no \"=\" in this line; a line is \"key = value\", \"[section]\" or a "
		"comment" },
	{ "= no", "there is no key in front of the \"=\"" },
	{ "threads = 1 # two",
		"a comment behind a value begins with \" ; \", not with \" #\" (a regular "
		"expression can say [ ]#)" },
	{ "threads =# two", "\"=#\" is not the beginning of a comment; write \"= ; comment\"" },
	{ "threads =;two", "\"=;\" is not the beginning of a comment; write \"= ; comment\"" },
	{ "threads = 1 ;two",
		"\" ;\" begins a comment and wants a blank behind it; a value cannot hold \" ;\" "
		"(a "
		"regular expression can say [ ];)" },
	{ "log = \"stderr\"",
		"there is no quoting: quotes would be part of the value; leave them out" },
	{ "log = 'a ; b'",
		"there is no quoting: quotes would be part of the value; leave them out" },
	{ "log =\x01stderr", "the line holds a control character (0x01)" },
	{ "log = a\rb", "the line holds a control character (0x0d)" },
	{ "log = \x7f", "the line holds a control character (0x7f)" },
	{ "log = \xff", "the byte 0xff is no UTF-8; save the file in UTF-8" },
	{ "log = \xc3", "the byte 0xc3 is no UTF-8; save the file in UTF-8" },
	{ "log = \xc0\xaf", "the byte 0xc0 is no UTF-8; save the file in UTF-8" },
	{ "log = \xed\xa0\x80", "the byte 0xed is no UTF-8; save the file in UTF-8" },
	{ "log =\xc2\xa0stderr",
		"the line holds a no-break space, perhaps pasted from a web page; write plain "
		"blanks "
		"and no quotes" },
	{ "log = \xe2\x80\x9cstderr\xe2\x80\x9d",
		"the line holds a typographic quote, perhaps pasted from a web page; write plain "
		"blanks and no quotes" },
};

/* The fault is the only thing that is said: what is left out because of it is not missed. */
static void
each_fault_of_a_line_is_said_with_its_place(void **state)
{
	char ini[1024], expected[1024];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(faults); i++) {
		(void)snprintf(
			ini, sizeof ini, "[weir]\nmax_params = 16\n%s\n%s", faults[i].line, REST);
		(void)snprintf(expected, sizeof expected, "weir.ini:3: %s\n", faults[i].said);
		assert_said(ini, expected);
		(void)snprintf(
			ini, sizeof ini, "%s[limit l]\n \t%s", REST "limit = l\n", faults[i].line);
		(void)snprintf(expected, sizeof expected, "weir.ini:7: %s\n", faults[i].said);
		assert_said(ini, expected);
	}
}

static const struct {
	const char *line, *said;
} section_faults[] = {
	{ "[limit l", "the section does not close; write [limit l]" },
	{ "[limit l] x",
		"\"x\" stands behind the section; a section has a line of its own, and a "
		"comment behind it begins with \" ; \"" },
	{ "[limit l]; x",
		"\"; x\" stands behind the section; a section has a line of its own, and "
		"a comment behind it begins with \" ; \"" },
	{ "[limit l]]",
		"\"]\" stands behind the section; a section has a line of its own, and a "
		"comment behind it begins with \" ; \"" },
	{ "[limit l] # x",
		"\"# x\" stands behind the section; a section has a line of its own, and "
		"a comment behind it begins with \" ; \"" },
	{ "[limit l] ;x",
		"\" ;\" begins a comment and wants a blank behind it; a value cannot hold \" ;\" "
		"(a "
		"regular expression can say [ ];)" },
};

/* What stands behind a faulty section line belongs to that section all the same. */
static void
faults_of_a_section_line_do_not_spread(void **state)
{
	char ini[1024], expected[1024];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(section_faults); i++) {
		(void)snprintf(ini, sizeof ini,
			"[limit k]\npolicy = 1/1s\nidentity = ip\n%s\npolicy = 1/1s\nidentity = "
			"ip\n%s",
			section_faults[i].line, REST "limit = k, l\n");
		(void)snprintf(
			expected, sizeof expected, "weir.ini:4: %s\n", section_faults[i].said);
		assert_said(ini, expected);
	}
}

static void
names_of_sections_are_one_word(void **state)
{
	char longest[200] = "[limit ";

	(void)state;
	assert_said("[limit a b]\npolicy = 1/1s\n" REST,
		"weir.ini:1: \"a b\" is no name; a name is one word of letters, digits, \"-\", "
		"\"_\" and \".\"\n");
	assert_said("[]\nx = y\n[ ]\nz\n" REST,
		"weir.ini:1: a section has a kind, and most have a name: [limit page]\n"
		"weir.ini:3: a section has a kind, and most have a name: [limit page]\n"
		"weir.ini:4: there is no \"=\" in this line; did you mean \"z = ...\"?\n");
	memset(longest + 7, 'n', 65);
	(void)snprintf(longest + 72, sizeof longest - 72, "]\npolicy = 1/1s\n%s", REST);
	char *said = said_of(longest, NULL);

	assert_non_null(strstr(said, "weir.ini:1: a name has 1 to 64 characters\n"));
	free(said);
}

static void
an_empty_section_is_one(void **state)
{
	struct config *config = loaded(REST "[redis]");

	(void)state;
	assert_true(config->has_redis);
	assert_int_equal(config->redis_place.line, 5);
	config_free(config);
	config = loaded(REST);
	assert_false(config->has_redis);
	config_free(config);
}

static void
a_setting_stands_in_a_section(void **state)
{
	(void)state;
	assert_said("enforce = no\n" REST,
		"weir.ini:1: this stands in no section; begin with one, such as [weir]\n");
}

/* 198 bytes, whatever indentation and comment there are. */
static void
a_line_that_inih_would_cut_is_refused(void **state)
{
	char path[400], ini[1024];

	(void)state;
	memset(path, 'p', sizeof path);
	for (size_t len = 180; len < 300; len++) {
		const char key[] = "reject_log = /";
		const size_t whole = sizeof key - 1 + len;

		(void)snprintf(ini, sizeof ini, "[weir]\n  %s%.*s ; a comment of some length\n%s",
			key, (int)len, path, REST);
		struct config *config;
		char *said = said_of(ini, &config);

		if (whole <= 198) {
			assert_row(config != NULL, "%zu: %s", whole, said);
			assert_int_equal(strlen(config->reject_log), len + 1);
		} else {
			char expected[300];

			(void)snprintf(expected, sizeof expected,
				"weir.ini:2: the line has %zu bytes without its comment, and no "
				"more "
				"than 198 are read; a key that may be repeated takes the rest on a "
				"line of its own\n",
				whole);
			assert_string_equal(said, expected);
		}
		free(said);
		config_free(config);
	}
}

static void
marks_of_other_systems_are_told_once_a_file(void **state)
{
	(void)state;
	assert_said(
		"\xef\xbb\xbf[weir]\r\nenforce = no\r\n\r\n[backend b]\r\nserver = unix:/run/b\n"
		"[route r]\nmatch = *\r\n",
		"weir.ini:1: lines end with CR LF; convert the file with: sed -i 's/\\r$//' "
		"weir.ini\n"
		"weir.ini:1: the file begins with a byte order mark; save it as UTF-8 without "
		"BOM\n");
}

static void
a_nul_byte_is_refused_anywhere(void **state)
{
	static const struct slice texts[] = {
		{ "[weir]\nenforce = no\0\n", 21 },
		{ "[weir]\n; com\0ment\n", 18 },
		{ "[weir]\n\0\n", 9 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(texts); i++) {
		write_file("weir.ini", texts[i]);
		char *said = said_of_file("weir.ini", NULL);

		assert_non_null(strstr(said,
			"weir.ini:2: the line holds a NUL byte; is this a "
			"text file?\n"));
		free(said);
	}
}

static void
a_file_that_cannot_be_read_is_one_error(void **state)
{
	char *said = said_of_file("none.ini", NULL);

	(void)state;
	assert_string_equal(said, "none.ini: cannot be read: No such file or directory\n");
	free(said);
	said = said_of_file(".", NULL);
	assert_string_equal(said, ".: cannot be read: it is no regular file\n");
	free(said);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	said = said_of_file("fifo", NULL);
	assert_string_equal(said, "fifo: cannot be read: it is no regular file\n");
	free(said);

	const int fd = open("large.ini", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8 * 1024 * 1024 + 1), 0);
	(void)close(fd);
	said = said_of_file("large.ini", NULL);
	assert_string_equal(said, "large.ini: cannot be read: it is larger than 8388608 bytes\n");
	free(said);
}

/* ---- include ---- */

static void
includes_are_read_at_their_place_in_the_order_of_names(void **state)
{
	(void)state;
	assert_int_equal(mkdir("conf.d", 0700), 0);
	write_file("conf.d/b.ini", SLICE("[route b]\nmatch = /b\n"));
	write_file("conf.d/B.ini", SLICE("[route B]\nmatch = /B\n"));
	write_file("conf.d/a10.ini", SLICE("[route a10]\nmatch = /a10\n"));
	write_file("conf.d/a9.ini", SLICE("[route a9]\nmatch = /a9\n"));
	write_file("conf.d/c.ini~", SLICE("nonsense"));
	write_file("conf.d/.d.ini", SLICE("nonsense"));
	struct config *config =
		loaded("include = none/*.ini\n[route first]\nmatch = /first\n"
		       "include = conf.d/*.ini ; comment\n"
		       "[backend x]\nserver = unix:/run/x\n[route last]\nmatch = *");
	static const char *const order[] = { "first", "B", "a10", "a9", "b", "last" };

	assert_int_equal(config->route_count, LENGTH_OF(order));
	for (size_t i = 0; i < LENGTH_OF(order); i++)
		assert_string_equal(config->routes[i]->name, order[i]);
	assert_string_equal(config->routes[4]->place.file, "conf.d/b.ini");
	assert_int_equal(config->routes[4]->place.line, 1);
	assert_int_equal(config->routes[5]->place.line, 7);
	config_free(config);
}

static void
an_include_is_relative_to_its_own_file(void **state)
{
	char main_file[PATH_MAX + 16];

	(void)state;
	assert_int_equal(mkdir("a[1]", 0700), 0);
	assert_int_equal(mkdir("a[1]/x*", 0700), 0);
	write_file("a[1]/weir.ini", SLICE("include = x*/more.ini\n" REST));
	write_file("a[1]/x*/more.ini", SLICE("include = other.ini\n"));
	write_file("a[1]/x*/other.ini", SLICE("[weir]\nthreads = 0\n"));
	(void)snprintf(main_file, sizeof main_file, "%s/a[1]/weir.ini", load_directory);
	char *said = said_of_file("a[1]/weir.ini", NULL);

	assert_string_equal(said,
		"a[1]/x*/other.ini:2: [weir] threads: \"0\" is neither a number "
		"from 1 to 64 nor auto\n");
	free(said);
	said = said_of_file(main_file, NULL);
	assert_non_null(strstr(said, "/a[1]/x*/other.ini:2: [weir] threads: "));
	free(said);
}

static void
a_file_named_without_wildcard_must_be_there(void **state)
{
	(void)state;
	assert_said("include = missing.ini\ninclude =\n" REST,
		"weir.ini:1: include: missing.ini cannot be read: No such file or directory\n"
		"weir.ini:2: include names no file; write include = conf.d/*.ini\n");
}

static void
an_include_ends_the_section_before_it(void **state)
{
	(void)state;
	write_file("one.ini", SLICE("enforce = no\n[weir]\nthreads = 2\n"));
	assert_said("[weir]\ninclude = one.ini\nenforce = yes\n" REST,
		"one.ini:1: this stands in no section; begin with one, such as [weir]\n"
		"weir.ini:3: this stands in no section, since the include in line 2 ended the one "
		"before it; begin with [section] again\n");
}

static void
loops_and_depth_are_bounded(void **state)
{
	(void)state;
	write_file("loop.ini", SLICE("\ninclude = weir.ini\n"));
	assert_said("include = loop.ini\ninclude = weir.*\n" REST,
		"loop.ini:2: include: weir.ini would include itself\n"
		"weir.ini:2: include: weir.ini would include itself\n");
	for (int i = 1; i < 10; i++) {
		char name[32], text[32];

		(void)snprintf(name, sizeof name, "deep%d.ini", i);
		(void)snprintf(text, sizeof text, "include = deep%d.ini", i + 1);
		write_file(name, slice_of(text));
	}
	assert_said("include = deep1.ini\n" REST,
		"deep8.ini:1: include: deep9.ini is included more than 8 files deep\n");
}

/* ---- size ---- */

static void
a_file_of_nonsense_ends_in_a_count(void **state)
{
	struct diagnostics diagnostics;
	FILE *file = fopen("weir.ini", "w");

	(void)state;
	assert_non_null(file);
	for (int i = 0; i < 200000; i++)
		(void)fputs("nonsense\n", file);
	assert_int_equal(fclose(file), 0);
	diagnostics_init(&diagnostics);
	assert_null(config_load("weir.ini", &diagnostics));
	assert_int_equal(diagnostics.count, DIAGNOSTICS_MAX);
	assert_true(diagnostics.errors >= 200000);
	diagnostics_release(&diagnostics);
}

static void
sections_are_bounded(void **state)
{
	FILE *file = fopen("weir.ini", "w");

	(void)state;
	assert_non_null(file);
	for (int i = 0; i <= 10000; i++)
		(void)fprintf(file, "[backend b%d]\n", i);
	assert_int_equal(fclose(file), 0);
	char *said = said_of_file("weir.ini", NULL);

	assert_non_null(strstr(said, "weir.ini:10001: there are more than 10000 sections\n"));
	free(said);
}

static void
memory_is_bounded(void **state)
{
	(void)state;
	if (runs_under_valgrind())
		skip(); /* 2,800,000 lines */
	FILE *file = fopen("weir.ini", "w");

	assert_non_null(file);
	(void)fputs("[limit l]\n", file);
	for (int i = 0; i < 700000; i++)
		(void)fputs("policy=1/s\n", file);
	assert_int_equal(fclose(file), 0);
	write_file("outer.ini",
		SLICE("include = weir.ini\ninclude = weir.ini\ninclude = weir.ini\n"
		      "include = weir.ini\n[limit k]\n"));
	char *said = said_of_file("outer.ini", NULL);

	assert_non_null(
		strstr(said, ": the configuration would take more than 256 MiB of memory\n"));
	free(said);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blanks_comments_and_indentation_do_not_matter),
		cmocka_unit_test(values_keep_equal_signs_colons_and_semicolons),
		cmocka_unit_test(each_fault_of_a_line_is_said_with_its_place),
		cmocka_unit_test(faults_of_a_section_line_do_not_spread),
		cmocka_unit_test(names_of_sections_are_one_word),
		cmocka_unit_test(an_empty_section_is_one),
		cmocka_unit_test(a_setting_stands_in_a_section),
		cmocka_unit_test(a_line_that_inih_would_cut_is_refused),
		cmocka_unit_test(marks_of_other_systems_are_told_once_a_file),
		cmocka_unit_test(a_nul_byte_is_refused_anywhere),
		cmocka_unit_test(a_file_that_cannot_be_read_is_one_error),
		cmocka_unit_test(includes_are_read_at_their_place_in_the_order_of_names),
		cmocka_unit_test(an_include_is_relative_to_its_own_file),
		cmocka_unit_test(a_file_named_without_wildcard_must_be_there),
		cmocka_unit_test(an_include_ends_the_section_before_it),
		cmocka_unit_test(loops_and_depth_are_bounded),
		cmocka_unit_test(a_file_of_nonsense_ends_in_a_count),
		cmocka_unit_test(sections_are_bounded),
		cmocka_unit_test(memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
