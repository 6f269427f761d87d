/* What the files of the room share of the loop's inside. */
#ifndef WEIR_LOOP_PRIVATE_H
#define WEIR_LOOP_PRIVATE_H

#include "weir/loop.h"

#include <event2/event.h>

#include <stddef.h>

/* One read takes this much at the most, so that no peer keeps the others waiting. */
enum { LOOP_SCRATCH_SIZE = 65536 };

struct event_base *loop_base(struct loop *loop);

/* LOOP_SCRATCH_SIZE bytes to read into; free again when the handler returns. */
char *loop_scratch(struct loop *loop);

struct timeval loop_timeval(int64_t us);

#endif
