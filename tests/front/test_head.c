/*
 * Heads of requests: cut, out of order, of other roles and protocols. A request runs if and only if
 * its head is whole and sound.
 */
#include "ask.h"

#include <unistd.h>

/* ---- framing ---- */

static void
records_with_any_padding(void **state)
{
	(void)state;
	for (unsigned padding = 0; padding < 256; padding++) {
		const uint8_t p = (uint8_t)padding;
		struct buf bytes, pairs;
		struct answer answer;

		bytes_init(&bytes);
		bytes_init(&pairs);
		put_pairs(&pairs, usual);
		put_record(&bytes, FCGI_BEGIN_REQUEST, 1, SLICE("\0\1\0\0\0\0\0\0"), p);
		put_record(&bytes, FCGI_PARAMS, 1, buf_slice(&pairs), p);
		put_record(&bytes, FCGI_PARAMS, 1, SLICE(""), p);
		put_record(&bytes, FCGI_STDIN, 1, SLICE("abc"), p);
		put_record(&bytes, FCGI_STDIN, 1, SLICE(""), p);
		ask(&answer, buf_slice(&bytes));
		assert_usual_answer(&answer);
		answer_release(&answer);
		buf_release(&bytes);
		buf_release(&pairs);
	}
}

static void
request_cut_into_any_two_pieces_is_the_same(void **state)
{
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_usual(&bytes);
	for (size_t cut = 1; cut < bytes.len; cut++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		assert_true(socket_send(fd, slice_first(buf_slice(&bytes), cut)));
		/* It has read them when it answers a look. */
		(void)rig_look(&rig);
		rig_want_body(&rig);
		assert_true(socket_send(fd, slice_skip(buf_slice(&bytes), cut)));
		answer_read(&answer, fd, 1);
		assert_usual_answer(&answer);
		answer_release(&answer);
		(void)close(fd);
	}
	buf_release(&bytes);
}

static void
request_byte_by_byte_is_the_same(void **state)
{
	const int fd = rig_connect(&rig);
	struct buf bytes;
	struct answer answer;

	(void)state;
	bytes_init(&bytes);
	put_usual(&bytes);
	for (size_t i = 0; i < bytes.len; i++) {
		assert_true(socket_send(fd, slice_make(bytes.data + i, 1)));
		rig_want_body(&rig);
	}
	answer_read(&answer, fd, 1);
	assert_usual_answer(&answer);
	answer_release(&answer);
	buf_release(&bytes);
	(void)close(fd);
}

/* ---- heads that are not whole ---- */

static void
request_cut_anywhere_does_not_run_before_its_head_is_whole(void **state)
{
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_usual(&bytes);
	const size_t tail = 8 + 8 + 3; /* two STDIN records */

	for (unsigned full_close = 0; full_close < 2; full_close++) {
		for (size_t cut = 0; cut < bytes.len; cut++) {
			const unsigned before = rig_look(&rig).requests;
			const int fd = rig_connect(&rig);

			assert_true(socket_send(fd, slice_first(buf_slice(&bytes), cut)));
			if (full_close == 0) {
				assert_int_equal(shutdown(fd, SHUT_WR), 0);
				struct answer answer;

				answer_read(&answer, fd, 1);
				assert_row(answer.got == GOT_END, "cut at %zu", cut);
				assert_row(answer.out.len == 0, "cut at %zu", cut);
				answer_release(&answer);
			}
			(void)close(fd);
			/* Served behind it: then it has been read. */
			assert_rig_serves(&rig);
			assert_row(rig_look(&rig).requests ==
					before + 1 + (cut >= bytes.len - tail ? 1 : 0),
				"cut at %zu", cut);
			assert_int_equal(rig_look(&rig).body_ends, 0);
		}
	}
	buf_release(&bytes);
}

static void
body_before_the_end_of_the_parameters_ends_the_connection(void **state)
{
	struct buf bytes;
	struct answer answer;

	(void)state;
	bytes_init(&bytes);
	put_begin(&bytes, 1, FCGI_RESPONDER, 0);
	put_record(&bytes, FCGI_PARAMS, 1, SLICE("\1\1Ab"), 0);
	put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
	ask(&answer, buf_slice(&bytes));
	assert_int_not_equal(answer.got, GOT_RECORD);
	assert_int_equal(rig_look(&rig).requests, 0);
	answer_release(&answer);
	buf_release(&bytes);
}

static void
parameters_behind_their_end_end_the_connection(void **state)
{
	const int64_t before = rig_faults("order");
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	ask_begin(fd, true, waits);
	assert_soon(rig_look(&rig).open == 1);
	bytes_init(&bytes);
	put_record(&bytes, FCGI_PARAMS, 1, SLICE("\1\1Ab"), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	(void)socket_read_to_end(fd);
	assert_soon(rig_look(&rig).gone_peer == 1);
	assert_int_equal(rig_faults("order") - before, 1);
	buf_release(&bytes);
	(void)close(fd);
}

static void
abort_within_the_parameters_ends_the_request(void **state)
{
	(void)state;
	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = rig_connect(&rig);
		struct buf bytes;
		struct answer answer;

		bytes_init(&bytes);
		put_begin(&bytes, 1, FCGI_RESPONDER, keep != 0 ? FCGI_KEEP_CONN : 0);
		put_record(&bytes, FCGI_PARAMS, 1, SLICE("\1\1Ab"), 0);
		put_record(&bytes, FCGI_ABORT_REQUEST, 1, SLICE(""), 0);
		put_record(&bytes, FCGI_PARAMS, 1, SLICE(""), 0);
		put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
		assert_true(socket_send(fd, buf_slice(&bytes)));
		answer_read(&answer, fd, 1);
		assert_int_equal(answer.got, GOT_RECORD);
		assert_int_equal(answer.out.len, 0);
		answer_release(&answer);
		assert_int_equal(rig_look(&rig).requests, 0);
		/* And if the connection is kept it is of use. */
		if (keep != 0) {
			answer_to(&answer, fd,
				&(const struct request_spec){
					.params = usual, .body = SLICE("abc") });
			assert_usual_answer(&answer);
			answer_release(&answer);
		}
		buf_release(&bytes);
		(void)close(fd);
	}
}

/* ---- order ---- */

static void
second_request_on_a_busy_connection_is_refused_and_the_first_goes_on(void **state)
{
	static struct record record;
	struct buf request;

	(void)state;
	bytes_init(&request);
	put_usual(&request);
	/* Within the parameters, and within the body. */
	static const size_t places[] = { 16, 16 + 8 + 51 + 8, 16 + 8 + 51 + 8 + 11 };

	for (size_t i = 0; i < LENGTH_OF(places); i++) {
		const int fd = rig_connect(&rig);
		struct answer answer;
		struct buf bytes;

		bytes_init(&bytes);
		bytes_add(&bytes, slice_first(buf_slice(&request), places[i]));
		put_begin(&bytes, 2, FCGI_RESPONDER, 0);
		/* What belongs to it is let pass. */
		put_record(&bytes, FCGI_PARAMS, 2, SLICE("\1\1Ab"), 0);
		put_record(&bytes, FCGI_PARAMS, 2, SLICE(""), 0);
		put_record(&bytes, FCGI_STDIN, 2, SLICE("other body"), 0);
		bytes_add(&bytes, slice_skip(buf_slice(&request), places[i]));
		assert_true(socket_send(fd, buf_slice(&bytes)));
		assert_int_equal(read_record(fd, &record), GOT_RECORD);
		assert_int_equal(record.type, FCGI_END_REQUEST);
		assert_int_equal(record.id, 2);
		assert_int_equal(record.content[4], FCGI_CANT_MPX_CONN);
		answer_read(&answer, fd, 1);
		assert_usual_answer(&answer);
		answer_release(&answer);
		buf_release(&bytes);
		(void)close(fd);
	}
	buf_release(&request);
}

static void
begin_of_the_current_id_ends_the_connection(void **state)
{
	(void)state;
	for (unsigned in_body = 0; in_body < 2; in_body++) {
		const unsigned before = rig_look(&rig).body_ends;
		struct buf bytes;
		struct answer answer;

		bytes_init(&bytes);
		put_begin(&bytes, 1, FCGI_RESPONDER, 0);
		if (in_body != 0) {
			put_record(&bytes, FCGI_PARAMS, 1, SLICE("\4\4MODEbody"), 0);
			put_record(&bytes, FCGI_PARAMS, 1, SLICE(""), 0);
		}
		put_usual(&bytes);
		ask(&answer, buf_slice(&bytes));
		assert_int_not_equal(answer.got, GOT_RECORD);
		assert_int_equal(rig_look(&rig).body_ends, before);
		answer_release(&answer);
		buf_release(&bytes);
	}
}

static void
unknown_roles_are_refused(void **state)
{
	static const uint16_t roles[] = { 0, FCGI_FILTER, 4, 9, 257, 65535 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(roles); i++) {
		for (unsigned keep = 0; keep < 2; keep++) {
			const int fd = rig_connect(&rig);
			struct answer answer;

			answer_to(&answer, fd,
				&(const struct request_spec){ .params = usual,
					.role = roles[i] == 0 ? 9 : roles[i],
					.keep = keep != 0 });
			assert_int_equal(answer.got, GOT_RECORD);
			assert_int_equal(answer.protocol_status, FCGI_UNKNOWN_ROLE);
			answer_release(&answer);
			if (keep != 0) {
				answer_to(&answer, fd,
					&(const struct request_spec){
						.params = usual, .body = SLICE("abc") });
				assert_usual_answer(&answer);
			} else {
				answer_read(&answer, fd, 1);
				assert_int_equal(answer.got, GOT_END);
			}
			answer_release(&answer);
			(void)close(fd);
		}
	}
	assert_int_equal(rig_look(&rig).requests, LENGTH_OF(roles));
}

static void
begin_of_another_length_ends_the_connection(void **state)
{
	static const struct slice bodies[] = { { "", 0 }, { "\0\1\0\0\0\0\0", 7 },
		{ "\0\1\0\0\0\0\0\0\0", 9 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(bodies); i++) {
		struct buf bytes;
		struct answer answer;

		bytes_init(&bytes);
		put_record(&bytes, FCGI_BEGIN_REQUEST, 1, bodies[i], 0);
		ask(&answer, buf_slice(&bytes));
		assert_int_not_equal(answer.got, GOT_RECORD);
		answer_release(&answer);
		buf_release(&bytes);
	}
	assert_true(rig_faults("length") >= (int64_t)LENGTH_OF(bodies));
}

static void
records_of_no_request_are_let_pass(void **state)
{
	struct buf bytes;
	struct answer answer;

	(void)state;
	bytes_init(&bytes);
	put_record(&bytes, FCGI_STDIN, 1, SLICE("early"), 0);
	put_record(&bytes, FCGI_PARAMS, 1, SLICE("\1\1Ab"), 0);
	put_record(&bytes, FCGI_ABORT_REQUEST, 1, SLICE(""), 0);
	put_record(&bytes, FCGI_DATA, 9, SLICE("data"), 0);
	put_record(&bytes, 200, 9, SLICE("no such type"), 0);
	put_usual(&bytes);
	ask(&answer, buf_slice(&bytes));
	assert_usual_answer(&answer);
	answer_release(&answer);
	buf_release(&bytes);
}

/* ---- no FastCGI ---- */

static void
other_protocols_are_closed_at_their_first_bytes(void **state)
{
	static const struct slice rows[] = {
		{ "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27 },
		{ "\x16\x03\x01\x02\x01\xfc\x03\x03", 8 },
		{ "\0\0\0\0\0\0\0\0", 8 },
		{ "\x02\1\0\1\0\10\0\0", 8 },
		{ "\xff", 1 },
	};
	const int64_t before = rig_faults("not_fastcgi");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct answer answer;

		ask(&answer, rows[i]);
		assert_true(answer.got == GOT_END || answer.got == GOT_CUT);
		assert_int_equal(answer.out.len, 0);
		answer_release(&answer);
	}
	assert_int_equal(rig_faults("not_fastcgi") - before, LENGTH_OF(rows));
	assert_rig_serves(&rig);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_cut_anywhere_does_not_run_before_its_head_is_whole),
		TEST(body_before_the_end_of_the_parameters_ends_the_connection),
		TEST(parameters_behind_their_end_end_the_connection),
		TEST(abort_within_the_parameters_ends_the_request),
		TEST(records_with_any_padding),
		TEST(second_request_on_a_busy_connection_is_refused_and_the_first_goes_on),
		TEST(begin_of_the_current_id_ends_the_connection),
		TEST(unknown_roles_are_refused),
		TEST(begin_of_another_length_ends_the_connection),
		TEST(records_of_no_request_are_let_pass),
		TEST(other_protocols_are_closed_at_their_first_bytes),
		TEST(request_cut_into_any_two_pieces_is_the_same),
		TEST(request_byte_by_byte_is_the_same),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
