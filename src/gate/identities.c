/*
 * Tables of open addressing with linear probing, TABLES of them, each with its lock and each
 * growing by itself: so threads seldom meet, and no request waits while more than a small part of
 * all is moved. Those whose time is over are swept out by a hand that goes round each table, a few
 * places with every call and many, in as many tables as it takes, when there is no room; nobody
 * goes through all.
 */
#include "identities.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { TABLES = 64, CAPACITY_MIN = 8, SWEPT = 4, SWEPT_WHEN_FULL = TABLES * CAPACITY_MIN };

struct entry {
	uint64_t identity; /* 0: a free place */
	int64_t until_us;
};

struct table {
	pthread_mutex_t lock;
	struct entry *entries;
	size_t capacity; /* a power of two, or 0 */
	size_t count, hand;
};

struct identities {
	counter_cell gauge;
	_Atomic uint64_t count;
	_Atomic unsigned next; /* table to be swept when there is no room */
	struct table tables[TABLES];
};

struct identities *
identities_new(counter_cell gauge)
{
	struct identities *identities = calloc(1, sizeof *identities);

	if (identities == NULL)
		return NULL;
	identities->gauge = gauge;
	for (unsigned i = 0; i < TABLES; i++)
		(void)pthread_mutex_init(&identities->tables[i].lock, NULL);
	return identities;
}

void
identities_free(struct identities *identities)
{
	if (identities == NULL)
		return;
	counter_add(identities->gauge, -(int64_t)atomic_load(&identities->count));
	for (unsigned i = 0; i < TABLES; i++) {
		free(identities->tables[i].entries);
		(void)pthread_mutex_destroy(&identities->tables[i].lock);
	}
	free(identities);
}

/* The place of the identity, or the free one where it would be put. */
static size_t
place_of(const struct table *table, uint64_t identity)
{
	size_t at = (identity / TABLES) & (table->capacity - 1);

	while (table->entries[at].identity != 0 && table->entries[at].identity != identity)
		at = (at + 1) & (table->capacity - 1);
	return at;
}

static struct entry *
find(const struct table *table, uint64_t identity)
{
	if (table->capacity == 0)
		return NULL;
	struct entry *entry = &table->entries[place_of(table, identity)];

	return entry->identity == 0 ? NULL : entry;
}

/* What follows without a gap moves up, if it may: else it would not be found behind the gap. */
static void
take_out(struct identities *identities, struct table *table, size_t gap)
{
	const size_t mask = table->capacity - 1;

	for (size_t at = (gap + 1) & mask; table->entries[at].identity != 0; at = (at + 1) & mask) {
		const size_t home = (table->entries[at].identity / TABLES) & mask;

		if (((at - home) & mask) >= ((at - gap) & mask)) {
			table->entries[gap] = table->entries[at];
			gap = at;
		}
	}
	table->entries[gap].identity = 0;
	table->count--;
	(void)atomic_fetch_sub(&identities->count, 1);
	counter_add(identities->gauge, -1);
}

/* Returns how many places were looked at. */
static size_t
sweep(struct identities *identities, struct table *table, int64_t now_us, size_t most)
{
	const size_t places = most < table->capacity ? most : table->capacity;

	for (size_t i = 0; i < places; i++) {
		const struct entry *entry = &table->entries[table->hand];

		/* Another one may have moved to the place. */
		if (entry->identity != 0 && entry->until_us <= now_us)
			take_out(identities, table, table->hand);
		else
			table->hand = (table->hand + 1) & (table->capacity - 1);
	}
	return places;
}

static void
sweep_many(struct identities *identities, int64_t now_us)
{
	size_t left = SWEPT_WHEN_FULL;

	for (unsigned i = 0; i < TABLES && left > 0; i++) {
		struct table *table =
			&identities->tables[atomic_fetch_add(&identities->next, 1) % TABLES];

		(void)pthread_mutex_lock(&table->lock);
		left -= sweep(identities, table, now_us, left);
		(void)pthread_mutex_unlock(&table->lock);
	}
}

/* Room for one more, with a quarter of the places free. */
static int
make_room(struct table *table)
{
	const struct table old = *table;

	if ((old.count + 1) * 4 <= old.capacity * 3)
		return 0;
	const size_t capacity = old.capacity == 0 ? CAPACITY_MIN : old.capacity * 2;
	struct entry *entries = calloc(capacity, sizeof *entries);

	if (entries == NULL)
		return -1;
	table->entries = entries;
	table->capacity = capacity;
	table->hand = 0;
	for (size_t i = 0; i < old.capacity; i++) {
		if (old.entries[i].identity != 0)
			entries[place_of(table, old.entries[i].identity)] = old.entries[i];
	}
	free(old.entries);
	return 0;
}

/* False: there are `max` already, or memory is out. */
static bool
put(struct identities *identities, struct table *table, uint64_t identity, uint64_t max,
	int64_t until_us)
{
	if (make_room(table) != 0)
		return false;
	if (atomic_fetch_add(&identities->count, 1) >= max) {
		(void)atomic_fetch_sub(&identities->count, 1);
		return false;
	}
	table->entries[place_of(table, identity)] = (struct entry){ identity, until_us };
	table->count++;
	counter_add(identities->gauge, 1);
	return true;
}

static struct table *
lock_table(struct identities *identities, uint64_t identity)
{
	struct table *table = &identities->tables[identity % TABLES];

	(void)pthread_mutex_lock(&table->lock);
	return table;
}

/* A free place is one of identity 0. */
static uint64_t
not_zero(uint64_t identity)
{
	return identity == 0 ? 1 : identity;
}

static bool
take(struct identities *identities, uint64_t identity, uint64_t max, int64_t now_us,
	int64_t until_us)
{
	struct table *table = lock_table(identities, identity);
	struct entry *entry;
	bool may = true;

	(void)sweep(identities, table, now_us, SWEPT);
	entry = find(table, identity);
	if (entry == NULL)
		may = put(identities, table, identity, max, until_us);
	else if (entry->until_us < until_us)
		entry->until_us = until_us;
	(void)pthread_mutex_unlock(&table->lock);
	return may;
}

bool
identities_take(struct identities *identities, uint64_t identity, uint64_t max, int64_t now_us,
	int64_t until_us)
{
	identity = not_zero(identity);
	if (take(identities, identity, max, now_us, until_us))
		return true;
	sweep_many(identities, now_us);
	return take(identities, identity, max, now_us, until_us);
}

void
identities_keep(struct identities *identities, uint64_t identity, int64_t now_us, int64_t until_us)
{
	identity = not_zero(identity);
	struct table *table = lock_table(identities, identity);
	struct entry *entry;

	(void)sweep(identities, table, now_us, SWEPT);
	entry = find(table, identity);
	if (entry == NULL)
		(void)put(identities, table, identity, UINT64_MAX, until_us);
	else if (entry->until_us < until_us)
		entry->until_us = until_us;
	(void)pthread_mutex_unlock(&table->lock);
}

void
identities_forget(struct identities *identities, uint64_t identity)
{
	identity = not_zero(identity);
	struct table *table = lock_table(identities, identity);
	const struct entry *entry = find(table, identity);

	if (entry != NULL)
		take_out(identities, table, (size_t)(entry - table->entries));
	(void)pthread_mutex_unlock(&table->lock);
}

uint64_t
identities_count(const struct identities *identities)
{
	return atomic_load(&identities->count);
}
