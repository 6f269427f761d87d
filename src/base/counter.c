/*
 * The table of counters, its cells and the threads' shards.
 *
 * A cell is a run of words: one for counters and gauges, HISTOGRAM_BUCKETS + 2 for histograms.
 * Words live in chunks, so that making cells on a reload never moves one that a thread is counting
 * in. Who makes a cell also gives every shard the chunk it stands in, under the lock, before anyone
 * can know the cell's number.
 */
#include "weir/counter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	WORDS_PER_CHUNK = 1024,
	CHUNKS_MAX = 32,
	HISTOGRAM_WORDS = HISTOGRAM_BUCKETS + 2, /* the buckets, the one beyond, the sum */
};

const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS] = { 50, 100, 200, 500, 1000, 2000, 5000, 10000,
	20000, 50000, 100000, 200000, 500000, 1000000 };

struct family {
	const char *name, *labels, *help;
	enum counter_kind kind;
};

static const struct family families[COUNTER_FAMILIES] = {
#define COUNTER(id, name_, kind_, labels_, help_) [id] = { name_, labels_, help_, kind_ },
#include "weir/counter_table.def"
#undef COUNTER
};

struct cell {
	enum counter_family family;
	unsigned word; /* the first of its words */
	char labels[];
};

struct shard {
	struct shard *next;
	_Atomic(_Atomic int64_t *) chunks[CHUNKS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cell *cells[WORDS_PER_CHUNK *
	CHUNKS_MAX]; /* [COUNTER_FAMILIES] and on are made by counter_find */
static counter_cell cell_count;
static unsigned words_used;
static struct shard *shards;
static _Thread_local struct shard *my_shard;

static int
shard_extend(struct shard *shard, unsigned words)
{
	for (unsigned i = 0; i * WORDS_PER_CHUNK < words; i++) {
		if (atomic_load(&shard->chunks[i]) != NULL)
			continue;
		_Atomic int64_t *chunk = calloc(WORDS_PER_CHUNK, sizeof *chunk);

		if (chunk == NULL)
			return -1;
		atomic_store(&shard->chunks[i], chunk);
	}
	return 0;
}

static void
shard_free(struct shard *shard)
{
	for (unsigned i = 0; shard != NULL && i < CHUNKS_MAX; i++)
		free((void *)(uintptr_t)atomic_load(&shard->chunks[i]));
	free(shard);
}

/* With the lock held. -1 when words or memory are used up; nothing has changed then. */
static int
cell_make(enum counter_family family, const char *labels)
{
	const unsigned words = families[family].kind == KIND_HISTOGRAM ? HISTOGRAM_WORDS : 1;

	if (words > WORDS_PER_CHUNK * CHUNKS_MAX - words_used)
		return -1;
	for (struct shard *shard = shards; shard != NULL; shard = shard->next) {
		if (shard_extend(shard, words_used + words) != 0)
			return -1;
	}
	const size_t labels_size = strlen(labels) + 1;
	struct cell *cell = malloc(sizeof *cell + labels_size);

	if (cell == NULL)
		return -1;
	cell->family = family;
	cell->word = words_used;
	memcpy(cell->labels, labels, labels_size);
	cells[cell_count++] = cell;
	words_used += words;
	return 0;
}

/* The families' own cells come first, so that a family is its own cell's number. */
static int
make_family_cells(void)
{
	while (cell_count < COUNTER_FAMILIES) {
		if (cell_make((enum counter_family)cell_count, "") != 0)
			return -1;
	}
	return 0;
}

int
counter_thread_start(struct err *err)
{
	struct shard *shard = calloc(1, sizeof *shard);
	int result = -1;

	(void)pthread_mutex_lock(&lock);
	if (shard != NULL && make_family_cells() == 0 && shard_extend(shard, words_used) == 0) {
		shard->next = shards;
		shards = shard;
		my_shard = shard;
		result = 0;
	}
	(void)pthread_mutex_unlock(&lock);
	if (result == 0)
		return 0;
	shard_free(shard);
	return err_set(err, "no memory for the counters");
}

/* Allocated, and never cut: two names that differ are two cells. NULL if memory is out. */
static char *
labels_text(const char *names, const struct slice *values)
{
	struct slice rest = slice_of(names), name;
	size_t size = strlen(names) + 1;

	for (unsigned i = 0; slice_split(&rest, ',', &name); i++)
		size += sizeof ",=\"\"" - 1 + 2 * values[i].len;
	char *text = malloc(size), *at = text;

	if (text == NULL)
		return NULL;
	rest = slice_of(names);
	for (unsigned i = 0; slice_split(&rest, ',', &name); i++) {
		at += snprintf(at, (size_t)(text + size - at), "%s%.*s=\"", i == 0 ? "" : ",",
			(int)name.len, name.ptr);
		for (size_t n = 0; n < values[i].len; n++) {
			const char c = values[i].ptr[n];

			if (c == '"' || c == '\\')
				*at++ = '\\';
			*at++ = c == '\n' || c == '\0' ? ' ' : c;
		}
		*at++ = '"';
	}
	*at = '\0';
	return text;
}

/* With the lock held. The family if the cell is neither there nor can be made. */
static counter_cell
find_or_make(enum counter_family family, const char *labels)
{
	if (make_family_cells() != 0)
		return (counter_cell)family;
	for (counter_cell i = COUNTER_FAMILIES; i < cell_count; i++) {
		if (cells[i]->family == family && strcmp(cells[i]->labels, labels) == 0)
			return i;
	}
	return cell_make(family, labels) == 0 ? cell_count - 1 : (counter_cell)family;
}

counter_cell
counter_find(enum counter_family family, const struct slice *values)
{
	char *labels = labels_text(families[family].labels, values);
	counter_cell found = (counter_cell)family;

	if (labels == NULL)
		return found;
	(void)pthread_mutex_lock(&lock);
	found = find_or_make(family, labels);
	(void)pthread_mutex_unlock(&lock);
	free(labels);
	return found;
}

static _Atomic int64_t *
word_of(struct shard *shard, unsigned word)
{
	_Atomic int64_t *chunk =
		atomic_load_explicit(&shard->chunks[word / WORDS_PER_CHUNK], memory_order_acquire);

	return chunk == NULL ? NULL : &chunk[word % WORDS_PER_CHUNK];
}

/* Only this thread writes the word, so a load and a store are enough. */
static void
word_add(unsigned word, int64_t n)
{
	_Atomic int64_t *at = word_of(my_shard, word);

	atomic_store_explicit(
		at, atomic_load_explicit(at, memory_order_relaxed) + n, memory_order_relaxed);
}

void
counter_add(counter_cell cell, int64_t n)
{
	word_add(cells[cell]->word, n);
}

void
histogram_add(counter_cell cell, int64_t us)
{
	unsigned bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS && us > histogram_bounds_us[bucket])
		bucket++;
	word_add(cells[cell]->word + bucket, 1);
	word_add(cells[cell]->word + HISTOGRAM_BUCKETS + 1, us);
}

static int64_t
word_sum(unsigned word)
{
	int64_t sum = 0;

	for (struct shard *shard = shards; shard != NULL; shard = shard->next) {
		_Atomic int64_t *at = word_of(shard, word);

		sum += at == NULL ? 0 : atomic_load_explicit(at, memory_order_relaxed);
	}
	return sum;
}

int64_t
counter_sum(counter_cell cell)
{
	(void)pthread_mutex_lock(&lock);
	const int64_t sum = word_sum(cells[cell]->word);

	(void)pthread_mutex_unlock(&lock);
	return sum;
}

static struct counter_sample
sample_of(const struct cell *cell)
{
	const struct family *family = &families[cell->family];
	struct counter_sample sample = { .family = cell->family,
		.name = family->name,
		.help = family->help,
		.kind = family->kind,
		.labels = cell->labels };

	if (family->kind == KIND_HISTOGRAM) {
		for (unsigned i = 0; i <= HISTOGRAM_BUCKETS; i++) {
			sample.buckets[i] = word_sum(cell->word + i);
			sample.value += sample.buckets[i];
		}
		sample.sum_us = word_sum(cell->word + HISTOGRAM_BUCKETS + 1);
	} else {
		sample.value = word_sum(cell->word);
	}
	return sample;
}

/* A labelled family's own cell is its overflow: it is shown only if it was needed. */
static bool
is_shown(counter_cell i, const struct counter_sample *sample)
{
	return i >= COUNTER_FAMILIES || families[i].labels[0] == '\0' || sample->value != 0;
}

void
counter_each(void (*each)(void *context, const struct counter_sample *sample), void *context)
{
	(void)pthread_mutex_lock(&lock);
	for (unsigned family = 0; family < COUNTER_FAMILIES; family++) {
		for (counter_cell i = 0; i < cell_count; i++) {
			if ((unsigned)cells[i]->family != family)
				continue;
			const struct counter_sample sample = sample_of(cells[i]);

			if (is_shown(i, &sample))
				each(context, &sample);
		}
	}
	(void)pthread_mutex_unlock(&lock);
}
