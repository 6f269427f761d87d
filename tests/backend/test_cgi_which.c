/* Which CGI program a request is for, and which are none. */
#include "programs.h"

#include "weir/fcgi.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static void
assert_body(const struct talk *talk, const char *expected)
{
	assert_row(talk->result == EXCHANGE_COMPLETE, "%s: %s", exchange_result_names[talk->result],
		talk->why);
	assert_slice(buf_slice(&talk->body), slice_of(expected));
}

static void
the_path_is_split_at_the_program(void **state)
{
	static const struct {
		const char *script_filename, *document_root, *script_name;
		const char *expected; /* SCRIPT_NAME PATH_INFO */
	} rows[] = {
		{ "/x", "", "/cgi/x", "/cgi/x " },
		{ "/x/more/path", "", "/cgi/x/more/path", "/cgi/x /more/path" },
		{ "/d/x/", "", "/cgi/d/x/", "/cgi/d/x /" },
		{ NULL, "", "/d/x/a/b", "/d/x /a/b" },
		{ NULL, "/d", "/x", "/x " },
		/* slashes where the root ends: ProxyPassMatch and $document_root/$name make them */
		{ "//x", "", "/cgi/x", "/cgi/x " },
		{ "//x/more", "", "/cgi/x/more", "/cgi/x /more" },
		{ "///d//x/", "", "/cgi/d//x/", "/cgi/d//x /" },
		{ NULL, "/", "/d/x/a", "/d/x /a" },
	};

	(void)state;
	assert_int_equal(mkdir(directory_path(&directory, "d").text, 0755), 0);
	program_write("x", "printf 'X: y\r\n\r\n%s %s' \"$SCRIPT_NAME\" \"$PATH_INFO\"");
	program_write("d/x", "printf 'X: y\r\n\r\n%s %s' \"$SCRIPT_NAME\" \"$PATH_INFO\"");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char filename[200] = "", root[200];
		struct talk talk;
		struct buf params;

		if (rows[i].script_filename != NULL)
			(void)snprintf(filename, sizeof filename, "%s%s", directory.path,
				rows[i].script_filename);
		(void)snprintf(root, sizeof root, "%s%s", directory.path, rows[i].document_root);
		bytes_init(&params);
		put_pairs(&params,
			(const char *const[]){ "SCRIPT_FILENAME", filename, "DOCUMENT_ROOT", root,
				"SCRIPT_NAME", rows[i].script_name, NULL });
		assert_true(talk_start_raw(&talk, pool, buf_slice(&params)));
		exchange_body_end(talk.exchange);
		talk_finish(&talk);
		assert_body(&talk, rows[i].expected);
		buf_release(&params);
		talk_release(&talk);
	}
}

static void
what_is_no_program_is_refused(void **state)
{
	static const struct {
		const char *name;
		enum exchange_result result;
	} rows[] = {
		{ "not-there", EXCHANGE_NOT_FOUND },
		{ "d", EXCHANGE_FORBIDDEN },
		{ "d/not-there", EXCHANGE_NOT_FOUND },
		{ "d/not-there/x", EXCHANGE_NOT_FOUND },
		{ "d/", EXCHANGE_FORBIDDEN },
		{ "/", EXCHANGE_NOT_FOUND },
		{ "//", EXCHANGE_NOT_FOUND },
		{ "/d//not-there", EXCHANGE_NOT_FOUND },
		{ "//../../../bin/true", EXCHANGE_FORBIDDEN },
		{ "../../../bin/true", EXCHANGE_FORBIDDEN },
		{ "d/../../../bin/true", EXCHANGE_FORBIDDEN },
		{ "link-out", EXCHANGE_FORBIDDEN },
		{ "way-out/true", EXCHANGE_FORBIDDEN },
		{ "loop", EXCHANGE_FORBIDDEN },
		{ "not-executable", EXCHANGE_FORBIDDEN },
		{ "setuid", EXCHANGE_FORBIDDEN },
		{ "fifo", EXCHANGE_FORBIDDEN },
		{ "no-interpreter", EXCHANGE_REFUSED },
		{ "no-format", EXCHANGE_REFUSED },
		{ "link-in", EXCHANGE_COMPLETE },
		{ "link-absolute", EXCHANGE_COMPLETE },
		{ "link-absolute/info", EXCHANGE_COMPLETE },
		{ "way-in/x", EXCHANGE_COMPLETE },
		{ "way-in/link-out", EXCHANGE_FORBIDDEN },
		{ "link-gone", EXCHANGE_NOT_FOUND },
		{ "link-beside", EXCHANGE_FORBIDDEN },
	};
	char text[600];

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\nok'");
	program_write("setuid", "printf 'X: y\r\n\r\nno'");
	directory_write(&directory, "not-executable", SLICE("#!/bin/sh\n"));
	directory_write(&directory, "no-interpreter", SLICE("#!/not/there\n"));
	directory_write(&directory, "no-format", SLICE("\177garbage\n"));
	(void)snprintf(text, sizeof text,
		"cd %s && mkdir d && ln -s /bin/true link-out && ln -s /bin way-out && "
		"ln -s loop loop && ln -s x link-in && ln -s $PWD/x link-absolute && "
		"ln -s $PWD way-in && ln -s $PWD/none link-gone && mkdir $PWD-beside && "
		"cp x $PWD-beside && ln -s $PWD-beside/x link-beside && mkfifo -m 755 fifo && "
		"chmod 4755 setuid && "
		"chmod 755 no-interpreter no-format",
		directory.path);
	assert_int_equal(system(text), 0);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		program_run(&talk, rows[i].name, NULL);
		assert_row(talk.result == rows[i].result, "%s: %s: %s", rows[i].name,
			exchange_result_names[talk.result], talk.why);
		assert_true((talk.why[0] == '\0') == (talk.result == EXCHANGE_COMPLETE));
		talk_release(&talk);
	}
	(void)snprintf(text, sizeof text, "rm -r %s-beside", directory.path);
	assert_int_equal(system(text), 0);
}

static void
one_program_takes_all(void **state)
{
	const struct directory_path path = directory_path(&directory, "x");
	struct talk talk;

	(void)state;
	programs.root = NULL;
	programs.program = path.text;
	programs_renew();
	program_write("x", "printf 'X: y\r\n\r\n%s' \"$SCRIPT_FILENAME $PATH_INFO\"");
	program_run(&talk, "anything", (const char *const[]){ "PATH_INFO", "/a", NULL });
	char expected[200];

	(void)snprintf(expected, sizeof expected, "%s /a", path.text);
	assert_body(&talk, expected);
	talk_release(&talk);
}

static void
an_interpreter_is_told_the_script(void **state)
{
	static const struct {
		const char *before, *asked, *told; /* the directory is between the first two */
	} rows[] = {
		{ "", "/script", "script" },
		{ "", "/script/info", "script/info" },
		{ "proxy:fcgi://localhost", "/script", "script" },
		{ "", "/not-there", "x" },
		{ "", "/not-there/script", "x" },
		{ "", "/", "x" },
		{ "x", "/script", "x" },
	};
	const struct directory_path path = directory_path(&directory, "x");

	(void)state;
	programs.root = NULL;
	programs.program = path.text;
	programs_renew();
	program_write("x", "printf 'X: y\r\n\r\n%s' \"$SCRIPT_FILENAME\"");
	directory_write(&directory, "script", SLICE("text"));
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char filename[200], expected[200];
		struct talk talk;
		struct buf params;

		(void)snprintf(filename, sizeof filename, "%s%s%s", rows[i].before, directory.path,
			rows[i].asked);
		(void)snprintf(expected, sizeof expected, "%s/%s", directory.path, rows[i].told);
		bytes_init(&params);
		put_pairs(&params, (const char *const[]){ "SCRIPT_FILENAME", filename, NULL });
		assert_true(talk_start_raw(&talk, pool, buf_slice(&params)));
		exchange_body_end(talk.exchange);
		talk_finish(&talk);
		assert_body(&talk, expected);
		buf_release(&params);
		talk_release(&talk);
	}
}

/* ---- without openat2(2), as under weir.service ---- */

/* From now on, for this thread and what it starts. The latest filter's error is the one. */
static int
openat2_fails(int error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = { .len = LENGTH_OF(code), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
		return -1;
	return syscall(SYS_openat2, -1, "", NULL, 0) < 0 && errno == error ? 0 : -1;
}

static int
openat2_is_not_there(void **state)
{
	(void)state;
	return openat2_fails(ENOSYS);
}

static int
openat2_is_forbidden(void **state)
{
	(void)state;
	return openat2_fails(EPERM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_path_is_split_at_the_program),
		TEST(what_is_no_program_is_refused),
		TEST(one_program_takes_all),
		TEST(an_interpreter_is_told_the_script),
	};
	const struct CMUnitTest without[] = {
		TEST(the_path_is_split_at_the_program),
		TEST(what_is_no_program_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) +
		cmocka_run_group_tests(without, openat2_is_not_there, NULL) +
		cmocka_run_group_tests(without, openat2_is_forbidden, NULL);
}
