/* Private to the room. */
#ifndef WEIR_MEMORY_LOCKS_H
#define WEIR_MEMORY_LOCKS_H

#include "memory_private.h"

/*
 * Locks all of them, in the order given, or none: false after 50 ms, at the deadline if that is
 * earlier (monotonic, in microseconds; 0: none; but never before 5 ms), or at once if one was
 * waited for in vain and has not been free since. The order of their addresses is everybody's.
 */
bool lock_stripes(struct memory *memory, const struct stripe_view *views, unsigned count,
	int64_t deadline_us) WEIR_MUST_CHECK;
void unlock_stripes(const struct stripe_view *views, unsigned count);

#endif
