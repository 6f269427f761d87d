/*
 * The locks of stripes. A lock is held for less than a microsecond, but whoever holds it may have
 * to wait for a processor meanwhile. To give up then would admit what the limit rejects, so a check
 * waits for long enough that a busy machine comes round to all, and not beyond its deadline. One
 * that comes late already (Redis has missed the deadline) waits for a moment all the same.
 *
 * A process that is stopped inside a stripe must not stop the others: after one such wait in vain
 * the stripe is not waited for again, until somebody has found it free. One that died inside left
 * the stripe to be repaired by whoever comes next.
 */
#include "locks.h"

#include "weir/clock.h"
#include "weir/counter.h"
#include "weir/units.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#define LOCK_WAIT_US (50 * US_PER_MS)
#define LOCK_WAIT_LEAST_US (5 * US_PER_MS)

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

/* *until is the check's, set by the first wait. */
static int
wait_for_busy(pthread_mutex_t *lock, struct timespec *until, int64_t deadline_us)
{
	if (until->tv_sec == 0) {
		const int64_t now_us = clock_monotonic_us();
		int64_t at_us = now_us + LOCK_WAIT_US;

		if (deadline_us != 0 && deadline_us < at_us)
			at_us = deadline_us;
		if (at_us < now_us + LOCK_WAIT_LEAST_US)
			at_us = now_us + LOCK_WAIT_LEAST_US;
		until->tv_sec = at_us / US_PER_S;
		until->tv_nsec = at_us % US_PER_S * 1000;
	}
	return wait_for(lock, until);
}

static int
lock_stripe(const struct stripe_view *view, _Atomic bool *stuck, struct timespec *until,
	int64_t deadline_us)
{
	const bool was_stuck = atomic_load_explicit(stuck, memory_order_relaxed);
	int error = pthread_mutex_trylock(&view->stripe->lock);

	if (error == EBUSY && !was_stuck)
		error = wait_for_busy(&view->stripe->lock, until, deadline_us);
	const bool is_stuck = error == EBUSY || error == ETIMEDOUT;

	/* All threads read it, and hardly ever one has to write. */
	if (is_stuck != was_stuck)
		atomic_store_explicit(stuck, is_stuck, memory_order_relaxed);
	if (error == EOWNERDEAD) {
		counter_add(COUNT_MEMORY_REPAIRED, 1);
		view->stripe->is_suspect = 1;
		error = pthread_mutex_consistent(&view->stripe->lock);
	}
	if (error == 0 && view->stripe->is_suspect != 0) {
		stripe_repair(view);
		view->stripe->is_suspect = 0;
	}
	return error;
}

void
unlock_stripes(const struct stripe_view *views, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		(void)pthread_mutex_unlock(&views[i].stripe->lock);
}

bool
lock_stripes(
	struct memory *memory, const struct stripe_view *views, unsigned count, int64_t deadline_us)
{
	struct timespec until = { 0 };

	for (unsigned i = 0; i < count; i++) {
		if (lock_stripe(&views[i], &memory->stuck[views[i].index], &until, deadline_us) !=
			0) {
			unlock_stripes(views, i);
			return false;
		}
	}
	return true;
}
