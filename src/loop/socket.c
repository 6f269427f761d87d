/*
 * Listening sockets. Permissions are set between bind and listen, when nobody can connect yet, so
 * neither the umask nor a moment of wider rights matters.
 */
#include "weir/socket.h"

#include "weir/units.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN_BACKLOG = 4096, DEFAULT_MODE = 0660 };

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

/* 0: the path is free; -1: it is not, and err says by whom it is held. */
static int
clear_path(const char *path, const struct sockaddr *address, socklen_t len, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? 0 : err_set(err, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err,
			"%s is there already and is no socket; remove it or choose another path",
			path);
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(err, "socket: %s", strerror(errno));
	const int error = connect(fd, address, len) == 0 ? 0 : errno;

	(void)close(fd);
	/* Only ECONNREFUSED says that nobody listens; EACCES, say, does not. */
	if (error == 0 || error == EAGAIN)
		return err_set(err, "another process listens on %s already", path);
	if (error != ECONNREFUSED)
		return err_set(err, "whether another process listens on %s cannot be told: %s",
			path, strerror(error));
	if (unlink(path) != 0 && errno != ENOENT)
		return err_set(
			err, "the old socket %s cannot be removed: %s", path, strerror(errno));
	return 0;
}

static int
find_user(const char *name, uid_t *uid, struct err *err)
{
	uint64_t number;
	const struct passwd *entry = getpwnam(name);

	if (entry != NULL)
		*uid = entry->pw_uid;
	else if (parse_uint(slice_of(name), UINT32_MAX - 1, &number) == 0)
		*uid = (uid_t)number;
	else
		return err_set(err, "there is no user \"%s\" on this system", name);
	return 0;
}

static int
find_group(const char *name, gid_t *gid, struct err *err)
{
	uint64_t number;
	const struct group *entry = getgrnam(name);

	if (entry != NULL)
		*gid = entry->gr_gid;
	else if (parse_uint(slice_of(name), UINT32_MAX - 1, &number) == 0)
		*gid = (gid_t)number;
	else
		return err_set(err, "there is no group \"%s\" on this system", name);
	return 0;
}

static int
set_rights(const char *path, const struct socket_owner *owner, struct err *err)
{
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	if (owner->owner != NULL && find_user(owner->owner, &uid, err) != 0)
		return -1;
	if (owner->group != NULL && find_group(owner->group, &gid, err) != 0)
		return -1;
	if ((uid != (uid_t)-1 || gid != (gid_t)-1) && chown(path, uid, gid) != 0)
		return err_set(err,
			"%s cannot be given to %s:%s: %s; the user that runs weir must be a member "
			"of the group",
			path, owner->owner == NULL ? "" : owner->owner,
			owner->group == NULL ? "" : owner->group, strerror(errno));
	if (chmod(path, (mode_t)(owner->mode == 0 ? DEFAULT_MODE : owner->mode)) != 0)
		return err_set(err, "%s: chmod: %s", path, strerror(errno));
	return 0;
}

static int
bind_unix(int fd, const struct address *address, const struct socket_owner *owner,
	struct socket_file *file, struct err *err)
{
	struct sockaddr_storage name;
	socklen_t len;
	struct stat st;

	if (socket_address(address, &name, &len) != 0)
		return err_set(err, "the path %s is too long", address->host);
	if (clear_path(address->host, (struct sockaddr *)&name, len, err) != 0)
		return -1;
	if (bind(fd, (struct sockaddr *)&name, len) != 0)
		return err_set(err, "%s: %s", address->host, strerror(errno));
	if (set_rights(address->host, owner, err) != 0) {
		(void)unlink(address->host);
		return -1;
	}
	if (file != NULL && lstat(address->host, &st) == 0)
		*file = (struct socket_file){ st.st_dev, st.st_ino };
	return 0;
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
		return err_set(err, "%s: %s", address->host, gai_strerror(result));
	memcpy(name, list->ai_addr, list->ai_addrlen);
	*len = list->ai_addrlen;
	freeaddrinfo(list);
	return 0;
}

static int
bind_inet(int fd, const struct sockaddr_storage *name, socklen_t len, struct err *err)
{
	const int one = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (name->ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	if (bind(fd, (const struct sockaddr *)name, len) != 0)
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
		result = bind_unix(fd, address, owner, file, err);
	else
		result = bind_inet(fd, &name, len, err);
	if (result == 0 && listen(fd, LISTEN_BACKLOG) != 0)
		result = err_set(err, "listen: %s", strerror(errno));
	if (result != 0) {
		(void)close(fd);
		return err_prefix(err, "%s", address_text(address, text));
	}
	return fd;
}

void
socket_unlink(const struct address *address, const struct socket_file *file)
{
	struct stat st;

	if (address->kind != ADDRESS_UNIX || file->inode == 0)
		return;
	if (lstat(address->host, &st) == 0 && st.st_dev == file->device && st.st_ino == file->inode)
		(void)unlink(address->host);
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
