/*
 * The breaker's shared words. Each transition is one compare-and-swap, so exactly one process finds
 * that it made it, and says so in its log. A process that dies while it probes loses the right when
 * the back-off is over.
 */
#include "weir/breaker.h"

#include "weir/hash.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct breaker_words {
	_Atomic uint64_t target; /* a hash; 0: free */
	_Atomic int64_t probe_at_us; /* 0: closed; else open, and the time of the next probe */
	_Atomic int64_t backoff_us;
	_Atomic uint32_t misses;
	_Atomic int64_t opened_us;
	_Atomic int64_t
		told; /* twice the time when the log was told last, and 1 if the outage is one
			 that waiting does not cure; 0: it was not told of this outage */
};

struct breaker {
	struct breaker_words *words;
	struct breaker_words own;
};

/* Found or taken; NULL if all are others'. */
static struct breaker_words *
find_words(struct breaker_words *list, size_t count, uint64_t target)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t expected = 0;

		if (atomic_compare_exchange_strong(&list[i].target, &expected, target) ||
			expected == target)
			return &list[i];
	}
	return NULL;
}

struct breaker *
breaker_attach(void *area, size_t size, struct slice target)
{
	struct breaker *breaker = calloc(1, sizeof *breaker);
	const struct hash_wide hash = hash_wide(NULL, target);
	uint64_t word;

	if (breaker == NULL)
		return NULL;
	memcpy(&word, hash.bytes, sizeof word);
	if (area != NULL)
		breaker->words = find_words(area, size / sizeof(struct breaker_words), word | 1);
	if (breaker->words == NULL)
		breaker->words = &breaker->own;
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

bool
breaker_is_open(struct breaker *breaker)
{
	return atomic_load(&breaker->words->probe_at_us) != 0;
}

bool
breaker_open(struct breaker *breaker, int64_t now_us)
{
	int64_t closed = 0;

	if (!atomic_compare_exchange_strong(&breaker->words->probe_at_us, &closed,
		    now_us + with_jitter(BREAKER_BACKOFF_MIN_US)))
		return false;
	atomic_store(&breaker->words->backoff_us, BREAKER_BACKOFF_MIN_US);
	atomic_store(&breaker->words->misses, 0);
	atomic_store(&breaker->words->opened_us, now_us);
	atomic_store(&breaker->words->told, 0);
	return true;
}

bool
breaker_miss(struct breaker *breaker, int64_t now_us)
{
	return atomic_fetch_add(&breaker->words->misses, 1) + 1 >= BREAKER_MISSES &&
		breaker_open(breaker, now_us);
}

void
breaker_hit(struct breaker *breaker)
{
	/* The line stays shared by all caches as long as all goes well. */
	if (atomic_load_explicit(&breaker->words->misses, memory_order_relaxed) != 0)
		atomic_store(&breaker->words->misses, 0);
}

bool
breaker_take_probe(struct breaker *breaker, int64_t now_us)
{
	int64_t at = atomic_load(&breaker->words->probe_at_us);

	if (at == 0 || at > now_us)
		return false;
	int64_t backoff = atomic_load(&breaker->words->backoff_us) * 2;

	if (backoff > BREAKER_BACKOFF_MAX_US)
		backoff = BREAKER_BACKOFF_MAX_US;
	if (!atomic_compare_exchange_strong(
		    &breaker->words->probe_at_us, &at, now_us + with_jitter(backoff)))
		return false;
	atomic_store(&breaker->words->backoff_us, backoff);
	return true;
}

int64_t
breaker_open_for(struct breaker *breaker, int64_t now_us)
{
	const int64_t opened_us = atomic_load(&breaker->words->opened_us);

	return breaker_is_open(breaker) && opened_us <= now_us ? now_us - opened_us : 0;
}

bool
breaker_tell(struct breaker *breaker, int64_t now_us, bool is_lasting)
{
	int64_t told = atomic_load(&breaker->words->told);
	const bool is_worse = is_lasting && told % 2 == 0;

	/* A time ahead of ours is of before the host was started anew. */
	if (told != 0 && !is_worse && told / 2 <= now_us && now_us - told / 2 < BREAKER_REMIND_US)
		return false;
	return atomic_compare_exchange_strong(
		&breaker->words->told, &told, 2 * now_us + (is_lasting || told % 2 != 0 ? 1 : 0));
}

int64_t
breaker_probe_at(struct breaker *breaker)
{
	return atomic_load(&breaker->words->probe_at_us);
}

bool
breaker_close(struct breaker *breaker)
{
	atomic_store(&breaker->words->misses, 0);
	return atomic_exchange(&breaker->words->probe_at_us, 0) != 0;
}
