/* Whether weir would start where it is. Private to the room. */
#ifndef WEIR_COMMAND_SURROUNDINGS_H
#define WEIR_COMMAND_SURROUNDINGS_H

#include "weir/config.h"

/*
 * Holds a sound configuration against this system and this user: directories, files, sockets, users
 * and groups. What would keep `serve` from starting is an error; what cannot be known now, or can
 * change before it starts, is a warning. Nothing is made, replaced or removed.
 */
void surroundings_check(const struct config *config, struct diagnostics *diagnostics);

/* ---- what its files share ---- */

struct surroundings {
	const struct config *config;
	struct diagnostics *diagnostics;
};

/* A key of the configuration: its nth value, if it may be repeated. */
struct named_key {
	const char *kind, *name, *key;
	unsigned nth;
};

/* The key of a place to listen at (config_listen_at). */
struct named_key surroundings_listen_key(const struct config *config,
	const struct config_listen *listen, const struct config_backend *backend);

/* Says it where the key stands. */
void surroundings_say(const struct surroundings *look, enum severity severity,
	const struct named_key *key, const char *format, ...) WEIR_PRINTF(4, 5);

/* Whether we may make a file or socket of this path, or replace it: its directory is there and may
 * be written to. */
int surroundings_can_make(const char *path, struct err *err) WEIR_MUST_CHECK;

/* surroundings_sockets.c: where weir listens, and where it connects. */
void surroundings_check_sockets(const struct surroundings *look);

/* surroundings_programs.c: the programs of backends of type cgi. */
void surroundings_check_programs(const struct surroundings *look);

/* surroundings_rights.c: to whom a socket is given. */
void surroundings_check_rights(const struct surroundings *look, const struct named_key *key,
	const struct config_listen *listen);

/* surroundings_same.c: paths that are one, by a symbolic link or by mistake. */
void surroundings_check_same(const struct surroundings *look);

#endif
