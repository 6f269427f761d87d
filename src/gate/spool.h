/*
 * Bytes on disk that nobody else sees: a file without a name, which goes with its descriptor,
 * whatever becomes of the process. Private to the room.
 */
#ifndef WEIR_GATE_SPOOL_H
#define WEIR_GATE_SPOOL_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

struct spool {
	int fd;
	uint64_t len; /* bytes written */
	uint64_t given; /* bytes read again */
};

/* In this directory. The errors of all three say what the system said. */
int spool_open(struct spool *spool, const char *directory, struct err *err) WEIR_MUST_CHECK;

/* Appends. After -1 the file is good only to be closed. */
int spool_put(struct spool *spool, struct slice bytes, struct err *err) WEIR_MUST_CHECK;

/* The next bytes, in `room`; empty at the end. */
int spool_next(struct spool *spool, char *room, size_t size, struct slice *bytes,
	struct err *err) WEIR_MUST_CHECK;

void spool_close(struct spool *spool);

#endif
