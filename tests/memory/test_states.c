/* memory.h: states of all algorithms, of any length, and leases. */
#include "../limit/asking.h"
#include "store.h"
#include "weir/clock.h"
#include "weir/hash.h"

static struct memory *memory;

static int
setup(void **state)
{
	struct err err;

	(void)state;
	memory = memory_open_private(MEMORY_SIZE_MIN, &err);
	return memory == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	memory_close(memory);
	return 0;
}

/* ---- what is kept ---- */

static void
a_thousand_requests_are_remembered_one_by_one(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1000/1h sliding-log");
	for (unsigned n = 0; n < 1000; n++)
		assert_int_equal(memory_decide(memory, &made, "k", 1, IN_2026_US + n).verdict,
			VERDICT_ADMITTED);
	const struct decision decision = memory_decide(memory, &made, "k", 3, IN_2026_US + 1000);

	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(decision.outcomes[0].retry_us, 3600 * US_PER_S + 2 - 1000);
	assert_int_equal(
		memory_remaining(memory, &made, "k", IN_2026_US + 3600 * US_PER_S + 499), 500);
}

/* Far more words than a stack should hold. */
static void
the_longest_states_of_many_limits_are_decided_together(void **state)
{
	struct made_limit made[4];
	struct memory_asked asked = {
		.check = { .cost = 1, .count = LENGTH_OF(made), .done = memory_answer }
	};
	static const char *const keys[] = { "a", "b", "c", "d" };

	(void)state;
	for (unsigned i = 0; i < LENGTH_OF(made); i++) {
		make_limit(&made[i], "l", "1000/1h sliding-log", "1000/2h sliding-log name other",
			"40/1h sliding-log name few shadow", "9/1h name bucket shadow");
		asked.check.items[i] =
			(struct check_item){ .limit = &made[i].limit, .key = slice_of(keys[i]) };
	}
	for (unsigned n = 0; n < 1100; n++) {
		asked.check.now_us = IN_2026_US + n * 1000;
		const struct decision decision = memory_ask(memory, &asked);

		assert_true((decision.verdict == VERDICT_ADMITTED) == (n < 1000));
		for (unsigned i = 0; i < decision.count; i++) {
			const struct outcome *outcome = &decision.outcomes[i];
			const uint64_t burst = outcome->policy->burst;

			if (outcome->policy->algorithm == POLICY_SLIDING_LOG)
				assert_int_equal(
					outcome->remaining, n + 1 < burst ? burst - n - 1 : 0);
		}
	}
}

static void
assert_same(const struct decision *decision, const struct decision *expected)
{
	assert_int_equal(decision->count, expected->count);
	for (unsigned i = 0; i < expected->count; i++) {
		const struct outcome *a = &decision->outcomes[i], *b = &expected->outcomes[i];

		assert_true(a->policy == b->policy && a->violated == b->violated &&
			a->shadow == b->shadow);
		assert_int_equal(a->remaining, b->remaining);
		assert_int_equal(a->retry_us, b->retry_us);
		assert_int_equal(a->more_us, b->more_us);
		assert_int_equal(a->reset_us, b->reset_us);
	}
}

/* Against the same decisions on a bucket that is kept without any store. */
static void
the_store_keeps_exactly_what_was_decided(void **state)
{
	static const char *const policies[] = { "5/1s burst 9", "9/1s sliding-window",
		"60/1m sliding-log", "40/day calendar", "concurrent 20 lease 3s",
		"300/1h sliding-log name long", "4/1s name tight shadow" };
	static struct kept kept;
	uint64_t random = 31;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		struct made_limit made;
		char key[16];
		int64_t now_us = IN_2026_US;
		const size_t first = random_below(&random, LENGTH_OF(policies));

		(void)snprintf(key, sizeof key, "k%u", round);
		make_limit(&made, "l", policies[first], policies[(first + 1) % LENGTH_OF(policies)],
			policies[(first + 2) % LENGTH_OF(policies)]);
		kept.len = 0;
		for (unsigned n = 1; n <= 400; n++) {
			const uint64_t cost = 1 + random_below(&random, 3);
			struct memory_asked asked = memory_question(&made, key, cost, now_us);

			asked.check.lease = n;
			const struct decision expected =
				ask_for(&kept, &made.limit, cost, n, now_us);
			const struct decision decision = memory_ask(memory, &asked);

			assert_int_equal(decision.verdict, expected.verdict);
			assert_same(&decision, &expected);
			now_us += (int64_t)random_below(
				&random, random_below(&random, 40) == 0 ? 100000000 : 300000);
		}
	}
}

static void
long_states_and_short_ones_make_room_for_each_other(void **state)
{
	struct made_limit lists, buckets;
	const int64_t before = counter_sum(COUNT_MEMORY_EVICTED);
	char key[16];

	(void)state;
	make_limit(&lists, "l", "1000/1h sliding-log");
	make_limit(&buckets, "b", "5/1h");
	for (unsigned i = 0; i < 400; i++) {
		(void)snprintf(key, sizeof key, "%u", i);
		for (unsigned n = 0; n < 300; n++)
			assert_int_equal(
				memory_decide(memory, &lists, key, 1, IN_2026_US + n).verdict,
				VERDICT_ADMITTED);
		(void)snprintf(key, sizeof key, "b%u", i);
		assert_int_equal(memory_decide(memory, &buckets, key, 1, IN_2026_US).verdict,
			VERDICT_ADMITTED);
	}
	/* A megabyte has room for some 200 of the lists. */
	assert_true(counter_sum(COUNT_MEMORY_EVICTED) - before > 100);
	(void)snprintf(key, sizeof key, "%u", 399);
	assert_int_equal(memory_remaining(memory, &lists, key, IN_2026_US + 300), 700);
}

/* ---- leases ---- */

static bool
take(const struct made_limit *made, const char *key, uint64_t lease, int64_t now_us)
{
	struct memory_asked asked = memory_question(made, key, 1, now_us);

	asked.check.lease = lease;
	return memory_ask(memory, &asked).verdict == VERDICT_ADMITTED;
}

static struct check_item
item_of(const struct made_limit *made, const char *key)
{
	return (struct check_item){ .limit = &made->limit, .key = slice_of(key) };
}

static void
a_lease_that_is_released_is_free_at_once(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "concurrent 2", "100/1h");
	const struct check_item item = item_of(&made, "k"), other = item_of(&made, "other");

	assert_true(take(&made, "k", 1000, 0) && take(&made, "k", 2000, 0));
	assert_false(take(&made, "k", 3000, 0));
	store_release(memory_store(memory), &other, 1000);
	store_release(memory_store(memory), &item, 4000);
	assert_false(take(&made, "k", 3000, 0));
	store_release(memory_store(memory), &item, 1000);
	assert_true(take(&made, "k", 3000, 0));
	assert_false(take(&made, "k", 4000, 0));
	store_release(memory_store(memory), &item, 2000);
	store_release(memory_store(memory), &item, 2000);
	store_release(memory_store(memory), &item, 3000);
	assert_true(take(&made, "k", 5000, 0) && take(&made, "k", 6000, 0));
	assert_false(take(&made, "k", 7000, 0));
}

static void
a_lease_that_is_renewed_lasts_on(void **state)
{
	struct made_limit made;
	const int64_t now_us = clock_wall_us(), minute_us = 60 * US_PER_S;

	(void)state;
	make_limit(&made, "l", "concurrent 1 lease 1h");
	const struct check_item item = item_of(&made, "k");

	/* It has ten minutes left. */
	assert_true(take(&made, "k", 1000, now_us - 50 * minute_us));
	store_renew(memory_store(memory), &item, 2000);
	assert_false(take(&made, "k", 3000, now_us));
	store_renew(memory_store(memory), &item, 1000);
	assert_false(take(&made, "k", 3000, now_us + 55 * minute_us));
	assert_true(take(&made, "k", 3000, now_us + 70 * minute_us));
}

static void
other_buckets_are_not_touched_by_a_release(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "2/1h");
	const struct check_item item = item_of(&made, "k");

	(void)memory_decide(memory, &made, "k", 1, IN_2026_US);
	store_release(memory_store(memory), &item, 1);
	store_renew(memory_store(memory), &item, 1);
	assert_int_equal(memory_remaining(memory, &made, "k", IN_2026_US), 1);
}

#define states_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		states_test(a_thousand_requests_are_remembered_one_by_one),
		states_test(the_longest_states_of_many_limits_are_decided_together),
		states_test(the_store_keeps_exactly_what_was_decided),
		states_test(long_states_and_short_ones_make_room_for_each_other),
		states_test(a_lease_that_is_released_is_free_at_once),
		states_test(a_lease_that_is_renewed_lasts_on),
		states_test(other_buckets_are_not_touched_by_a_release),
	};
	struct err err;

	(void)setenv("TZ", "UTC", 1);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/states", tests, NULL, NULL);
}
