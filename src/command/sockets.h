/* The sockets that we serve on: inherited ones or our own. Private to the room. */
#ifndef WEIR_COMMAND_SOCKETS_H
#define WEIR_COMMAND_SOCKETS_H

#include "weir/config.h"
#include "weir/front.h"
#include "weir/socket.h"

enum { SOCKETS_MAX = CONFIG_LISTENS_MAX };

struct sockets {
	int fds[SOCKETS_MAX];
	const char *backends[SOCKETS_MAX]; /* whose each is, as the configuration names it, or NULL
					    */
	unsigned count;
	bool is_spawned; /* descriptor 0 is the socket: mod_fcgid, lighttpd bin-path, spawn-fcgi */
	bool by_mod_fcgid; /* that one is mod_fcgid's */
	bool is_inherited; /* 0, or systemd's LISTEN_FDS */
	char given_by[96]; /* who gave them, in words, if inherited */
	struct socket_file files[SOCKETS_MAX]; /* of our own unix sockets */
};

/* Whether who started us gave us sockets. */
bool sockets_are_inherited(void);

/*
 * Takes what was inherited (a listening descriptor 0; LISTEN_FDS of systemd) or else opens what the
 * configuration names. Without either: count is 0 and the result 0. -1: err says what failed.
 */
int
sockets_open(struct sockets *sockets, const struct config *config, struct err *err) WEIR_MUST_CHECK;

enum { SOCKETS_TEXT_SIZE = 512 };

/* Where they listen, as the kernel says: "unix:/run/weir/weir.sock, tcp:127.0.0.1:9000". What does
 * not fit is left out. Returns `out`. */
const char *sockets_text(const struct sockets *sockets, char out[SOCKETS_TEXT_SIZE]);

/* Those that we made refuse connections from now on, so that a web server turns to another host at
 * once; what waits can still be accepted. Inherited ones serve others too. */
void sockets_refuse(const struct sockets *sockets);

/* What becomes of what waits at them when we stop. */
enum front_rest sockets_rest(const struct sockets *sockets);

/* Closes them, and removes the files of those that we made. */
void sockets_close(struct sockets *sockets, const struct config *config);

#endif
