/* Parameters that come more than once, and names that no program can be told: what a limit counts
 * is what the program sees. */
#include "programs.h"

#include <stdio.h>
#include <string.h>

static void
assert_told(const char *const *pairs, const char *expected)
{
	struct talk talk;

	program_write("x", "printf 'X: y\r\n\r\n'; env | grep -a X_ | sort");
	program_run(&talk, "x", pairs);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_slice(buf_slice(&talk.body), slice_of(expected));
	talk_release(&talk);
}

static void
last_of_a_name_counts(void **state)
{
	(void)state;
	assert_told((const char *const[]){ "X_A", "1", "X_B", "1", "X_A", "2", "X_A", "3", "X_B",
			    "", NULL },
		"X_A=3\nX_B=\n");
}

/* Names that are left out too: each of them is looked at once. */
static void
last_of_very_many_counts(void **state)
{
	enum { MANY = 30000 };
	static char others[MANY][16];
	static const char *pairs[2 * MANY + 1];

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(others[i], sizeof others[i], "proxy-%u", i);
		pairs[2 * i] = i % 3 == 0 ? "X_A" : i % 3 == 1 ? "X_B" : others[i];
		pairs[2 * i + 1] = others[i] + strlen("proxy-");
	}
	assert_told(pairs, "X_A=29997\nX_B=29998\n");
}

/* nginx: "include fastcgi.conf", and a SCRIPT_FILENAME of the location's own behind it. */
static void
last_script_is_run(void **state)
{
	const struct directory_path other = directory_path(&directory, "other");
	struct talk talk;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\n'; echo first");
	program_write("other", "printf 'X: y\r\n\r\n'; echo $SCRIPT_FILENAME");
	program_run(&talk, "x", (const char *const[]){ "SCRIPT_FILENAME", other.text, NULL });
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_true(slice_has_prefix(buf_slice(&talk.body), slice_of(other.text)));
	talk_release(&talk);
}

/* Apache has such names (proxy-sendcl); no web server makes one of a client's header. */
static void
names_that_no_shell_knows_are_left_out(void **state)
{
	(void)state;
	assert_told((const char *const[]){ "X_OK", "1", "proxy-X_", "1", "X_\n", "1", "X_ B", "1",
			    "1X_", "1", "", "1", "X_\xc3\xa4", "1", "HTTP_PROXY", "X_", NULL },
		"X_OK=1\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(last_of_a_name_counts),
		TEST(last_of_very_many_counts),
		TEST(last_script_is_run),
		TEST(names_that_no_shell_knows_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
