/*
 * A program that runs for a request, from its start until nothing is left of it. It is the leader
 * of a process group, so that all that it starts can be ended with it.
 *
 * A process outlives its exchange: it may have closed its output and work on, or it must be ended,
 * which takes its time. Its error output is read until then, since a program that writes into a
 * closed pipe dies of it.
 *
 *     running --left, time over--> asked to end (SIGTERM) --grace over--> made to (SIGKILL)
 *
 * The leader may end before the rest of its group. It is not reaped as long as there may be a
 * signal to send: until then its number, which is the group's, can be nobody else's. A group that
 * was asked to end has the whole grace, unless nobody holds its error output any more.
 */
#include "cgi_private.h"

#include "weir/child.h"
#include "weir/log.h"
#include "weir/units.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* AWAIT_US: a program that has closed its output is on its way out, as a rule. */
enum { GRACE_US = 3000000, AWAIT_US = 50000 };

struct cgi_process {
	struct loop *loop;
	struct backend_pool *pool;
	struct exchange *exchange; /* NULL: it has been left */
	struct child *child;
	struct stream *input, *errors;
	struct timer *ladder;
	bool has_ended; /* the leader; not reaped */
	bool is_awaited; /* its end, for the exchange whose answer has ended */
	int signo; /* that ended it, or 0 */
	bool is_asked, is_made; /* to end, the group */
	bool is_counted; /* as left behind */
	char path[PATH_MAX];
};

/* ---- the end ---- */

static void
destroy(struct cgi_process *process)
{
	stream_close(process->input);
	stream_close(process->errors);
	timer_free(process->ladder);
	child_free(process->child);
	if (process->is_counted)
		pool_forget_left(process->pool);
	free(process);
}

static void
make_end(struct cgi_process *process)
{
	child_signal_group(process->child, SIGKILL);
	process->is_made = true;
}

/* Whether there is anything left to wait for; if not, it is gone. */
static void
settle(struct cgi_process *process)
{
	if (process->exchange != NULL || !process->has_ended)
		return;
	if (process->is_asked && !process->is_made) {
		if (process->errors != NULL)
			return;
		make_end(process);
	}
	destroy(process);
}

/* The process may be gone behind it. */
static void
tell_end(struct cgi_process *process)
{
	process->is_awaited = false;
	answer_program_ended(process->exchange, process->signo);
}

static void
on_rung(void *context)
{
	struct cgi_process *process = context;

	if (process->is_awaited) {
		tell_end(process);
		return;
	}
	if (process->is_asked) {
		make_end(process);
		settle(process);
		return;
	}
	child_signal_group(process->child, SIGTERM);
	process->is_asked = true;
	timer_set(process->ladder, loop_now_us(process->loop) + GRACE_US);
}

static void
tell_killed(const struct cgi_process *process, int signo)
{
	struct backend_pool *pool = process->pool;
	uint64_t held;

	if (log_throttle_pass(&pool->killed_log, loop_now_us(process->loop), &held))
		log_warn("A program was ended by a signal.", LOG_TEXT("backend", pool->name),
			LOG_TEXT("program", process->path), LOG_INT("signal", signo),
			LOG_KEPT_BACK(held));
}

/* Ours, and SIGPIPE of the output that was closed when nobody wanted it any more. A program that
 * dies has closed its output before it has ended, and is asked to end then: it did not die of that.
 */
static bool
is_of_ours(const struct cgi_process *process, int signo)
{
	return process->exchange == NULL &&
		(signo == SIGPIPE || (process->is_asked && signo == SIGTERM) ||
			(process->is_made && signo == SIGKILL));
}

static void
on_ended(void *context, int signo)
{
	struct cgi_process *process = context;

	if (signo > 0 && !is_of_ours(process, signo))
		tell_killed(process, signo);
	process->has_ended = true;
	process->signo = signo;
	if (process->is_awaited)
		tell_end(process);
	else
		settle(process);
}

/* We go, and what still runs is to go with us. */
static void
on_loop_ends(void *context)
{
	struct cgi_process *process = context;

	assert(process->exchange == NULL);
	child_signal_group(process->child, process->is_asked ? SIGKILL : SIGTERM);
	destroy(process);
}

static const struct child_handler child_handler = { .ended = on_ended, .loop_ends = on_loop_ends };

void
cgi_process_await(struct cgi_process *process)
{
	process->is_awaited = true;
	if (process->has_ended)
		tell_end(process);
	else
		timer_set(process->ladder, loop_now_us(process->loop) + AWAIT_US);
}

void
cgi_process_leave(struct cgi_process *process, int64_t may_run_us)
{
	process->exchange = NULL;
	process->is_awaited = false;
	stream_close(process->input);
	process->input = NULL;
	/* What an answered request has left running in the background is its own affair. */
	if (process->has_ended && may_run_us > 0) {
		destroy(process);
		return;
	}
	process->is_counted = true;
	pool_count_left(process->pool);
	if (may_run_us > 0) {
		timer_set(process->ladder, loop_now_us(process->loop) + may_run_us);
		return;
	}
	on_rung(process);
	settle(process);
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
	settle(process);
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
	struct cgi_pipes *pipes, struct err *why)
{
	pid_t pid = 0;

	/* All that can fail first: what has been started has to be ended. */
	process->ladder = timer_new(process->loop, on_rung, process);
	if (process->ladder == NULL || !open_streams(process, exchange, pipes->ours)) {
		(void)err_set(why, "no memory for a program");
		return EXCHANGE_BUSY;
	}
	const int error = cgi_spawn(&pid, process->path, environment, pipes->theirs);

	if (error != 0) {
		(void)err_set(why, "%s cannot be started: %s", process->path, strerror(error));
		return result_of(error);
	}
	process->child = child_watch(process->loop, pid, &child_handler, process, why);
	return process->child != NULL ? EXCHANGE_COMPLETE : EXCHANGE_BUSY;
}

struct cgi_process *
cgi_process_start(struct exchange *exchange, const char *path, struct slice environment,
	enum exchange_result *result, struct err *why)
{
	struct cgi_process *process = calloc(1, sizeof *process);
	char **pointers = pointers_to(environment);
	struct cgi_pipes pipes;

	*result = EXCHANGE_BUSY;
	if (process == NULL || pointers == NULL) {
		(void)err_set(why, "no memory for a program");
		free(process);
		free(pointers);
		return NULL;
	}
	process->loop = exchange->pool->loop;
	process->pool = exchange->pool;
	process->exchange = exchange;
	(void)memcpy(process->path, path, strlen(path) + 1);
	if (cgi_pipes_open(&pipes) != 0)
		(void)err_set(why, "no pipe to a program: %s", strerror(errno));
	else
		*result = start(process, exchange, pointers, &pipes, why);
	cgi_pipes_close(&pipes);
	free(pointers);
	if (*result == EXCHANGE_COMPLETE)
		return process;
	destroy(process);
	return NULL;
}
