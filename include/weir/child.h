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

/* The process has ended and is reaped; `status` as of waitpid(2). -1: it has not, and the loop goes
 * (loop_free). The child is freed behind the call. */
typedef void child_fn(void *context, int status);

/* Watches it until it ends. NULL: it is not watched, and still to be waited for. */
struct child *child_watch(struct loop *loop, pid_t pid, child_fn *ended, void *context,
	struct err *err) WEIR_MUST_CHECK;

/* To the process's own group, of which it is the leader. */
void child_signal_group(const struct child *child, int signo);

#endif
