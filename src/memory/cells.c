/*
 * Entries in a stripe, under its lock. A process may die between any two stores: then the next one
 * to lock the stripe repairs it, which rebuilds chains and free list from the cells alone. So an
 * entry is never written over: its new state is written to cells of its own, and their head is
 * marked as such last, when all is whole. Only then is the old entry given up. Whoever repairs the
 * stripe finds the old state or the new one, or both, and then keeps one.
 *
 * The file is a file, and may be written over while it is in use. So a link is looked at before it
 * is followed, and one that leads nowhere has the stripe repaired.
 */
#include "cells.h"

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

uint32_t *
stripe_chain(const struct stripe_view *view, const struct hash_wide *key)
{
	uint32_t word;

	/* The first bytes choose the stripe. */
	memcpy(&word, key->bytes + 8, sizeof word);
	return &view->chains[word & (view->chain_count - 1)];
}

void
stripe_release(const struct stripe_view *view, uint32_t index)
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
		stripe_release(view, i);
}

/* Whether all cells of the entry are there. */
static bool
is_whole(const struct stripe_view *view, const struct cell *head)
{
	uint32_t more = head->more;

	if (head->kind != CELL_HEAD || head->len > STATE_MAX)
		return false;
	for (size_t covered = HEAD_BYTES; covered < head->len; covered += MORE_BYTES) {
		if (!stripe_has(view, more))
			return false;
		more = view->cells[more].more;
	}
	return true;
}

struct cell *
stripe_look_up(const struct stripe_view *view, const struct hash_wide *key, bool *is_broken)
{
	uint32_t at = *stripe_chain(view, key), left = view->cell_count;

	while (at != CELL_NONE && stripe_has(view, at) && left-- > 0) {
		struct cell *cell = &view->cells[at];

		if (memcmp(&cell->u.head.key, key, sizeof *key) == 0) {
			*is_broken = !is_whole(view, cell);
			return *is_broken ? NULL : cell;
		}
		at = cell->next;
	}
	*is_broken = at != CELL_NONE;
	return NULL;
}

struct cell *
stripe_find(const struct stripe_view *view, const struct hash_wide *key)
{
	bool is_broken;
	struct cell *cell = stripe_look_up(view, key, &is_broken);

	if (!is_broken)
		return cell;
	stripe_repair(view);
	return stripe_look_up(view, key, &is_broken);
}

size_t
stripe_read(const struct stripe_view *view, const struct cell *head, uint8_t *out)
{
	size_t done = head->len < HEAD_BYTES ? head->len : HEAD_BYTES;

	memcpy(out, head->u.head.bytes, done);
	for (uint32_t more = head->more; done < head->len && stripe_has(view, more);
		more = view->cells[more].more) {
		const size_t left = head->len - done, n = left < MORE_BYTES ? left : MORE_BYTES;

		memcpy(out + done, view->cells[more].u.bytes, n);
		done += n;
	}
	return done;
}

/* NULL: it is in no chain that can be followed. */
static uint32_t *
link_to(const struct stripe_view *view, const struct cell *head)
{
	const uint32_t index = (uint32_t)(head - view->cells);
	uint32_t *link = stripe_chain(view, &head->u.head.key);

	for (uint32_t left = view->cell_count; *link != index; left--) {
		if (left == 0 || !stripe_has(view, *link))
			return NULL;
		link = &view->cells[*link].next;
	}
	return link;
}

/* False: the stripe is broken. */
static bool
entry_release(const struct stripe_view *view, struct cell *head)
{
	uint32_t *link = link_to(view, head);
	uint32_t more = head->more;

	if (link == NULL)
		return false;
	*link = head->next;
	stripe_release(view, (uint32_t)(head - view->cells));
	while (more != CELL_NONE) {
		/* Those that are free already end a ring, too. */
		if (!stripe_has(view, more) || view->cells[more].kind != CELL_MORE)
			return false;
		const uint32_t next = view->cells[more].more;

		stripe_release(view, more);
		more = next;
	}
	return true;
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
		const uint32_t hand = view->stripe->hand;
		const uint32_t at = stripe_has(view, hand) ? hand : 1;

		view->stripe->hand = at + 1 < view->cell_count ? at + 1 : 1;
		seen += view->cells[at].kind == CELL_HEAD;
		least = lesser(least, &view->cells[at], keep);
		if (least != NULL && least->u.head.worthless_at_us <= now_us)
			break;
	}
	return least;
}

/* Frees an entry other than `keep`. Those that came together lie together, and may all be worth
 * much: so some are looked at that lie far apart. False: the stripe is broken. */
static bool
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
		return false;
	if (least->u.head.worthless_at_us > now_us)
		(*evicted)++;
	return entry_release(view, least);
}

/* CELL_NONE: the stripe is broken. */
static uint32_t
cell_take(
	const struct stripe_view *view, const struct cell *keep, int64_t now_us, unsigned *evicted)
{
	if (view->stripe->free == CELL_NONE && !make_room(view, keep, now_us, evicted))
		return CELL_NONE;
	const uint32_t index = view->stripe->free;

	if (!stripe_has(view, index) || view->cells[index].kind != CELL_FREE)
		return CELL_NONE;
	view->stripe->free = view->cells[index].next;
	view->cells[index].more = CELL_NONE;
	return index;
}

/* Cells for a state of `len` bytes, not yet an entry; their head. A stripe has room for the largest
 * state several times over. NULL: it is broken. */
static struct cell *
take_cells(const struct stripe_view *view, size_t len, const struct cell *keep, int64_t now_us,
	unsigned *evicted)
{
	const uint32_t first = cell_take(view, keep, now_us, evicted);
	struct cell *last = &view->cells[first];

	if (first == CELL_NONE)
		return NULL;
	for (size_t covered = HEAD_BYTES; covered < len; covered += MORE_BYTES) {
		const uint32_t index = cell_take(view, keep, now_us, evicted);

		if (index == CELL_NONE)
			return NULL;
		view->cells[index].kind = CELL_MORE;
		last->more = index;
		last = &view->cells[index];
	}
	return &view->cells[first];
}

static void
fill(const struct stripe_view *view, struct cell *head, const uint8_t *bytes, size_t len)
{
	size_t done = len < HEAD_BYTES ? len : HEAD_BYTES;

	memcpy(head->u.head.bytes, bytes, done);
	for (uint32_t more = head->more; done < len && stripe_has(view, more);
		more = view->cells[more].more) {
		const size_t left = len - done, n = left < MORE_BYTES ? left : MORE_BYTES;

		memcpy(view->cells[more].u.bytes, bytes + done, n);
		done += n;
	}
	head->len = (uint16_t)len;
}

/* False: the stripe is broken. */
static bool
try_write(const struct stripe_view *view, const struct hash_wide *key, const uint8_t *bytes,
	size_t len, int64_t worthless_at_us, int64_t now_us, unsigned *evicted)
{
	struct cell *old = stripe_find(view, key);
	struct cell *head = take_cells(view, len, old, now_us, evicted);

	if (head == NULL)
		return false;
	head->u.head.key = *key;
	head->u.head.worthless_at_us = worthless_at_us;
	fill(view, head, bytes, len);
	keep_order();
	head->kind = CELL_HEAD;
	keep_order();
	if (old != NULL && !entry_release(view, old))
		return false;
	uint32_t *chain = stripe_chain(view, key);

	head->next = *chain;
	*chain = (uint32_t)(head - view->cells);
	return true;
}

void
stripe_write(const struct stripe_view *view, const struct hash_wide *key, const uint8_t *bytes,
	size_t len, int64_t worthless_at_us, int64_t now_us, unsigned *evicted)
{
	if (try_write(view, key, bytes, len, worthless_at_us, now_us, evicted))
		return;
	stripe_repair(view);
	/* Once more it fails only if somebody breaks it at this moment. */
	if (!try_write(view, key, bytes, len, worthless_at_us, now_us, evicted))
		stripe_repair(view);
}
