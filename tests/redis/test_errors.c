/* redis.h: what the server's errors mean, and what is asked again. */
#include "client.h"
#include "fake.h"
#include "weir/log.h"

#include <stdio.h>

static struct fake fake;
static struct client client;
static struct made_limit made;

static void
open_with(fake_fn *serve)
{
	make_limit(&made, "l", "5/1m");
	fake_open(&fake, serve);
	client_open(&client, &(const struct redis_settings){ .server = fake.address });
}

static int
close_both(void **state)
{
	(void)state;
	client_close(&client);
	fake_close(&fake);
	return 0;
}

static void
assert_unavailable(const struct decision *decision, enum unavailable why)
{
	assert_int_equal(decision->verdict, VERDICT_UNAVAILABLE);
	assert_row(decision->why == why, "it was \"%s\" and not \"%s\"",
		unavailable_names[decision->why], unavailable_names[why]);
}

/* ---- errors ---- */

static const char *error_text;

static void
answers_checks_with_an_error(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_answer_until_check(peer)) != NULL) {
		freeReplyObject(command);
		(void)fake_send(peer, SLICE("-"));
		(void)fake_send(peer, slice_of(error_text));
		(void)fake_send(peer, SLICE("\r\n"));
	}
}

static void
answers_all_with_an_error(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		freeReplyObject(command);
		(void)fake_send(peer, SLICE("-"));
		(void)fake_send(peer, slice_of(error_text));
		(void)fake_send(peer, SLICE("\r\n"));
	}
}

static const char *const server_errors[] = { "LOADING Redis is loading the dataset in memory",
	"READONLY You can't write against a read only replica.",
	"OOM command not allowed when used memory > 'maxmemory'.",
	"NOAUTH Authentication required.", "MASTERDOWN Link with MASTER is down",
	"NOREPLICAS Not enough good replicas to write.", "CLUSTERDOWN Hash slot not served",
	"MISCONF Redis is configured to save RDB snapshots", "BUSY Redis is busy running a script.",
	/* It is one of a cluster, and named as if it had all keys. */
	"MOVED 421 127.0.0.1:7001" };

static void
a_server_that_cannot_serve_now_opens_the_breaker(void **state)
{
	for (size_t i = 0; i < LENGTH_OF(server_errors); i++) {
		error_text = server_errors[i];
		open_with(answers_checks_with_an_error);
		struct decision decision = client_decide(&client, &made, "k");

		assert_unavailable(&decision, UNAVAILABLE_REPLY);
		assert_row(breaker_is_open(client.breaker), "%s", error_text);
		decision = client_decide(&client, &made, "k");
		assert_unavailable(&decision, UNAVAILABLE_BREAKER);
		(void)close_both(state);
	}
}

static void
an_error_in_the_handshake_opens_the_breaker(void **state)
{
	static const char *const more[] = { "ERR max number of clients reached",
		"DENIED Redis is running in protected mode",
		"NOPERM this user has no permissions to run the 'evalsha' command",
		"NOSCRIPT No matching script." };

	for (size_t i = 0; i < LENGTH_OF(server_errors) + LENGTH_OF(more); i++) {
		error_text = i < LENGTH_OF(more) ? more[i] : server_errors[i - LENGTH_OF(more)];
		open_with(answers_all_with_an_error);
		const struct decision decision = client_decide(&client, &made, "k");

		assert_unavailable(&decision, UNAVAILABLE_BREAKER);
		(void)close_both(state);
	}
}

static void
an_error_of_one_key_is_no_fault_of_the_server(void **state)
{
	error_text = "WRONGTYPE Operation against a key holding the wrong kind of value";
	open_with(answers_checks_with_an_error);
	for (unsigned i = 0; i < 10; i++) {
		const struct decision decision = client_decide(&client, &made, "k");

		assert_unavailable(&decision, UNAVAILABLE_REPLY);
	}
	assert_false(breaker_is_open(client.breaker));
	assert_int_equal(atomic_load(&fake.seen->connections), 1);
	(void)close_both(state);
}

static unsigned lines;

static void
count_line(void *context, enum log_level level, const char *line, size_t len)
{
	(void)context, (void)level;
	lines += slice_find(slice_make(line, len), 'W') < len && memmem(line, len, "WRONGTYPE", 9);
}

/* A client whose key it is could fill the log. */
static void
an_error_of_one_key_is_logged_once_a_minute(void **state)
{
	lines = 0;
	log_set_sink(count_line, NULL);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	an_error_of_one_key_is_no_fault_of_the_server(state);
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
	assert_int_equal(lines, 1);
}

/* ---- asked again ---- */

/* Knows no script, however often it is told. */
static void
forgets_the_script(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_answer_until_check(peer)) != NULL) {
		freeReplyObject(command);
		(void)fake_send(peer, SLICE("-NOSCRIPT No matching script. Please use EVAL.\r\n"));
	}
}

static void
a_server_that_never_knows_the_script_is_told_once(void **state)
{
	open_with(forgets_the_script);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_unavailable(&decision, UNAVAILABLE_REPLY);
	assert_int_equal(atomic_load(&fake.seen->checks), 2);
	(void)close_both(state);
}

/* Runs what it is brought, and remembers nothing. */
static void
runs_only_whole_scripts(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		if (fake_is(command, "EVALSHA"))
			(void)fake_send(peer, SLICE("-NOSCRIPT No matching script.\r\n"));
		else
			(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void
a_server_that_remembers_no_script_answers_all_the_same(void **state)
{
	struct asked asked[20];

	open_with(runs_only_whole_scripts);
	for (size_t i = 0; i < LENGTH_OF(asked); i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
	run_loop_until(client.loop, client.answers == LENGTH_OF(asked));
	for (size_t i = 0; i < LENGTH_OF(asked); i++)
		assert_int_equal(asked[i].decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(atomic_load(&fake.seen->connections), 1);
	(void)close_both(state);
}

static void
says_late(struct fake_peer *peer)
{
	redisReply *command;
	char reply[64];

	(void)snprintf(reply, sizeof reply, "*2\r\n:-1\r\n:%lld\r\n", (long long)clock_wall_us());
	while ((command = fake_answer_until_check(peer)) != NULL) {
		freeReplyObject(command);
		(void)fake_send(peer, slice_of(reply));
	}
}

static void
a_check_that_is_late_twice_is_given_up(void **state)
{
	const int64_t late = counter_sum(COUNT_LATE_CHECKS);

	open_with(says_late);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_unavailable(&decision, UNAVAILABLE_LATE);
	assert_int_equal(counter_sum(COUNT_LATE_CHECKS), late + 2);
	assert_int_equal(atomic_load(&fake.seen->checks), 2);
	assert_false(breaker_is_open(client.breaker));
	(void)close_both(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_server_that_cannot_serve_now_opens_the_breaker),
		cmocka_unit_test(an_error_in_the_handshake_opens_the_breaker),
		cmocka_unit_test(an_error_of_one_key_is_no_fault_of_the_server),
		cmocka_unit_test(an_error_of_one_key_is_logged_once_a_minute),
		cmocka_unit_test(a_server_that_never_knows_the_script_is_told_once),
		cmocka_unit_test(a_server_that_remembers_no_script_answers_all_the_same),
		cmocka_unit_test(a_check_that_is_late_twice_is_given_up),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/errors", tests, NULL, NULL);
}
