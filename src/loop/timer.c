/*
 * Timers are lazy: moving one later only notes the time, and the timer that wakes too early goes
 * back to sleep. Most timers are deadlines that are moved with every byte and never reached.
 */
#include "loop_private.h"

#include <stdlib.h>

struct timer {
	struct loop *loop;
	struct event *event;
	timer_fn *fire;
	void *context;
	int64_t due_us; /* 0: not set */
	int64_t armed_us; /* when the event will wake; 0: it will not */
};

static void
arm(struct timer *timer)
{
	const struct timeval after = loop_timeval(timer->due_us - loop_now_us(timer->loop));

	timer->armed_us = timer->due_us;
	(void)event_add(timer->event, &after);
}

static void
timer_woke(evutil_socket_t fd, short what, void *context)
{
	struct timer *timer = context;

	(void)fd, (void)what;
	timer->armed_us = 0;
	if (timer->due_us == 0)
		return;
	if (timer->due_us > loop_now_us(timer->loop)) {
		arm(timer);
		return;
	}
	timer->due_us = 0;
	timer->fire(timer->context);
}

struct timer *
timer_new(struct loop *loop, timer_fn *fire, void *context)
{
	struct timer *timer = malloc(sizeof *timer);

	if (timer == NULL)
		return NULL;
	*timer = (struct timer){ .loop = loop, .fire = fire, .context = context };
	timer->event = event_new(loop_base(loop), -1, 0, timer_woke, timer);
	if (timer->event == NULL) {
		free(timer);
		return NULL;
	}
	return timer;
}

void
timer_free(struct timer *timer)
{
	if (timer == NULL)
		return;
	event_free(timer->event);
	free(timer);
}

void
timer_set(struct timer *timer, int64_t at_us)
{
	timer->due_us = at_us;
	if (timer->armed_us == 0 || at_us < timer->armed_us)
		arm(timer);
}

void
timer_cancel(struct timer *timer)
{
	timer->due_us = 0;
}

bool
timer_is_set(const struct timer *timer)
{
	return timer->due_us != 0;
}
