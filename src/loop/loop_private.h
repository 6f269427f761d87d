/* What the files of the room share of the loop's inside. */
#ifndef WEIR_LOOP_PRIVATE_H
#define WEIR_LOOP_PRIVATE_H

#include "weir/loop.h"
#include "weir/socket.h"

#include <event2/event.h>

#include <stddef.h>

/* One read takes this much at the most, so that no peer keeps the others waiting. */
enum { LOOP_SCRATCH_SIZE = 65536 };

struct event_base *loop_base(struct loop *loop);

/* LOOP_SCRATCH_SIZE bytes to read into; free again when the handler returns. */
char *loop_scratch(struct loop *loop);

struct timeval loop_timeval(int64_t us);

/* ---- hangups.c ---- */

struct hangups;

/* The peer of a watched descriptor has closed a side or both, or was reset. It may be called
 * without need. */
typedef void hangup_fn(void *context);

struct hangups *hangups_new(struct event_base *base, hangup_fn *fn) WEIR_MUST_CHECK;
void hangups_free(struct hangups *hangups);

/* False if the system does not let it be watched. */
bool hangups_watch(struct hangups *hangups, int fd, void *context);

/* Before the descriptor is closed. */
void hangups_forget(struct hangups *hangups, int fd);

/* The loop's, for its streams. */
struct hangups *loop_hangups(struct loop *loop);

/* ---- child.c ---- */

struct child;

struct child **loop_children(struct loop *loop);

/* Tells them that the loop goes. */
void children_leave(struct child **children);

/* ---- resolver.c ---- */

struct resolver;

/* resolver_new with another file in the place of /etc/resolv.conf, for tests. */
struct resolver *
resolver_new_with(struct loop *loop, const char *resolv_conf, struct err *err) WEIR_MUST_CHECK;

/* ---- socket_file.c ---- */

enum { SOCKET_BACKLOG = 4096 };

/* Binds a unix socket and listens. It leaves no file when it fails. */
int socket_file_listen(int fd, const struct address *address, const struct socket_owner *owner,
	struct socket_file *file, struct err *err) WEIR_MUST_CHECK;

/* ---- stream.c ---- */

hangup_fn stream_hung_up;

#endif
