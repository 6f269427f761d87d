/* Listening sockets. What concerns the file of a unix socket is in socket_file.c. */
#include "weir/socket.h"

#include "loop_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

static int
put_name(struct sockaddr_storage *out, socklen_t *len, const void *name, size_t size)
{
	memset(out, 0, sizeof *out);
	memcpy(out, name, size);
	*len = (socklen_t)size;
	return 0;
}

static int
numeric_sockaddr(const struct address *address, struct sockaddr_storage *out, socklen_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(address->port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };

	if (inet_pton(AF_INET, address->host, &in.sin_addr) == 1)
		return put_name(out, len, &in, sizeof in);
	if (inet_pton(AF_INET6, address->host, &in6.sin6_addr) == 1)
		return put_name(out, len, &in6, sizeof in6);
	return -1;
}

int
socket_address(const struct address *address, struct sockaddr_storage *out, socklen_t *len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (address->kind != ADDRESS_UNIX)
		return numeric_sockaddr(address, out, len);
	const size_t n = strlen(address->host);

	if (n >= sizeof un.sun_path)
		return -1;
	memcpy(un.sun_path, address->host, n + 1);
	return put_name(out, len, &un, offsetof(struct sockaddr_un, sun_path) + n + 1);
}

static int
lookup(const struct address *address, struct sockaddr_storage *name, socklen_t *len,
	struct err *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *list;
	char port[8];

	if (socket_address(address, name, len) == 0)
		return 0;
	(void)snprintf(port, sizeof port, "%u", address->port);
	const int result = getaddrinfo(address->host, port, &hints, &list);

	if (result != 0)
		return err_set(err, "%s", gai_strerror(result));
	memcpy(name, list->ai_addr, list->ai_addrlen);
	*len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static int
listen_inet(int fd, const struct sockaddr_storage *name, socklen_t len, struct err *err)
{
	const int one = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (name->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, (const struct sockaddr *)name, len) != 0 || listen(fd, SOCKET_BACKLOG) != 0)
		return err_set(err, "%s", strerror(errno));
	return 0;
}

int
socket_listen(const struct address *address, const struct socket_owner *owner,
	struct socket_file *file, struct err *err)
{
	struct sockaddr_storage name = { .ss_family = AF_UNIX };
	socklen_t len = 0;
	char text[ADDRESS_TEXT_SIZE];
	int result;

	if (file != NULL)
		*file = (struct socket_file){ 0 };
	if (address->kind != ADDRESS_UNIX && lookup(address, &name, &len, err) != 0)
		return err_prefix(err, "%s", address_text(address, text));
	const int fd = socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	if (address->kind == ADDRESS_UNIX)
		result = socket_file_listen(fd, address, owner, file, err);
	else
		result = listen_inet(fd, &name, len, err);
	if (result != 0) {
		(void)close(fd);
		return err_prefix(err, "%s", address_text(address, text));
	}
	return fd;
}

void
socket_refuse(int fd)
{
	int family = AF_UNSPEC;
	socklen_t len = sizeof family;

	/* Shutting a unix socket leaves its queue as it is; shutting a TCP one resets all that
	 * waits. A backlog of none lets one more connection in. */
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &len) == 0 && family != AF_UNIX)
		(void)listen(fd, 0);
	else
		(void)shutdown(fd, SHUT_RDWR);
}

void
socket_shut(int fd)
{
	(void)shutdown(fd, SHUT_RDWR);
}

bool
socket_is_listening(int fd)
{
	int listening = 0, type = 0;
	socklen_t len = sizeof listening;

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 || listening == 0)
		return false;
	len = sizeof type;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM;
}

int
socket_adopt(int fd, struct err *err)
{
	const int status = fcntl(fd, F_GETFL), flags = fcntl(fd, F_GETFD);

	if (status < 0 || flags < 0 || fcntl(fd, F_SETFL, status | O_NONBLOCK) != 0 ||
		fcntl(fd, F_SETFD, flags | FD_CLOEXEC) != 0)
		return err_set(err, "the inherited socket %d: %s", fd, strerror(errno));
	return 0;
}
