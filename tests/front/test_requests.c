/* Several requests on a connection, and peers that give up: pipelining, silence, closes, aborts. */
#include "ask.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* ---- several requests on a connection ---- */

static void
connection_is_kept_for_any_number_of_requests(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		assert_goes_on(fd);
	assert_int_equal(rig_connections(), 1);
	(void)close(fd);
}

/* Bodies of one to nine bytes. The last of them asks for no kept connection, so that an end must
 * come. */
static void
put_pipeline(struct buf *out, unsigned count, bool same_id)
{
	for (unsigned i = 0; i < count; i++) {
		const char length[] = { (char)('1' + i % 9), '\0' };

		put_request(out,
			&(const struct request_spec){
				.params = (const char *const[]){ "MODE", "body", "CONTENT_LENGTH",
					length, NULL },
				.body = slice_first(SLICE("123456789"), i % 9 + 1),
				.id = same_id ? 1 : (uint16_t)(i + 1),
				.keep = i + 1 < count });
	}
}

static void
pipelined_requests_are_answered_in_their_order(void **state)
{
	(void)state;
	for (unsigned same_id = 0; same_id < 2; same_id++) {
		const int fd = rig_connect(&rig);
		struct buf bytes;

		bytes_init(&bytes);
		put_pipeline(&bytes, 500, same_id != 0);
		assert_true(socket_send(fd, buf_slice(&bytes)));
		for (unsigned i = 0; i < 500; i++) {
			struct answer answer;

			answer_read(&answer, fd, same_id != 0 ? 1 : (uint16_t)(i + 1));
			assert_true(answer_is_whole(&answer));
			assert_int_equal(answer_body(&answer).ptr[0] - '0', i % 9 + 1);
			answer_release(&answer);
		}
		assert_ended(fd);
		buf_release(&bytes);
		(void)close(fd);
	}
}

/* In one write, while the first is not answered yet; and the other way round, when it is. */
static void
request_behind_one_that_waits_is_answered_after_it(void **state)
{
	(void)state;
	for (unsigned late = 0; late < 2; late++) {
		for (unsigned with_body = 0; with_body < 2; with_body++) {
			const int fd = rig_connect(&rig);
			const unsigned before = rig_look(&rig).requests;
			struct buf first, second;

			bytes_init(&first);
			bytes_init(&second);
			put_request(&first,
				&(const struct request_spec){ .params = waits,
					.body = with_body != 0 ? SLICE("bod") : SLICE(""),
					.keep = true });
			put_request(&second,
				&(const struct request_spec){
					.params = usual, .body = SLICE("abc") });
			if (late == 0)
				bytes_add(&first, buf_slice(&second));
			assert_true(socket_send(fd, buf_slice(&first)));
			assert_soon(rig_look(&rig).open == 1);
			if (late != 0)
				assert_true(socket_send(fd, buf_slice(&second)));
			assert_rig_serves(&rig);
			assert_int_equal(rig_look(&rig).requests, before + 2);
			rig_answer(&rig);
			assert_answered(fd, 200);
			assert_answered(fd, 200);
			assert_ended(fd);
			buf_release(&first);
			buf_release(&second);
			(void)close(fd);
		}
	}
}

static void
pipelining_is_bounded(void **state)
{
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = waits, .keep = true });
	put_pipeline(&bytes, 20000, true);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_false(socket_send(fd, buf_slice(&bytes)));
	assert_soon(rig_look(&rig).open == 1);
	assert_rig_serves(&rig);
	assert_int_equal(rig_look(&rig).open, 1);
	buf_release(&bytes);
	(void)close(fd);
	assert_soon(rig_look(&rig).gone_peer == 1);
}

/* ---- deadlines ---- */

static void
connection_that_is_silent_is_closed_at_its_deadline(void **state)
{
	struct front_settings settings = rig_settings();
	static const size_t cuts[] = { 0, 1, 8, 16, 20, 30 };
	struct buf bytes;

	(void)state;
	settings.head_timeout_us = 100000;
	ask_anew(&settings);
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = dump });
	for (size_t i = 0; i < LENGTH_OF(cuts); i++) {
		const int64_t start_us = clock_monotonic_us();
		const int fd = rig_connect(&rig);

		assert_true(socket_send(fd, slice_first(buf_slice(&bytes), cuts[i])));
		assert_rig_serves(&rig);
		assert_ended(fd);
		assert_true(clock_monotonic_us() >= start_us + 100000);
		(void)close(fd);
	}
	assert_int_equal(rig_look(&rig).gone_peer, 0);
	buf_release(&bytes);
}

/* It may be quiet between requests for as long as it likes. */
static void
kept_connection_has_no_deadline_between_requests(void **state)
{
	struct front_settings settings = rig_settings();

	(void)state;
	settings.head_timeout_us = settings.body_timeout_us = 100000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	for (unsigned i = 0; i < 3; i++) {
		assert_goes_on(fd);
		(void)poll(NULL, 0, 150);
	}
	assert_goes_on(fd);
	(void)close(fd);
}

/* ---- peers that give up ---- */

static void
web_server_that_closes_is_noticed_at_once(void **state)
{
	/* While the handler works; before and behind the end of the body; in the middle of it;
	 * while it is held. */
	static const char *const modes[] = { "wait", "wait", "body", "hold" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(modes); i++) {
		const int fd = rig_connect(&rig);
		const unsigned before = rig_look(&rig).gone_peer;

		ask_begin(fd, true,
			(const char *const[]){
				"MODE", modes[i], "CONTENT_LENGTH", "200000", NULL });
		if (i > 0)
			assert_true(send_body(fd, i == 3 ? 150000 : 1000, i == 1));
		assert_soon(rig_look(&rig).open == 1);
		assert_rig_serves(&rig);
		(void)close(fd);
		assert_within_s(rig_look(&rig).gone_peer == before + 1, 1);
		assert_int_equal(rig_look(&rig).open, 0);
	}
}

/* With our answer unread in its buffer, a close is a reset. */
static void
web_server_that_resets_is_noticed_while_its_body_is_held(void **state)
{
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_record(&bytes, FCGI_GET_VALUES, 0, SLICE(""), 0);
	put_head(&bytes,
		&(const struct request_spec){ .params = (const char *const[]){ "MODE", "hold",
						      "CONTENT_LENGTH", "200000", NULL },
			.keep = true });
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_true(send_body(fd, 150000, false));
	assert_soon(rig_look(&rig).pieces == 1);
	(void)close(fd);
	assert_within_s(rig_look(&rig).gone_peer == 1, 1);
	buf_release(&bytes);
}

static void
web_server_that_only_shuts_its_side_gets_its_answer(void **state)
{
	(void)state;
	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = rig_connect(&rig);

		ask_begin(fd, keep != 0, waits);
		assert_true(send_body(fd, 0, true));
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		assert_soon(rig_look(&rig).open == 1);
		assert_rig_serves(&rig);
		rig_answer(&rig);
		assert_answered(fd, 200);
		assert_ended(fd);
		(void)close(fd);
	}
	assert_int_equal(rig_look(&rig).gone_peer, 0);
	assert_soon(rig_connections() == 0);
}

static void
abort_ends_the_request_and_keeps_the_connection(void **state)
{
	/* Before and behind the end of the body, and in the middle of one whose length is known. */
	static const char *const params[][5] = { { "MODE", "wait", NULL }, { "MODE", "wait", NULL },
		{ "MODE", "body", "CONTENT_LENGTH", "1000", NULL } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(params); i++) {
		const int fd = rig_connect(&rig);
		struct buf bytes;
		struct answer answer;

		bytes_init(&bytes);
		ask_begin(fd, true, params[i]);
		assert_true(send_body(fd, i == 2 ? 100 : 0, i == 1));
		assert_soon(rig_look(&rig).open == 1);
		put_record(&bytes, FCGI_ABORT_REQUEST, 1, SLICE(""), 0);
		assert_true(socket_send(fd, buf_slice(&bytes)));
		answer_read(&answer, fd, 1);
		assert_true(answer.ended);
		assert_int_equal(answer.protocol_status, FCGI_REQUEST_COMPLETE);
		assert_int_equal(rig_look(&rig).gone_peer, i + 1);
		assert_goes_on(fd);
		answer_release(&answer);
		buf_release(&bytes);
		(void)close(fd);
	}
}

static void
abort_of_another_request_is_let_pass(void **state)
{
	const int fd = rig_connect(&rig);
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	ask_begin(fd, true, reads_body);
	put_record(&bytes, FCGI_ABORT_REQUEST, 2, SLICE(""), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_true(send_body(fd, 100000, true));
	assert_answered(fd, 200);
	buf_release(&bytes);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connection_that_is_silent_is_closed_at_its_deadline),
		TEST(kept_connection_has_no_deadline_between_requests),
		TEST(connection_is_kept_for_any_number_of_requests),
		TEST(pipelined_requests_are_answered_in_their_order),
		TEST(request_behind_one_that_waits_is_answered_after_it),
		TEST(pipelining_is_bounded),
		TEST(web_server_that_closes_is_noticed_at_once),
		TEST(web_server_that_resets_is_noticed_while_its_body_is_held),
		TEST(web_server_that_only_shuts_its_side_gets_its_answer),
		TEST(abort_ends_the_request_and_keeps_the_connection),
		TEST(abort_of_another_request_is_let_pass),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
