/* A name server on the loopback, in a thread of its own: every name has the same addresses. */
#ifndef WEIR_TESTS_LIB_NAME_SERVER_H
#define WEIR_TESTS_LIB_NAME_SERVER_H

#include "directory.h"

#include <pthread.h>

struct name_server {
	int fd;
	pthread_t thread;
	_Atomic unsigned questions; /* two for a look-up: IPv4 and IPv6 */
	const char *hosts; /* 127.0.0.N for each byte N; "": no name has an address */
};

/* Writes the file that resolver_new_with takes: "resolv.conf" in the directory. */
void
name_server_start(struct name_server *server, const char *hosts, const struct directory *directory);
void name_server_stop(struct name_server *server);

#endif
