/*
 * The event loop of one thread: timers, work put off to the end of a turn, signals, and calls
 * posted by other threads. A turn is one wait for events and the calls that answer them; what was
 * put off runs when they are done and before the next wait. Nothing that runs on it may block.
 *
 * Everything here but loop_post belongs to the loop's own thread.
 */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

#include "weir/err.h"

#include <stdbool.h>
#include <stdint.h>

struct loop;

struct loop *loop_new(struct err *err) WEIR_MUST_CHECK;

/* After all that is on it has been freed. NULL is let pass. */
void loop_free(struct loop *loop);

/* Until loop_stop, which may be called from within. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* The monotonic clock (clock.h), read once a turn. */
int64_t loop_now_us(struct loop *loop);

/* ---- work put off to the end of the turn ---- */

typedef void deferred_fn(void *context);

/* Embedded by its owner, who must take it back before it goes. */
struct deferred {
	struct deferred *next, **at; /* at is NULL when it is not queued */
	deferred_fn *run;
	void *context;
};

/* Once a turn, however often it is put off. What is put off by deferred work runs in the same turn.
 */
void loop_defer(struct loop *loop, struct deferred *deferred);
void loop_undefer(struct loop *loop, struct deferred *deferred);

/* ---- timers ---- */

struct timer;
typedef void timer_fn(void *context);

/* NULL when memory is out. */
struct timer *timer_new(struct loop *loop, timer_fn *fire, void *context) WEIR_MUST_CHECK;
void timer_free(struct timer *timer);

/* Fires once, at or soon after at_us (monotonic). Setting it again moves it; moving it later costs
 * nothing. */
void timer_set(struct timer *timer, int64_t at_us);
void timer_cancel(struct timer *timer);
bool timer_is_set(const struct timer *timer);

/* ---- other threads and signals ---- */

typedef void posted_fn(void *context);

/* From any thread: `run` is called on the loop's thread, in the order posted. -1 when memory is
 * out. */
int loop_post(struct loop *loop, posted_fn *run, void *context) WEIR_MUST_CHECK;

typedef void signal_fn(void *context, int signo);

/* For the process's main loop only. The call runs on the loop, not in a handler. */
int loop_on_signal(struct loop *loop, int signo, signal_fn *fn, void *context,
	struct err *err) WEIR_MUST_CHECK;

#endif
