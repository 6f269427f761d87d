/*
 * What `weir check` promises: where it says good, `weir serve` starts, and where it says why not,
 * `weir serve` does not. Each configuration is given to both.
 */
#include "serving.h"

#include <pwd.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct process checker;

static int
set_up(void **state)
{
	return weir_set_up(state);
}

static int
tear_down(void **state)
{
	process_release(&checker);
	return weir_tear_down(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int
check(const char *ini)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *const arguments[] = { "check", file.text, NULL };

	write_config(ini);
	process_release(&checker);
	return process_run(&checker, &(const struct process_setup){ .arguments = arguments });
}

static void
assert_check(const char *ini, int status, const char *said)
{
	const int ended = check(ini);

	assert_row(ended == status, "%s: status %d\n%s%s", ini, ended, process_error(&checker),
		process_output(&checker));
	assert_row(process_said(&checker, said), "%s: not said: %s\n%s", ini, said,
		process_error(&checker));
}

static void
assert_serves(const char *ini)
{
	weir_start(ini);
	weir_stop();
	process_release(&process);
}

struct row {
	const char *ini, *said;
};

static void
what_keeps_weir_from_starting_is_an_error(void **state)
{
	static const struct row rows[] = {
		{ "[weir]\nlisten = unix:DIR/none/weir.sock\n" STATE NONE ALL,
			"weir.ini:2: [weir] listen: the directory " },
		{ "[weir]\nlisten = unix:DIR/weir.ini\n" STATE NONE ALL,
			"weir.ini:2: [weir] listen: something is there already that is no socket" },
		{ "[weir]\nlisten = unix:DIR/a.sock\nlisten = unix:DIR/weir.sock group "
		  "wwwwww\n" STATE NONE ALL,
			"weir.ini:3: [weir] listen: there is no group \"wwwwww\"" },
		{ "[weir]\nlisten = unix:DIR/weir.sock owner nobody-of-that-name\n" STATE NONE ALL,
			"weir.ini:2: [weir] listen: there is no user \"nobody-of-that-name\"" },
		{ LISTEN "log = file:DIR/none/x.log\n" STATE NONE ALL,
			"weir.ini:3: [weir] log: the directory " },
		{ LISTEN "log = file:DIR\n" STATE NONE ALL, "cannot be opened: Is a directory" },
		{ LISTEN "reject_log = DIR/none/x.log\n" STATE NONE ALL,
			"weir.ini:3: [weir] reject_log: the directory " },
		{ LISTEN "[memory]\nstate = DIR/none/state\n" NONE ALL,
			"weir.ini:4: [memory] state: the directory " },
		{ LISTEN "[memory]\nstate = DIR\n" NONE ALL, "weir.ini:4: [memory] state: " },
		{ LISTEN "[memory]\nstate = DIR/weir.ini\n" NONE ALL,
			"it is there already and is not weir's" },
		{ LISTEN "[memory]\nstate = DIR/weir.sock\n" NONE ALL,
			"weir.ini:2: [weir] listen: is the same place as [memory] state" },
	};
	struct process_setup setup = { 0 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_check(rows[i].ini, 1, rows[i].said);
		assert_string_equal(process_output(&checker), "");
		assert_row(weir_run(rows[i].ini, &setup) == 1, "row %zu: %s", i,
			process_error(&process));
		process_release(&process);
	}
}

static void
what_weir_starts_with_is_a_warning_at_most(void **state)
{
	static const struct row rows[] = {
		{ LISTEN STATE APP ALL,
			"weir.ini:7: [backend app] server: warning: nothing is there now: No such "
			"file or directory\n" },
		{ LISTEN STATE "[backend app]\nserver = unix:DIR\n" ALL,
			"[backend app] server: warning: what is there now is a directory, and no "
			"socket\n" },
		{ LISTEN STATE "[redis]\nserver = unix:DIR/weir.ini\n" NONE ALL,
			"[redis] server: warning: what is there now is no socket\n" },
		{ LISTEN "metrics = unix:DIR/none/m.sock\n" STATE NONE ALL,
			"weir.ini:3: [weir] metrics: warning: weir would serve without metrics: "
			"the "
			"directory " },
		{ LISTEN "spool_directory = DIR/none\n" STATE
			 "[backend app]\nserver = unix:DIR/a\n" ALL,
			"weir.ini:3: [weir] spool_directory: warning: the directory " },
		{ LISTEN "spool_directory = DIR/none\n" STATE NONE ALL, "" },
		{ LISTEN "reject_log = DIR/x.log\nlog_level = info\n" STATE NONE ALL, "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_check(rows[i].ini, 0, rows[i].said);
		assert_non_null(strstr(process_output(&checker),
			rows[i].said[0] == '\0' ? "weir.ini: good\n"
						: "weir.ini: good, with warnings\n"));
		assert_serves(rows[i].ini);
	}
}

/* It may be given one. */
static void
nothing_to_listen_on_is_a_warning(void **state)
{
	struct process_setup setup = { 0 };

	(void)state;
	assert_check(STATE NONE ALL, 0,
		"weir.ini: [weir] listen: warning: is missing, so weir starts only where it is "
		"given a socket");
	assert_check("[weir]\nthreads = 1\n" STATE NONE ALL, 0,
		"weir.ini:1: [weir] listen: warning: is missing");
	assert_int_equal(weir_run(STATE NONE ALL, &setup), 2);
	process_release(&process);
	setup.standard_input = unix_listen(directory_path(&directory, "given").text, 10);
	weir_start_with(STATE NONE ALL, &setup);
	assert_soon(process_said(&process, " Serving. ") || process_has_ended(&process));
	(void)close(setup.standard_input);
}

static void
two_keys_of_one_file_are_told(void **state)
{
	const struct directory_path link = directory_path(&directory, "link");

	(void)state;
	assert_int_equal(symlink(".", link.text), 0);
	assert_check(LISTEN "log = file:DIR/x.log\nreject_log = DIR/link/x.log\n" STATE NONE ALL, 0,
		"weir.ini:4: [weir] reject_log: warning: is the same file as [weir] log");
	assert_check(LISTEN STATE "[backend app]\nserver = unix:DIR/link/weir.sock\n" ALL, 1,
		"[backend app] server: is the same place as [weir] listen of weir itself");
	assert_check(LISTEN "metrics = unix:DIR/link/weir.sock\n" STATE NONE ALL, 1,
		"weir.ini:3: [weir] metrics: is the same place as [weir] listen");
	assert_check(LISTEN "log = file:DIR/link/state\n" STATE NONE ALL, 1,
		"[memory] state: is the same place as [weir] log");
}

/* ExecReload checks while weir serves. */
static void
the_weir_that_runs_is_no_fault(void **state)
{
	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	assert_int_equal(check(LISTEN STATE NONE ALL), 0);
	assert_string_equal(process_error(&checker), "");
	assert_non_null(strstr(process_output(&checker), "weir.ini: good\n"));
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

/* Not test_check if valgrind runs it. */
static void
own_name(char name[16])
{
	FILE *comm = fopen("/proc/self/comm", "r");

	assert_non_null(comm);
	assert_int_equal(fscanf(comm, "%15[^\n]", name), 1);
	(void)fclose(comm);
}

static void
another_program_at_our_socket_is_one(void **state)
{
	const int fd = unix_listen(directory_path(&directory, "weir.sock").text, 10);
	struct process_setup setup = { 0 };
	char name[16], said[100];

	(void)state;
	own_name(name);
	(void)snprintf(said, sizeof said, "weir.ini:2: [weir] listen: %s (process %d) listens",
		name, (int)getpid());
	assert_check(LISTEN STATE NONE ALL, 1, said);
	assert_int_equal(weir_run(LISTEN STATE NONE ALL, &setup), 1);
	(void)close(fd);
	/* What it has left is replaced. */
	assert_int_equal(check(LISTEN STATE NONE ALL), 0);
	process_release(&process);
	assert_serves(LISTEN STATE NONE ALL);
}

static void
a_port_in_use_is_a_warning(void **state)
{
	uint16_t port;
	const int fd = tcp_listen(1, &port);
	char ini[500];

	(void)state;
	(void)snprintf(ini, sizeof ini, "[weir]\nlisten = tcp:127.0.0.1:%u\n%s", (unsigned)port,
		STATE NONE ALL);
	assert_check(ini, 0, "[weir] listen: warning: somebody listens there already");
	(void)close(fd);
	assert_int_equal(check(ini), 0);
	assert_false(process_said(&checker, "somebody listens"));
}

/* A check that root makes must not leave files of root's. */
static void
a_check_leaves_nothing(void **state)
{
	static const char *const names[] = { "weir.sock", "state", "x.log", "r.log", "m.sock" };

	(void)state;
	assert_int_equal(check(LISTEN "log = file:DIR/x.log\nreject_log = DIR/r.log\n"
				      "metrics = unix:DIR/m.sock\n" STATE NONE ALL),
		0);
	assert_string_equal(process_error(&checker), "");
	for (size_t i = 0; i < LENGTH_OF(names); i++)
		assert_row(access(directory_path(&directory, names[i]).text, F_OK) != 0, "%s",
			names[i]);
}

/* Root checks what another user serves with. */
static void
a_state_of_another_user_is_told_to_root(void **state)
{
	const struct directory_path path = directory_path(&directory, "state");

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_serves(LISTEN STATE NONE ALL);
	assert_int_equal(chown(path.text, 1, 1), 0);
	assert_check(LISTEN STATE NONE ALL, 0, "[memory] state: warning: ");
	assert_true(process_said(&checker, "belongs to user id 1, so weir starts as that user"));
}

static void
routes_are_told_behind_the_limits(void **state)
{
	(void)state;
	assert_int_equal(check(LISTEN STATE NONE
				 "[limit page]\npolicy = 5/1m\n[route login]\nmatch = /login\n"
				 "limit = page\n" ALL),
		0);
	const char *output = process_output(&checker);
	const char *login = strstr(output, "\nroute login: /login -> limit page, backend none\n");

	assert_row(login != NULL, "%s", output);
	assert_non_null(strstr(login, "\nroute all: * -> no limit, backend none\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_keeps_weir_from_starting_is_an_error),
		TEST(what_weir_starts_with_is_a_warning_at_most),
		TEST(nothing_to_listen_on_is_a_warning),
		TEST(two_keys_of_one_file_are_told),
		TEST(the_weir_that_runs_is_no_fault),
		TEST(another_program_at_our_socket_is_one),
		TEST(a_port_in_use_is_a_warning),
		TEST(a_check_leaves_nothing),
		TEST(a_state_of_another_user_is_told_to_root),
		TEST(routes_are_told_behind_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
