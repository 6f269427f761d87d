/* A Redis with a name of several addresses: the one where it is is found. */
#include "../lib/name_server.h"
#include "../lib/sockets.h"
#include "client.h"
#include "fake.h"
#include "weir/counter.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

static struct directory directory;
static struct name_server name_server;
static struct client client;
static struct made_limit made;
static struct fake_seen seen;
static int listener;
static pthread_t thread;
static uint16_t port;
static _Atomic int serving; /* the last connection */
static _Atomic bool is_silent;

/* At 127.0.0.1: every check is admitted. Ends when the listener is shut. */
static void *
serve_redis(void *context)
{
	int fd;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		struct fake_peer peer = { .fd = fd, .reader = redisReaderCreate(), .seen = &seen };
		redisReply *command;

		serving = fd;
		while ((command = fake_read(&peer)) != NULL) {
			if (!is_silent)
				(void)fake_answer(&peer, command);
			freeReplyObject(command);
		}
		redisReaderFree(peer.reader);
		(void)close(fd);
	}
	return context;
}

static void
open_client(const char *hosts, int64_t deadline_us)
{
	const struct redis_settings settings = {
		.server = { .kind = ADDRESS_TCP, .host = "redis.test", .port = port },
		.deadline_us = deadline_us,
		.password = "secret"
	};

	name_server_start(&name_server, hosts, &directory);
	client_open_with(&client, &settings, NULL, directory_path(&directory, "resolv.conf").text);
}

static int
set_up(void **state)
{
	(void)state;
	make_limit(&made, "l", "5/1m");
	directory_make(&directory);
	listener = tcp_listen(10, &port);
	return pthread_create(&thread, NULL, serve_redis, NULL);
}

static int
tear_down(void **state)
{
	(void)state;
	client_close(&client);
	name_server_stop(&name_server);
	(void)shutdown(listener, SHUT_RDWR);
	(void)pthread_join(thread, NULL);
	(void)close(listener);
	directory_remove(&directory);
	return 0;
}

static void
address_that_refuses_is_passed_over_within_the_deadline(void **state)
{
	(void)state;
	open_client("\2\3\1", PATIENT_US);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_false(breaker_is_open(client.breaker));
}

static void
name_whose_addresses_all_refuse_opens_the_breaker(void **state)
{
	(void)state;
	open_client("\2\3", PATIENT_US);
	client_wait_for_breaker(&client, true);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	/* It has come up elsewhere. */
	name_server.hosts = "\2\1";
	client_wait_for_breaker(&client, false);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
}

/* Once it was ready it is no address that led nowhere, and what is under way is answered. */
static void
connection_that_is_reset_is_made_anew_and_its_checks_are_answered(void **state)
{
	enum { MANY = 50 };
	static struct asked asked[MANY];

	(void)state;
	open_client("\1\3\2", PATIENT_US);
	client_wait_until_ready(&client);
	client.answers = 0;
	is_silent = true;
	for (unsigned i = 0; i < MANY; i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
	run_loop_for_ms(client.loop, 20);
	assert_int_equal(client.answers, 0);
	is_silent = false;
	socket_reset_on_close(serving);
	(void)shutdown(serving, SHUT_RD);
	run_loop_until(client.loop, client.answers == MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(asked[i].answers, 1);
	client_wait_until_ready(&client);
}

/* A full backlog of TCP answers nothing: it takes all of a connection's time, but not of the next
 * one's. */
static void
address_that_is_silent_is_not_the_first_the_next_time(void **state)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(0x7f000002U) };
	const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
		  filler = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(silent, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(silent, 0), 0);
	assert_int_equal(connect(filler, (const struct sockaddr *)&at, sizeof at), 0);
	open_client("\2\1", 500 * US_PER_MS);
	client_wait_for_breaker(&client, true);
	client_wait_for_breaker(&client, false);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	(void)close(filler);
	(void)close(silent);
}

#define NAME_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		NAME_TEST(address_that_refuses_is_passed_over_within_the_deadline),
		NAME_TEST(name_whose_addresses_all_refuse_opens_the_breaker),
		NAME_TEST(connection_that_is_reset_is_made_anew_and_its_checks_are_answered),
		NAME_TEST(address_that_is_silent_is_not_the_first_the_next_time),
	};
	struct err err;

	return counter_thread_start(&err) != 0
		? 1
		: cmocka_run_group_tests_name("redis/names", tests, NULL, NULL);
}
