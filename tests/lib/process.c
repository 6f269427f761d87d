/*
 * Everything that needs memory is prepared before the fork, since other threads of the test may
 * hold its locks. Descriptors that weir is to have are moved out of the way of those that they
 * become.
 */
#include "process.h"

#include "fcgi_peer.h"
#include "soon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { FIRST_LISTENING = 3, OUT_OF_THE_WAY = 100, VARIABLES_MAX = 500, ARGUMENTS_MAX = 20 };

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

/* What the child needs. */
struct plan {
	const struct process_setup *setup;
	const char *arguments[ARGUMENTS_MAX];
	const char *environment[VARIABLES_MAX];
	char listen_pid[32], listen_fds[32];
	int input, output, error, listening[4];
	unsigned listening_count;
};

static int
moved(int fd)
{
	const int copy = fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);

	require(copy >= 0, "F_DUPFD_CLOEXEC");
	return copy;
}

static void
plan_environment(struct plan *plan)
{
	static const char *const ours[] = { "LISTEN_", "NOTIFY_SOCKET=" };
	const char *const *more = plan->setup->environment;
	size_t count = 0;

	for (char **variable = environ; *variable != NULL; variable++) {
		bool is_ours = false;

		for (size_t i = 0; i < LENGTH_OF(ours); i++)
			is_ours = is_ours || strncmp(*variable, ours[i], strlen(ours[i])) == 0;
		require(count < VARIABLES_MAX - 10, "a large environment");
		if (!is_ours)
			plan->environment[count++] = *variable;
	}
	for (; more != NULL && *more != NULL; more++)
		plan->environment[count++] = *more;
	if (plan->listening_count > 0) {
		plan->environment[count++] = plan->listen_pid;
		plan->environment[count++] = plan->listen_fds;
	}
}

static void
plan_all(struct plan *plan, const struct process_setup *setup)
{
	const char *program = getenv("WEIR");
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	*plan = (struct plan){ .setup = setup };
	plan->arguments[0] = program == NULL ? "./weir" : program;
	for (size_t i = 0; setup->arguments[i] != NULL && i < ARGUMENTS_MAX - 2; i++)
		plan->arguments[i + 1] = setup->arguments[i];
	plan->input = moved(setup->standard_input == 0 ? null : setup->standard_input);
	while (plan->listening_count < 4 && setup->listening[plan->listening_count] != 0) {
		plan->listening[plan->listening_count] =
			moved(setup->listening[plan->listening_count]);
		plan->listening_count++;
	}
	(void)snprintf(
		plan->listen_fds, sizeof plan->listen_fds, "LISTEN_FDS=%u", plan->listening_count);
	plan_environment(plan);
	(void)close(null);
}

static void
become(struct plan *plan)
{
	const pid_t pid = plan->setup->for_another ? getppid() : getpid();
	sigset_t none;

	(void)snprintf(plan->listen_pid, sizeof plan->listen_pid, "LISTEN_PID=%d", (int)pid);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(plan->input, STDIN_FILENO);
	(void)dup2(plan->output, STDOUT_FILENO);
	(void)dup2(plan->error, STDERR_FILENO);
	for (unsigned i = 0; i < plan->listening_count; i++)
		(void)dup2(plan->listening[i], FIRST_LISTENING + (int)i);
	if (plan->setup->without_output) {
		(void)close(STDOUT_FILENO);
		(void)close(STDERR_FILENO);
	}
	(void)execve(plan->arguments[0], (char *const *)(uintptr_t)plan->arguments,
		(char *const *)(uintptr_t)plan->environment);
	_exit(127);
}

void
process_start(struct process *process, const struct process_setup *setup)
{
	struct plan plan;
	int output[2], error[2];

	*process = (struct process){ 0 };
	bytes_init(&process->output);
	bytes_init(&process->error);
	plan_all(&plan, setup);
	require(pipe2(output, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0, "pipe2");
	plan.output = moved(output[1]);
	plan.error = moved(error[1]);
	process->pid = fork();
	require(process->pid >= 0, "fork");
	if (process->pid == 0)
		become(&plan);
	process->output_fd = output[0];
	process->error_fd = error[0];
	(void)fcntl(process->output_fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(process->error_fd, F_SETFL, O_NONBLOCK);
	const int ours[] = { output[1], error[1], plan.input, plan.output, plan.error };

	for (size_t i = 0; i < LENGTH_OF(ours); i++)
		(void)close(ours[i]);
	for (unsigned i = 0; i < plan.listening_count; i++)
		(void)close(plan.listening[i]);
}

static void
take_output(int fd, struct buf *into)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(fd, bytes, sizeof bytes)) > 0)
		bytes_add(into, slice_make(bytes, (size_t)n));
}

static const char *
text_of(int fd, struct buf *said)
{
	take_output(fd, said);
	/* A terminator behind the end, which does not count. */
	bytes_add(said, slice_make("", 1));
	said->len--;
	return said->data + said->start;
}

const char *
process_output(struct process *process)
{
	return text_of(process->output_fd, &process->output);
}

const char *
process_error(struct process *process)
{
	return text_of(process->error_fd, &process->error);
}

bool
process_said(struct process *process, const char *text)
{
	return strstr(process_error(process), text) != NULL;
}

void
process_signal(const struct process *process, int signo)
{
	require(process->pid > 0 && kill(process->pid, signo) == 0, "kill");
}

bool
process_has_ended(const struct process *process)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid == process->pid;
}

int
process_wait(struct process *process)
{
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);
	int status = 0;
	bool killed = false;

	while (waitpid(process->pid, &status, WNOHANG) == 0) {
		/* It must not be stopped by a full pipe. */
		(void)process_output(process);
		(void)process_error(process);
		if (!killed && clock_monotonic_us() > give_up_us) {
			process_signal(process, SIGKILL);
			killed = true;
		}
		(void)poll(NULL, 0, 1);
	}
	process->pid = 0;
	if (killed)
		return 999;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void
process_release(struct process *process)
{
	if (process->pid > 0) {
		process_signal(process, SIGKILL);
		(void)process_wait(process);
	}
	if (process->output_fd > 0) {
		(void)close(process->output_fd);
		(void)close(process->error_fd);
	}
	buf_release(&process->output);
	buf_release(&process->error);
	*process = (struct process){ 0 };
}

int
process_run(struct process *process, const struct process_setup *setup)
{
	process_start(process, setup);
	return process_wait(process);
}
