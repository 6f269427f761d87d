/*
 * Where the listening sockets come from. A web server that starts us gives the socket as descriptor
 * 0 (FastCGI 1.0 section 2.2); systemd gives them from 3 on and says so in LISTEN_FDS
 * (sd_listen_fds(3)). What is inherited wins over `listen`: who starts us knows where the requests
 * come from. It is asked only whose an inherited socket is.
 */
#include "sockets.h"

#include "weir/units.h"

#include <arpa/inet.h>
#include <grp.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

enum { FIRST_SYSTEMD_FD = 3 };

static int
take(struct sockets *sockets, int fd, struct err *err)
{
	if (socket_adopt(fd, err) != 0)
		return -1;
	sockets->is_inherited = true;
	sockets->fds[sockets->count++] = fd;
	return 0;
}

/* How many systemd gives to this process; 0 if none, or if they are meant for another. */
static unsigned
systemd_count(void)
{
	const char *pid = getenv("LISTEN_PID"), *fds = getenv("LISTEN_FDS");
	uint64_t number = 0, count = 0;

	if (pid == NULL || fds == NULL)
		return 0;
	if (parse_uint(slice_of(pid), INT32_MAX, &number) != 0 || number != (uint64_t)getpid())
		return 0;
	return parse_uint(slice_of(fds), SOCKETS_MAX, &count) == 0 ? (unsigned)count : 0;
}

bool
sockets_are_inherited(void)
{
	return systemd_count() > 0 || socket_is_listening(STDIN_FILENO);
}

/* systemd gives each its name, which is the unit's unless FileDescriptorName= says otherwise. */
static void
name_systemd(struct sockets *sockets)
{
	const char *names = getenv("LISTEN_FDNAMES");
	const struct slice all = slice_of(names == NULL ? "" : names);
	const struct slice first = slice_first(all, slice_find(all, ':'));

	(void)snprintf(sockets->given_by, sizeof sockets->given_by, "systemd%s%.*s%s",
		first.len > 0 ? " (" : "", (int)first.len, first.ptr, first.len > 0 ? ")" : "");
}

/* mod_fcgid makes a unix socket for each process, and calls it by Apache's process id and a number
 * of its own: /var/lib/apache2/fcgid/sock/1234.5. No parameter of a request tells it from Apache's
 * other modules. */
static bool
is_of_mod_fcgid(int fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNSPEC };
	socklen_t len = sizeof address - 1; /* a NUL remains behind the path */
	uint64_t number;

	if (getsockname(fd, (struct sockaddr *)&address, &len) != 0 ||
		address.sun_family != AF_UNIX)
		return false;
	const char *slash = strrchr(address.sun_path, '/');
	const struct slice name = slice_of(slash == NULL ? address.sun_path : slash + 1);
	const size_t dot = slice_find(name, '.');

	return dot < name.len && parse_uint(slice_first(name, dot), INT32_MAX, &number) == 0 &&
		parse_uint(slice_skip(name, dot + 1), INT32_MAX, &number) == 0;
}

static int
take_inherited(struct sockets *sockets, struct err *err)
{
	const unsigned count = systemd_count();

	for (unsigned i = 0; i < count; i++) {
		const int fd = FIRST_SYSTEMD_FD + (int)i;

		if (!socket_is_listening(fd))
			return err_set(err,
				"LISTEN_FDS names descriptor %d, which is no listening stream "
				"socket",
				fd);
		if (take(sockets, fd, err) != 0)
			return -1;
	}
	if (count > 0)
		name_systemd(sockets);
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDNAMES");
	if (count == 0 && socket_is_listening(STDIN_FILENO)) {
		sockets->is_spawned = true;
		sockets->by_mod_fcgid = is_of_mod_fcgid(STDIN_FILENO);
		(void)snprintf(sockets->given_by, sizeof sockets->given_by,
			"the program that started weir, as descriptor 0");
		return take(sockets, STDIN_FILENO, err);
	}
	return 0;
}

/* The web group that was chosen when weir was built, if this system has it and we may give a socket
 * to it. */
static const char *
default_group(void)
{
	const struct group *group = getgrnam(WEIR_WEB_GROUP);
	gid_t groups[256];

	if (group == NULL)
		return NULL;
	if (geteuid() == 0 || getegid() == group->gr_gid)
		return WEIR_WEB_GROUP;
	const int count = getgroups(256, groups);

	for (int i = 0; i < count; i++) {
		if (groups[i] == group->gr_gid)
			return WEIR_WEB_GROUP;
	}
	return NULL;
}

/* What cannot be named is "?". */
static int
put_name(int fd, char *out, size_t size)
{
	struct sockaddr_storage name = { 0 };
	const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&name;
	socklen_t len = sizeof name;
	char host[NI_MAXHOST], port[NI_MAXSERV];

	if (getsockname(fd, (struct sockaddr *)&name, &len) != 0)
		return snprintf(out, size, "?");
	if (name.ss_family == AF_UNIX)
		return snprintf(out, size, "unix:%.*s", (int)sizeof un->sun_path, un->sun_path);
	if (getnameinfo((const struct sockaddr *)&name, len, host, sizeof host, port, sizeof port,
		    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return snprintf(out, size, "?");
	return snprintf(
		out, size, name.ss_family == AF_INET6 ? "tcp:[%s]:%s" : "tcp:%s:%s", host, port);
}

/* The backend that the configuration lets listen there; NULL: none. */
static const char *
owner_of(const struct config *config, const char *name)
{
	const struct config_backend *backend;
	const struct config_listen *listen;
	char text[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; (listen = config_listen_at(config, i, &backend)) != NULL; i++) {
		if (strcmp(address_text(&listen->address, text), name) == 0)
			return backend == NULL ? NULL : backend->name;
	}
	return NULL;
}

static const struct config_route *
route_without_backend(const struct config *config)
{
	for (unsigned i = 0; i < config->route_count; i++) {
		if (config->routes[i]->backend == NULL)
			return config->routes[i];
	}
	return NULL;
}

/* An inherited socket belongs to the backend whose `listen` names its address. */
static int
give_to_backends(struct sockets *sockets, const struct config *config, struct err *err)
{
	const struct config_route *route = route_without_backend(config);
	char name[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < sockets->count; i++) {
		(void)put_name(sockets->fds[i], name, sizeof name);
		sockets->backends[i] = owner_of(config, name);
		if (route != NULL && sockets->backends[i] == NULL)
			return err_set(err,
				"the socket %s was given by %s and is no backend's `listen`, but "
				"route %s names no backend",
				name, sockets->given_by, route->name);
	}
	return 0;
}

int
sockets_open(struct sockets *sockets, const struct config *config, struct err *err)
{
	const struct config_backend *backend;
	const struct config_listen *listen;

	*sockets = (struct sockets){ 0 };
	if (take_inherited(sockets, err) != 0)
		return -1;
	if (sockets->count > 0)
		return give_to_backends(sockets, config, err);
	for (unsigned i = 0; (listen = config_listen_at(config, i, &backend)) != NULL; i++) {
		const struct socket_owner owner = { .mode = listen->mode,
			.owner = listen->owner,
			.group = listen->group != NULL ? listen->group : default_group() };
		const int fd = socket_listen(&listen->address, &owner, &sockets->files[i], err);

		if (fd < 0) {
			sockets_close(sockets, config);
			return -1;
		}
		sockets->backends[sockets->count] = backend == NULL ? NULL : backend->name;
		sockets->fds[sockets->count++] = fd;
	}
	return 0;
}

const char *
sockets_text(const struct sockets *sockets, char out[SOCKETS_TEXT_SIZE])
{
	size_t len = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < sockets->count; i++) {
		char name[ADDRESS_TEXT_SIZE];
		const int n = put_name(sockets->fds[i], name, sizeof name);

		if (n < 0 || (size_t)n + 3 > SOCKETS_TEXT_SIZE - len)
			break;
		len += (size_t)snprintf(
			out + len, SOCKETS_TEXT_SIZE - len, "%s%s", len > 0 ? ", " : "", name);
	}
	return out;
}

void
sockets_refuse(const struct sockets *sockets)
{
	if (sockets->is_inherited)
		return;
	for (unsigned i = 0; i < sockets->count; i++)
		socket_refuse(sockets->fds[i]);
}

enum front_rest
sockets_rest(const struct sockets *sockets)
{
	if (!sockets->is_inherited)
		return FRONT_REST_LAST;
	/* systemd keeps its sockets for who is started next. Of a web server's process each often
	 * has its own, which then is nobody else's. */
	return sockets->is_spawned ? FRONT_REST_TAKEN : FRONT_REST_LEFT;
}

void
sockets_close(struct sockets *sockets, const struct config *config)
{
	for (unsigned i = 0; i < sockets->count; i++) {
		const struct config_backend *backend;

		if (!sockets->is_inherited)
			socket_unlink(&config_listen_at(config, i, &backend)->address,
				&sockets->files[i]);
		(void)close(sockets->fds[i]);
	}
	sockets->count = 0;
}
