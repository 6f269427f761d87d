/*
 * Sockets: those that weir would open, and those of others that it would connect to. A socket that
 * somebody listens on may be that of the weir that runs already, which is no fault: a check is made
 * before each reload. Nobody is connected to but by who listens where weir would.
 */
#include "surroundings.h"

#include "weir/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- who listens already ---- */

enum { COMMAND_SIZE = 32 };

/* The name of a process's program; "" if it cannot be seen. */
static const char *
command_of(pid_t pid, char out[COMMAND_SIZE])
{
	char path[64];

	out[0] = '\0';
	(void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");

	if (file == NULL)
		return out;
	if (fgets(out, COMMAND_SIZE, file) == NULL)
		out[0] = '\0';
	out[strcspn(out, "\n")] = '\0';
	(void)fclose(file);
	return out;
}

/* Weir itself, or who gives it its sockets. */
static bool
is_expected(pid_t pid, const char *command)
{
	return pid == 1 || strcmp(command, "weir") == 0 || strcmp(command, "systemd") == 0;
}

static void
say_listener(const struct surroundings *look, const struct named_key *key, int fd)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof peer;
	char command[COMMAND_SIZE];

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		peer.pid = 0;
	(void)command_of(peer.pid, command);
	if (is_expected(peer.pid, command))
		return;
	if (command[0] != '\0')
		surroundings_say(look, SEVERITY_ERROR, key,
			"%s (process %d) listens there already; choose another address", command,
			(int)peer.pid);
	else
		surroundings_say(look, SEVERITY_WARNING, key,
			"somebody listens there already; unless it is weir, weir cannot start");
}

static void
check_old_socket(
	const struct surroundings *look, const struct named_key *key, const struct address *address)
{
	struct sockaddr_storage name;
	socklen_t len;
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || socket_address(address, &name, &len) != 0)
		return;
	const int error = connect(fd, (struct sockaddr *)&name, len) == 0 ? 0 : errno;

	if (error == 0 || error == EAGAIN)
		say_listener(look, key, fd);
	else if (error != ECONNREFUSED)
		surroundings_say(look, SEVERITY_ERROR, key,
			"whether another process listens there cannot be told: %s",
			strerror(error));
	(void)close(fd);
}

/* ---- what weir opens ---- */

static void
check_path(
	const struct surroundings *look, const struct named_key *key, const struct address *address)
{
	const char *path = address->host;
	struct stat st;
	struct err err;
	const bool is_there = lstat(path, &st) == 0;

	if (is_there && !S_ISSOCK(st.st_mode))
		surroundings_say(look, SEVERITY_ERROR, key,
			"something is there already that is no socket; remove it or choose "
			"another path");
	else if (surroundings_can_make(path, &err) != 0)
		surroundings_say(look, SEVERITY_ERROR, key, "%s", err.text);
	else if (is_there)
		check_old_socket(look, key, address);
}

static int
resolve(const struct address *address, struct sockaddr_storage *name, socklen_t *len,
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

/* Bound and given back: nobody can connect meanwhile, since it does not listen. */
static void
check_port(
	const struct surroundings *look, const struct named_key *key, const struct address *address)
{
	const int one = 1;
	struct sockaddr_storage name;
	socklen_t len;
	struct err err;

	if (resolve(address, &name, &len, &err) != 0) {
		surroundings_say(look, SEVERITY_ERROR, key, "%s", err.text);
		return;
	}
	const int fd = socket(name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		surroundings_say(look, SEVERITY_ERROR, key, "%s", strerror(errno));
		return;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (name.ss_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	const int error = bind(fd, (struct sockaddr *)&name, len) == 0 ? 0 : errno;

	if (error == EADDRINUSE)
		surroundings_say(look, SEVERITY_WARNING, key,
			"somebody listens there already; unless it is weir, weir cannot start");
	else if (error != 0)
		surroundings_say(look, SEVERITY_ERROR, key, "%s", strerror(error));
	(void)close(fd);
}

struct named_key
surroundings_listen_key(const struct config *config, const struct config_listen *listen,
	const struct config_backend *backend)
{
	if (backend == NULL)
		return (struct named_key){ "weir", "", "listen",
			(unsigned)(listen - config->listens) };
	return (struct named_key){ "backend", backend->name, "listen",
		(unsigned)(listen - backend->listens) };
}

static void
check_listens(const struct surroundings *look)
{
	const struct config *config = look->config;
	const struct config_backend *backend;
	const struct config_listen *listen;

	if (config_listen_at(config, 0, &backend) == NULL)
		surroundings_say(look, SEVERITY_WARNING,
			&(const struct named_key){ "weir", "", "listen", 0 },
			"is missing, so weir starts only where it is given a socket (weir.socket, "
			"lighttpd's bin-path, mod_fcgid); else write listen = unix:" WEIR_RUNDIR
			"/weir.sock");
	for (unsigned i = 0; (listen = config_listen_at(config, i, &backend)) != NULL; i++) {
		const struct named_key key = surroundings_listen_key(config, listen, backend);

		if (listen->address.kind == ADDRESS_UNIX)
			check_path(look, &key, &listen->address);
		else
			check_port(look, &key, &listen->address);
		surroundings_check_rights(look, &key, listen);
	}
}

/* Weir serves without its metrics, and tries again. */
static void
check_metrics(const struct surroundings *look)
{
	const struct config *config = look->config;
	const struct named_key key = { "weir", "", "metrics", 0 };
	struct diagnostics own;

	if (!config->has_metrics)
		return;
	diagnostics_init(&own);
	const struct surroundings inner = { config, &own };

	if (config->metrics.kind == ADDRESS_UNIX)
		check_path(&inner, &key, &config->metrics);
	else
		check_port(&inner, &key, &config->metrics);
	for (size_t i = 0; i < own.count; i++) {
		if (own.list[i].severity == SEVERITY_ERROR)
			surroundings_say(look, SEVERITY_WARNING, &key,
				"weir would serve without metrics: %s", own.list[i].text);
	}
	diagnostics_release(&own);
}

/* ---- where weir connects ---- */

static void
check_server(
	const struct surroundings *look, const struct named_key *key, const struct address *address)
{
	const char *path = address->host;
	struct stat st;
	struct err err;

	if (address->kind != ADDRESS_UNIX)
		return;
	if (stat(path, &st) != 0) {
		surroundings_say(
			look, SEVERITY_WARNING, key, "nothing is there now: %s", strerror(errno));
	} else if (!S_ISSOCK(st.st_mode)) {
		surroundings_say(look, SEVERITY_WARNING, key, "what is there now is %s",
			S_ISDIR(st.st_mode) ? "a directory, and no socket" : "no socket");
	} else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) != 0) {
		(void)err_set_open(&err, path, errno);
		surroundings_say(
			look, SEVERITY_WARNING, key, "it cannot be connected to: %s", err.text);
	}
}

void
surroundings_check_sockets(const struct surroundings *look)
{
	const struct config *config = look->config;

	check_listens(look);
	check_metrics(look);
	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct config_backend *backend = config->backends[i];

		for (unsigned j = 0; j < backend->server_count; j++)
			check_server(look,
				&(const struct named_key){ "backend", backend->name, "server", j },
				&backend->servers[j]);
	}
	if (config->has_redis && config->redis_sentinel_count == 0 &&
		config->redis_cluster_count == 0)
		check_server(look, &(const struct named_key){ "redis", "", "server", 0 },
			&config->redis_server);
}
