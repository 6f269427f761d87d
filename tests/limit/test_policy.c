/* policy.h: limits compiled for deciding, and the tags that stand for their policies. */
#include "../lib/limits.h"
#include "../unit.h"
#include "weir/hash.h"

#include <stdio.h>

/* ---- tags ---- */

static void
a_long_name_is_whole_in_its_tag(void **state)
{
	char a[65], b[65];

	(void)state;
	memset(a, 'a', sizeof a - 1);
	a[sizeof a - 1] = '\0';
	memcpy(b, a, sizeof b);
	b[sizeof b - 2] = 'b';
	assert_int_not_equal(
		policy_tag(a, POLICY_TOKEN_BUCKET), policy_tag(b, POLICY_TOKEN_BUCKET));
}

/* ---- limit_init ---- */

static void
an_interval_is_rounded_up(void **state)
{
	static const struct {
		const char *policy;
		int64_t interval_us, capacity_us;
	} rows[] = {
		{ "10/1s", 100000, 1000000 },
		{ "10/1s burst 60", 100000, 6000000 },
		{ "7/1s", 142858, 1000006 },
		{ "3/1d burst 1", INT64_C(28800000000), INT64_C(28800000000) },
		{ "1000/1ms burst 1", 1, 1 },
		{ "1000000/1s burst 5", 1, 5 },
		{ "1000001/1s burst 5", 1, 5 }, /* faster is not to be had */
		{ "1/365d", 365 * US_PER_DAY, 365 * US_PER_DAY },
	};
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		make_limit(&made, "l", rows[i].policy);
		const struct policy *policy = &made.limit.policies[0];

		assert_row(policy->interval_us == rows[i].interval_us, "%s", rows[i].policy);
		assert_row(policy->capacity_us == rows[i].capacity_us, "%s", rows[i].policy);
		assert_int_equal(policy->tag, policy_tag(policy->name, POLICY_TOKEN_BUCKET));
	}
}

static void
only_a_policy_of_common_form_is_given_its_code(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m", "5/1h burst 6", "101/1d", "5/1s name other", "5/300s",
		"6/1s burst 12 shards 1");
	assert_int_equal(made.limit.policy_count, 6);
	assert_int_equal(made.limit.policies[0].code, form_code("1m", 5, 60 * US_PER_S, 5));
	assert_int_equal(made.limit.policies[1].code, form_code("1h", 5, 3600 * US_PER_S, 6));
	assert_int_not_equal(made.limit.policies[0].code, 0);
	assert_int_not_equal(made.limit.policies[1].code, 0);
	for (size_t i = 2; i < 5; i++)
		assert_int_equal(made.limit.policies[i].code, 0);
	assert_int_equal(made.limit.policies[5].code, form_code("1s", 6, US_PER_S, 12));
}

/* What stored state begins with (lua/decide.lua). */
static void
a_signature_names_every_policy_and_is_never_cut(void **state)
{
	static const struct {
		const char *policies[4];
		const char *signature;
	} rows[] = {
		{ { "1/1s" }, "1" },
		{ { "10/1s burst 60" }, "1986" },
		{ { "50/30d" }, "-880660" },
		{ { "5/1m burst 101" }, "96549538:12000000:101=" },
		{ { "5/1m", "1/1s" }, "96549538:12000000:5 6a88d96d:1000000:1=" },
	};
	struct made_limit made;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		made_limit_init(&made, "l", rows[i].policies);
		assert_string_equal(made.limit.signature, rows[i].signature);
	}
	make_limit(&made, "l", "1000/1ms burst 999999999999999 name a", "1/36525d name b",
		"1000/1ms burst 999999999999999 name c", "1/36525d name d",
		"1000/1ms burst 999999999999999 name e", "1/36525d name f",
		"1000/1ms burst 999999999999999 name g", "1/36525d name h");
	assert_in_range(strlen(made.limit.signature), 150, sizeof made.limit.signature - 1);
	assert_int_equal(made.limit.signature[strlen(made.limit.signature) - 1], '=');
}

struct refusal {
	struct config_policy policies[LIMIT_POLICIES_MAX + 1];
	unsigned count;
	const char *said; /* a part of it; NULL: nothing */
};

static void
assert_refusal(struct refusal *refusal)
{
	const struct config_limit config = {
		.name = "l", .policies = refusal->policies, .policy_count = refusal->count
	};
	struct diagnostics diagnostics;
	struct limit limit;

	diagnostics_init(&diagnostics);
	limit_init(&limit, &config, NULL, &diagnostics);
	if (refusal->said == NULL)
		assert_int_equal(diagnostics.count, 0);
	else
		assert_row(diagnostics.count == 1 &&
				strstr(diagnostics.list[0].text, refusal->said) != NULL,
			"%s", diagnostics.count == 0 ? "nothing" : diagnostics.list[0].text);
	diagnostics_release(&diagnostics);
}

static struct config_policy
policy_of(const char *name, uint64_t count, int64_t window_us, uint64_t burst)
{
	return (struct config_policy){ .name = name,
		.rate = { .count = count, .window_us = window_us },
		.burst = burst,
		.shards = 1 };
}

static void
what_cannot_be_counted_exactly_is_refused(void **state)
{
	static const char too_long[] = "a bucket of more than 100 years";
	struct refusal rows[] = {
		{ { policy_of("p", 1, DURATION_MAX_US, 1) }, 1, NULL },
		{ { policy_of("p", 1, DURATION_MAX_US, 2) }, 1, too_long },
		{ { policy_of("p", 1, 1, (uint64_t)DURATION_MAX_US) }, 1, NULL },
		{ { policy_of("p", 1, 1, (uint64_t)DURATION_MAX_US + 1) }, 1, too_long },
		{ { policy_of("p", 1, US_PER_S, UINT64_MAX) }, 1, too_long },
		{ { policy_of("p", 1, US_PER_S, UINT64_C(1) << 63) }, 1, too_long },
		{ { policy_of("p", UINT64_C(1) << 63, US_PER_S, 1) }, 1, NULL },
		{ { policy_of("p", 0, US_PER_S, 1) }, 1, too_long },
		{ { policy_of("p", 1, US_PER_S, 0) }, 1, too_long },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_refusal(&rows[i]);
}

static void
policies_that_cannot_be_told_apart_are_refused(void **state)
{
	struct refusal same = { { policy_of("p", 1, US_PER_S, 1), policy_of("q", 1, US_PER_S, 1),
					policy_of("p", 2, US_PER_S, 1) },
		3, "the names \"p\" and \"p\" cannot be told apart" };
	/* Found by search: the hashes of two names in four thousand million meet. */
	struct refusal meeting = { { policy_of("n7208", 1, US_PER_S, 1),
					   policy_of("n180088", 1, US_PER_S, 1) },
		2, "rename one" };

	(void)state;
	assert_refusal(&same);
	assert_refusal(&meeting);
}

static void
more_policies_than_a_limit_may_have_are_refused(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
	struct refusal many = { .count = LIMIT_POLICIES_MAX + 1, .said = "at most 8 policies" };

	(void)state;
	for (unsigned i = 0; i < many.count; i++)
		many.policies[i] = policy_of(names[i], 1, US_PER_S, 1);
	assert_refusal(&many);
	many.count--;
	many.said = NULL;
	assert_refusal(&many);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_name_is_whole_in_its_tag),
		cmocka_unit_test(an_interval_is_rounded_up),
		cmocka_unit_test(only_a_policy_of_common_form_is_given_its_code),
		cmocka_unit_test(a_signature_names_every_policy_and_is_never_cut),
		cmocka_unit_test(what_cannot_be_counted_exactly_is_refused),
		cmocka_unit_test(policies_that_cannot_be_told_apart_are_refused),
		cmocka_unit_test(more_policies_than_a_limit_may_have_are_refused),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("limit/policy", tests, NULL, NULL);
}
