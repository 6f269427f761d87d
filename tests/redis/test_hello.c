/*
 * redis.h: a server that was named is asked once whether it is a replica, behind all that is waited
 * for; who does not answer that is used all the same, and not asked again.
 */
#include "client.h"
#include "fake.h"
#include "weir/log.h"

#include <stdio.h>

static struct fake fake;
static struct client client;
static struct made_limit made;

static void
open_both(fake_fn *serve)
{
	make_limit(&made, "l", "5/1m");
	fake_open(&fake, serve);
	client_open(&client,
		&(const struct redis_settings){
			.server = fake.address, .deadline_us = 300 * US_PER_MS });
	client_wait_until_ready(&client);
}

static int
close_both(void **state)
{
	(void)state;
	client_close(&client);
	fake_close(&fake);
	return 0;
}

/* Returns at HELLO; false: the connection is over. */
static bool
answer_until_hello(struct fake_peer *peer)
{
	redisReply *command;
	bool is_hello = false;

	while (!is_hello && (command = fake_read(peer)) != NULL) {
		is_hello = fake_is(command, "HELLO");
		if (!is_hello)
			(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
	return is_hello;
}

/* As proxies do with a command that they do not know. */
static void
closes_at_hello(struct fake_peer *peer)
{
	(void)answer_until_hello(peer);
}

static void
falls_silent_at_hello(struct fake_peer *peer)
{
	if (answer_until_hello(peer))
		fake_read_on(peer);
}

static void
who_ends_at_the_question_is_not_asked_again(void **state)
{
	fake_fn *const proxies[] = { closes_at_hello, falls_silent_at_hello };

	for (size_t i = 0; i < LENGTH_OF(proxies); i++) {
		const int64_t opened = counter_sum(COUNT_BREAKER_OPENED);

		open_both(proxies[i]);
		run_loop_while(client.loop, fake.seen->connections < 2);
		client_wait_until_ready(&client);
		for (unsigned j = 0; j < 5; j++)
			assert_int_equal(
				client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
		assert_int_equal(fake.seen->connections, 2);
		assert_int_equal(counter_sum(COUNT_BREAKER_OPENED), opened);
		(void)close_both(state);
	}
}

/* As servers before Redis 6, and others that do as if they were Redis. */
static void
refuses_hello(struct fake_peer *peer)
{
	static const char *const answers[] = { "-ERR unknown command `HELLO`\r\n", "*0\r\n",
		"$-1\r\n", "*3\r\n$4\r\nrole\r\n$7\r\nreplica\r\n*0\r\n",
		"*2\r\n$4\r\nrole\r\n*1\r\n$7\r\nreplica\r\n", ":1\r\n" };

	for (size_t i = 0; answer_until_hello(peer); i++)
		(void)fake_send(peer, slice_of(answers[i % LENGTH_OF(answers)]));
}

static void
any_answer_is_taken(void **state)
{
	open_both(refuses_hello);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_int_equal(fake.seen->connections, 1);
	(void)close_both(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_ends_at_the_question_is_not_asked_again),
		cmocka_unit_test(any_answer_is_taken),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/hello", tests, NULL, NULL);
}
