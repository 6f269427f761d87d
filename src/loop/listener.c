/*
 * Accepting. Several threads may accept from one socket; who comes late finds nothing, which is no
 * error. Running out of descriptors must not turn into a busy loop: the listener rests and tries
 * again.
 */
#include "weir/listener.h"

#include "loop_private.h"
#include "weir/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { REST_US = 100000 };

struct listener {
	struct loop *loop;
	int fd;
	unsigned batch;
	listener_fn *fn;
	void *context;
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
			LOG_TEXT("error", strerror(error)), LOG_INT("kept_back", held));
	(void)event_del(listener->readable);
	timer_set(listener->rest, now + REST_US);
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
	struct listener *listener = context;
	const int one = 1;

	(void)what;
	for (unsigned i = 0; i < listener->batch && !listener->paused; i++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof peer;
		const int connection =
			accept4(fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (connection < 0) {
			if (!is_passing(errno))
				rest(listener, errno);
			return;
		}
		if (peer.ss_family == AF_INET || peer.ss_family == AF_INET6)
			(void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		listener->fn(listener->context, connection);
	}
}

static void
rested(void *context)
{
	struct listener *listener = context;

	if (!listener->paused)
		(void)event_add(listener->readable, NULL);
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
}
