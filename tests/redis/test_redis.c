/*
 * redis.h over a real server: what stands in Redis afterwards, and for how long; keys that others
 * have made. Login is in test_login.c, outages in test_outage.c, decisions in test_parity.c.
 */
#include "client.h"
#include "one_server.h"
#include "weir/log.h"

#include <stdio.h>

static struct client client;
static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	make_limit(&made, "l", "5/1h");
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

static void
assert_admitted(const char *key, uint64_t remaining)
{
	const struct decision decision = client_decide(&client, &made, key);

	assert_row(decision.verdict == VERDICT_ADMITTED, "verdict %d, why %d", decision.verdict,
		decision.why);
	assert_int_equal(decision.outcomes[0].remaining, remaining);
}

static char *
value_of(const char *key)
{
	redisReply *reply = redis_command(direct, "GET %s", key);
	char *text;

	assert_int_equal(reply->type, REDIS_REPLY_STRING);
	text = strdup(reply->str);
	freeReplyObject(reply);
	return text;
}

/* ---- what is stored ---- */

static void
a_decision_is_kept_under_prefix_and_key(void **state)
{
	(void)state;
	assert_admitted("l:user=alice", 4);
	assert_admitted("l:user=alice", 3);
	assert_admitted("l:user=bob", 4);
	assert_int_equal(redis_number(direct, "EXISTS weir:l:user=alice weir:l:user=bob"), 2);
	/* These, the probe's, and that of the first check. */
	assert_in_range(redis_number(direct, "DBSIZE"), 2, 4);
	client_close(&client);
	client_open(&client,
		&(const struct redis_settings){ .server = server.address, .prefix = "other/" });
	assert_admitted("l:user=alice", 4);
	assert_int_equal(redis_number(direct, "EXISTS other/l:user=alice"), 1);
}

static void
a_policy_of_common_form_is_one_number(void **state)
{
	(void)state;
	assert_admitted("k", 4);
	char *value = value_of("weir:k");
	redisReply *encoding = redis_command(direct, "OBJECT ENCODING weir:k");

	assert_int_equal(strspn(value, "-0123456789"), strlen(value));
	assert_string_equal(encoding->str, "int");
	freeReplyObject(encoding);
	free(value);
}

static void
two_gateways_share_a_bucket(void **state)
{
	struct client other;

	(void)state;
	client_open(&other, &client.settings);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
		assert_int_equal(client_decide(&other, &made, "k").verdict, VERDICT_ADMITTED);
	}
	assert_admitted("k", 0);
	assert_int_equal(client_decide(&other, &made, "k").verdict, VERDICT_REJECTED);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_REJECTED);
	client_close(&other);
}

static void
of_many_at_once_exactly_the_limit_is_admitted(void **state)
{
	enum { MANY = 2000 };
	static struct asked asked[MANY];
	struct client other;
	unsigned admitted = 0;

	(void)state;
	make_limit(&made, "l", "100/1h");
	client_open(&other, &client.settings);
	client_wait_until_ready(&other);
	client.answers = other.answers = 0;
	for (unsigned i = 0; i < MANY; i++) {
		asked_init(&asked[i], i % 2 == 0 ? &client : &other, &made, "k");
		asked_send(&asked[i]);
	}
	run_loop_until(client.loop, client.answers == MANY / 2);
	run_loop_until(other.loop, other.answers == MANY / 2);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_not_equal(asked[i].decision.verdict, VERDICT_UNAVAILABLE);
		admitted += asked[i].decision.verdict == VERDICT_ADMITTED;
	}
	assert_int_equal(admitted, 100);
	client_close(&other);
}

static void
nothing_is_stored_for_what_is_rejected(void **state)
{
	struct made_limit never;
	struct asked asked;

	(void)state;
	make_limit(&never, "n", "1/1h");
	(void)client_decide(&client, &never, "full");
	asked_init(&asked, &client, &made, "fresh");
	asked_add(&asked, &never, "full");
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_REJECTED);
	assert_int_equal(redis_number(direct, "EXISTS weir:fresh"), 0);
}

/* ---- how long ---- */

/* Every key lives until its buckets are full again, and hardly longer. */
static void
every_key_expires_and_not_before_it_is_worth_nothing(void **state)
{
	static const char *const policies[] = { "10/1s", "1/1s burst 100", "1000/1ms", "5/1m",
		"3/1d burst 1", "1/36525d", "1000/1h burst 5" };
	struct made_limit limits[LENGTH_OF(policies)], both;
	uint64_t random = 12;

	(void)state;
	make_limit(&both, "both", "5/1s", "7/1h", "1/1m burst 3");
	for (unsigned i = 0; i < LENGTH_OF(policies); i++)
		make_limit(&limits[i], "l", policies[i]);
	for (unsigned round = 0; round < 400; round++) {
		const unsigned i = (unsigned)random_below(&random, LENGTH_OF(policies) + 1);
		const struct made_limit *limit = i < LENGTH_OF(policies) ? &limits[i] : &both;
		char key[32];
		int64_t full_us = 0;

		(void)snprintf(key, sizeof key, "k%u:%u", i, (unsigned)random_below(&random, 5));
		struct decision decision = client_decide(&client, limit, key);

		for (unsigned j = 0; j < decision.count; j++) {
			if (decision.outcomes[j].reset_us > full_us)
				full_us = decision.outcomes[j].reset_us;
		}
		if (decision.verdict != VERDICT_ADMITTED)
			continue;
		/* Its buckets are full at this time by Redis's clock, whatever has passed since. */
		redisReply *expiry = redis_command(direct, "PEXPIRETIME weir:%s", key);
		const int64_t life_us = expiry->integer * US_PER_MS - decision.now_us;

		if (expiry->type == REDIS_REPLY_INTEGER)
			assert_in_range(life_us, full_us, full_us + 2 * US_PER_S);
		freeReplyObject(expiry);
		assert_int_not_equal(redis_number(direct, "PTTL weir:%s", key), -1);
	}
}

static void
no_key_lives_for_ever(void **state)
{
	(void)state;
	assert_admitted("a", 4);
	redis_ok(direct, "SET weir:b 1");
	redis_ok(direct, "SET weir:c hello");
	assert_admitted("b", 4);
	assert_admitted("c", 4);
	redisReply *keys = redis_command(direct, "KEYS *");

	assert_in_range(keys->elements, 3, 10);
	for (size_t i = 0; i < (size_t)keys->elements; i++)
		assert_row(redis_number(direct, "PTTL %s", keys->element[i]->str) != -1,
			"%s has no expiry", keys->element[i]->str);
	freeReplyObject(keys);
}

/* ---- keys that others have made ---- */

static void
a_key_without_expiry_is_given_one(void **state)
{
	(void)state;
	assert_admitted("k", 4);
	assert_int_equal(redis_number(direct, "PERSIST weir:k"), 1);
	assert_int_equal(redis_number(direct, "PTTL weir:k"), -1);
	assert_admitted("k", 3);
	assert_in_range(redis_number(direct, "PTTL weir:k"), 1, 24 * 720 * 1000 + 2000);
}

static void
assert_as_good_as_none(struct slice value)
{
	freeReplyObject(redis_command(direct, "DEL weir:k"));
	redisReply *reply = redisCommand(direct, "SET weir:k %b", value.ptr, value.len);

	assert_int_equal(reply->type, REDIS_REPLY_STATUS);
	freeReplyObject(reply);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_row(decision.verdict == VERDICT_ADMITTED && decision.outcomes[0].remaining == 4,
		"\"%.*s\" with %s: verdict %d, why %d", (int)value.len, value.ptr,
		made.limit.signature, decision.verdict, decision.why);
	assert_row(redis_number(direct, "PTTL weir:k") > 0, "\"%.*s\"", (int)value.len, value.ptr);
}

static void
a_key_of_garbage_is_as_good_as_none(void **state)
{
	static const char *const garbage[] = { "", "0", "1", "hello", "-1", "1.5",
		"99999999999999999999", "9999991781000000123", "-9999991781000000123",
		"-0000000000000000", "9999999999999999999", "00000000000000000",
		"1 7343d903:720000000:zzz", "7343d903:720000000:5=", "7343d903:720000000:5=abc",
		"7343d903:720000000:5=,", "7343d903:0:0=1781000000123456",
		"7343d903:0:5=9999999999999999", "7343d903:720000000:5=99999999999999999999",
		"7343d903:720000000:5=1e15", "7343d903:99999999999999999999:5=1781000000123456",
		"7343d903:720000000:99999999999999999999=1781000000123456", "=", ":::=,,,",
		"=1,2,3", "7343d903:720000000:5 7343d903:720000000:5=", "x:1:1=1", ":=" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(garbage); i++) {
		make_limit(&made, "l", "5/1h");
		assert_as_good_as_none(slice_of(garbage[i]));
		make_limit(&made, "l", "5/1h name x", "9/1d");
		assert_as_good_as_none(slice_of(garbage[i]));
	}
	assert_false(breaker_is_open(client.breaker));
}

/* What begins like ours is read like ours. */
static void
a_key_of_garbage_behind_our_signature_is_as_good_as_none(void **state)
{
	static const char *const states[] = { "abcdefghijklm", "+000000000001", "0x12345678901",
		"1e+1000000000", "nan(nan(nan(n", "           12", "12           ", "-000000000001",
		"inf          ", "", "1", "abcdefghijklmnop", "abcdefghijklmnop,abcdefghijklmnop",
		"0000000000000000,abcdefghijklmnop", "abcdefghijklmnop,0000000000000000",
		"+000000000000001", "0x12345678901234", "1e+1000000000000", "nan(nan(nan(nan(",
		"              12", "12              ", "1e+1000000000000,nan(nan(nan(nan(",
		"-000000000000001", "inf             ,             inf", "-1,-1", ",", "1,1",
		"0000000000000000", "0000000000000000,0000000000000000,0000000000000000" };
	static const char *const policies[][3] = { { "5/1h" }, { "5/1h burst 5 name x" },
		{ "5/1h name x", "9/1d" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(states); i++) {
		for (size_t j = 0; j < LENGTH_OF(policies); j++) {
			char value[LIMIT_SIGNATURE_SIZE + 100];

			made_limit_init(&made, "l", policies[j]);
			(void)snprintf(
				value, sizeof value, "%s%s", made.limit.signature, states[i]);
			assert_as_good_as_none(slice_of(value));
		}
	}
	assert_false(breaker_is_open(client.breaker));
}

/* Far ahead, in every form: a clock, and no client is locked out for longer than a refill. */
static void
a_key_far_ahead_is_set_right(void **state)
{
	char coded[LIMIT_SIGNATURE_SIZE + 16];
	const char *const ahead[] = { coded, "7343d903:720000000:5=9999999999999999",
		"7343d903:3600000000:1=9999999999999999" };

	(void)state;
	/* Of the time there are 13 digits behind a code. */
	(void)snprintf(coded, sizeof coded, "%s%013lld", made.limit.signature,
		(long long)((clock_wall_us() + 50 * US_PER_DAY) % INT64_C(10000000000000)));
	for (size_t i = 0; i < LENGTH_OF(ahead); i++) {
		redis_ok(direct, "SET weir:k %s", ahead[i]);
		struct decision decision = client_decide(&client, &made, "k");

		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		assert_true(decision.clamped);
		assert_int_equal(decision.outcomes[0].retry_us, 720 * US_PER_S);
		decision = client_decide(&client, &made, "k");
		assert_false(decision.clamped);
		assert_in_range(redis_number(direct, "PTTL weir:k"), 3599000, 3602000);
	}
}

static void
a_key_of_another_type_is_a_fault_of_its_own(void **state)
{
	(void)state;
	assert_int_equal(redis_number(direct, "HSET weir:h a b"), 1);
	for (unsigned i = 0; i < 3; i++) {
		const struct decision decision = client_decide(&client, &made, "h");

		assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
		assert_int_equal(decision.why, UNAVAILABLE_REPLY);
	}
	/* Nor does it spend on the other keys of a check. */
	struct asked asked;

	asked_init(&asked, &client, &made, "k");
	asked_add(&asked, &made, "h");
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_UNAVAILABLE);
	assert_admitted("k", 4);
	assert_false(breaker_is_open(client.breaker));
	freeReplyObject(redis_command(direct, "DEL weir:h"));
	assert_admitted("h", 4);
}

/* As a later version may write them, beside ours. */
static void
states_of_other_algorithms_are_carried_along(void **state)
{
	(void)state;
	make_limit(&made, "l", "5/1h name own");
	char tag[16];

	(void)snprintf(tag, sizeof tag, "%08x", made.limit.policies[0].tag);
	redis_ok(direct, "SET weir:k abcdef01:60000000:9=12/3/1781 PX 100000");
	assert_admitted("k", 4);
	assert_admitted("k", 3);
	char *value = value_of("weir:k");

	assert_row(strstr(value, "abcdef01:60000000:9") != NULL &&
			strstr(value, "12/3/1781") != NULL && strstr(value, tag) != NULL,
		"%s", value);
	free(value);
}

/* ---- the largest ---- */

static void
a_limit_of_many_keys_and_policies_fits_a_command(void **state)
{
	struct made_limit many[CHECK_LIMITS_MAX];
	struct asked asked;
	char keys[CHECK_LIMITS_MAX][200];

	(void)state;
	for (unsigned i = 0; i < CHECK_LIMITS_MAX; i++) {
		make_limit(&many[i], "l", "999999999999999/1ms burst 999999999999999 name a",
			"999999999999999/1ms burst 999999999999998 name b");
		memset(keys[i], 'k', sizeof keys[i] - 1);
		keys[i][0] = (char)('a' + i);
		keys[i][sizeof keys[i] - 1] = '\0';
		if (i == 0)
			asked_init(&asked, &client, &many[i], keys[i]);
		else
			asked_add(&asked, &many[i], keys[i]);
	}
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(asked.decision.count, CHECK_POLICIES_MAX);
	assert_int_equal(asked.decision.outcomes[15].remaining, UINT64_C(999999999999997));
}

#define redis_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		redis_test(a_decision_is_kept_under_prefix_and_key),
		redis_test(a_policy_of_common_form_is_one_number),
		redis_test(two_gateways_share_a_bucket),
		redis_test(of_many_at_once_exactly_the_limit_is_admitted),
		redis_test(nothing_is_stored_for_what_is_rejected),
		redis_test(every_key_expires_and_not_before_it_is_worth_nothing),
		redis_test(no_key_lives_for_ever),
		redis_test(a_key_without_expiry_is_given_one),
		redis_test(a_key_of_garbage_is_as_good_as_none),
		redis_test(a_key_of_garbage_behind_our_signature_is_as_good_as_none),
		redis_test(a_key_far_ahead_is_set_right),
		redis_test(a_key_of_another_type_is_a_fault_of_its_own),
		redis_test(states_of_other_algorithms_are_carried_along),
		redis_test(a_limit_of_many_keys_and_policies_fits_a_command),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/redis", tests, group_setup, group_teardown);
}
