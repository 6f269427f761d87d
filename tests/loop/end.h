/*
 * One end of a connection under test: a stream that records what it tells, and threads that read at
 * the other end. What is sent is a pattern, so that a byte too many, too few or out of order shows.
 */
#ifndef WEIR_TESTS_LOOP_END_H
#define WEIR_TESTS_LOOP_END_H

#include "../lib/directory.h"
#include "../lib/run_loop.h"
#include "../lib/sockets.h"
#include "weir/stream.h"

#include <pthread.h>

/* Made by end_set_up. */
extern struct loop *loop;
extern struct directory directory;

int end_set_up(void **state);
int end_tear_down(void **state);

enum call {
	CALL_INPUT = 1,
	CALL_EOF = 2,
	CALL_DRAINED = 4,
	CALL_FINISHED = 8,
	CALL_CONNECTED = 16,
	CALL_FAILED = 32,
	CALL_EXPIRED = 64,
};

/* One end under test: what its stream told, and what it does then. */
struct end {
	struct stream *stream;
	unsigned calls; /* that came, as bits */
	unsigned count; /* of them all */
	unsigned close_in; /* the calls in which the stream is closed */
	uint64_t got; /* bytes of the pattern, in order */
	bool is_out_of_order, called_after_close, called_within;
	bool within; /* a call of ours that must not call back */
	int error;
	unsigned eofs, drains, finishes;
	void (*on_drained)(struct end *end);
};

/* Records each call, and ends the loop's run. The context is a struct end. */
extern const struct stream_handler end_handler;

void end_open(struct end *end, int fd);

/* And it was never called when it must not be. */
void end_close(struct end *end);

/* Bytes of the pattern from the at-th on. */
void end_fill(char *out, size_t len, uint64_t at);

/* Writes `len` bytes of the pattern from `at` on: as one piece, or as a pair of a head and a body.
 */
void end_write(struct end *end, size_t len, uint64_t at, size_t head_len);

/* Of which the kernel does not take a megabyte at once. */
struct pair end_narrow_pair(enum pair_kind kind);

/* A thread that reads to the end, in pieces of random size. */
struct reader {
	pthread_t thread;
	int fd;
	uint64_t got;
	bool is_out_of_order;
	_Atomic bool is_slow, may_read;
};

/* Reads at once, or when may_read is set. */
void reader_start(struct reader *reader, int fd, bool at_once);

/* To the end. Returns how much has come; fails the test if something was out of order. */
uint64_t reader_wait(struct reader *reader);

#endif
