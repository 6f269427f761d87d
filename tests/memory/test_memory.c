/* memory.h: one process and its store. Files are in test_file.c, several processes in
 * test_processes.c. */
#include "store.h"
#include "weir/clock.h"
#include "weir/hash.h"

#include <stdio.h>

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

static void
a_decision_is_remembered(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "3/1m");
	for (unsigned left = 3; left-- > 0;) {
		const struct decision decision = memory_decide(memory, &made, "k", 1, IN_2026_US);

		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(decision.now_us, IN_2026_US);
		assert_int_equal(decision.outcomes[0].remaining, left);
	}
	assert_int_equal(
		memory_decide(memory, &made, "k", 1, IN_2026_US).verdict, VERDICT_REJECTED);
	assert_int_equal(memory_decide(memory, &made, "k", 1, IN_2026_US + 20 * US_PER_S).verdict,
		VERDICT_ADMITTED);
}

static void
keys_are_told_apart(void **state)
{
	static const struct slice keys[] = { { "k", 1 }, { "K", 1 }, { "k:", 2 }, { "", 0 },
		{ "k\0x", 3 }, { "k\0y", 3 } };
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1/1m");
	for (size_t i = 0; i < LENGTH_OF(keys); i++) {
		struct memory_asked asked = memory_question(&made, "", 1, IN_2026_US);

		asked.check.items[0].key = keys[i];
		assert_int_equal(memory_ask(memory, &asked).verdict, VERDICT_ADMITTED);
		assert_int_equal(memory_ask(memory, &asked).verdict, VERDICT_REJECTED);
	}
}

static void
two_stores_are_two(void **state)
{
	struct made_limit made;
	struct err err;
	struct memory *other = memory_open_private(MEMORY_SIZE_MIN, &err);

	(void)state;
	assert_non_null(other);
	make_limit(&made, "l", "1/1m");
	assert_int_equal(
		memory_decide(memory, &made, "k", 1, IN_2026_US).verdict, VERDICT_ADMITTED);
	assert_int_equal(memory_decide(other, &made, "k", 1, IN_2026_US).verdict, VERDICT_ADMITTED);
	memory_close(other);
}

static void
without_a_time_it_is_the_walls(void **state)
{
	struct made_limit made;
	const int64_t before = clock_wall_us();

	(void)state;
	make_limit(&made, "l", "1/1h");
	const struct decision decision = memory_decide(memory, &made, "k", 1, 0);

	assert_in_range(decision.now_us, before, clock_wall_us());
	assert_int_equal(memory_decide(memory, &made, "k", 1, 0).verdict, VERDICT_REJECTED);
}

static void
what_is_answered_cannot_be_cancelled(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1/1h");
	struct memory_asked asked = memory_question(&made, "k", 1, IN_2026_US);

	(void)memory_ask(memory, &asked);
	store_cancel(memory_store(memory), &asked.check);
	assert_int_equal(asked.answers, 0);
	assert_string_equal(memory_store(memory)->name, "memory");
}

static void
add_latencies(void *sum, const struct counter_sample *sample)
{
	if (sample->family == COUNT_STORE_LATENCY &&
		strcmp(sample->labels, "store=\"memory\"") == 0)
		*(int64_t *)sum += sample->value;
}

static int64_t
decisions_timed(void)
{
	int64_t sum = 0;

	counter_each(add_latencies, &sum);
	return sum;
}

/* Not those of a memory that only helps another store. */
static void
decisions_are_timed_if_that_is_wanted(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "1/1h");
	(void)memory_decide(memory, &made, "a", 1, IN_2026_US);
	assert_int_equal(decisions_timed(), 0);
	memory_count(memory);
	assert_int_equal(
		memory_decide(memory, &made, "b", 1, IN_2026_US).verdict, VERDICT_ADMITTED);
	assert_int_equal(decisions_timed(), 1);
	assert_int_equal(
		memory_decide(memory, &made, "b", 1, IN_2026_US).verdict, VERDICT_REJECTED);
	assert_int_equal(decisions_timed(), 2);
}

/* ---- several limits ---- */

static void
all_limits_of_a_check_are_spent_or_none(void **state)
{
	struct made_limit made[CHECK_LIMITS_MAX];
	char keys[CHECK_LIMITS_MAX][16];

	(void)state;
	for (unsigned round = 0; round < 50; round++) {
		struct memory_asked asked = { .check = { .cost = 1,
						      .now_us = IN_2026_US,
						      .count = CHECK_LIMITS_MAX,
						      .done = memory_answer } };

		for (unsigned i = 0; i < CHECK_LIMITS_MAX; i++) {
			make_limit(&made[i], "l", "4/1m", "9/1h");
			(void)snprintf(keys[i], sizeof keys[i], "%u:%u", round, i);
			asked.check.items[i] = (struct check_item){ .limit = &made[i].limit,
				.key = slice_of(keys[i]) };
		}
		const unsigned full = round % CHECK_LIMITS_MAX;

		/* One of them has but one token more. */
		(void)memory_decide(memory, &made[full], keys[full], 3, IN_2026_US);
		assert_int_equal(memory_ask(memory, &asked).verdict, VERDICT_ADMITTED);
		assert_int_equal(memory_ask(memory, &asked).verdict, VERDICT_REJECTED);
		for (unsigned i = 0; i < CHECK_LIMITS_MAX; i++)
			assert_int_equal(memory_remaining(memory, &made[i], keys[i], IN_2026_US),
				i == full ? 0 : 3);
	}
}

static void
a_bucket_may_have_one_to_sixteen_fields(void **state)
{
	struct made_limit made[BUCKET_FIELDS_MAX];
	char policy[32];

	(void)state;
	for (unsigned i = 0; i < BUCKET_FIELDS_MAX; i++) {
		(void)snprintf(policy, sizeof policy, "%u/1d name p%u", 10 + i, i);
		make_limit(&made[i], "l", policy);
		assert_int_equal(memory_decide(memory, &made[i], "k", 1, IN_2026_US).verdict,
			VERDICT_ADMITTED);
		for (unsigned j = 0; j <= i; j++)
			assert_int_equal(
				memory_remaining(memory, &made[j], "k", IN_2026_US), 9 + j);
	}
	/* A day later all but one say nothing. */
	(void)memory_decide(memory, &made[3], "k", 2, IN_2026_US + US_PER_DAY);
	assert_int_equal(memory_remaining(memory, &made[3], "k", IN_2026_US + US_PER_DAY), 11);
	assert_int_equal(memory_remaining(memory, &made[4], "k", IN_2026_US), 14);
}

/* ---- a full store ---- */

enum { MANY = 100000 };

static void
decide_for(const struct made_limit *made, unsigned client, int64_t now_us)
{
	char key[32];

	(void)snprintf(key, sizeof key, "flood:%u", client);
	assert_int_equal(memory_decide(memory, made, key, 1, now_us).verdict, VERDICT_ADMITTED);
}

static void
a_full_store_takes_every_new_client_and_counts_the_live_ones_dropped(void **state)
{
	struct made_limit made;
	const int64_t before = counter_sum(COUNT_MEMORY_EVICTED);

	(void)state;
	make_limit(&made, "flood", "5/1m");
	for (unsigned i = 0; i < MANY; i++)
		decide_for(&made, i, IN_2026_US);
	/* A megabyte has room for some 8,000. */
	assert_in_range(counter_sum(COUNT_MEMORY_EVICTED) - before, MANY - 8200, MANY - 7200);
	char key[32];

	(void)snprintf(key, sizeof key, "flood:%u", MANY - 1);
	assert_int_equal(memory_remaining(memory, &made, key, IN_2026_US), 4);
}

static void
clients_whose_buckets_are_full_again_cost_nobody_anything(void **state)
{
	struct made_limit made, kept;
	const int64_t before = counter_sum(COUNT_MEMORY_EVICTED);

	(void)state;
	make_limit(&made, "flood", "5/1m");
	make_limit(&kept, "kept", "5/1d");
	(void)memory_decide(memory, &kept, "kept", 1, IN_2026_US);
	/* At any time some 5,000 of them have something owed. */
	for (unsigned i = 0; i < MANY; i++)
		decide_for(&made, i, IN_2026_US + i * INT64_C(12000000) / 5000);
	assert_int_equal(counter_sum(COUNT_MEMORY_EVICTED) - before, 0);
	assert_int_equal(memory_remaining(memory, &kept, "kept", IN_2026_US), 4);
}

static void
who_owes_most_stays_longest(void **state)
{
	struct made_limit made, kept;
	unsigned left = 0;
	char key[32];

	(void)state;
	make_limit(&made, "flood", "5/1m");
	make_limit(&kept, "kept", "5/1d");
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof key, "kept:%u", i);
		(void)memory_decide(memory, &kept, key, 1, IN_2026_US);
	}
	for (unsigned i = 0; i < MANY; i++)
		decide_for(&made, i, IN_2026_US);
	for (unsigned i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof key, "kept:%u", i);
		left += memory_remaining(memory, &kept, key, IN_2026_US) == 4;
	}
	assert_int_equal(left, 100);
}

/* ---- the area ---- */

static void
the_area_is_zero_and_aligned(void **state)
{
	static const uint8_t zero[MEMORY_AREA_SIZE];

	(void)state;
	assert_memory_equal(memory_area(memory), zero, sizeof zero);
	assert_int_equal((uintptr_t)memory_area(memory) % 64, 0);
	assert_memory_equal(memory_process_area(memory), zero, sizeof zero);
	assert_int_equal((uintptr_t)memory_process_area(memory) % sizeof(int64_t), 0);
}

#define memory_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		memory_test(a_decision_is_remembered),
		memory_test(keys_are_told_apart),
		memory_test(two_stores_are_two),
		memory_test(without_a_time_it_is_the_walls),
		memory_test(what_is_answered_cannot_be_cancelled),
		memory_test(decisions_are_timed_if_that_is_wanted),
		memory_test(all_limits_of_a_check_are_spent_or_none),
		memory_test(a_bucket_may_have_one_to_sixteen_fields),
		memory_test(a_full_store_takes_every_new_client_and_counts_the_live_ones_dropped),
		memory_test(clients_whose_buckets_are_full_again_cost_nobody_anything),
		memory_test(who_owes_most_stays_longest),
		memory_test(the_area_is_zero_and_aligned),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/memory", tests, NULL, NULL);
}
