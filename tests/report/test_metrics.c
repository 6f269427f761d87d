/* The metrics page: what is on it, and that it is always well formed. */
#include "page.h"
#include "weir/counter.h"
#include "weir/backend.h"
#include "weir/report.h"
#include "weir/snapshot.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the page ---- */

static struct report *report;

static int
set_up(void **state)
{
	struct err err;

	(void)state;
	report = report_new(NULL, LOG_FORMAT_TEXT, &err);
	return report == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	report_free(report);
	return 0;
}

/* To be freed. */
static struct parsed *
page(void)
{
	struct buf out;

	buf_init(&out, 1024 * 1024);
	assert_int_equal(report_metrics(report, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	assert_int_equal(strlen(out.data), out.len - 1);
	struct parsed *parsed = page_parse(out.data);

	buf_release(&out);
	return parsed;
}

static void
page_has_every_family_without_labels_from_the_start(void **state)
{
	struct parsed *parsed = page();

	(void)state;
	assert_non_null(page_find(parsed, "weir_requests_in_flight", ""));
	assert_non_null(page_find(parsed, "weir_connections", ""));
	assert_non_null(page_find(parsed, "weir_log_dropped_total", ""));
	assert_true(page_value(parsed, "weir_drain_cut_total", "") == 0);
	free(parsed);
}

static void
counters_have_their_labels_and_sums(void **state)
{
	const struct slice values[] = { SLICE("login"), SLICE("admitted") };
	struct parsed *parsed;

	(void)state;
	counter_add(counter_find(COUNT_REQUESTS, values), 3);
	counter_add(counter_find(COUNT_REQUESTS, values), 4);
	counter_add(COUNT_CONNECTIONS, 5);
	counter_add(COUNT_CONNECTIONS, -7);
	parsed = page();
	assert_true(page_value(parsed, "weir_requests_total",
			    "{route=\"login\",outcome=\"admitted\"}") == 7);
	assert_true(page_value(parsed, "weir_connections", "") == -2);
	free(parsed);
}

static void
histogram_is_cumulative_and_ends_in_its_count(void **state)
{
	static const int64_t times_us[] = { 1, 50, 51, 150, 99999, 100000, 999999, 1000000, 1000001,
		60000000 };
	const struct slice store = SLICE("memory");
	struct parsed *parsed;
	double last_le = -1, last = 0, sum = 0;
	unsigned buckets = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(times_us); i++) {
		histogram_add(counter_find(COUNT_STORE_LATENCY, &store), times_us[i]);
		sum += (double)times_us[i] / 1e6;
	}
	parsed = page();
	for (unsigned i = 0; i < parsed->sample_count; i++) {
		const struct sample *sample = &parsed->samples[i];

		if (strcmp(sample->name, "weir_store_latency_seconds_bucket") != 0)
			continue;
		assert_true(sample->le > last_le && sample->value >= last);
		/* How many there are up to that bound. */
		unsigned expected = 0;

		for (size_t j = 0; j < LENGTH_OF(times_us); j++)
			expected += (double)times_us[j] <= sample->le * 1e6 + 0.5 ? 1 : 0;
		assert_row(sample->value == expected, "le %g: %g", sample->le, sample->value);
		last_le = sample->le;
		last = sample->value;
		buckets++;
	}
	assert_int_equal(buckets, HISTOGRAM_BUCKETS + 1);
	assert_true(isinf(last_le) && last == LENGTH_OF(times_us));
	assert_true(page_value(parsed, "weir_store_latency_seconds_count", "{store=\"memory\"}") ==
		last);
	assert_true(
		fabs(page_value(parsed, "weir_store_latency_seconds_sum", "{store=\"memory\"}") -
			sum) < 1e-5);
	free(parsed);
}

static void
any_label_keeps_the_page_whole(void **state)
{
	uint64_t random = 61;
	struct parsed *parsed;

	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		char route[20], outcome[20];
		const struct slice values[] = { slice_make(route,
							1 + random_below(&random, sizeof route)),
			slice_make(outcome, 1 + random_below(&random, sizeof outcome)) };

		for (size_t i = 0; i < sizeof route; i++) {
			route[i] = "\"\\\n{},= ax"[random_below(&random, 10)];
			outcome[i] = (char)random_next(&random);
		}
		counter_add(counter_find(COUNT_REQUESTS, values), 1);
	}
	parsed = page();
	free(parsed);
	const struct slice odd[] = { SLICE("a\"b\\c\nd"), SLICE("e") };

	counter_add(counter_find(COUNT_REQUESTS, odd), 1);
	parsed = page();
	assert_non_null(page_find(
		parsed, "weir_requests_total", "{route=\"a\\\"b\\\\c d\",outcome=\"e\"}"));
	free(parsed);
}

static void *
count_in_a_thread(void *context)
{
	struct err err;

	if (counter_thread_start(&err) == 0)
		counter_add(*(const counter_cell *)context, 10);
	return NULL;
}

/* Not with a thread that ends, nor with a configuration that no longer names them. */
static void
counters_never_go_away_nor_back(void **state)
{
	const struct slice values[] = { SLICE("gone"), SLICE("admitted") };
	const counter_cell cell = counter_find(COUNT_REQUESTS, values);
	struct parsed *before, *after;
	pthread_t thread;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(
			pthread_create(&thread, NULL, count_in_a_thread, (void *)(uintptr_t)&cell),
			0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	counter_add(cell, 1);
	before = page();
	const struct slice others[] = { SLICE("other"), SLICE("rejected") };

	counter_add(counter_find(COUNT_REQUESTS, others), 1);
	after = page();
	for (unsigned i = 0; i < before->sample_count; i++) {
		const struct sample *sample = &before->samples[i];
		const struct sample *now = page_find(after, sample->name, sample->labels);

		assert_row(now != NULL && now->value >= sample->value, "%s%s", sample->name,
			sample->labels);
	}
	assert_true(page_value(after, "weir_requests_total",
			    "{route=\"gone\",outcome=\"admitted\"}") == 31);
	assert_int_equal(after->sample_count, before->sample_count + 1);
	free(before);
	free(after);
}

/* ---- the manual ---- */

static char *
manual(void)
{
	const char *top = getenv("TOP_SRCDIR");
	char path[512], *text = calloc(1, 200000);

	(void)snprintf(path, sizeof path, "%s/contrib/man/weir.8", top == NULL ? "." : top);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	assert_non_null(text);
	assert_true(fread(text, 1, 199999, file) > 1000);
	(void)fclose(file);
	return text;
}

static void
assert_explained(const char *text, const char *help, const char *word)
{
	char entry[64];

	(void)snprintf(entry, sizeof entry, "\n.B %s\n", word);
	assert_row(strstr(text, entry) != NULL, "weir(8) does not explain %s", word);
	assert_row(strstr(help, word) != NULL, "HELP does not name %s: %s", word, help);
}

static const char *
help_of(const char *name)
{
	struct buf out;
	static char help[2000];
	char start[100];

	buf_init(&out, 1024 * 1024);
	assert_int_equal(report_metrics(report, &out), 0);
	assert_int_equal(buf_append(&out, "", 1), 0);
	(void)snprintf(start, sizeof start, "# HELP %s ", name);
	const char *at = strstr(out.data, start);

	assert_row(at != NULL, "%s", name);
	(void)snprintf(help, sizeof help, "%.*s", (int)strcspn(at, "\n"), at);
	buf_release(&out);
	return help;
}

/* Whoever sees a label's value must be able to look it up. */
static void
every_outcome_and_reason_is_explained(void **state)
{
	const struct slice two[] = { SLICE("a"), SLICE("b") };
	char *text = manual();

	(void)state;
	counter_add(counter_find(COUNT_REQUESTS, two), 1);
	counter_add(counter_find(COUNT_STORE_FAILURES, two), 1);
	counter_add(counter_find(COUNT_BACKEND_FAILURES, two), 1);
	for (unsigned i = 0; i < GATE_OUTCOMES; i++)
		assert_explained(text, help_of("weir_requests_total"), gate_outcome_names[i]);
	for (unsigned i = 0; i < UNAVAILABLE_REASONS; i++)
		assert_explained(text, help_of("weir_store_failures_total"), unavailable_names[i]);
	for (unsigned i = EXCHANGE_COMPLETE + 1; i < EXCHANGE_RESULTS; i++)
		assert_explained(
			text, help_of("weir_backend_failures_total"), exchange_result_names[i]);
	free(text);
}

/* ---- gauges ---- */

static int64_t
read_number(void *context)
{
	return *(const int64_t *)context;
}

static void
gauge_is_read_when_the_page_is_made(void **state)
{
	int64_t number = -3;
	struct parsed *parsed;

	(void)state;
	assert_int_equal(
		report_add_gauge(report, "weir_test_gauge", "A number.", read_number, &number), 0);
	for (; number < 5; number += 4) {
		parsed = page();
		assert_true(page_value(parsed, "weir_test_gauge", "") == (double)number);
		free(parsed);
	}
}

static void
too_many_gauges_are_refused(void **state)
{
	int64_t number = 0;
	unsigned added = 0;

	(void)state;
	while (added < 100 && report_add_gauge(report, "weir_g", "G.", read_number, &number) == 0)
		added++;
	assert_in_range(added, 1, 99);
}

static void
page_that_does_not_fit_is_told(void **state)
{
	(void)state;
	for (size_t max = 0; max < 2000; max += 13) {
		struct buf out;

		buf_init(&out, max);
		assert_int_equal(report_metrics(report, &out), -1);
		buf_release(&out);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(page_has_every_family_without_labels_from_the_start),
		TEST(counters_have_their_labels_and_sums),
		TEST(histogram_is_cumulative_and_ends_in_its_count),
		TEST(any_label_keeps_the_page_whole),
		TEST(counters_never_go_away_nor_back),
		TEST(every_outcome_and_reason_is_explained),
		TEST(gauge_is_read_when_the_page_is_made),
		TEST(too_many_gauges_are_refused),
		TEST(page_that_does_not_fit_is_told),
	};
	struct err err;

	return counter_thread_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
