/* A run: the connections, and the loop that drives them. */
#ifndef FCGI_LOAD_RUN_H
#define FCGI_LOAD_RUN_H

#include "load.h"

struct connection {
	struct connection *idle_next;
	int fd; /* -1: none */
	bool is_busy;
	struct phase *phase; /* of the request, as the following are */
	int64_t due_us, give_up_us;
	char *out;
	size_t out_len, out_sent;
	struct answer answer;
	uint64_t left; /* requests that this client still has to make, in a closed loop */
};

struct run {
	const struct plan *plan;
	int epoll;
	struct connection **connections; /* as many as were needed at once */
	size_t connection_count, connection_max;
	struct connection *idle;
	size_t busy_count;
	uint64_t started; /* requests */
	bool is_ended; /* no further requests */
	int64_t began_us, swept_us;
	struct phase *first_phase, *phase;
	char mark[sizeof((struct phase *)0)->name];
	size_t mark_len;
	bool has_marks;
};

/* Runs to the end of the plan. */
void run_plan(struct run *run, const struct plan *plan);

/* ---- load_connection.c ---- */

/* NULL: all are busy. */
struct connection *connection_take(struct run *run);

/* Starts request number run->started, connecting first if need be. */
void connection_start(struct run *run, struct connection *connection, int64_t due_us);

/* Something has happened to its descriptor. */
void connection_event(struct run *run, struct connection *connection);

/* Ends requests that are older than the plan's timeout. */
void connections_sweep(struct run *run, int64_t now);

void connections_close(struct run *run);

#endif
