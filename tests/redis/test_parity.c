/*
 * lua/decide.lua and src/limit/decide.c agree decision for decision. The same checks, with the same
 * clock, are asked of Redis and of the memory store, on random traces: several limits and policies,
 * clocks that go forward, back and far back, and two configurations side by side on the same keys.
 */
#include "../lib/redis_server.h"
#include "agree.h"
#include "client.h"
#include "weir/memory.h"

#include <stdlib.h>

enum {
	TRACES = 1150,
	CHECKS = 90, /* of a trace, all under way at once */
	FAMILIES = 3, /* limits of a trace, each in two configurations */
	/* Redis lets keys expire by its own clock, a second after their state is worth nothing. */
	TRACE_MAX_US = 900000,
};

/* Since it does not by the clock of the trace, times behind a code must stay near it. */
#define CODED_MAX_US (12 * US_PER_DAY)

static struct redis_server server;
static struct client client;
static struct memory *memory;

/* ---- random limits ---- */

static const char *const names[] = { "1s", "1m", "1h", "1d", "x", "y", "z" };

/* Half of them of a form that has a code. */
static void
random_policy(uint64_t *random, char text[64], const char *name)
{
	static const char *const units[] = { "ms", "s", "m", "h", "d" };
	static const unsigned round[] = { 1, 2, 3, 5, 7, 10, 60, 99, 100, 150, 990, 1000, 5000 };
	const size_t count = round[random_below(random, LENGTH_OF(round))];

	if (name[0] == '1' && random_below(random, 2) == 0)
		(void)snprintf(text, 64, "%zu/%s burst %u", count, name,
			random_below(random, 2) == 0 ? (unsigned)count
						     : round[random_below(random, 7)]);
	else
		(void)snprintf(text, 64, "%zu/%zu%s burst %zu name %s",
			1 + random_below(random, 2000), 1 + random_below(random, 30),
			units[random_below(random, LENGTH_OF(units))],
			1 + random_below(random, random_below(random, 2) == 0 ? 3 : 40), name);
}

static void
random_limit(uint64_t *random, struct made_limit *made)
{
	static const unsigned counts[] = { 1, 1, 1, 2, 3, 4 };
	const size_t count = counts[random_below(random, LENGTH_OF(counts))],
		     first = random_below(random, LENGTH_OF(names));
	char texts[4][64];
	const char *policies[5] = { NULL };

	for (size_t i = 0; i < count; i++) {
		random_policy(random, texts[i], names[(first + i) % LENGTH_OF(names)]);
		policies[i] = texts[i];
	}
	made_limit_init(made, "parity", policies);
}

/* ---- traces ---- */

struct question {
	struct asked asked;
	struct decision expected;
};

struct trace {
	struct made_limit made[FAMILIES][2];
	char keys[FAMILIES][32];
	struct question questions[CHECKS];
	bool has_codes;
};

static void
trace_init(struct trace *trace, uint64_t *random, unsigned number)
{
	trace->has_codes = false;
	for (unsigned i = 0; i < FAMILIES; i++) {
		for (unsigned j = 0; j < 2; j++) {
			const struct limit *limit = &trace->made[i][j].limit;

			random_limit(random, &trace->made[i][j]);
			trace->has_codes = trace->has_codes ||
				(limit->policy_count == 1 && limit->policies[0].code != 0);
		}
		(void)snprintf(trace->keys[i], sizeof trace->keys[i], "trace%u:user%u", number, i);
	}
}

static int64_t
random_step(uint64_t *random, int64_t interval_us)
{
	switch (random_below(random, 12)) {
	case 0:
		return -(int64_t)random_below(random, 1000000);
	case 1:
		return -(int64_t)random_below(random, (size_t)interval_us * 3);
	case 2:
		return random_below(random, 6) > 0 ? 0 : -(int64_t)random_below(random, 600000000);
	case 3:
		return random_below(random, 6) > 0
			? interval_us
			: -(int64_t)random_below(random, 400 * US_PER_DAY);
	case 4:
		return (int64_t)random_below(random, (size_t)interval_us * 40);
	case 5:
	case 6:
	case 7:
		return (int64_t)random_below(random, (size_t)interval_us + 1);
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
		check->cost = 1 + random_below(random, burst + burst / 4 + 1);
	if (random_below(random, 200) == 0)
		check->cost = UINT64_C(1000000000000000);
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
	const int64_t start = starts[random_below(random, LENGTH_OF(starts))];
	int64_t now = start;

	for (unsigned n = 0; n < CHECKS; n++) {
		struct question *question = &trace->questions[n];

		random_question(random, trace, question, now);
		ask_memory(question);
		const struct limit *limit = question->asked.check.items[0].limit;
		const int64_t step = random_step(random,
			limit->policies[random_below(random, limit->policy_count)].interval_us);

		now = now + step < 1 ? 1 : now + step;
		if (trace->has_codes && llabs(now - start) > CODED_MAX_US)
			now = start;
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

static void
c_and_lua_agree_on_random_traces(void **state)
{
	static struct trace trace;
	uint64_t random = 1202;
	unsigned compared = 0, clamped = 0, admitted = 0, left_out = 0;

	(void)state;
	for (unsigned number = 0; number < TRACES; number++) {
		const int64_t start_us = clock_monotonic_us();

		trace_init(&trace, &random, number);
		trace_run(&trace, &random);
		if (clock_monotonic_us() - start_us > TRACE_MAX_US) {
			left_out++;
			continue;
		}
		assert_agree(&trace, number);
		compared += CHECKS;
		for (unsigned n = 0; n < CHECKS; n++) {
			clamped += trace.questions[n].expected.clamped;
			admitted += trace.questions[n].expected.verdict == VERDICT_ADMITTED;
		}
	}
	print_message("%u decisions compared, %u of them admitted, %u with a clock set right; "
		      "%u of %u traces took too long\n",
		compared, admitted, clamped, left_out, TRACES);
	assert_in_range(compared, 100000, UINT32_MAX);
	assert_in_range(clamped, 1000, compared);
	assert_in_range(admitted, compared / 5, compared * 4 / 5);
}

static int
setup(void **state)
{
	struct err err;

	(void)state;
	redis_server_open(&server, NULL);
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
	redis_server_close(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c_and_lua_agree_on_random_traces),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/parity", tests, setup, teardown);
}
