/* CGI programs: what they are told, and how their streams run. */
#include "programs.h"

#include "weir/fcgi.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the place of the system's (the linker's --wrap). */
void *__wrap_calloc(size_t count, size_t size);
void *__real_calloc(size_t count, size_t size);

static unsigned until_failure; /* which of the next pieces of memory is not to be had; 0: none */

void *
__wrap_calloc(size_t count, size_t size)
{
	if (until_failure > 0 && --until_failure == 0)
		return NULL;
	return __real_calloc(count, size);
}

static void
assert_body(const struct talk *talk, const char *expected)
{
	assert_row(talk->result == EXCHANGE_COMPLETE, "%s: %s", exchange_result_names[talk->result],
		talk->why);
	assert_slice(buf_slice(&talk->body), slice_of(expected));
}

static const char *
text_of(struct talk *talk)
{
	assert_int_equal(buf_append(&talk->body, "", 1), 0);
	return buf_slice(&talk->body).ptr;
}

/* ---- streams ---- */

static void
answers_before_it_reads_all(void **state)
{
	enum { OUT = 300000, IN = 500000 };
	char length[16];
	struct talk talk;

	(void)state;
	(void)snprintf(length, sizeof length, "%d", IN);
	program_write("x", "printf 'X: y\r\n\r\n'; head -c 300000 /dev/zero; exec wc -c");
	assert_true(
		program_start(&talk, "x", (const char *const[]){ "CONTENT_LENGTH", length, NULL }));
	talk.to_send = IN;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_int_equal(talk.body_len, OUT + strlen("500000\n"));
	assert_memory_equal(text_of(&talk) + OUT, "500000\n", 7);
	talk_release(&talk);
}

static void
a_body_that_nobody_reads_is_dropped(void **state)
{
	static const char *const scripts[] = {
		"printf 'X: y\r\n\r\nok'",
		"exec < /dev/null; printf 'X: y\r\n\r\nok'; sleep 0.2",
		"head -c 10 > /dev/null; printf 'X: y\r\n\r\nok'",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		struct talk talk;

		program_write("x", scripts[i]);
		assert_true(program_start(
			&talk, "x", (const char *const[]){ "CONTENT_LENGTH", "3000000", NULL }));
		talk.to_send = 3000000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_body(&talk, "ok");
		talk_release(&talk);
	}
}

static void
error_output_is_told_apart(void **state)
{
	struct talk talk;

	(void)state;
	program_write("x", "echo oops > /dev/stderr; printf 'X: y\r\n\r\nok'");
	program_run(&talk, "x", NULL);
	assert_body(&talk, "ok");
	/* It may come behind the answer, when nobody is told any more. */
	assert_true(talk.error_len == 0 || strcmp(talk.error_start, "oops\n") == 0);
	talk_release(&talk);
}

/* ---- what it is told ---- */

static void
the_environment_is_the_requests(void **state)
{
	static const char *const env[] = { "A=configured", "B=b c", "LD_BIND_NOT=1" };
	static const char *const pairs[] = { "A", "asked", "QUERY_STRING", "a&b", "HTTP_PROXY",
		"evil", "LD_PRELOAD", "evil.so", "bad-name", "x", "SECRET", "", "A", "again",
		NULL };
	struct talk talk;

	(void)state;
	assert_int_equal(setenv("WEIR_TEST_SECRET", "ours", 1), 0);
	programs.env = (const char **)(uintptr_t)env;
	programs.env_count = 3;
	program_write("x",
		"printf 'X: y\r\n\r\n'; env | "
		"grep -v -e ^PATH= -e ^PWD= -e ^LC_ -e ^LANG= -e ^TZ= | sort");
	program_run(&talk, "x", pairs);
	char expected[512];

	(void)snprintf(expected, sizeof expected,
		"A=configured\nB=b c\nGATEWAY_INTERFACE=CGI/1.1\nLD_BIND_NOT=1\n"
		"QUERY_STRING=a&b\n"
		"REQUEST_METHOD=GET\nSCRIPT_FILENAME=%s/x\nSECRET=\n",
		directory.path);
	assert_body(&talk, expected);
	talk_release(&talk);
}

static void
it_has_three_descriptors_and_a_place_of_its_own(void **state)
{
	char expected[200];
	struct talk talk;
	int ours[2];

	(void)state;
	/* One that is not closed on exec. */
	assert_int_equal(pipe(ours), 0);
	program_write("x",
		"printf 'X: y\r\n\r\n'; echo $#; pwd; ls /proc/$$/fd | tr '\\n' ' '; "
		"sed -nE 's/^Sig(Blk|Ign).*(.{7})$/\\1 \\2/p' /proc/self/status; "
		"test $(cut -d ' ' -f 5 /proc/$$/stat) = $$ && echo leader");
	program_run(&talk, "x", (const char *const[]){ "QUERY_STRING", "-s+x", NULL });
	/* The shell opens its script as 10 or so; the two highest signals are the C library's. */
	(void)snprintf(expected, sizeof expected, "0\n%s\n", directory.path);
	assert_memory_equal(text_of(&talk), expected, strlen(expected));
	assert_row(strstr(text_of(&talk), "Blk 0000000\nIgn 0000000\nleader\n") != NULL, "%s",
		text_of(&talk));
	char fd[16];

	(void)snprintf(fd, sizeof fd, " %d ", ours[0]);
	assert_null(strstr(text_of(&talk), fd));
	(void)close(ours[0]);
	(void)close(ours[1]);
	talk_release(&talk);
}

/* Weir raises its own limit, and select(2) takes no more. */
static void
it_may_open_what_select_takes(void **state)
{
	char expected[32];
	struct rlimit before, limit;
	struct talk talk;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	limit = before;
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	program_write("x", "printf 'X: y\r\n\r\n'; ulimit -S -n");
	program_run(&talk, "x", NULL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)snprintf(expected, sizeof expected, "%llu\n",
		limit.rlim_max < 1024 ? (unsigned long long)limit.rlim_max : 1024);
	assert_body(&talk, expected);
	talk_release(&talk);
}

/* A daemon may be started without any of the first three descriptors. */
static void
it_has_its_descriptors_also_when_weir_has_none(void **state)
{
	struct talk talk;
	int kept[3];

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\n'; echo oops >&2; exec wc -c");
	for (int fd = 0; fd < 3; fd++) {
		kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		assert_true(kept[fd] >= 0);
		assert_int_equal(close(fd), 0);
	}
	const bool started =
		program_start(&talk, "x", (const char *const[]){ "CONTENT_LENGTH", "70000", NULL });

	talk.to_send = 70000;
	talk_feed(&talk);
	run_loop_until(loop, talk.ended);
	for (int fd = 0; fd < 3; fd++) {
		(void)dup2(kept[fd], fd);
		(void)close(kept[fd]);
	}
	assert_true(started);
	assert_body(&talk, "70000\n");
	assert_true(talk.error_len == 0 || strcmp(talk.error_start, "oops\n") == 0);
	talk_release(&talk);
}

static void
a_program_may_answer_as_a_server_would(void **state)
{
	struct talk talk;

	(void)state;
	program_write("nph-x", "printf 'HTTP/1.1 201 Made\r\nX: y\r\n\r\nok'");
	program_run(&talk, "nph-x", NULL);
	assert_int_equal(talk.status, 201);
	assert_string_equal(talk.fields, "X: y\n");
	assert_body(&talk, "ok");
	talk_release(&talk);
}

static void
what_the_kernel_would_not_take_is_refused_before(void **state)
{
	static char large[131072];
	char names[1100][8];
	const char *many[2 * 1100 + 1] = { NULL };
	struct talk talk;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\n'; printf %s \"$HTTP_A\" | wc -c | tr -d '\\n'");
	/* NAME=VALUE and its end are 131072 bytes at the most. */
	for (size_t len = 131072 - strlen("HTTP_A=") - 2; len <= 131072; len++) {
		memset(large, 'a', sizeof large - 1);
		large[len < sizeof large ? len : sizeof large - 1] = '\0';
		program_run(&talk, "x", (const char *const[]){ "HTTP_A", large, NULL });
		const bool fits = strlen(large) + strlen("HTTP_A=") + 1 <= 131072;

		assert_row(talk.result == (fits ? EXCHANGE_COMPLETE : EXCHANGE_TOO_LARGE),
			"%zu: %s", len, talk.why);
		talk_release(&talk);
	}
	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		(void)snprintf(names[i], sizeof names[i], "V%zu", i);
		many[2 * i] = names[i];
		many[2 * i + 1] = "v";
	}
	program_run(&talk, "x", many);
	assert_int_equal(talk.result, EXCHANGE_TOO_LARGE);
	talk_release(&talk);
}

static void
a_zero_byte_reaches_no_program(void **state)
{
	const struct directory_path path = directory_path(&directory, "x");
	struct talk talk;
	struct buf params;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\nran'");
	bytes_init(&params);
	put_pairs(&params, (const char *const[]){ "SCRIPT_FILENAME", path.text, NULL });
	assert_int_equal(fcgi_pair_put(&params, SLICE("A"), slice_make("a\0b", 3)), 0);
	assert_false(talk_start_raw(&talk, pool, buf_slice(&params)));
	assert_int_equal(talk.result, EXCHANGE_FORBIDDEN);
	buf_release(&params);
	talk_release(&talk);
}

/* At each point of a start, weir's and the child's: what is there is not told to be missing, and
 * what was not started not to have said nothing. */
static void
without_descriptors_a_program_is_not_to_be_had_now(void **state)
{
	enum { PLACES = 16, SHELLS_OWN = 20 };
	struct rlimit before, few;
	unsigned busy = 0;
	int held[SHELLS_OWN], count = 0, next;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\nok'");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	do
		next = held[count++] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (next < SHELLS_OWN);
	for (unsigned more = 1; more <= PLACES; more++) {
		struct talk talk;

		few = (struct rlimit){ .rlim_cur = (rlim_t)next + more,
			.rlim_max = before.rlim_max };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		program_run(&talk, "x", NULL);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_row(talk.result == EXCHANGE_BUSY || talk.result == EXCHANGE_COMPLETE,
			"%u: %s: %s", more, exchange_result_names[talk.result], talk.why);
		busy += talk.result == EXCHANGE_BUSY;
		talk_release(&talk);
	}
	assert_in_range(busy, 5, PLACES - 1);
	while (count > 0)
		(void)close(held[--count]);
}

/* The program has been found by then, which is no result of the request. */
static void
without_memory_a_request_is_refused_with_a_reason(void **state)
{
	enum { PIECES = 12 };
	unsigned refused = 0;

	(void)state;
	program_write("x", "printf 'X: y\r\n\r\nok'");
	for (unsigned nth = 1; nth <= PIECES; nth++) {
		struct talk talk;

		until_failure = nth;
		const bool is_started = program_start(&talk, "x", NULL);

		until_failure = 0;
		if (is_started) {
			exchange_body_end(talk.exchange);
			talk_finish(&talk);
		} else {
			refused++;
			assert_row(talk.result == EXCHANGE_BUSY && talk.why[0] != '\0', "%u: %s",
				nth, exchange_result_names[talk.result]);
		}
		talk_release(&talk);
	}
	assert_in_range(refused, 2, PIECES - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answers_before_it_reads_all),
		TEST(a_body_that_nobody_reads_is_dropped),
		TEST(error_output_is_told_apart),
		TEST(the_environment_is_the_requests),
		TEST(it_has_three_descriptors_and_a_place_of_its_own),
		TEST(it_may_open_what_select_takes),
		TEST(it_has_its_descriptors_also_when_weir_has_none),
		TEST(a_program_may_answer_as_a_server_would),
		TEST(what_the_kernel_would_not_take_is_refused_before),
		TEST(a_zero_byte_reaches_no_program),
		TEST(without_memory_a_request_is_refused_with_a_reason),
		TEST(without_descriptors_a_program_is_not_to_be_had_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
