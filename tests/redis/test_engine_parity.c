/*
 * lua/engine.lua and src/limit agree decision for decision: policies of all algorithms, mixed in
 * one limit, with shadow policies and limits, costs and leases; clocks that go forward, back and
 * far back; and two configurations side by side on the same keys. All that Redis keeps meanwhile is
 * well-formed. Token buckets alone are those of test_parity.c.
 */
#include "../lib/redis_server.h"
#include "agree.h"
#include "client.h"
#include "values.h"
#include "weir/memory.h"

enum {
	TRACES = 1150,
	CHECKS = 90, /* of a trace, all under way at once */
	FAMILIES = 3, /* limits of a trace, each in two configurations */
	POLICIES = 4,
	/* Redis lets keys expire by its own clock, a second after their state is worth nothing. */
	TRACE_MAX_US = 900000,
};

/* Times further ahead are not told exactly: a window ends a hundred years later. */
#define LATEST_US INT64_C(5500000000000000)

static struct redis_server server;
static redisContext *direct;
static struct client client;
static struct memory *memory;

/* ---- random limits ---- */

enum { TEXT_SIZE = 96 };

static const char *const names[] = { "1s", "1m", "x", "y", "z" };
static const char *const units[] = { "ms", "s", "m", "h", "d" };

static const char *
random_unit(uint64_t *random)
{
	return units[random_below(random, LENGTH_OF(units))];
}

static size_t
random_burst(uint64_t *random)
{
	return 1 + random_below(random, random_below(random, 2) == 0 ? 4 : 40);
}

/* Windows of a few lengths, so that other windows and other rates meet the same states. */
static void
random_policy(
	uint64_t *random, enum policy_algorithm algorithm, const char *name, char text[TEXT_SIZE])
{
	const char *shadow = random_below(random, 5) == 0 ? " shadow" : "";
	const size_t n = random_burst(random), window = 1 + random_below(random, 3);

	switch (algorithm) {
	case POLICY_TOKEN_BUCKET:
		(void)snprintf(text, TEXT_SIZE, "%zu/%zu%s burst %zu name %s%s",
			1 + random_below(random, 200), window, random_unit(random), n, name,
			shadow);
		break;
	case POLICY_SLIDING_WINDOW:
		/* So much in so long that doubles are rounded. */
		if (random_below(random, 8) == 0)
			(void)snprintf(text, TEXT_SIZE,
				"900000000000000/%zud sliding-window name %s%s",
				1 + random_below(random, 36525), name, shadow);
		else
			(void)snprintf(text, TEXT_SIZE, "%zu/%zu%s sliding-window name %s%s", n,
				window, random_unit(random), name, shadow);
		break;
	case POLICY_SLIDING_LOG:
		(void)snprintf(text, TEXT_SIZE, "%zu/%zu%s sliding-log name %s%s", n, window,
			random_unit(random), name, shadow);
		break;
	case POLICY_CALENDAR:
		(void)snprintf(text, TEXT_SIZE, "%zu/%s calendar name %s%s", n,
			random_below(random, 2) == 0 ? "day" : "month", name, shadow);
		break;
	case POLICY_CONCURRENT:
		(void)snprintf(text, TEXT_SIZE, "concurrent %zu lease %zu%s name %s%s",
			1 + random_below(random, 4), window, random_unit(random), name, shadow);
		break;
	}
}

/* One of an algorithm other than the token bucket among them, so that it is for the engine. */
static void
random_limits(uint64_t *random, struct made_limit made[2], bool plain_second)
{
	const size_t count = 1 + random_below(random, POLICIES),
		     first = random_below(random, LENGTH_OF(names));

	for (unsigned configuration = 0; configuration < 2; configuration++) {
		char texts[POLICIES][TEXT_SIZE];
		const char *policies[POLICIES + 1] = { NULL };
		const bool plain = plain_second && configuration == 1;

		for (size_t i = 0; i < count; i++) {
			enum policy_algorithm algorithm = made[0].policies[i].algorithm;

			if (configuration == 0 || random_below(random, 4) == 0)
				algorithm = (enum policy_algorithm)random_below(random, 5);
			if (i == 0 && algorithm == POLICY_TOKEN_BUCKET)
				algorithm = (enum policy_algorithm)(1 + random_below(random, 4));
			random_policy(random, plain ? POLICY_TOKEN_BUCKET : algorithm,
				names[(first + i) % LENGTH_OF(names)], texts[i]);
			if (plain && strstr(texts[i], " shadow") != NULL)
				*strstr(texts[i], " shadow") = '\0';
			policies[i] = texts[i];
		}
		made_limit_init(&made[configuration], "parity", policies);
		assert_true(made[configuration].limit.is_plain == plain);
	}
}

/* ---- traces ---- */

struct question {
	struct asked asked;
	struct decision expected;
};

struct trace {
	struct made_limit made[FAMILIES][2];
	char keys[FAMILIES][32];
	bool only_forward;
	struct question questions[CHECKS];
};

static void
trace_init(struct trace *trace, uint64_t *random, unsigned number, bool plain_second)
{
	trace->only_forward = plain_second;
	for (unsigned i = 0; i < FAMILIES; i++) {
		random_limits(random, trace->made[i], plain_second);
		(void)snprintf(trace->keys[i], sizeof trace->keys[i], "engine%u:user%u", number, i);
	}
}

static int64_t
random_step(uint64_t *random, int64_t interval_us)
{
	switch (random_below(random, 14)) {
	case 0:
		return -(int64_t)random_below(random, 1500000);
	case 1:
		return -(int64_t)random_below(random, (size_t)interval_us * 3);
	case 2:
		return random_below(random, 6) > 0
			? 0
			: -(int64_t)random_below(random, (size_t)(40 * US_PER_DAY));
	case 3:
		return random_below(random, 6) > 0
			? interval_us
			: (int64_t)random_below(random, (size_t)(40 * US_PER_DAY));
	case 4:
		return (int64_t)random_below(random, (size_t)interval_us * 3);
	case 5:
	case 6:
	case 7:
		return (int64_t)random_below(random, (size_t)interval_us + 1);
	case 8:
		return (int64_t)random_below(random, (size_t)interval_us / 8 + 1);
	default:
		return 0;
	}
}

static void
random_question(uint64_t *random, struct trace *trace, struct question *question, int64_t now_us)
{
	const unsigned items = 1 + (unsigned)random_below(random, FAMILIES),
		       first = (unsigned)random_below(random, FAMILIES);
	struct check *check = &question->asked.check;

	for (unsigned i = 0; i < items; i++) {
		const unsigned family = (first + i) % FAMILIES;
		const struct made_limit *made = &trace->made[family][random_below(random, 5) == 0];

		if (i == 0)
			asked_init(&question->asked, &client, made, trace->keys[family]);
		else
			asked_add(&question->asked, made, trace->keys[family]);
		check->items[i].shadow = random_below(random, 5) == 0;
	}
	const uint64_t burst = check->items[0].limit->policies[0].burst;

	if (random_below(random, 4) == 0)
		check->cost = 1 + random_below(random, burst < 1000 ? burst + 1 : burst);
	if (random_below(random, 200) == 0)
		check->cost = UINT64_C(1000000000000000);
	check->lease = 1 + random_below(random, random_below(random, 8) == 0 ? 9 : INT64_MAX >> 11);
	check->now_us = now_us;
}

static void
ask_memory(struct question *question)
{
	struct asked copy = question->asked;

	store_decide(memory_store(memory), &copy.check);
	question->expected = copy.decision;
}

static void
trace_run(struct trace *trace, uint64_t *random)
{
	static const int64_t starts[] = { 1, 1000000, IN_2026_US, IN_2026_US, IN_2100_US };
	int64_t now = starts[random_below(random, LENGTH_OF(starts))];

	for (unsigned n = 0; n < CHECKS; n++) {
		struct question *question = &trace->questions[n];

		random_question(random, trace, question, now);
		ask_memory(question);
		const struct limit *limit = question->asked.check.items[0].limit;
		const int64_t step = random_step(random,
			limit->policies[random_below(random, limit->policy_count)].interval_us);

		if ((step > 0 || !trace->only_forward) && now + step < LATEST_US)
			now = now + step < 1 ? 1 : now + step;
	}
	client.answers = 0;
	for (unsigned n = 0; n < CHECKS; n++)
		asked_send(&trace->questions[n].asked);
	run_loop_until(client.loop, client.answers == CHECKS);
}

/* ---- comparing ---- */

static void
assert_agree(const struct trace *trace, unsigned number)
{
	for (unsigned n = 0; n < CHECKS; n++) {
		const struct question *question = &trace->questions[n];

		if (decisions_agree(&question->asked.decision, &question->expected))
			continue;
		print_error("trace %u, check %u, cost %llu\n", number, n,
			(unsigned long long)question->asked.check.cost);
		print_decision("Redis ", &question->asked.decision);
		print_decision("memory", &question->expected);
		fail();
	}
}

struct tally {
	unsigned compared, clamped, admitted, rejected, shadows, values;
	unsigned violated[POLICY_CONCURRENT + 1];
};

static void
count(struct tally *tally, const struct trace *trace)
{
	tally->compared += CHECKS;
	for (unsigned n = 0; n < CHECKS; n++) {
		const struct decision *decision = &trace->questions[n].expected;

		tally->clamped += decision->clamped;
		tally->admitted += decision->verdict == VERDICT_ADMITTED;
		tally->rejected += decision->verdict == VERDICT_REJECTED;
		for (unsigned i = 0; i < decision->count; i++) {
			const struct outcome *outcome = &decision->outcomes[i];

			tally->violated[outcome->policy->algorithm] += outcome->violated;
			tally->shadows += outcome->policy->shadow && outcome->violated &&
				decision->verdict == VERDICT_ADMITTED;
		}
	}
}

static void
compare(struct tally *tally, bool plain_second, unsigned traces, uint64_t random)
{
	static struct trace trace;
	unsigned left_out = 0;

	for (unsigned number = 0; number < traces; number++) {
		const int64_t start_us = clock_monotonic_us();

		trace_init(&trace, &random, 2 * number + plain_second, plain_second);
		trace_run(&trace, &random);
		for (unsigned i = 0; i < FAMILIES; i++)
			tally->values += assert_value_is_sound(
				direct, client.settings.prefix, trace.keys[i]);
		if (clock_monotonic_us() - start_us > TRACE_MAX_US) {
			left_out++;
			continue;
		}
		assert_agree(&trace, number);
		count(tally, &trace);
	}
	print_message("%u decisions compared, %u of them admitted, %u with a clock set right; "
		      "%u values; %u of %u traces took too long\n",
		tally->compared, tally->admitted, tally->clamped, tally->values, left_out, traces);
}

static void
c_and_lua_agree_on_random_traces_of_all_algorithms(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	compare(&tally, false, TRACES, 1781);
	assert_in_range(tally.compared, 100000, UINT32_MAX);
	assert_in_range(tally.clamped, 1000, tally.compared);
	assert_in_range(tally.admitted, tally.compared / 8, tally.compared * 7 / 8);
	assert_in_range(tally.shadows, 1000, UINT32_MAX);
	assert_in_range(tally.values, TRACES, UINT32_MAX);
	for (size_t i = 0; i < LENGTH_OF(tally.violated); i++)
		assert_row(tally.violated[i] > 1000, "algorithm %zu was violated %u times", i,
			tally.violated[i]);
}

/* What lua/decide.lua cannot read it carries along, for as long as clocks go forward. */
static void
both_scripts_agree_with_c_on_the_same_keys(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	compare(&tally, true, TRACES / 4, 1202);
	assert_in_range(tally.compared, 20000, UINT32_MAX);
	assert_in_range(tally.admitted, tally.compared / 8, tally.compared * 7 / 8);
}

static int
setup(void **state)
{
	struct err err;

	(void)state;
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	client_open(&client, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&client);
	memory = memory_open_private(UINT64_C(64) * 1024 * 1024, &err);
	return memory == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	memory_close(memory);
	client_close(&client);
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c_and_lua_agree_on_random_traces_of_all_algorithms),
		cmocka_unit_test(both_scripts_agree_with_c_on_the_same_keys),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/engine_parity", tests, setup, teardown);
}
