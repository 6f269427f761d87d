/* A stripe of the test's own, and whether all its cells are where they should be. */
#ifndef WEIR_TESTS_MEMORY_STRIPE_H
#define WEIR_TESTS_MEMORY_STRIPE_H

#include "../../src/memory/cells.h"
#include "../unit.h"

/* A test may want a larger one. */
#ifndef STRIPE_CELLS
#define STRIPE_CELLS 125
#endif

enum { STRIPE_CHAINS = 64 };

struct test_stripe {
	_Alignas(64) uint32_t chains[STRIPE_CHAINS];
	struct cell cells[STRIPE_CELLS];
};

static inline struct stripe_view
stripe_view_of(struct test_stripe *stripe)
{
	return (struct stripe_view){
		.stripe = (struct stripe *)(void *)stripe->cells,
		.chains = stripe->chains,
		.chain_count = STRIPE_CHAINS,
		.cells = stripe->cells,
		.cell_count = STRIPE_CELLS,
	};
}

static inline struct hash_wide
key_of(unsigned number)
{
	struct hash_wide key = { { 0 } };
	uint64_t state = number + 1;

	for (size_t i = 0; i < sizeof key.bytes; i++)
		key.bytes[i] = (uint8_t)(random_next(&state) >> 32);
	return key;
}

static inline unsigned
take_cell(const struct stripe_view *view, bool *taken, uint32_t index)
{
	assert_in_range(index, 1, view->cell_count - 1);
	assert_row(!taken[index], "cell %u is in two places", index);
	taken[index] = true;
	return 1;
}

/* Every cell belongs to one entry of a chain or is free, once. Returns the number of entries. */
static inline unsigned
check_stripe(const struct stripe_view *view)
{
	bool *taken = calloc(view->cell_count, sizeof *taken);
	unsigned cells = 0, entries = 0;

	assert_non_null(taken);
	for (uint32_t chain = 0; chain < view->chain_count; chain++) {
		for (uint32_t at = view->chains[chain]; at != CELL_NONE;
			at = view->cells[at].next) {
			const struct cell *head = &view->cells[at];
			size_t covered = HEAD_BYTES;

			cells += take_cell(view, taken, at);
			entries++;
			assert_int_equal(head->kind, CELL_HEAD);
			assert_in_range(head->len, 0, STATE_MAX);
			assert_ptr_equal(stripe_find(view, &head->u.head.key), head);
			for (uint32_t more = head->more; more != CELL_NONE;
				more = view->cells[more].more, covered += MORE_BYTES) {
				cells += take_cell(view, taken, more);
				assert_int_equal(view->cells[more].kind, CELL_MORE);
				assert_true(covered < head->len);
			}
			assert_true(covered >= head->len);
		}
	}
	for (uint32_t at = view->stripe->free; at != CELL_NONE; at = view->cells[at].next) {
		cells += take_cell(view, taken, at);
		assert_int_equal(view->cells[at].kind, CELL_FREE);
	}
	assert_int_equal(cells, view->cell_count - 1);
	free(taken);
	return entries;
}

#endif
