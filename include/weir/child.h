/*
 * A process that this one has started, on a loop: its end, without a signal handler, so that any
 * thread may have children (pidfd_open(2); Linux 5.3).
 */
#ifndef WEIR_CHILD_H
#define WEIR_CHILD_H

#include "weir/err.h"
#include "weir/loop.h"

#include <sys/types.h>

struct child;

struct child_handler {
	/* The process has ended: by itself (0), or by this signal. It is not reaped before
	 * child_free, so that neither its number nor that of its group is another's. */
	void (*ended)(void *context, int signo);
	/* The loop goes (loop_free). The owner frees the child. */
	void (*loop_ends)(void *context);
};

/* Watches it until it ends. NULL: it cannot be watched, and was killed with its group and reaped.
 */
struct child *child_watch(struct loop *loop, pid_t pid, const struct child_handler *handler,
	void *context, struct err *err) WEIR_MUST_CHECK;

/* Reaps it if it has ended; else it runs on, watched no more. NULL is let pass. */
void child_free(struct child *child);

/* To the process's own group, of which it is the leader, whether it has ended or not. */
void child_signal_group(const struct child *child, int signo);

#endif
