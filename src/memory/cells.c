/*
 * Entries in a stripe, under its lock. A process may die between any two stores: then the next one
 * to lock the stripe repairs it, which rebuilds chains and free list from the cells alone. So an
 * entry is never written over: its new state is written to cells of its own, and their head is
 * marked as such last, when all is whole. Only then is the old entry given up. Whoever repairs the
 * stripe finds the old state or the new one, or both, and then keeps one.
 */
#include "cells.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

/* Of the entries that may give way, so many are looked at. */
enum { SWEPT = 16, SCATTERED = 8 };

/* What stands before is stored before. The compiler alone could change that: the kernel ends a
 * process with all that it has stored. */
static void
keep_order(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

static uint32_t *
chain_of(const struct stripe_view *view, const struct hash_wide *key)
{
	uint32_t word;

	/* The first bytes choose the stripe. */
	memcpy(&word, key->bytes + 8, sizeof word);
	return &view->chains[word & (view->chain_count - 1)];
}

static void
cell_release(const struct stripe_view *view, uint32_t index)
{
	struct cell *cell = &view->cells[index];

	cell->kind = CELL_FREE;
	cell->next = view->stripe->free;
	view->stripe->free = index;
}

void
stripe_init(const struct stripe_view *view)
{
	view->stripe->free = CELL_NONE;
	view->stripe->hand = 1;
	for (uint32_t i = view->cell_count - 1; i >= 1; i--)
		cell_release(view, i);
}

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

		if (more == CELL_NONE || more >= view->cell_count ||
			view->cells[more].kind != CELL_MORE || view->cells[more].is_claimed != 0) {
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
	memset(view->chains, 0, view->chain_count * sizeof view->chains[0]);
	for (uint32_t i = 1; i < view->cell_count; i++)
		view->cells[i].is_claimed = 0;
	for (uint32_t i = 1; i < view->cell_count; i++) {
		struct cell *cell = &view->cells[i];

		if (cell->kind != CELL_HEAD || stripe_find(view, &cell->u.head.key) != NULL ||
			!claim(view, cell))
			continue;
		uint32_t *chain = chain_of(view, &cell->u.head.key);

		cell->next = *chain;
		*chain = i;
	}
	view->stripe->free = CELL_NONE;
	view->stripe->hand = 1;
	for (uint32_t i = view->cell_count - 1; i >= 1; i--) {
		if (view->cells[i].is_claimed == 0)
			cell_release(view, i);
	}
}

struct cell *
stripe_find(const struct stripe_view *view, const struct hash_wide *key)
{
	uint32_t at = *chain_of(view, key);

	while (at != CELL_NONE && memcmp(&view->cells[at].u.head.key, key, sizeof *key) != 0)
		at = view->cells[at].next;
	return at == CELL_NONE ? NULL : &view->cells[at];
}

size_t
stripe_read(const struct stripe_view *view, const struct cell *head, uint8_t *out)
{
	size_t done = head->len < HEAD_BYTES ? head->len : HEAD_BYTES;

	memcpy(out, head->u.head.bytes, done);
	for (uint32_t more = head->more; done < head->len; more = view->cells[more].more) {
		const size_t left = head->len - done, n = left < MORE_BYTES ? left : MORE_BYTES;

		memcpy(out + done, view->cells[more].u.bytes, n);
		done += n;
	}
	return done;
}

static void
entry_release(const struct stripe_view *view, struct cell *head)
{
	const uint32_t index = (uint32_t)(head - view->cells);
	uint32_t *link = chain_of(view, &head->u.head.key);

	while (*link != index)
		link = &view->cells[*link].next;
	*link = head->next;
	uint32_t more = head->more;

	cell_release(view, index);
	while (more != CELL_NONE) {
		const uint32_t next = view->cells[more].more;

		cell_release(view, more);
		more = next;
	}
}

/* The one of two entries that is worthless first. What is no entry, or is to be kept, is not
 * chosen. */
static struct cell *
lesser(struct cell *least, struct cell *cell, const struct cell *keep)
{
	if (cell->kind != CELL_HEAD || cell == keep)
		return least;
	return least == NULL || cell->u.head.worthless_at_us < least->u.head.worthless_at_us
		? cell
		: least;
}

/* A few entries in a row, the hand going round, so that every entry has its turn, and the oldest
 * first; fewer if one is worthless. */
static struct cell *
sweep(const struct stripe_view *view, const struct cell *keep, int64_t now_us)
{
	struct cell *least = NULL;
	unsigned seen = 0;

	for (uint32_t steps = 0; steps < view->cell_count && (seen < SWEPT || least == NULL);
		steps++) {
		const uint32_t at = view->stripe->hand;

		view->stripe->hand = at + 1 < view->cell_count ? at + 1 : 1;
		seen += view->cells[at].kind == CELL_HEAD;
		least = lesser(least, &view->cells[at], keep);
		if (least != NULL && least->u.head.worthless_at_us <= now_us)
			break;
	}
	return least;
}

/* Frees an entry other than `keep`. Those that came together lie together, and may all be worth
 * much: so some are looked at that lie far apart. */
static void
make_room(
	const struct stripe_view *view, const struct cell *keep, int64_t now_us, unsigned *evicted)
{
	const uint32_t cells = view->cell_count - 1;
	struct cell *least = sweep(view, keep, now_us);

	for (uint32_t i = 1; i <= SCATTERED; i++) {
		if (least == NULL || least->u.head.worthless_at_us <= now_us)
			break;
		const uint32_t at =
			(view->stripe->hand + i * (cells / (SCATTERED + 1))) % cells + 1;

		least = lesser(least, &view->cells[at], keep);
	}
	if (least == NULL)
		return;
	if (least->u.head.worthless_at_us > now_us)
		(*evicted)++;
	entry_release(view, least);
}

static uint32_t
cell_take(
	const struct stripe_view *view, const struct cell *keep, int64_t now_us, unsigned *evicted)
{
	if (view->stripe->free == CELL_NONE)
		make_room(view, keep, now_us, evicted);
	const uint32_t index = view->stripe->free;

	assert(index != CELL_NONE);
	view->stripe->free = view->cells[index].next;
	view->cells[index].more = CELL_NONE;
	return index;
}

/* Cells for a state of `len` bytes, not yet an entry; their head. A stripe has room for the largest
 * state several times over. */
static struct cell *
take_cells(const struct stripe_view *view, size_t len, const struct cell *keep, int64_t now_us,
	unsigned *evicted)
{
	struct cell *head = &view->cells[cell_take(view, keep, now_us, evicted)];
	struct cell *last = head;

	for (size_t covered = HEAD_BYTES; covered < len; covered += MORE_BYTES) {
		const uint32_t index = cell_take(view, keep, now_us, evicted);

		view->cells[index].kind = CELL_MORE;
		last->more = index;
		last = &view->cells[index];
	}
	return head;
}

static void
fill(const struct stripe_view *view, struct cell *head, const uint8_t *bytes, size_t len)
{
	size_t done = len < HEAD_BYTES ? len : HEAD_BYTES;

	memcpy(head->u.head.bytes, bytes, done);
	for (uint32_t more = head->more; done < len; more = view->cells[more].more) {
		const size_t left = len - done, n = left < MORE_BYTES ? left : MORE_BYTES;

		memcpy(view->cells[more].u.bytes, bytes + done, n);
		done += n;
	}
	head->len = (uint16_t)len;
}

void
stripe_write(const struct stripe_view *view, const struct hash_wide *key, const uint8_t *bytes,
	size_t len, int64_t worthless_at_us, int64_t now_us, unsigned *evicted)
{
	struct cell *old = stripe_find(view, key);
	struct cell *head = take_cells(view, len, old, now_us, evicted);

	head->u.head.key = *key;
	head->u.head.worthless_at_us = worthless_at_us;
	fill(view, head, bytes, len);
	keep_order();
	head->kind = CELL_HEAD;
	keep_order();
	if (old != NULL)
		entry_release(view, old);
	uint32_t *chain = chain_of(view, key);

	head->next = *chain;
	*chain = (uint32_t)(head - view->cells);
}
