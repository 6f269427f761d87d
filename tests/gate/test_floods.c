/*
 * Floods on an exhausted bucket, with a real Redis that counts what reaches it: it is asked once
 * for all, and nobody is refused that it would admit.
 */
#include "with_redis.h"

#include <stdio.h>
#include <unistd.h>

#define NONE "[backend none]\ntype = none\n"

enum { CLIENTS = 32 };

/* ---- floods ---- */

struct flood {
	int fds[CLIENTS];
	unsigned long asked, admitted;
	bool is_varied; /* each request costs another number of tokens */
};

static void
flood_open(struct flood *flood)
{
	memset(flood, 0, sizeof *flood);
	for (size_t i = 0; i < CLIENTS; i++)
		flood->fds[i] = rig_connect(&rig);
}

static void
flood_close(struct flood *flood)
{
	for (size_t i = 0; i < CLIENTS; i++)
		(void)close(flood->fds[i]);
}

/* A request on each connection at once, and their answers. */
static void
flood_wave(struct flood *flood)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct buf bytes;
		char uri[32] = "/";

		if (flood->is_varied)
			(void)snprintf(uri, sizeof uri, "/?n=%lu", 2 + (flood->asked + i) % 900);
		bytes_init(&bytes);
		put_ask(&bytes, uri, "192.0.2.1");
		assert_true(socket_send(flood->fds[i], buf_slice(&bytes)));
		buf_release(&bytes);
	}
	for (size_t i = 0; i < CLIENTS; i++) {
		struct answer answer;

		answer_read(&answer, flood->fds[i], 1);
		assert_true(answer_is_whole(&answer));
		const unsigned status = answer_status(&answer);

		assert_true(status == 200 || status == 429);
		if (status == 429)
			assert_true(answer_field(&answer, "Retry-After").len > 0);
		flood->asked++;
		flood->admitted += status == 200 ? 1 : 0;
		answer_release(&answer);
	}
}

/* As many waves as pass in this time. */
static void
flood_for(struct flood *flood, int64_t us)
{
	const int64_t end = clock_monotonic_us() + us;

	while (clock_monotonic_us() < end)
		flood_wave(flood);
}

static void
flood_costs_redis_a_call_a_second(void **state)
{
	struct flood flood;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s", NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"));
	const int64_t rejected = rig_decisions("one", "rejected"),
		      cached = counter_sum(COUNT_REJECTIONS_CACHED),
		      outcome = rig_outcome("all", "rejected");

	flood_open(&flood);
	flood_wave(&flood);
	assert_int_equal(flood.admitted, 1);
	const unsigned long before = redis_calls();
	const int64_t started = clock_monotonic_us();

	flood_for(&flood, 3300000);
	const unsigned long seconds =
		(unsigned long)((clock_monotonic_us() - started) / 1000000) + 1;

	assert_true(flood.asked > 500);
	assert_int_equal(flood.admitted, 1);
	assert_in_range(redis_calls() - before, 3, seconds);
	/* Counted and logged like any other. */
	assert_int_equal(rig_decisions("one", "rejected") - rejected, flood.asked - 1);
	assert_int_equal(rig_outcome("all", "rejected") - outcome, flood.asked - 1);
	assert_in_range(counter_sum(COUNT_REJECTIONS_CACHED) - cached, flood.asked - 40 - seconds,
		flood.asked - 2);
	assert_true(rig_logged(&rig, "identity=one:192.0.2.1") > 0);
	flood_close(&flood);
}

static void
flood_costs_redis_a_call_for_each_refill(void **state)
{
	struct flood flood;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit five]\npolicy = 5/1s burst 3\n" ALL "limit = five\n"));
	flood_open(&flood);
	flood_wave(&flood);
	flood_wave(&flood);
	const unsigned long before = redis_calls(), admitted = flood.admitted;
	const int64_t started = clock_monotonic_us();

	flood_for(&flood, 2000000);
	const int64_t passed = clock_monotonic_us() - started;
	const unsigned long refills = (unsigned long)(passed / 200000) + 1;

	assert_true(flood.asked > 500);
	/* All of them reach a client: nothing is refused that would be admitted. */
	assert_in_range(flood.admitted - admitted, refills - 2, refills);
	/* At a refill one asks for all, and none before it. */
	assert_in_range(redis_calls() - before, flood.admitted - admitted,
		flood.admitted - admitted + (unsigned long)(passed / 1000000) + 2);
	flood_close(&flood);
}

/* What is asked of Redis about a log of a thousand requests is dear. */
static void
flood_of_many_costs_costs_redis_hardly_more(void **state)
{
	struct flood flood;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit log]\npolicy = 1000/1h sliding-log\n" ALL
			     "limit = log\ncost = param n max 1000\n"));
	flood_open(&flood);
	assert_int_equal(rig_status(&rig, "GET", "/?n=999", NULL), 200);
	flood.is_varied = true;
	const unsigned long before = redis_calls();
	const int64_t started = clock_monotonic_us();

	flood_for(&flood, 1200000);
	const unsigned long seconds =
		(unsigned long)((clock_monotonic_us() - started) / 1000000) + 1;

	assert_true(flood.asked > 500);
	assert_int_equal(flood.admitted, 0);
	/* Until the first answer has come all of the first wave ask. */
	assert_in_range(redis_calls() - before, seconds, CLIENTS + 5 * seconds);
	flood_close(&flood);
}

static void
reset_shows_within_a_second_and_a_reload_at_once(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s", NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(redis_number(look, "DEL weir:one:192.0.2.1"), 1);
	assert_within_s(rig_status(&rig, "GET", "/", NULL) == 200, 2);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	rig_reload(&rig,
		with_redis("", "5s",
			NONE "[limit one]\npolicy = 10/1h name 1h\n" ALL "limit = one\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
}

static void
what_only_counts_is_counted_with_every_request(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit trial]\npolicy = 2/1h\nenforce = no\n"
			     "[limit five]\npolicy = 5/1h\n" ALL "limit = trial, five\n"));
	const int64_t would = rig_decisions("trial", "would_reject");

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(rig_decisions("trial", "would_reject") - would, 8);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(flood_costs_redis_a_call_a_second),
		REDIS_TEST(flood_costs_redis_a_call_for_each_refill),
		REDIS_TEST(flood_of_many_costs_costs_redis_hardly_more),
		REDIS_TEST(reset_shows_within_a_second_and_a_reload_at_once),
		REDIS_TEST(what_only_counts_is_counted_with_every_request),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
