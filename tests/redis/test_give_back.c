/*
 * lua/give_back.lua over a real server: what a request has spent is as if it had never come, or a
 * little of it stays spent; never more comes back than that.
 */
#include "client.h"
#include "lua_scripts.h"
#include "one_server.h"
#include "values.h"
#include "weir/algorithm.h"
#include "weir/log.h"

#include <stdio.h>

enum { ARGUMENTS_MAX = 10 + 2 * LIMIT_POLICIES_MAX, NUMBER_SIZE = 24 };

static struct client client;

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
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

/* What one request has spent. */
struct taken {
	int64_t now_us;
	uint64_t cost;
	struct decision decision;
	bool is_open; /* not given back yet */
};

static struct decision
decide_at(const struct made_limit *made, const char *key, int64_t now_us, uint64_t cost)
{
	struct asked asked;

	asked_init(&asked, &client, made, key);
	asked.check.now_us = now_us;
	asked.check.cost = cost;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_not_equal(asked.decision.verdict, VERDICT_UNAVAILABLE);
	return asked.decision;
}

static struct taken
take(const struct made_limit *made, const char *key, int64_t now_us, uint64_t cost)
{
	struct taken taken = { .now_us = now_us, .cost = cost };

	taken.decision = decide_at(made, key, now_us, cost);
	taken.is_open = taken.decision.verdict == VERDICT_ADMITTED;
	return taken;
}

/* Returns the script's status. */
static long long
give_back(const struct made_limit *made, const char *key, int64_t now_us, const struct taken *taken)
{
	const struct limit *limit = &made->limit;
	char numbers[ARGUMENTS_MAX][NUMBER_SIZE], name[64], second[72];
	const char *words[ARGUMENTS_MAX] = { "EVAL" };
	size_t lengths[ARGUMENTS_MAX];
	int count = 5;

	(void)snprintf(name, sizeof name, "weir:%s", key);
	words[1] = lua_give_back.text;
	(void)snprintf(second, sizeof second, "%s#", name);
	words[2] = "2";
	words[3] = name;
	words[4] = second;
#define ADD_NUMBER(n)                                                                              \
	((void)snprintf(numbers[count], NUMBER_SIZE, "%lld", (long long)(n)),                      \
		words[count] = numbers[count], count++)
	ADD_NUMBER(now_us);
	ADD_NUMBER(taken->now_us);
	ADD_NUMBER(taken->cost);
	ADD_NUMBER(limit->policy_count);
	words[count++] = limit->signature;
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct outcome *outcome = &taken->decision.outcomes[i];

		words[count++] = algorithms[limit->policies[i].algorithm]->name;
		ADD_NUMBER(outcome->violated ? 0 : taken->now_us + outcome->reset_us);
	}
#undef ADD_NUMBER
	for (int i = 0; i < count; i++)
		lengths[i] = i == 1 ? lua_give_back.len : strlen(words[i]);
	redisReply *reply = redisCommandArgv(direct, count, words, lengths);

	assert_non_null(reply);
	assert_row(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2, "%s",
		reply->str == NULL ? "no array" : reply->str);
	const long long status = reply->element[0]->integer;

	freeReplyObject(reply);
	return status;
}

/* ---- alone ---- */

static const char *const forms[][3] = {
	{ "5/1m", NULL },
	{ "7/1h burst 20", NULL },
	{ "20/1m sliding-window", NULL },
	{ "20/1m sliding-log", NULL },
	{ "20/day calendar", NULL },
	{ "20/1m burst 9", "30/1h sliding-log", NULL },
	{ "20/1m sliding-window", "9/day calendar name quota", NULL },
};

/* Of everyone the same number is left as of one whose bucket it never touched. */
static void
assert_as_if_never(const char *const *policies, uint64_t before)
{
	struct made_limit made;
	const int64_t now = IN_2026_US;

	redis_ok(direct, "FLUSHALL");
	made_limit_init(&made, "l", policies);
	for (uint64_t i = 0; i < before; i++) {
		(void)decide_at(&made, "touched", now, 1);
		(void)decide_at(&made, "untouched", now, 1);
	}
	const struct taken taken = take(&made, "touched", now + 1000, 2);

	assert_true(taken.is_open);
	assert_int_equal(give_back(&made, "touched", now + 2000, &taken), 1);
	(void)assert_value_is_sound(direct, client.settings.prefix, "touched");
	const struct decision touched = decide_at(&made, "touched", now + 3000, 1);
	const struct decision untouched = decide_at(&made, "untouched", now + 3000, 1);

	for (unsigned i = 0; i < touched.count; i++)
		assert_row(touched.outcomes[i].remaining == untouched.outcomes[i].remaining &&
				touched.outcomes[i].reset_us == untouched.outcomes[i].reset_us,
			"%s after %llu: %llu and %llu left", policies[i],
			(unsigned long long)before,
			(unsigned long long)touched.outcomes[i].remaining,
			(unsigned long long)untouched.outcomes[i].remaining);
}

static void
what_nobody_else_has_touched_is_as_if_nobody_had_come(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		assert_as_if_never(forms[i], 0);
		assert_as_if_never(forms[i], 2);
	}
}

/* A key without expiry would stay for ever. */
static void
the_bucket_expires_as_before(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m");
	(void)take(&made, "k", IN_2026_US, 1);
	const struct taken taken = take(&made, "k", IN_2026_US, 1);

	(void)give_back(&made, "k", IN_2026_US, &taken);
	assert_in_range(redis_number(direct, "PTTL weir:k"), 1, 60000);
}

static void
what_is_not_there_any_more_stays_away(void **state)
{
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		made_limit_init(&made, "l", forms[i]);
		const struct taken taken = take(&made, "k", IN_2026_US, 1);

		assert_int_equal(redis_number(direct, "DEL weir:k"), 1);
		assert_int_equal(give_back(&made, "k", IN_2026_US, &taken), 0);
		assert_int_equal(redis_number(direct, "EXISTS weir:k"), 0);
	}
}

/* Or of another kind. */
static void
another_configurations_bucket_is_left_alone(void **state)
{
	struct made_limit made, other;

	(void)state;
	make_limit(&made, "l", "5/1m burst 50 name x");
	make_limit(&other, "l", "5/1h burst 50 name x");
	const struct taken taken = take(&made, "k", IN_2026_US, 2);

	(void)decide_at(&other, "k", IN_2026_US, 1);
	const uint64_t left = decide_at(&other, "k", IN_2026_US, 1).outcomes[0].remaining;

	(void)give_back(&made, "k", IN_2026_US, &taken);
	assert_int_equal(decide_at(&other, "k", IN_2026_US, 1).outcomes[0].remaining, left - 1);
}

/* Beside each form, each other: its own count is as if nobody else had been there. */
static void
what_others_have_spent_under_the_key_stays_spent(void **state)
{
	static const char *const others[] = { "9/1d", "9/1h name h", "9/1h sliding-window name h",
		"9/1h sliding-log name h", "9/month calendar name h", "concurrent 9 name h" };

	(void)state;
	for (size_t n = 0; n < LENGTH_OF(forms) * LENGTH_OF(others); n++) {
		const char *policy = others[n % LENGTH_OF(others)];
		struct made_limit made, other;

		redis_ok(direct, "FLUSHALL");
		made_limit_init(&made, "l", forms[n / LENGTH_OF(others)]);
		make_limit(&other, "l", policy);
		for (unsigned i = 0; i < 3; i++) {
			struct asked asked;

			asked_init(&asked, &client, &other, "k");
			asked.check.now_us = IN_2026_US;
			asked.check.lease = 100 + i;
			asked_send(&asked);
			asked_wait(&asked);
			assert_row(asked.decision.outcomes[0].remaining == 8 - i,
				"%s was given back by %s", policy, made.limit.signature);
			const struct taken taken = take(&made, "k", IN_2026_US, 1);

			assert_true(taken.is_open);
			assert_int_equal(give_back(&made, "k", IN_2026_US, &taken), 1);
			(void)assert_value_is_sound(direct, client.settings.prefix, "k");
		}
	}
}

/* ---- among others ---- */

enum { ROUNDS = 30, STEPS = 120, OPEN_MAX = 4 };

/*
 * Of two buckets one also has requests that come and are taken back, at any time later. Whoever it
 * admits is asked of the other one too, which must admit him: it would not if more had come back
 * than was taken.
 */
struct pair {
	struct made_limit made;
	uint64_t random;
	int64_t now_us, window_us;
	struct taken open[OPEN_MAX];
	unsigned others, backs;
};

static int64_t
some_time(struct pair *pair)
{
	static const int64_t parts[] = { 1000000, 1000, 40, 10, 3 };
	const int64_t most = pair->window_us / parts[random_below(&pair->random, LENGTH_OF(parts))];

	return (int64_t)random_below(&pair->random, (size_t)most + 1);
}

static void
somebody_comes(struct pair *pair)
{
	const uint64_t cost = 1 + random_below(&pair->random, 3);

	if (decide_at(&pair->made, "touched", pair->now_us, cost).verdict != VERDICT_ADMITTED)
		return;
	pair->others++;
	assert_row(
		decide_at(&pair->made, "untouched", pair->now_us, cost).verdict == VERDICT_ADMITTED,
		"%s seed %llu: more came back than was taken", pair->made.limit.signature,
		(unsigned long long)pair->random);
}

static void
step(struct pair *pair)
{
	struct taken *taken = &pair->open[random_below(&pair->random, OPEN_MAX)];

	pair->now_us += some_time(pair);
	if (random_below(&pair->random, 2) == 0) {
		somebody_comes(pair);
	} else if (taken->is_open) {
		(void)give_back(&pair->made, "touched", pair->now_us, taken);
		taken->is_open = false;
		pair->backs++;
	} else {
		*taken = take(
			&pair->made, "touched", pair->now_us, 1 + random_below(&pair->random, 3));
	}
}

static void
play(const char *const *policies, uint64_t seed, struct pair *pair)
{
	memset(pair->open, 0, sizeof pair->open);
	redis_ok(direct, "FLUSHALL");
	made_limit_init(&pair->made, "l", policies);
	pair->random = seed;
	pair->now_us = IN_2026_US;
	pair->window_us = pair->made.limit.policies[0].window_us;
	for (unsigned i = 0; i < STEPS; i++)
		step(pair);
	(void)assert_value_is_sound(direct, client.settings.prefix, "touched");
}

static void
no_schedule_gives_more_back_than_was_taken(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(forms); i++) {
		struct pair pair = { .others = 0 };

		for (uint64_t round = 1; round <= ROUNDS; round++)
			play(forms[i], round, &pair);
		assert_row(pair.others > 3 * ROUNDS && pair.backs > 3 * ROUNDS,
			"%s: %u others, %u came back", forms[i][0], pair.others, pair.backs);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_nobody_else_has_touched_is_as_if_nobody_had_come),
		TEST(the_bucket_expires_as_before),
		TEST(what_is_not_there_any_more_stays_away),
		TEST(another_configurations_bucket_is_left_alone),
		TEST(what_others_have_spent_under_the_key_stays_spent),
		TEST(no_schedule_gives_more_back_than_was_taken),
	};

	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/give_back", tests, group_setup, group_teardown);
}
