/*
 * Deciding in memory. The stripes of a check are locked in the order of their addresses, so two
 * checks cannot wait for each other.
 */
#include "desk.h"
#include "locks.h"
#include "memory_private.h"

#include "weir/clock.h"
#include "weir/counter.h"

#include <string.h>

static struct memory *
memory_of(struct store *store)
{
	return (struct memory *)((uintptr_t)store - offsetof(struct memory, store));
}

/* The stripes, each once, in order. */
static unsigned
stripes_in_order(const struct work *works, unsigned count, struct stripe_view *views)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++) {
		unsigned at = 0;

		while (at < n && views[at].stripe < works[i].view.stripe)
			at++;
		if (at < n && views[at].stripe == works[i].view.stripe)
			continue;
		memmove(&views[at + 1], &views[at], (n - at) * sizeof views[0]);
		views[at] = works[i].view;
		n++;
	}
	return n;
}

static struct work
work_of(const struct memory *memory, struct slice key)
{
	struct work work = { .key = hash_wide(memory->layout.hash_key, key) };

	work.view = memory_stripe(memory, &work.key);
	return work;
}

/* With the stripes locked. */
static int
decide_on(struct work *works, const struct check *check, struct decision *decision)
{
	struct bucket buckets[CHECK_LIMITS_MAX];
	struct desk desk;

	for (unsigned i = 0; i < check->count; i++)
		works[i].head = stripe_find(&works[i].view, &works[i].key);
	if (desk_open(&desk, check->items, works, check->count) != 0)
		return -1;
	/* Read under the locks: so time never runs backwards from one holder to the next. */
	const int64_t now = check->now_us != 0 ? check->now_us : clock_wall_us();

	for (unsigned i = 0; i < check->count; i++)
		desk_load(&desk, &works[i], check->items[i].limit, &buckets[i]);
	decide(check, buckets, now, decision);
	for (unsigned i = 0; i < check->count; i++) {
		if (buckets[i].changed)
			desk_save(&desk, &works[i], &buckets[i], now);
	}
	desk_close(&desk);
	return 0;
}

static void
decide_here(struct memory *memory, const struct check *check, struct decision *decision)
{
	struct work works[CHECK_LIMITS_MAX];
	struct stripe_view views[CHECK_LIMITS_MAX + 1];

	for (unsigned i = 0; i < check->count; i++)
		works[i] = work_of(memory, check->items[i].key);
	const unsigned count = stripes_in_order(works, check->count, views);

	if (!lock_stripes(memory, views, count, check->deadline_us)) {
		*decision = (struct decision){ .verdict = VERDICT_UNAVAILABLE,
			.why = UNAVAILABLE_LOCK };
		return;
	}
	if (decide_on(works, check, decision) != 0)
		*decision = (struct decision){ .verdict = VERDICT_UNAVAILABLE,
			.why = UNAVAILABLE_OVERLOAD };
	unlock_stripes(views, count);
}

void
memory_count(struct memory *memory)
{
	struct memory_counters *counters = &memory->counters;
	const struct slice name = slice_of(memory->store.name);

	counters->latency = counter_find(COUNT_STORE_LATENCY, &name);
	counters->failures[UNAVAILABLE_LOCK] = counter_find(COUNT_STORE_FAILURES,
		(const struct slice[]){ name, slice_of(unavailable_names[UNAVAILABLE_LOCK]) });
	counters->failures[UNAVAILABLE_OVERLOAD] = counter_find(COUNT_STORE_FAILURES,
		(const struct slice[]){ name, slice_of(unavailable_names[UNAVAILABLE_OVERLOAD]) });
	counters->are_found = true;
}

static void
store_decide_now(struct store *store, struct check *check)
{
	struct memory *memory = memory_of(store);
	const int64_t start_us = memory->counters.are_found ? clock_monotonic_us() : 0;
	struct decision decision;

	decide_here(memory, check, &decision);
	if (memory->counters.are_found && decision.verdict == VERDICT_UNAVAILABLE)
		counter_add(memory->counters.failures[decision.why], 1);
	else if (memory->counters.are_found)
		histogram_add(memory->counters.latency, clock_monotonic_us() - start_us);
	check->done(check, &decision);
}

typedef void
change_fn(struct bucket *bucket, const struct limit *limit, uint64_t lease, int64_t now_us);

enum change { CHANGE_NOT_MADE, CHANGE_NOTHING_THERE, CHANGE_MADE };

/* With the stripe locked. Leases are changed where they lie in the words that were loaded. */
static enum change
change_in(const struct work *work, const struct check_item *item, uint64_t lease, change_fn *change)
{
	const int64_t now = clock_wall_us();
	struct bucket bucket;
	struct desk desk;

	if (work->head == NULL)
		return CHANGE_NOTHING_THERE;
	if (desk_open(&desk, item, work, 1) != 0)
		return CHANGE_NOT_MADE;
	desk_load(&desk, work, item->limit, &bucket);
	change(&bucket, item->limit, lease, now);
	if (bucket.changed)
		desk_save(&desk, work, &bucket, now);
	desk_close(&desk);
	return bucket.changed ? CHANGE_MADE : CHANGE_NOTHING_THERE;
}

static enum change
change_lease(struct store *store, const struct check_item *item, uint64_t lease, change_fn *change)
{
	struct memory *memory = memory_of(store);
	struct work work = work_of(memory, item->key);

	if (!lock_stripes(memory, &work.view, 1, 0))
		return CHANGE_NOT_MADE;
	work.head = stripe_find(&work.view, &work.key);
	const enum change made = change_in(&work, item, lease, change);

	unlock_stripes(&work.view, 1);
	return made;
}

static void
release(struct bucket *bucket, const struct limit *limit, uint64_t lease, int64_t now_us)
{
	(void)now_us;
	bucket_release(bucket, limit, lease);
}

static void
store_release_now(struct store *store, const struct check_item *item, uint64_t lease)
{
	if (item->limit->has_leases && change_lease(store, item, lease, release) == CHANGE_NOT_MADE)
		counter_add(COUNT_LEASES_LEFT, 1);
}

static bool
store_renew_now(struct store *store, const struct check_item *item, uint64_t lease)
{
	if (!item->limit->has_leases)
		return true;
	const enum change made = change_lease(store, item, lease, bucket_renew);

	if (made == CHANGE_NOTHING_THERE)
		counter_add(COUNT_LEASES_LOST, 1);
	return made != CHANGE_NOT_MADE;
}

static void
store_cancel_nothing(struct store *store, struct check *check)
{
	(void)store, (void)check;
}

void
memory_store_init(struct memory *memory)
{
	memory->store = (struct store){
		.name = "memory",
		.decide = store_decide_now,
		.cancel = store_cancel_nothing,
		.release = store_release_now,
		.renew = store_renew_now,
	};
}

struct store *
memory_store(struct memory *memory)
{
	return &memory->store;
}
