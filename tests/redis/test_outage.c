/*
 * redis.h over a real server that forgets its scripts, restarts, or stands still. What is counted
 * in Redis afterwards is what was admitted.
 */
#include "../lib/redis_server.h"
#include "client.h"
#include "weir/log.h"

enum { MANY = 3000 };

static struct redis_server server;
static struct client client;
static struct made_limit made;
static struct asked asked[MANY];

static void
open_with_deadline(int64_t deadline_us)
{
	redis_server_open(&server, NULL);
	/* Buckets so slow that nothing comes back while a test runs. */
	make_limit(&made, "l", "100000/36525d", "100000/36000d name other");
	client_open(&client,
		&(const struct redis_settings){
			.server = server.address, .deadline_us = deadline_us });
	client_wait_until_ready(&client);
}

static int
close_both(void **state)
{
	(void)state;
	client_close(&client);
	redis_server_close(&server);
	return 0;
}

static void
send_many(unsigned count)
{
	client.answers = 0;
	for (unsigned i = 0; i < count; i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
}

static unsigned
admitted_of(unsigned count)
{
	unsigned admitted = 0;

	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(asked[i].answers, 1);
		admitted += asked[i].decision.verdict == VERDICT_ADMITTED;
	}
	return admitted;
}

/* Spends one. */
static uint64_t
spent(void)
{
	const struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	return 100000 - decision.outcomes[0].remaining;
}

/* ---- scripts ---- */

static void
forgotten_scripts_are_brought_again_between_any_two_checks(void **state)
{
	open_with_deadline(0);
	redisContext *direct = redis_server_connect(&server);

	for (unsigned i = 0; i < 100; i++) {
		if (i % 3 == 0)
			redis_ok(direct, "SCRIPT FLUSH");
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	}
	assert_int_equal(spent(), 101);
	assert_false(breaker_is_open(client.breaker));
	redisFree(direct);
	(void)close_both(state);
}

static void
forgotten_scripts_harm_no_check_however_many_are_under_way(void **state)
{
	open_with_deadline(0);
	redisContext *direct = redis_server_connect(&server);

	for (unsigned round = 1; round <= 5; round++) {
		redis_ok(direct, "SCRIPT FLUSH");
		send_many(MANY);
		run_loop_until(client.loop, client.answers == MANY);
		assert_int_equal(admitted_of(MANY), MANY);
	}
	assert_int_equal(spent(), 5 * MANY + 1);
	assert_false(breaker_is_open(client.breaker));
	redisFree(direct);
	(void)close_both(state);
}

/* ---- restarts ---- */

static void
a_restart_is_got_over(void **state)
{
	open_with_deadline(500 * US_PER_MS);
	for (unsigned round = 0; round < 3; round++) {
		send_many(100);
		redis_server_kill(&server);
		run_loop_until(client.loop, client.answers == 100);
		(void)admitted_of(100);
		/* Nobody is there, and nobody waits for that. */
		const struct decision decision = client_decide(&client, &made, "k");

		assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
		redis_server_start(&server, NULL);
		client_wait_for_breaker(&client, false);
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	}
	(void)close_both(state);
}

/* ---- standing still ---- */

#define DEADLINE_US (150 * US_PER_MS)

static void
checks_that_are_late_spend_nothing(void **state)
{
	open_with_deadline(DEADLINE_US);
	unsigned admitted = 0, missed = 0;

	for (unsigned round = 0; round < 3; round++) {
		send_many(50);
		run_loop_until(client.loop, client.answers == 50);
		admitted += admitted_of(50);
		missed += 50 - admitted_of(50);
		redis_server_freeze(&server);
		send_many(200);
		run_loop_until(client.loop, client.answers == 200);
		assert_int_equal(admitted_of(200), 0);
		for (unsigned i = 0; i < 200; i++)
			assert_in_range(
				asked[i].answered_at_us - asked[i].asked_at_us, 0, 2 * US_PER_S);
		/* What was sent lies there; the server reads it now, too late also for the checks
		 * that the breaker ended before their deadline. */
		run_loop_for_ms(client.loop, DEADLINE_US / US_PER_MS);
		redis_server_thaw(&server);
		client_wait_for_breaker(&client, false);
		for (;;) {
			const struct decision decision = client_decide(&client, &made, "k");

			admitted += decision.verdict == VERDICT_ADMITTED;
			missed += decision.verdict != VERDICT_ADMITTED;
			if (decision.verdict == VERDICT_ADMITTED)
				break;
		}
	}
	/* On a busy machine an answer may have been given in time, and come too late. */
	assert_in_range(spent(), admitted + 1, admitted + 1 + missed);
	(void)close_both(state);
}

static void
a_server_that_stands_still_for_a_moment_is_no_outage(void **state)
{
	open_with_deadline(5 * US_PER_S);
	for (unsigned round = 0; round < 5; round++) {
		redis_server_freeze(&server);
		send_many(20);
		run_loop_for_ms(client.loop, 50);
		redis_server_thaw(&server);
		run_loop_until(client.loop, client.answers == 20);
		assert_int_equal(admitted_of(20), 20);
	}
	assert_false(breaker_is_open(client.breaker));
	assert_int_equal(spent(), 101);
	(void)close_both(state);
}

/* One miss is none of the breaker's business; a connection that says nothing for two deadlines is
 * dead, and replaced. */
static void
a_server_that_stands_still_is_left_for_a_new_connection(void **state)
{
	open_with_deadline(DEADLINE_US);
	redis_server_freeze(&server);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, UNAVAILABLE_DEADLINE);
	client_wait_for_breaker(&client, true);
	redis_server_thaw(&server);
	client_wait_for_breaker(&client, false);
	client_wait_until_ready(&client);
	assert_int_equal(spent(), 1);
	(void)close_both(state);
}

static void
while_it_stands_still_nobody_waits_longer_than_a_deadline(void **state)
{
	unsigned waited = 0;

	open_with_deadline(DEADLINE_US);
	redis_server_freeze(&server);
	for (unsigned i = 0; i < 60; i++) {
		const int64_t start_us = clock_monotonic_us();
		const struct decision decision = client_decide(&client, &made, "k");

		assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
		waited += decision.why != UNAVAILABLE_BREAKER;
		assert_in_range(clock_monotonic_us() - start_us, 0, 2 * US_PER_S);
		run_loop_for_ms(client.loop, 20);
	}
	/* Until the breaker opened; no probe held anybody up. */
	assert_in_range(waited, 1, BREAKER_MISSES);
	(void)close_both(state);
}

/* ---- other trouble ---- */

static void
a_server_that_may_not_write_opens_the_breaker(void **state)
{
	open_with_deadline(0);
	redisContext *direct = redis_server_connect(&server);

	redis_ok(direct, "REPLICAOF 127.0.0.1 1");
	struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, UNAVAILABLE_REPLY);
	assert_true(breaker_is_open(client.breaker));
	redis_ok(direct, "REPLICAOF NO ONE");
	client_wait_for_breaker(&client, false);
	decision = client_decide(&client, &made, "k");
	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	redisFree(direct);
	(void)close_both(state);
}

static void
a_server_without_memory_opens_the_breaker(void **state)
{
	open_with_deadline(0);
	redisContext *direct = redis_server_connect(&server);

	redis_ok(direct, "CONFIG SET maxmemory 1");
	struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, UNAVAILABLE_REPLY);
	assert_true(breaker_is_open(client.breaker));
	redis_ok(direct, "CONFIG SET maxmemory 0");
	client_wait_for_breaker(&client, false);
	assert_int_equal(spent(), 1);
	redisFree(direct);
	(void)close_both(state);
}

/* A check that brings its own clock teaches us nothing of the server's. */
static void
checks_of_other_times_make_no_other_check_late(void **state)
{
	static const int64_t times[] = { 1, IN_2026_US - 3600 * US_PER_S, IN_2100_US };

	open_with_deadline(0);
	const int64_t late = counter_sum(COUNT_LATE_CHECKS);

	for (size_t i = 0; i < LENGTH_OF(times); i++) {
		asked_init(&asked[0], &client, &made, "other");
		asked[0].check.now_us = times[i];
		asked_send(&asked[0]);
		asked_wait(&asked[0]);
		assert_int_not_equal(asked[0].decision.verdict, VERDICT_UNAVAILABLE);
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	}
	assert_int_equal(counter_sum(COUNT_LATE_CHECKS), late);
	(void)close_both(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forgotten_scripts_are_brought_again_between_any_two_checks),
		cmocka_unit_test(forgotten_scripts_harm_no_check_however_many_are_under_way),
		cmocka_unit_test(a_restart_is_got_over),
		cmocka_unit_test(checks_that_are_late_spend_nothing),
		cmocka_unit_test(a_server_that_stands_still_for_a_moment_is_no_outage),
		cmocka_unit_test(a_server_that_stands_still_is_left_for_a_new_connection),
		cmocka_unit_test(while_it_stands_still_nobody_waits_longer_than_a_deadline),
		cmocka_unit_test(a_server_that_may_not_write_opens_the_breaker),
		cmocka_unit_test(a_server_without_memory_opens_the_breaker),
		cmocka_unit_test(checks_of_other_times_make_no_other_check_late),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/outage", tests, NULL, NULL);
}
