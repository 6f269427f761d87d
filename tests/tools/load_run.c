/*
 * The loop. In an open loop request i is due at the start plus i / rate, whatever became of those
 * before it, and its latency counts from then: a server that stands still is charged for all who
 * would have come meanwhile. In a closed loop each client sends its next request when it has the
 * answer to the last.
 *
 * A line on standard input begins a new phase of that name, and is answered by the same line on
 * standard output as soon as it holds; "end" lets no further request begin.
 */
#include "load_run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 256, SWEEP_US = 20000 };

static int64_t
due_us(const struct run *run)
{
	return run->began_us + (int64_t)((double)run->started / run->plan->rate * 1e6);
}

/* No further request, now or later. */
static bool
is_spent(const struct run *run)
{
	const struct plan *plan = run->plan;

	if (run->is_ended)
		return true;
	if (plan->rate > 0)
		return (double)run->started >= plan->rate * plan->seconds;
	return run->started >= plan->clients * plan->requests;
}

static void
start_due(struct run *run, int64_t now)
{
	struct connection *connection;

	while (!is_spent(run) && due_us(run) <= now && (connection = connection_take(run)) != NULL)
		connection_start(run, connection, due_us(run));
}

/* The time of the next client's first request. */
static int64_t
ramp_us(const struct run *run)
{
	const double ramp = run->plan->ramp;

	return ramp > 0 ? run->began_us + (int64_t)((double)run->connection_count / ramp * 1e6) : 0;
}

/* Every idle client that has requests left goes on at once. Those that have none leave the list. */
static void
start_clients(struct run *run)
{
	struct connection *connection;

	while (!is_spent(run) && (run->idle != NULL || ramp_us(run) <= now_us()) &&
		(connection = connection_take(run)) != NULL) {
		if (connection->left == 0)
			continue;
		connection->left--;
		connection_start(run, connection, now_us());
	}
}

static void
end_mark(struct run *run)
{
	run->mark[run->mark_len] = '\0';
	run->mark_len = 0;
	if (strcmp(run->mark, "end") == 0) {
		run->is_ended = true;
	} else {
		struct phase *phase = phase_new(run->mark, now_us());

		run->phase->next = phase;
		run->phase = phase;
	}
	(void)printf("%s\n", run->mark);
	(void)fflush(stdout);
}

static void
read_marks(struct run *run)
{
	char bytes[256];
	const ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

	if (n <= 0)
		run->has_marks = false;
	for (ssize_t i = 0; i < n; i++) {
		if (bytes[i] == '\n')
			end_mark(run);
		else if (run->mark_len + 1 < sizeof run->mark && bytes[i] != '"' &&
			bytes[i] != '\\')
			run->mark[run->mark_len++] = bytes[i];
	}
}

static void
wait_for_events(struct run *run, int64_t until_us)
{
	struct pollfd fds[] = { { .fd = run->epoll, .events = POLLIN },
		{ .fd = run->has_marks ? STDIN_FILENO : -1, .events = POLLIN } };
	struct epoll_event events[EVENTS];
	const int64_t now = now_us(), wait = until_us > now ? until_us - now : 0;
	const struct timespec timeout = { .tv_sec = wait / 1000000,
		.tv_nsec = wait % 1000000 * 1000 };

	if (ppoll(fds, 2, &timeout, NULL) <= 0)
		return;
	if (fds[1].revents != 0)
		read_marks(run);
	const int n = epoll_wait(run->epoll, events, EVENTS, 0);

	for (int i = 0; i < n; i++)
		connection_event(run, events[i].data.ptr);
}

static void
turn(struct run *run)
{
	const int64_t now = now_us();
	int64_t wake = run->swept_us + SWEEP_US;

	if (now >= wake) {
		connections_sweep(run, now);
		run->swept_us = now;
		wake = now + SWEEP_US;
	}
	if (run->plan->rate > 0)
		start_due(run, now);
	else
		start_clients(run);
	if (run->plan->rate > 0 && !is_spent(run) && due_us(run) < wake &&
		run->busy_count < run->connection_max)
		wake = due_us(run);
	if (run->plan->ramp > 0 && run->connection_count < run->connection_max &&
		ramp_us(run) < wake)
		wake = ramp_us(run);
	wait_for_events(run, wake);
}

void
run_plan(struct run *run, const struct plan *plan)
{
	*run = (struct run){ .plan = plan,
		.connection_max = plan->rate > 0 ? plan->connections_max : plan->clients,
		.has_marks = plan->has_marks };
	run->epoll = epoll_create1(EPOLL_CLOEXEC);
	run->connections = calloc(run->connection_max, sizeof(struct connection *));
	if (run->epoll < 0 || run->connections == NULL)
		abort();
	run->began_us = now_us();
	run->swept_us = run->began_us;
	run->phase = run->first_phase = phase_new("start", run->began_us);
	while (run->busy_count > 0 || !is_spent(run) ||
		(plan->stays && run->has_marks && !run->is_ended))
		turn(run);
}
