/* What `weir check` says of the programs that weir would start itself. */
#include "serving.h"

#include <sys/stat.h>
#include <unistd.h>

static struct process checker;

static int
tear_down(void **state)
{
	process_release(&checker);
	return weir_tear_down(state);
}

#define PROGRAM(path) "[backend app]\ntype = cgi\nprogram = " path "\n"
#define ROOT(path) "[backend app]\ntype = cgi\nroot = " path "\n"

static int
check(const char *ini)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *const arguments[] = { "check", file.text, NULL };

	write_config(ini);
	process_release(&checker);
	return process_run(&checker, &(const struct process_setup){ .arguments = arguments });
}

/* They may be installed later. */
static void
the_programs_of_a_backend_are_looked_at(void **state)
{
	static const struct {
		const char *ini, *said;
	} rows[] = {
		{ LISTEN STATE PROGRAM("DIR/none") ALL,
			"weir.ini:8: [backend app] program: warning: nothing is there that could "
			"be started now: No such file or directory\n" },
		{ LISTEN STATE PROGRAM("DIR/x/below") ALL,
			"[backend app] program: warning: nothing is there that could be started "
			"now: Not a directory\n" },
		{ LISTEN STATE PROGRAM("DIR") ALL,
			"[backend app] program: warning: what is there now is a directory, and no "
			"program; for all programs below it write root =\n" },
		{ LISTEN STATE PROGRAM("/dev/null") ALL,
			"[backend app] program: warning: what is there now is no program\n" },
		{ LISTEN STATE PROGRAM("DIR/closed") ALL,
			"[backend app] program: warning: it is not executable: Permission denied" },
		{ LISTEN STATE PROGRAM("DIR/open") ALL,
			"[backend app] program: warning: every user of this system may write "
			"there" },
		{ LISTEN STATE PROGRAM("DIR/x") ALL, "" },
		{ LISTEN STATE ROOT("DIR/none") ALL,
			"weir.ini:8: [backend app] root: warning: there are no programs now: No "
			"such file or directory\n" },
		{ LISTEN STATE ROOT("DIR/x") ALL,
			"[backend app] root: warning: what is there now is no directory; for one "
			"program write program =\n" },
		{ LISTEN STATE ROOT("/dev/null") ALL,
			"[backend app] root: warning: what is there now is no directory\n" },
		{ LISTEN STATE ROOT("DIR/shared") ALL,
			"[backend app] root: warning: every user of this system may write there" },
		{ LISTEN STATE ROOT("DIR") ALL, "" },
	};
	static const struct {
		const char *name;
		mode_t mode;
	} files[] = { { "x", 0755 }, { "closed", 0644 }, { "open", 0777 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(files); i++) {
		directory_write(&directory, files[i].name, SLICE("#!/bin/sh\n"));
		assert_int_equal(
			chmod(directory_path(&directory, files[i].name).text, files[i].mode), 0);
	}
	const struct directory_path shared = directory_path(&directory, "shared");

	assert_int_equal(mkdir(shared.text, 0700), 0);
	assert_int_equal(chmod(shared.text, 01777), 0);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const bool is_good = rows[i].said[0] == '\0';

		assert_row(check(rows[i].ini) == 0 && process_said(&checker, rows[i].said),
			"%s\nnot said: %s\n%s", rows[i].ini, rows[i].said, process_error(&checker));
		assert_row(is_good == (strstr(process_output(&checker), "good\n") != NULL),
			"%s\n%s", rows[i].ini, process_error(&checker));
	}
	/* And weir starts, as with any warning. */
	weir_start(rows[0].ini);
	weir_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_programs_of_a_backend_are_looked_at, weir_set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
