/* The front's connections as a whole: how many there may be, which go first, and how they end. */
#include "ask.h"

#include "weir/counter.h"

#include <sys/resource.h>
#include <unistd.h>

static void
allow(unsigned connections)
{
	struct front_settings settings = rig_settings();

	settings.max_connections = connections;
	rig_configure(&rig, &settings);
}

static void
send_request(int fd, const char *const *params, bool keep)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = params, .keep = keep });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	buf_release(&bytes);
}

static void
assert_answer(int fd, size_t len)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 200);
	assert_true(len == 0 || answer_body(&answer).len == len);
	answer_release(&answer);
}

/* Whether something has come, or the end. */
static bool
is_quiet(int fd)
{
	struct pollfd state = { .fd = fd, .events = POLLIN };

	return poll(&state, 1, 0) == 0;
}

/* ---- how many there may be ---- */

static void
longest_idle_connection_makes_room_for_a_new_one(void **state)
{
	int fds[5];

	(void)state;
	allow(4);
	const int64_t evicted = counter_sum(COUNT_CONNECTIONS_EVICTED);

	for (size_t i = 0; i < LENGTH_OF(fds) - 1; i++) {
		fds[i] = rig_connect(&rig);
		send_request(fds[i], dump, true);
		assert_answer(fds[i], 0);
	}
	/* The first is used again, so that the second has been idle for longest. */
	send_request(fds[0], dump, true);
	assert_answer(fds[0], 0);
	fds[4] = rig_connect(&rig);
	send_request(fds[4], dump, true);
	assert_answer(fds[4], 0);
	assert_ended(fds[1]);
	send_request(fds[0], dump, true);
	assert_answer(fds[0], 0);
	assert_int_equal(counter_sum(COUNT_CONNECTIONS_EVICTED) - evicted, 1);
	assert_int_equal(rig_connections(), 4);
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		(void)close(fds[i]);
}

/* It has left our hands, but nobody has read it yet. */
static void
answer_that_is_not_read_yet_is_not_dropped_to_make_room(void **state)
{
	int slow, other;

	(void)state;
	allow(1);
	slow = rig_connect(&rig);
	send_request(slow, (const char *const[]){ "MODE", "flood", "SIZE", "1000000", NULL }, true);
	assert_soon(rig_look(&rig).requests == 1);
	assert_soon(rig_look(&rig).open == 0);
	other = rig_connect(&rig);
	send_request(other, dump, true);
	assert_answer(other, 0);
	struct answer answer;

	answer_read(&answer, slow, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 1000000);
	answer_release(&answer);
	(void)close(slow);
	(void)close(other);
}

static void
without_an_idle_connection_new_ones_wait_for_their_turn(void **state)
{
	int fds[10];

	(void)state;
	allow(3);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		send_request(fds[i], waits, i % 2 == 0);
	}
	for (size_t done = 0; done < LENGTH_OF(fds); done++) {
		const size_t left = LENGTH_OF(fds) - done;

		assert_soon(rig_look(&rig).open == (left < 3 ? left : 3));
		assert_true(rig_connections() <= 3);
		rig_answer(&rig);
		/* Whichever it was: it is answered, and a close makes room if it was not kept. */
		size_t answered = LENGTH_OF(fds);

		for (size_t i = 0; answered == LENGTH_OF(fds); i = (i + 1) % LENGTH_OF(fds)) {
			if (fds[i] >= 0 && !is_quiet(fds[i]))
				answered = i;
		}
		assert_answer(fds[answered], 0);
		(void)close(fds[answered]);
		fds[answered] = -1;
	}
	assert_int_equal(rig_look(&rig).requests, LENGTH_OF(fds));
}

static void
thousand_half_heads_delay_nobody(void **state)
{
	enum { HALVES = 1000 };
	static int fds[HALVES];
	struct rlimit limit;
	struct buf bytes;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 2 * HALVES + 100)
		skip();
	allow(HALVES + 10);
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = dump });
	for (size_t i = 0; i < HALVES; i++) {
		fds[i] = rig_connect(&rig);
		assert_true(socket_send(
			fds[i], slice_first(buf_slice(&bytes), 1 + i % (bytes.len - 20))));
	}
	for (unsigned i = 0; i < 10; i++)
		assert_rig_serves(&rig);
	assert_soon(rig_connections() == HALVES);
	/* And each of them may still be finished. */
	for (size_t i = 0; i < HALVES; i++) {
		assert_true(socket_send(
			fds[i], slice_skip(buf_slice(&bytes), 1 + i % (bytes.len - 20))));
	}
	for (size_t i = 0; i < HALVES; i++) {
		assert_answer(fds[i], 0);
		(void)close(fds[i]);
	}
	buf_release(&bytes);
}

static void
settings_hold_for_what_comes_then(void **state)
{
	(void)state;
	struct front_settings settings = rig_settings();
	const int fd = rig_connect(&rig);

	send_request(fd, dump, true);
	assert_answer(fd, 0);
	settings.max_params = 1;
	rig_configure(&rig, &settings);
	struct answer answer;

	answer_to(&answer, fd,
		&(const struct request_spec){
			.params = (const char *const[]){ "A", "b", "C", "d", NULL } });
	assert_int_equal(answer_status(&answer), 431);
	answer_release(&answer);
	(void)close(fd);
}

/* ---- stopping ---- */

static void
stop_closes_what_is_idle_and_lets_requests_end(void **state)
{
	int idle, kept, closing;

	(void)state;
	idle = rig_connect(&rig);
	send_request(idle, dump, true);
	assert_answer(idle, 0);
	kept = rig_connect(&rig);
	send_request(kept, waits, true);
	closing = rig_connect(&rig);
	send_request(closing, waits, false);
	assert_soon(rig_look(&rig).open == 2);
	rig_stop(&rig);
	assert_ended(idle);
	assert_int_equal(rig_look(&rig).empty, 0);
	rig_answer(&rig);
	rig_answer(&rig);
	/* The kept one is told that it is not kept. */
	assert_answer(kept, 0);
	assert_ended(kept);
	assert_answer(closing, 0);
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

static void
stop_does_not_cut_an_answer_that_is_still_being_read(void **state)
{
	int slow;

	(void)state;
	slow = rig_connect(&rig);
	send_request(slow, (const char *const[]){ "MODE", "flood", "SIZE", "1000000", NULL }, true);
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

static void
cut_ends_every_request_and_connection(void **state)
{
	int fds[6];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		if (i > 0)
			send_request(fds[i], i < 3 ? dump : waits, i % 2 == 0);
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(longest_idle_connection_makes_room_for_a_new_one),
		TEST(answer_that_is_not_read_yet_is_not_dropped_to_make_room),
		TEST(without_an_idle_connection_new_ones_wait_for_their_turn),
		TEST(thousand_half_heads_delay_nobody),
		TEST(settings_hold_for_what_comes_then),
		TEST(stop_closes_what_is_idle_and_lets_requests_end),
		TEST(stop_without_connections_is_over_at_once),
		TEST(stop_does_not_cut_an_answer_that_is_still_being_read),
		TEST(cut_ends_every_request_and_connection),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
