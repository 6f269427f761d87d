/*
 * Waiting for something that another thread or process will do. The condition is looked at until it
 * holds; a test that hangs fails after SOON_S. Never a stand-in for knowing what to wait for.
 */
#ifndef WEIR_TESTS_LIB_SOON_H
#define WEIR_TESTS_LIB_SOON_H

#include "../unit.h"
#include "weir/clock.h"

#include <poll.h>
#include <time.h>

/* Long enough for a busy machine under valgrind; nothing waits that long when all is well. */
enum { SOON_S = 30 };

#define assert_soon(condition) assert_within_s(condition, SOON_S)

/* For what is promised within a time. */
#define assert_within_s(condition, seconds)                                                        \
	do {                                                                                       \
		const int64_t give_up_us = clock_monotonic_us() + (seconds)*INT64_C(1000000);      \
                                                                                                   \
		while (!(condition)) {                                                             \
			assert_row(clock_monotonic_us() < give_up_us, "not within %d s: %s",       \
				(int)(seconds), #condition);                                       \
			(void)poll(NULL, 0, 1);                                                    \
		}                                                                                  \
	} while (0)

/* What this thread has used: for tests that nothing spins. */
static inline int64_t
thread_cpu_us(void)
{
	struct timespec now;

	assert_int_equal(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
	return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

#endif
