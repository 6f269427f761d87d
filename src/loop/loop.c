/*
 * The loop over libevent. A turn is one event_base_loop(EVLOOP_ONCE); the work that was put off
 * runs between two of them, so that what a turn has gathered (checks for Redis, answers for one web
 * server) leaves in one write.
 *
 * Timers are lazy: moving one later only notes the time, and the timer that wakes too early goes
 * back to sleep. Most timers are deadlines that are moved with every byte and never reached.
 */
#include "loop_private.h"

#include "weir/clock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SIGNALS_MAX = 8 };

struct posted {
	struct posted *next;
	posted_fn *run;
	void *context;
};

struct loop_signal {
	signal_fn *fn;
	void *context;
	struct event *event;
};

struct loop {
	struct event_base *base;
	bool stopping;
	int64_t now_us; /* 0: not read in this turn */
	struct deferred *deferred, **deferred_end;
	char *scratch;
	struct loop_signal signals[SIGNALS_MAX];
	unsigned signal_count;

	int inbox_fd;
	struct event *inbox_event;
	pthread_mutex_t inbox_lock;
	struct posted *inbox, **inbox_end;
};

struct timer {
	struct loop *loop;
	struct event *event;
	timer_fn *fire;
	void *context;
	int64_t due_us; /* 0: not set */
	int64_t armed_us; /* when the event will wake; 0: it will not */
};

struct event_base *
loop_base(struct loop *loop)
{
	return loop->base;
}

char *
loop_scratch(struct loop *loop)
{
	return loop->scratch;
}

struct timeval
loop_timeval(int64_t us)
{
	if (us < 0)
		us = 0;
	return (struct timeval){ .tv_sec = us / 1000000, .tv_usec = us % 1000000 };
}

int64_t
loop_now_us(struct loop *loop)
{
	if (loop->now_us == 0)
		loop->now_us = clock_monotonic_us();
	return loop->now_us;
}

static void
take_inbox(evutil_socket_t fd, short what, void *context)
{
	struct loop *loop = context;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof count) < 0 && errno != EAGAIN)
		return;
	(void)pthread_mutex_lock(&loop->inbox_lock);
	struct posted *list = loop->inbox;

	loop->inbox = NULL;
	loop->inbox_end = &loop->inbox;
	(void)pthread_mutex_unlock(&loop->inbox_lock);
	while (list != NULL) {
		struct posted *posted = list;

		list = posted->next;
		posted->run(posted->context);
		free(posted);
	}
}

int
loop_post(struct loop *loop, posted_fn *run, void *context)
{
	struct posted *posted = malloc(sizeof *posted);
	const uint64_t one = 1;

	if (posted == NULL)
		return -1;
	*posted = (struct posted){ .run = run, .context = context };
	(void)pthread_mutex_lock(&loop->inbox_lock);
	*loop->inbox_end = posted;
	loop->inbox_end = &posted->next;
	(void)pthread_mutex_unlock(&loop->inbox_lock);
	/* A full counter means that the loop is about to wake anyway. */
	if (write(loop->inbox_fd, &one, sizeof one) < 0 && errno != EAGAIN)
		return -1;
	return 0;
}

static int
open_inbox(struct loop *loop, struct err *err)
{
	loop->inbox_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->inbox_fd < 0)
		return err_set(err, "eventfd: %s", strerror(errno));
	loop->inbox_event =
		event_new(loop->base, loop->inbox_fd, EV_READ | EV_PERSIST, take_inbox, loop);
	if (loop->inbox_event == NULL || event_add(loop->inbox_event, NULL) != 0)
		return err_set(err, "no memory for the event loop");
	return 0;
}

static struct event_base *
base_new(void)
{
	struct event_config *config = event_config_new();

	if (config == NULL)
		return NULL;
	/* One thread a base: no locks. The changelist saves epoll_ctl calls for events that come
	 * and go in a turn. */
	(void)event_config_set_flag(
		config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
	struct event_base *base = event_base_new_with_config(config);

	event_config_free(config);
	return base;
}

struct loop *
loop_new(struct err *err)
{
	struct loop *loop = calloc(1, sizeof *loop);

	if (loop == NULL) {
		(void)err_set(err, "no memory for the event loop");
		return NULL;
	}
	loop->inbox_fd = -1;
	loop->inbox_end = &loop->inbox;
	loop->deferred_end = &loop->deferred;
	(void)pthread_mutex_init(&loop->inbox_lock, NULL);
	loop->scratch = malloc(LOOP_SCRATCH_SIZE);
	loop->base = base_new();
	if (loop->scratch == NULL || loop->base == NULL) {
		(void)err_set(err, "the event loop cannot be made");
		loop_free(loop);
		return NULL;
	}
	if (open_inbox(loop, err) != 0) {
		loop_free(loop);
		return NULL;
	}
	return loop;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	for (unsigned i = 0; i < loop->signal_count; i++)
		event_free(loop->signals[i].event);
	if (loop->inbox_event != NULL)
		event_free(loop->inbox_event);
	if (loop->inbox_fd >= 0)
		(void)close(loop->inbox_fd);
	while (loop->inbox != NULL) {
		struct posted *posted = loop->inbox;

		loop->inbox = posted->next;
		free(posted);
	}
	if (loop->base != NULL)
		event_base_free(loop->base);
	(void)pthread_mutex_destroy(&loop->inbox_lock);
	free(loop->scratch);
	free(loop);
}

static void
run_deferred(struct loop *loop)
{
	while (loop->deferred != NULL) {
		struct deferred *deferred = loop->deferred;

		loop_undefer(loop, deferred);
		deferred->run(deferred->context);
	}
}

void
loop_run(struct loop *loop)
{
	loop->stopping = false;
	run_deferred(loop);
	while (!loop->stopping) {
		loop->now_us = 0;
		if (event_base_loop(loop->base, EVLOOP_ONCE) < 0)
			break;
		run_deferred(loop);
	}
}

void
loop_stop(struct loop *loop)
{
	loop->stopping = true;
}

void
loop_defer(struct loop *loop, struct deferred *deferred)
{
	if (deferred->at != NULL)
		return;
	deferred->next = NULL;
	deferred->at = loop->deferred_end;
	*loop->deferred_end = deferred;
	loop->deferred_end = &deferred->next;
}

void
loop_undefer(struct loop *loop, struct deferred *deferred)
{
	if (deferred->at == NULL)
		return;
	*deferred->at = deferred->next;
	if (deferred->next != NULL)
		deferred->next->at = deferred->at;
	else
		loop->deferred_end = deferred->at;
	deferred->at = NULL;
}

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
	timer->event = event_new(loop->base, -1, 0, timer_woke, timer);
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

static void
signal_came(evutil_socket_t signo, short what, void *context)
{
	struct loop_signal *entry = context;

	(void)what;
	entry->fn(entry->context, (int)signo);
}

int
loop_on_signal(struct loop *loop, int signo, signal_fn *fn, void *context, struct err *err)
{
	if (loop->signal_count == SIGNALS_MAX)
		return err_set(err, "more than %d signals", SIGNALS_MAX);
	struct loop_signal *entry = &loop->signals[loop->signal_count];

	*entry = (struct loop_signal){ .fn = fn, .context = context };
	entry->event = evsignal_new(loop->base, signo, signal_came, entry);
	if (entry->event == NULL || event_add(entry->event, NULL) != 0)
		return err_set(err, "signal %d cannot be watched", signo);
	loop->signal_count++;
	return 0;
}
