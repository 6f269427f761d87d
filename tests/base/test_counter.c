/* counter.h. The counters are the process's, so each test counts in cells or families of its own.
 */
#include "../unit.h"
#include "weir/counter.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int
start(void **state)
{
	struct err err;

	(void)state;
	return counter_thread_start(&err);
}

struct wanted {
	enum counter_family family;
	const char *labels;
	struct counter_sample sample;
	unsigned found;
};

static void
look(void *context, const struct counter_sample *sample)
{
	struct wanted *wanted = context;

	if (sample->family != wanted->family || strcmp(sample->labels, wanted->labels) != 0)
		return;
	wanted->sample = *sample;
	wanted->found++;
}

static struct wanted
sample_of(enum counter_family family, const char *labels)
{
	struct wanted wanted = { .family = family, .labels = labels };

	counter_each(look, &wanted);
	return wanted;
}

static void
family_without_labels_is_its_own_cell(void **state)
{
	(void)state;
	counter_add(COUNT_HEAD_TIMEOUTS, 2);
	counter_add(COUNT_HEAD_TIMEOUTS, 3);
	assert_int_equal(counter_sum(COUNT_HEAD_TIMEOUTS), 5);
	const struct wanted wanted = sample_of(COUNT_HEAD_TIMEOUTS, "");

	assert_int_equal(wanted.found, 1);
	assert_int_equal(wanted.sample.value, 5);
	assert_string_equal(wanted.sample.name, "weir_head_timeouts_total");
	assert_int_equal(wanted.sample.kind, KIND_COUNTER);
}

static void
gauge_goes_down_too(void **state)
{
	(void)state;
	counter_add(COUNT_CONNECTIONS, 3);
	counter_add(COUNT_CONNECTIONS, -5);
	assert_int_equal(counter_sum(COUNT_CONNECTIONS), -2);
}

static void
same_labels_are_the_same_cell(void **state)
{
	const struct slice one[] = { SLICE("login"), SLICE("admitted") };
	const struct slice other[] = { SLICE("login"), SLICE("rejected") };
	const counter_cell cell = counter_find(COUNT_REQUESTS, one);

	(void)state;
	assert_int_equal(counter_find(COUNT_REQUESTS, one), cell);
	assert_int_not_equal(counter_find(COUNT_REQUESTS, other), cell);
	/* Labels of another family. */
	assert_int_not_equal(counter_find(COUNT_DECISIONS, one), cell);
	counter_add(cell, 7);
	const struct wanted wanted =
		sample_of(COUNT_REQUESTS, "route=\"login\",outcome=\"admitted\"");

	assert_int_equal(wanted.found, 1);
	assert_int_equal(wanted.sample.value, 7);
}

static void
labels_are_escaped_for_prometheus(void **state)
{
	const struct slice values[] = { SLICE("a\"b\\c\nd") };

	(void)state;
	(void)counter_find(COUNT_RELOADS, values);
	assert_int_equal(sample_of(COUNT_RELOADS, "result=\"a\\\"b\\\\c d\"").found, 1);
}

static void
labels_of_any_length_are_found_again(void **state)
{
	char value[600];

	(void)state;
	memset(value, '\\', sizeof value);
	for (size_t len = 100; len < sizeof value; len += 7) {
		const struct slice values[] = { slice_make(value, len), SLICE("r") };
		const counter_cell cell = counter_find(COUNT_BACKEND_FAILURES, values);

		assert_true(cell >= COUNTER_FAMILIES);
		assert_int_equal(counter_find(COUNT_BACKEND_FAILURES, values), cell);
	}
}

static void
check_quotes(void *context, const struct counter_sample *sample)
{
	unsigned quotes = 0;

	(void)context;
	for (const char *at = sample->labels; *at != '\0'; at++) {
		if (*at == '\\' && at[1] != '\0')
			at++;
		else if (*at == '"')
			quotes++;
	}
	assert_row(quotes % 2 == 0, "%s", sample->labels);
}

static void
labels_of_any_length_close_their_quotes(void **state)
{
	char value[300];

	(void)state;
	memset(value, '"', sizeof value);
	for (size_t len = 60; len < sizeof value; len++) {
		const struct slice values[] = { slice_make(value, len), slice_make(value, len) };

		(void)counter_find(COUNT_STORE_FAILURES, values);
	}
	counter_each(check_quotes, NULL);
}

/* Two names that are alike for a long way are two. */
static void
long_labels_that_differ_at_the_end_are_not_added_up(void **state)
{
	char value[300];

	(void)state;
	memset(value, 'n', sizeof value);
	const struct slice one[] = { slice_make(value, 299), SLICE("x") };
	const struct slice other[] = { slice_make(value, 300), SLICE("x") };
	const counter_cell cells[] = { counter_find(COUNT_DECISIONS, one),
		counter_find(COUNT_DECISIONS, other) };

	assert_int_not_equal(cells[0], cells[1]);
}

static void
durations_fall_into_the_bucket_that_bounds_them(void **state)
{
	const struct slice values[] = { SLICE("memory") };
	const counter_cell cell = counter_find(COUNT_STORE_LATENCY, values);
	int64_t sum_us = 0;

	(void)state;
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		histogram_add(cell, histogram_bounds_us[i]);
		histogram_add(cell, histogram_bounds_us[i] + 1);
		sum_us += 2 * histogram_bounds_us[i] + 1;
	}
	histogram_add(cell, 0);
	const struct wanted wanted = sample_of(COUNT_STORE_LATENCY, "store=\"memory\"");

	assert_int_equal(wanted.found, 1);
	assert_int_equal(wanted.sample.value, 2 * HISTOGRAM_BUCKETS + 1);
	assert_int_equal(wanted.sample.sum_us, sum_us);
	assert_int_equal(wanted.sample.buckets[0], 2);
	for (unsigned i = 1; i < HISTOGRAM_BUCKETS; i++)
		assert_int_equal(wanted.sample.buckets[i], 2);
	assert_int_equal(wanted.sample.buckets[HISTOGRAM_BUCKETS], 1);
}

enum { THREADS = 4, ROUNDS = 20000 };

static void *
count_in_thread(void *context)
{
	const counter_cell cell = *(counter_cell *)context;
	struct err err;

	if (counter_thread_start(&err) != 0)
		return NULL;
	for (unsigned i = 0; i < ROUNDS; i++) {
		counter_add(cell, 1);
		counter_add(COUNT_CLIENT_GONE, 2);
	}
	return context;
}

static void
threads_add_up_while_cells_are_made_and_read(void **state)
{
	const struct slice values[] = { SLICE("threads"), SLICE("admitted") };
	counter_cell cell = counter_find(COUNT_REQUESTS, values);
	pthread_t threads[THREADS];
	int64_t last = 0;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, count_in_thread, &cell), 0);
	for (unsigned i = 0; i < 1500; i++) {
		char name[16];
		const struct slice more[] = {
			slice_make(name, (size_t)snprintf(name, sizeof name, "made%u", i)),
			SLICE("admitted")
		};
		const int64_t now = counter_sum(cell);

		assert_true(now >= last && now <= (int64_t)THREADS * ROUNDS);
		last = now;
		counter_add(counter_find(COUNT_REQUESTS, more), 1);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_non_null(result);
	}
	assert_int_equal(counter_sum(cell), THREADS * ROUNDS);
	assert_int_equal(counter_sum(COUNT_CLIENT_GONE), 2 * THREADS * ROUNDS);
	assert_int_equal(
		sample_of(COUNT_REQUESTS, "route=\"made1499\",outcome=\"admitted\"").sample.value,
		1);
}

/* In a process of its own: it uses all cells up. 0 if all is well. */
static int
use_up_all_cells(void)
{
	unsigned i = 0;

	for (;; i++) {
		char name[16];
		const struct slice values[] = { slice_make(
			name, (size_t)snprintf(name, sizeof name, "s%u", i)) };
		const counter_cell cell = counter_find(COUNT_STORE_LATENCY, values);

		histogram_add(cell, 1);
		if (cell == (counter_cell)COUNT_STORE_LATENCY)
			break;
		if (i > 32768)
			return 1;
	}
	if (i < 1500 || sample_of(COUNT_STORE_LATENCY, "").found != 1)
		return 2;
	/* What was made before still counts. */
	counter_add(COUNT_LATE_CHECKS, 1);
	const struct slice first[] = { SLICE("s0") };

	if (counter_find(COUNT_STORE_LATENCY, first) == (counter_cell)COUNT_STORE_LATENCY)
		return 3;
	return counter_sum(COUNT_LATE_CHECKS) == 1 ? 0 : 4;
}

static void
family_cell_takes_over_when_all_cells_are_used_up(void **state)
{
	const pid_t child = fork();
	int status;

	(void)state;
	assert_true(child >= 0);
	if (child == 0)
		_exit(use_up_all_cells());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* Not needed here, so not shown. */
	assert_int_equal(sample_of(COUNT_STORE_LATENCY, "").found, 0);
}

struct order {
	enum counter_family last;
	unsigned families;
};

static void
check_order(void *context, const struct counter_sample *sample)
{
	struct order *order = context;

	assert_true(sample->family >= order->last);
	assert_true(sample->help[0] != '\0');
	assert_true(strncmp(sample->name, "weir_", 5) == 0);
	/* Prometheus wants counters, and only them, to end in _total. */
	const size_t len = strlen(sample->name);

	assert_row(
		(strcmp(sample->name + len - 6, "_total") == 0) == (sample->kind == KIND_COUNTER),
		"%s", sample->name);
	order->families += sample->family != order->last;
	order->last = sample->family;
}

static void
samples_come_family_by_family(void **state)
{
	struct order order = { 0 };

	(void)state;
	counter_each(check_order, &order);
	assert_true(order.families > 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(family_without_labels_is_its_own_cell),
		cmocka_unit_test(gauge_goes_down_too),
		cmocka_unit_test(same_labels_are_the_same_cell),
		cmocka_unit_test(labels_are_escaped_for_prometheus),
		cmocka_unit_test(labels_of_any_length_are_found_again),
		cmocka_unit_test(labels_of_any_length_close_their_quotes),
		cmocka_unit_test(long_labels_that_differ_at_the_end_are_not_added_up),
		cmocka_unit_test(durations_fall_into_the_bucket_that_bounds_them),
		cmocka_unit_test(threads_add_up_while_cells_are_made_and_read),
		cmocka_unit_test(family_cell_takes_over_when_all_cells_are_used_up),
		cmocka_unit_test(samples_come_family_by_family),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
