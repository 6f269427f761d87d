/*
 * How a program is started. The child shares our memory until the program is there, as after
 * vfork(2), so that the size of weir does not count; therefore it touches nothing but its own stack
 * and makes system calls. posix_spawn(3) does the same, but cannot say that the kernel is to kill
 * the program when weir is killed. Which call has failed, and why, comes by a pipe that exec
 * closes.
 *
 * The program is started by its path, and the lookup before it (cgi_program.c) was another. Between
 * the two the path may come to mean something else only by the hand of someone who may write below
 * the root; and he could have put a program of his own there. By descriptor, scripts could not be
 * started: their interpreter would be told a name in /dev/fd that exec has closed.
 */
#include "cgi_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What select(2) can take: weir itself may open more, and its programs do not expect that. */
enum { DESCRIPTORS_MAX = 1024, STACK_SIZE = 65536 };

struct plan {
	const char *path;
	char directory[PATH_MAX];
	char **environment;
	const int *fds;
	int report;
	pid_t parent;
};

static void
close_all(int fds[3])
{
	for (unsigned i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

int
cgi_pipes_open(struct cgi_pipes *pipes)
{
	*pipes = (struct cgi_pipes){ { -1, -1, -1 }, { -1, -1, -1 } };
	for (unsigned i = 0; i < 3; i++) {
		const unsigned ours = i == 0 ? 1 : 0;
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) != 0)
			return -1;
		pipes->ours[i] = ends[ours];
		pipes->theirs[i] = ends[1 - ours];
		if (fcntl(ends[ours], F_SETFL, O_NONBLOCK) != 0)
			return -1;
	}
	return 0;
}

void
cgi_pipes_close(struct cgi_pipes *pipes)
{
	close_all(pipes->theirs);
	close_all(pipes->ours);
}

/* ---- in the child ---- */

/* Not by sigaction(2): a sanitizer's writes down what it is told, in the memory that is ours. A
 * structure of zeros is SIG_DFL, whatever its order. */
static void
reset_signals(void)
{
	static const unsigned char zeros[128];

	for (int signo = 1; signo < _NSIG; signo++)
		(void)syscall(SYS_rt_sigaction, signo, zeros, NULL, _NSIG / 8);
}

/* Weir's own descriptors are closed by exec already; those that were left open to weir are not.
 * The first three may be among ours if weir was started without them. */
static int
put_descriptors(struct plan *plan)
{
	const int report = fcntl(plan->report, F_DUPFD_CLOEXEC, 3);
	int high[3];

	/* Without a new one there must be the old one, to say so. */
	if (report < 0)
		return -1;
	plan->report = report;
	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(plan->fds[i], F_DUPFD_CLOEXEC, 3);
		if (high[i] < 0)
			return -1;
	}
	for (int i = 0; i < 3; i++) {
		if (dup2(high[i], i) < 0)
			return -1;
	}
	return close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
}

static int
limit_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= DESCRIPTORS_MAX)
		return 0;
	limit.rlim_cur = DESCRIPTORS_MAX;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static int
prepare(struct plan *plan)
{
	reset_signals();
	if (put_descriptors(plan) != 0 || setpgid(0, 0) != 0 || limit_descriptors() != 0 ||
		prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return -1;
	/* Weir was killed before it could be said. */
	if (getppid() != plan->parent) {
		errno = ESRCH;
		return -1;
	}
	return chdir(plan->directory);
}

static int
run(void *context)
{
	struct plan *plan = context;
	char *const arguments[] = { (char *)(uintptr_t)plan->path, NULL };
	sigset_t none;

	if (prepare(plan) == 0) {
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)execve(plan->path, arguments, plan->environment);
	}
	const int error = errno;

	return write(plan->report, &error, sizeof error) == sizeof error ? 127 : 126;
}

/* ---- in weir ---- */

/* Returns an errno. No handler of ours may run in the child. */
static int
start(struct plan *plan, char *stack, pid_t *pid)
{
	sigset_t all, before;
	int error = 0;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	*pid = clone(run, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, plan);
	if (*pid < 0)
		error = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* What the child reports, or nothing when exec has closed its end. */
static int
await_report(int fd)
{
	int error = 0;
	ssize_t n;

	do
		n = read(fd, &error, sizeof error);
	while (n < 0 && errno == EINTR);
	return n == sizeof error ? error : 0;
}

int
cgi_spawn(pid_t *pid, const char *path, char **environment, const int fds[3])
{
	struct plan plan = {
		.path = path, .environment = environment, .fds = fds, .parent = getpid()
	};
	char *stack;
	int report[2];

	memcpy(plan.directory, path, (size_t)(strrchr(path, '/') - path) + 1);
	if (pipe2(report, O_CLOEXEC) != 0)
		return errno;
	stack = malloc(STACK_SIZE);
	plan.report = report[1];
	int error = stack == NULL ? ENOMEM : start(&plan, stack, pid);

	(void)close(report[1]);
	if (error == 0) {
		error = await_report(report[0]);
		if (error != 0)
			(void)waitpid(*pid, NULL, 0);
	}
	(void)close(report[0]);
	free(stack);
	return error;
}
