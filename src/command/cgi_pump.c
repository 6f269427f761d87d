/*
 * The conversation of a CGI program with the gateway in its own process: FastCGI over a socket
 * pair, so that a request takes the same way as any other. A thread of its own carries the bytes:
 *
 *     standard input  --> STDIN records  --> gateway
 *     standard output <-- STDOUT records <-- gateway
 *     standard error  <-- STDERR records <-'
 *
 * It reads while it writes: an application may answer before it has read its request. Only the
 * socket is non-blocking. The others may be shared with the web server, whose they are; what poll
 * calls writable takes PIPE_BUF bytes without waiting, so no more is written at once.
 *
 * A client that has gone shows on standard output, when the web server closes its end.
 */
#include "cgi.h"

#include "cgi_private.h"
#include "weir/clock.h"
#include "weir/front.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 65536, BODY_PIECE = 32768 };

struct cgi {
	struct loop *loop;
	cgi_done_fn *done;
	void *context;
	pthread_t thread;
	bool is_over; /* the thread has nothing left to do; the loop's */

	/* ---- the thread's ---- */
	int fd; /* our end */
	struct buf request; /* what is to be sent of it */
	uint64_t body_left;
	bool body_ended; /* its end is sent, or in `request` */
	struct fcgi_reader reader;
	uint8_t room[ROOM];
	struct slice read; /* what of it is not taken apart yet */
	struct slice out; /* content that is not written yet */
	bool is_whole; /* END_REQUEST came */
	bool is_gone; /* whoever was to take the answer, or the gateway */
};

/* ---- the request ---- */

static void
send_request(struct cgi *cgi)
{
	const struct slice bytes = buf_slice(&cgi->request);
	const ssize_t n = send(cgi->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

	if (n > 0)
		buf_consume(&cgi->request, (size_t)n);
	/* A gateway that has answered takes no more; its answer is still to be read. */
	if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) {
		buf_consume(&cgi->request, cgi->request.len);
		cgi->body_ended = true;
	}
}

/* A record of the body, or its end. */
static int
put_body(struct cgi *cgi, const uint8_t *bytes, size_t len)
{
	uint8_t head[FCGI_HEADER_LEN];

	fcgi_put_head(head, FCGI_STDIN, CGI_REQUEST_ID, (uint16_t)len, 0);
	cgi->body_ended = cgi->body_ended || len == 0;
	if (buf_append(&cgi->request, head, sizeof head) != 0 ||
		buf_append(&cgi->request, bytes, len) != 0)
		return -1;
	return 0;
}

static int
read_body(struct cgi *cgi)
{
	uint8_t piece[BODY_PIECE];
	const size_t most = cgi->body_left < sizeof piece ? (size_t)cgi->body_left : sizeof piece;
	const ssize_t n = most == 0 ? 0 : read(STDIN_FILENO, piece, most);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : put_body(cgi, piece, 0);
	if (cgi->body_left != UINT64_MAX)
		cgi->body_left -= (uint64_t)n;
	return put_body(cgi, piece, (size_t)n);
}

/* ---- the answer ---- */

/* Up to the next content for standard output, the end of the answer, or the end of what is read. */
static void
take_apart(struct cgi *cgi)
{
	struct slice content;

	while (cgi->out.len == 0 && !cgi->is_whole && !cgi->is_gone) {
		switch (fcgi_read(&cgi->reader, &cgi->read, &content)) {
		case FCGI_NEED_MORE:
			return;
		case FCGI_BAD:
			cgi->is_gone = true;
			break;
		case FCGI_CONTENT:
			if (cgi->reader.record.type == FCGI_STDOUT)
				cgi->out = content;
			else if (cgi->reader.record.type == FCGI_STDERR &&
				write(STDERR_FILENO, content.ptr, content.len) < 0)
				break; /* nobody reads the error log: the answer goes on */
			break;
		case FCGI_RECORD_END:
			cgi->is_whole = cgi->reader.record.type == FCGI_END_REQUEST;
			break;
		case FCGI_RECORD:
			break;
		}
	}
}

static void
receive(struct cgi *cgi)
{
	const ssize_t n = recv(cgi->fd, cgi->room, sizeof cgi->room, 0);

	if (n > 0)
		cgi->read = slice_make((const char *)cgi->room, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		cgi->is_gone = true;
}

static void
write_out(struct cgi *cgi)
{
	const struct slice piece = slice_first(cgi->out, PIPE_BUF);
	const ssize_t n = write(STDOUT_FILENO, piece.ptr, piece.len);

	if (n > 0)
		cgi->out = slice_skip(cgi->out, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		cgi->is_gone = true;
}

/* ---- both at once ---- */

/* One round; -1: it cannot go on, or nobody takes the answer. */
static int
turn(struct cgi *cgi)
{
	struct pollfd fds[] = { { -1, POLLIN, 0 }, { cgi->fd, 0, 0 }, { STDOUT_FILENO, 0, 0 } };

	if (cgi->request.len > 0)
		fds[1].events |= POLLOUT;
	else if (!cgi->body_ended && cgi->body_left > 0)
		fds[0].fd = STDIN_FILENO;
	if (cgi->out.len > 0)
		fds[2].events = POLLOUT;
	else
		fds[1].events |= POLLIN;
	if (fds[1].events == 0)
		fds[1].fd = -1; /* its hang-up would come again and again */
	if (poll(fds, 3, -1) < 0)
		return errno == EINTR ? 0 : -1;
	if ((fds[2].revents & ~POLLOUT) != 0)
		return -1;
	if (fds[2].revents != 0 && cgi->out.len > 0)
		write_out(cgi);
	else if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 && cgi->out.len == 0)
		receive(cgi);
	if ((fds[1].revents & POLLOUT) != 0)
		send_request(cgi);
	return fds[0].revents != 0 ? read_body(cgi) : 0;
}

/* The end of a process that has not read its request resets the socket of mod_cgid, and what is not
 * passed on of the answer is lost: so the rest is read and forgotten, as the front does. */
static void
discard_body(struct cgi *cgi)
{
	const int64_t until_us = clock_monotonic_us() + FRONT_LINGER_TOTAL_US;
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	uint64_t left = cgi->body_left < FRONT_LINGER_BYTES ? cgi->body_left : FRONT_LINGER_BYTES;

	/* The answer is whole: mod_cgid sees its end only so, as its socket is standard input too.
	 */
	(void)shutdown(STDOUT_FILENO, SHUT_WR);
	while (left > 0 && clock_monotonic_us() < until_us &&
		poll(&in, 1, FRONT_LINGER_TIMEOUT_US / US_PER_MS) > 0) {
		const ssize_t n = read(STDIN_FILENO, cgi->room, sizeof cgi->room);

		if (n <= 0)
			return;
		left -= (uint64_t)n < left ? (uint64_t)n : left;
	}
}

static void
tell_done(void *context)
{
	struct cgi *cgi = context;

	cgi->is_over = true;
	cgi->done(cgi->context);
}

static void *
run(void *context)
{
	struct cgi *cgi = context;
	int result = 0;

	if (cgi->body_left == 0)
		result = put_body(cgi, cgi->room, 0);
	while (result == 0 && !cgi->is_gone && !(cgi->is_whole && cgi->out.len == 0)) {
		result = turn(cgi);
		if (!cgi->body_ended && cgi->body_left == 0 && result == 0)
			result = put_body(cgi, cgi->room, 0);
		take_apart(cgi);
	}
	/* The gateway sees it, and ends the application's work. */
	(void)close(cgi->fd);
	if (cgi->is_whole && !cgi->is_gone)
		discard_body(cgi);
	while (loop_post(cgi->loop, tell_done, cgi) != 0)
		(void)usleep(10000);
	return NULL;
}

static int
start_thread(struct cgi *cgi)
{
	sigset_t all, before;

	/* Signals are the main loop's. */
	(void)sigfillset(&all);
	(void)sigdelset(&all, SIGBUS); /* of which the thread itself is told (memory_file.c) */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	const int error = pthread_create(&cgi->thread, NULL, run, cgi);

	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

static void
destroy(struct cgi *cgi)
{
	buf_release(&cgi->request);
	free(cgi);
}

struct cgi *
cgi_start(struct loop *loop, cgi_done_fn *done, void *context, int *fd, struct err *err)
{
	extern char **environ;
	struct cgi *cgi = calloc(1, sizeof *cgi);
	int pair[2] = { -1, -1 };
	int error;

	if (cgi == NULL) {
		(void)err_set(err, "no memory for a request");
		return NULL;
	}
	cgi->loop = loop;
	cgi->done = done;
	cgi->context = context;
	cgi->body_left = cgi_body_length();
	fcgi_reader_init(&cgi->reader);
	buf_init(&cgi->request, CGI_REQUEST_MAX);
	if (cgi_put_request(&cgi->request, environ) != 0) {
		(void)err_set(err, "the request's variables are too large");
	} else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
		(void)err_set(err, "no socket for a request: %s", strerror(errno));
	} else {
		cgi->fd = pair[0];
		*fd = pair[1];
		error = start_thread(cgi);
		if (error == 0)
			return cgi;
		(void)close(pair[0]);
		(void)close(pair[1]);
		(void)err_set(err, "a thread cannot be started: %s", strerror(error));
	}
	destroy(cgi);
	return NULL;
}

bool
cgi_is_over(const struct cgi *cgi)
{
	return cgi->is_over;
}

bool
cgi_end(struct cgi *cgi)
{
	(void)pthread_join(cgi->thread, NULL);
	const bool is_whole = cgi->is_whole;

	destroy(cgi);
	return is_whole;
}
