/* Pools: which server is asked, and how many requests there may be. */
#include "servers.h"

#include <stdio.h>
#include <unistd.h>

/* ---- which one ---- */

static void
least_busy_server_is_asked(void **state)
{
	struct talk talks[9];

	(void)state;
	for (size_t i = 0; i < SERVERS; i++)
		start_app(i, waits);
	pool = talk_pool(all_names());
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	run_loop_once(loop);
	for (size_t i = 0; i < SERVERS; i++)
		assert_soon(fake_app_look(apps[i]).accepted == 3);
	assert_int_equal(talk_in_flight(), 9);
	/* The one that gets free is the next one. */
	talk_cancel(&talks[4]);
	struct talk next;

	assert_true(talk_start(&next, pool, NULL));
	talk_feed(&next);
	run_loop_once(loop);
	assert_soon(fake_app_look(apps[1]).accepted == 4);
	talk_cancel(&next);
	talk_release(&next);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		if (talks[i].exchange != NULL)
			talk_cancel(&talks[i]);
		talk_release(&talks[i]);
	}
}

static void
server_that_refuses_is_passed_over_and_set_aside(void **state)
{
	(void)state;
	start_app(1, answers);
	pool = talk_pool((const char *const[]){ names[0], names[1], NULL });
	assert_int_equal(once(), EXCHANGE_COMPLETE);
	/* It is back, but is left alone for a while. */
	start_app(0, answers);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(fake_app_look(apps[0]).accepted, 0);
	run_loop_for_ms(loop, 1100);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(fake_app_look(apps[0]).accepted, 1);
}

/* Requests that come one after the other find all equally busy. */
static void
equally_busy_servers_take_turns(void **state)
{
	(void)state;
	for (size_t i = 0; i < SERVERS; i++)
		start_app(i, answers);
	for (size_t first = 0; first < 2 * SERVERS; first++) {
		const unsigned before = fake_app_look(apps[first % SERVERS]).accepted;

		pool = talk_pool(all_names());
		backend_pool_begin_with(pool, (unsigned)first);
		assert_int_equal(once(), EXCHANGE_COMPLETE);
		assert_int_equal(fake_app_look(apps[first % SERVERS]).accepted, before + 1);
		for (unsigned i = 1; i < SERVERS; i++)
			assert_int_equal(once(), EXCHANGE_COMPLETE);
		for (size_t i = 0; i < SERVERS; i++)
			assert_int_equal(fake_app_look(apps[i]).accepted, first + 1);
		backend_pool_release(pool);
		pool = NULL;
	}
}

/* Better than none: it may be back. */
static void
server_that_is_set_aside_is_asked_if_no_other_is_left(void **state)
{
	(void)state;
	pool = talk_pool(all_names());
	assert_int_equal(once(), EXCHANGE_REFUSED);
	start_app(1, answers);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
}

static void
request_is_refused_when_no_server_is_there(void **state)
{
	uint16_t port;
	char tcp[64];
	struct talk talk;

	(void)state;
	pool = talk_pool(all_names());
	talk_once(&talk, pool);
	assert_int_equal(talk.result, EXCHANGE_REFUSED);
	assert_row(strstr(talk.why, "unix:") != NULL, "%s", talk.why);
	talk_release(&talk);
	backend_pool_release(pool);
	/* TCP says so later. */
	(void)close(tcp_listen(1, &port));
	(void)snprintf(tcp, sizeof tcp, "tcp:127.0.0.1:%u", port);
	pool = talk_pool((const char *const[]){ tcp, NULL });
	talk_once(&talk, pool);
	assert_int_equal(talk.result, EXCHANGE_REFUSED);
	assert_row(strstr(talk.why, tcp) != NULL, "%s", talk.why);
	talk_release(&talk);
}

/* What has been given of the request before goes to the next server from its start. */
static void
body_given_while_connecting_reaches_the_next_server(void **state)
{
	uint16_t port;
	char tcp[64];
	struct talk talk;

	(void)state;
	(void)close(tcp_listen(1, &port));
	(void)snprintf(tcp, sizeof tcp, "tcp:127.0.0.1:%u", port);
	start_app(1, answers);
	pool = talk_pool((const char *const[]){ tcp, names[1], NULL });
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = 5000000;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	assert_int_equal(fake_app_look(apps[1]).body_len, 5000000);
	assert_true(fake_app_look(apps[1]).body_ended);
	talk_release(&talk);
}

static void
new_socket_of_the_same_name_is_used(void **state)
{
	(void)state;
	start_app(0, answers);
	pool = talk_pool((const char *const[]){ names[0], NULL });
	assert_int_equal(once(), EXCHANGE_COMPLETE);
	stop_app(0);
	assert_int_equal(once(), EXCHANGE_REFUSED);
	assert_int_equal(unlink(path_of(0)), 0);
	assert_int_equal(once(), EXCHANGE_REFUSED);
	start_app(0, answers);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
}

/* ---- how many ---- */

static void
more_than_max_in_flight_are_busy_at_once(void **state)
{
	struct talk talks[4], over;

	(void)state;
	start_app(0, waits);
	pool = talk_pool_with((const char *const[]){ names[0], NULL }, 4, 0, 0);
	for (size_t i = 0; i < LENGTH_OF(talks); i++)
		assert_true(talk_start(&talks[i], pool, NULL));
	assert_false(talk_start(&over, pool, NULL));
	assert_int_equal(over.result, EXCHANGE_BUSY);
	assert_row(strstr(over.why, "max_in_flight") != NULL, "%s", over.why);
	talk_release(&over);
	talk_cancel(&talks[0]);
	talk_release(&talks[0]);
	assert_true(talk_start(&talks[0], pool, NULL));
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		talk_cancel(&talks[i]);
		talk_release(&talks[i]);
	}
}

static void
threads_share_max_in_flight_and_each_has_one_at_least(void **state)
{
	static const struct {
		uint64_t max;
		unsigned share, expected;
	} rows[] = { { 10, 1, 10 }, { 10, 2, 5 }, { 10, 3, 4 }, { 10, 64, 1 }, { 1, 2, 1 } };

	(void)state;
	start_app(0, waits);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct err err;
		struct talk talks[11];
		struct address address = directory_socket(&directory, "s0");
		const struct config_backend config = { .name = "app",
			.servers = &address,
			.server_count = 1,
			.max_in_flight = rows[i].max,
			.connect_timeout_us = 1000000,
			.idle_timeout_us = 1000000 };
		unsigned started = 0;

		pool = backend_pool_new(loop, resolver, &config, rows[i].share,
			counter_find(COUNT_BACKEND_IN_FLIGHT, &SLICE("app")), &err);
		assert_non_null(pool);
		while (talk_start(&talks[started], pool, NULL))
			started++;
		talk_release(&talks[started]);
		assert_row(started == rows[i].expected, "row %zu: %u", i, started);
		while (started-- > 0) {
			talk_cancel(&talks[started]);
			talk_release(&talks[started]);
		}
		backend_pool_release(pool);
		pool = NULL;
	}
}

static void
released_pool_lives_until_its_exchanges_have_ended(void **state)
{
	struct talk talks[2];

	(void)state;
	start_app(0, answers);
	pool = talk_pool((const char *const[]){ names[0], NULL });
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		if (i == 0)
			talk_feed(&talks[i]);
	}
	backend_pool_release(pool);
	pool = NULL;
	talk_finish(&talks[0]);
	assert_int_equal(talks[0].result, EXCHANGE_COMPLETE);
	talk_cancel(&talks[1]);
	for (size_t i = 0; i < LENGTH_OF(talks); i++)
		talk_release(&talks[i]);
	backend_pool_release(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(least_busy_server_is_asked),
		TEST(server_that_refuses_is_passed_over_and_set_aside),
		TEST(equally_busy_servers_take_turns),
		TEST(server_that_is_set_aside_is_asked_if_no_other_is_left),
		TEST(request_is_refused_when_no_server_is_there),
		TEST(body_given_while_connecting_reaches_the_next_server),
		TEST(new_socket_of_the_same_name_is_used),
		TEST(more_than_max_in_flight_are_busy_at_once),
		TEST(threads_share_max_in_flight_and_each_has_one_at_least),
		TEST(released_pool_lives_until_its_exchanges_have_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
