/* Accepts connections from a listening socket on a loop, also while descriptors are short. */
#ifndef WEIR_LISTENER_H
#define WEIR_LISTENER_H

#include "weir/err.h"
#include "weir/loop.h"

struct listener;

/* Takes the descriptor: non-blocking, close-on-exec; TCP with TCP_NODELAY and kept alive. */
typedef void listener_fn(void *context, int fd);

/*
 * Accepts from `fd`, which stays the caller's, `batch` connections a turn at the most. When the
 * system has no descriptors it waits 100 ms before it tries again. NULL when memory is out.
 */
struct listener *listener_new(
	struct loop *loop, int fd, unsigned batch, listener_fn *fn, void *context) WEIR_MUST_CHECK;
void listener_free(struct listener *listener);

/* Connections wait in the kernel's backlog meanwhile. */
void listener_pause(struct listener *listener);
void listener_resume(struct listener *listener);

typedef void listener_none_fn(void *context);

/* Is called, with the context of listener_fn, whenever the system has no descriptor for a
 * connection that waits, before the listener rests. NULL, as at first: nobody is. */
void listener_on_shortage(struct listener *listener, listener_none_fn *shortage);

/* From now on accepts only what waits. `none` is called, once and in a later turn, when nothing
 * waits any more; the listener may be freed in it and is of no more use. */
void listener_take_rest(struct listener *listener, listener_none_fn *none);

/* Closes what waits. Returns how many of these had sent something. */
unsigned listener_drop_rest(struct listener *listener);

#endif
