/*
 * Those who wait while one asks Redis about a bucket that was exhausted a moment ago, with a real
 * one: what they wait for, and what becomes of them when it does not come.
 */
#include "with_redis.h"

#include <unistd.h>

#define NONE "[backend none]\ntype = none\n"

enum { CLIENTS = 8 };

static void
send_ask(int fd)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_ask(&bytes, "/", "192.0.2.1");
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
}

/* The way to Redis takes long, so what is known ends long before the refill: nobody asks in that
 * time, since it would be in vain, and nobody is refused. */
static void
who_asks_waits_until_the_refill_has_happened(void **state)
{
	struct answer answer;
	int fds[CLIENTS];
	unsigned admitted = 0;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s", NONE "[limit one]\npolicy = 1/1s\n" ALL "limit = one\n"));
	for (size_t i = 0; i < CLIENTS; i++)
		fds[i] = rig_connect(&rig);
	redis_server_freeze(&server);
	const int64_t sent = clock_monotonic_us();

	send_ask(fds[0]);
	assert_soon(clock_monotonic_us() - sent > 300000);
	redis_server_thaw(&server);
	answer_read(&answer, fds[0], 1);
	assert_int_equal(answer_status(&answer), 200);
	answer_release(&answer);
	const unsigned long before = redis_calls();

	assert_soon(clock_monotonic_us() - sent > 1050000);
	for (size_t i = 0; i < CLIENTS; i++)
		send_ask(fds[i]);
	for (size_t i = 0; i < CLIENTS; i++) {
		answer_read(&answer, fds[i], 1);
		admitted += answer_status(&answer) == 200 ? 1 : 0;
		answer_release(&answer);
		(void)close(fds[i]);
	}
	assert_int_equal(admitted, 1);
	assert_int_equal(redis_calls() - before, 1);
}

/* The one who asks goes; those who wait for its answer do not. */
static void
client_that_asks_for_others_may_go(void **state)
{
	int fds[CLIENTS];

	(void)state;
	rig_open(&rig,
		with_redis("", "5s", NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	const unsigned long known = redis_calls();

	/* Until Redis is asked again, what is known has just ended; then ask it while it sleeps. */
	assert_soon(rig_status(&rig, "GET", "/", NULL) == 429 && redis_calls() > known);
	const int64_t learnt = clock_monotonic_us();

	assert_soon(clock_monotonic_us() - learnt > 1100000);
	redis_server_freeze(&server);
	for (unsigned i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		send_ask(fds[i]);
		assert_soon(rig_in_flight() == i + 1);
	}
	(void)close(fds[0]);
	(void)close(fds[3]);
	assert_soon(rig_in_flight() == LENGTH_OF(fds) - 2);
	redis_server_thaw(&server);
	for (unsigned i = 1; i < LENGTH_OF(fds); i++) {
		struct answer answer;

		if (i == 3)
			continue;
		answer_read(&answer, fds[i], 1);
		assert_int_equal(answer_status(&answer), 429);
		answer_release(&answer);
		(void)close(fds[i]);
	}
}

/* Redis does not answer the one who asks: then it did not for those who waited. */
static void
those_who_wait_are_answered_when_redis_does_not(void **state)
{
	int fds[CLIENTS];

	(void)state;
	rig_open(&rig,
		with_redis("", "200ms",
			NONE "[limit one]\npolicy = 1/1h\n" ALL
			     "limit = one\nstore_down = reject\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	const int64_t learnt = clock_monotonic_us();

	assert_soon(clock_monotonic_us() - learnt > 1100000);
	const int64_t down = rig_outcome("all", "store_down");
	const counter_cell missed = counter_find(
		COUNT_STORE_FAILURES, (const struct slice[]){ SLICE("redis"), SLICE("deadline") });
	const int64_t before = counter_sum(missed);

	redis_server_freeze(&server);
	for (unsigned i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		send_ask(fds[i]);
	}
	for (unsigned i = 0; i < LENGTH_OF(fds); i++) {
		struct answer answer;

		answer_read(&answer, fds[i], 1);
		assert_int_equal(answer_status(&answer), 503);
		answer_release(&answer);
		(void)close(fds[i]);
	}
	assert_int_equal(rig_outcome("all", "store_down") - down, LENGTH_OF(fds));
	/* Only one has asked. */
	assert_int_equal(counter_sum(missed) - before, 1);
	redis_server_thaw(&server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(who_asks_waits_until_the_refill_has_happened),
		REDIS_TEST(client_that_asks_for_others_may_go),
		REDIS_TEST(those_who_wait_are_answered_when_redis_does_not),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
