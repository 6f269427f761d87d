/* stream.h: connecting, and what becomes of it. */
#include "end.h"

#include <errno.h>
#include <netinet/in.h>
#include <unistd.h>

/* ---- connecting ---- */

static struct stream *
connect_unix(struct end *end, const char *path, int *error)
{
	const struct sockaddr_un name = unix_name(path);

	*end = (struct end){ 0 };
	end->stream = stream_connect(
		loop, (const struct sockaddr *)&name, sizeof name, &end_handler, end, error);
	return end->stream;
}

static struct stream *
connect_tcp(struct end *end, uint16_t port, int *error)
{
	const struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	*end = (struct end){ 0 };
	end->stream = stream_connect(
		loop, (const struct sockaddr *)&name, sizeof name, &end_handler, end, error);
	return end->stream;
}

static void
unix_socket_is_connected_at_once(void **state)
{
	const struct directory_path path = directory_path(&directory, "s");
	const int listener = unix_listen(path.text, 5);
	struct end end;
	int error = 0;
	char bytes[4];

	(void)state;
	assert_non_null(connect_unix(&end, path.text, &error));
	assert_true(stream_is_connected(end.stream));
	end_write(&end, 4, 0, 0);
	run_loop_once(loop);
	const int theirs = accept(listener, NULL, NULL);

	assert_int_equal(recv(theirs, bytes, sizeof bytes, MSG_WAITALL), 4);
	assert_int_equal(end.calls, 0);
	end_close(&end);
	(void)close(theirs);
	(void)close(listener);
}

static void
bytes_written_before_the_connection_stands_arrive(void **state)
{
	uint16_t port;
	const int listener = tcp_listen(5, &port);
	struct reader reader;
	struct end end;
	int error = 0;

	(void)state;
	assert_non_null(connect_tcp(&end, port, &error));
	end_write(&end, 100000, 0, 8);
	stream_finish(end.stream);
	const int theirs = accept(listener, NULL, NULL);

	reader_start(&reader, theirs, true);
	run_loop_until(loop, end.finishes > 0);
	assert_int_equal(end.calls & (CALL_CONNECTED | CALL_FAILED), CALL_CONNECTED);
	assert_int_equal(reader_wait(&reader), 100000);
	end_close(&end);
	(void)close(theirs);
	(void)close(listener);
}

static void
stream_may_be_closed_in_connected(void **state)
{
	uint16_t port;
	const int listener = tcp_listen(5, &port);
	struct end end;
	int error = 0;

	(void)state;
	assert_non_null(connect_tcp(&end, port, &error));
	end.close_in = CALL_CONNECTED;
	end_write(&end, 100000, 0, 8);
	stream_finish(end.stream);
	run_loop_until(loop, end.calls != 0);
	run_loop_for_ms(loop, 10);
	assert_int_equal(end.calls, CALL_CONNECTED);
	assert_false(end.called_after_close);
	(void)close(listener);
}

static void
refused_connect_is_told_at_once_or_by_failed(void **state)
{
	const struct directory_path path = directory_path(&directory, "s");
	uint16_t port;
	struct end end;
	int error = 0;

	(void)state;
	assert_null(connect_unix(&end, path.text, &error));
	assert_int_equal(error, ENOENT);
	(void)close(unix_listen(path.text, 5));
	assert_null(connect_unix(&end, path.text, &error));
	assert_int_equal(error, ECONNREFUSED);
	(void)close(tcp_listen(5, &port));
	if (connect_tcp(&end, port, &error) == NULL) {
		assert_int_equal(error, ECONNREFUSED);
		return;
	}
	end_write(&end, 100000, 0, 8);
	assert_false(stream_is_connected(end.stream));
	run_loop_until(loop, end.count > 0);
	assert_int_equal(end.calls, CALL_FAILED);
	assert_int_equal(end.error, ECONNREFUSED);
	assert_false(stream_is_connected(end.stream));
	end_close(&end);
}

static void
full_backlog_of_a_unix_socket_is_eagain(void **state)
{
	const struct directory_path path = directory_path(&directory, "s");
	const int listener = unix_listen(path.text, 2);
	struct end ends[20];
	unsigned connected = 0;
	int error = 0;

	(void)state;
	while (connected < LENGTH_OF(ends) &&
		connect_unix(&ends[connected], path.text, &error) != NULL)
		connected++;
	assert_in_range(connected, 1, 10);
	assert_int_equal(error, EAGAIN);
	for (unsigned i = 0; i < connected; i++)
		end_close(&ends[i]);
	(void)close(listener);
}

/* A full backlog of TCP answers nothing, like a host that drops packets. */
static void
connect_into_a_black_hole_ends_at_the_deadline(void **state)
{
	uint16_t port;
	const int listener = tcp_listen(0, &port);
	struct end ends[8];
	unsigned opened = 0;
	int error = 0;

	(void)state;
	while (opened < LENGTH_OF(ends)) {
		assert_non_null(connect_tcp(&ends[opened], port, &error));
		opened++;
		run_loop_for_ms(loop, 5);
	}
	struct end *last = &ends[opened - 1];

	assert_false(stream_is_connected(last->stream));
	const int64_t due_us = clock_monotonic_us() + 50000;

	stream_set_deadline(last->stream, due_us);
	end_write(last, 100, 0, 0);
	run_loop_until(loop, last->count > 0);
	assert_true(clock_monotonic_us() >= due_us);
	assert_int_equal(last->calls, CALL_EXPIRED);
	for (unsigned i = 0; i < opened; i++)
		end_close(&ends[i]);
	(void)close(listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, end_set_up, end_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stream_may_be_closed_in_connected),
		TEST(unix_socket_is_connected_at_once),
		TEST(bytes_written_before_the_connection_stands_arrive),
		TEST(refused_connect_is_told_at_once_or_by_failed),
		TEST(full_backlog_of_a_unix_socket_is_eagain),
		TEST(connect_into_a_black_hole_ends_at_the_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
