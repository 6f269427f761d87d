/* err.h: sentences that are bounded, and those about files. */
#include "../unit.h"
#include "weir/err.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void
sentence_is_bounded(void **state)
{
	struct err err;
	char text[600];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(err_set(&err, "%s", text), -1);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_int_equal(err_set(&err, "b"), -1);
	assert_int_equal(err_prefix(&err, "a %d", 1), -1);
	assert_string_equal(err.text, "a 1: b");
}

/* As a user who owns nothing, if we are root. */
static void
open_without_rights(const char *path, struct err *out)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const pid_t child = fork();

	if (child == 0) {
		struct err err = { "it could be opened" };

		if (geteuid() == 0 && setuid(65534) != 0)
			_exit(1);
		if (open(path, O_RDWR | O_CLOEXEC) < 0)
			(void)err_set_open(&err, path, errno);
		_exit(write(fds[1], &err, sizeof err) == sizeof err ? 0 : 1);
	}
	assert_int_equal(read(fds[0], out, sizeof *out), sizeof *out);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void
missing_right_is_told_with_owner_and_user(void **state)
{
	char path[] = "/tmp/weir-err-XXXXXX", expected[200];
	const int fd = mkstemp(path);
	const struct passwd *owner = getpwuid(geteuid());
	char name[64], user[64] = "nobody";
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	assert_non_null(owner);
	(void)snprintf(name, sizeof name, "%s", owner->pw_name);
	if (geteuid() != 0)
		(void)snprintf(user, sizeof user, "%s", name);
	assert_int_equal(fchmod(fd, 0), 0);
	(void)close(fd);
	open_without_rights(path, &err);
	assert_int_equal(unlink(path), 0);
	(void)snprintf(expected, sizeof expected,
		"Permission denied; it belongs to %s, and weir runs as %s", name, user);
	assert_string_equal(err.text, expected);
}

static void
other_faults_are_the_systems_words(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(err_set_open(&err, "/none/x", ENOENT), -1);
	assert_string_equal(err.text, "No such file or directory");
	/* Of a file below a directory that we may not enter nothing more is known. */
	assert_int_equal(err_set_open(&err, "/none/x", EACCES), -1);
	assert_string_equal(err.text, "Permission denied");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sentence_is_bounded),
		cmocka_unit_test(missing_right_is_told_with_owner_and_user),
		cmocka_unit_test(other_faults_are_the_systems_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
