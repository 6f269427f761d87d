/* memory.h: how full it is said to be. */
#include "../../src/memory/memory_private.h"
#include "store.h"
#include "weir/counter.h"
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
what_is_used_is_what_still_counts(void **state)
{
	struct made_limit made, log;

	(void)state;
	make_limit(&made, "l", "5/1d");
	make_limit(&log, "m", "100/1d sliding-log");
	const uint64_t room = memory_room(memory);

	assert_in_range(room, MEMORY_SIZE_MIN * 9 / 10, MEMORY_SIZE_MIN);
	assert_int_equal(memory_used(memory), 0);
	for (unsigned i = 0; i < 100; i++) {
		char key[20];

		(void)snprintf(key, sizeof key, "k%u", i);
		(void)memory_decide(memory, &made, key, 1, 0);
		(void)memory_decide(memory, &made, key, 1, 0);
	}
	assert_int_equal(memory_used(memory), 100 * 128);
	/* A long log takes more than a cell. */
	for (unsigned i = 0; i < 50; i++)
		(void)memory_decide(memory, &log, "k", 1, 0);
	assert_in_range(memory_used(memory), 102 * 128, 110 * 128);
	/* What ended in 2001 has a place and counts for nothing. */
	const uint64_t before = memory_used(memory);

	for (unsigned i = 0; i < 100; i++) {
		char key[20];

		(void)snprintf(key, sizeof key, "old%u", i);
		(void)memory_decide(memory, &made, key, 1, INT64_C(1000000000) * US_PER_S);
	}
	assert_int_equal(memory_used(memory), before);
	assert_int_equal(memory_room(memory), room);
}

static void
a_full_memory_is_nearly_all_used(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1d");
	for (unsigned i = 0; i < 20000; i++) {
		char key[20];

		(void)snprintf(key, sizeof key, "k%u", i);
		(void)memory_decide(memory, &made, key, 1, 0);
	}
	const uint64_t room = memory_room(memory);

	assert_in_range(memory_used(memory), room * 95 / 100, room);
}

/* Of a large one only a part is looked at. */
static void
what_a_large_one_uses_is_estimated(void **state)
{
	struct made_limit made;
	struct err err;
	struct memory *large = memory_open_private(64 * 1024 * 1024, &err);

	(void)state;
	assert_non_null(large);
	make_limit(&made, "l", "5/1d");
	for (unsigned i = 0; i < 40000; i++) {
		char key[20];

		(void)snprintf(key, sizeof key, "k%u", i);
		(void)memory_decide(large, &made, key, 1, 0);
	}
	/* A quarter of them is looked at: a deviation of 1 % is one in thousands. */
	assert_in_range(memory_used(large), 40000 * 128 * 9 / 10, 40000 * 128 * 11 / 10);
	memory_close(large);
}

/* One that is stopped inside a stripe keeps nobody from being counted elsewhere. */
static void
what_is_held_is_left_out(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1d");
	for (unsigned i = 0; i < 2000; i++) {
		char key[20];

		(void)snprintf(key, sizeof key, "k%u", i);
		(void)memory_decide(memory, &made, key, 1, 0);
	}
	const struct stripe_view view = memory_stripe_at(memory, 0);

	assert_int_equal(pthread_mutex_lock(&view.stripe->lock), 0);
	/* An even share is taken for it. */
	assert_in_range(memory_used(memory), 2000 * 128 * 8 / 10, 2000 * 128 * 12 / 10);
	assert_int_equal(pthread_mutex_unlock(&view.stripe->lock), 0);
	assert_int_equal(memory_used(memory), 2000 * 128);
}

#define memory_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		memory_test(what_is_used_is_what_still_counts),
		memory_test(a_full_memory_is_nearly_all_used),
		memory_test(what_is_held_is_left_out),
		cmocka_unit_test(what_a_large_one_uses_is_estimated),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/fill", tests, NULL, NULL);
}
