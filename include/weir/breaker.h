/*
 * The breaker: whether Redis is asked at all. Its state is shared by all weir processes of a host
 * (memory_area), so that an outage costs the host a few deadlines and not a few for each process.
 *
 *     CLOSED --failure--> OPEN --a probe succeeded--> CLOSED
 *                          '--a probe failed--> OPEN, for twice as long, up to a maximum
 *
 * While it is open one process at a time may probe, with a check of its own on a key of its own and
 * never with a client's request. Times are monotonic, which is one clock for all processes of a
 * host. A time that none of them can have stored since the host was started counts as past.
 *
 * Beside it each process has a breaker of its own, for failures that are nobody else's (a password
 * that the server does not take): open is what either of the two is.
 */
#ifndef WEIR_BREAKER_H
#define WEIR_BREAKER_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

struct breaker;

enum { BREAKER_BACKOFF_MIN_US = 100000, BREAKER_BACKOFF_MAX_US = 1000000, BREAKER_MISSES = 3 };

/*
 * Where the breakers are, each area `size` bytes, aligned for 64-bit numbers and zero at first. It
 * has room for as many breakers as go into it, with a number aside. A place belongs to nobody in
 * particular while its breaker is closed, so it is the room for those that are open at a time.
 */
enum { BREAKER_SIZE = 48 };

struct breaker_areas {
	void *host; /* shared by all processes; NULL: each is the process's own */
	void *process; /* shared by its threads; NULL: each is the caller's own */
	size_t size;
};

/*
 * The breaker of this target, which tells the server and how it is used; the same target gives the
 * same breaker everywhere. When an area is full of open ones the next smaller one serves. NULL: no
 * memory. Of one thread; others attach to the same target.
 */
struct breaker *
breaker_attach(const struct breaker_areas *areas, struct slice target) WEIR_MUST_CHECK;
void breaker_free(struct breaker *breaker);

bool breaker_is_open(struct breaker *breaker);

/* Opens it, if it is closed, for a first back-off from now. True if this call opened it. */
bool breaker_open(struct breaker *breaker, int64_t now_us);

/* The same for this process alone. */
bool breaker_open_own(struct breaker *breaker, int64_t now_us);

/* A check was not answered by its deadline. True if that opened it: BREAKER_MISSES in a row do. */
bool breaker_miss(struct breaker *breaker, int64_t now_us);

/* A check was answered. */
void breaker_hit(struct breaker *breaker);

/* When it is open and the back-off is over, takes the right to probe, for one back-off; false for
 * everyone else. */
bool breaker_take_probe(struct breaker *breaker, int64_t now_us);

/* For how long it has been open. */
int64_t breaker_open_for(struct breaker *breaker, int64_t now_us);

/*
 * Whether the outage is to be told of in the log: when it began, when it turns out to be one that
 * waiting does not cure, and every BREAKER_REMIND_US while it lasts. True for one caller of the
 * host.
 */
bool breaker_tell(struct breaker *breaker, int64_t now_us, bool is_lasting);

#define BREAKER_REMIND_US INT64_C(600000000)

/* When the next probe may be made, now_us if it is due; 0 if the breaker is closed. */
int64_t breaker_probe_at(struct breaker *breaker, int64_t now_us);

/* A probe went well. True if this call closed it. */
bool breaker_close(struct breaker *breaker);

/* After it was opened: whether no other process sees that, since the host's area is full, and
 * nobody was told so yet. True for one caller of the host. */
bool breaker_tell_full(struct breaker *breaker);

#endif
