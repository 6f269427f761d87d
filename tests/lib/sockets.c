/* Sockets for tests. What cannot be made here is no test's fault, so it ends the program. */
#include "sockets.h"

#include "soon.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <unistd.h>

static void
require(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	abort();
}

void
socket_limit_time(int fd)
{
	const struct timeval limit = { .tv_sec = SOON_S };

	require(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0, "SO_RCVTIMEO");
	require(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0, "SO_SNDTIMEO");
}

void
socket_limit_buffers(int fd, int bytes)
{
	require(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes) == 0, "SO_RCVBUF");
	require(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0, "SO_SNDBUF");
}

void
socket_reset_on_close(int fd)
{
	const struct linger linger = { .l_onoff = 1 };

	require(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0, "SO_LINGER");
}

static struct sockaddr_in
loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

int
tcp_listen(int backlog, uint16_t *port)
{
	struct sockaddr_in name = loopback(0);
	socklen_t len = sizeof name;
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(fd >= 0, "socket");
	require(bind(fd, (struct sockaddr *)&name, sizeof name) == 0, "bind");
	require(listen(fd, backlog) == 0, "listen");
	require(getsockname(fd, (struct sockaddr *)&name, &len) == 0, "getsockname");
	*port = ntohs(name.sin_port);
	return fd;
}

int
tcp_connect(uint16_t port)
{
	const struct sockaddr_in name = loopback(port);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int one = 1;

	require(fd >= 0, "socket");
	require(connect(fd, (const struct sockaddr *)&name, sizeof name) == 0, "connect");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	socket_limit_time(fd);
	return fd;
}

struct sockaddr_un
unix_name(const char *path)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	require(strlen(path) < sizeof name.sun_path, "a long path");
	memcpy(name.sun_path, path, strlen(path) + 1);
	return name;
}

int
unix_listen(const char *path, int backlog)
{
	const struct sockaddr_un name = unix_name(path);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(fd >= 0, "socket");
	require(bind(fd, (const struct sockaddr *)&name, sizeof name) == 0, "bind");
	require(listen(fd, backlog) == 0, "listen");
	return fd;
}

int
unix_connect(const char *path)
{
	const struct sockaddr_un name = unix_name(path);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(fd >= 0, "socket");
	socket_limit_time(fd);
	require(connect(fd, (const struct sockaddr *)&name, sizeof name) == 0, path);
	return fd;
}

static struct pair
tcp_pair(void)
{
	uint16_t port;
	struct pair pair;
	const int listener = tcp_listen(1, &port);

	pair.theirs = tcp_connect(port);
	pair.ours = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	require(pair.ours >= 0, "accept4");
	(void)close(listener);
	return pair;
}

struct pair
pair_open(enum pair_kind kind)
{
	struct pair pair = { -1, -1 };
	int fds[2];

	switch (kind) {
	case PAIR_UNIX:
		require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0, "socketpair");
		pair = (struct pair){ fds[0], fds[1] };
		break;
	case PAIR_TCP:
		pair = tcp_pair();
		break;
	case PAIR_KINDS:
		abort();
	}
	socket_limit_time(pair.theirs);
	require(fcntl(pair.ours, F_SETFL, O_NONBLOCK) == 0, "fcntl");
	return pair;
}

bool
socket_send(int fd, struct slice bytes)
{
	while (bytes.len > 0) {
		const ssize_t n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		bytes = slice_skip(bytes, (size_t)n);
	}
	return true;
}

bool
socket_read_to_end(int fd)
{
	static _Thread_local char scratch[65536];
	ssize_t n;

	do {
		n = recv(fd, scratch, sizeof scratch, 0);
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n == 0;
}
