/*
 * A process is a descriptor that becomes readable when it ends. That it has ended is looked at
 * without reaping it (WNOWAIT): as long as it is a zombie its number, and so its group's, cannot go
 * to another process, and a signal never reaches a stranger.
 */
#include "weir/child.h"

#include "loop_private.h"

#include <assert.h>
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
	int fd; /* -1: it has ended */
	struct event ended;
	const struct child_handler *handler;
	void *context;
};

static void
stop_watching(struct child *child)
{
	if (child->fd < 0)
		return;
	(void)event_del(&child->ended);
	(void)close(child->fd);
	child->fd = -1;
}

static void
on_ended(evutil_socket_t fd, short what, void *context)
{
	struct child *child = context;
	siginfo_t info = { 0 };

	(void)fd, (void)what;
	if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
		info.si_pid != child->pid)
		return;
	stop_watching(child);
	child->handler->ended(child->context, info.si_code == CLD_EXITED ? 0 : info.si_status);
}

void
children_leave(struct child **children)
{
	while (*children != NULL) {
		struct child *child = *children;

		child->handler->loop_ends(child->context);
		assert(*children != child);
	}
}

void
child_free(struct child *child)
{
	if (child == NULL)
		return;
	*child->at = child->next;
	if (child->next != NULL)
		child->next->at = child->at;
	stop_watching(child);
	(void)waitpid(child->pid, NULL, WNOHANG);
	free(child);
}

static struct child *
child_new(struct loop *loop, pid_t pid, struct err *err)
{
	struct child *child = calloc(1, sizeof *child);

	if (child == NULL) {
		(void)err_set(err, "no memory for a process");
		return NULL;
	}
	child->pid = pid;
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
	return child;
}

struct child *
child_watch(struct loop *loop, pid_t pid, const struct child_handler *handler, void *context,
	struct err *err)
{
	struct child *child = child_new(loop, pid, err);

	if (child == NULL) {
		(void)kill(-pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return NULL;
	}
	child->handler = handler;
	child->context = context;
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
