/*
 * Codes of common forms (src/limit/form.c) and the script's idea of them (lua/value.lua): they are
 * held against each other, and what is stored so is one integer that any other
 * configuration can read.
 */
#include "../lib/redis_server.h"
#include "client.h"
#include "weir/hash.h"

#include <stdlib.h>

enum {
	CODE_MAX = 922336, /* of six digits, with room for the time behind them */
	STEP = 7, /* each count and burst of each window is in a hundred of these or two */
	SUM = 100 * STEP, /* compared in one number */
	CALL = 400 * SUM, /* and in one call */
};

static struct redis_server server;
static struct client client;
static redisContext *direct;

static const char *const policies[] = { "10/1s burst 60", "5/1m burst 20", "100/1m burst 200",
	"1000/1d", "300/5m", "5/7s burst 13", "100/1s", "1/1s", "1/1s burst 2", "10/1m burst 1",
	"60/60s burst 120", "20/10s burst 33", "3600/1h burst 100", "100000/1d burst 500",
	"10000/30d", "3/15m burst 10", "50/1d burst 99", "5/1h", "1/1d burst 31",
	"1000/1s burst 150000", "30/30s burst 150", "2/12h burst 5", "2000/7d burst 300" };

/* ---- both lists ---- */

/* lua/value.lua, then: a sum over each hundred codes from one on. */
static char *
script_text(void)
{
	static const char sums[] =
		"\nlocal forms_of = value_readers()\nlocal list = {}\n"
		"for first = ARGV[1] + 0, ARGV[1] + ARGV[2] - 1, ARGV[3] do\nlocal sum = 0\n"
		"for code = first, first + ARGV[3] - 1, ARGV[4] do\n"
		"local form = forms_of(string.format('%d', code))[1]\n"
		"if form then sum = (sum * 31 + tonumber(form.tag, 16) + form.interval * 7 + "
		"form.burst) % 2147483648 end end\n"
		"list[#list + 1] = sum end\nreturn list";
	const char *top = getenv("TOP_SRCDIR");
	char path[512], *text = malloc(65536);

	(void)snprintf(path, sizeof path, "%s/lua/value.lua", top == NULL ? "." : top);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	assert_non_null(text);
	const size_t len = fread(text, 1, 65536 - sizeof sums, file);

	assert_in_range(len, 1000, 65536 - sizeof sums - 1);
	memcpy(text + len, sums, sizeof sums);
	(void)fclose(file);
	return text;
}

static int64_t
sum_of(int first, unsigned *known)
{
	int64_t sum = 0;

	for (int code = first; code < first + SUM; code += STEP) {
		uint32_t tag;
		int64_t interval_us, capacity_us;

		if (!form_of_code(code, &tag, &interval_us, &capacity_us))
			continue;
		sum = (sum * 31 + tag + interval_us * 7 + capacity_us / interval_us) % 2147483648;
		(*known)++;
	}
	return sum;
}

static void
c_and_lua_have_the_same_codes(void **state)
{
	char *script = script_text();
	unsigned known = 0;

	(void)state;
	for (int first = -CODE_MAX; first <= CODE_MAX; first += CALL) {
		redisReply *reply = redisCommand(
			direct, "EVAL %s 0 %d %d %d %d", script, first, CALL, SUM, STEP);

		assert_non_null(reply);
		assert_row(reply->type == REDIS_REPLY_ARRAY, "%s", reply->str);
		assert_int_equal(reply->elements, CALL / SUM);
		for (int i = 0; i < CALL / SUM; i++)
			assert_row(reply->element[i]->integer == sum_of(first + SUM * i, &known),
				"codes from %d on differ", first + SUM * i);
		freeReplyObject(reply);
	}
	assert_in_range(known, 1000000 / STEP, 2 * CODE_MAX / STEP);
	free(script);
}

/* ---- what is stored ---- */

static void
a_common_form_is_one_integer(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		struct made_limit made;

		redis_ok(direct, "FLUSHALL");
		make_limit(&made, "coded", policies[i]);
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
		redisReply *reply = redis_command(direct, "OBJECT ENCODING weir:k");

		assert_row(reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "int") == 0,
			"%s is kept as %s", policies[i], reply->str);
		freeReplyObject(reply);
	}
}

/* Written as a number, read by a limit of two policies, written back as fields, read again. */
static void
any_configuration_reads_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		struct made_limit coded, both;
		struct asked asked[4];

		redis_ok(direct, "FLUSHALL");
		make_limit(&coded, "coded", policies[i]);
		make_limit(&both, "both", policies[i], "1000000/1h name another");
		const struct made_limit *readers[] = { &coded, &both, &coded, &both };
		const int64_t interval_us = coded.limit.policies[0].interval_us;
		const int64_t burst = (int64_t)coded.limit.policies[0].burst;

		client.answers = 0;
		for (unsigned j = 0; j < LENGTH_OF(asked); j++) {
			asked_init(&asked[j], &client, readers[j], "k");
			asked[j].check.now_us = IN_2026_US;
			asked_send(&asked[j]);
		}
		run_loop_until(client.loop, client.answers == LENGTH_OF(asked));
		for (unsigned j = 0; j < LENGTH_OF(asked); j++) {
			const struct outcome *outcome = &asked[j].decision.outcomes[0];
			const int64_t spent = j + 1 < burst ? j + 1 : burst;

			assert_row(outcome->reset_us == spent * interval_us, "%s, reader %u: %lld",
				policies[i], j, (long long)outcome->reset_us);
			assert_int_equal(outcome->violated, j >= burst);
		}
	}
}

/* A clock that was set back, by however much, leaves times that cannot be. */
static void
a_time_that_a_clock_has_left_is_set_right(void **state)
{
	static const int64_t days[] = { 1, 2, 30, 57, 58, 59, 80, 114, 115, 117, 200, 400, 3650,
		18262 };
	struct made_limit made;

	(void)state;
	make_limit(&made, "coded", "5/1h");
	for (size_t i = 0; i < LENGTH_OF(days); i++) {
		const int64_t ahead_us = days[i] * US_PER_DAY;

		redis_ok(direct, "SET weir:k %s%013lld PX %lld", made.limit.signature,
			(long long)((clock_wall_us() + ahead_us) % INT64_C(10000000000000)),
			(long long)ahead_us / 1000 + 1001);
		const struct decision decision = client_decide(&client, &made, "k");

		assert_row(decision.verdict == VERDICT_REJECTED && decision.clamped,
			"%lld days ahead: %s", (long long)days[i],
			decision.clamped ? "clamped" : "believed");
		assert_int_equal(decision.outcomes[0].retry_us, 720 * US_PER_S);
	}
}

/* Thirteen digits of a time say it as long as it is near: whenever that is, and also just before
 * and after they come round. */
static void
a_time_is_the_nearest_that_ends_so(void **state)
{
	static const int64_t round_us = INT64_C(10000000000000);
	const int64_t times[] = { 1, US_PER_S, round_us - 1, round_us, 3 * round_us - 2 * US_PER_S,
		IN_2026_US, 178 * round_us - 1, 178 * round_us, IN_2100_US };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(times); i++) {
		struct made_limit made;
		struct asked asked[3];

		redis_ok(direct, "FLUSHALL");
		make_limit(&made, "coded", "2/10s");
		client.answers = 0;
		for (unsigned j = 0; j < LENGTH_OF(asked); j++) {
			asked_init(&asked[j], &client, &made, "k");
			asked[j].check.now_us = times[i] + j;
			asked_send(&asked[j]);
		}
		run_loop_until(client.loop, client.answers == LENGTH_OF(asked));
		assert_int_equal(asked[1].decision.outcomes[0].reset_us, 10 * US_PER_S - 1);
		assert_int_equal(asked[2].decision.verdict, VERDICT_REJECTED);
		assert_int_equal(asked[2].decision.outcomes[0].retry_us, 5 * US_PER_S - 2);
		assert_false(asked[2].decision.clamped);
	}
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
		cmocka_unit_test(c_and_lua_have_the_same_codes),
		cmocka_unit_test(a_common_form_is_one_integer),
		cmocka_unit_test(any_configuration_reads_it),
		cmocka_unit_test(a_time_that_a_clock_has_left_is_set_right),
		cmocka_unit_test(a_time_is_the_nearest_that_ends_so),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	if (counter_thread_start(&err) != 0 || hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/codes", tests, setup, teardown);
}
