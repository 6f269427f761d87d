/* How CGI programs end, and are ended; and that nothing is left of them. */
#include "programs.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void
what_is_no_answer_is_told(void **state)
{
	static const struct {
		const char *script;
		enum exchange_result result;
	} rows[] = {
		{ "exit 0", EXCHANGE_CLOSED },
		{ "printf 'X: y\r\n'", EXCHANGE_BAD_HEAD },
		{ "echo hello", EXCHANGE_BAD_HEAD },
		{ "echo no head; echo", EXCHANGE_BAD_HEAD },
		{ "kill -SEGV $$", EXCHANGE_CLOSED },
		{ "printf 'Content-Length: 5\r\n\r\nabc'", EXCHANGE_TRUNCATED },
		{ "printf 'X: y\r\n\r\nabc'; kill -KILL $$", EXCHANGE_TRUNCATED },
		{ "printf 'X: y\r\n\r\nabc'; kill -TERM $$", EXCHANGE_TRUNCATED },
		{ "printf 'Content-Length: 3\r\n\r\nabc'; kill -KILL $$", EXCHANGE_COMPLETE },
		{ "sleep 0.2 & printf 'X: y\r\n\r\nabc'; kill -KILL $$", EXCHANGE_TRUNCATED },
		{ "printf 'X: y\r\n\r\nabc'; exec >&-; sleep 0.3", EXCHANGE_COMPLETE },
		{ "printf 'X: y\r\n\r\nabc'; exit 7", EXCHANGE_COMPLETE },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		program_write("x", rows[i].script);
		program_run(&talk, "x", NULL);
		assert_row(talk.result == rows[i].result, "%s: %s: %s", rows[i].script,
			exchange_result_names[talk.result], talk.why);
		talk_release(&talk);
	}
}

static void
an_abort_ends_it_with_all_that_it_started(void **state)
{
	struct talk talk;

	(void)state;
	program_write("x", "sleep 100 & echo $! > child; echo $$ > self; wait");
	assert_true(program_start(&talk, "x", NULL));
	const int self = program_number("self"), child = program_number("child");

	talk_cancel(&talk);
	assert_gone(self);
	assert_gone(child);
	talk_release(&talk);
}

static void
who_does_not_listen_is_killed(void **state)
{
	struct talk talk;

	(void)state;
	program_write("x", "trap '' TERM; echo $$ > self; while :; do sleep 0.1; done");
	assert_true(program_start(&talk, "x", NULL));
	const int self = program_number("self");

	talk_cancel(&talk);
	assert_gone(self);
	talk_release(&talk);
}

static void
silence_ends_it(void **state)
{
	static const struct {
		const char *script;
		enum exchange_result result;
	} rows[] = {
		{ "echo $$ > self; exec sleep 100", EXCHANGE_TIMEOUT },
		{ "echo $$ > self; printf 'X: y\r\n\r\nabc'; exec sleep 100", EXCHANGE_TRUNCATED },
	};

	(void)state;
	programs.idle_timeout_us = 200000;
	programs_renew();
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		program_write("x", rows[i].script);
		program_run(&talk, "x", NULL);
		assert_row(talk.result == rows[i].result, "%s: %s", rows[i].script,
			exchange_result_names[talk.result]);
		assert_gone(program_number("self"));
		assert_int_equal(unlink(directory_path(&directory, "self").text), 0);
		talk_release(&talk);
	}
}

/* It works on for as long as it might have been silent; what it says is not heard. */
static void
closed_output_ends_the_answer_and_not_the_program(void **state)
{
	struct talk talk;

	(void)state;
	programs.idle_timeout_us = 1000000;
	programs_renew();
	program_write("x",
		"printf 'X: y\r\n\r\nok'; exec > /dev/null; echo $$ > self; "
		"until test -e go; do sleep 0.02; done; echo heard >&2; echo 1 > after; "
		"exec sleep 100");
	program_run(&talk, "x", NULL);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	directory_write(&directory, "go", SLICE(""));
	(void)program_number("after");
	assert_gone(program_number("self"));
	talk_release(&talk);
}

/* Where the answer has no body: one that goes on sending is ended, and one that is silent, with its
 * output still open, works on. */
static void
who_goes_on_sending_behind_the_answer_is_ended(void **state)
{
	struct talk endless, silent;

	(void)state;
	program_write("endless",
		"trap '' PIPE; echo $$ > self; printf 'X: y\r\n\r\n'; "
		"while :; do echo more 2>/dev/null; done");
	program_write("silent",
		"printf 'X: y\r\n\r\n'; until test -e go; do sleep 0.02; done; echo 1 > after");
	assert_true(program_start(&endless, "endless", NULL));
	assert_true(program_start(&silent, "silent", NULL));
	endless.wants_no_body = silent.wants_no_body = true;
	exchange_body_end(endless.exchange);
	exchange_body_end(silent.exchange);
	const int64_t start_us = clock_monotonic_us();

	talk_finish(&endless);
	talk_finish(&silent);
	assert_true(clock_monotonic_us() - start_us < 10000000);
	assert_int_equal(endless.result, EXCHANGE_COMPLETE);
	assert_int_equal(silent.result, EXCHANGE_COMPLETE);
	assert_int_equal(endless.body_len, 0);
	assert_gone(program_number("self"));
	directory_write(&directory, "go", SLICE(""));
	(void)program_number("after");
	talk_release(&endless);
	talk_release(&silent);
}

/* As long as GET would, though nothing is wanted of it: who counts requests counts it. */
static void
head_lasts_as_long_as_its_program(void **state)
{
	struct talk talk, left, without_body;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\n'; until test -e go; do sleep 0.02; done");
	program_write("left", "printf 'X: y\r\n\r\n'; echo $$ > left-pid; exec sleep 100");
	program_write("204",
		"printf 'Status: 204\r\n\r\n'; until test -e go; do sleep 0.02; done; echo 1 > "
		"after");
	assert_true(program_start(&talk, "x", NULL));
	assert_true(program_start(&left, "left", NULL));
	assert_true(program_start(&without_body, "204", NULL));
	talk.wants_no_body = left.wants_no_body = without_body.wants_no_body = true;
	talk.is_head = left.is_head = true;
	exchange_body_end(talk.exchange);
	exchange_body_end(left.exchange);
	exchange_body_end(without_body.exchange);
	run_loop_for_ms(loop, 2500);
	assert_int_equal(talk.heads, 1);
	assert_false(talk.ended);
	assert_false(left.ended);
	assert_true(without_body.ended);
	talk_cancel(&left);
	assert_gone(program_number("left-pid"));
	directory_write(&directory, "go", SLICE(""));
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	(void)program_number("after");
	talk_release(&talk);
	talk_release(&left);
	talk_release(&without_body);
}

/* Who answers before he has read the body gets all of it nevertheless. */
static void
early_answer_does_not_cut_the_upload(void **state)
{
	static const char *const heads[] = { "Status: 204\\r\\n\\r\\n",
		"Content-Length: 2\\r\\n\\r\\nok" };
	static const char piece[1000];

	(void)state;
	programs.idle_timeout_us = 300000;
	programs_renew();
	for (size_t i = 0; i < LENGTH_OF(heads); i++) {
		struct talk talk;
		char script[200];

		(void)snprintf(
			script, sizeof script, "printf '%s'; wc -c > count-%zu", heads[i], i);
		program_write("x", script);
		assert_true(program_start(&talk, "x", NULL));
		talk.wants_no_body = i == 0;
		for (unsigned sent = 0; sent < 15; sent++) {
			run_loop_for_ms(loop, 100);
			assert_false(talk.ended);
			exchange_body(talk.exchange, slice_make(piece, sizeof piece));
		}
		exchange_body_end(talk.exchange);
		talk_finish(&talk);
		assert_int_equal(talk.result, EXCHANGE_COMPLETE);
		(void)snprintf(script, sizeof script, "count-%zu", i);
		assert_int_equal(program_number(script), 15000);
		talk_release(&talk);
	}
}

/* Half an upload must not be taken for the whole, though the answer had come. */
static void
client_that_leaves_its_upload_ends_the_program(void **state)
{
	struct talk talk;

	(void)state;
	program_write("x",
		"printf 'Content-Length: 2\r\n\r\nok'; echo $$ > self; cat > part; sleep 0.3; "
		"mv part whole");
	assert_true(program_start(&talk, "x", NULL));
	exchange_body(talk.exchange, SLICE("half"));
	const int self = program_number("self");

	run_loop_for_ms(loop, 100);
	assert_int_equal(talk.body_len, 2);
	talk_cancel(&talk);
	assert_gone(self);
	assert_int_equal(access(directory_path(&directory, "part").text, F_OK), 0);
	assert_int_equal(access(directory_path(&directory, "whole").text, F_OK), -1);
	talk_release(&talk);
}

/* Silent for longer than a program may be, it is ended. */
static void
head_is_ended_by_silence(void **state)
{
	struct talk talk;

	(void)state;
	programs.idle_timeout_us = 500000;
	programs_renew();
	program_write("x", "printf 'X: y\r\n\r\n'; echo $$ > self; exec sleep 100");
	assert_true(program_start(&talk, "x", NULL));
	talk.wants_no_body = talk.is_head = true;
	exchange_body_end(talk.exchange);
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_gone(program_number("self"));
	talk_release(&talk);
}

static void
who_holds_the_error_output_delays_nothing(void **state)
{
	struct talk talk;

	(void)state;
	program_write("x",
		"(exec > /dev/null; echo $$ > self; exec sleep 100) & "
		"printf 'X: y\r\n\r\nok'; exec > /dev/null; wait");
	program_run(&talk, "x", NULL);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	talk_release(&talk);
	backend_pool_release(pool);
	pool = NULL;
	/* Whoever still runs when the loop goes is ended. */
	const int self = program_number("self");

	resolver_free(resolver);
	loop_free(loop);
	resolver = NULL;
	loop = loop_new(&(struct err){ "" });
	(void)waitpid(self, NULL, 0); /* if the loop did not */
	assert_gone(self);
}

static unsigned
descriptors(void)
{
	DIR *directory_of_fds = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(directory_of_fds);
	while (readdir(directory_of_fds) != NULL)
		count++;
	(void)closedir(directory_of_fds);
	return count;
}

static bool
has_no_child(void)
{
	run_loop_once(loop);
	return waitpid(-1, NULL, WNOHANG | WNOWAIT) < 0;
}

/* A pipe of who has ended is closed when it has been read to its end. */
static bool
has_descriptors(unsigned count)
{
	run_loop_once(loop);
	return descriptors() == count;
}

static void
nothing_is_left_of_a_thousand(void **state)
{
	enum { AT_ONCE = 50, ROUNDS = 20 };
	static struct talk talks[AT_ONCE];
	const unsigned before = descriptors();

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\nok'");
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < AT_ONCE; i++) {
			assert_true(program_start(&talks[i], "x", NULL));
			exchange_body_end(talks[i].exchange);
		}
		for (unsigned i = 0; i < AT_ONCE; i++) {
			/* Some go before their answer. */
			if (i % 10 == 9) {
				if (!talks[i].ended)
					talk_cancel(&talks[i]);
			} else {
				talk_finish(&talks[i]);
				assert_int_equal(talks[i].result, EXCHANGE_COMPLETE);
			}
			talk_release(&talks[i]);
		}
		assert_soon(has_no_child());
	}
	assert_soon(has_descriptors(before));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_no_answer_is_told),
		TEST(an_abort_ends_it_with_all_that_it_started),
		TEST(who_does_not_listen_is_killed),
		TEST(silence_ends_it),
		TEST(closed_output_ends_the_answer_and_not_the_program),
		TEST(who_goes_on_sending_behind_the_answer_is_ended),
		TEST(head_lasts_as_long_as_its_program),
		TEST(early_answer_does_not_cut_the_upload),
		TEST(client_that_leaves_its_upload_ends_the_program),
		TEST(head_is_ended_by_silence),
		TEST(who_holds_the_error_output_delays_nothing),
		TEST(nothing_is_left_of_a_thousand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
