/* What programs start in the background, and leave behind: when it is ended, and when it is not. */
#include "programs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool
is_there(int pid)
{
	int parent;
	const char state = program_state(pid, &parent);

	return state != '\0' && state != 'Z';
}

static bool
is_zombie(int pid)
{
	int parent;

	return program_state(pid, &parent) == 'Z';
}

static void
forget(const char *name)
{
	assert_int_equal(unlink(directory_path(&directory, name).text), 0);
}

/* What it says is the answer's beginning; its child holds the output when it has ended. */
static void
write_parent(const char *head, const char *child)
{
	char script[500];

	(void)snprintf(script, sizeof script, "echo $$ > self; printf '%s'; sh -c '%s' & exit 0",
		head, child);
	program_write("x", script);
}

/* Those that take the signal, one that does not, and one whose error output nobody can see. */
#define LISTENS "echo $$ > child; exec sleep 100"
#define IS_DEAF "trap : TERM; echo $$ > child; while :; do sleep 0.05; done"
#define IS_SILENT "exec 2> /dev/null; echo $$ > child; exec sleep 100"

static void
a_group_without_its_leader_is_ended_with_its_request(void **state)
{
	static const struct {
		const char *head, *child;
		bool is_aborted;
	} rows[] = {
		{ "", LISTENS, true },
		{ "", LISTENS, false },
		{ "X: y\r\n\r\nok", LISTENS, true },
		{ "X: y\r\n\r\nok", LISTENS, false },
		{ "", IS_SILENT, true },
		{ "X: y\r\n\r\nok", IS_SILENT, false },
		{ "", IS_DEAF, true },
	};

	(void)state;
	programs.idle_timeout_us = 300000;
	programs_renew();
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		write_parent(rows[i].head, rows[i].child);
		assert_true(program_start(&talk, "x", NULL));
		const int self = program_number("self"), child = program_number("child");

		if (rows[i].is_aborted) {
			assert_soon(!is_there(self));
			talk_cancel(&talk);
		} else {
			exchange_body_end(talk.exchange);
			talk_finish(&talk);
			assert_int_not_equal(talk.result, EXCHANGE_COMPLETE);
		}
		assert_gone(child);
		forget("self");
		forget("child");
		talk_release(&talk);
	}
}

/* Its number is the group's, and must not become a stranger's. */
static void
a_leader_is_not_reaped_before_its_request_ends(void **state)
{
	struct talk talk;

	(void)state;
	write_parent("X: y\r\n\r\nok",
		"echo $$ > child; until test -e go; do sleep 0.02; done; echo more");
	assert_true(program_start(&talk, "x", NULL));
	const int self = program_number("self");

	assert_soon(is_zombie(self));
	for (unsigned turn = 0; turn < 20; turn++)
		assert_true(is_zombie(self));
	directory_write(&directory, "go", SLICE(""));
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_slice(buf_slice(&talk.body), SLICE("okmore\n"));
	assert_gone(self);
	talk_release(&talk);
}

static void
the_background_of_an_answer_that_is_whole_lives_on(void **state)
{
	static const char *const scripts[] = {
		"sh -c 'echo $$ > child; exec sleep 100' < /dev/null > /dev/null 2>&1 &",
		"setsid sh -c 'echo $$ > child; exec sleep 100' < /dev/null > /dev/null 2>&1 &",
	};

	(void)state;
	programs.idle_timeout_us = 100000;
	programs_renew();
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		char text[300];
		struct talk talk;

		(void)snprintf(text, sizeof text,
			"echo $$ > self; %s until test -s child; do sleep 0.01; done; "
			"printf 'X: y\r\n\r\nok'",
			scripts[i]);
		program_write("x", text);
		program_run(&talk, "x", NULL);
		assert_row(talk.result == EXCHANGE_COMPLETE, "%s: %s", scripts[i], talk.why);
		assert_gone(program_number("self"));
		const int child = program_number("child");

		assert_true(is_there(child));
		assert_int_equal(kill(child, SIGKILL), 0);
		forget("self");
		forget("child");
		talk_release(&talk);
	}
}

/* It left the group: nobody ends it. But its output is an answer's, which has its deadline. */
static void
a_daemon_that_holds_the_output_is_waited_for_with_an_end(void **state)
{
	struct talk talk;

	(void)state;
	programs.idle_timeout_us = 300000;
	programs_renew();
	program_write("x",
		"printf 'X: y\r\n\r\nok'; setsid sh -c 'echo $$ > child; exec sleep 100' & "
		"echo $$ > self");
	program_run(&talk, "x", NULL);
	assert_int_equal(talk.result, EXCHANGE_TRUNCATED);
	assert_soon(!is_there(program_number("self")));
	const int child = program_number("child");

	assert_true(is_there(child));
	assert_int_equal(kill(child, SIGKILL), 0);
	talk_release(&talk);
}

/* So that no client has more programs than that, by going away from them. */
static void
what_is_left_behind_counts_for_max_in_flight(void **state)
{
	enum { MAX = 3 };
	struct talk talk;

	(void)state;
	programs.max_in_flight = MAX;
	programs.idle_timeout_us = 500000;
	programs_renew();
	program_write("works-on", "printf 'X: y\r\n\r\nok'; exec sleep 100 > /dev/null");
	program_write("x", "printf 'X: y\r\n\r\nok'");
	for (unsigned i = 0; i < MAX; i++) {
		program_run(&talk, "works-on", NULL);
		assert_row(talk.result == EXCHANGE_COMPLETE, "%u: %s", i, talk.why);
		talk_release(&talk);
	}
	program_run(&talk, "x", NULL);
	assert_int_equal(talk.result, EXCHANGE_BUSY);
	talk_release(&talk);
	do {
		run_loop_once(loop);
		program_run(&talk, "x", NULL);
		talk_release(&talk);
	} while (talk.result == EXCHANGE_BUSY);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
}

/* Nobody is waited for, and no place is taken meanwhile. */
static void
a_program_that_has_gone_leaves_nothing_behind(void **state)
{
	struct talk talk;

	(void)state;
	programs.max_in_flight = 1;
	programs_renew();
	program_write("x", "echo $$ > self");
	assert_true(program_start(&talk, "x", NULL));
	exchange_hold(talk.exchange);
	const int self = program_number("self");

	assert_soon(is_zombie(self));
	for (unsigned turn = 0; turn < 20; turn++)
		assert_true(is_zombie(self));
	talk_cancel(&talk);
	talk_release(&talk);
	assert_true(program_start(&talk, "x", NULL));
	talk_cancel(&talk);
	talk_release(&talk);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_group_without_its_leader_is_ended_with_its_request),
		TEST(a_leader_is_not_reaped_before_its_request_ends),
		TEST(the_background_of_an_answer_that_is_whole_lives_on),
		TEST(a_daemon_that_holds_the_output_is_waited_for_with_an_end),
		TEST(what_is_left_behind_counts_for_max_in_flight),
		TEST(a_program_that_has_gone_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
