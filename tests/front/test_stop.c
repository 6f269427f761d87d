/* How a front stops: what is idle goes, what waits or has begun is served, what is left is cut. */
#include "ask.h"

#include <errno.h>
#include <unistd.h>

/* ---- stopping ---- */

static void
stop_closes_what_is_idle_and_lets_requests_end(void **state)
{
	int idle, kept, closing;

	(void)state;
	idle = rig_connect(&rig);
	ask_whole(idle, dump, true);
	assert_answer_of(idle, 0);
	kept = rig_connect(&rig);
	ask_whole(kept, waits, true);
	closing = rig_connect(&rig);
	ask_whole(closing, waits, false);
	assert_soon(rig_look(&rig).open == 2);
	rig_stop(&rig);
	assert_ended(idle);
	assert_int_equal(rig_look(&rig).empty, 0);
	rig_answer(&rig);
	rig_answer(&rig);
	/* The kept one is told that it is not kept. */
	assert_answer_of(kept, 0);
	assert_ended(kept);
	assert_answer_of(closing, 0);
	assert_ended(closing);
	assert_int_equal(rig_look(&rig).empty, 0);
	(void)close(kept);
	(void)close(closing);
	assert_soon(rig_look(&rig).empty == 1);
	assert_int_equal(rig_connections(), 0);
	(void)close(idle);
}

static void
stop_without_connections_is_over_at_once(void **state)
{
	(void)state;
	rig_stop(&rig);
	assert_soon(rig_look(&rig).empty == 1);
}

/* Made but never used, as web servers keep some: it would delay the end by the whole drain. */
static void
stop_does_not_wait_for_a_connection_that_never_spoke(void **state)
{
	int fds[3];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		fds[i] = rig_connect(&rig);
	assert_soon(rig_connections() == LENGTH_OF(fds));
	rig_stop(&rig);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		assert_ended(fds[i]);
		(void)close(fds[i]);
	}
	assert_soon(rig_look(&rig).empty == 1);
}

/* On a new connection and on a kept one, before and while it stops, in a record's head and body. */
static void
half_a_record_delays_the_end_by_a_second_of_silence(void **state)
{
	static const size_t parts[] = { 1, 8, 12, 16, 20, 40 };
	int fds[3 * LENGTH_OF(parts)];
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_usual(&bytes);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		if (i % 3 == 1) {
			ask_whole(fds[i], dump, true);
			assert_answer_of(fds[i], 0);
		}
		if (i % 3 != 2)
			assert_true(socket_send(fds[i], slice_make(bytes.data, parts[i / 3])));
	}
	assert_soon(rig_connections() == LENGTH_OF(fds));
	assert_rig_serves(&rig);
	rig_stop(&rig);
	for (size_t i = 2; i < LENGTH_OF(fds); i += 3)
		assert_true(socket_send(fds[i], slice_make(bytes.data, parts[i / 3])));
	(void)poll(NULL, 0, 500);
	assert_int_equal(rig_connections(), LENGTH_OF(fds));
	assert_within_s(rig_connections() == 0 && rig_look(&rig).empty == 1, 3);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		assert_ended(fds[i]);
		(void)close(fds[i]);
	}
	buf_release(&bytes);
}

/* It is silent for less than a second each time, and for more altogether. */
static void
half_a_head_may_come_slowly_while_it_stops(void **state)
{
	const int fd = rig_connect(&rig);
	struct answer answer;
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_usual(&bytes);
	assert_true(socket_send(fd, slice_make(bytes.data, 5)));
	assert_soon(rig_connections() == 1);
	rig_stop(&rig);
	for (size_t at = 5; at < 25; at += 10) {
		(void)poll(NULL, 0, 600);
		assert_true(socket_send(fd, slice_make(bytes.data + at, 10)));
	}
	assert_true(socket_send(fd, slice_skip(buf_slice(&bytes), 25)));
	answer_read(&answer, fd, 1);
	assert_usual_answer(&answer);
	answer_release(&answer);
	buf_release(&bytes);
	(void)close(fd);
	assert_soon(rig_look(&rig).empty == 1);
}

/* It was connected just before; its request comes just behind. */
static void
request_on_its_way_when_it_stops_is_served(void **state)
{
	struct front_settings settings = rig_settings();

	(void)state;
	settings.stop_grace_us = 60 * INT64_C(1000000);
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	assert_soon(rig_connections() == 1);
	rig_stop(&rig);
	/* Some turns of the loop. */
	for (unsigned i = 0; i < 10; i++)
		rig_want_body(&rig);
	ask_whole(fd, dump, true);
	assert_answer_of(fd, 0);
	assert_ended(fd);
	(void)close(fd);
	assert_soon(rig_look(&rig).empty == 1);
}

static void
send_and_stop(void *context)
{
	ask_whole(*(const int *)context, waits, true);
	front_stop(rig.front, FRONT_REST_LEFT, rig_on_empty, &rig);
}

/* The loop learns of both in one turn. */
static void
request_unread_on_a_kept_connection_when_it_stops_is_served(void **state)
{
	int fd = rig_connect(&rig);

	(void)state;
	ask_whole(fd, dump, true);
	assert_answer_of(fd, 0);
	loop_thread_call(&rig.thread, send_and_stop, &fd);
	assert_soon(rig_look(&rig).open == 1);
	rig_answer(&rig);
	assert_answer_of(fd, 0);
	assert_ended(fd);
	(void)close(fd);
	assert_soon(rig_look(&rig).empty == 1);
}

static void
stop_does_not_cut_an_answer_that_is_still_being_read(void **state)
{
	int slow;

	(void)state;
	slow = rig_connect(&rig);
	ask_whole(slow, (const char *const[]){ "MODE", "flood", "SIZE", "1000000", NULL }, true);
	assert_soon(rig_look(&rig).requests == 1);
	assert_soon(rig_look(&rig).open == 0);
	rig_stop(&rig);
	struct answer answer;

	answer_read(&answer, slow, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 1000000);
	answer_release(&answer);
	assert_ended(slow);
	(void)close(slow);
	assert_soon(rig_look(&rig).empty == 1);
}

/* One has the only place, the others wait at the socket. */
static void
fill_backlog(int *fds, size_t count)
{
	ask_allow(1);
	fds[0] = rig_connect(&rig);
	ask_whole(fds[0], waits, true);
	assert_soon(rig_look(&rig).open == 1);
	for (size_t i = 1; i < count; i++) {
		fds[i] = rig_connect(&rig);
		ask_whole(fds[i], waits, true);
	}
}

static void
close_all(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)close(fds[i]);
}

static bool
is_refused(void)
{
	const struct directory_path path = directory_path(&rig.directory, "s");
	const struct sockaddr_un name = unix_name(path.text);
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const bool refused = connect(fd, (const struct sockaddr *)&name, sizeof name) != 0 &&
		errno == ECONNREFUSED;

	(void)close(fd);
	return refused;
}

static void
what_waits_when_it_stops_is_served_as_room_comes_about(void **state)
{
	static const enum front_rest rests[] = { FRONT_REST_TAKEN, FRONT_REST_LAST };
	int fds[10];

	for (size_t i = 0; i < LENGTH_OF(rests); i++) {
		fill_backlog(fds, LENGTH_OF(fds));
		rig.rest = rests[i];
		rig_stop(&rig);
		for (size_t done = 0; done < LENGTH_OF(fds); done++) {
			assert_soon(rig_look(&rig).open == 1);
			assert_int_equal(rig_look(&rig).empty, 0);
			rig_answer(&rig);
			assert_answer_of(fds[done], 0);
			assert_ended(fds[done]);
			(void)close(fds[done]);
		}
		assert_soon(rig_look(&rig).empty == 1);
		assert_int_equal(is_refused(), rests[i] == FRONT_REST_LAST);
		assert_int_equal(ask_tear_down(state), 0);
		assert_int_equal(ask_set_up(state), 0);
	}
}

/* As in the case of those that were there before. */
static void
silent_one_that_waits_when_it_stops_is_not_waited_for(void **state)
{
	int fds[3];

	(void)state;
	ask_allow(1);
	fds[0] = rig_connect(&rig);
	ask_whole(fds[0], waits, true);
	assert_soon(rig_look(&rig).open == 1);
	for (size_t i = 1; i < LENGTH_OF(fds); i++)
		fds[i] = rig_connect(&rig);
	rig.rest = FRONT_REST_LAST;
	rig_stop(&rig);
	rig_answer(&rig);
	assert_answer_of(fds[0], 0);
	(void)close(fds[0]);
	assert_soon(rig_look(&rig).empty == 1);
	close_all(fds + 1, LENGTH_OF(fds) - 1);
}

static void
what_others_serve_is_left_to_them(void **state)
{
	int fds[5];

	(void)state;
	fill_backlog(fds, LENGTH_OF(fds));
	rig.rest = FRONT_REST_LEFT;
	rig_stop(&rig);
	rig_answer(&rig);
	assert_answer_of(fds[0], 0);
	(void)close(fds[0]);
	assert_soon(rig_look(&rig).empty == 1);
	rig_cut_all(&rig);
	assert_int_equal(rig.cut, 0);
	for (size_t i = 1; i < LENGTH_OF(fds); i++) {
		const int theirs = accept(rig.listening, NULL, NULL);

		assert_true(theirs >= 0);
		(void)close(theirs);
	}
	assert_int_equal(rig_look(&rig).requests, 1);
	close_all(fds + 1, LENGTH_OF(fds) - 1);
}

static void
what_still_waits_at_the_end_is_cut_and_counted(void **state)
{
	int fds[6];

	(void)state;
	fill_backlog(fds, LENGTH_OF(fds));
	/* Who has said nothing has no request that could be cut. */
	const int silent = rig_connect(&rig);

	rig.rest = FRONT_REST_LAST;
	rig_stop(&rig);
	rig_cut_all(&rig);
	assert_int_equal(rig.cut, LENGTH_OF(fds));
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		(void)socket_read_to_end(fds[i]);
	assert_true(socket_read_to_end(silent));
	close_all(fds, LENGTH_OF(fds));
	(void)close(silent);
}

static void
cut_ends_every_request_and_connection(void **state)
{
	int fds[6];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		if (i > 0)
			ask_whole(fds[i], i < 3 ? dump : waits, i % 2 == 0);
	}
	assert_soon(rig_look(&rig).open == 3);
	rig_stop(&rig);
	rig_cut_all(&rig);
	assert_int_equal(rig.cut, 3);
	assert_int_equal(rig_look(&rig).gone_cut, 3);
	assert_int_equal(rig_connections(), 0);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		(void)socket_read_to_end(fds[i]);
		(void)close(fds[i]);
	}
}

static void
answer_that_has_not_left_is_counted_as_cut(void **state)
{
	int fds[2];

	(void)state;
	/* On a connection that lingers, and on a kept one. */
	for (unsigned keep = 0; keep < 2; keep++) {
		fds[keep] = rig_connect(&rig);
		ask_whole(fds[keep],
			(const char *const[]){ "MODE", "flood", "SIZE", "1000000", NULL },
			keep != 0);
	}
	assert_soon(rig_look(&rig).requests == 2);
	assert_soon(rig_look(&rig).open == 0);
	rig_cut_all(&rig);
	assert_int_equal(rig.cut, 2);
	assert_int_equal(rig_look(&rig).gone_cut, 0);
	close_all(fds, LENGTH_OF(fds));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stop_closes_what_is_idle_and_lets_requests_end),
		TEST(stop_without_connections_is_over_at_once),
		TEST(stop_does_not_wait_for_a_connection_that_never_spoke),
		TEST(half_a_record_delays_the_end_by_a_second_of_silence),
		TEST(half_a_head_may_come_slowly_while_it_stops),
		TEST(request_on_its_way_when_it_stops_is_served),
		TEST(request_unread_on_a_kept_connection_when_it_stops_is_served),
		TEST(stop_does_not_cut_an_answer_that_is_still_being_read),
		TEST(what_waits_when_it_stops_is_served_as_room_comes_about),
		TEST(silent_one_that_waits_when_it_stops_is_not_waited_for),
		TEST(what_others_serve_is_left_to_them),
		TEST(what_still_waits_at_the_end_is_cut_and_counted),
		TEST(answer_that_has_not_left_is_counted_as_cut),
		TEST(cut_ends_every_request_and_connection),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
