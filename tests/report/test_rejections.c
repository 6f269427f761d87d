/* The log of rejections: a few in the log, all of them in a file of their own. */
#include "../lib/directory.h"
#include "../lib/soon.h"
#include "weir/report.h"

#include <pthread.h>
#include <stdio.h>

static struct directory directory;

/* What came to the log. */
static struct {
	pthread_mutex_t lock;
	unsigned lines;
	uint64_t kept_back;
	char last[LOG_LINE_MAX + 1];
} logged = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void
take_line(void *context, enum log_level level, const char *line, size_t len)
{
	(void)context, (void)level;
	(void)pthread_mutex_lock(&logged.lock);
	memcpy(logged.last, line, len);
	logged.last[len] = '\0';
	logged.lines++;
	const char *kept = strstr(logged.last, "kept_back=");

	if (kept != NULL)
		logged.kept_back += strtoull(kept + sizeof "kept_back=" - 1, NULL, 10);
	(void)pthread_mutex_unlock(&logged.lock);
}

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	logged.lines = 0;
	logged.kept_back = 0;
	log_set_sink(take_line, NULL);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	log_set_sink(NULL, NULL);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	directory_remove(&directory);
	return 0;
}

static struct report *
open_report(const char *file, enum log_format format)
{
	struct err err = { "" };
	struct report *report = report_new(
		file == NULL ? NULL : directory_path(&directory, file).text, format, &err);

	assert_row(report != NULL, "%s", err.text);
	return report;
}

static void
reject(struct report *report, const char *path, bool is_enforced)
{
	static const struct limit limit = { .name = "login" };
	static const struct policy policy = {
		.name = "1m", .count = 5, .window_us = 60 * US_PER_S, .burst = 5
	};
	static const struct outcome outcome = { .limit = &limit, .policy = &policy };

	report_rejected(report,
		&(const struct report_rejection){ .client = SLICE("192.0.2.1"),
			.route = SLICE("form"),
			.method = SLICE("POST"),
			.path = slice_of(path),
			.identity = SLICE("login:192.0.2.1"),
			.cost = 1,
			.outcome = &outcome,
			.retry_after_s = 12,
			.is_enforced = is_enforced });
}

static const char fields[] =
	"client=192.0.2.1 route=form limit=login policy=1m admits=5/1m retry_after=12 "
	"method=POST ";

static void
line_says_who_what_and_for_how_long(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);
	char expected[300];

	(void)state;
	for (unsigned enforced = 0; enforced < 2; enforced++) {
		(void)snprintf(expected, sizeof expected,
			"info: %s %spath=/x identity=login:192.0.2.1",
			enforced != 0 ? "Rejected." : "Would be rejected.", fields);
		reject(report, "/x", enforced != 0);
		assert_string_equal(logged.last, expected);
	}
	report_free(report);
	report_free(NULL);
}

/* Whose plan it was, and why it was rejected with some left: nothing is said of what is usual. */
static void
line_says_what_is_not_usual(void **state)
{
	static const struct limit limit = { .name = "api", .shards = 1 };
	static const struct policy policy = {
		.name = "1m", .count = 9, .window_us = 60 * US_PER_S, .burst = 9
	};
	static const struct outcome outcome = { .limit = &limit, .policy = &policy };
	static const struct outcome never = { .limit = &limit, .policy = &policy, .retry_us = -1 };
	static const struct {
		const char *override;
		uint64_t cost;
		const struct outcome *outcome;
		const char *text;
	} rows[] = {
		{ "", 1, &outcome, " admits=9/1m retry_after=7 method=" },
		{ "gold", 1, &outcome, " admits=9/1m override=gold retry_after=7 method=" },
		{ "", 8, &outcome, " admits=9/1m cost=8 retry_after=7 method=" },
		{ "gold", 10, &never,
			" admits=9/1m override=gold cost=10 reason=\"cost exceeds burst\" "
			"method=" },
	};
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		report_rejected(report,
			&(const struct report_rejection){ .client = SLICE("c"),
				.override = slice_of(rows[i].override),
				.cost = rows[i].cost,
				.outcome = rows[i].outcome,
				.retry_after_s = 7,
				.is_enforced = true });
		assert_row(strstr(logged.last, rows[i].text) != NULL, "%s", logged.last);
	}
	report_free(report);
}

/* A name alone would send everybody to the file. */
static void
line_says_what_the_policy_admits(void **state)
{
	static const struct {
		struct policy policy;
		unsigned shards;
		const char *text;
	} rows[] = {
		{ { .count = 10, .window_us = US_PER_S, .burst = 60 }, 1,
			" admits=\"10/1s burst 60\" " },
		{ { .count = 10, .window_us = US_PER_S, .burst = 10 }, 1, " admits=10/1s " },
		{ { .count = 1, .window_us = 90 * US_PER_S, .burst = 1 }, 1, " admits=1/90s " },
		{ { .count = 7, .window_us = 2 * US_PER_DAY, .burst = 7 }, 1, " admits=7/2d " },
		{ { .count = 7, .window_us = 3600 * US_PER_S, .burst = 7 }, 1, " admits=7/1h " },
		{ { .count = 7, .window_us = 1500 * US_PER_MS, .burst = 7 }, 1,
			" admits=7/1500ms " },
		{ { .count = 1000, .window_us = US_PER_S, .burst = 250 }, 4,
			" admits=\"1000/1s shards 4\" " },
		{ { .algorithm = POLICY_SLIDING_WINDOW,
			  .count = 9,
			  .window_us = 60 * US_PER_S,
			  .burst = 9 },
			1, " admits=\"9/1m sliding-window\" " },
		{ { .algorithm = POLICY_SLIDING_LOG,
			  .count = 9,
			  .window_us = 60 * US_PER_S,
			  .burst = 9 },
			1, " admits=\"9/1m sliding-log\" " },
		{ { .algorithm = POLICY_CALENDAR,
			  .count = 100,
			  .window_us = 31 * US_PER_DAY,
			  .burst = 100,
			  .period = CALENDAR_MONTH },
			1, " admits=\"100/month calendar\" " },
		{ { .algorithm = POLICY_CONCURRENT, .count = 4, .burst = 4 }, 1,
			" admits=\"concurrent 4\" " },
	};
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct limit limit = { .name = "l", .shards = rows[i].shards };
		const struct outcome outcome = { .limit = &limit, .policy = &rows[i].policy };

		logged.last[0] = '\0';
		/* The log takes ten lines a second. */
		assert_soon((report_rejected(report,
				     &(const struct report_rejection){ .client = SLICE("c"),
					     .cost = 1,
					     .outcome = &outcome,
					     .retry_after_s = 1,
					     .is_enforced = true }),
			logged.last[0] != '\0'));
		assert_row(strstr(logged.last, rows[i].text) != NULL, "%s", logged.last);
	}
	report_free(report);
}

static void
refuse(struct report *report, const char *limit, bool is_enforced)
{
	report_refused(report,
		&(const struct report_refusal){ .client = SLICE("192.0.2.1"),
			.route = SLICE("form"),
			.limit = slice_of(limit),
			.reason = "store_down = reject",
			.status = 503,
			.method = SLICE("POST"),
			.path = SLICE("/x"),
			.is_enforced = is_enforced });
}

/* They are nobody's fault that could be banned for it, so the file of rejections has none. */
static void
refusals_are_in_the_log_and_never_in_the_file(void **state)
{
	struct report *report = open_report("reject.log", LOG_FORMAT_TEXT);

	(void)state;
	refuse(report, "", true);
	assert_string_equal(logged.last,
		"info: Refused. client=192.0.2.1 route=form reason=\"store_down = reject\" "
		"status=503 method=POST path=/x");
	refuse(report, "api", false);
	assert_string_equal(logged.last,
		"info: Would be refused. client=192.0.2.1 route=form limit=api "
		"reason=\"store_down = reject\" status=503 method=POST path=/x");
	report_free(report);
	char *text = directory_read(&directory, "reject.log");

	assert_string_equal(text, "");
	free(text);
}

/* A flood of rejections must not hide them, nor the other way round. */
static void
refusals_are_throttled_by_themselves(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);
	unsigned total = 0;

	(void)state;
	for (unsigned i = 0; i < 100; i++)
		reject(report, "/x", true);
	assert_in_range(logged.lines, 10, 20);
	const unsigned before = logged.lines;
	const int64_t start_us = clock_monotonic_us();

	while (logged.kept_back == 0) {
		refuse(report, "", true);
		total++;
		assert_true(clock_monotonic_us() < start_us + SOON_S * INT64_C(1000000));
	}
	const unsigned seconds = (unsigned)((clock_monotonic_us() - start_us) / 1000000) + 1;

	assert_in_range(logged.lines - before, 11, 10 * seconds + 10);
	assert_int_equal(logged.kept_back + logged.lines - before, total);
	report_free(report);
}

static void
line_of_a_block_names_the_override(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);
	char expected[300];

	(void)state;
	for (unsigned enforced = 0; enforced < 2; enforced++) {
		(void)snprintf(expected, sizeof expected,
			"info: %s client=192.0.2.1 route=form limit=login override=bad "
			"reason=blocked method=POST path=/x",
			enforced != 0 ? "Blocked." : "Would be blocked.");
		report_blocked(report,
			&(const struct report_block){ .client = SLICE("192.0.2.1"),
				.route = SLICE("form"),
				.limit = SLICE("login"),
				.override = SLICE("bad"),
				.method = SLICE("POST"),
				.path = SLICE("/x"),
				.is_enforced = enforced != 0 });
		assert_string_equal(logged.last, expected);
	}
	report_free(report);
}

static void
log_gets_a_few_and_is_told_of_the_others(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);
	const int64_t start_us = clock_monotonic_us();
	unsigned total = 0;

	(void)state;
	/* A flood for a bit more than a second. */
	while (clock_monotonic_us() < start_us + 1100000 || logged.kept_back == 0) {
		reject(report, "/x", true);
		total++;
		assert_true(clock_monotonic_us() < start_us + SOON_S * INT64_C(1000000));
	}
	const unsigned seconds = (unsigned)((clock_monotonic_us() - start_us) / 1000000) + 1;

	assert_true(total > 100);
	assert_in_range(logged.lines, 11, 10 * seconds);
	/* None is lost from the count but those since the last line. */
	assert_in_range(logged.kept_back, 1, total - logged.lines);
	report_free(report);
}

static void
fail_once(struct report *report)
{
	uint64_t held;

	if (report_may_tell_failure(report, &held))
		log_warn("Failed.", LOG_KEPT_BACK(held));
}

static void
reject_once(struct report *report)
{
	reject(report, "/x", true);
}

static void
refuse_once(struct report *report)
{
	refuse(report, "", true);
}

static const struct {
	void (*once)(struct report *report);
	unsigned logged;
	const char *summary;
} kinds[] = {
	{ reject_once, 10, "info: More rejections were not logged one by one. kept_back=30" },
	{ refuse_once, 10, "info: More refusals were not logged one by one. kept_back=30" },
	{ fail_once, 5,
		"warning: More failures of backends were not logged one by one. kept_back=35" },
};

static unsigned
each_forty_times(struct report *report)
{
	unsigned expected = 0;

	for (size_t i = 0; i < LENGTH_OF(kinds); i++) {
		for (unsigned j = 0; j < 40; j++)
			kinds[i].once(report);
		expected += kinds[i].logged;
	}
	return expected;
}

/* How many came is known soon after, whether another comes or not. */
static void
what_was_kept_back_is_told_without_another(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);
	const int64_t start_us = clock_monotonic_us();

	(void)state;
	report_tell_kept_back(report);
	const unsigned expected = each_forty_times(report);

	assert_int_equal(logged.lines, expected);
	/* The next may come in the same second. */
	report_tell_kept_back(report);
	assert_int_equal(logged.lines, expected);
	assert_soon((report_tell_kept_back(report), logged.lines == expected + LENGTH_OF(kinds)));
	assert_true(clock_monotonic_us() - start_us >= 1000000);
	assert_int_equal(logged.kept_back, 30 + 30 + 35);
	/* Once. */
	reject_once(report);
	assert_null(strstr(logged.last, "kept_back"));
	report_free(report);
	assert_int_equal(logged.lines, expected + LENGTH_OF(kinds) + 1);
}

static void
what_was_kept_back_is_told_at_the_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(kinds); i++) {
		struct report *report = open_report(NULL, LOG_FORMAT_TEXT);

		for (unsigned j = 0; j < 40; j++)
			kinds[i].once(report);
		report_free(report);
		assert_string_equal(logged.last, kinds[i].summary);
	}
}

static void
nothing_is_logged_above_the_level(void **state)
{
	struct report *report = open_report(NULL, LOG_FORMAT_TEXT);

	(void)state;
	log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	reject(report, "/x", true);
	assert_int_equal(logged.lines, 0);
	report_free(report);
}

static unsigned
count_lines(const char *text, const char *expected)
{
	unsigned count = 0;

	for (const char *at = text; (at = strstr(at, expected)) != NULL; at++)
		count++;
	return count;
}

static void
file_of_its_own_gets_every_line_whatever_the_level(void **state)
{
	struct report *report = open_report("reject.log", LOG_FORMAT_TEXT);

	(void)state;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	for (unsigned i = 0; i < 1000; i++)
		reject(report, "/x", i % 2 == 0);
	report_free(report);
	assert_int_equal(logged.lines, 0);
	char *text = directory_read(&directory, "reject.log");

	assert_int_equal(count_lines(text, "\n"), 1000);
	assert_int_equal(count_lines(text, "info: Rejected. client="), 500);
	assert_int_equal(count_lines(text, "info: Would be rejected. client="), 500);
	assert_int_equal(count_lines(text, fields), 1000);
	assert_int_equal(count_lines(text, "kept_back"), 0);
	free(text);
}

static void
file_may_be_json(void **state)
{
	struct report *report = open_report("reject.log", LOG_FORMAT_JSON);

	(void)state;
	reject(report, "/x", true);
	report_free(report);
	char *text = directory_read(&directory, "reject.log");

	assert_int_equal(text[0], '{');
	assert_int_equal(count_lines(text, "}\n"), 1);
	assert_int_equal(count_lines(text, "\"client\":\"192.0.2.1\""), 1);
	assert_int_equal(count_lines(text, "\"retry_after\":12"), 1);
	free(text);
}

/* log_format is taken over by a reload, so it is here too. */
static void
form_of_the_file_can_be_changed(void **state)
{
	struct report *report = open_report("reject.log", LOG_FORMAT_TEXT);

	(void)state;
	reject(report, "/x", true);
	report_set_format(report, LOG_FORMAT_JSON);
	reject(report, "/x", true);
	report_free(report);
	char *text = directory_read(&directory, "reject.log");

	assert_int_equal(count_lines(text, "info: Rejected. client="), 1);
	assert_int_equal(count_lines(text, "\n{\"time\":"), 1);
	free(text);
}

static void
no_path_can_forge_a_line(void **state)
{
	struct report *report = open_report("reject.log", LOG_FORMAT_TEXT);

	(void)state;
	reject(report, "/x\ninfo: Rejected. client=192.0.2.9\r\x1b[2J", true);
	report_free(report);
	char *text = directory_read(&directory, "reject.log");

	assert_int_equal(count_lines(text, "\n"), 1);
	assert_int_equal(count_lines(text, "\ninfo"), 0);
	assert_int_equal(
		count_lines(text, "path=\"/x\\x0ainfo: Rejected. client=192.0.2.9\\x0d\\x1b[2J\""),
		1);
	free(text);
}

static void
lines_that_the_file_does_not_take_are_counted(void **state)
{
	struct err err;
	struct report *report = report_new("/dev/full", LOG_FORMAT_TEXT, &err);
	uint64_t dropped = 0;

	(void)state;
	assert_non_null(report);
	for (unsigned i = 0; i < 20; i++)
		reject(report, "/x", true);
	assert_soon((dropped += report_take_dropped(report)) == 20);
	report_free(report);
	report = open_report(NULL, LOG_FORMAT_TEXT);
	assert_int_equal(report_take_dropped(report), 0);
	report_free(report);
}

static void
file_that_cannot_be_opened_is_refused(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_null(report_new(
		directory_path(&directory, "none/reject.log").text, LOG_FORMAT_TEXT, &err));
	assert_row(strstr(err.text, "none/reject.log") != NULL, "%s", err.text);
}

/* ---- threads ---- */

static void *
reject_many(void *context)
{
	for (unsigned i = 0; i < 500; i++)
		reject(context, "/x", true);
	return NULL;
}

static void
threads_share_the_file_and_the_throttle(void **state)
{
	static const char *const files[] = { "reject.log", NULL };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(files); i++) {
		struct report *report = open_report(files[i], LOG_FORMAT_TEXT);
		pthread_t threads[4];

		for (size_t j = 0; j < LENGTH_OF(threads); j++)
			assert_int_equal(pthread_create(&threads[j], NULL, reject_many, report), 0);
		for (size_t j = 0; j < LENGTH_OF(threads); j++)
			assert_int_equal(pthread_join(threads[j], NULL), 0);
		report_free(report);
	}
	char *text = directory_read(&directory, "reject.log");

	assert_int_equal(count_lines(text, "\n"), 2000);
	assert_int_equal(count_lines(text, fields), 2000);
	assert_true(logged.lines >= 10 && logged.lines < 2000);
	free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(line_says_who_what_and_for_how_long),
		TEST(line_of_a_block_names_the_override),
		TEST(line_says_what_is_not_usual),
		TEST(line_says_what_the_policy_admits),
		TEST(refusals_are_in_the_log_and_never_in_the_file),
		TEST(refusals_are_throttled_by_themselves),
		TEST(log_gets_a_few_and_is_told_of_the_others),
		TEST(what_was_kept_back_is_told_without_another),
		TEST(what_was_kept_back_is_told_at_the_end),
		TEST(nothing_is_logged_above_the_level),
		TEST(file_of_its_own_gets_every_line_whatever_the_level),
		TEST(file_may_be_json),
		TEST(form_of_the_file_can_be_changed),
		TEST(no_path_can_forge_a_line),
		TEST(lines_that_the_file_does_not_take_are_counted),
		TEST(file_that_cannot_be_opened_is_refused),
		TEST(threads_share_the_file_and_the_throttle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
