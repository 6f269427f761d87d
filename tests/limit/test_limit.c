/* policy.h: limits of several policies, with overrides and in shards. */
#include "asking.h"
#include "weir/hash.h"

#include <stdio.h>

/* ---- what is known of all policies together ---- */

static void
a_limit_knows_what_its_policies_are(void **state)
{
	static const struct {
		const char *policies[4];
		unsigned words;
		bool is_plain, has_leases, has_calendar;
	} rows[] = {
		{ { "5/1m" }, 1, true, false, false },
		{ { "5/1m", "50/1d burst 7" }, 2, true, false, false },
		{ { "5/1m shadow" }, 1, false, false, false },
		{ { "5/1m shards 5" }, 1, true, false, false },
		{ { "5/1m", "9/1h sliding-window" }, 4, false, false, false },
		{ { "999/1m sliding-log" }, 1998, false, false, false },
		{ { "5/day calendar", "7/month calendar" }, 4, false, false, true },
		{ { "5/1m", "concurrent 9" }, 19, false, true, false },
	};
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		made_limit_init(&made, "l", rows[i].policies);
		assert_row(made.limit.words == rows[i].words, "row %zu: words", i);
		assert_row(made.limit.is_plain == rows[i].is_plain, "row %zu: plain", i);
		assert_row(made.limit.has_leases == rows[i].has_leases, "row %zu: leases", i);
		assert_row(made.limit.has_calendar == rows[i].has_calendar, "row %zu: calendar", i);
	}
}

/* INTERVAL * BURST stays below 100 years for those who read it as a token bucket. */
static void
a_signature_tells_the_form_of_any_policy(void **state)
{
	struct made_limit made;
	char expected[LIMIT_SIGNATURE_SIZE];

	(void)state;
	make_limit(&made, "l", "5/1m burst 6 name a", "9/1h sliding-window name b",
		"9/2h sliding-log name c", "9/day calendar name d", "9/month calendar name e",
		"concurrent 9 lease 30s name f");
	(void)snprintf(expected, sizeof expected,
		"%08x:12000000:6 %08x:3600000000:1 %08x:7200000000:1 %08x:86400000000:1 "
		"%08x:2678400000000:1 %08x:30000000:1=",
		policy_tag("a", POLICY_TOKEN_BUCKET), policy_tag("b", POLICY_SLIDING_WINDOW),
		policy_tag("c", POLICY_SLIDING_LOG), policy_tag("d", POLICY_CALENDAR),
		policy_tag("e", POLICY_CALENDAR), policy_tag("f", POLICY_CONCURRENT));
	assert_string_equal(made.limit.signature, expected);
}

/* ---- refused ---- */

static struct config_policy
policy_of(const char *name, enum policy_algorithm algorithm, uint64_t count, unsigned line)
{
	return (struct config_policy){ .name = name,
		.place = { "weir.ini", line },
		.algorithm = algorithm,
		.rate = { .count = count, .window_us = US_PER_S },
		.burst = count,
		.shards = 1,
		.lease_us = US_PER_S };
}

/* Nothing, or one error at this line that says so. */
static void
assert_said(const struct config_limit *config, const struct config_override *override,
	unsigned line, const char *said)
{
	struct diagnostics diagnostics;
	struct limit limit;

	diagnostics_init(&diagnostics);
	limit_init(&limit, config, override, &diagnostics);
	assert_int_equal(diagnostics.errors, said == NULL ? 0 : 1);
	if (said != NULL) {
		assert_row(strstr(diagnostics.list[0].text, said) != NULL, "%s",
			diagnostics.list[0].text);
		assert_int_equal(diagnostics.list[0].place.line, line);
	}
	diagnostics_release(&diagnostics);
}

static void
numbers_that_cannot_be_counted_are_refused(void **state)
{
	static const struct {
		enum policy_algorithm algorithm;
		uint64_t count;
		bool is_refused;
	} rows[] = {
		{ POLICY_SLIDING_WINDOW, 0, true },
		{ POLICY_SLIDING_WINDOW, UINT64_C(1000000000000000), false },
		{ POLICY_SLIDING_WINDOW, UINT64_C(1000000000000001), true },
		{ POLICY_SLIDING_WINDOW, UINT64_MAX, true },
		{ POLICY_SLIDING_LOG, 1000, false },
		{ POLICY_SLIDING_LOG, 1001, true },
		{ POLICY_CALENDAR, UINT64_C(1000000000000000), false },
		{ POLICY_CALENDAR, UINT64_C(1) << 63, true },
		{ POLICY_CONCURRENT, 1000, false },
		{ POLICY_CONCURRENT, 1001, true },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct config_policy policy = policy_of("p", rows[i].algorithm, rows[i].count, 7);
		const struct config_limit config = {
			.name = "l", .policies = &policy, .policy_count = 1
		};

		assert_said(
			&config, NULL, 7, rows[i].is_refused ? "cannot be counted exactly" : NULL);
		policy.rate.window_us = policy.lease_us = 0;
		assert_said(&config, NULL, 7, "cannot be counted exactly");
	}
}

static void
more_than_can_be_kept_of_one_identity_is_refused(void **state)
{
	struct config_policy policies[] = { policy_of("a", POLICY_SLIDING_LOG, 1000, 7),
		policy_of("b", POLICY_CONCURRENT, 1000, 8),
		policy_of("c", POLICY_SLIDING_LOG, 48, 9) };
	struct config_limit config = { .place = { "weir.ini", 3 },
		.name = "l",
		.policies = policies,
		.policy_count = LENGTH_OF(policies) };

	(void)state;
	assert_said(&config, NULL, 0, NULL);
	policies[2].burst++;
	assert_said(&config, NULL, 3, "4098 numbers for each identity");
	/* An override that asks for it is told so at its own place. */
	const struct config_override override = {
		.place = { "weir.ini", 20 }, .policies = &policies[2], .policy_count = 1
	};
	struct config_policy smaller[] = { policies[0], policies[1],
		policy_of("c", POLICY_SLIDING_LOG, 48, 9) };

	config.policies = smaller;
	assert_said(&config, &override, 20, "two limits");
}

static void
policies_of_one_limit_have_one_number_of_shards(void **state)
{
	struct config_policy policies[] = { policy_of("a", POLICY_TOKEN_BUCKET, 100, 7),
		policy_of("b", POLICY_TOKEN_BUCKET, 100, 8),
		policy_of("c", POLICY_SLIDING_WINDOW, 100, 9) };
	struct config_limit config = { .name = "l", .policies = policies, .policy_count = 2 };

	(void)state;
	policies[0].shards = 4;
	assert_said(&config, NULL, 8, "put them into two limits");
	policies[1].shards = 4;
	assert_said(&config, NULL, 0, NULL);
	config.policy_count = 3;
	assert_said(&config, NULL, 9, "put them into two limits");
	/* Also with what an override brings. */
	struct config_policy other = policy_of("b", POLICY_TOKEN_BUCKET, 50, 30);
	const struct config_override override = { .policies = &other, .policy_count = 1 };

	config.policy_count = 2;
	assert_said(&config, &override, 30, "put them into two limits");
	other.shards = 4;
	assert_said(&config, &override, 0, NULL);
}

/* ---- overrides ---- */

static void
an_override_replaces_the_policy_of_its_name_and_keeps_what_was_spent(void **state)
{
	static const char *const pairs[][2] = {
		{ "10/1m name p", "100/1m name p" },
		{ "10/1m sliding-window name p", "100/1m sliding-window name p" },
		{ "10/1m sliding-log name p", "100/1m sliding-log name p" },
		{ "10/day calendar name p", "100/day calendar name p" },
		{ "concurrent 10 name p", "concurrent 100 name p" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(pairs); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit plain, gold;

		make_limit(&plain, "l", "7/1s name before", pairs[i][0], "9/1h name behind");
		made_limit_override(&gold, &plain, (const char *const[]){ pairs[i][1], NULL });
		assert_int_equal(gold.limit.policy_count, 3);
		assert_int_equal(gold.limit.policies[1].burst, 100);
		for (unsigned j = 0; j < 3; j++)
			assert_int_equal(gold.limit.policies[j].tag, plain.limit.policies[j].tag);
		for (unsigned n = 1; n <= 3; n++)
			assert_int_equal(
				ask(&kept, &plain, 1, IN_2026_US).outcomes[1].remaining, 10 - n);
		const struct decision decision = ask(&kept, &gold, 1, IN_2026_US);

		assert_row(decision.outcomes[1].remaining == 96, "%s: %d", pairs[i][1],
			(int)decision.outcomes[1].remaining);
		assert_int_equal(decision.outcomes[0].remaining, 3);
		assert_int_equal(decision.outcomes[2].remaining, 5);
		/* And back, when the plan ends. */
		assert_int_equal(ask(&kept, &plain, 1, IN_2026_US).outcomes[1].remaining, 5);
	}
}

static void
an_override_counts_under_the_limits_name(void **state)
{
	struct made_limit plain, gold;

	(void)state;
	make_limit(&plain, "l", "10/1m name p");
	made_limit_override(&gold, &plain, (const char *const[]){ "20/1m name p", NULL });
	assert_string_equal(gold.limit.name, "l");
	assert_memory_equal(gold.limit.results, plain.limit.results, sizeof plain.limit.results);
	assert_true(gold.limit.enforce);
}

/* ---- shards ---- */

/* By the rate and burst that are written, over any span. */
static void
assert_never_above(const char *policy, unsigned shards, uint64_t random)
{
	enum { ASKED = 3000 };
	struct kept *kept = calloc(shards, sizeof *kept);
	struct made_limit made;
	int64_t times[ASKED], now_us = IN_2026_US;
	size_t count = 0;

	assert_non_null(kept);
	make_limit(&made, "l", policy);
	assert_int_equal(made.limit.shards, shards);
	const struct config_policy *written = &made.config.policies[0];
	const int64_t pace_us = written->rate.window_us / (int64_t)written->rate.count;

	for (unsigned n = 0; n < ASKED; n++) {
		if (ask(&kept[random_below(&random, shards)], &made, 1, now_us).verdict ==
			VERDICT_ADMITTED)
			times[count++] = now_us;
		if (random_below(&random, 4) > 0)
			now_us += (int64_t)random_below(&random, (size_t)pace_us + 2);
	}
	assert_true(count > 50);
	for (size_t from = 0; from < count; from++) {
		for (size_t to = from; to < count; to++)
			assert_true((double)(to - from + 1) <= (double)written->burst +
					(double)(times[to] - times[from]) *
						(double)written->rate.count /
						(double)written->rate.window_us);
	}
	free(kept);
}

static void
shards_together_never_admit_more_than_the_limit(void **state)
{
	(void)state;
	assert_never_above("100/1s shards 4", 4, 1);
	assert_never_above("100/1s burst 37 shards 7", 7, 2);
	assert_never_above("64/1m burst 127 shards 64", 64, 3);
	assert_never_above("1000/7s burst 65 shards 3", 3, 4);
	assert_never_above("5000/1s burst 5000 shards 64", 64, 5);
}

static void
a_shard_has_its_part_rounded_down(void **state)
{
	static const struct {
		const char *policy;
		uint64_t burst;
		int64_t interval_us;
	} rows[] = { { "100/1s shards 4", 25, 40000 }, { "100/1s burst 7 shards 4", 1, 40000 },
		{ "3/1s shards 2", 1, 666667 }, { "100/1s shards 1", 100, 10000 },
		{ "64/36525d shards 64", 1, DURATION_MAX_US } };
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		make_limit(&made, "l", rows[i].policy);
		assert_int_equal(made.limit.policies[0].burst, rows[i].burst);
		assert_int_equal(made.limit.policies[0].interval_us, rows[i].interval_us);
		assert_int_equal(made.limit.policies[0].capacity_us,
			(int64_t)rows[i].burst * rows[i].interval_us);
	}
	/* The code would stand for a bucket that is no shard. */
	make_limit(&made, "l", "100/1s shards 4");
	assert_int_equal(made.limit.policies[0].code, 0);
}

static void
a_shards_key_names_it(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1000);
	assert_slice(shards_key(&arena, SLICE("l:192.0.2.1"), 0), SLICE("l:192.0.2.1+0"));
	assert_slice(shards_key(&arena, SLICE("l:a+1"), 63), SLICE("l:a+1+63"));
	assert_slice(shards_key(&arena, slice_make("l:\0x", 4), 7), slice_make("l:\0x+7", 6));
	while (arena_alloc(&arena, 16) != NULL)
		;
	assert_null(shards_key(&arena, SLICE("l:192.0.2.1"), 0).ptr);
	arena_release(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_knows_what_its_policies_are),
		cmocka_unit_test(a_signature_tells_the_form_of_any_policy),
		cmocka_unit_test(numbers_that_cannot_be_counted_are_refused),
		cmocka_unit_test(more_than_can_be_kept_of_one_identity_is_refused),
		cmocka_unit_test(policies_of_one_limit_have_one_number_of_shards),
		cmocka_unit_test(
			an_override_replaces_the_policy_of_its_name_and_keeps_what_was_spent),
		cmocka_unit_test(an_override_counts_under_the_limits_name),
		cmocka_unit_test(shards_together_never_admit_more_than_the_limit),
		cmocka_unit_test(a_shard_has_its_part_rounded_down),
		cmocka_unit_test(a_shards_key_names_it),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("limit/limit", tests, NULL, NULL);
}
