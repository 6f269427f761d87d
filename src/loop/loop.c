/*
 * The loop over libevent. A turn is one event_base_loop(EVLOOP_ONCE); the work that was put off
 * runs between two of them, so that what a turn has gathered (checks for Redis, answers for one web
 * server) leaves in one write.
 */
#include "loop_private.h"

#include "weir/clock.h"
#include "weir/log.h"

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
	struct hangups *hangups;
	struct child *children;
	struct loop_signal signals[SIGNALS_MAX];
	unsigned signal_count;

	int inbox_fd;
	struct event *inbox_event;
	pthread_mutex_t inbox_lock;
	struct posted *inbox, **inbox_end;
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

struct hangups *
loop_hangups(struct loop *loop)
{
	return loop->hangups;
}

struct child **
loop_children(struct loop *loop)
{
	return &loop->children;
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
	/* It is the loop's now, whatever comes of this. A full counter means that the loop is about
	 * to wake anyway. */
	while (write(loop->inbox_fd, &one, sizeof one) < 0 && errno == EINTR)
		continue;
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

/* libevent would write to standard error itself, and wait for whoever reads it. It may repeat
 * itself in each turn, and does not say on which loop it is: one throttle a thread. */
static void
pass_on_log(int severity, const char *text)
{
	static _Thread_local struct log_throttle throttle = { .period_us = 10000000, .burst = 5 };
	static const enum log_level levels[] = { [EVENT_LOG_DEBUG] = LOG_LEVEL_DEBUG,
		[EVENT_LOG_MSG] = LOG_LEVEL_INFO,
		[EVENT_LOG_WARN] = LOG_LEVEL_WARN,
		[EVENT_LOG_ERR] = LOG_LEVEL_ERROR };

	uint64_t held;

	if (severity >= EVENT_LOG_DEBUG && severity <= EVENT_LOG_ERR &&
		log_throttle_pass(&throttle, clock_monotonic_us(), &held))
		log_fields(levels[severity], "The event library has something to say.",
			LOG_TEXT("text", text), LOG_KEPT_BACK(held), (struct log_field){ 0 });
}

static struct event_base *
base_new(void)
{
	struct event_config *config = event_config_new();

	event_set_log_callback(pass_on_log);
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
	if (loop->base != NULL)
		loop->hangups = hangups_new(loop->base, stream_hung_up);
	if (loop->scratch == NULL || loop->hangups == NULL) {
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

static void
run_deferred(struct loop *loop)
{
	while (loop->deferred != NULL) {
		struct deferred *deferred = loop->deferred;

		loop_undefer(loop, deferred);
		deferred->run(deferred->context);
	}
}

/* Look-ups that were cancelled are still to be answered, and then give their memory back. */
static void
end_look_ups(struct loop *loop)
{
	if (loop->base == NULL)
		return;
	(void)event_base_loop(loop->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	run_deferred(loop);
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	children_leave(&loop->children);
	for (unsigned i = 0; i < loop->signal_count; i++)
		event_free(loop->signals[i].event);
	if (loop->inbox_event != NULL)
		event_free(loop->inbox_event);
	end_look_ups(loop);
	if (loop->inbox_fd >= 0)
		(void)close(loop->inbox_fd);
	while (loop->inbox != NULL) {
		struct posted *posted = loop->inbox;

		loop->inbox = posted->next;
		free(posted);
	}
	hangups_free(loop->hangups);
	if (loop->base != NULL)
		event_base_free(loop->base);
	(void)pthread_mutex_destroy(&loop->inbox_lock);
	free(loop->scratch);
	free(loop);
}

void
loop_run(struct loop *loop)
{
	loop->stopping = false;
	loop->now_us = 0;
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
