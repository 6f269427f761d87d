/*
 * A stripe is made whole again: its chains and its free list are rebuilt from the cells alone. That
 * is done where a process died in it, where the system did, and where it was written over by
 * somebody else: whatever its bytes are, each cell belongs to one entry or is free afterwards.
 */
#include "cells.h"

#include <string.h>

/* Takes the marks back, up to `last`. */
static void
unclaim(const struct stripe_view *view, struct cell *head, const struct cell *last)
{
	struct cell *cell = head;

	cell->is_claimed = 0;
	while (cell != last) {
		cell = &view->cells[cell->more];
		cell->is_claimed = 0;
	}
}

/* Marks the cells of an entry as taken, if all are there and are nobody else's. What hung behind is
 * cut off and becomes free. */
static bool
claim(const struct stripe_view *view, struct cell *head)
{
	struct cell *last = head;

	if (head->len > STATE_MAX)
		return false;
	head->is_claimed = 1;
	for (size_t covered = HEAD_BYTES; covered < head->len; covered += MORE_BYTES) {
		const uint32_t more = last->more;

		if (!stripe_has(view, more) || view->cells[more].kind != CELL_MORE ||
			view->cells[more].is_claimed != 0) {
			unclaim(view, head, last);
			return false;
		}
		last = &view->cells[more];
		last->is_claimed = 1;
	}
	last->more = CELL_NONE;
	return true;
}

void
stripe_repair(const struct stripe_view *view)
{
	bool is_broken = false;

	memset(view->chains, 0, view->chain_count * sizeof view->chains[0]);
	for (uint32_t i = 1; i < view->cell_count; i++)
		view->cells[i].is_claimed = 0;
	for (uint32_t i = 1; i < view->cell_count; i++) {
		struct cell *cell = &view->cells[i];

		if (cell->kind != CELL_HEAD ||
			stripe_look_up(view, &cell->u.head.key, &is_broken) != NULL ||
			!claim(view, cell))
			continue;
		uint32_t *chain = stripe_chain(view, &cell->u.head.key);

		cell->next = *chain;
		*chain = i;
	}
	view->stripe->free = CELL_NONE;
	view->stripe->hand = 1;
	for (uint32_t i = view->cell_count - 1; i >= 1; i--) {
		if (view->cells[i].is_claimed == 0)
			stripe_release(view, i);
	}
}
