/*
 * A process is a descriptor that becomes readable when it ends. Its number cannot go to another
 * process before we have waited for it, so a signal never reaches a stranger.
 */
#include "weir/child.h"

#include "loop_private.h"

#include <errno.h>
#include <event2/event_struct.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
	struct child *next, **at; /* in the loop's list */
	pid_t pid;
	int fd;
	struct event ended;
	child_fn *fn;
	void *context;
};

static void
finish(struct child *child, int status)
{
	*child->at = child->next;
	if (child->next != NULL)
		child->next->at = child->at;
	(void)event_del(&child->ended);
	(void)close(child->fd);
	child->fn(child->context, status);
	free(child);
}

static void
on_ended(evutil_socket_t fd, short what, void *context)
{
	struct child *child = context;
	int status = 0;

	(void)fd, (void)what;
	if (waitpid(child->pid, &status, WNOHANG) == child->pid)
		finish(child, status);
}

void
children_leave(struct child **children)
{
	while (*children != NULL)
		finish(*children, -1);
}

struct child *
child_watch(struct loop *loop, pid_t pid, child_fn *ended, void *context, struct err *err)
{
	struct child *child = calloc(1, sizeof *child);

	if (child == NULL) {
		(void)err_set(err, "no memory for a process");
		return NULL;
	}
	child->pid = pid;
	child->fn = ended;
	child->context = context;
	/* Closed on exec by itself. */
	child->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (child->fd < 0) {
		(void)err_set(err, "a process cannot be watched: %s", strerror(errno));
		free(child);
		return NULL;
	}
	(void)event_assign(
		&child->ended, loop_base(loop), child->fd, EV_READ | EV_PERSIST, on_ended, child);
	(void)event_add(&child->ended, NULL);
	child->at = loop_children(loop);
	child->next = *child->at;
	if (child->next != NULL)
		child->next->at = &child->next;
	*child->at = child;
	return child;
}

void
child_signal_group(const struct child *child, int signo)
{
	(void)kill(-child->pid, signo);
}
