/* Running a loop in the test's own thread. */
#ifndef WEIR_TESTS_LIB_RUN_LOOP_H
#define WEIR_TESTS_LIB_RUN_LOOP_H

#include "soon.h"
#include "weir/loop.h"

struct loop_guard {
	struct loop *loop;
	struct timer *timer;
	bool fired;
};

static inline void
loop_guard_fire(void *context)
{
	struct loop_guard *guard = context;

	guard->fired = true;
	loop_stop(guard->loop);
}

static inline void
loop_guard_start(struct loop_guard *guard, struct loop *loop, int64_t after_us)
{
	*guard = (struct loop_guard){ .loop = loop };
	guard->timer = timer_new(loop, loop_guard_fire, guard);
	assert_non_null(guard->timer);
	timer_set(guard->timer, clock_monotonic_us() + after_us);
}

/* Until the condition holds. Every call back that may make it hold calls loop_stop. */
#define run_loop_until(loop, condition)                                                            \
	do {                                                                                       \
		struct loop_guard guard;                                                           \
                                                                                                   \
		loop_guard_start(&guard, loop, SOON_S *INT64_C(1000000));                          \
		while (!(condition) && !guard.fired)                                               \
			loop_run(loop);                                                            \
		timer_free(guard.timer);                                                           \
		assert_row(condition, "it did not come about: %s", #condition);                    \
	} while (0)

/* While the condition holds, where no call back tells that it does no more. */
#define run_loop_while(loop, condition)                                                            \
	do {                                                                                       \
		const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);       \
                                                                                                   \
		while (condition) {                                                                \
			assert_row(clock_monotonic_us() < give_up_us, "still: %s", #condition);    \
			run_loop_for_ms(loop, 2);                                                  \
		}                                                                                  \
	} while (0)

/* For what must not happen: time enough that it would have. */
static inline void
run_loop_for_ms(struct loop *loop, int ms)
{
	struct loop_guard guard;

	loop_guard_start(&guard, loop, ms * INT64_C(1000));
	while (!guard.fired)
		loop_run(loop);
	timer_free(guard.timer);
}

static inline void
run_loop_stop(void *context)
{
	loop_stop(context);
}

/* One turn: what was put off, and what is due and ready now. */
static inline void
run_loop_once(struct loop *loop)
{
	assert_int_equal(loop_post(loop, run_loop_stop, loop), 0);
	loop_run(loop);
}

#endif
