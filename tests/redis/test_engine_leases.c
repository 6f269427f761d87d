/*
 * Leases over lua/engine.lua: given back and prolonged beside what other configurations have
 * written under the same key, as the memory store does it.
 */
#include "../limit/asking.h"
#include "agree.h"
#include "one_server.h"
#include "run_engine.h"
#include "values.h"

#include <stdio.h>

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	return 0;
}

/* ---- as the memory store does it ---- */

enum { TRACES = 250, STEPS = 70, HELD_MAX = 6, POLICIES = 3 };

/* Of some names, so that two configurations have some in common. */
static const char *const policies[] = { "concurrent 2 lease 10s name a",
	"concurrent 1 lease 500ms name a", "concurrent 3 lease 10m name a",
	"concurrent 1 lease 1m name b", "concurrent 2 lease 2s name b shadow", "3/1h name h",
	"3/1h", "5/1m sliding-log name s", "4/1h sliding-window name w", "6/day calendar name d" };

/* " name x", or nothing. */
static const char *
name_of(const char *policy)
{
	const char *name = strstr(policy, " name ");

	return name == NULL ? "" : name;
}

/* Two configurations, a lease of each that may be held, and the bucket as the C code has it. */
struct trace {
	struct made_limit made[2];
	struct kept kept;
	uint64_t random, leases[HELD_MAX];
	int64_t now_us;
	unsigned given_back, prolonged, alone;
};

static void
random_limit(struct trace *trace, struct made_limit *made)
{
	const char *chosen[POLICIES + 1] = { NULL };
	const size_t wanted = 1 + random_below(&trace->random, POLICIES);

	for (size_t count = 0; count < wanted;) {
		const char *policy = policies[random_below(&trace->random, LENGTH_OF(policies))];
		bool is_new = true;

		for (size_t i = 0; i < count; i++)
			is_new = is_new && strncmp(name_of(chosen[i]), name_of(policy), 7) != 0;
		if (is_new)
			chosen[count++] = policy;
	}
	made_limit_init(made, "l", chosen);
}

static struct engine_reply
run(const struct trace *trace, const struct limit *limit, int64_t cost, uint64_t lease)
{
	return engine_run(direct,
		&(const struct engine_call){ .limit = limit,
			.key = "k",
			.now_us = trace->now_us,
			.cost = cost,
			.lease = lease });
}

static struct decision
decision_of(const struct engine_reply *reply, const struct limit *limit)
{
	const struct check_item item = { .limit = limit };
	struct decision decision = {
		.verdict = (reply->numbers[0] & 1) != 0 ? VERDICT_ADMITTED : VERDICT_REJECTED,
		.clamped = (reply->numbers[0] & 2) != 0,
		.now_us = reply->numbers[1],
		.count = limit->policy_count,
	};

	assert_int_equal(reply->count, 3 + 3 * limit->policy_count);
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const int64_t *numbers = &reply->numbers[3 + 3 * i];

		outcome_set_numbers(&decision.outcomes[i], &item, &limit->policies[i], numbers[0],
			numbers[1], numbers[2]);
	}
	return decision;
}

static void
somebody_asks(struct trace *trace, const struct limit *limit)
{
	uint64_t *lease = &trace->leases[random_below(&trace->random, HELD_MAX)];

	*lease = 1 + random_below(&trace->random, INT64_MAX >> 11);
	const struct engine_reply reply = run(trace, limit, 1, *lease);
	const struct decision told = decision_of(&reply, limit);
	const struct decision expected = ask_for(&trace->kept, limit, 1, *lease, trace->now_us);

	if (decisions_agree(&told, &expected))
		return;
	print_decision("Redis ", &told);
	print_decision("memory", &expected);
	fail();
}

static bool
has_tag(const struct limit *limit, uint32_t tag)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].tag == tag)
			return true;
	}
	return false;
}

/* All that the limit does not know is as it was. */
static void
assert_others_stay(const struct kept *before, const struct kept *after, const struct limit *limit)
{
	const struct bucket old = kept_bucket(before), new = kept_bucket(after);
	unsigned found = 0, others = 0;

	for (unsigned i = 0; i < old.count; i++) {
		others += !has_tag(limit, old.fields[i].tag);
		for (unsigned j = 0; j < new.count && !has_tag(limit, old.fields[i].tag); j++) {
			const struct bucket_field *a = &old.fields[i], *b = &new.fields[j];

			found += a->tag == b->tag && a->count == b->count &&
				a->interval_us == b->interval_us &&
				memcmp(a->words, b->words, a->count * sizeof a->words[0]) == 0;
		}
	}
	assert_int_equal(found, others);
}

static void
a_lease_is_changed(struct trace *trace, const struct limit *limit)
{
	static struct kept before;
	const uint64_t lease = trace->leases[random_below(&trace->random, HELD_MAX)];
	const bool renews = random_below(&trace->random, 3) == 0;

	kept_copy(&before, &trace->kept);
	const bool is_changed = renews ? kept_renew(&trace->kept, limit, lease, trace->now_us)
				       : kept_release(&trace->kept, limit, lease);

	(void)run(trace, limit, renews ? -1 : 0, lease);
	assert_others_stay(&before, &trace->kept, limit);
	trace->given_back += is_changed && !renews;
	trace->prolonged += is_changed && renews;
	trace->alone += is_changed && limit->policy_count == 1 && kept_bucket(&before).count > 1;
}

/* Only forward: when a lease is given back, Redis also forgets what is over, and memory later. */
static int64_t
random_step(uint64_t *random)
{
	switch (random_below(random, 10)) {
	case 0:
		return (int64_t)random_below(random, 3600 * (size_t)US_PER_S);
	case 1:
	case 2:
	case 3:
		return (int64_t)random_below(random, 2 * (size_t)US_PER_S);
	default:
		return (int64_t)random_below(random, 1000);
	}
}

static void
play(struct trace *trace, uint64_t seed)
{
	redis_ok(direct, "FLUSHALL");
	trace->random = seed;
	trace->kept.len = 0;
	trace->now_us = IN_2026_US;
	memset(trace->leases, 0, sizeof trace->leases);
	for (unsigned i = 0; i < LENGTH_OF(trace->made); i++)
		random_limit(trace, &trace->made[i]);
	for (unsigned n = 0; n < STEPS; n++) {
		const struct limit *limit = &trace->made[random_below(&trace->random, 2)].limit;

		if (random_below(&trace->random, 2) == 0)
			somebody_asks(trace, limit);
		else
			a_lease_is_changed(trace, limit);
		trace->now_us += random_step(&trace->random);
	}
	redisReply *reply = redis_command(direct, "GET k");

	assert_true(reply->type == REDIS_REPLY_NIL || value_is_well_formed(reply->str));
	freeReplyObject(reply);
}

static void
a_lease_is_given_back_and_prolonged_as_in_memory_whoever_else_writes_there(void **state)
{
	static struct trace trace;

	(void)state;
	for (uint64_t seed = 1; seed <= TRACES; seed++)
		play(&trace, seed);
	assert_in_range(trace.given_back, TRACES, UINT32_MAX);
	assert_in_range(trace.prolonged, TRACES / 4, UINT32_MAX);
	/* By a limit that has nothing else, beside what others have. */
	assert_in_range(trace.alone, TRACES / 10, UINT32_MAX);
}

/* ---- what others have made ---- */

/* In the middle, where nobody looks. It is over when the last lease is. */
static void
damaged_leases_cost_counts_and_nothing_else(void **state)
{
	static const char *const damaged[] = { "xxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx",
		"0000000000000002-             nan", "0000000000000002-            -inf",
		"0000000000000002-             inf", "0000000000000002-9999999999999999",
		"0000000000000002-0000000000000000", ";;;;;;;;;;;;;;;;-;;;;;;;;;;;;;;;;",
		"0000000000000001-1781000010000000" };
	struct trace trace = { .now_us = IN_2026_US };
	char value[512];

	(void)state;
	make_limit(&trace.made[0], "l", "concurrent 4 lease 1m");
	const struct limit *limit = &trace.made[0].limit;

	for (size_t i = 0; i < LENGTH_OF(damaged); i++) {
		(void)snprintf(value, sizeof value,
			"%s0000000000000001-1781000010000000;%s;%s;0000000000000003-"
			"1781000020000000",
			limit->signature, damaged[i], damaged[i]);
		redisReply *reply = redisCommand(direct, "SET k %s", value);

		freeReplyObject(reply);
		for (uint64_t lease = 1; lease <= 6; lease++) {
			assert_int_equal(run(&trace, limit, 1, lease).count, 6);
			(void)run(&trace, limit, -1, lease);
			(void)run(&trace, limit, 0, lease);
		}
		trace.now_us += 200 * US_PER_S;
		assert_int_equal(run(&trace, limit, 1, 9).numbers[3], 1);
		trace.now_us -= 200 * US_PER_S;
	}
}

#define lease_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		lease_test(
			a_lease_is_given_back_and_prolonged_as_in_memory_whoever_else_writes_there),
		lease_test(damaged_leases_cost_counts_and_nothing_else),
	};

	(void)setenv("TZ", "UTC", 1);
	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests_name(
		"redis/engine_leases", tests, group_setup, group_teardown);
}
