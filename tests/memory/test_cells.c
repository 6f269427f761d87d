/* src/memory/cells.h: entries in one stripe. */
#define STRIPE_CELLS 1000 /* for two of the largest states */

#include "stripe.h"

static struct test_stripe stripe;
static struct stripe_view view;

static int
setup(void **state)
{
	(void)state;
	memset(&stripe, 0, sizeof stripe);
	view = stripe_view_of(&stripe);
	stripe_init(&view);
	return 0;
}

/* A state that tells its key and length. */
static void
fill(uint8_t bytes[STATE_MAX], unsigned key, size_t len)
{
	uint64_t random = key * UINT64_C(1000) + len + 1;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(random_next(&random) >> 24);
}

/* Worth nothing from the time `worthless_at` on; it is 0 now. Returns how many were evicted. */
static unsigned
put(unsigned number, size_t len, int64_t worthless_at_us)
{
	const struct hash_wide key = key_of(number);
	static uint8_t bytes[STATE_MAX];
	unsigned evicted = 0;

	fill(bytes, number, len);
	stripe_write(&view, &key, bytes, len, worthless_at_us, 0, &evicted);
	return evicted;
}

/* Whether the entry is there; and it must have the state that was put. */
static bool
has(unsigned number, size_t len)
{
	const struct hash_wide key = key_of(number);
	const struct cell *head = stripe_find(&view, &key);
	static uint8_t bytes[STATE_MAX], expected[STATE_MAX];

	if (head == NULL)
		return false;
	assert_int_equal(stripe_read(&view, head, bytes), len);
	fill(expected, number, len);
	assert_memory_equal(bytes, expected, len);
	return true;
}

static void
a_new_stripe_is_empty_and_all_cells_are_free(void **state)
{
	(void)state;
	assert_int_equal(check_stripe(&view), 0);
	assert_false(has(1, 0));
}

enum { SHORT = 700, LONG = 200, LENGTHS = SHORT + LONG + 1 };

/* All that take a few cells, some of the others, and the longest. */
static size_t
length_of(size_t i)
{
	return i <= SHORT ? i : SHORT + (STATE_MAX - SHORT) * (i - SHORT) / LONG;
}

static void
states_of_every_length_are_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * LENGTHS; i++) {
		/* Longer and longer, and shorter again. */
		const size_t len = length_of(i < LENGTHS ? i : 2 * LENGTHS - 1 - i);

		assert_int_equal(put(1, len, 1), 0);
		assert_true(has(1, len));
		assert_int_equal(check_stripe(&view), 1);
	}
}

static void
entries_of_one_chain_are_told_apart(void **state)
{
	struct hash_wide keys[20];
	unsigned evicted = 0;

	(void)state;
	for (unsigned i = 0; i < LENGTH_OF(keys); i++) {
		keys[i] = key_of(0);
		keys[i].bytes[15] = (uint8_t)i;
		stripe_write(&view, &keys[i], &keys[i].bytes[15], 1, 1, 0, &evicted);
	}
	for (unsigned i = 0; i < LENGTH_OF(keys); i++) {
		static uint8_t byte[STATE_MAX];
		const struct cell *head = stripe_find(&view, &keys[i]);

		assert_non_null(head);
		assert_int_equal(stripe_read(&view, head, byte), 1);
		assert_int_equal(byte[0], i);
	}
	assert_int_equal(check_stripe(&view), LENGTH_OF(keys));
}

/* ---- a full stripe ---- */

static void
a_full_stripe_takes_new_entries_and_counts_what_gave_way(void **state)
{
	unsigned evicted = 0;

	(void)state;
	for (unsigned i = 0; i < 16 * STRIPE_CELLS; i++) {
		evicted += put(i, 8, 1000);
		assert_true(has(i, 8));
	}
	assert_int_equal(check_stripe(&view), STRIPE_CELLS - 1);
	assert_int_equal(evicted, 15 * STRIPE_CELLS + 1);
}

static void
what_is_worthless_goes_first_and_is_not_counted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < STRIPE_CELLS - 1; i++)
		assert_int_equal(put(i, 8, i % 10 == 0 ? 0 : 1000), 0);
	for (unsigned i = 0; i < (STRIPE_CELLS - 1 + 9) / 10; i++)
		assert_int_equal(put(10000 + i, 8, 1000), 0);
	for (unsigned i = 0; i < STRIPE_CELLS - 1; i++)
		assert_true(has(i, 8) == (i % 10 != 0));
	assert_int_equal(put(20000, 8, 1000), 1);
}

static void
of_what_is_worth_something_the_least_goes(void **state)
{
	unsigned kept = 0;

	(void)state;
	for (unsigned i = 0; i < STRIPE_CELLS - 1; i++)
		assert_int_equal(put(i, 8, i % 8 == 0 ? 10 : 1000000), 0);
	for (unsigned i = 0; i < STRIPE_CELLS / 10; i++)
		assert_int_equal(put(10000 + i, 8, 1000000), 1);
	for (unsigned i = 0; i < STRIPE_CELLS - 1; i++)
		kept += i % 8 != 0 && has(i, 8);
	assert_int_equal(kept, STRIPE_CELLS - 1 - (STRIPE_CELLS - 1 + 7) / 8);
}

static void
a_large_state_finds_room_in_a_full_stripe(void **state)
{
	unsigned evicted = 0;

	(void)state;
	for (unsigned i = 0; i < STRIPE_CELLS - 1; i++)
		assert_int_equal(put(i, 8, 1000), 0);
	for (unsigned i = 0; i < 100; i++) {
		evicted += put(10000 + i, STATE_MAX, 2000);
		assert_true(has(10000 + i, STATE_MAX));
		(void)check_stripe(&view);
	}
	assert_true(evicted >= STRIPE_CELLS - 1);
	/* An entry that grows never gives way to itself. */
	for (unsigned i = 0; i < 300; i++) {
		(void)put(20000 + i, 8, -1000);
		(void)put(20000 + i, STATE_MAX, -1000);
		assert_true(has(20000 + i, STATE_MAX));
	}
	(void)check_stripe(&view);
}

/* ---- repair ---- */

enum { KEYS = 40 };

static void
repair_changes_nothing_in_a_sound_stripe(void **state)
{
	size_t lens[KEYS] = { 0 };
	uint64_t random = 3;

	(void)state;
	for (unsigned round = 0; round < 3000; round++) {
		const unsigned number = (unsigned)random_below(&random, KEYS);

		lens[number] = 1 + random_below(&random, 150);
		assert_int_equal(put(number, lens[number], 1000), 0);
		if (round % 10 == 0)
			stripe_repair(&view);
		(void)check_stripe(&view);
	}
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(lens[i] == 0 || has(i, lens[i]));
}

/* Whatever stands in the cells: no crash, no loop, and a stripe that works. */
static void
garbage_is_made_a_sound_stripe(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		(void)setup(NULL);
		for (unsigned i = 0; i < KEYS; i++)
			(void)put(i, 1 + random_below(&random, 300), 1000);
		const size_t hits = 1 + random_below(&random, 200);

		for (size_t i = 0; i < hits; i++) {
			struct cell *cell =
				&stripe.cells[1 + random_below(&random, STRIPE_CELLS - 1)];

			switch (random_below(&random, 6)) {
			case 0:
				cell->kind = (uint8_t)random_below(&random, 5);
				break;
			case 1:
				cell->more = (uint32_t)random_below(&random, STRIPE_CELLS + 3);
				break;
			case 2:
				cell->more = (uint32_t)random_next(&random);
				break;
			case 3:
				cell->len = (uint16_t)random_below(
					&random, i % 2 == 0 ? 700 : UINT16_MAX + 1);
				break;
			case 4:
				cell->is_claimed = 1;
				break;
			default:
				cell->next = (uint32_t)random_next(&random);
				break;
			}
		}
		memset(stripe.chains, (int)random_below(&random, 256), sizeof stripe.chains);
		stripe_repair(&view);
		(void)check_stripe(&view);
		for (unsigned i = 0; i < 200; i++)
			(void)put(i, 1 + random_below(&random, i == 0 ? STATE_MAX : 300), 1000);
		(void)check_stripe(&view);
	}
}

static void
of_two_entries_with_one_key_one_stays(void **state)
{
	(void)state;
	assert_int_equal(put(1, 200, 1000), 0);
	assert_int_equal(put(2, 8, 1000), 0);
	const struct hash_wide one = key_of(1), two = key_of(2);

	stripe_find(&view, &two)->u.head.key = one;
	stripe_repair(&view);
	assert_int_equal(check_stripe(&view), 1);
}

#define cells_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cells_test(a_new_stripe_is_empty_and_all_cells_are_free),
		cells_test(states_of_every_length_are_read_back),
		cells_test(entries_of_one_chain_are_told_apart),
		cells_test(a_full_stripe_takes_new_entries_and_counts_what_gave_way),
		cells_test(what_is_worthless_goes_first_and_is_not_counted),
		cells_test(of_what_is_worth_something_the_least_goes),
		cells_test(a_large_state_finds_room_in_a_full_stripe),
		cells_test(repair_changes_nothing_in_a_sound_stripe),
		cells_test(garbage_is_made_a_sound_stripe),
		cells_test(of_two_entries_with_one_key_one_stays),
	};

	return cmocka_run_group_tests_name("memory/cells", tests, NULL, NULL);
}
