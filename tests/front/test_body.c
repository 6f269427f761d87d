/*
 * Bodies: in any pieces, late, never ended, held back by the handler; and authorizers, which have
 * none.
 */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- bodies ---- */

static void
body_empty_late_or_in_any_pieces_is_read(void **state)
{
	static const size_t lengths[] = { 0, 1, 7, 32768, 65535, 65536, 1000000, 20000000 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
		const int fd = rig_connect(&rig);
		struct answer answer;
		char length[24], expected[40];

		(void)snprintf(length, sizeof length, "%zu", lengths[i]);
		ask_begin(fd, false,
			(const char *const[]){ "MODE", "body", "CONTENT_LENGTH", length, NULL });
		assert_soon(rig_look(&rig).open == 1);
		assert_true(send_body(fd, lengths[i], false));
		assert_soon(rig_look(&rig).body_bytes == lengths[i]);
		rig.seen.body_bytes = 0;
		assert_int_equal(rig_look(&rig).open, 1);
		assert_true(send_body(fd, 0, true));
		answer_read(&answer, fd, 1);
		(void)snprintf(expected, sizeof expected, "%zu 0", lengths[i]);
		assert_slice(answer_body(&answer), slice_of(expected));
		answer_release(&answer);
		(void)close(fd);
	}
}

static void
body_is_not_read_before_it_is_wanted(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, false,
		(const char *const[]){ "MODE", "wait", "CONTENT_LENGTH", "100000", NULL });
	assert_true(send_body(fd, 100000, true));
	assert_soon(rig_look(&rig).open == 1);
	assert_rig_serves(&rig);
	assert_int_equal(rig_look(&rig).pieces, 0);
	assert_int_equal(rig_look(&rig).body_ends, 0);
	/* All of it is still there. */
	rig_want_body(&rig);
	assert_answered(fd, 200);
	assert_int_equal(rig_look(&rig).body_bytes, 100000);
	(void)close(fd);
}

static void
body_that_is_held_slows_the_web_server_down(void **state)
{
	const uint64_t total = 4 * 1024 * 1024;
	static char zeros[32768];
	const int fd = rig_connect(&rig);
	struct buf bytes;
	uint64_t sent = 0;

	(void)state;
	ask_begin(fd, false,
		(const char *const[]){ "MODE", "hold", "CONTENT_LENGTH", "4194304", NULL });
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	bytes_init(&bytes);
	while (sent < total) {
		put_record(&bytes, FCGI_STDIN, 1, slice_make(zeros, sizeof zeros), 0);
		sent += sizeof zeros;
	}
	put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
	struct slice rest = buf_slice(&bytes);

	/* As long as nobody wants more, no more than the kernel and a read or two hold. */
	assert_soon(rig_look(&rig).open == 1);
	for (unsigned i = 0; i < 200; i++) {
		const ssize_t n = send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);

		rest = slice_skip(rest, n > 0 ? (size_t)n : 0);
		(void)poll(NULL, 0, 1);
	}
	assert_true(bytes.len - rest.len < 2 * 1024 * 1024);
	assert_int_equal(rig_look(&rig).pieces, 1);
	while (rig_look(&rig).body_ends == 0) {
		const ssize_t n = rest.len == 0 ? 0 : send(fd, rest.ptr, rest.len, MSG_NOSIGNAL);

		assert_true(n >= 0 || errno == EAGAIN);
		rest = slice_skip(rest, n > 0 ? (size_t)n : 0);
		rig_want_body(&rig);
	}
	assert_int_equal(rig_look(&rig).body_bytes, total);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	assert_answered(fd, 200);
	buf_release(&bytes);
	(void)close(fd);
}

static void
body_that_stops_is_408_at_its_deadline(void **state)
{
	struct front_settings settings = rig_settings();

	(void)state;
	settings.body_timeout_us = 100000;
	ask_anew(&settings);
	for (unsigned some = 0; some < 2; some++) {
		const int fd = rig_connect(&rig);
		const int64_t start_us = clock_monotonic_us();

		ask_begin(fd, true, reads_body);
		assert_true(send_body(fd, some * 99999, false));
		assert_answered(fd, 408);
		assert_true(clock_monotonic_us() >= start_us + 100000);
		assert_ended(fd);
		(void)close(fd);
	}
	assert_int_equal(rig_look(&rig).gone_timeout, 2);
	/* Time in which nobody wants the body does not count. */
	const int fd = rig_connect(&rig);

	ask_begin(fd, false, waits);
	assert_soon(rig_look(&rig).open == 1);
	(void)poll(NULL, 0, 250);
	assert_int_equal(rig_look(&rig).gone_timeout, 2);
	rig_answer(&rig);
	assert_answered(fd, 200);
	(void)close(fd);
}

/* The web server is slow to read: that is no body that stopped. */
static void
body_that_is_held_has_no_deadline(void **state)
{
	struct front_settings settings = rig_settings();
	static const char zeros[100];
	struct answer answer;
	struct buf bytes;

	(void)state;
	settings.body_timeout_us = 100000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	bytes_init(&bytes);
	put_head(&bytes,
		&(const struct request_spec){
			.params = (const char *const[]){ "MODE", "both", "SIZE", "1000000",
				"CONTENT_LENGTH", "100", NULL } });
	/* Answered behind what is not read yet. */
	put_record(&bytes, FCGI_GET_VALUES, 0, SLICE(""), 0);
	put_record(&bytes, FCGI_STDIN, 1, slice_make(zeros, sizeof zeros), 0);
	put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_soon(rig_look(&rig).open == 1);
	(void)poll(NULL, 0, 300);
	assert_int_equal(rig_look(&rig).pieces, 0);
	answer_read(&answer, fd, 1);
	assert_true(answer.out_ended && answer.ended);
	assert_int_equal(answer_body(&answer).len, 1000000);
	assert_int_equal(rig_look(&rig).gone_timeout, 0);
	answer_release(&answer);
	buf_release(&bytes);
	(void)close(fd);
}

/* ---- authorizers ---- */

static void
authorizer_is_never_waited_for_a_body(void **state)
{
	static const char *const odd[] = { "MODE", "body", "CONTENT_LENGTH", "x", NULL };

	(void)state;
	for (unsigned keep = 0; keep < 2; keep++) {
		/* No STDIN at all, its end, and a body that should not be there. */
		for (unsigned kind = 0; kind < 3; kind++) {
			const int fd = rig_connect(&rig);
			struct buf bytes;

			bytes_init(&bytes);
			put_head(&bytes,
				&(const struct request_spec){ .params = kind == 2 ? odd : dump,
					.role = FCGI_AUTHORIZER,
					.keep = keep != 0 });
			if (kind == 2)
				put_stream(&bytes, FCGI_STDIN, 1, SLICE("no business here"), 5);
			if (kind > 0)
				put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
			assert_true(socket_send(fd, buf_slice(&bytes)));
			assert_answered(fd, 200);
			assert_int_equal(rig_look(&rig).body_bytes, 0);
			if (keep != 0) {
				assert_goes_on(fd);
				rig.seen.body_bytes = 0;
			} else {
				assert_ended(fd);
			}
			buf_release(&bytes);
			(void)close(fd);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body_empty_late_or_in_any_pieces_is_read),
		TEST(body_is_not_read_before_it_is_wanted),
		TEST(body_that_is_held_slows_the_web_server_down),
		TEST(body_that_stops_is_408_at_its_deadline),
		TEST(body_that_is_held_has_no_deadline),
		TEST(authorizer_is_never_waited_for_a_body),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
