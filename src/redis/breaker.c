/*
 * The breaker's shared words. Each transition is one compare-and-swap, so exactly one process finds
 * that it made it, and says so in its log. A process that dies while it probes loses the right when
 * the back-off is over. One may also die between any two stores, and the words may lie on a disk
 * from before the host was started: so what is read is held within bounds.
 *
 * A target has a place in each area. One that is closed and has no misses says nothing that is not
 * said by having none, and one that nobody has probed or missed for ABANDONED_US is nobody's any
 * more; so when all are taken such a place is another's from then on. Who had it finds that out
 * with the next look, and takes another. Two who take one for the same target at the same time may
 * take two; of these the first in the target's order stays. In the moment between two steps of
 * that, what is meant for the one may be stored with the other, or in a place that is given up: one
 * breaker opens for a back-off without a reason, or one outage is noticed a deadline later.
 */
#include "weir/breaker.h"

#include "weir/clock.h"
#include "weir/hash.h"
#include "weir/units.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct breaker_words {
	_Atomic uint64_t target; /* a hash, which is odd; 0: free; NOBODY */
	_Atomic int64_t probe_at_us; /* 0: closed; else open, and the time of the next probe */
	_Atomic int64_t backoff_us;
	_Atomic uint32_t misses;
	_Atomic int64_t since_us; /* when it was opened; of a closed one: the last miss */
	_Atomic int64_t
		told; /* twice the time when the log was told last, and 1 if the outage is one
			 that waiting does not cure; 0: it was not told of this outage */
};

struct breaker {
	uint64_t target;
	struct breaker_areas areas;
	struct breaker_words *host, *process; /* see host_words() and process_words() */
	struct breaker_words own;
};

_Static_assert(sizeof(struct breaker_words) == BREAKER_SIZE, "as breaker.h says");

/* ---- places ---- */

/* Behind the last place: whether it was told that there is none. */
static _Atomic uint64_t *
is_told_of(const struct breaker_areas *areas)
{
	return (_Atomic uint64_t *)areas->host + areas->size / sizeof(uint64_t) - 1;
}

static size_t
count_of(size_t size)
{
	return (size - sizeof(uint64_t)) / sizeof(struct breaker_words);
}

/* Whoever uses it probes it every other second, or gets answers. */
#define ABANDONED_US (60 * US_PER_S)

static bool
is_long_ago(int64_t at_us, int64_t now_us)
{
	return at_us < now_us - ABANDONED_US || at_us > now_us + ABANDONED_US;
}

static bool
says_something(struct breaker_words *words, int64_t now_us)
{
	const int64_t probe_at_us = atomic_load(&words->probe_at_us);

	if (probe_at_us != 0)
		return !is_long_ago(probe_at_us, now_us);
	return atomic_load(&words->misses) != 0 &&
		!is_long_ago(atomic_load(&words->since_us), now_us);
}

/* True: it is this target's now, and says nothing but what was said for the target meanwhile. */
static bool
take_place(struct breaker_words *words, uint64_t before, uint64_t target)
{
	int64_t abandoned_us = atomic_load(&words->probe_at_us);

	if (!atomic_compare_exchange_strong(&words->target, &before, target))
		return before == target;
	atomic_store(&words->misses, 0);
	atomic_store(&words->told, 0);
	/* Whoever finds the place from now on may open it. */
	if (abandoned_us != 0)
		(void)atomic_compare_exchange_strong(&words->probe_at_us, &abandoned_us, 0);
	return true;
}

/* Given up; it still says what it said, so it is not as one that is free. */
#define NOBODY 2

/* One place of the target has just been taken. Whoever has another one finds out with the next
 * look that it is none any more. */
static struct breaker_words *
keep_first(struct breaker_words *list, size_t count, uint64_t target)
{
	struct breaker_words *first = NULL;

	for (size_t i = 0; i < count; i++) {
		struct breaker_words *words = &list[(target + i) % count];
		uint64_t given_up = target;

		if (atomic_load(&words->target) != target)
			continue;
		if (first == NULL)
			first = words;
		else
			(void)atomic_compare_exchange_strong(&words->target, &given_up, NOBODY);
	}
	return first;
}

/* All places are taken. NULL: they say something, or another has just taken over this one, too. */
static struct breaker_words *
take_over(struct breaker_words *list, size_t count, uint64_t target)
{
	const int64_t now_us = clock_monotonic_us();

	for (size_t i = 0; i < count; i++) {
		struct breaker_words *words = &list[(target + i) % count];
		const uint64_t before = atomic_load(&words->target);

		if (before == target)
			return words;
		if (!says_something(words, now_us) && take_place(words, before, target))
			return keep_first(list, count, target);
	}
	return NULL;
}

/* Found or taken; NULL if there is no area, or all are others'. */
static struct breaker_words *
find_words(void *area, size_t size, uint64_t target)
{
	struct breaker_words *list = area;
	const size_t count = area == NULL ? 0 : count_of(size);

	for (size_t i = 0; i < count; i++) {
		struct breaker_words *words = &list[(target + i) % count];
		uint64_t before = 0;

		if (atomic_compare_exchange_strong(&words->target, &before, target) ||
			before == target)
			return words;
	}
	return take_over(list, count, target);
}

static bool
is_ours(const struct breaker *breaker, struct breaker_words *words)
{
	return atomic_load_explicit(&words->target, memory_order_relaxed) == breaker->target;
}

static void
find_process_words(struct breaker *breaker)
{
	const struct breaker_areas *areas = &breaker->areas;
	struct breaker_words *found = find_words(areas->process, areas->size, breaker->target);

	breaker->process = found == NULL ? &breaker->own : found;
}

static struct breaker_words *
process_words(struct breaker *breaker)
{
	if (!is_ours(breaker, breaker->process))
		find_process_words(breaker);
	return breaker->process;
}

/* Those of the process, if there is no place. */
static void
find_host_words(struct breaker *breaker)
{
	const struct breaker_areas *areas = &breaker->areas;
	struct breaker_words *found = find_words(areas->host, areas->size, breaker->target);

	breaker->host = found == NULL ? process_words(breaker) : found;
}

static struct breaker_words *
host_words(struct breaker *breaker)
{
	if (!is_ours(breaker, breaker->host))
		find_host_words(breaker);
	return breaker->host;
}

/* ---- life ---- */

struct breaker *
breaker_attach(const struct breaker_areas *areas, struct slice target)
{
	struct breaker *breaker = calloc(1, sizeof *breaker);
	const struct hash_wide hash = hash_wide(NULL, target);

	if (breaker == NULL)
		return NULL;
	memcpy(&breaker->target, hash.bytes, sizeof breaker->target);
	breaker->target |= 1;
	breaker->areas = *areas;
	atomic_init(&breaker->own.target, breaker->target);
	find_process_words(breaker);
	find_host_words(breaker);
	return breaker;
}

void
breaker_free(struct breaker *breaker)
{
	free(breaker);
}

/* Each host and process at a moment of its own, so that they do not all knock at once: 80 to 120 %.
 */
static int64_t
with_jitter(int64_t us)
{
	uint32_t random;

	hash_random(&random, sizeof random);
	return us * 4 / 5 + (int64_t)(random % (uint32_t)(us * 2 / 5 + 1));
}

/* ---- the state ---- */

static bool
is_open(struct breaker_words *words)
{
	return atomic_load(&words->probe_at_us) != 0;
}

/* The one that an outage is told of and ended by. */
static struct breaker_words *
words_of(struct breaker *breaker)
{
	struct breaker_words *process = process_words(breaker);

	return is_open(process) ? process : host_words(breaker);
}

bool
breaker_is_open(struct breaker *breaker)
{
	return is_open(words_of(breaker));
}

static bool
open_words(struct breaker_words *words, int64_t now_us)
{
	int64_t closed = 0;

	if (!atomic_compare_exchange_strong(
		    &words->probe_at_us, &closed, now_us + with_jitter(BREAKER_BACKOFF_MIN_US)))
		return false;
	atomic_store(&words->backoff_us, BREAKER_BACKOFF_MIN_US);
	atomic_store(&words->misses, 0);
	atomic_store(&words->since_us, now_us);
	atomic_store(&words->told, 0);
	return true;
}

bool
breaker_open(struct breaker *breaker, int64_t now_us)
{
	/* There may be a place by now, if there was none. */
	if (breaker->host == breaker->process && !is_open(process_words(breaker)))
		find_host_words(breaker);
	return open_words(host_words(breaker), now_us);
}

bool
breaker_open_own(struct breaker *breaker, int64_t now_us)
{
	return open_words(process_words(breaker), now_us);
}

bool
breaker_miss(struct breaker *breaker, int64_t now_us)
{
	struct breaker_words *host = host_words(breaker);

	if (!is_open(host))
		atomic_store(&host->since_us, now_us);
	return atomic_fetch_add(&host->misses, 1) + 1 >= BREAKER_MISSES &&
		breaker_open(breaker, now_us);
}

void
breaker_hit(struct breaker *breaker)
{
	struct breaker_words *host = host_words(breaker);

	/* The line stays shared by all caches as long as all goes well. */
	if (atomic_load_explicit(&host->misses, memory_order_relaxed) != 0)
		atomic_store(&host->misses, 0);
}

/* Nobody stores a time further ahead than the longest back-off with its jitter. */
static bool
is_due(int64_t probe_at_us, int64_t now_us)
{
	return probe_at_us <= now_us || probe_at_us - now_us > 2 * BREAKER_BACKOFF_MAX_US;
}

static int64_t
next_backoff(int64_t backoff_us)
{
	if (backoff_us < BREAKER_BACKOFF_MIN_US)
		return BREAKER_BACKOFF_MIN_US;
	return backoff_us > BREAKER_BACKOFF_MAX_US / 2 ? BREAKER_BACKOFF_MAX_US : 2 * backoff_us;
}

bool
breaker_take_probe(struct breaker *breaker, int64_t now_us)
{
	struct breaker_words *words = words_of(breaker);
	int64_t at = atomic_load(&words->probe_at_us);

	if (at == 0 || !is_due(at, now_us))
		return false;
	const int64_t backoff = next_backoff(atomic_load(&words->backoff_us));

	if (!atomic_compare_exchange_strong(
		    &words->probe_at_us, &at, now_us + with_jitter(backoff)))
		return false;
	atomic_store(&words->backoff_us, backoff);
	return true;
}

int64_t
breaker_open_for(struct breaker *breaker, int64_t now_us)
{
	struct breaker_words *words = words_of(breaker);
	const int64_t since_us = atomic_load(&words->since_us);

	return is_open(words) && since_us <= now_us ? now_us - since_us : 0;
}

bool
breaker_tell(struct breaker *breaker, int64_t now_us, bool is_lasting)
{
	struct breaker_words *words = words_of(breaker);
	int64_t told = atomic_load(&words->told);
	const bool is_worse = is_lasting && told % 2 == 0;

	/* A time ahead of ours is of before the host was started anew. */
	if (told != 0 && !is_worse && told / 2 <= now_us && now_us - told / 2 < BREAKER_REMIND_US)
		return false;
	return atomic_compare_exchange_strong(
		&words->told, &told, 2 * now_us + (is_lasting || told % 2 != 0 ? 1 : 0));
}

int64_t
breaker_probe_at(struct breaker *breaker, int64_t now_us)
{
	const int64_t at = atomic_load(&words_of(breaker)->probe_at_us);

	return at != 0 && is_due(at, now_us) ? now_us : at;
}

bool
breaker_close(struct breaker *breaker)
{
	const bool was_own = atomic_exchange(&process_words(breaker)->probe_at_us, 0) != 0;
	struct breaker_words *host = host_words(breaker);

	atomic_store(&host->misses, 0);
	return atomic_exchange(&host->probe_at_us, 0) != 0 || was_own;
}

bool
breaker_tell_full(struct breaker *breaker)
{
	if (breaker->areas.host == NULL || breaker->host != breaker->process)
		return false;
	return atomic_exchange(is_told_of(&breaker->areas), 1) == 0;
}
