/* The program's commands but serve: what they say, where they say it, and their exit status. */
#include "../lib/directory.h"
#include "../lib/process.h"
#include "../lib/soon.h"

#include <stdio.h>

static struct directory directory;
static struct process process;

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	process_release(&process);
	directory_remove(&directory);
	return 0;
}

static int
run(const char *const *arguments)
{
	process_release(&process);
	return process_run(&process, &(const struct process_setup){ .arguments = arguments });
}

static void
wrong_use_is_told_with_a_sentence_and_status_2(void **state)
{
	static const struct {
		const char *arguments[5], *sentence;
	} rows[] = {
		{ { NULL }, "Usage:" },
		{ { "nonsense", NULL }, "there is no command \"nonsense\"" },
		{ { "", NULL }, "there is no command \"\"" },
		{ { "--nonsense", NULL }, "there is no command \"--nonsense\"" },
		{ { "serve", "a", "b", NULL }, "weir serve: takes one file" },
		{ { "serve", "--config", NULL }, "weir serve: takes one file" },
		{ { "serve", "--config", "a", "b", NULL }, "weir serve: takes one file" },
		{ { "serve", "-x", NULL }, "weir serve: takes one file" },
		{ { "check", "a", "b", NULL }, "weir check: takes one file" },
		{ { "check", "--x", NULL }, "weir check: takes one file" },
		{ { "check", "--config", NULL }, "weir check: takes one file" },
		{ { "identity", NULL }, "weir identity: takes a limit and who is meant" },
		{ { "identity", "--config", "a", NULL }, "weir identity: takes a limit" },
		{ { "identity", "--nonsense", NULL }, "weir identity: takes a limit" },
		{ { "identity", "page", "ip", NULL }, "weir identity: takes a limit" },
		{ { "identity", "page", "header", "X", NULL }, "weir identity: takes a limit" },
		{ { "identity", "page", "shoe", "9", NULL }, "weir identity: takes a limit" },
		{ { "identity", "page", "ip", "nine", NULL }, "weir identity: ip has no sound" },
		{ { "identity", "page", "user", "", NULL }, "weir identity: user has no sound" },
		{ { "identity", "page", "user", "-", NULL }, "weir identity: user has no sound" },
		{ { "-t", NULL }, "\"-t\" is written weir check [FILE]" },
		{ { "-v", NULL }, "\"-v\" is written weir --version" },
		{ { "-c", "weir.ini", NULL }, "\"-c\" is written weir serve --config FILE" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(run(rows[i].arguments), 2);
		assert_row(process_said(&process, rows[i].sentence), "row %zu: %s", i,
			process_error(&process));
		assert_string_equal(process_output(&process), "");
	}
}

static void
version_and_help_are_told_on_standard_output(void **state)
{
	(void)state;
	assert_int_equal(run((const char *const[]){ "--version", NULL }), 0);
	assert_string_equal(process_output(&process), "weir " PACKAGE_VERSION "\n");
	assert_string_equal(process_error(&process), "");
	static const char *const helps[] = { "--help", "-h", "help" };

	for (size_t i = 0; i < LENGTH_OF(helps); i++) {
		assert_int_equal(run((const char *const[]){ helps[i], NULL }), 0);
		assert_non_null(strstr(process_output(&process), "weir serve [FILE]"));
		assert_non_null(strstr(process_output(&process), "weir check [--connect] [FILE]"));
		assert_non_null(strstr(process_output(&process), "weir identity LIMIT WHO..."));
		assert_string_equal(process_error(&process), "");
	}
}

static int
check(const char *ini)
{
	char whole[1000];

	(void)snprintf(whole, sizeof whole,
		"%s[weir]\nlisten = unix:%s/weir.sock\n[memory]\n"
		"state = %s/state\n",
		ini, directory.path, directory.path);
	directory_write(&directory, "weir.ini", slice_of(whole));
	return run((const char *const[]){
		"check", directory_path(&directory, "weir.ini").text, NULL });
}

static const char good[] = "[backend app]\ntype = none\n[limit page]\npolicy = 10/1s burst 60\n"
			   "[route all]\nmatch = *\nlimit = page\n";

static void
good_configuration_is_said_in_words(void **state)
{
	(void)state;
	assert_int_equal(check(good), 0);
	const char *output = process_output(&process);

	assert_row(strstr(output, "60 at once, then 10 a second") != NULL, "%s", output);
	assert_row(strstr(output, "/weir.ini: good") != NULL, "%s", output);
	assert_non_null(strstr(output, "enforce = yes: "));
}

/* Each in each way: what is refused is then the file, and not the way. */
static void
every_command_takes_the_file_alike(void **state)
{
	static const char *const commands[] = { "serve", "check" };
	static const char *const calls[][2] = { { "/none/weir.ini", NULL },
		{ "--config", "/none/weir.ini" }, { "--config=/none/weir.ini", NULL } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(commands) * LENGTH_OF(calls); i++) {
		const char *const *call = calls[i / LENGTH_OF(commands)];
		const char *const arguments[] = { commands[i % LENGTH_OF(commands)], call[0],
			call[1], NULL };

		assert_int_equal(run(arguments), 1);
		assert_row(process_said(&process, "/none/weir.ini"), "%zu: %s", i,
			process_error(&process));
	}
}

static void
check_takes_the_file_as_serve_does(void **state)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	char joined[200];

	(void)state;
	(void)check(good);
	(void)snprintf(joined, sizeof joined, "--config=%s", file.text);
	const char *const calls[][4] = { { "check", "--config", file.text, NULL },
		{ "check", joined, NULL } };

	for (size_t i = 0; i < LENGTH_OF(calls); i++) {
		assert_int_equal(run(calls[i]), 0);
		assert_non_null(strstr(process_output(&process), "/weir.ini: good\n"));
	}
}

static void
enforce_no_is_said(void **state)
{
	char ini[500];

	(void)state;
	(void)snprintf(ini, sizeof ini, "[weir]\nenforce = no\n%s", good);
	assert_int_equal(check(ini), 0);
	assert_non_null(strstr(process_output(&process), "enforce = no: every limit decides"));
}

static void
every_error_is_told_with_its_place(void **state)
{
	(void)state;
	assert_int_equal(check("[weir]\nlistn = x\n[limit page]\npolicy = soon\n[backend app]\n"
			       "[route all]\nmatch = ~ (\nlimit = page\n"),
		1);
	const char *const places[] = { "weir.ini:2: ", "weir.ini:4: ", "weir.ini:5: " };

	for (size_t i = 0; i < LENGTH_OF(places); i++)
		assert_row(process_said(&process, places[i]), "%s: %s", places[i],
			process_error(&process));
	assert_string_equal(process_output(&process), "");
	assert_true(process_said(&process, "/weir.ini: 3 errors\n") ||
		process_said(&process, "/weir.ini: 4 errors\n"));
}

/* What is found only when it is made ready for serving. */
static void
errors_of_patterns_and_files_are_found_too(void **state)
{
	(void)state;
	assert_int_equal(check("[backend app]\ntype = none\n[route all]\nmatch = ~ (\n"), 1);
	assert_row(process_said(&process, "weir.ini:4: "), "%s", process_error(&process));
	char ini[500];

	(void)snprintf(ini, sizeof ini, "[weir]\nhash_key_file = /none/key\n%s", good);
	assert_int_equal(check(ini), 1);
	assert_row(process_said(&process, "/none/key"), "%s", process_error(&process));
}

static void
file_that_is_not_there_is_told(void **state)
{
	(void)state;
	assert_int_equal(run((const char *const[]){ "check", "/none/weir.ini", NULL }), 1);
	assert_row(process_said(&process, "/none/weir.ini"), "%s", process_error(&process));
	assert_int_equal(run((const char *const[]){ "check", directory.path, NULL }), 1);
	assert_row(process_said(&process, directory.path), "%s", process_error(&process));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_use_is_told_with_a_sentence_and_status_2),
		TEST(version_and_help_are_told_on_standard_output),
		TEST(good_configuration_is_said_in_words),
		TEST(every_command_takes_the_file_alike),
		TEST(check_takes_the_file_as_serve_does),
		TEST(enforce_no_is_said),
		TEST(every_error_is_told_with_its_place),
		TEST(errors_of_patterns_and_files_are_found_too),
		TEST(file_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
