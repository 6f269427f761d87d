/* From a request to a connection: names, backlogs, hosts that do not answer. */
#include "../../src/loop/loop_private.h"
#include "servers.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- names ---- */

static void
server_may_have_a_name(void **state)
{
	uint16_t port;
	char tcp[64];

	(void)state;
	apps[0] = fake_app_start(tcp_listen(100, &port), answers, NULL);
	(void)snprintf(tcp, sizeof tcp, "tcp:localhost:%u", port);
	pool = talk_pool((const char *const[]){ tcp, NULL });
	for (unsigned i = 0; i < 5; i++) {
		struct talk talk;

		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = 100000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
		assert_int_equal(fake_app_look(apps[0]).body_len, 100000);
		talk_release(&talk);
	}
	/* Several at once, before the name is known. */
	struct talk talks[5];

	backend_pool_release(pool);
	pool = talk_pool((const char *const[]){ tcp, NULL });
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		talk_finish(&talks[i]);
		assert_row(talks[i].result == EXCHANGE_COMPLETE, "%s", talks[i].why);
		talk_release(&talks[i]);
	}
}

/* A name server that answers nothing: a socket that nobody reads. */
static int
use_silent_name_server(void)
{
	uint16_t port;
	/* The port of a TCP socket that we hold is hardly used for UDP. */
	const int held = tcp_listen(1, &port);
	char text[100];
	struct err err;
	const int n = snprintf(
		text, sizeof text, "nameserver 127.0.0.1:%u\noptions timeout:5 attempts:1\n", port);

	directory_write(&directory, "resolv.conf", slice_make(text, (size_t)n));
	resolver_free(resolver);
	resolver = resolver_new_with(loop, directory_path(&directory, "resolv.conf").text, &err);
	assert_non_null(resolver);
	return held;
}

static void
name_that_is_not_answered_takes_no_longer_than_a_connect(void **state)
{
	const int held = use_silent_name_server();
	const int64_t start_us = clock_monotonic_us();
	struct talk talk;

	(void)state;
	pool = talk_pool_with((const char *const[]){ "tcp:app.invalid:9000", NULL }, 0, 150000, 0);
	talk_once(&talk, pool);
	assert_row(talk.result == EXCHANGE_TIMEOUT, "%s", talk.why);
	assert_true(clock_monotonic_us() >= start_us + 150000);
	assert_row(strstr(talk.why, "app.invalid") != NULL, "%s", talk.why);
	talk_release(&talk);
	/* And the next server is tried then. */
	start_app(1, answers);
	backend_pool_release(pool);
	pool = talk_pool_with(
		(const char *const[]){ "tcp:app.invalid:9000", names[1], NULL }, 0, 150000, 0);
	talk_once(&talk, pool);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	talk_release(&talk);
	(void)close(held);
}

static void
exchange_may_be_cancelled_while_its_server_is_looked_up(void **state)
{
	const int held = use_silent_name_server();
	struct talk talk;

	(void)state;
	pool = talk_pool((const char *const[]){ "tcp:app.invalid:9000", NULL });
	for (unsigned turns = 0; turns < 3; turns++) {
		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = 1000;
		talk_feed(&talk);
		for (unsigned i = 0; i < turns; i++)
			run_loop_once(loop);
		talk_cancel(&talk);
		run_loop_for_ms(loop, 5);
		talk_release(&talk);
		assert_int_equal(talk_in_flight(), 0);
	}
	(void)close(held);
}

/* ---- connecting ---- */

static void
full_backlog_is_waited_for(void **state)
{
	const int listening = unix_listen(path_of(0), 1);
	struct talk talks[10];
	unsigned started = 0;

	(void)state;
	pool = talk_pool_with((const char *const[]){ names[0], NULL }, 0, 20000000, 0);
	const int64_t cpu_us = thread_cpu_us();

	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talks[i].to_send = 1000;
		talk_feed(&talks[i]);
		started++;
	}
	run_loop_for_ms(loop, 300);
	/* Without spinning. */
	assert_true(thread_cpu_us() - cpu_us < 200000);
	for (size_t i = 0; i < LENGTH_OF(talks); i++)
		assert_false(talks[i].ended);
	apps[0] = fake_app_start(listening, answers, NULL);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		talk_finish(&talks[i]);
		assert_row(talks[i].result == EXCHANGE_COMPLETE, "%s", talks[i].why);
		talk_release(&talks[i]);
	}
	assert_int_equal(fake_app_look(apps[0]).requests, started);
}

static void
backlog_that_stays_full_is_busy(void **state)
{
	const int listening = unix_listen(path_of(0), 1);
	const int64_t start_us = clock_monotonic_us();
	struct talk talks[10];
	unsigned busy = 0;

	(void)state;
	pool = talk_pool_with((const char *const[]){ names[0], NULL }, 0, 150000, 0);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	run_loop_until(loop, talks[LENGTH_OF(talks) - 1].ended);
	assert_true(clock_monotonic_us() >= start_us + 150000);
	run_loop_for_ms(loop, 200);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		if (talks[i].ended) {
			assert_int_equal(talks[i].result, EXCHANGE_BUSY);
			assert_row(strstr(talks[i].why, "backlog") != NULL, "%s", talks[i].why);
			busy++;
		} else {
			talk_cancel(&talks[i]);
		}
		talk_release(&talks[i]);
	}
	assert_in_range(busy, LENGTH_OF(talks) - 3, LENGTH_OF(talks) - 1);
	(void)close(listening);
}

static void
another_server_is_asked_while_one_has_a_full_backlog(void **state)
{
	const int listening = unix_listen(path_of(0), 0);
	struct talk waiting[3], both[6], last;

	(void)state;
	struct backend_pool *first =
		talk_pool_with((const char *const[]){ names[0], NULL }, 0, 20000000, 0);

	for (size_t i = 0; i < LENGTH_OF(waiting); i++)
		assert_true(talk_start(&waiting[i], first, NULL));
	/* Nobody is under way to the one or the other, so the full one has its turn first. */
	start_app(1, answers);
	pool = talk_pool_with((const char *const[]){ names[0], names[1], NULL }, 0, 20000000, 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(fake_app_look(apps[1]).requests, 5);
	for (size_t i = 0; i < LENGTH_OF(both); i++) {
		assert_true(talk_start(&both[i], pool, NULL));
		talk_feed(&both[i]);
	}
	for (size_t i = 0; i < LENGTH_OF(both); i++) {
		talk_finish(&both[i]);
		assert_row(both[i].result == EXCHANGE_COMPLETE, "%s", both[i].why);
		talk_release(&both[i]);
	}
	/* One that is gone is no end while the other one is only busy. */
	stop_app(1);
	assert_true(talk_start(&last, pool, NULL));
	run_loop_for_ms(loop, 50);
	assert_false(last.ended);
	talk_cancel(&last);
	talk_release(&last);
	for (size_t i = 0; i < LENGTH_OF(waiting); i++) {
		talk_cancel(&waiting[i]);
		talk_release(&waiting[i]);
	}
	backend_pool_release(first);
	(void)close(listening);
}

static void
exchange_may_be_cancelled_while_it_waits_for_the_backlog(void **state)
{
	const int listening = unix_listen(path_of(0), 0);
	struct talk talks[6];

	(void)state;
	pool = talk_pool((const char *const[]){ names[0], NULL });
	for (size_t i = 0; i < LENGTH_OF(talks); i++)
		assert_true(talk_start(&talks[i], pool, NULL));
	run_loop_for_ms(loop, 20);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		talk_cancel(&talks[i]);
		talk_release(&talks[i]);
	}
	run_loop_for_ms(loop, 150);
	assert_int_equal(talk_in_flight(), 0);
	(void)close(listening);
}

/* A full backlog of TCP answers nothing, like a host that drops packets. */
static int
open_black_hole(char name[64], int *fillers, unsigned count)
{
	uint16_t port;
	const int listening = tcp_listen(0, &port);

	(void)snprintf(name, 64, "tcp:127.0.0.1:%u", port);
	for (unsigned i = 0; i < count; i++)
		fillers[i] = tcp_connect(port);
	return listening;
}

static void
host_that_does_not_answer_is_a_timeout_and_then_passed_over(void **state)
{
	char tcp[64];
	int filler;
	const int listening = open_black_hole(tcp, &filler, 1);
	const int64_t start_us = clock_monotonic_us();
	struct talk talk;

	(void)state;
	pool = talk_pool_with((const char *const[]){ tcp, NULL }, 0, 150000, 0);
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = 10000000;
	talk_feed(&talk);
	/* Held back meanwhile. */
	assert_true(exchange_is_full(talk.exchange));
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_TIMEOUT, "%s", talk.why);
	assert_true(clock_monotonic_us() >= start_us + 150000);
	talk_release(&talk);
	backend_pool_release(pool);
	start_app(1, answers);
	pool = talk_pool_with((const char *const[]){ tcp, names[1], NULL }, 0, 150000, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(once(), EXCHANGE_COMPLETE);
	(void)close(filler);
	(void)close(listening);
}

static void
next_server_has_a_connect_timeout_of_its_own(void **state)
{
	char tcp[64];
	int filler;
	const int silent = open_black_hole(tcp, &filler, 1), full = unix_listen(path_of(1), 0);
	const int first = unix_connect(path_of(1));
	const int64_t start_us = clock_monotonic_us();
	struct talk talk;

	(void)state;
	pool = talk_pool_with((const char *const[]){ tcp, names[1], NULL }, 0, 500000, 0);
	assert_true(talk_start(&talk, pool, NULL));
	talk_feed(&talk);
	while (clock_monotonic_us() < start_us + 600000)
		run_loop_for_ms(loop, 10);
	assert_row(!talk.ended, "%s", talk.why);
	(void)close(first);
	apps[1] = fake_app_start(full, answers, NULL);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	talk_release(&talk);
	(void)close(filler);
	(void)close(silent);
}

/* Whoever gives more than there is room for before there is a connection gets no half request
 * through. */
static void
body_that_was_not_kept_is_not_sent(void **state)
{
	static const char zeros[5000000];
	const int full = unix_listen(path_of(0), 0), first = unix_connect(path_of(0));
	struct talk talk;

	(void)state;
	pool = talk_pool((const char *const[]){ names[0], NULL });
	assert_true(talk_start(&talk, pool, NULL));
	exchange_body(talk.exchange, slice_make(zeros, sizeof zeros));
	talk_feed(&talk);
	(void)close(first);
	apps[0] = fake_app_start(full, answers, NULL);
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_BUSY);
	assert_row(strstr(talk.why, "no memory") != NULL, "%s", talk.why);
	assert_int_equal(fake_app_look(apps[0]).requests, 0);
	talk_release(&talk);
}

static void
exchange_may_be_cancelled_while_it_connects(void **state)
{
	char tcp[64];
	int filler;
	const int listening = open_black_hole(tcp, &filler, 1);
	struct talk talk;

	(void)state;
	pool = talk_pool((const char *const[]){ tcp, NULL });
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = 1000;
	talk_feed(&talk);
	run_loop_for_ms(loop, 5);
	talk_cancel(&talk);
	run_loop_for_ms(loop, 5);
	talk_release(&talk);
	assert_int_equal(talk_in_flight(), 0);
	(void)close(filler);
	(void)close(listening);
}

/* ---- what is not the server's fault ---- */

static void
without_descriptors_the_server_is_not_to_blame(void **state)
{
	struct rlimit before, none;
	struct talk talk;

	(void)state;
	start_app(0, answers);
	pool = talk_pool_with(all_names(), 0, 0, 0);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	const bool is_started = talk_start(&talk, pool, NULL);

	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(is_started);
	assert_row(talk.result == EXCHANGE_BUSY, "%s", talk.why);
	assert_row(strstr(talk.why, strerror(EMFILE)) != NULL, "%s", talk.why);
	talk_release(&talk);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server_may_have_a_name),
		TEST(name_that_is_not_answered_takes_no_longer_than_a_connect),
		TEST(exchange_may_be_cancelled_while_its_server_is_looked_up),
		TEST(full_backlog_is_waited_for),
		TEST(backlog_that_stays_full_is_busy),
		TEST(another_server_is_asked_while_one_has_a_full_backlog),
		TEST(exchange_may_be_cancelled_while_it_waits_for_the_backlog),
		TEST(host_that_does_not_answer_is_a_timeout_and_then_passed_over),
		TEST(next_server_has_a_connect_timeout_of_its_own),
		TEST(body_that_was_not_kept_is_not_sent),
		TEST(exchange_may_be_cancelled_while_it_connects),
		TEST(without_descriptors_the_server_is_not_to_blame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
