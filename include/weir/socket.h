/*
 * Sockets as the system has them: addresses that need no look-up, and listening sockets with the
 * right owner and mode.
 */
#ifndef WEIR_SOCKET_H
#define WEIR_SOCKET_H

#include "weir/address.h"
#include "weir/err.h"

#include <sys/socket.h>
#include <sys/types.h>

/* 0 if the address needs no look-up: a unix path or a numeric host. -1 otherwise; *out and *len are
 * then as before. */
int socket_address(const struct address *address, struct sockaddr_storage *out,
	socklen_t *len) WEIR_MUST_CHECK;

struct socket_owner {
	int mode; /* of a unix socket, whatever the umask; 0: 0660 */
	const char *owner; /* a user's name or number; NULL: as the process */
	const char *group; /* NULL: as the process */
};

/*
 * A non-blocking listening socket, or -1. A name is looked up here, so this may block: for the
 * start only. A unix socket's file that nobody listens on any more is replaced; one that somebody
 * listens on, or a file that is no socket, is an error. *file gets what socket_unlink needs; it may
 * be NULL.
 */
struct socket_file {
	dev_t device;
	ino_t inode;
};

int socket_listen(const struct address *address, const struct socket_owner *owner,
	struct socket_file *file, struct err *err) WEIR_MUST_CHECK;

/* Removes a unix socket's file if it is still the one that socket_listen made. Before the socket is
 * closed: until then nobody else's file can be taken for it. */
void socket_unlink(const struct address *address, const struct socket_file *file);

/* Refuses new connections from now on; what waits can still be accepted. TCP can only be asked to
 * let hardly anybody in: socket_shut when nothing waits any more. */
void socket_refuse(int fd);

/* Nobody gets in any more, and what waits on a TCP socket is reset. */
void socket_shut(int fd);

/* Whether the descriptor is a listening stream socket (of any family). */
bool socket_is_listening(int fd);

/* Makes an inherited listening socket ours: non-blocking, close-on-exec. */
int socket_adopt(int fd, struct err *err) WEIR_MUST_CHECK;

#endif
