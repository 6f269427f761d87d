/*
 * Connections. One has at most one request; it is busy from the request's start to its last byte,
 * and waits in the list of idle ones between two. A descriptor is watched for everything from its
 * connect on, edge by edge, so nothing is ever changed in the epoll set.
 *
 * Of each request that has ended a line can be had: when it was due (CLOCK_MONOTONIC) and how long
 * it took, in microseconds, and the status of its answer, 0 if it failed.
 */
#include "load_run.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static void
drop(struct connection *connection)
{
	if (connection->fd >= 0)
		(void)close(connection->fd);
	connection->fd = -1;
}

static void
tell(const struct run *run, const struct connection *connection, int status)
{
	if (run->plan->each != NULL)
		(void)fprintf(run->plan->each, "%lld %lld %d\n", (long long)connection->due_us,
			(long long)(now_us() - connection->due_us), status);
}

static void
rest(struct run *run, struct connection *connection)
{
	connection->is_busy = false;
	run->busy_count--;
	connection->idle_next = run->idle;
	run->idle = connection;
}

static void
fail(struct run *run, struct connection *connection, enum failure how)
{
	connection->phase->failed[how]++;
	tell(run, connection, 0);
	drop(connection);
	rest(run, connection);
}

static void
succeed(struct run *run, struct connection *connection)
{
	const struct plan *plan = run->plan;

	phase_answered(connection->phase, connection->answer.status, now_us() - connection->due_us);
	tell(run, connection, connection->answer.status);
	if (connection->answer.closes || connection->answer.until_close ||
		!(plan->is_http || plan->keep))
		drop(connection);
	rest(run, connection);
}

static int
open_socket(struct run *run, struct connection *connection)
{
	const struct plan *plan = run->plan;
	const int one = 1, family = plan->address.ss_family;
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		.data.ptr = connection };
	const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	if ((connect(fd, (const struct sockaddr *)&plan->address, plan->address_len) != 0 &&
		    errno != EINPROGRESS) ||
		epoll_ctl(run->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		(void)close(fd);
		return -1;
	}
	connection->fd = fd;
	return 0;
}

static void
write_out(struct connection *connection)
{
	while (connection->is_busy && connection->out_sent < connection->out_len) {
		const ssize_t n = send(connection->fd, connection->out + connection->out_sent,
			connection->out_len - connection->out_sent, MSG_NOSIGNAL);

		if (n > 0)
			connection->out_sent += (size_t)n;
		else if (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)
			return;
		else
			/* What the peer has said before it closed is still there to be read. */
			connection->out_sent = connection->out_len;
	}
}

static void
read_in(struct run *run, struct connection *connection)
{
	char bytes[65536];

	while (connection->fd >= 0) {
		const ssize_t n = recv(connection->fd, bytes, sizeof bytes, 0);

		if (n < 0 && (errno == EAGAIN || errno == ENOTCONN))
			return;
		if (!connection->is_busy) {
			drop(connection);
			return;
		}
		const enum answer_state state = n > 0
			? answer_take(&connection->answer, bytes, (size_t)n)
			: answer_eof(&connection->answer);

		if (state == ANSWER_DONE) {
			succeed(run, connection);
			return;
		}
		if (state == ANSWER_BROKEN || n <= 0) {
			fail(run, connection,
				connection->answer.has_begun ? FAILED_CUT : FAILED_CLOSED);
			return;
		}
	}
}

static struct connection *
connection_new(struct run *run)
{
	struct connection *connection = calloc(1, sizeof *connection);

	if (connection == NULL || (connection->out = malloc(REQUEST_SIZE)) == NULL)
		abort();
	connection->fd = -1;
	connection->left = run->plan->requests;
	run->connections[run->connection_count++] = connection;
	return connection;
}

struct connection *
connection_take(struct run *run)
{
	struct connection *connection = run->idle;

	if (connection != NULL)
		run->idle = connection->idle_next;
	else if (run->connection_count < run->connection_max)
		connection = connection_new(run);
	return connection;
}

void
connection_start(struct run *run, struct connection *connection, int64_t due_us)
{
	const struct plan *plan = run->plan;

	connection->is_busy = true;
	run->busy_count++;
	connection->phase = run->phase;
	connection->phase->started++;
	connection->due_us = due_us;
	connection->give_up_us = now_us() + (int64_t)(plan->timeout * 1e6);
	connection->out_sent = 0;
	connection->out_len = request_write(plan, run->started++, connection->out);
	answer_init(&connection->answer, plan->is_http);
	if (connection->fd < 0 && open_socket(run, connection) != 0) {
		fail(run, connection, FAILED_CONNECT);
		return;
	}
	write_out(connection);
	/* The end of a kept connection that came with the last answer is told no second time. */
	read_in(run, connection);
}

void
connection_event(struct run *run, struct connection *connection)
{
	write_out(connection);
	read_in(run, connection);
}

void
connections_sweep(struct run *run, int64_t now)
{
	for (size_t i = 0; i < run->connection_count; i++) {
		struct connection *connection = run->connections[i];

		if (connection->is_busy && connection->give_up_us <= now)
			fail(run, connection, FAILED_TIMEOUT);
	}
}

void
connections_close(struct run *run)
{
	for (size_t i = 0; i < run->connection_count; i++) {
		drop(run->connections[i]);
		free(run->connections[i]->out);
		free(run->connections[i]);
	}
	free(run->connections);
}
