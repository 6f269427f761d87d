/*
 * How full the memory is. What has run out stays in its cell until somebody needs that, so free
 * cells say nothing: the live ones are counted, a stripe at a time, under its lock. Keys are spread
 * evenly by their hash, so when there are many cells a few stripes stand for all.
 */
#include "locks.h"
#include "memory_private.h"

#include "weir/clock.h"

/* As many as 16 MB have. A stripe of them is counted in some microseconds. */
enum { CELLS_COUNTED = 131072 };

static uint64_t
live_cells(const struct stripe_view *view, int64_t now_us)
{
	uint64_t live = 0;

	for (uint32_t i = 1; i < view->cell_count; i++) {
		const struct cell *cell = &view->cells[i];

		if (cell->kind != CELL_HEAD || cell->u.head.worthless_at_us <= now_us)
			continue;
		live++;
		if (cell->len > HEAD_BYTES)
			live += (uint64_t)(cell->len - HEAD_BYTES + MORE_BYTES - 1) / MORE_BYTES;
	}
	return live;
}

/* Without the first cell of each stripe, which is the stripe's own. */
static uint64_t
cells_of(const struct memory_layout *layout, uint32_t stripes)
{
	return (uint64_t)stripes * (layout->cell_count - 1);
}

uint64_t
memory_room(const struct memory *memory)
{
	return cells_of(&memory->layout, memory->layout.stripe_count) * CELL_SIZE;
}

uint64_t
memory_used(struct memory *memory)
{
	const struct memory_layout *layout = &memory->layout;
	const uint64_t wanted = CELLS_COUNTED / layout->cell_count + 1;
	const uint32_t count =
		wanted < layout->stripe_count ? (uint32_t)wanted : layout->stripe_count;
	const int64_t now = clock_wall_us();
	uint32_t counted = 0;
	uint64_t live = 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct stripe_view view = memory_stripe_at(memory, i);

		if (!lock_stripes(memory, &view, 1, 0))
			continue;
		live += live_cells(&view, now);
		unlock_stripes(&view, 1);
		counted++;
	}
	return counted == 0 ? 0 : live * layout->stripe_count / counted * CELL_SIZE;
}
