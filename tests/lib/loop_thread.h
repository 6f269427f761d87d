/*
 * A loop in a thread of its own, as weir's workers have one, so that a test can talk to what runs
 * on it with plain blocking calls. What belongs to the loop is touched by loop_thread_call only.
 */
#ifndef WEIR_TESTS_LIB_LOOP_THREAD_H
#define WEIR_TESTS_LIB_LOOP_THREAD_H

#include "weir/loop.h"

#include <pthread.h>

struct loop_thread {
	struct loop *loop;
	pthread_t thread;
};

void loop_thread_start(struct loop_thread *thread);

/* Calls `run` on the loop's thread and returns when it has returned. */
void loop_thread_call(struct loop_thread *thread, posted_fn *run, void *context);

/* Ends the thread and frees the loop. */
void loop_thread_stop(struct loop_thread *thread);

#endif
