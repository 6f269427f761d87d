/*
 * Web servers that read slowly, or not at all: whoever reads on gets everything, whoever does not
 * costs a bounded queue and is ended.
 */
#include "ask.h"

#include "weir/counter.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* More than the kernel takes for a peer that does not read. */
#define SIZE "1000000"

static const char *const flood[] = { "MODE", "flood", "SIZE", SIZE, NULL };

/* Every clock but that of sending is short. */
static struct front_settings
hasty(void)
{
	struct front_settings settings = rig_settings();

	settings.body_timeout_us = 50000;
	settings.linger_timeout_us = 50000;
	settings.linger_total_us = 100000;
	return settings;
}

static void
assert_whole(int fd)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 1000000);
	answer_release(&answer);
}

/* ---- who reads slowly ---- */

static void
tail_of_an_answer_waits_for_a_slow_reader(void **state)
{
	const struct front_settings settings = hasty();

	(void)state;
	ask_anew(&settings);
	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = rig_connect(&rig);

		ask_begin(fd, keep != 0, flood);
		assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).requests == keep + 1);
		(void)poll(NULL, 0, 300);
		assert_int_equal(rig_connections(), 1);
		assert_whole(fd);
		if (keep != 0)
			assert_goes_on(fd);
		else
			assert_ended(fd);
		(void)close(fd);
		assert_soon(rig_connections() == 0);
	}
}

/* The same when the connection must go: to make room, and when we stop. */
static void
tail_of_an_answer_waits_also_when_its_connection_is_dismissed(void **state)
{
	(void)state;
	for (unsigned stop = 0; stop < 2; stop++) {
		struct front_settings settings = hasty();

		settings.max_connections = 1;
		ask_anew(&settings);
		const int fd = rig_connect(&rig);

		ask_begin(fd, true, flood);
		assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).requests == 1);
		assert_soon(rig_look(&rig).open == 0);
		if (stop != 0)
			rig_stop(&rig);
		else
			assert_rig_serves(&rig);
		(void)poll(NULL, 0, 300);
		assert_whole(fd);
		assert_ended(fd);
		(void)close(fd);
	}
	assert_soon(rig_look(&rig).empty == 1);
}

/* It has sent its last request and says so; the answer is still on its way. */
static void
reader_that_shuts_its_side_gets_the_tail_of_its_answer(void **state)
{
	/* Kept with the body ended, kept without, kept within the head of a next request, and not
	 * kept. */
	enum { ENDED, NOT_ENDED, NEXT_HEAD, NOT_KEPT, KINDS };

	(void)state;
	for (unsigned kind = 0; kind < KINDS; kind++) {
		const int fd = rig_connect(&rig);
		const unsigned before = rig_look(&rig).requests;

		ask_begin(fd, kind != NOT_KEPT, flood);
		if (kind != NOT_ENDED)
			assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).requests == before + 1);
		assert_soon(rig_look(&rig).open == 0);
		if (kind == NEXT_HEAD)
			assert_true(socket_send(fd, SLICE("\1\1\0\1")));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		/* It has been read when another is served. */
		assert_rig_serves(&rig);
		assert_whole(fd);
		assert_ended(fd);
		/* And is not waited for any more: all has been said on both sides. */
		assert_within_s(rig_connections() == 0, 3);
		(void)close(fd);
	}
}

static void
reader_that_goes_on_is_never_too_slow(void **state)
{
	struct front_settings settings = hasty();
	static char bytes[150000];
	size_t total = 0;

	(void)state;
	settings.send_timeout_us = 2000000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);
	const int64_t start_us = clock_monotonic_us();

	ask_begin(fd, false, flood);
	for (;;) {
		const ssize_t n = recv(fd, bytes, sizeof bytes, MSG_WAITALL);

		assert_true(n >= 0);
		if (n == 0)
			break;
		total += (size_t)n;
		(void)poll(NULL, 0, 400);
	}
	assert_true(total > 1000000);
	assert_true(clock_monotonic_us() - start_us > 2000000);
	(void)close(fd);
}

/* ---- who does not read ---- */

static void
reader_that_stops_is_ended_at_the_send_timeout(void **state)
{
	/* While the answer is made; behind it, kept and not kept. */
	static const char *const modes[] = { "big", "flood", "flood" };
	struct front_settings settings = rig_settings();

	(void)state;
	settings.send_timeout_us = 100000;
	ask_anew(&settings);
	for (unsigned i = 0; i < LENGTH_OF(modes); i++) {
		const int64_t before = counter_sum(COUNT_SEND_TIMEOUTS);
		const int64_t start_us = clock_monotonic_us();
		const int fd = rig_connect(&rig);

		ask_begin(
			fd, i == 1, (const char *const[]){ "MODE", modes[i], "SIZE", SIZE, NULL });
		assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).requests == i + 1);
		assert_soon(rig_connections() == 0);
		assert_true(clock_monotonic_us() >= start_us + 100000);
		assert_int_equal(counter_sum(COUNT_SEND_TIMEOUTS) - before, 1);
		assert_int_equal(rig_look(&rig).gone_peer, 1);
		(void)close(fd);
	}
}

/* What the web server leaves unread is not made: it is not even taken. */
static void
requests_are_not_taken_faster_than_their_answers(void **state)
{
	enum { REQUESTS = 20000 };
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	for (unsigned i = 0; i < REQUESTS; i++)
		put_request(&bytes, &(const struct request_spec){ .params = dump, .keep = true });
	struct slice rest = buf_slice(&bytes);
	unsigned answered = 0;

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	for (unsigned quiet = 0; quiet < 100; quiet++) {
		const ssize_t n = send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);

		assert_true(n >= 0 || errno == EAGAIN);
		rest = slice_skip(rest, n > 0 ? (size_t)n : 0);
		(void)poll(NULL, 0, 1);
	}
	/* An answer takes more than 100 bytes: 64 KiB with us, and what the kernel takes. */
	assert_true(rest.len > 0);
	assert_true(rig_look(&rig).requests < 10000);
	/* And nothing is lost: as it reads, it is served. */
	while (answered < REQUESTS) {
		struct answer answer;
		const ssize_t n = rest.len == 0 ? 0 : send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);

		rest = slice_skip(rest, n > 0 ? (size_t)n : 0);
		assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
		answer_read(&answer, fd, 1);
		assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
		assert_true(answer_is_whole(&answer));
		answer_release(&answer);
		answered++;
	}
	buf_release(&bytes);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(tail_of_an_answer_waits_for_a_slow_reader),
		TEST(tail_of_an_answer_waits_also_when_its_connection_is_dismissed),
		TEST(reader_that_shuts_its_side_gets_the_tail_of_its_answer),
		TEST(reader_that_goes_on_is_never_too_slow),
		TEST(reader_that_stops_is_ended_at_the_send_timeout),
		TEST(requests_are_not_taken_faster_than_their_answers),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
