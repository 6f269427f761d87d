/*
 * Entries in a stripe, under its lock. A process may die between any two stores: then the next one
 * to lock the stripe repairs it, which rebuilds chains and free list from the cells alone. So a
 * head is marked as such last, when it is whole; and of an entry that is there the old state or the
 * new one is found, whatever its length.
 */
#include "cells.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { EVICTION_SAMPLE = 16 };

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

/* Frees an entry other than `keep`. The sample goes round, so every entry has its turn. */
static void
make_room(
	const struct stripe_view *view, const struct cell *keep, int64_t now_us, unsigned *evicted)
{
	struct cell *least = NULL;
	unsigned seen = 0;

	for (uint32_t steps = 0;
		steps < view->cell_count && (seen < EVICTION_SAMPLE || least == NULL); steps++) {
		const uint32_t at = view->stripe->hand;
		struct cell *cell = &view->cells[at];

		view->stripe->hand = at + 1 < view->cell_count ? at + 1 : 1;
		if (cell->kind != CELL_HEAD || cell == keep)
			continue;
		seen++;
		if (least == NULL || cell->u.head.worthless_at_us < least->u.head.worthless_at_us)
			least = cell;
		if (least->u.head.worthless_at_us <= now_us)
			break;
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

/* At least as many cells behind the head as `len` needs. A stripe has room for the largest state
 * many times over. */
static void
grow(const struct stripe_view *view, struct cell *head, size_t len, int64_t now_us,
	unsigned *evicted)
{
	struct cell *last = head;

	for (size_t covered = HEAD_BYTES; covered < len; covered += MORE_BYTES) {
		if (last->more == CELL_NONE) {
			const uint32_t index = cell_take(view, head, now_us, evicted);

			view->cells[index].kind = CELL_MORE;
			last->more = index;
		}
		last = &view->cells[last->more];
	}
}

/* And no more than that, once the state no longer reaches beyond. */
static void
trim(const struct stripe_view *view, struct cell *head)
{
	struct cell *last = head;

	for (size_t covered = HEAD_BYTES; covered < head->len; covered += MORE_BYTES)
		last = &view->cells[last->more];
	while (last->more != CELL_NONE) {
		const uint32_t surplus = last->more;

		last->more = view->cells[surplus].more;
		cell_release(view, surplus);
	}
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
	keep_order();
	head->len = (uint16_t)len;
	keep_order();
}

void
stripe_write(const struct stripe_view *view, const struct hash_wide *key, const uint8_t *bytes,
	size_t len, int64_t worthless_at_us, int64_t now_us, unsigned *evicted)
{
	struct cell *head = stripe_find(view, key);
	const bool is_new = head == NULL;

	if (is_new) {
		head = &view->cells[cell_take(view, NULL, now_us, evicted)];
		head->u.head.key = *key;
		head->len = 0;
	}
	grow(view, head, len, now_us, evicted);
	head->u.head.worthless_at_us = worthless_at_us;
	fill(view, head, bytes, len);
	trim(view, head);
	if (is_new) {
		uint32_t *chain = chain_of(view, key);

		head->next = *chain;
		keep_order();
		head->kind = CELL_HEAD;
		*chain = (uint32_t)(head - view->cells);
	}
}
