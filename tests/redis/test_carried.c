/*
 * What a limit's configuration no longer names is carried along in its bucket's value, as long as
 * it says something and as far as there is room; also by checks that need token buckets alone
 * (lua/decide.lua).
 */
#include "../lib/redis_server.h"
#include "client.h"
#include "values.h"
#include "weir/hash.h"

#include <stdlib.h>

static struct redis_server server;
static struct client client;
static redisContext *direct;

static struct decision
ask(const struct made_limit *made, int64_t now_us)
{
	struct asked asked;

	asked_init(&asked, &client, made, "k");
	asked.check.now_us = now_us;
	asked.check.lease = 12345;
	asked_send(&asked);
	asked_wait(&asked);
	assert_true(assert_value_is_sound(direct, "weir:", "k"));
	return asked.decision;
}

static unsigned
fields(void)
{
	redisReply *reply = redis_command(direct, "GET weir:k");
	unsigned count = 1;

	assert_int_equal(reply->type, REDIS_REPLY_STRING);
	for (const char *at = reply->str; *at != '\0'; at++)
		count += *at == ',';
	freeReplyObject(reply);
	return count;
}

static void
assert_is_number(const char *who)
{
	redisReply *reply = redis_command(direct, "OBJECT ENCODING weir:k");

	assert_row(strcmp(reply->str, "int") == 0, "%s: %s", who, reply->str);
	freeReplyObject(reply);
}

/* ---- as long as it says something ---- */

static int64_t
end_of(const struct policy *policy, int64_t spent_us)
{
	int64_t ends[3];

	switch (policy->algorithm) {
	case POLICY_TOKEN_BUCKET:
		return spent_us + policy->interval_us;
	case POLICY_SLIDING_WINDOW:
		return (spent_us / policy->span_us + 2) * policy->span_us;
	case POLICY_SLIDING_LOG:
	case POLICY_CONCURRENT:
		return spent_us + policy->span_us;
	case POLICY_CALENDAR:
		break;
	}
	/* Of our own clock, as the store tells them to Redis. */
	calendar_ends(policy->period, clock_wall_us(), ends);
	return ends[1];
}

static void
a_state_is_carried_until_it_ends(void **state)
{
	static const char *const others[] = { "3/1m name other", "30/1h sliding-window name other",
		"2/10s sliding-window name other", "30/1h sliding-log name other",
		"5/day calendar name other", "concurrent 3 lease 10m name other" };
	struct made_limit after;

	(void)state;
	make_limit(&after, "l", "5/1m");
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		const int64_t now_us = clock_wall_us();
		struct made_limit before;

		redis_ok(direct, "FLUSHALL");
		make_limit(&before, "l", "5/1m", others[i]);
		assert_int_equal(ask(&before, now_us).verdict, VERDICT_ADMITTED);
		const int64_t end_us = end_of(&before.limit.policies[1], now_us);

		assert_int_equal(ask(&after, now_us).verdict, VERDICT_ADMITTED);
		assert_int_equal(fields(), 2);
		assert_int_equal(ask(&after, end_us - 1).verdict, VERDICT_ADMITTED);
		assert_row(fields() == 2, "%s is forgotten early", others[i]);
		assert_int_equal(ask(&after, end_us).verdict, VERDICT_ADMITTED);
		assert_row(fields() == 1, "%s is kept too long", others[i]);
		assert_is_number(others[i]);
	}
}

/* The key lives as long as the last of them, not longer. */
static void
a_carried_state_does_not_make_the_key_live_longer(void **state)
{
	const int64_t now_us = clock_wall_us();
	struct made_limit before, after;

	(void)state;
	make_limit(&before, "l", "5/1m", "2/10s sliding-window name other");
	make_limit(&after, "l", "5/1m");
	assert_int_equal(ask(&before, now_us).verdict, VERDICT_ADMITTED);
	assert_int_equal(ask(&after, now_us).verdict, VERDICT_ADMITTED);
	assert_in_range(redis_number(direct, "PTTL weir:k"), 20000, 25001);
}

/* ---- as far as there is room ---- */

static void
names_that_were_given_up_have_an_end(void **state)
{
	static const char *const kinds[] = { "token-bucket", "sliding-window" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(kinds); i++) {
		redis_ok(direct, "FLUSHALL");
		for (unsigned n = 0; n < 60; n++) {
			const unsigned most = n + 1 < BUCKET_FIELDS_MAX ? n + 1 : BUCKET_FIELDS_MAX;
			char policy[64];
			struct made_limit made;

			(void)snprintf(policy, sizeof policy, "100/1d %s name n%u", kinds[i], n);
			make_limit(&made, "l", policy);
			const struct decision decision = ask(&made, IN_2026_US);

			assert_int_equal(decision.outcomes[0].remaining, 99);
			assert_row(fields() == most, "%u fields after %u names", fields(), n + 1);
		}
	}
}

/* Several in one limit push out as many. */
static void
new_policies_push_out_the_first_that_were_given_up(void **state)
{
	struct made_limit made;

	(void)state;
	for (unsigned n = 0; n < BUCKET_FIELDS_MAX; n++) {
		char policy[64];

		(void)snprintf(policy, sizeof policy, "100/1d name n%u", n);
		make_limit(&made, "l", policy);
		(void)ask(&made, IN_2026_US);
	}
	make_limit(&made, "l", "5/1m", "7/1h", "9/1d");
	assert_int_equal(ask(&made, IN_2026_US).outcomes[2].remaining, 8);
	assert_int_equal(fields(), BUCKET_FIELDS_MAX);
	make_limit(&made, "l", "100/1d name n15");
	assert_int_equal(ask(&made, IN_2026_US).outcomes[0].remaining, 98);
	assert_int_equal(fields(), BUCKET_FIELDS_MAX);
}

static int
setup(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	client_open(&client, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&client);
	return 0;
}

static int
flush(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	client_close(&client);
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_state_is_carried_until_it_ends, flush),
		cmocka_unit_test_setup(a_carried_state_does_not_make_the_key_live_longer, flush),
		cmocka_unit_test_setup(names_that_were_given_up_have_an_end, flush),
		cmocka_unit_test_setup(new_policies_push_out_the_first_that_were_given_up, flush),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	if (counter_thread_start(&err) != 0 || hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/carried", tests, setup, teardown);
}
