/*
 * What `weir check --connect` says of a login and of rights: each that is missing, and what would
 * be right; and of a server of no fault, nothing but good.
 */
#include "connecting.h"

#include <stdio.h>

static void
a_server_of_no_fault_is_good(void **state)
{
	(void)state;
	assert_good("");
	assert_printed("redis unix:");
	assert_printed(", master; a decision takes ");
	/* Nothing is left there. */
	assert_int_equal(redis_number(direct, "DBSIZE"), 0);
}

static void
a_server_is_asked_only_if_that_is_wanted(void **state)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *const arguments[] = { "check", file.text, NULL };

	(void)state;
	assert_int_equal(check(USER), 1);
	process_release(&checker);
	assert_int_equal(
		process_run(&checker, &(const struct process_setup){ .arguments = arguments }), 0);
	process_release(&checker);
	write_config(LISTEN STATE NONE ALL);
	assert_int_equal(
		process_run(&checker,
			&(const struct process_setup){ .arguments = (const char *const[]){ "check",
							       file.text, "--connect", NULL } }),
		0);
	assert_printed("there is no [redis] to connect to");
}

/* ---- the login ---- */

static void
a_login_that_is_not_taken_is_told(void **state)
{
	(void)state;
	redis_ok(direct, "ACL SETUSER weir reset on >other ~weir:* +@all");
	assert_refused(USER, "weir.ini:9: [redis] password_file: unix:");
	assert_said("the login is not taken: WRONGPASS ");
	/* Nobody else has to have the user. */
	assert_false(process_said(&checker, "replicate"));
	redis_ok(direct, "ACL SETUSER weir reset off >secret ~weir:* +@all");
	assert_refused(USER, "the login is not taken: WRONGPASS ");
}

static void
a_login_that_is_missing_is_told(void **state)
{
	(void)state;
	assert_refused(
		"password_file = DIR/password\n", "weir.ini:8: [redis] password_file: unix:");
	assert_said("; it has no password: remove password_file\n");
	redis_ok(direct, "CONFIG SET requirepass secret");
	assert_refused("", "weir.ini:6: [redis] password_file: unix:");
	assert_said("it wants a login (NOAUTH); write password_file, and username for a user of an "
		    "ACL\n");
	assert_good("password_file = DIR/password\n");
}

static void
a_database_that_is_not_there_is_told(void **state)
{
	(void)state;
	assert_refused("database = 99\n", "weir.ini:8: [redis] database: unix:");
	assert_said("it cannot be selected: ERR DB index is out of range; database of [redis] must "
		    "be one that the server has\n");
}

/* ---- rights ---- */

static void
set_user(const char *rules)
{
	redis_ok(direct, "ACL SETUSER weir reset on >secret %s", rules);
}

/* What the check says that the user needs; a line of the manual too. */
static const char *
advised_line(void)
{
	static char line[300];
	const char *start = strstr(process_error(&checker), "    ACL SETUSER weir ");

	assert_row(start != NULL, "%s", process_error(&checker));
	(void)snprintf(line, sizeof line, "%.*s", (int)strcspn(start + 4, "\n"), start + 4);
	return line;
}

static void
each_right_that_is_missing_is_told_alone(void **state)
{
	static const struct {
		const char *rule, *command;
	} rows[] = { { "-time", "TIME" }, { "-get", "GET" }, { "-set", "SET" }, { "-del", "DEL" },
		{ "-eval", "EVAL" }, { "-evalsha", "EVALSHA" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char rules[100], said[100];

		(void)snprintf(rules, sizeof rules, "~weir:* +@all %s", rows[i].rule);
		(void)snprintf(said, sizeof said, "the user weir may not call %s: NOPERM ",
			rows[i].command);
		set_user(rules);
		assert_refused(USER, "weir.ini:8: [redis] username: unix:");
		assert_said(said);
	}
}

static void
keys_of_others_are_told(void **state)
{
	(void)state;
	set_user("~other:* +@all");
	assert_int_equal(check(USER), 1);
	assert_said("the user weir may not call GET: NOPERM ");
	assert_said("    ACL SETUSER weir ~weir:* -@all ");
	assert_good(USER "prefix = other:\n");
}

/* The user is given what is said, and nothing is left to say. */
static void
what_is_advised_is_enough(void **state)
{
	(void)state;
	set_user("-@all");
	assert_int_equal(check(USER), 1);
	redis_ok(direct, "%s", advised_line());
	assert_good(USER);
	assert_printed("cannot be told without the right +info: NOPERM ");
	assert_int_equal(check(USER "database = 1\n"), 1);
	assert_said("the user weir may not call SELECT: NOPERM ");
	redis_ok(direct, "%s", advised_line());
	assert_good(USER "database = 1\n");
}

static void
the_manual_names_the_same_rights(void **state)
{
	const char *top = getenv("TOP_SRCDIR");
	char path[1000], text[400], expected[400];
	bool found = false;

	(void)state;
	set_user("-@all");
	assert_int_equal(check(USER), 1);
	(void)snprintf(
		expected, sizeof expected, "%s", advised_line() + strlen("ACL SETUSER weir "));
	(void)snprintf(path, sizeof path, "%s/contrib/man/weir.ini.5", top == NULL ? "." : top);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	while (fgets(text, sizeof text, file) != NULL) {
		size_t len = 0;

		/* troff's "\-" is a minus. */
		for (const char *at = text; *at != '\0'; at++) {
			if (*at != '\\' && *at != '\n')
				text[len++] = *at;
		}
		text[len] = '\0';
		found = found ||
			(strncmp(text, "ACL SETUSER weir ", 17) == 0 &&
				strstr(text, expected) != NULL);
	}
	(void)fclose(file);
	assert_row(found, "the manual does not have: %s", expected);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_server_of_no_fault_is_good),
		TEST(a_server_is_asked_only_if_that_is_wanted),
		TEST(a_login_that_is_not_taken_is_told),
		TEST(a_login_that_is_missing_is_told),
		TEST(a_database_that_is_not_there_is_told),
		TEST(each_right_that_is_missing_is_told_alone),
		TEST(keys_of_others_are_told),
		TEST(what_is_advised_is_enough),
		TEST(the_manual_names_the_same_rights),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests_name(
		"command/connect", tests, connect_group_setup, connect_group_teardown);
}
