/* http_server.h: what an operator's browser and Prometheus get. */
#include "../lib/directory.h"
#include "../lib/loop_thread.h"
#include "../lib/soon.h"
#include "../lib/sockets.h"
#include "weir/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static struct directory directory;
static struct loop_thread thread;
static struct http_server *server;
static int listening;
static char last_path[256]; /* as the handler got it */

enum { LARGE = 3 * 1024 * 1024 };

static void
fill_large(struct buf *body)
{
	char *at = buf_reserve(body, LARGE);

	if (at == NULL)
		return;
	memset(at, 'x', LARGE);
	buf_commit(body, LARGE);
}

static void
handle(void *context, const char *path, struct http_answer *answer)
{
	(void)context;
	(void)snprintf(last_path, sizeof last_path, "%s", path);
	if (strcmp(path, "/large") == 0) {
		answer->status = 200;
		fill_large(&answer->body);
	} else if (strcmp(path, "/json") == 0) {
		answer->status = 503;
		answer->content_type = "application/json";
		answer->status = buf_append(&answer->body, "{}", 2) == 0 ? 503 : 500;
	}
}

static void
open_server(void *context)
{
	struct err *err = context;

	server = http_server_new(thread.loop, listening, handle, NULL, err);
}

static void
free_server(void *context)
{
	(void)context;
	http_server_free(server);
	server = NULL;
}

static int
set_up(void **state)
{
	struct err err = { "" };

	(void)state;
	directory_make(&directory);
	listening = unix_listen(directory_path(&directory, "s").text, 100);
	(void)fcntl(listening, F_SETFL, O_NONBLOCK);
	loop_thread_start(&thread);
	loop_thread_call(&thread, open_server, &err);
	return server == NULL ? -1 : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	loop_thread_call(&thread, free_server, NULL);
	loop_thread_stop(&thread);
	directory_remove(&directory);
	return 0;
}

/* The whole answer, for free(). */
static char *
ask(const char *request)
{
	const int fd = unix_connect(directory_path(&directory, "s").text);
	size_t len = 0, size = 65536;
	char *answer = malloc(size);
	ssize_t n;

	assert_non_null(answer);
	(void)socket_send(fd, slice_of(request));
	while ((n = recv(fd, answer + len, size - len - 1, 0)) > 0) {
		len += (size_t)n;
		if (len == size - 1) {
			size *= 2;
			answer = realloc(answer, size);
			assert_non_null(answer);
		}
	}
	assert_true(n == 0 || errno == ECONNRESET);
	answer[len] = '\0';
	(void)close(fd);
	return answer;
}

static bool
begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static void
answer_has_the_handlers_status_type_and_body(void **state)
{
	char *answer = ask("GET /json HTTP/1.0\r\n\r\n");

	(void)state;
	assert_row(begins_with(answer, "HTTP/1.0 503 "), "%s", answer);
	assert_non_null(strstr(answer, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(answer, "Cache-Control: no-store\r\n"));
	assert_non_null(strstr(answer, "\r\n\r\n{}"));
	free(answer);
}

static void
path_comes_without_query_and_authority(void **state)
{
	static const char *const targets[][2] = { { "/a/b?c=d", "/a/b" },
		{ "http://other/metrics", "/metrics" }, { "/", "/" }, { "/?x", "/" },
		{ "http://other", "/" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(targets); i++) {
		char request[200];

		(void)snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", targets[i][0]);
		char *answer = ask(request);

		assert_row(begins_with(answer, "HTTP/1.0 404 "), "%s: %s", targets[i][0], answer);
		assert_non_null(strstr(answer, "\r\n\r\nNot Found\n"));
		assert_string_equal(last_path, targets[i][1]);
		free(answer);
	}
}

static void
head_has_no_body(void **state)
{
	char *answer = ask("HEAD /json HTTP/1.0\r\n\r\n");

	(void)state;
	assert_row(begins_with(answer, "HTTP/1.0 503 "), "%s", answer);
	assert_non_null(strstr(answer, "Content-Length: 2\r\n"));
	assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
	free(answer);
}

static void
other_methods_are_not_served(void **state)
{
	static const char *const methods[] = { "POST", "PUT", "DELETE", "OPTIONS", "TRACE",
		"NONSENSE" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(methods); i++) {
		char request[200];

		last_path[0] = '\0';
		(void)snprintf(request, sizeof request,
			"%s /json HTTP/1.0\r\nContent-Length: 0\r\n\r\n", methods[i]);
		char *answer = ask(request);

		assert_row(strstr(answer, "503") == NULL, "%s: %s", methods[i], answer);
		assert_string_equal(last_path, "");
		free(answer);
	}
}

static void
large_answer_comes_whole(void **state)
{
	char *answer = ask("GET /large HTTP/1.0\r\n\r\n");
	const char *body = strstr(answer, "\r\n\r\n");

	(void)state;
	assert_non_null(body);
	assert_int_equal(strlen(body + 4), LARGE);
	free(answer);
}

static void
connection_is_kept_for_the_next_request(void **state)
{
	const int fd = unix_connect(directory_path(&directory, "s").text);

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		char answer[1000];
		size_t len = 0;

		assert_true(socket_send(fd, SLICE("GET /json HTTP/1.1\r\nHost: x\r\n\r\n")));
		do {
			const ssize_t n = recv(fd, answer + len, sizeof answer - 1 - len, 0);

			assert_true(n > 0);
			len += (size_t)n;
			answer[len] = '\0';
		} while (strstr(answer, "\r\n\r\n{}") == NULL);
		assert_true(begins_with(answer, "HTTP/1.1 503 "));
	}
	(void)close(fd);
}

static void
endless_head_and_large_body_are_refused(void **state)
{
	enum { MUCH = 1000000 };
	char *head = malloc(MUCH + 100);

	(void)state;
	assert_non_null(head);
	memset(head, 'x', MUCH);
	memcpy(head, "GET /json HTTP/1.0\r\nX: ", 23);
	memcpy(head + MUCH, "\r\n\r\n", 5);
	last_path[0] = '\0';
	char *answer = ask(head);

	assert_row(strstr(answer, "503") == NULL, "%.100s", answer);
	assert_string_equal(last_path, "");
	free(answer);
	answer = ask("GET /json HTTP/1.0\r\nContent-Length: 100000000\r\n\r\n");
	assert_row(strstr(answer, "503") == NULL, "%.100s", answer);
	assert_string_equal(last_path, "");
	free(answer);
	free(head);
}

static void
nonsense_is_survived(void **state)
{
	static const char *const rows[] = { "\r\n\r\n", "GET\r\n\r\n", "GET /json\r\n\r\n",
		"\x16\x03\x01\x02\x01\xfc\x03\x03", "GET  HTTP/1.0\r\n\r\n",
		"GET /%00 HTTP/1.0\r\n\r\n", "GET /json HTTP/9.9\r\n\r\n" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int fd = unix_connect(directory_path(&directory, "s").text);

		assert_true(socket_send(fd, slice_of(rows[i])));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		(void)socket_read_to_end(fd);
		(void)close(fd);
	}
	char *answer = ask("GET /json HTTP/1.0\r\n\r\n");

	assert_true(begins_with(answer, "HTTP/1.0 503 "));
	free(answer);
}

static void
server_may_go_with_connections_open(void **state)
{
	int fds[10];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = unix_connect(directory_path(&directory, "s").text);
		assert_true(
			socket_send(fds[i], SLICE("GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /")));
	}
	char byte;

	assert_int_equal(recv(fds[0], &byte, 1, 0), 1);
	loop_thread_call(&thread, free_server, NULL);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		(void)socket_read_to_end(fds[i]);
		(void)close(fds[i]);
	}
}

/* ---- how many there may be ---- */

enum { MANY = 3 * HTTP_CONNECTIONS_MAX };

static void
connect_many(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fds[i] = unix_connect(directory_path(&directory, "s").text);
}

static bool
is_closed(int fd)
{
	struct pollfd state = { .fd = fd, .events = POLLIN };

	return poll(&state, 1, 0) == 1;
}

static size_t
count_closed(const int *fds, size_t count)
{
	size_t closed = 0;

	for (size_t i = 0; i < count; i++)
		closed += is_closed(fds[i]) ? 1 : 0;
	return closed;
}

static void
close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)close(fds[i]);
}

static void
assert_served(void)
{
	char *answer = ask("GET /json HTTP/1.0\r\n\r\n");

	assert_row(begins_with(answer, "HTTP/1.0 503 "), "%s", answer);
	free(answer);
}

static void
longest_idle_connection_goes_for_a_new_one(void **state)
{
	int fds[MANY];

	(void)state;
	connect_many(fds, MANY);
	assert_served();
	/* With ours they were one more, and it has gone again. */
	assert_soon(count_closed(fds, MANY) >= MANY - HTTP_CONNECTIONS_MAX);
	assert_in_range(count_closed(fds, MANY), MANY - HTTP_CONNECTIONS_MAX,
		MANY - HTTP_CONNECTIONS_MAX + 1);
	for (size_t i = 0; i < MANY - HTTP_CONNECTIONS_MAX; i++)
		assert_row(is_closed(fds[i]), "%zu", i);
	close_all(fds, MANY);
}

/* Half heads are idle too, and one that has just been answered is the last to go. */
static void
connection_in_use_outlives_those_that_only_stand_there(void **state)
{
	int fds[MANY], used;

	(void)state;
	connect_many(&used, 1);
	for (size_t i = 0; i < MANY; i++) {
		char answer[1000];

		connect_many(&fds[i], 1);
		assert_true(socket_send(fds[i], SLICE("GET /js")));
		if (i % (HTTP_CONNECTIONS_MAX / 4) != 0)
			continue;
		assert_true(socket_send(used, SLICE("GET /json HTTP/1.1\r\nHost: x\r\n\r\n")));
		const ssize_t n = recv(used, answer, sizeof answer, 0);

		assert_row(n > 0, "%zu", i);
	}
	assert_false(is_closed(used));
	close_all(fds, MANY);
	(void)close(used);
}

static void
read_cpu(void *context)
{
	int64_t *cpu_us = context;

	*cpu_us = thread_cpu_us();
}

/* Nobody is cut off, and nothing spins. */
static void
while_all_are_being_answered_new_ones_wait(void **state)
{
	int fds[HTTP_CONNECTIONS_MAX], late;
	int64_t before_us, after_us;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		char byte;

		connect_many(&fds[i], 1);
		assert_true(socket_send(fds[i], SLICE("GET /large HTTP/1.0\r\n\r\n")));
		assert_int_equal(recv(fds[i], &byte, 1, 0), 1);
	}
	connect_many(&late, 1);
	assert_true(socket_send(late, SLICE("GET /json HTTP/1.0\r\n\r\n")));
	loop_thread_call(&thread, read_cpu, &before_us);
	(void)poll(NULL, 0, 200);
	loop_thread_call(&thread, read_cpu, &after_us);
	assert_in_range(after_us - before_us, 0, 100000);
	assert_false(is_closed(late));
	for (size_t i = 1; i < LENGTH_OF(fds); i++)
		assert_true(socket_read_to_end(fds[i]));
	assert_soon(is_closed(late));
	assert_true(socket_read_to_end(fds[0]));
	assert_true(socket_read_to_end(late));
	close_all(fds, LENGTH_OF(fds));
	(void)close(late);
}

static void
client_may_shut_its_side_behind_the_request(void **state)
{
	const int fd = unix_connect(directory_path(&directory, "s").text);
	char answer[1000];
	size_t len = 0;
	ssize_t n;

	(void)state;
	assert_true(socket_send(fd, SLICE("GET /json HTTP/1.1\r\nHost: x\r\n\r\n")));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	while ((n = recv(fd, answer + len, sizeof answer - 1 - len, 0)) > 0)
		len += (size_t)n;
	answer[len] = '\0';
	assert_int_equal(n, 0);
	assert_non_null(strstr(answer, "\r\n\r\n{}"));
	(void)close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_has_the_handlers_status_type_and_body),
		TEST(path_comes_without_query_and_authority),
		TEST(head_has_no_body),
		TEST(other_methods_are_not_served),
		TEST(large_answer_comes_whole),
		TEST(connection_is_kept_for_the_next_request),
		TEST(endless_head_and_large_body_are_refused),
		TEST(nonsense_is_survived),
		TEST(server_may_go_with_connections_open),
		TEST(longest_idle_connection_goes_for_a_new_one),
		TEST(connection_in_use_outlives_those_that_only_stand_there),
		TEST(while_all_are_being_answered_new_ones_wait),
		TEST(client_may_shut_its_side_behind_the_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
