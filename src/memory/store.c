/*
 * Deciding in memory. The stripes of a check are locked in the order of their addresses, so two
 * checks cannot wait for each other.
 *
 * A lock is held for less than a microsecond, but whoever holds it may have to wait for a processor
 * meanwhile. To give up then would admit what the limit rejects, so a check waits for long enough
 * that a busy machine comes round to all. A process that is stopped inside a stripe must not stop
 * the others, though: after one such wait in vain the stripe is not waited for again, until
 * somebody has found it free.
 */
#include "memory_private.h"

#include "weir/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { LOCK_WAIT_NS = 50 * 1000000 };

/* One bucket on its way through a check. */
struct work {
	struct hash_wide key;
	struct stripe_view view;
};

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

static int
wait_for(pthread_mutex_t *lock, const struct timespec *until)
{
/* gcc's ThreadSanitizer does not know the function, and finds races where there are none. */
#if defined(HAVE_PTHREAD_MUTEX_CLOCKLOCK) && !defined(__SANITIZE_THREAD__)
	return pthread_mutex_clocklock(lock, CLOCK_MONOTONIC, until);
#else
	struct timespec now;

	for (;;) {
		const int error = pthread_mutex_trylock(lock);

		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		if (error != EBUSY || now.tv_sec > until->tv_sec ||
			(now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
			return error == EBUSY ? ETIMEDOUT : error;
		(void)nanosleep(&(const struct timespec){ .tv_nsec = 20000 }, NULL);
	}
#endif
}

static int
wait_for_busy(pthread_mutex_t *lock, struct timespec *until)
{
	if (until->tv_sec == 0) {
		(void)clock_gettime(CLOCK_MONOTONIC, until);
		until->tv_nsec += LOCK_WAIT_NS;
		until->tv_sec += until->tv_nsec / 1000000000;
		until->tv_nsec %= 1000000000;
	}
	return wait_for(lock, until);
}

/* *until is the check's, set by the first wait. */
static int
lock_stripe(const struct stripe_view *view, _Atomic bool *stuck, struct timespec *until)
{
	const bool was_stuck = atomic_load_explicit(stuck, memory_order_relaxed);
	int error = pthread_mutex_trylock(&view->stripe->lock);

	if (error == EBUSY && !was_stuck)
		error = wait_for_busy(&view->stripe->lock, until);
	const bool is_stuck = error == EBUSY || error == ETIMEDOUT;

	/* All threads read it, and hardly ever one has to write. */
	if (is_stuck != was_stuck)
		atomic_store_explicit(stuck, is_stuck, memory_order_relaxed);
	if (error == EOWNERDEAD) {
		stripe_repair(view);
		counter_add(COUNT_MEMORY_REPAIRED, 1);
		error = pthread_mutex_consistent(&view->stripe->lock);
	}
	return error;
}

static void
unlock_stripes(const struct stripe_view *views, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)pthread_mutex_unlock(&views[i].stripe->lock);
}

static bool
lock_stripes(struct memory *memory, const struct stripe_view *views, unsigned count)
{
	struct timespec until = { 0 };

	for (unsigned i = 0; i < count; i++) {
		if (lock_stripe(&views[i], &memory->stuck[views[i].index], &until) != 0) {
			unlock_stripes(views, i);
			return false;
		}
	}
	return true;
}

_Static_assert(
	BUCKET_FIELDS_MAX * sizeof(struct bucket_field) <= STATE_MAX, "a bucket fits an entry");

static void
load(const struct work *work, struct bucket *bucket)
{
	uint8_t bytes[STATE_MAX];
	const struct cell *head = stripe_find(&work->view, &work->key);

	bucket->count = 0;
	bucket->changed = false;
	if (head == NULL)
		return;
	const size_t len = stripe_read(&work->view, head, bytes);

	bucket->count = (unsigned)(len / sizeof bucket->fields[0]);
	if (bucket->count > BUCKET_FIELDS_MAX)
		bucket->count = BUCKET_FIELDS_MAX;
	memcpy(bucket->fields, bytes, bucket->count * sizeof bucket->fields[0]);
}

static void
save(const struct work *work, const struct bucket *bucket, int64_t now_us)
{
	unsigned evicted = 0;

	stripe_write(&work->view, &work->key, (const uint8_t *)bucket->fields,
		bucket->count * sizeof bucket->fields[0], bucket_full_at(bucket), now_us, &evicted);
	if (evicted > 0)
		counter_add(COUNT_MEMORY_EVICTED, evicted);
}

static void
decide_here(struct memory *memory, struct check *check, struct decision *decision)
{
	struct work works[CHECK_LIMITS_MAX];
	struct stripe_view views[CHECK_LIMITS_MAX + 1];
	struct bucket buckets[CHECK_LIMITS_MAX];

	for (unsigned i = 0; i < check->count; i++) {
		works[i].key = hash_wide(memory->header->hash_key, check->items[i].key);
		works[i].view = memory_stripe(memory, &works[i].key);
	}
	const unsigned count = stripes_in_order(works, check->count, views);

	if (!lock_stripes(memory, views, count)) {
		*decision = (struct decision){ .verdict = VERDICT_UNAVAILABLE,
			.why = UNAVAILABLE_LOCK };
		return;
	}
	/* Read under the locks: so time never runs backwards from one holder to the next. */
	const int64_t now = check->now_us != 0 ? check->now_us : clock_wall_us();

	for (unsigned i = 0; i < check->count; i++)
		load(&works[i], &buckets[i]);
	decide(check, buckets, now, decision);
	for (unsigned i = 0; i < check->count; i++) {
		if (buckets[i].changed)
			save(&works[i], &buckets[i], now);
	}
	unlock_stripes(views, count);
}

static void
store_decide_now(struct store *store, struct check *check)
{
	struct decision decision;

	decide_here(memory_of(store), check, &decision);
	check->done(check, &decision);
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
		.name = "memory", .decide = store_decide_now, .cancel = store_cancel_nothing
	};
}

struct store *
memory_store(struct memory *memory)
{
	return &memory->store;
}
