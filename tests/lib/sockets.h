/* Pairs of connected sockets and other ends of connections, for tests of what is between them. */
#ifndef WEIR_TESTS_LIB_SOCKETS_H
#define WEIR_TESTS_LIB_SOCKETS_H

#include "../unit.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum pair_kind { PAIR_UNIX, PAIR_TCP, PAIR_KINDS };

/* ours: non-blocking; theirs: blocking, with a time limit for each call. */
struct pair {
	int ours, theirs;
};

struct pair pair_open(enum pair_kind kind);

/* Blocking calls on it fail with EAGAIN after SOON_S, so that no test hangs. */
void socket_limit_time(int fd);

/* What the kernel keeps of what is sent or not yet read; at least what the system allows. */
void socket_limit_buffers(int fd, int bytes);

/* The next close resets the connection (TCP). */
void socket_reset_on_close(int fd);

/* A listening TCP socket on a free port of 127.0.0.1. */
int tcp_listen(int backlog, uint16_t *port);
int tcp_connect(uint16_t port);

int unix_listen(const char *path, int backlog);
int unix_connect(const char *path);

struct sockaddr_un unix_name(const char *path);

/* All of it; false if the other side takes no more. */
bool socket_send(int fd, struct slice bytes);

/* Reads on to the end and drops it: true at an end, false if it was reset or too slow. */
bool socket_read_to_end(int fd);

#endif
