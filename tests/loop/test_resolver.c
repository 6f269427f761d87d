/*
 * resolver.h, with a name server of the test's own on the loopback: what it answers is in the
 * question's first label.
 */
#include "../../src/loop/loop_private.h"
#include "../lib/directory.h"
#include "../lib/run_loop.h"
#include "weir/resolver.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct directory directory;
static struct loop *loop;
static struct resolver *resolver;

/* ---- the name server ---- */

static int server_fd;
static pthread_t server_thread;
static _Atomic unsigned questions;

enum { TYPE_A = 1, TYPE_AAAA = 28, HEADER = 12, MANY = 12 };

/* Turns the question in `packet` into its answer. Returns the length; 0: none is given. */
static size_t
answer_question(uint8_t *packet, size_t len)
{
	const uint8_t *label = packet + HEADER + 1;
	const size_t label_len = packet[HEADER];
	const uint8_t type = len > 4 ? packet[len - 3] : 0;
	static const uint8_t a[] = { 0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2,
		7 };
	static const uint8_t aaaa[] = { 0xc0, HEADER, 0, TYPE_AAAA, 0, 1, 0, 0, 0, 60, 0, 16, 0x20,
		1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7 };
	const struct slice name = slice_make(label, label_len);

	if (slice_is_nocase(name, SLICE("silent")))
		return 0;
	packet[2] |= 0x80; /* an answer */
	packet[3] = slice_is_nocase(name, SLICE("none")) ? 0x83
		: slice_is_nocase(name, SLICE("broken")) ? 0x82
							 : 0x80;
	if (slice_is_nocase(name, SLICE("garbage"))) {
		memset(packet + 4, 0xff, len - 4);
		return len;
	}
	/* The question alone: what the resolver added behind it is dropped. */
	packet[10] = packet[11] = 0;
	if (type == TYPE_A && slice_is_nocase(name, SLICE("four"))) {
		packet[7] = 1;
		memcpy(packet + len, a, sizeof a);
		return len + sizeof a;
	}
	if (type == TYPE_A && slice_is_nocase(name, SLICE("many"))) {
		packet[7] = MANY;
		for (uint8_t i = 0; i < MANY; i++) {
			memcpy(packet + len, a, sizeof a);
			len += sizeof a;
			packet[len - 1] = (uint8_t)(i + 7);
		}
		return len;
	}
	if (type == TYPE_AAAA && slice_is_nocase(name, SLICE("six"))) {
		packet[7] = 1;
		memcpy(packet + len, aaaa, sizeof aaaa);
		return len + sizeof aaaa;
	}
	return len;
}

static void *
serve_names(void *context)
{
	(void)context;
	for (;;) {
		uint8_t packet[1024];
		struct sockaddr_in from;
		socklen_t from_len = sizeof from;
		const ssize_t n =
			recvfrom(server_fd, packet, 512, 0, (struct sockaddr *)&from, &from_len);

		/* One byte is the test's word for the end. */
		if (n <= HEADER + 1)
			return NULL;
		questions++;
		const size_t len = answer_question(packet, (size_t)n);

		if (len > 0)
			(void)sendto(server_fd, packet, len, 0, (struct sockaddr *)&from, from_len);
	}
}

static void
start_server(struct sockaddr_in *name)
{
	socklen_t len = sizeof *name;

	*name = (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	server_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server_fd, (struct sockaddr *)name, sizeof *name), 0);
	assert_int_equal(getsockname(server_fd, (struct sockaddr *)name, &len), 0);
	assert_int_equal(pthread_create(&server_thread, NULL, serve_names, NULL), 0);
}

static void
stop_server(void)
{
	struct sockaddr_in name;
	socklen_t len = sizeof name;

	assert_int_equal(getsockname(server_fd, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(
		sendto(server_fd, "", 1, 0, (const struct sockaddr *)&name, sizeof name), 1);
	assert_int_equal(pthread_join(server_thread, NULL), 0);
	(void)close(server_fd);
}

static struct directory_path conf;
static uint16_t server_port;

/* Port 0: no server. */
static void
write_conf(uint16_t port)
{
	char server[64] = "", text[200];

	if (port != 0)
		(void)snprintf(server, sizeof server, "nameserver 127.0.0.1:%u\n", port);
	const int n = snprintf(text, sizeof text, "%soptions timeout:1 attempts:1\n", server);

	directory_write(&directory, "resolv.conf", slice_make(text, (size_t)n));
}

static int
set_up(void **state)
{
	struct sockaddr_in name;
	struct err err;

	(void)state;
	directory_make(&directory);
	questions = 0;
	start_server(&name);
	server_port = ntohs(name.sin_port);
	conf = directory_path(&directory, "resolv.conf");
	write_conf(server_port);
	loop = loop_new(&err);
	resolver = resolver_new_with(loop, conf.text, &err);
	return resolver == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	resolver_free(resolver);
	/* What the resolver has left behind would show itself here. */
	run_loop_for_ms(loop, 5);
	loop_free(loop);
	stop_server();
	directory_remove(&directory);
	return 0;
}

/* ---- look-ups ---- */

struct result {
	unsigned calls, count;
	uint8_t last[LOOKUP_ADDRESSES_MAX]; /* bytes of IPv4 addresses */
	struct sockaddr_storage address;
	char error[200];
};

static void
on_result(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	struct result *result = context;

	assert_true((count > 0) == (error == NULL));
	result->calls++;
	result->count = count;
	for (unsigned i = 0; i < count; i++)
		result->last[i] =
			((const uint8_t *)&((const struct sockaddr_in *)&addresses[i].address)
					->sin_addr)[3];
	if (error == NULL)
		result->address = addresses[0].address;
	else
		(void)snprintf(result->error, sizeof result->error, "%s", error);
	loop_stop(loop);
}

static struct lookup *
start(struct result *result, const char *name)
{
	struct address address = { .kind = ADDRESS_TCP, .port = 6379 };

	(void)snprintf(address.host, sizeof address.host, "%s", name);
	*result = (struct result){ 0 };
	struct lookup *lookup = lookup_start(resolver, &address, on_result, result);

	assert_non_null(lookup);
	assert_int_equal(result->calls, 0);
	return lookup;
}

static void
assert_found(const struct result *result, const char *expected)
{
	char text[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in *in = (const struct sockaddr_in *)&result->address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&result->address;
	const bool is_4 = result->address.ss_family == AF_INET;

	assert_row(result->error[0] == '\0', "%s", result->error);
	(void)inet_ntop(result->address.ss_family,
		is_4 ? (const void *)&in->sin_addr : (const void *)&in6->sin6_addr, text,
		sizeof text);
	assert_string_equal(text, expected);
	assert_int_equal(ntohs(is_4 ? in->sin_port : in6->sin6_port), 6379);
}

static void
name_of_the_hosts_file_needs_no_server(void **state)
{
	struct result result;

	(void)state;
	(void)start(&result, "localhost");
	run_loop_until(loop, result.calls > 0);
	assert_found(&result, result.address.ss_family == AF_INET ? "127.0.0.1" : "::1");
	assert_int_equal(questions, 0);
}

static void
server_is_asked_for_both_kinds_of_address(void **state)
{
	struct result four, six;

	(void)state;
	(void)start(&four, "four.test");
	(void)start(&six, "six.test");
	run_loop_until(loop, four.calls > 0 && six.calls > 0);
	assert_found(&four, "192.0.2.7");
	assert_found(&six, "2001:db8::7");
	run_loop_for_ms(loop, 20);
	assert_int_equal(four.calls, 1);
	assert_int_equal(six.calls, 1);
}

static void
addresses_come_in_their_order_up_to_the_most(void **state)
{
	struct result many;

	(void)state;
	(void)start(&many, "many.test");
	run_loop_until(loop, many.calls > 0);
	assert_int_equal(many.count, LOOKUP_ADDRESSES_MAX);
	for (unsigned i = 0; i < many.count; i++)
		assert_int_equal(many.last[i], 7 + i);
}

static void
name_without_an_address_is_answered_with_a_sentence(void **state)
{
	static const char *const names[] = { "none.test", "broken.test", "empty.test",
		"garbage.test", "silent.test" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		struct result result;

		(void)start(&result, names[i]);
		run_loop_until(loop, result.calls > 0);
		assert_row(result.error[0] != '\0', "%s", names[i]);
		assert_int_equal(result.calls, 1);
	}
}

static void
silent_server_holds_no_other_name_up(void **state)
{
	struct result silent[20], four;
	unsigned told = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(silent); i++)
		(void)start(&silent[i], "silent.test");
	(void)start(&four, "four.test");
	run_loop_until(loop, four.calls > 0);
	for (size_t i = 0; i < LENGTH_OF(silent); i++)
		told += silent[i].calls;
	assert_int_equal(told, 0);
	assert_found(&four, "192.0.2.7");
}

/* ---- cancelling ---- */

static void
cancelled_look_up_makes_no_call(void **state)
{
	static const char *const names[] = { "four.test", "none.test", "silent.test", "localhost" };
	struct result results[LENGTH_OF(names)];
	struct lookup *lookups[LENGTH_OF(names)];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(names); i++)
		lookups[i] = start(&results[i], names[i]);
	for (size_t i = 0; i < LENGTH_OF(names); i++)
		lookup_cancel(lookups[i]);
	run_loop_for_ms(loop, 50);
	for (size_t i = 0; i < LENGTH_OF(names); i++)
		assert_int_equal(results[i].calls, 0);
}

static void
look_up_is_cancelled_while_the_server_is_asked(void **state)
{
	struct result silent, four;

	(void)state;
	struct lookup *lookup = start(&silent, "silent.test");
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);

	while (questions < 2 && clock_monotonic_us() < give_up_us)
		run_loop_for_ms(loop, 1);
	lookup_cancel(lookup);
	(void)start(&four, "four.test");
	run_loop_until(loop, four.calls > 0);
	run_loop_for_ms(loop, 1500);
	assert_int_equal(silent.calls, 0);
}

static void
any_order_of_starts_and_cancels_is_survived(void **state)
{
	static const char *const names[] = { "four.test", "six.test", "none.test", "localhost",
		"garbage.test", "empty.test" };
	static struct result results[300];
	struct lookup *lookups[LENGTH_OF(results)];
	uint64_t random = 31;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(results); i++) {
		lookups[i] = start(&results[i], names[random_below(&random, LENGTH_OF(names))]);
		const size_t other = random_below(&random, i + 1);

		/* calls 2: it was cancelled */
		if (results[other].calls == 0 && random_below(&random, 2) == 0) {
			lookup_cancel(lookups[other]);
			results[other].calls = 2;
		}
		if (random_below(&random, 3) == 0)
			run_loop_once(loop);
	}
	for (size_t i = 0; i < LENGTH_OF(results); i++) {
		assert_row(results[i].calls <= 2, "%zu", i);
		run_loop_until(loop, results[i].calls > 0);
	}
}

/* ---- the end of the resolver, in tear_down ---- */

static void
resolver_may_go_with_look_ups_under_way(void **state)
{
	static struct result results[4];

	(void)state;
	(void)start(&results[0], "silent.test");
	(void)start(&results[1], "four.test");
	lookup_cancel(start(&results[2], "silent.test"));
	(void)start(&results[3], "localhost");
}

static void
resolver_may_go_while_the_server_is_asked(void **state)
{
	static struct result results[2];

	(void)state;
	(void)start(&results[0], "silent.test");
	(void)start(&results[1], "silent.test");
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);

	while (questions < 4 && clock_monotonic_us() < give_up_us)
		run_loop_for_ms(loop, 1);
	assert_true(questions >= 4);
	resolver_free(resolver);
	resolver = NULL;
	run_loop_for_ms(loop, 50);
	assert_int_equal(results[0].calls + results[1].calls, 0);
}

/* As a worker ends: nothing runs any more behind it. */
static void
resolver_and_loop_may_go_together(void **state)
{
	static struct result results[4];

	(void)state;
	(void)start(&results[0], "silent.test");
	(void)start(&results[1], "localhost");
	lookup_cancel(start(&results[2], "silent.test"));
	lookup_cancel(start(&results[3], "localhost"));
	run_loop_once(loop);
	(void)start(&results[1], "localhost");
	resolver_free(resolver);
	loop_free(loop);
	resolver = NULL;
	struct err err;

	loop = loop_new(&err);
	assert_non_null(loop);
	assert_int_equal(results[0].calls + results[1].calls, 0);
}

static struct resolver *goes_in_its_answer;

static void
free_resolver(void *context, const struct resolved *addresses, unsigned count, const char *error)
{
	(void)addresses, (void)count, (void)error;
	resolver_free(goes_in_its_answer);
	goes_in_its_answer = NULL;
	loop_stop(context);
}

static void
resolver_may_go_in_an_answer(void **state)
{
	const struct address address = { .kind = ADDRESS_TCP, .host = "localhost" };
	struct err err;

	(void)state;
	goes_in_its_answer = resolver_new_with(loop, conf.text, &err);
	assert_non_null(goes_in_its_answer);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(lookup_start(goes_in_its_answer, &address, free_resolver, loop));
	run_loop_until(loop, goes_in_its_answer == NULL);
}

static void
without_a_file_the_hosts_file_still_works(void **state)
{
	struct result result;
	struct err err;

	(void)state;
	resolver_free(resolver);
	conf = directory_path(&directory, "none");
	resolver = resolver_new_with(loop, conf.text, &err);
	assert_non_null(resolver);
	(void)start(&result, "localhost");
	run_loop_until(loop, result.calls > 0);
	assert_row(result.error[0] == '\0', "%s", result.error);
}

/* ---- files that change ---- */

static void
open_anew(uint16_t port)
{
	struct err err;

	resolver_free(resolver);
	write_conf(port);
	resolver = resolver_new_with(loop, conf.text, &err);
	assert_non_null(resolver);
}

static void
assert_four_is_found(void)
{
	struct result four;

	(void)start(&four, "four.test");
	run_loop_until(loop, four.calls > 0);
	assert_found(&four, "192.0.2.7");
}

/* As at boot, when the network comes up behind us. */
static void
server_that_is_named_later_is_asked(void **state)
{
	static const enum {
		EMPTY,
		MISSING,
		EMPTY_AND_RENAMED
	} ways[] = { EMPTY, MISSING, EMPTY_AND_RENAMED };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(ways); i++) {
		const struct directory_path aside = directory_path(&directory, "aside");

		open_anew(0);
		if (ways[i] == MISSING) {
			assert_int_equal(unlink(conf.text), 0);
			resolver_free(resolver);
			struct err err;

			resolver = resolver_new_with(loop, conf.text, &err);
			assert_non_null(resolver);
		}
		if (ways[i] == EMPTY_AND_RENAMED)
			assert_int_equal(rename(conf.text, aside.text), 0);
		write_conf(server_port);
		assert_four_is_found();
	}
}

static void
look_up_under_way_ends_as_it_began(void **state)
{
	struct result silent, before;

	(void)state;
	(void)start(&silent, "silent.test");
	(void)start(&before, "six.test");
	write_conf(server_port);
	resolver_renew(resolver);
	assert_four_is_found();
	run_loop_until(loop, before.calls > 0 && silent.calls > 0);
	assert_found(&before, "2001:db8::7");
	assert_true(silent.error[0] != '\0');
}

/* One that asks a server that never answers, of whose file nothing shows that it has changed. */
static int
open_with_a_dead_server(void)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof name;
	const int dead = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct stat before, after;

	assert_int_equal(bind(dead, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(getsockname(dead, (struct sockaddr *)&name, &len), 0);
	open_anew(ntohs(name.sin_port));
	assert_int_equal(stat(conf.text, &before), 0);
	write_conf(server_port);
	const struct timespec times[] = { before.st_atim, before.st_mtim };

	assert_int_equal(utimensat(AT_FDCWD, conf.text, times, 0), 0);
	assert_int_equal(stat(conf.text, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, before.st_size);
	return dead;
}

static void
file_is_read_anew_when_it_should_be_also_if_it_looks_the_same(void **state)
{
	static const enum {
		FAILED,
		CANCELLED,
		ASKED_FOR
	} ways[] = { FAILED, CANCELLED, ASKED_FOR };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(ways); i++) {
		const int dead = open_with_a_dead_server();
		struct result result;

		switch (ways[i]) {
		case FAILED:
			(void)start(&result, "four.test");
			run_loop_until(loop, result.calls > 0);
			assert_true(result.error[0] != '\0');
			break;
		case CANCELLED:
			lookup_cancel(start(&result, "four.test"));
			break;
		case ASKED_FOR:
			resolver_renew(resolver);
			break;
		}
		assert_four_is_found();
		(void)close(dead);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(name_of_the_hosts_file_needs_no_server),
		TEST(server_is_asked_for_both_kinds_of_address),
		TEST(addresses_come_in_their_order_up_to_the_most),
		TEST(name_without_an_address_is_answered_with_a_sentence),
		TEST(silent_server_holds_no_other_name_up),
		TEST(cancelled_look_up_makes_no_call),
		TEST(look_up_is_cancelled_while_the_server_is_asked),
		TEST(any_order_of_starts_and_cancels_is_survived),
		TEST(resolver_may_go_with_look_ups_under_way),
		TEST(resolver_may_go_while_the_server_is_asked),
		TEST(resolver_and_loop_may_go_together),
		TEST(resolver_may_go_in_an_answer),
		TEST(without_a_file_the_hosts_file_still_works),
		TEST(server_that_is_named_later_is_asked),
		TEST(look_up_under_way_ends_as_it_began),
		TEST(file_is_read_anew_when_it_should_be_also_if_it_looks_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
