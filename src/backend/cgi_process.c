/*
 * A program that runs for a request. It is started by posix_spawn(3), which shares our memory until
 * the program is there and reports what exec says: no code of ours runs in a copy of a process with
 * threads. It gets three descriptors, no signal mask and the default dispositions, and is the
 * leader of a process group, so that all that it starts can be ended with it.
 *
 * A process outlives its exchange: it may have closed its output and work on, or it must be ended,
 * which takes its time. It is freed when it is reaped. Its error output is read until then, since a
 * program that writes into a closed pipe dies of it.
 *
 *     running --left, time over--> asked to end (SIGTERM) --grace over--> made to (SIGKILL)
 */
#include "cgi_private.h"

#include "weir/child.h"
#include "weir/log.h"
#include "weir/units.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GRACE_US = 3000000 };

struct cgi_process {
	struct loop *loop;
	struct exchange *exchange; /* NULL: it has been left */
	struct child *child; /* NULL: it has ended */
	struct stream *input, *errors;
	struct timer *ladder;
	bool is_asked; /* to end */
	char path[PATH_MAX];
};

/* Theirs and ours of three pipes: standard input, output, error output. */
struct pipes {
	int theirs[3], ours[3];
};

/* ---- the end ---- */

static void
destroy(struct cgi_process *process)
{
	stream_close(process->input);
	stream_close(process->errors);
	timer_free(process->ladder);
	free(process);
}

static void
on_rung(void *context)
{
	struct cgi_process *process = context;

	child_signal_group(process->child, process->is_asked ? SIGKILL : SIGTERM);
	if (!process->is_asked)
		timer_set(process->ladder, loop_now_us(process->loop) + GRACE_US);
	process->is_asked = true;
}

static void
tell_killed(const struct cgi_process *process, int signo)
{
	struct backend_pool *pool = process->exchange->pool;
	uint64_t held;

	if (log_throttle_pass(&pool->killed_log, loop_now_us(process->loop), &held))
		log_warn("A program was ended by a signal.", LOG_TEXT("backend", pool->name),
			LOG_TEXT("program", process->path), LOG_INT("signal", signo),
			LOG_KEPT_BACK(held));
}

static void
on_ended(void *context, int status)
{
	struct cgi_process *process = context;

	/* We go, and what still runs is to go with us. */
	if (status == -1)
		child_signal_group(process->child, SIGTERM);
	else if (WIFSIGNALED(status) && process->exchange != NULL)
		tell_killed(process, WTERMSIG(status));
	process->child = NULL;
	if (process->exchange == NULL)
		destroy(process);
}

void
cgi_process_leave(struct cgi_process *process, int64_t may_run_us)
{
	process->exchange = NULL;
	stream_close(process->input);
	process->input = NULL;
	if (process->child == NULL)
		destroy(process);
	else if (may_run_us == 0)
		on_rung(process);
	else
		timer_set(process->ladder, loop_now_us(process->loop) + may_run_us);
}

/* ---- standard input ---- */

struct stream *
cgi_process_input(const struct cgi_process *process)
{
	return process->input;
}

/* It reads no more, or has all: whoever gives the body need not wait. */
static void
close_input(struct cgi_process *process)
{
	const bool was_full = stream_is_full(process->input);

	stream_close(process->input);
	process->input = NULL;
	if (was_full && process->exchange != NULL)
		process->exchange->handler->drained(process->exchange->context);
}

static void
on_input_drained(void *context)
{
	struct cgi_process *process = context;

	if (process->exchange != NULL)
		process->exchange->handler->drained(process->exchange->context);
}

static void
on_input_finished(void *context)
{
	close_input(context);
}

static void
on_input_failed(void *context, int error)
{
	(void)error;
	close_input(context);
}

static const struct stream_handler input_handler = {
	.drained = on_input_drained, .finished = on_input_finished, .failed = on_input_failed
};

/* ---- error output ---- */

static void
on_error_text(void *context, struct slice text)
{
	const struct cgi_process *process = context;

	if (process->exchange != NULL)
		process->exchange->handler->error_text(process->exchange->context, text);
}

static void
on_errors_end(void *context)
{
	struct cgi_process *process = context;

	stream_close(process->errors);
	process->errors = NULL;
}

static void
on_errors_failed(void *context, int error)
{
	(void)error;
	on_errors_end(context);
}

static const struct stream_handler errors_handler = {
	.input = on_error_text, .eof = on_errors_end, .failed = on_errors_failed
};

/* ---- starting ---- */

static void
close_all(int fds[3])
{
	for (unsigned i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

/* Only our ends do not block: programs do not expect it of theirs. */
static int
open_pipes(struct pipes *pipes)
{
	*pipes = (struct pipes){ { -1, -1, -1 }, { -1, -1, -1 } };
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

/* Returns an errno. */
static int
set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes, const char *directory,
	const int theirs[3])
{
	const short flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int error = 0;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	for (int i = 0; i < 3 && error == 0; i++)
		error = posix_spawn_file_actions_adddup2(actions, theirs[i], i);
	if (error == 0)
		error = posix_spawn_file_actions_addclosefrom_np(actions, 3);
	if (error == 0)
		error = posix_spawn_file_actions_addchdir_np(actions, directory);
	if (error == 0)
		error = posix_spawnattr_setflags(attributes, flags);
	if (error == 0)
		error = posix_spawnattr_setpgroup(attributes, 0);
	if (error == 0)
		error = posix_spawnattr_setsigmask(attributes, &none);
	return error == 0 ? posix_spawnattr_setsigdefault(attributes, &all) : error;
}

static int
spawn(pid_t *pid, const char *path, char **environment, const int theirs[3])
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char directory[PATH_MAX], *const arguments[] = { (char *)(uintptr_t)path, NULL };
	const size_t len = (size_t)(strrchr(path, '/') - path);
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return error;
	error = posix_spawnattr_init(&attributes);
	if (error == 0) {
		memcpy(directory, path, len);
		memcpy(directory + len, "/", 2);
		error = set_up(&actions, &attributes, directory, theirs);
		if (error == 0)
			error = posix_spawn(
				pid, path, &actions, &attributes, arguments, environment);
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return error;
}

static enum exchange_result
result_of(int error)
{
	switch (error) {
	case EAGAIN:
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return EXCHANGE_BUSY;
	case E2BIG:
		return EXCHANGE_TOO_LARGE;
	case EACCES:
	case EPERM:
		return EXCHANGE_FORBIDDEN;
	default:
		return EXCHANGE_REFUSED;
	}
}

/* Views into `strings`, ended by NULL; to be freed. */
static char **
pointers_to(struct slice strings)
{
	size_t count = 0;
	char **pointers;

	for (size_t i = 0; i < strings.len; i++)
		count += strings.ptr[i] == '\0';
	pointers = malloc((count + 1) * sizeof pointers[0]);
	if (pointers == NULL)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		pointers[i] = (char *)(uintptr_t)strings.ptr;
		strings = slice_skip(strings, strlen(strings.ptr) + 1);
	}
	pointers[count] = NULL;
	return pointers;
}

/* Takes our ends. False: no memory. */
static bool
open_streams(struct cgi_process *process, struct exchange *exchange, int ours[3])
{
	struct loop *loop = process->loop;

	process->input = stream_new_pipe(loop, ours[0], &input_handler, process);
	exchange->stream = stream_new_pipe(loop, ours[1], &exchange_stream_handler, exchange);
	process->errors = stream_new_pipe(loop, ours[2], &errors_handler, process);
	ours[0] = ours[1] = ours[2] = -1;
	if (process->input == NULL || exchange->stream == NULL || process->errors == NULL)
		return false;
	stream_read_on(process->input);
	stream_resume(process->errors);
	return true;
}

static enum exchange_result
start(struct cgi_process *process, struct exchange *exchange, char **environment,
	struct pipes *pipes, struct err *why)
{
	pid_t pid = 0;

	/* All that can fail first: what has been started has to be ended. */
	process->ladder = timer_new(process->loop, on_rung, process);
	if (process->ladder == NULL || !open_streams(process, exchange, pipes->ours)) {
		(void)err_set(why, "no memory for a program");
		return EXCHANGE_BUSY;
	}
	const int error = spawn(&pid, process->path, environment, pipes->theirs);

	if (error != 0) {
		(void)err_set(why, "%s cannot be started: %s", process->path, strerror(error));
		return result_of(error);
	}
	process->child = child_watch(process->loop, pid, on_ended, process, why);
	if (process->child != NULL)
		return EXCHANGE_COMPLETE;
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return EXCHANGE_BUSY;
}

struct cgi_process *
cgi_process_start(struct exchange *exchange, const char *path, struct slice environment,
	enum exchange_result *result, struct err *why)
{
	struct cgi_process *process = calloc(1, sizeof *process);
	char **pointers = pointers_to(environment);
	struct pipes pipes;

	*result = EXCHANGE_BUSY;
	if (process == NULL || pointers == NULL) {
		(void)err_set(why, "no memory for a program");
		free(process);
		free(pointers);
		return NULL;
	}
	process->loop = exchange->pool->loop;
	process->exchange = exchange;
	(void)memcpy(process->path, path, strlen(path) + 1);
	if (open_pipes(&pipes) != 0)
		(void)err_set(why, "no pipe to a program: %s", strerror(errno));
	else
		*result = start(process, exchange, pointers, &pipes, why);
	close_all(pipes.theirs);
	close_all(pipes.ours);
	free(pointers);
	if (*result == EXCHANGE_COMPLETE)
		return process;
	destroy(process);
	return NULL;
}
