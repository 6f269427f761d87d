/* SCRIPT_FILENAME in all the ways that web servers say it: which program is run, and what it is
 * told. */
#include "programs.h"

#include <stdio.h>

static const struct row {
	const char *before, *file; /* SCRIPT_FILENAME: file stands below the directory */
	const char *name, *info; /* SCRIPT_NAME and PATH_INFO; info NULL: not given */
	const char *expected; /* script, SCRIPT_NAME, PATH_INFO; NULL: there is no such program */
} rows[] = {
	/* As SetHandler makes it, with the host of the handler or a worker's. */
	{ "proxy:fcgi://localhost/", "/x", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://localhost", "/x", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://localhost:9000", "/x", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://[::1]:9000", "/x", "/x", NULL, "x /x -" },
	{ "proxy:balancer://cluster", "/x", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://localhost/", "/x", "/x", "/p/q", "x /x /p/q" },
	{ "proxy:fcgi://localhost", "/x?a=/b", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://localhost", "/x?a?b", "/x", NULL, "x /x -" },
	/* As ProxyPass makes it: PATH_INFO is not split off. */
	{ "proxy:fcgi://localhost", "/x/p/q", "/x/p/q", NULL, "x /x /p/q" },
	{ "proxy:fcgi://localhost", "/x/p/q", "/a/x/p/q", NULL, "x /a/x /p/q" },
	/* Encoded or not, it is the file that SCRIPT_NAME says. */
	{ "proxy:fcgi://localhost", "/a%20b", "/a b", NULL, "a_b /a b -" },
	{ "proxy:fcgi://localhost", "/a b", "/a b", NULL, "a_b /a b -" },
	{ "proxy:fcgi://localhost", "/%2578", "/%78", NULL, "percent /%78 -" },
	{ "proxy:fcgi://localhost", "/%78", "/%78", NULL, "percent /%78 -" },
	{ "proxy:fcgi://localhost", "/%78", "/x", NULL, "x /x -" },
	{ "proxy:fcgi://localhost", "/%78", "/x", "/p", "x /x /p" },
	{ "proxy:fcgi://localhost", "/%79", "/%79", NULL, NULL },
	{ "proxy:fcgi://localhost", "/x%2Fp", "/x/p", NULL, "x /x /p" },
	/* Without the prefix nothing is decoded and nothing cut. */
	{ "", "/x", "/x", NULL, "x /x -" },
	{ "", "/%78", "/x", NULL, "percent /x -" },
	{ "", "/x?a", "/x", NULL, NULL },
	/* As lighttpd makes it with broken-scriptfilename. */
	{ "", "/x/", "/x", NULL, "x /x -" },
	{ "", "/x/p/q", "/x", "/p/q", "x /x /p/q" },
	{ "", "/x/x", "/x", "/x", "x /x /x" },
	/* As fcgiwrap's users make it: nothing is split. */
	{ "", "/x/p/q", "/x/p/q", NULL, "x /x /p/q" },
	/* What is none of ours. */
	{ "proxy:fcgi://localhost/etc", "/x", "/x", NULL, NULL },
	{ "proxy:fcgi://localhost", "/x%00", "/x", NULL, NULL },
	{ "proxy:fcgi://localhost", "/%2e%2e/x", "/../x", NULL, NULL },
	{ "proxy:http://localhost", "/x", "/x", NULL, NULL },
};

static void
program_is_the_file_that_is_meant(void **state)
{
	(void)state;
	program_write("x", "printf 'X: y\r\n\r\n'; echo x $SCRIPT_NAME ${PATH_INFO:--}");
	program_write("a b", "printf 'X: y\r\n\r\n'; echo a_b $SCRIPT_NAME ${PATH_INFO:--}");
	program_write("%78", "printf 'X: y\r\n\r\n'; echo percent $SCRIPT_NAME ${PATH_INFO:--}");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct row *row = &rows[i];
		char filename[300], expected[100] = "";
		struct talk talk;

		(void)snprintf(filename, sizeof filename, "%s%s%s", row->before, directory.path,
			row->file);
		program_run(&talk, "none",
			(const char *const[]){ "SCRIPT_FILENAME", filename, "SCRIPT_NAME",
				row->name, row->info == NULL ? NULL : "PATH_INFO", row->info,
				NULL });
		assert_row((talk.result == EXCHANGE_COMPLETE) == (row->expected != NULL),
			"row %zu: %s", i, talk.why);
		if (row->expected != NULL) {
			(void)snprintf(expected, sizeof expected, "%s\n", row->expected);
			assert_slice(buf_slice(&talk.body), slice_of(expected));
		}
		talk_release(&talk);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(program_is_the_file_that_is_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
