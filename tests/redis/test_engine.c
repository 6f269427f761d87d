/*
 * The script for all algorithms over a real server: what it leaves in Redis, overflow keys, checks
 * that come too late, and both scripts side by side. Its decisions are those of
 * test_engine_parity.c.
 */
#include "client.h"
#include "lua_scripts.h"
#include "one_server.h"
#include "values.h"
#include "weir/log.h"

#include <stdio.h>

static struct client client;
static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	make_limit(&made, "l", "5/1h sliding-log");
	client_open(&client, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&client);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	client_close(&client);
	return 0;
}

static bool
is_there(const char *key)
{
	return assert_value_is_sound(direct, client.settings.prefix, key);
}

static uint64_t
remaining(const struct made_limit *limit, const char *key)
{
	const struct decision decision = client_decide(&client, limit, key);

	assert_row(decision.verdict == VERDICT_ADMITTED, "verdict %d, why %d", decision.verdict,
		decision.why);
	return decision.outcomes[0].remaining;
}

/* ---- how many ---- */

/* Of many at once over several connections. */
static void
of_many_at_once_no_more_than_the_limit_is_admitted(void **state)
{
	enum { MANY = 600, CLIENTS = 3 };
	static const char *const policies[] = { "50/1h sliding-log", "50/36500d sliding-window",
		"50/month calendar", "concurrent 50 lease 1h", "50/1h name other" };
	static struct asked asked[MANY];
	struct client clients[CLIENTS];

	(void)state;
	for (unsigned i = 0; i < CLIENTS; i++) {
		client_open(&clients[i], &client.settings);
		client_wait_until_ready(&clients[i]);
	}
	for (unsigned i = 0; i < LENGTH_OF(policies); i++) {
		unsigned admitted = 0;
		char key[8];

		make_limit(&made, "l", policies[i], "1000/1h sliding-log name shadow shadow");
		(void)snprintf(key, sizeof key, "k%u", i);
		for (unsigned j = 0; j < CLIENTS; j++)
			clients[j].answers = 0;
		for (unsigned j = 0; j < MANY; j++) {
			asked_init(&asked[j], &clients[j % CLIENTS], &made, key);
			asked[j].check.lease = j + 1;
			asked_send(&asked[j]);
		}
		for (unsigned j = 0; j < CLIENTS; j++)
			run_loop_until(clients[j].loop, clients[j].answers == MANY / CLIENTS);
		for (unsigned j = 0; j < MANY; j++)
			admitted += asked[j].decision.verdict == VERDICT_ADMITTED;
		assert_row(admitted == 50, "%s: %u", policies[i], admitted);
		assert_true(is_there(key));
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		client_close(&clients[i]);
}

/* ---- scripts ---- */

static long long
evals(void)
{
	redisReply *reply = redis_command(direct, "INFO commandstats");
	const char *at = strstr(reply->str, "cmdstat_eval:calls=");
	const long long calls = at == NULL ? 0 : strtoll(strchr(at, '=') + 1, NULL, 10);

	freeReplyObject(reply);
	return calls;
}

static void
each_script_is_brought_along_once_when_it_is_missing(void **state)
{
	static struct asked asked[60];
	struct made_limit plain;

	(void)state;
	make_limit(&plain, "p", "1000/1h");
	make_limit(&made, "l", "1000/1h sliding-log");
	for (unsigned round = 0; round < 3; round++) {
		redis_ok(direct, "SCRIPT FLUSH");
		const long long before = evals();

		client.answers = 0;
		for (unsigned i = 0; i < LENGTH_OF(asked); i++) {
			asked_init(&asked[i], &client, i % 3 == 0 ? &plain : &made,
				i % 3 == 0 ? "p" : "l");
			asked_send(&asked[i]);
		}
		run_loop_until(client.loop, client.answers == LENGTH_OF(asked));
		for (unsigned i = 0; i < LENGTH_OF(asked); i++)
			assert_int_equal(asked[i].decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(evals() - before, 2);
	}
	/* None was spent twice. */
	assert_int_equal(remaining(&made, "l"), 1000 - 3 * 40 - 1);
	assert_int_equal(remaining(&plain, "p"), 1000 - 3 * 20 - 1);
}

static redisReply *
run_engine(const char *expires)
{
	redisReply *reply = redis_command(direct,
		"EVALSHA %s 1 late %s 1 0 1 1 aaaaaaaa:1000000:1= sliding-log 5 1000000",
		lua_engine.sha1, expires);

	assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
	return reply;
}

static void
a_late_check_spends_nothing(void **state)
{
	(void)state;
	assert_int_equal(remaining(&made, "k"), 4);
	redisReply *reply = run_engine("1");

	assert_int_equal(reply->elements, 2);
	assert_int_equal(reply->element[0]->integer, -1);
	assert_true(reply->element[1]->integer > IN_2026_US);
	freeReplyObject(reply);
	assert_int_equal(redis_number(direct, "EXISTS late"), 0);
	reply = run_engine("9000000000000000");
	assert_int_equal(reply->element[0]->integer, 1);
	freeReplyObject(reply);
	assert_int_equal(redis_number(direct, "EXISTS late"), 1);
}

/* ---- two scripts, one key ---- */

static void
each_script_carries_along_what_the_other_has_written(void **state)
{
	struct made_limit plain;

	(void)state;
	make_limit(&plain, "l", "7/1h name own");
	make_limit(&made, "l", "5/1h sliding-log", "9/1h sliding-window", "8/day calendar",
		"concurrent 3");
	for (unsigned i = 0; i < 3; i++) {
		struct asked asked;

		asked_init(&asked, &client, &made, "k");
		asked.check.lease = 100 + i;
		asked_send(&asked);
		asked_wait(&asked);
		assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(asked.decision.outcomes[0].remaining, 4 - i);
		assert_int_equal(asked.decision.outcomes[1].remaining, 8 - i);
		assert_int_equal(asked.decision.outcomes[2].remaining, 7 - i);
		assert_int_equal(asked.decision.outcomes[3].remaining, 2 - i);
		assert_true(is_there("k"));
		assert_int_equal(remaining(&plain, "k"), 6 - i);
		assert_true(is_there("k"));
	}
}

static void
a_number_that_stands_for_a_common_policy_is_read(void **state)
{
	struct made_limit coded;

	(void)state;
	make_limit(&coded, "l", "5/1h");
	make_limit(&made, "l", "5/1h", "9/1m sliding-log");
	assert_int_equal(remaining(&coded, "k"), 4);
	assert_int_equal(remaining(&made, "k"), 3);
	assert_int_equal(remaining(&coded, "k"), 2);
	assert_true(is_there("k"));
}

static void
states_that_nobody_knows_are_carried_along(void **state)
{
	(void)state;
	redis_ok(direct, "SET weir:k abcdef01:60000000:9=12/3/1781 PX 100000");
	assert_int_equal(remaining(&made, "k"), 4);
	assert_int_equal(remaining(&made, "k"), 3);
	redisReply *reply = redis_command(direct, "GET weir:k");

	assert_row(strstr(reply->str, "abcdef01:60000000:9") != NULL &&
			strstr(reply->str, "12/3/1781") != NULL,
		"%s", reply->str);
	freeReplyObject(reply);
}

/* ---- what others have made ---- */

static void
any_garbage_is_as_good_as_no_state(void **state)
{
	static const char *const policies[] = { "5/1h name p", "5/1h sliding-window",
		"5/1h sliding-log", "5/day calendar", "concurrent 5" };
	static const char *const states[] = { "", ",", "x", "0", "1", "1.1", "1.1.1", "1:1", "1-1",
		"-1", "1:", ":1", "1;1", "1:1;", ";1:1", "1-1;", "1:1,1:1", "1.1,1.1",
		"99999999999999999.1.1", "1.99999999999999999999.1", "1.1.99999999999999999999",
		"99999999999999999.1", "99999999999999999:1", "1:99999", "99999999999999999-1",
		"1-99999999999999999", "nan.nan.nan", "inf:inf", "1e3.1e3.1e3", "0x1-0x1", "=", " ",
		"1:1:1:1", "1-1-1-1", "1.1.1.1" };
	char value[LIMIT_SIGNATURE_SIZE + 64];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		make_limit(&made, "l", policies[i], "1000/1h sliding-log name second");
		for (size_t j = 0; j < LENGTH_OF(states); j++) {
			(void)snprintf(
				value, sizeof value, "%s%s", made.limit.signature, states[j]);
			redisReply *reply = redisCommand(direct, "SET weir:k %s", value);

			assert_int_equal(reply->type, REDIS_REPLY_STATUS);
			freeReplyObject(reply);
			assert_row(remaining(&made, "k") == 4, "%s", value);
			assert_true(is_there("k"));
		}
	}
	assert_false(breaker_is_open(client.breaker));
}

/* Locked out for a window at the most, and told. */
static void
a_state_far_ahead_is_set_right(void **state)
{
	static const char *const rows[][2] = { { "5/1h sliding-window", "9999999999999999.1.5" },
		{ "5/1h sliding-log", "9999999999999999:5" },
		{ "5/day calendar", "9999999999999999.5" },
		{ "concurrent 1 lease 1h", "0000000000000007-9999999999999999" } };
	char value[LIMIT_SIGNATURE_SIZE + 64];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		make_limit(&made, "l", rows[i][0]);
		(void)snprintf(value, sizeof value, "%s%s", made.limit.signature, rows[i][1]);
		redisReply *reply = redisCommand(direct, "SET weir:k %s", value);

		freeReplyObject(reply);
		struct decision decision = client_decide(&client, &made, "k");

		assert_row(decision.verdict == VERDICT_REJECTED && decision.clamped, "%s", value);
		assert_true(decision.outcomes[0].reset_us <= 2 * US_PER_DAY);
		decision = client_decide(&client, &made, "k");
		assert_row(decision.verdict == VERDICT_REJECTED && !decision.clamped, "%s", value);
		assert_true(is_there("k"));
	}
}

/* ---- overflow ---- */

static struct decision
decide_bounded(const char *key, const char *overflow)
{
	struct asked asked;

	asked_init(&asked, &client, &made, key);
	asked.check.items[0].overflow = slice_of(overflow);
	asked_send(&asked);
	asked_wait(&asked);
	return asked.decision;
}

static void
an_unknown_key_is_not_made_but_the_overflow_key_decides(void **state)
{
	struct decision decision;

	(void)state;
	assert_int_equal(remaining(&made, "old"), 4);
	for (unsigned i = 0; i < 5; i++) {
		char key[8];

		(void)snprintf(key, sizeof key, "new%u", i);
		decision = decide_bounded(key, "l:overflow");
		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(decision.overflowed, 1);
		assert_int_equal(decision.outcomes[0].remaining, 4 - i);
		assert_false(is_there(key));
	}
	decision = decide_bounded("new9", "l:overflow");
	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(decision.overflowed, 1);
	decision = decide_bounded("old", "l:overflow");
	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(decision.overflowed, 0);
	assert_int_equal(decision.outcomes[0].remaining, 3);
	assert_true(is_there("old") && is_there("l:overflow"));
}

/* Token buckets alone, with some keys bounded and some not. */
static void
each_limit_of_a_check_overflows_by_itself(void **state)
{
	struct asked asked;

	(void)state;
	make_limit(&made, "l", "5/1h");
	assert_int_equal(remaining(&made, "a"), 4);
	asked_init(&asked, &client, &made, "a");
	asked_add(&asked, &made, "b");
	asked_add(&asked, &made, "c");
	asked_add(&asked, &made, "d");
	asked.check.items[0].overflow = SLICE("oa");
	asked.check.items[1].overflow = SLICE("ob");
	asked.check.items[3].overflow = SLICE("od");
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(asked.decision.overflowed, 2 | 8);
	assert_int_equal(asked.decision.outcomes[0].remaining, 3);
	assert_int_equal(asked.decision.outcomes[1].remaining, 4);
	assert_true(is_there("a") && is_there("ob") && is_there("c") && is_there("od"));
	assert_false(is_there("oa") || is_there("b") || is_there("d"));
}

/* ---- the largest ---- */

static void
a_limit_of_many_keys_and_policies_fits_a_command(void **state)
{
	struct made_limit many[CHECK_LIMITS_MAX];
	struct asked asked;
	char keys[2 * CHECK_LIMITS_MAX][200];

	(void)state;
	for (unsigned i = 0; i < 2 * CHECK_LIMITS_MAX; i++) {
		memset(keys[i], 'k', sizeof keys[i] - 1);
		keys[i][0] = (char)('a' + i);
		keys[i][sizeof keys[i] - 1] = '\0';
	}
	for (unsigned i = 0; i < CHECK_LIMITS_MAX; i++) {
		make_limit(&many[i], "l", "999999999999999/day calendar name a",
			"999999999999999/month calendar name b shadow");
		if (i == 0)
			asked_init(&asked, &client, &many[i], keys[i]);
		else
			asked_add(&asked, &many[i], keys[i]);
		asked.check.items[i].overflow = slice_of(keys[CHECK_LIMITS_MAX + i]);
		asked.check.items[i].shadow = i % 2 == 1;
	}
	asked.check.lease = (UINT64_C(1) << 53) - 1;
	asked.check.cost = 999999999999999;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(asked.decision.count, CHECK_POLICIES_MAX);
	assert_int_equal(asked.decision.overflowed, 255);
	assert_int_equal(asked.decision.outcomes[15].remaining, 0);
}

static void
a_key_of_another_type_is_a_fault_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(redis_number(direct, "HSET weir:h a b"), 1);
	const struct decision decision = client_decide(&client, &made, "h");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, UNAVAILABLE_REPLY);
	assert_false(breaker_is_open(client.breaker));
}

#define engine_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		engine_test(of_many_at_once_no_more_than_the_limit_is_admitted),
		engine_test(each_script_is_brought_along_once_when_it_is_missing),
		engine_test(a_late_check_spends_nothing),
		engine_test(each_script_carries_along_what_the_other_has_written),
		engine_test(a_number_that_stands_for_a_common_policy_is_read),
		engine_test(states_that_nobody_knows_are_carried_along),
		engine_test(any_garbage_is_as_good_as_no_state),
		engine_test(a_state_far_ahead_is_set_right),
		engine_test(an_unknown_key_is_not_made_but_the_overflow_key_decides),
		engine_test(each_limit_of_a_check_overflows_by_itself),
		engine_test(a_limit_of_many_keys_and_policies_fits_a_command),
		engine_test(a_key_of_another_type_is_a_fault_of_its_own),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/engine", tests, group_setup, group_teardown);
}
