/*
 * A name of two addresses, of which the first takes connections and nobody is there: the second is
 * found, by all who connect to a Redis, which are the store, the one who asks sentinels, and an
 * inquiry.
 */
#include "../../src/loop/loop_private.h"
#include "../lib/name_server.h"
#include "../lib/sockets.h"
#include "client.h"
#include "fake.h"
#include "weir/counter.h"
#include "weir/inquiry.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

enum { DEADLINE_US = 500000 };

static struct directory directory;
static struct name_server name_server;
static struct made_limit made;
static struct fake_seen seen;
static _Atomic bool is_inquiry; /* whose scripts are not the store's */
static struct address server; /* 127.0.0.2, where a stranger is, and then 127.0.0.1 */

/* ---- at 127.0.0.1: a Redis, and a sentinel whose master it is ---- */

static int listener;
static pthread_t thread;

static void
serve(void *context, struct fake_peer *peer)
{
	char master[80], digits[8];
	redisReply *command;
	const int len = snprintf(digits, sizeof digits, "%u", server.port);

	(void)context;
	(void)snprintf(
		master, sizeof master, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", len, digits);
	while ((command = fake_read(peer)) != NULL) {
		if (fake_is(command, "SENTINEL"))
			(void)fake_send(peer, slice_of(master));
		else if (fake_is(command, "ROLE"))
			(void)fake_send(peer, SLICE("*1\r\n$6\r\nmaster\r\n"));
		else if (is_inquiry)
			(void)fake_send(peer, SLICE("+OK\r\n"));
		else
			(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void *
serve_all(void *context)
{
	fake_accept_all(listener, &seen, serve, NULL);
	return context;
}

/* ---- at 127.0.0.2 ---- */

struct stranger {
	int listener;
	pthread_t thread;
	const char *says;
	bool resets, lingers;
};

static void *
serve_nobody(void *context)
{
	const struct stranger *stranger = context;
	char bytes[4096];
	int fd;

	while ((fd = accept(stranger->listener, NULL, NULL)) >= 0) {
		/* Whether it has come is not of interest. */
		(void)!recv(fd, bytes, stranger->resets ? 1 : sizeof bytes, 0);
		(void)socket_send(fd, slice_of(stranger->says));
		/* Until the peer gives up. */
		while (stranger->lingers && recv(fd, bytes, sizeof bytes, 0) > 0)
			;
		if (stranger->resets)
			socket_reset_on_close(fd);
		(void)close(fd);
	}
	return context;
}

static void
stranger_start(struct stranger *stranger)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(server.port),
		.sin_addr.s_addr = htonl(0x7f000002U) };
	const int one = 1;

	stranger->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(stranger->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	assert_int_equal(bind(stranger->listener, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(listen(stranger->listener, 10), 0);
	assert_int_equal(pthread_create(&stranger->thread, NULL, serve_nobody, stranger), 0);
}

static void
stranger_end(struct stranger *stranger)
{
	(void)shutdown(stranger->listener, SHUT_RDWR);
	(void)pthread_join(stranger->thread, NULL);
	(void)close(stranger->listener);
}

/* ---- who connects ---- */

static const char *
names(void)
{
	static struct directory_path path;

	path = directory_path(&directory, "resolv.conf");
	return path.text;
}

static void
expect_answer(const struct redis_settings *settings)
{
	struct client client;

	client_open_with(&client, settings, NULL, names());
	client_wait_until_ready(&client);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
}

static void
expect_of_store(const struct stranger *stranger)
{
	(void)stranger;
	expect_answer(&(const struct redis_settings){
		.server = server, .deadline_us = DEADLINE_US, .password = "secret" });
}

static void
expect_of_sentinel(const struct stranger *stranger)
{
	(void)stranger;
	expect_answer(&(const struct redis_settings){
		.sentinels = { .addresses = &server, .count = 1, .master = "main" },
		.deadline_us = DEADLINE_US });
}

struct heard {
	struct loop *loop;
	struct inquiry_report report;
};

static void
on_report(void *context, const struct inquiry_report *given)
{
	struct heard *heard = context;

	heard->report = *given;
	loop_stop(heard->loop);
}

/* Whoever has said a word is who was asked. */
static void
expect_of_inquiry(const struct stranger *stranger)
{
	static struct heard heard;
	const struct redis_settings settings = {
		.server = server, .prefix = "weir:", .deadline_us = DEADLINE_US
	};
	struct err err;

	if (stranger->says[0] != '\0')
		return;
	struct loop *loop = loop_new(&err);

	assert_non_null(loop);
	struct resolver *resolver = resolver_new_with(loop, names(), &err);

	assert_non_null(resolver);
	heard = (struct heard){ .loop = loop, .report = { .end = INQUIRY_UNKNOWN } };
	struct inquiry *inquiry = inquiry_start(loop, resolver, &settings, INQUIRY_ALONE,
		inquiry_end_us(loop, DEADLINE_US), on_report, &heard);

	assert_non_null(inquiry);
	run_loop_until(loop, heard.report.end != INQUIRY_UNKNOWN);
	assert_row(heard.report.end == INQUIRY_ANSWERED, "%s", heard.report.reason);
	inquiry_free(inquiry);
	resolver_free(resolver);
	loop_free(loop);
}

static void
expect_second_found(void (*expect)(const struct stranger *stranger))
{
	static const struct stranger rows[] = {
		{ .says = "" },
		{ .says = "+O" },
		{ .says = "", .resets = true },
		{ .says = "+O", .resets = true },
		{ .says = "", .lingers = true },
		{ .says = "-LOADING Redis is loading the dataset in memory\r\n", .lingers = true },
	};

	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct stranger stranger = rows[i];

		stranger_start(&stranger);
		expect(&stranger);
		stranger_end(&stranger);
	}
}

static void
the_store_finds_the_next_one(void **state)
{
	(void)state;
	expect_second_found(expect_of_store);
}

static void
who_asks_a_sentinel_finds_the_next_one(void **state)
{
	(void)state;
	expect_second_found(expect_of_sentinel);
}

static void
an_inquiry_finds_the_next_one(void **state)
{
	(void)state;
	is_inquiry = true;
	expect_second_found(expect_of_inquiry);
	is_inquiry = false;
}

static int
set_up(void **state)
{
	(void)state;
	make_limit(&made, "l", "5/1m");
	directory_make(&directory);
	server = (struct address){ .kind = ADDRESS_TCP, .host = "redis.test" };
	listener = tcp_listen(10, &server.port);
	name_server_start(&name_server, "\2\1", &directory);
	return pthread_create(&thread, NULL, serve_all, NULL);
}

static int
tear_down(void **state)
{
	(void)state;
	name_server_stop(&name_server);
	(void)shutdown(listener, SHUT_RDWR);
	(void)pthread_join(thread, NULL);
	(void)close(listener);
	directory_remove(&directory);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_store_finds_the_next_one),
		cmocka_unit_test(who_asks_a_sentinel_finds_the_next_one),
		cmocka_unit_test(an_inquiry_finds_the_next_one),
	};
	struct err err;

	if (counter_thread_start(&err) != 0 || hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/names_nobody", tests, set_up, tear_down);
}
