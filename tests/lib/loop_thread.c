/* Calls go to the loop by loop_post, and their end comes back by a condition. */
#include "loop_thread.h"

#include "weir/counter.h"

#include <stdio.h>
#include <stdlib.h>

struct call {
	posted_fn *run;
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done;
};

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	(void)fprintf(stderr, "the loop's thread: %s\n", what);
	abort();
}

static void *
run_loop(void *context)
{
	struct loop_thread *thread = context;
	struct err err;

	require(counter_thread_start(&err) == 0, "no counters");
	loop_run(thread->loop);
	return NULL;
}

void
loop_thread_start(struct loop_thread *thread)
{
	struct err err;

	thread->loop = loop_new(&err);
	require(thread->loop != NULL, "no loop");
	require(pthread_create(&thread->thread, NULL, run_loop, thread) == 0, "no thread");
}

static void
run_call(void *context)
{
	struct call *call = context;

	call->run(call->context);
	(void)pthread_mutex_lock(&call->lock);
	call->done = true;
	(void)pthread_cond_signal(&call->changed);
	(void)pthread_mutex_unlock(&call->lock);
}

void
loop_thread_call(struct loop_thread *thread, posted_fn *run, void *context)
{
	struct call call = { .run = run,
		.context = context,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.changed = PTHREAD_COND_INITIALIZER };

	require(loop_post(thread->loop, run_call, &call) == 0, "nothing can be posted");
	(void)pthread_mutex_lock(&call.lock);
	while (!call.done)
		(void)pthread_cond_wait(&call.changed, &call.lock);
	(void)pthread_mutex_unlock(&call.lock);
}

static void
stop(void *context)
{
	loop_stop(context);
}

void
loop_thread_stop(struct loop_thread *thread)
{
	require(loop_post(thread->loop, stop, thread->loop) == 0, "it cannot be stopped");
	require(pthread_join(thread->thread, NULL) == 0, "it cannot be joined");
	loop_free(thread->loop);
}
