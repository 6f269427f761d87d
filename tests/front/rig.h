/*
 * A front on a loop of its own thread, behind a unix socket, with a small handler. What the handler
 * does with a request is said by the parameter MODE:
 *
 *	dump    answers at once with the environment and the raw parameters (the default)
 *	body    reads the body and answers with its length and sum
 *	hold    the same, but takes one piece for each rig_want_body
 *	wait    does nothing: rig_answer ends it
 *	early   wants the body and answers at its first piece
 *	both    answers SIZE bytes at once and reads the body, at whose end the answer ends
 *	big     answers SIZE bytes, waiting for `drained`
 *	flood   answers SIZE bytes at once, however much of it must wait
 *	stderr  sends SIZE bytes of error text, then answers
 *	end     ends with app status 7 and no output
 *	cut     sends half an answer and cuts it
 */
#ifndef WEIR_TESTS_FRONT_RIG_H
#define WEIR_TESTS_FRONT_RIG_H

#include "../lib/directory.h"
#include "../lib/fcgi_client.h"
#include "../lib/loop_thread.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"
#include "weir/front.h"

struct rig_seen {
	unsigned requests, pieces, body_ends, drains;
	unsigned gone_peer, gone_timeout, gone_cut;
	uint64_t body_bytes;
	unsigned open; /* requests not ended */
	unsigned empty; /* calls of front_stop's */
};

struct rig {
	struct directory directory;
	struct loop_thread thread;
	struct front *front;
	int listening;
	struct rig_request *open; /* newest first */
	pthread_mutex_t lock;
	struct rig_seen seen;
	unsigned cut; /* what front_cut_all returned */
	enum front_rest rest; /* for rig_stop */
};

/* As `serve` has them, with deadlines that no test reaches by accident. */
struct front_settings rig_settings(void);

void rig_open(struct rig *rig, const struct front_settings *settings);

/* Cuts what is left.. */
void rig_close(struct rig *rig);

int rig_connect(const struct rig *rig);

/* What the handler has seen, as of now. */
struct rig_seen rig_look(struct rig *rig);

/* For the newest open request. */
void rig_want_body(struct rig *rig);
void rig_answer(struct rig *rig);

void rig_configure(struct rig *rig, const struct front_settings *settings);
/* What rig_stop has front_stop call. */
void rig_on_empty(void *context);

void rig_stop(struct rig *rig);
void rig_cut_all(struct rig *rig);

/* How many connections there are in this process. */
int64_t rig_connections(void);

/* A fault's counter. */
int64_t rig_faults(const char *reason);

/* Sends a sound request of MODE dump on a new connection; fails the test if it is not answered. */
void assert_rig_serves(struct rig *rig);

#endif
