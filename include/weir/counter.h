/*
 * Counters. Each family is one row of counter_table.def with its name for Prometheus, its kind, its
 * labels and its help; the metrics page and the manual are made from the rows. A family without
 * labels is one cell; one with labels has a cell for each combination that the configuration names,
 * found once when the configuration is loaded. No label ever holds an identity, a path or anything
 * else that a client chooses.
 *
 * Each thread counts in a shard of its own without locked instructions; a reader adds the shards
 * up. Cells are never given back, so a reload keeps every count.
 */
#ifndef WEIR_COUNTER_H
#define WEIR_COUNTER_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

enum counter_kind { KIND_COUNTER, KIND_GAUGE, KIND_HISTOGRAM };

enum counter_family {
#define COUNTER(id, name, kind, labels, help) id,
#include "weir/counter_table.def"
#undef COUNTER
	COUNTER_FAMILIES
};

enum { COUNTER_LABELS_MAX = 3, HISTOGRAM_BUCKETS = 14 };

/* Upper bounds of a histogram's buckets in microseconds; a last bucket holds what is beyond. */
extern const int64_t histogram_bounds_us[HISTOGRAM_BUCKETS];

/* A cell's number. A family without labels is its own cell. */
typedef unsigned counter_cell;

/*
 * The cell of this family with these label values (as many as the row has labels), made if it is
 * new. Only for families with labels, and not while requests are served on this thread: it takes a
 * lock. When 32768 numbers are used up (a histogram has 16) or memory is out it returns the
 * family's overflow cell, so it cannot fail.
 */
counter_cell counter_find(enum counter_family family, const struct slice *values);

/* Once a thread, before it counts. */
int counter_thread_start(struct err *err) WEIR_MUST_CHECK;

/* For gauges n may be negative. */
void counter_add(counter_cell cell, int64_t n);
void histogram_add(counter_cell cell, int64_t us);

/* The sum over all threads, as of now. */
int64_t counter_sum(counter_cell cell);

struct counter_sample {
	enum counter_family family;
	const char *name, *help;
	enum counter_kind kind;
	const char *labels; /* `route="login",outcome="admitted"`, escaped; "" if none */
	int64_t value; /* of a histogram: how many */
	int64_t buckets[HISTOGRAM_BUCKETS + 1]; /* a histogram's, not cumulative */
	int64_t sum_us;
};

/* Calls back for each cell, family by family in the table's order. A lock is held meanwhile: the
 * callback calls nothing of this header. */
void counter_each(void (*each)(void *context, const struct counter_sample *sample), void *context);

#endif
