/*
 * What stands before the gate's own functions. A request that takes a lease is held where it would
 * be passed on, as if the application were long at it; so a scenario says when it ends.
 */
#include "seam.h"

#include "../../src/gate/gate_private.h"
#include "weir/clock.h"
#include "weir/hash.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Of the program: there is one world at a time. */
static _Atomic bool is_open;
static _Atomic int64_t wall_us, monotonic_us;
static _Atomic unsigned next_shard;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct seen seen;

int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void);
int64_t __real_clock_wall_us(void);
int64_t __wrap_clock_wall_us(void);
void __real_hash_random(void *out, size_t size);
void __wrap_hash_random(void *out, size_t size);
void __real_ask_start(struct gate_request *request);
void __wrap_ask_start(struct gate_request *request);
void __real_relay_start(struct gate_request *request);
void __wrap_relay_start(struct gate_request *request);
void __real_request_close(struct gate_request *request);
void __wrap_request_close(struct gate_request *request);

/* ---- clocks ---- */

void
seam_open(void)
{
	wall_us = __real_clock_wall_us();
	monotonic_us = __real_clock_monotonic_us();
	is_open = true;
}

void
seam_close(void)
{
	is_open = false;
}

void
seam_set_now(int64_t now_us)
{
	if (now_us > wall_us)
		monotonic_us += now_us - wall_us;
	wall_us = now_us;
}

int64_t
__wrap_clock_monotonic_us(void)
{
	return is_open ? monotonic_us : __real_clock_monotonic_us();
}

int64_t
__wrap_clock_wall_us(void)
{
	return is_open ? wall_us : __real_clock_wall_us();
}

/* ---- chance ---- */

/* Only the choice of a shard draws as little as this. */
void
__wrap_hash_random(void *out, size_t size)
{
	const uint32_t shard = next_shard;

	if (is_open && size == sizeof shard)
		memcpy(out, &shard, sizeof shard);
	else
		__real_hash_random(out, size);
}

/* ---- a request ---- */

void
seam_begin(unsigned shard)
{
	next_shard = shard;
	(void)pthread_mutex_lock(&lock);
	memset(&seen, 0, sizeof seen);
	(void)pthread_mutex_unlock(&lock);
}

struct seen
seam_look(void)
{
	(void)pthread_mutex_lock(&lock);
	const struct seen copy = seen;

	(void)pthread_mutex_unlock(&lock);
	return copy;
}

static void
see_key(struct slice key)
{
	if (key.len == 0 || key.len >= SEEN_KEY_MAX || seen.key_count == SEEN_KEYS_MAX)
		return;
	memcpy(seen.keys[seen.key_count], key.ptr, key.len);
	seen.keys[seen.key_count++][key.len] = '\0';
}

static bool
is_would(enum gate_outcome outcome)
{
	return outcome == OUTCOME_WOULD_REJECT || outcome == OUTCOME_WOULD_BLOCK ||
		outcome == OUTCOME_WOULD_REFUSE;
}

static void
see(const struct gate_request *request)
{
	seen.would = request->would != OUTCOME_ADMITTED || is_would(request->outcome);
	seen.has_decision = request->has_decision;
	if (request->has_decision)
		seen.decision = request->decision;
	seen.key_count = 0;
	for (unsigned i = 0; i < request->check.count; i++) {
		see_key(request->check.items[i].key);
		see_key(request->check.items[i].overflow);
	}
}

/* Redis's clock is its own, so it is told ours. */
void
__wrap_ask_start(struct gate_request *request)
{
	request->check.now_us = wall_us;
	__real_ask_start(request);
}

void
__wrap_relay_start(struct gate_request *request)
{
	if (request->lease_store == NULL) {
		__real_relay_start(request);
		return;
	}
	(void)pthread_mutex_lock(&lock);
	see(request);
	seen.held = request;
	(void)pthread_mutex_unlock(&lock);
}

void
__wrap_request_close(struct gate_request *request)
{
	(void)pthread_mutex_lock(&lock);
	if (seen.held == NULL && !seen.is_over) {
		see(request);
		seen.is_over = true;
	}
	(void)pthread_mutex_unlock(&lock);
	__real_request_close(request);
}

void
seam_let_go(void *held)
{
	__real_relay_start(held);
}
