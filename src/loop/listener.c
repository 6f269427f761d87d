/*
 * Accepting. Several threads may accept from one socket; who comes late finds nothing, which is no
 * error. Running out of descriptors must not turn into a busy loop: the listener rests and tries
 * again.
 *
 * The kernel wakes us for what waits, but not for its end. So a listener that is to take the rest
 * asks by itself, a batch a turn, until there is none.
 */
#include "weir/listener.h"

#include "loop_private.h"
#include "weir/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REST_US = 100000, DROPPED_MAX = 65536 };

struct listener {
	struct loop *loop;
	int fd;
	unsigned batch;
	listener_fn *fn;
	void *context;
	listener_none_fn *none; /* NULL: it goes on accepting */
	listener_none_fn *shortage; /* may be NULL */
	struct event *readable;
	struct timer *rest;
	bool paused;
	struct log_throttle throttle;
};

static bool
is_passing(int error)
{
	return error == EAGAIN || error == EINTR || error == ECONNABORTED || error == EPROTO;
}

static void
rest(struct listener *listener, int error)
{
	const int64_t now = loop_now_us(listener->loop);
	uint64_t held;

	if (log_throttle_pass(&listener->throttle, now, &held))
		log_error("Connections cannot be accepted; trying again every 100 ms.",
			LOG_TEXT("error", strerror(error)), LOG_KEPT_BACK(held));
	(void)event_del(listener->readable);
	timer_set(listener->rest, now + REST_US);
	if (listener->shortage != NULL)
		listener->shortage(listener->context);
}

/* A peer that vanishes without a word, with its machine or its network, is noticed after two
 * minutes; the system's own two hours are too long to hold a request. */
static void
prepare_tcp(int fd)
{
	const int one = 1, idle_s = 60, interval_s = 15, probes = 4;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* 0, or an errno. */
static int
take_one(struct listener *listener)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof peer;
	const int connection =
		accept4(listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (connection < 0)
		return errno;
	if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)
		prepare_tcp(connection);
	listener->fn(listener->context, connection);
	return 0;
}

/* It is readable for ever then, though a unix socket says EAGAIN. */
static bool
is_shut(const struct listener *listener)
{
	struct pollfd state = { .fd = listener->fd, .events = 0 };

	return poll(&state, 1, 0) == 1 && (state.revents & (POLLHUP | POLLERR)) != 0;
}

static void
take_batch(struct listener *listener)
{
	unsigned count = 0;
	int error = 0;

	while (count < listener->batch && !listener->paused && error == 0) {
		error = take_one(listener);
		count += error == 0 ? 1 : 0;
	}
	if (error == EAGAIN && listener->none == NULL && (count > 0 || !is_shut(listener)))
		return;
	if (error == EAGAIN || error == EINVAL) {
		(void)event_del(listener->readable);
		if (listener->none != NULL)
			listener->none(listener->context);
		return;
	}
	if (error != 0 && !is_passing(error))
		rest(listener, error);
	else if (listener->none != NULL && !listener->paused)
		timer_set(listener->rest, loop_now_us(listener->loop));
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	take_batch(context);
}

static void
rested(void *context)
{
	struct listener *listener = context;

	if (listener->paused)
		return;
	(void)event_add(listener->readable, NULL);
	if (listener->none != NULL)
		take_batch(listener);
}

struct listener *
listener_new(struct loop *loop, int fd, unsigned batch, listener_fn *fn, void *context)
{
	struct listener *listener = calloc(1, sizeof *listener);

	if (listener == NULL)
		return NULL;
	*listener = (struct listener){ .loop = loop,
		.fd = fd,
		.batch = batch,
		.fn = fn,
		.context = context,
		.throttle = { .period_us = 60000000, .burst = 1 } };
	listener->readable =
		event_new(loop_base(loop), fd, EV_READ | EV_PERSIST, on_readable, listener);
	listener->rest = timer_new(loop, rested, listener);
	if (listener->readable == NULL || listener->rest == NULL ||
		event_add(listener->readable, NULL) != 0) {
		listener_free(listener);
		return NULL;
	}
	return listener;
}

void
listener_free(struct listener *listener)
{
	if (listener == NULL)
		return;
	if (listener->readable != NULL)
		event_free(listener->readable);
	timer_free(listener->rest);
	free(listener);
}

void
listener_pause(struct listener *listener)
{
	listener->paused = true;
	(void)event_del(listener->readable);
}

void
listener_resume(struct listener *listener)
{
	listener->paused = false;
	(void)event_add(listener->readable, NULL);
	if (listener->none != NULL)
		timer_set(listener->rest, loop_now_us(listener->loop));
}

void
listener_on_shortage(struct listener *listener, listener_none_fn *shortage)
{
	listener->shortage = shortage;
}

void
listener_take_rest(struct listener *listener, listener_none_fn *none)
{
	listener->none = none;
	timer_set(listener->rest, loop_now_us(listener->loop));
}

unsigned
listener_drop_rest(struct listener *listener)
{
	unsigned count = 0;

	/* New ones may come for as long as we look. */
	for (unsigned i = 0; i < DROPPED_MAX; i++) {
		const int connection = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
		char byte;

		if (connection < 0 && is_passing(errno) && errno != EAGAIN)
			continue;
		if (connection < 0)
			break;
		count += recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0 ? 1 : 0;
		(void)close(connection);
	}
	return count;
}
