/*
 * An exchange under test, on a loop in the test's own thread: what it told, and what the test gives
 * it. The application is a fake one (lib/fake_app.h) in other threads.
 */
#ifndef WEIR_TESTS_BACKEND_TALK_H
#define WEIR_TESTS_BACKEND_TALK_H

#include "../lib/directory.h"
#include "../lib/fake_app.h"
#include "../lib/run_loop.h"
#include "../lib/sockets.h"
#include "weir/backend.h"

/* Made by talk_set_up. */
extern struct loop *loop;
extern struct resolver *resolver;
extern struct directory directory;

/* Of the pools that are made from now on; FastCGI at first. */
extern enum backend_type talk_type;

int talk_set_up(void **state);
int talk_tear_down(void **state);

struct talk {
	struct exchange *exchange; /* NULL when it has ended */
	bool ended, is_late; /* is_late: a call came after the end */
	enum exchange_result result;
	uint32_t app_status;
	char why[512];

	unsigned heads, status, drains;
	int64_t content_length;
	char fields[1024]; /* "Name: value\n" for each */
	struct buf body; /* the first megabyte */
	uint64_t body_len, body_sum, error_len;
	char error_start[64];
	bool refuses_head;
	bool wants_no_body; /* says so when the head has come */
	bool is_head; /* and that it is by the client */
	uint64_t hold_after; /* bytes of the body; the exchange is held then */

	uint64_t to_send; /* bytes of zeros that talk_feed gives as the request's body */
	bool fed; /* all of it, and its end */
};

/* The configuration must be there as long as exchanges are started. */
struct backend_pool *talk_pool_of(const struct config_backend *config);

/* A pool of servers with a second to connect and ten of silence; `servers` ends with NULL. */
struct backend_pool *talk_pool(const char *const *servers);

/* The same with other settings; 0 leaves one as it is. */
struct backend_pool *talk_pool_with(const char *const *servers, uint64_t max_in_flight,
	int64_t connect_timeout_us, int64_t idle_timeout_us);

/* The only server "s" in the directory. */
struct backend_pool *talk_pool_of_one(void);

/* False if it was refused at once; result and why are filled then. `pairs` may be NULL. */
bool talk_start(struct talk *talk, struct backend_pool *pool, const char *const *pairs);
bool talk_start_raw(struct talk *talk, struct backend_pool *pool, struct slice params);

/* Gives of the body what is left and what the exchange takes; again in `drained`. */
void talk_feed(struct talk *talk);

/* Runs the loop to the exchange's end. */
void talk_finish(struct talk *talk);

void talk_cancel(struct talk *talk);
void talk_release(struct talk *talk);

/* A request without a body, to its end. */
void talk_once(struct talk *talk, struct backend_pool *pool);

/* How many exchanges of these pools are under way. */
int64_t talk_in_flight(void);

#endif
