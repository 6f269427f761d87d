/* log_sink.h: a log that nobody takes costs lines and never time; what is taken is whole and in
 * order. */
#include "../lib/directory.h"
#include "../lib/soon.h"
#include "weir/log_sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct directory directory;

static int
set_up(void **state)
{
	(void)state;
	directory_make(&directory);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

static struct log_sink *
open_sink(enum log_sink_kind kind, const char *path)
{
	struct err err = { "" };
	struct log_sink *sink = log_sink_open(kind, path, &err);

	assert_row(sink != NULL, "%s", err.text);
	return sink;
}

static void
put(struct log_sink *sink, const char *line)
{
	log_sink_put(sink, LOG_LEVEL_INFO, line, strlen(line));
}

/* Whether the file's lines end in these, in order, and there are no others. */
static bool
file_has(const char *name, const char *const *lines, size_t count)
{
	char *text = directory_read(&directory, name);
	struct slice rest = slice_of(text), line;
	bool same = true;
	size_t i = 0;

	while (same && rest.len > 0) {
		line = slice_first(rest, slice_find(rest, '\n'));
		rest = slice_skip(rest, line.len < rest.len ? line.len + 1 : line.len);
		const size_t len = i < count ? strlen(lines[i]) : 0;

		same = i < count && line.len >= len &&
			memcmp(line.ptr + line.len - len, lines[i], len) == 0;
		i++;
	}
	free(text);
	return same && i == count;
}

/* ---- files ---- */

static void
file_gets_each_line_with_time_and_process(void **state)
{
	struct log_sink *sink = open_sink(LOG_SINK_FILE, directory_path(&directory, "log").text);
	int year, hour, end = 0;

	(void)state;
	put(sink, "info: One.");
	put(sink, "info: Two.");
	assert_soon(file_has("log", (const char *[]){ "info: One.", "info: Two." }, 2));
	char *text = directory_read(&directory, "log");

	assert_int_equal(
		sscanf(text, "%4d-%*2d-%*2dT%2d:%*2d:%*2d%*5[+0-9] weir[%*d] info: One.\n%n", &year,
			&hour, &end),
		2);
	assert_true(end > 0);
	free(text);
	log_sink_close(sink);
}

static void
json_lines_have_no_prefix(void **state)
{
	struct log_sink *sink = open_sink(LOG_SINK_FILE, directory_path(&directory, "log").text);
	char *text;

	(void)state;
	put(sink, "{\"message\":\"One.\"}");
	put(sink, "{\"message\":\"Two.\"}");
	log_sink_close(sink);
	text = directory_read(&directory, "log");
	assert_string_equal(text, "{\"message\":\"One.\"}\n{\"message\":\"Two.\"}\n");
	free(text);
}

static void
close_waits_for_what_is_queued(void **state)
{
	struct log_sink *sink = open_sink(LOG_SINK_FILE, directory_path(&directory, "log").text);

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		put(sink, "{\"n\":1}");
	log_sink_close(sink);
	log_sink_close(NULL);
	char *text = directory_read(&directory, "log");

	assert_int_equal(strlen(text), 1000 * 8);
	free(text);
}

static void
file_that_cannot_be_opened_is_refused_with_its_name(void **state)
{
	struct err err = { "" };

	(void)state;
	assert_null(
		log_sink_open(LOG_SINK_FILE, directory_path(&directory, "none/log").text, &err));
	assert_row(strstr(err.text, "none/log") != NULL, "%s", err.text);
}

static void
renamed_or_removed_file_is_followed(void **state)
{
	const struct directory_path path = directory_path(&directory, "log");
	struct log_sink *sink = open_sink(LOG_SINK_FILE, path.text);

	(void)state;
	put(sink, "info: First.");
	assert_soon(file_has("log", (const char *[]){ "info: First." }, 1));
	assert_int_equal(rename(path.text, directory_path(&directory, "log.1").text), 0);
	put(sink, "info: Second.");
	assert_soon(file_has("log", (const char *[]){ "info: Second." }, 1));
	assert_true(file_has("log.1", (const char *[]){ "info: First." }, 1));
	assert_int_equal(unlink(path.text), 0);
	put(sink, "info: Third.");
	assert_soon(file_has("log", (const char *[]){ "info: Third." }, 1));
	assert_int_equal(log_sink_take_dropped(sink), 0);
	log_sink_close(sink);
}

/* Logrotate's way with "create": the new file is there already. */
static void
new_file_of_the_name_is_used(void **state)
{
	const struct directory_path path = directory_path(&directory, "log");
	struct log_sink *sink = open_sink(LOG_SINK_FILE, path.text);

	(void)state;
	put(sink, "info: First.");
	assert_soon(file_has("log", (const char *[]){ "info: First." }, 1));
	assert_int_equal(rename(path.text, directory_path(&directory, "log.1").text), 0);
	directory_write(&directory, "log", SLICE(""));
	put(sink, "info: Second.");
	assert_soon(file_has("log", (const char *[]){ "info: Second." }, 1));
	log_sink_close(sink);
}

static void
full_disk_costs_lines_which_are_counted(void **state)
{
	struct log_sink *sink = open_sink(LOG_SINK_FILE, "/dev/full");
	uint64_t dropped = 0;

	(void)state;
	for (unsigned i = 0; i < 50; i++)
		put(sink, "info: Lost.");
	assert_soon((dropped += log_sink_take_dropped(sink)) == 50);
	log_sink_close(sink);
}

/* ---- threads ---- */

enum { WRITERS = 4, LINES = 500 };

struct writer {
	pthread_t thread;
	struct log_sink *sink;
	char name;
};

static void *
write_lines(void *context)
{
	struct writer *writer = context;

	for (unsigned i = 0; i < LINES; i++) {
		char line[64];
		const int n = snprintf(line, sizeof line, "{%c %u", writer->name, i);

		log_sink_put(writer->sink, LOG_LEVEL_INFO, line, (size_t)n);
	}
	return NULL;
}

/* A file that may not grow takes the part of a line that there is room for, as a full disk does. */
static void
line_behind_one_that_was_cut_begins_anew(void **state)
{
	const struct directory_path path = directory_path(&directory, "small");
	struct rlimit before, small;
	uint64_t dropped = 0;
	struct stat st;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	struct log_sink *sink = open_sink(LOG_SINK_FILE, path.text);

	put(sink, "first");
	assert_soon(stat(path.text, &st) == 0 && st.st_size > 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = (struct rlimit){ .rlim_cur = (rlim_t)st.st_size * 2 - 3,
		.rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	put(sink, "other");
	put(sink, "there is no room at all for this one");
	assert_soon((dropped += log_sink_take_dropped(sink)) == 2);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	put(sink, "second");
	log_sink_close(sink);
	assert_true(file_has("small", (const char *const[]){ "first", "oth", "second" }, 3));
}

static void
lines_of_each_thread_are_whole_and_in_order(void **state)
{
	struct writer writers[WRITERS];
	unsigned next[WRITERS] = { 0 }, all = 0;
	struct log_sink *sink = open_sink(LOG_SINK_FILE, directory_path(&directory, "log").text);

	(void)state;
	for (size_t i = 0; i < WRITERS; i++) {
		writers[i] = (struct writer){ .sink = sink, .name = (char)('a' + i) };
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, write_lines, &writers[i]), 0);
	}
	for (size_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
	assert_int_equal(log_sink_take_dropped(sink), 0);
	log_sink_close(sink);
	FILE *file = fopen(directory_path(&directory, "log").text, "r");
	char name;
	unsigned number;

	assert_non_null(file);
	while (fscanf(file, "{%c %u\n", &name, &number) == 2) {
		assert_in_range(name, 'a', 'a' + WRITERS - 1);
		assert_int_equal(number, next[name - 'a']);
		next[name - 'a']++;
		all++;
	}
	assert_int_equal(all, WRITERS * LINES);
	(void)fclose(file);
}

/* ---- standard error ---- */

/* Standard error is `fd` from now on; returns what it was. */
static int
replace_stderr(int fd)
{
	const int before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

	assert_true(before >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	return before;
}

static void
restore_stderr(int before)
{
	assert_int_equal(dup2(before, STDERR_FILENO), STDERR_FILENO);
	(void)close(before);
}

/* Reads numbered lines until so many have come or been dropped; false if one is out of order. */
static bool
read_numbers(int fd, struct log_sink *sink, unsigned total)
{
	FILE *file = fdopen(fd, "r");
	uint64_t seen = 0, dropped = 0;
	char line[LOG_LINE_MAX];
	long last = -1;

	while (file != NULL && seen + dropped < total && fgets(line, sizeof line, file) != NULL) {
		long number = -1;

		if (sscanf(line, "%*s weir[%*d] %ldx", &number) != 1 || number <= last)
			break;
		last = number;
		seen++;
		dropped += log_sink_take_dropped(sink);
	}
	if (file != NULL)
		(void)fclose(file);
	return seen > 0 && dropped > 0 && seen + dropped == total;
}

static void
standard_error_that_nobody_reads_blocks_nobody(void **state)
{
	enum { TOTAL = 20000 };
	char line[400];
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const int before = replace_stderr(fds[1]);
	struct log_sink *sink = open_sink(LOG_SINK_STDERR, NULL);

	/* Far more than the pipe and the queue hold. A thread that blocks would hang here. */
	for (unsigned i = 0; i < TOTAL; i++) {
		const int n = snprintf(line, sizeof line, "%u", i);

		memset(line + n, 'x', sizeof line - (size_t)n);
		log_sink_put(sink, LOG_LEVEL_INFO, line, sizeof line);
	}
	const bool sound = read_numbers(fds[0], sink, TOTAL);

	/* The reader is gone: that is no reason to die. */
	put(sink, "info: To nobody.");
	log_sink_close(sink);
	restore_stderr(before);
	(void)close(fds[1]);
	assert_true(sound);
}

/* What standard error gets of one line. */
static void
read_one_line(char *out, size_t size, const char *sent)
{
	int fds[2];

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const int before = replace_stderr(fds[1]);
	struct log_sink *sink = open_sink(LOG_SINK_STDERR, NULL);

	log_sink_put(sink, LOG_LEVEL_WARN, sent, strlen(sent));
	log_sink_close(sink);
	restore_stderr(before);
	const ssize_t n = read(fds[0], out, size - 1);

	out[n < 0 ? 0 : n] = '\0';
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* Also for whoever was started by systemd, but has a pipe of its own: a web server's child, say. */
static void
standard_error_gets_time_and_process_unless_it_is_the_journal(void **state)
{
	char line[400];
	int end = 0, pid = 0;

	(void)state;
	for (unsigned inherited = 0; inherited < 2; inherited++) {
		if (inherited != 0)
			(void)setenv("JOURNAL_STREAM", "9:1234", 1);
		read_one_line(line, sizeof line, "warning: One.");
		assert_int_equal(sscanf(line,
					 "%*4d-%*2d-%*2dT%*2d:%*2d:%*2d%*5[+0-9] weir[%d] warning: "
					 "One.\n%n",
					 &pid, &end),
			1);
		assert_int_equal(pid, getpid());
		assert_int_equal(line[end], '\0');
		read_one_line(line, sizeof line, "{\"message\":\"One.\"}");
		assert_string_equal(line, "{\"message\":\"One.\"}\n");
	}
	(void)unsetenv("JOURNAL_STREAM");
}

static void
journal_gets_the_level_in_its_form(void **state)
{
	char line[400] = "", stream[60];
	struct stat st;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	const int before = replace_stderr(fds[1]);

	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	(void)setenv("JOURNAL_STREAM", stream, 1);
	struct log_sink *sink = open_sink(LOG_SINK_STDERR, NULL);

	log_sink_put(sink, LOG_LEVEL_WARN, "warning: One.", 13);
	log_sink_put(sink, LOG_LEVEL_ERROR, "{}", 2);
	log_sink_close(sink);
	restore_stderr(before);
	(void)unsetenv("JOURNAL_STREAM");
	assert_true(read(fds[0], line, sizeof line - 1) > 0);
	(void)close(fds[0]);
	(void)close(fds[1]);
	assert_string_equal(line, "<4>warning: One.\n<3>{}\n");
}

/* In microseconds; -1 if it cannot be tried. */
static int64_t
close_while_stuck(void)
{
	struct err err;
	char line[2000];
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) != 0 || dup2(fds[1], STDERR_FILENO) < 0)
		return -1;
	struct log_sink *sink = log_sink_open(LOG_SINK_STDERR, NULL, &err);

	if (sink == NULL)
		return -1;
	memset(line, 'x', sizeof line);
	for (unsigned i = 0; i < 100; i++)
		log_sink_put(sink, LOG_LEVEL_INFO, line, sizeof line);
	const int64_t start_us = clock_monotonic_us();

	log_sink_close(sink);
	return clock_monotonic_us() - start_us;
}

static void
closing_does_not_wait_for_a_stuck_standard_error(void **state)
{
	int64_t took_us = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	/* In a process of its own, since the writer stands in its write to the end of it. */
	const pid_t child = fork();

	if (child == 0) {
		took_us = close_while_stuck();
		(void)!write(fds[1], &took_us, sizeof took_us);
		for (;;)
			(void)pause();
	}
	(void)close(fds[1]);
	assert_int_equal(read(fds[0], &took_us, sizeof took_us), sizeof took_us);
	(void)kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_in_range(took_us, 400000, 10000000);
	(void)close(fds[0]);
}

/* ---- syslog ---- */

static void
syslog_that_is_not_there_costs_lines_only(void **state)
{
	struct log_sink *sink;
	uint64_t dropped = 0;

	(void)state;
	if (access("/dev/log", F_OK) == 0)
		skip();
	sink = open_sink(LOG_SINK_SYSLOG, NULL);
	put(sink, "info: To nobody.");
	assert_soon((dropped += log_sink_take_dropped(sink)) == 1);
	log_sink_close(sink);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(file_gets_each_line_with_time_and_process),
		TEST(json_lines_have_no_prefix),
		TEST(close_waits_for_what_is_queued),
		TEST(file_that_cannot_be_opened_is_refused_with_its_name),
		TEST(renamed_or_removed_file_is_followed),
		TEST(new_file_of_the_name_is_used),
		TEST(full_disk_costs_lines_which_are_counted),
		TEST(line_behind_one_that_was_cut_begins_anew),
		TEST(lines_of_each_thread_are_whole_and_in_order),
		TEST(standard_error_that_nobody_reads_blocks_nobody),
		TEST(standard_error_gets_time_and_process_unless_it_is_the_journal),
		TEST(journal_gets_the_level_in_its_form),
		TEST(closing_does_not_wait_for_a_stuck_standard_error),
		TEST(syslog_that_is_not_there_costs_lines_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
