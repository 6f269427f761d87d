/* Servers with names: one look-up for all who wait, and every address gets its turn. */
#include "../../src/loop/loop_private.h"
#include "../lib/name_server.h"
#include "servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static struct name_server name_server;
static char name[64]; /* of the server at 127.0.0.1, where apps[0] is */
static uint16_t port;

/* Nobody listens at 127.0.0.N for other N. */
static void
use_names(const char *hosts, int64_t connect_timeout_us)
{
	struct err err;

	apps[0] = fake_app_start(tcp_listen(100, &port), answers, NULL);
	(void)snprintf(name, sizeof name, "tcp:app.test:%u", port);
	name_server_start(&name_server, hosts, &directory);
	resolver_free(resolver);
	resolver = resolver_new_with(loop, directory_path(&directory, "resolv.conf").text, &err);
	assert_non_null(resolver);
	pool = talk_pool_with(
		(const char *const[]){ name, names[1], NULL }, 0, connect_timeout_us, 0);
}

static int
tear_down(void **state)
{
	const int result = servers_tear_down(state);

	name_server_stop(&name_server);
	return result;
}

static void
the_next_address_is_tried_where_one_refuses(void **state)
{
	struct talk talk;

	(void)state;
	use_names("\2\3\1", 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = 100000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
		assert_int_equal(fake_app_look(apps[0]).body_len, 100000);
		talk_release(&talk);
	}
	assert_int_equal(fake_app_look(apps[0]).requests, 5);
}

static void
server_has_failed_when_no_address_is_left(void **state)
{
	struct talk talk;

	(void)state;
	use_names("\2\3", 0);
	talk_once(&talk, pool);
	assert_int_equal(talk.result, EXCHANGE_REFUSED);
	talk_release(&talk);
	/* And the next server is asked then. */
	start_app(1, answers);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(fake_app_look(apps[0]).accepted, 0);
}

/* A full backlog of TCP answers nothing, like a host that drops packets. */
static int
open_black_hole(uint8_t host, int *filler)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(0x7f000000U | host) };
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(fd, 0), 0);
	*filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*filler, (const struct sockaddr *)&at, sizeof at), 0);
	return fd;
}

enum { LONG_US = 2000000 };

static void
silent_address_takes_its_part_of_the_time_and_comes_last_then(void **state)
{
	int filler;

	(void)state;
	use_names("\2\1", LONG_US);
	const int black_hole = open_black_hole(2, &filler);
	const int64_t start_us = clock_monotonic_us();

	assert_int_equal(once(), EXCHANGE_COMPLETE);
	const int64_t first_us = clock_monotonic_us();

	assert_in_range(first_us - start_us, LONG_US / 2, LONG_US);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_true(clock_monotonic_us() - first_us < LONG_US / 2);
	assert_int_equal(fake_app_look(apps[0]).requests, 6);
	(void)close(filler);
	(void)close(black_hole);
}

/* ---- look-ups ---- */

enum { MANY = 20, QUESTIONS = 2 };

static void
one_look_up_serves_all_who_wait(void **state)
{
	struct talk talks[MANY];

	(void)state;
	use_names("\1", 0);
	for (size_t i = 0; i < MANY; i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	/* Those who go, the first among them, take nothing from the others. */
	for (size_t i = 0; i < MANY; i += 3) {
		talk_cancel(&talks[i]);
		talk_release(&talks[i]);
	}
	for (size_t i = 0; i < MANY; i++) {
		if (i % 3 == 0)
			continue;
		talk_finish(&talks[i]);
		assert_row(talks[i].result == EXCHANGE_COMPLETE, "%s", talks[i].why);
		talk_release(&talks[i]);
	}
	assert_int_equal(name_server.questions, QUESTIONS);
	/* Nor does one who comes a little later ask. */
	assert_int_equal(once(), EXCHANGE_COMPLETE);
	assert_int_equal(name_server.questions, QUESTIONS);
}

static void
name_without_an_address_ends_all_who_wait_and_is_asked_for_again(void **state)
{
	struct talk talks[MANY];

	(void)state;
	use_names("", 0);
	for (size_t i = 0; i < MANY; i++)
		assert_true(talk_start(&talks[i], pool, NULL));
	/* Nobody is left behind them. */
	backend_pool_release(pool);
	for (size_t i = 0; i < MANY; i++) {
		talk_finish(&talks[i]);
		assert_row(talks[i].result == EXCHANGE_REFUSED, "%s", talks[i].why);
		talk_release(&talks[i]);
	}
	assert_int_equal(talk_in_flight(), 0);
	pool = talk_pool((const char *const[]){ name, NULL });
	name_server.hosts = "\1";
	assert_int_equal(once(), EXCHANGE_COMPLETE);
}

static void
look_up_that_nobody_waits_for_any_more_leaves_nothing(void **state)
{
	struct talk talks[3];

	(void)state;
	use_names("\1", 0);
	for (unsigned turns = 0; turns < 3; turns++) {
		for (size_t i = 0; i < LENGTH_OF(talks); i++)
			assert_true(talk_start(&talks[i], pool, NULL));
		for (unsigned i = 0; i < turns; i++)
			run_loop_once(loop);
		for (size_t i = LENGTH_OF(talks); i-- > 0;) {
			if (!talks[i].ended)
				talk_cancel(&talks[i]);
			talk_release(&talks[i]);
		}
		backend_pool_release(pool);
		pool = talk_pool((const char *const[]){ name, NULL });
	}
	run_loop_for_ms(loop, 20);
	assert_int_equal(once(), EXCHANGE_COMPLETE);
}

/* ---- memory ---- */

/* In the place of the system's (the linker's --wrap). */
void *__wrap_calloc(size_t count, size_t size);
void *__real_calloc(size_t count, size_t size);

static unsigned until_failure; /* of this thread's allocations; 0: none fails */
static pthread_t failing;

void *
__wrap_calloc(size_t count, size_t size)
{
	if (until_failure > 0 && pthread_equal(pthread_self(), failing) && --until_failure == 0)
		return NULL;
	return __real_calloc(count, size);
}

/* One after the other of those that a request with a look-up needs. */
static void
allocation_that_fails_ends_the_request_and_nothing_else(void **state)
{
	unsigned refused = 0;

	(void)state;
	use_names("\1", 200000);
	failing = pthread_self();
	for (unsigned i = 1;; i++) {
		struct talk talk;

		backend_pool_release(pool);
		pool = talk_pool_with((const char *const[]){ name, name, NULL }, 0, 200000, 0);
		until_failure = i;
		const bool is_started = talk_start(&talk, pool, NULL);

		if (is_started) {
			talk_feed(&talk);
			talk_finish(&talk);
		}
		const bool has_failed = until_failure == 0;

		until_failure = 0;
		if (talk.result != EXCHANGE_COMPLETE) {
			refused++;
			assert_int_equal(talk.result, EXCHANGE_BUSY);
			assert_row(strstr(talk.why, "memory") != NULL ||
					strstr(talk.why, strerror(ENOMEM)) != NULL,
				"%s", talk.why);
		}
		talk_release(&talk);
		/* Whatever was waited for is over. */
		run_loop_for_ms(loop, i < 4 ? 250 : 0);
		assert_int_equal(talk_in_flight(), 0);
		assert_int_equal(once(), EXCHANGE_COMPLETE);
		if (!has_failed)
			break;
	}
	assert_in_range(refused, 3, 10);
}

#define NAME_TEST(name) cmocka_unit_test_setup_teardown(name, servers_set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NAME_TEST(the_next_address_is_tried_where_one_refuses),
		NAME_TEST(server_has_failed_when_no_address_is_left),
		NAME_TEST(silent_address_takes_its_part_of_the_time_and_comes_last_then),
		NAME_TEST(one_look_up_serves_all_who_wait),
		NAME_TEST(name_without_an_address_ends_all_who_wait_and_is_asked_for_again),
		NAME_TEST(look_up_that_nobody_waits_for_any_more_leaves_nothing),
		NAME_TEST(allocation_that_fails_ends_the_request_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
