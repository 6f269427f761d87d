/* The set of identities that were made in Redis: how many it holds, and for how long. */
#include "../../src/gate/identities.h"
#include "../unit.h"

#include <malloc.h>
#include <pthread.h>

enum { A_SECOND = 1000000 };

static struct identities *identities;

static int
set_up(void **state)
{
	(void)state;
	identities = identities_new(COUNT_IDENTITIES);
	return identities == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	identities_free(identities);
	return counter_sum(COUNT_IDENTITIES) == 0 ? 0 : -1;
}

/* As a hash would be. */
static uint64_t
scattered(uint64_t n)
{
	n = (n + 1) * UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
	return n ^ n >> 29;
}

static void
no_more_than_max_are_known_and_those_stay(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(identities_take(identities, scattered(i), 1000, 1, 10 * A_SECOND));
	for (uint64_t i = 1000; i < 20000; i++)
		assert_false(identities_take(identities, scattered(i), 1000, 2, 10 * A_SECOND));
	for (uint64_t i = 0; i < 1000; i++)
		assert_true(identities_take(identities, scattered(i), 1000, 3, 10 * A_SECOND));
	assert_int_equal(identities_count(identities), 1000);
	assert_int_equal(counter_sum(COUNT_IDENTITIES), 1000);
}

/* However few they are, and wherever they lie. */
static void
those_whose_time_is_over_make_room(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 10, 100, 10000 };

	for (size_t s = 0; s < LENGTH_OF(sizes); s++) {
		const uint64_t max = sizes[s];

		identities_free(identities);
		(void)set_up(state);
		for (uint64_t i = 0; i < max; i++)
			assert_true(identities_take(identities, scattered(i), max, 0, A_SECOND));
		assert_false(identities_take(identities, scattered(max), max, A_SECOND - 1, 9));
		for (uint64_t i = max; i < 2 * max; i++)
			assert_true(identities_take(
				identities, scattered(i), max, A_SECOND, 2 * A_SECOND));
		assert_int_equal(identities_count(identities), max);
	}
}

static void
one_that_is_kept_is_known_for_as_long_as_the_latest_says(void **state)
{
	(void)state;
	assert_true(identities_take(identities, 7, 1, 0, 100));
	identities_keep(identities, 7, 0, 5000);
	identities_keep(identities, 7, 0, 3000);
	assert_true(identities_take(identities, 7, 1, 10, 200));
	assert_false(identities_take(identities, 8, 1, 4999, 10000));
	assert_true(identities_take(identities, 8, 1, 5000, 10000));
	/* What is in Redis is there, whatever the maximum. */
	identities_keep(identities, 9, 5001, 20000);
	assert_int_equal(identities_count(identities), 2);
	identities_forget(identities, 9);
	identities_forget(identities, 9);
	identities_forget(identities, 8);
	assert_int_equal(identities_count(identities), 0);
	assert_true(identities_take(identities, 0, 1, 5002, 10000));
	assert_true(identities_take(identities, 0, 1, 5002, 10000));
}

/* Against a plain array, with gaps and wraps in the tables. */
static void
taking_and_forgetting_in_any_order_loses_nobody(void **state)
{
	enum { ALL = 3000 };
	static int64_t until[ALL];
	int64_t now = 1;

	(void)state;
	memset(until, 0, sizeof until);
	for (unsigned n = 0; n < 300000; n++) {
		const unsigned i = (unsigned)(rand() % ALL);

		now += rand() % 3;
		switch (rand() % 3) {
		case 0:
			identities_forget(identities, scattered(i));
			until[i] = 0;
			break;
		case 1:
			identities_keep(identities, scattered(i), now, now + 1 + rand() % 5000);
			until[i] = INT64_MAX;
			identities_keep(identities, scattered(i), now, INT64_MAX);
			break;
		default:
			/* Who is known is known with no room at all. */
			if (until[i] == INT64_MAX)
				assert_true(
					identities_take(identities, scattered(i), 0, now, now + 1));
			break;
		}
	}
	uint64_t known = 0;

	for (unsigned i = 0; i < ALL; i++)
		known += until[i] == INT64_MAX ? 1 : 0;
	assert_int_equal(identities_count(identities), known);
}

static void
memory_is_flat_however_many_come(void **state)
{
	enum { MAX = 10000 };
	const size_t before = mallinfo2().uordblks;
	unsigned taken = 0;

	(void)state;
	for (uint64_t i = 0; i < 1000000; i++) {
		if (identities_take(identities, scattered(i), MAX, (int64_t)i,
			    (int64_t)i + 1 + rand() % (4 * MAX)))
			taken++;
	}
	assert_in_range(identities_count(identities), MAX / 2, MAX);
	assert_in_range(taken, 300000, 700000);
	/* A sanitizer's allocator does not tell. */
	if (mallinfo2().uordblks > 0)
		assert_in_range(mallinfo2().uordblks - before, MAX * 20, MAX * 50);
}

struct taker {
	pthread_t thread;
	uint64_t first;
	unsigned taken, most; /* how many were known at a time */
	bool has_counters;
};

static void *
take_many(void *context)
{
	struct taker *taker = context;
	struct err err;

	taker->has_counters = counter_thread_start(&err) == 0;
	for (uint64_t i = 0; taker->has_counters && i < 50000; i++) {
		const uint64_t identity = scattered(taker->first + i);

		if (identities_take(identities, identity, 1000, (int64_t)i, (int64_t)i + 500))
			taker->taken++;
		const uint64_t count = identities_count(identities);

		taker->most = count > taker->most ? (unsigned)count : taker->most;
		if (i % 3 == 0)
			identities_forget(identities, identity);
	}
	return NULL;
}

static void
threads_may_share_it(void **state)
{
	struct taker takers[] = { { .first = 0 }, { .first = 0 }, { .first = 25000 },
		{ .first = 100000 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(takers); i++)
		assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
	for (size_t i = 0; i < LENGTH_OF(takers); i++)
		assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
	for (size_t i = 0; i < LENGTH_OF(takers); i++) {
		assert_true(takers[i].has_counters);
		assert_in_range(takers[i].taken, 1000, 50000);
		/* One that finds no room is counted for a moment. */
		assert_in_range(takers[i].most, 300, 1000 + LENGTH_OF(takers));
	}
	assert_int_equal(counter_sum(COUNT_IDENTITIES), identities_count(identities));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_more_than_max_are_known_and_those_stay),
		TEST(those_whose_time_is_over_make_room),
		TEST(one_that_is_kept_is_known_for_as_long_as_the_latest_says),
		TEST(taking_and_forgetting_in_any_order_loses_nobody),
		TEST(memory_is_flat_however_many_come),
		TEST(threads_may_share_it),
	};
	struct err err;

	return counter_thread_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
