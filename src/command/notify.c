/* The protocol is one datagram to the socket that NOTIFY_SOCKET names; a leading @ stands for the
 * abstract name space. */
#include "notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void
notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
		strlen(path) >= sizeof name.sun_path)
		return;
	const size_t len = strlen(path);

	memcpy(name.sun_path, path, len);
	if (name.sun_path[0] == '@')
		name.sun_path[0] = '\0';
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	const ssize_t sent =
		sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&name,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));

	(void)sent; /* nobody can be told that systemd cannot be told */
	(void)close(fd);
}
