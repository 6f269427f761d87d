/*
 * The servers of backends, connected to one after the other. Nothing is sent: what an application
 * makes of a connection that ends at once is no fault of it. All of them together are waited for
 * some seconds; an application that starts later than this check is usual, so that nothing here is
 * an error.
 */
#include "check.h"
#include "surroundings.h"

#include "weir/clock.h"
#include "weir/socket.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EACH_US_MAX = 2 * US_PER_S, ALL_US = 10 * US_PER_S };

static int
wait_connected(int fd, int64_t until_us)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	const int64_t left_us = until_us - clock_monotonic_us();
	int error = 0;
	socklen_t len = sizeof error;

	if (poll(&poll_fd, 1, left_us > 0 ? (int)(left_us / US_PER_MS) + 1 : 0) <= 0)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

/* 0, or why not. */
static int
connect_to(const struct sockaddr *name, socklen_t len, int64_t until_us)
{
	const int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;

	if (fd < 0)
		return errno;
	if (connect(fd, name, len) != 0)
		error = errno == EINPROGRESS ? wait_connected(fd, until_us) : errno;
	(void)close(fd);
	return error;
}

/* A name may have several addresses, of which one is enough. */
static int
connect_to_name(const struct address *address, int64_t until_us, struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list;
	char port[8];
	int error = 0;

	(void)snprintf(port, sizeof port, "%u", address->port);
	const int result = getaddrinfo(address->host, port, &hints, &list);

	if (result != 0)
		return err_set(err, "%s: %s", address->host, gai_strerror(result));
	for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
		error = connect_to(at->ai_addr, at->ai_addrlen, until_us);
		if (error == 0)
			break;
	}
	freeaddrinfo(list);
	return error == 0 ? 0 : err_set(err, "%s", strerror(error));
}

static int
reach(const struct address *address, int64_t until_us, struct err *err)
{
	struct sockaddr_storage name;
	socklen_t len;

	if (socket_address(address, &name, &len) != 0)
		return connect_to_name(address, until_us, err);
	const int error = connect_to((const struct sockaddr *)&name, len, until_us);

	/* A full backlog is that of a server that is there; what is not there, or not ours, was
	 * told by who looked at the files. */
	if (error == 0 || (address->kind == ADDRESS_UNIX && error != ECONNREFUSED))
		return 0;
	return err_set(err, "%s", strerror(error));
}

static void
check_server(const struct surroundings *look, const struct config_backend *backend, unsigned nth,
	int64_t end_us)
{
	const struct named_key key = { "backend", backend->name, "server", nth };
	const int64_t now = clock_monotonic_us();
	const int64_t until = now +
		(backend->connect_timeout_us < EACH_US_MAX ? backend->connect_timeout_us
							   : EACH_US_MAX);
	struct err err;

	if (now >= end_us)
		surroundings_say(look, SEVERITY_WARNING, &key,
			"it was not connected to, since others took too long");
	else if (reach(&backend->servers[nth], until < end_us ? until : end_us, &err) != 0)
		surroundings_say(look, SEVERITY_WARNING, &key, "it cannot be connected to now: %s",
			err.text);
}

void
check_backends(const struct config *config, struct diagnostics *diagnostics)
{
	const struct surroundings look = { config, diagnostics };
	const int64_t end_us = clock_monotonic_us() + ALL_US;

	for (unsigned i = 0; i < config->backend_count; i++) {
		for (unsigned j = 0; j < config->backends[i]->server_count; j++)
			check_server(&look, config->backends[i], j, end_us);
	}
}
