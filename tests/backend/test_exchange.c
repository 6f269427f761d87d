/*
 * A request and its answer, each at the other side's pace: in any pieces, in any order, however
 * large.
 */
#include "single.h"

#include <unistd.h>

/* ---- answers in any pieces ---- */

static void
answer_is_taken_apart(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers);
	talk_once(&talk, pool);
	assert_usual(&talk);
	talk_release(&talk);
}

/* The records of an answer, sent byte by byte or cut where the test says. */
struct cut {
	size_t record_len; /* content of a STDOUT record */
	size_t first; /* bytes of the first write; 0: one byte each */
	uint8_t padding;
};

static void
answers_in_pieces(struct app_conn *conn)
{
	const struct cut cut = *(const struct cut *)conn->context;
	struct slice rest = SLICE(USUAL_ANSWER);
	struct buf bytes;

	if (!app_read_request(conn))
		return;
	bytes_init(&bytes);
	while (rest.len > 0) {
		const struct slice content = slice_first(rest, cut.record_len);

		put_record(&bytes, FCGI_STDOUT, conn->id, content, cut.padding);
		rest = slice_skip(rest, content.len);
	}
	put_record(&bytes, FCGI_STDOUT, conn->id, SLICE(""), cut.padding);
	put_end(&bytes, conn->id, 0, FCGI_REQUEST_COMPLETE);
	if (cut.first > 0) {
		(void)app_send(conn, slice_first(buf_slice(&bytes), cut.first));
		(void)app_linger(conn, 1);
		(void)app_send(conn, slice_skip(buf_slice(&bytes), cut.first));
	}
	for (size_t i = 0; cut.first == 0 && i < bytes.len; i++)
		(void)app_send(conn, slice_make(bytes.data + i, 1));
	buf_release(&bytes);
}

static void
answer_in_any_records_and_writes_is_the_same(void **state)
{
	struct cut cut;

	(void)state;
	for (cut.record_len = 1; cut.record_len < sizeof USUAL_ANSWER; cut.record_len++) {
		for (unsigned way = 0; way < 2; way++) {
			struct talk talk;

			cut.first = way == 0 ? 0 : 1 + cut.record_len * 2;
			cut.padding = (uint8_t)(cut.record_len * 5);
			serve_with_context(answers_in_pieces, &cut);
			talk_once(&talk, pool);
			assert_usual(&talk);
			talk_release(&talk);
		}
	}
}

static void
answers_with_interim_heads(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn,
			SLICE("Status: 103 Early Hints\r\nLink: </a>\r\n\r\nStatus: 100\r\n\r\n"
			      "Content-Type: text/plain\r\nX-A: 1\r\n\r\nhello\n"));
}

static void
interim_heads_are_dropped(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_with_interim_heads);
	talk_once(&talk, pool);
	assert_usual(&talk);
	talk_release(&talk);
}

/* ---- the request as the application sees it ---- */

static void
request_arrives_as_it_was_given(void **state)
{
	static const char *const pairs[] = { "REQUEST_METHOD", "POST", "EMPTY", "", "A", "b", "A",
		"c", "HTTP_PROXY_X", "kept", NULL };
	struct buf given, seen;
	struct talk talk;

	(void)state;
	serve(answers);
	bytes_init(&given);
	put_pairs(&given, pairs);
	assert_true(talk_start_raw(&talk, pool, buf_slice(&given)));
	talk.to_send = 200000;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	fake_app_copy_params(app, &seen);
	assert_slice(buf_slice(&seen), buf_slice(&given));
	const struct app_seen look = fake_app_look(app);

	assert_int_equal(look.role, FCGI_RESPONDER);
	/* No kept connections: each would occupy a child of php-fpm. */
	assert_int_equal(look.flags, 0);
	assert_int_equal(look.body_len, 200000);
	assert_true(look.body_ended);
	buf_release(&given);
	buf_release(&seen);
	talk_release(&talk);
}

static void
pairs_are_whole_in_their_records(void **state)
{
	static char text[65000];
	uint64_t random = 51;

	(void)state;
	memset(text, 'v', sizeof text);
	serve(answers);
	for (unsigned round = 0; round < 20; round++) {
		struct buf given, seen;
		struct talk talk;

		bytes_init(&given);
		for (size_t i = random_below(&random, 30); i > 0; i--)
			put_pair(&given, SLICE("N"),
				slice_make(text,
					random_below(&random, round % 2 == 0 ? 300 : sizeof text)));
		assert_true(talk_start_raw(&talk, pool, buf_slice(&given)));
		talk_feed(&talk);
		talk_finish(&talk);
		assert_usual(&talk);
		fake_app_copy_params(app, &seen);
		assert_true(slice_is(buf_slice(&seen), buf_slice(&given)));
		assert_true(fake_app_look(app).pairs_whole);
		buf_release(&given);
		buf_release(&seen);
		talk_release(&talk);
	}
}

static void
proxy_is_left_out(void **state)
{
	static const char *const rows[][9] = {
		{ "HTTP_PROXY", "evil:80", "A", "b", NULL },
		{ "A", "b", "HTTP_PROXY", "evil:80", NULL },
		{ "HTTP_PROXY", "", "A", "b", "HTTP_PROXY", "evil:80", NULL },
		{ "HTTP_PROXY", "evil:80", NULL },
	};

	(void)state;
	serve(answers);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		assert_true(talk_start(&talk, pool, rows[i]));
		talk_feed(&talk);
		talk_finish(&talk);
		assert_usual(&talk);
		assert_int_equal(fake_app_params(app, "HTTP_PROXY", NULL), 0);
		assert_int_equal(fake_app_params(app, "A", "b"), i == 3 ? 0 : 1);
		talk_release(&talk);
	}
}

/* ---- the order of reading and answering ---- */

static void
answers_before_reading(struct app_conn *conn)
{
	if (!app_read_params(conn))
		return;
	(void)app_out(conn, SLICE(USUAL_ANSWER));
	if (app_read_body(conn))
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
answer_comes_while_the_body_is_still_sent(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_before_reading);
	assert_true(talk_start(&talk, pool, NULL));
	run_loop_until(loop, talk.body_len == 6);
	assert_false(talk.ended);
	talk.to_send = 5000000;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	assert_int_equal(fake_app_look(app).body_len, 5000000);
	talk_release(&talk);
}

static void
answers_without_reading(struct app_conn *conn)
{
	if (app_read_params(conn))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

/* And closes with our bytes unread, which is a reset to us. */
static void
application_that_does_not_read_is_heard(void **state)
{
	(void)state;
	serve(answers_without_reading);
	for (unsigned round = 0; round < 20; round++) {
		struct talk talk;

		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = 3000000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_usual(&talk);
		talk_release(&talk);
	}
}

static void
answers_with_length_and_closes_unread(struct app_conn *conn)
{
	if (app_read_params(conn))
		(void)app_out(conn, SLICE("Content-Length: 5\r\n\r\nhello"));
}

static void
ends_output_and_closes_unread(struct app_conn *conn)
{
	if (app_read_params(conn) && app_out(conn, SLICE("X: y\r\n\r\nhello")))
		(void)app_out_end(conn);
}

/* What is known to be complete is not made incomplete by how the connection ends. */
static void
reset_behind_a_complete_answer_does_not_matter(void **state)
{
	static app_script *const scripts[] = { answers_with_length_and_closes_unread,
		ends_output_and_closes_unread };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		serve(scripts[i]);
		for (unsigned round = 0; round < 20; round++) {
			struct talk talk;

			assert_true(talk_start(&talk, pool, NULL));
			talk.to_send = 100000;
			talk_feed(&talk);
			talk_finish(&talk);
			assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
			assert_slice(buf_slice(&talk.body), SLICE("hello"));
			talk_release(&talk);
		}
	}
}

/* ---- large bodies ---- */

static void
reads_when_told(struct app_conn *conn)
{
	_Atomic bool *may_read = conn->context;

	if (!app_read_params(conn))
		return;
	while (!*may_read) {
		if (!app_linger(conn, 1))
			return;
	}
	if (app_read_body(conn))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

static void
body_waits_for_an_application_that_does_not_read(void **state)
{
	const uint64_t total = 100 * 1000 * 1000;
	static _Atomic bool may_read;
	struct talk talk;

	(void)state;
	serve_with_context(reads_when_told, &may_read);
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = total;
	talk_feed(&talk);
	run_loop_for_ms(loop, 50);
	assert_true(exchange_is_full(talk.exchange));
	/* What the kernel holds and one queue. */
	assert_true(total - talk.to_send < 2000000);
	may_read = true;
	talk_finish(&talk);
	assert_usual(&talk);
	assert_true(talk.drains > 0);
	assert_int_equal(fake_app_look(app).body_len, total);
	talk_release(&talk);
}

static void
application_waits_for_a_reader_that_holds(void **state)
{
	struct talk talk;

	(void)state;
	serve(floods);
	assert_true(talk_start(&talk, pool, NULL));
	talk_feed(&talk);
	talk.hold_after = 1000000;
	run_loop_until(loop, talk.body_len >= 1000000);
	const uint64_t held_at = talk.body_len;

	run_loop_for_ms(loop, 50);
	/* What was in the read that crossed the mark. */
	assert_true(talk.body_len < held_at + 65536);
	assert_int_equal(fake_app_look(app).ended, 0);
	exchange_resume(talk.exchange);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	assert_int_equal(talk.body_len, 100 * 1000 * 1000);
	talk_release(&talk);
}

static void
held_before_the_answer_comes_is_held(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers);
	assert_true(talk_start(&talk, pool, NULL));
	exchange_hold(talk.exchange);
	talk_feed(&talk);
	run_loop_for_ms(loop, 30);
	assert_int_equal(talk.heads, 0);
	exchange_resume(talk.exchange);
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_is_taken_apart),
		TEST(answer_in_any_records_and_writes_is_the_same),
		TEST(interim_heads_are_dropped),
		TEST(request_arrives_as_it_was_given),
		TEST(pairs_are_whole_in_their_records),
		TEST(proxy_is_left_out),
		TEST(answer_comes_while_the_body_is_still_sent),
		TEST(application_that_does_not_read_is_heard),
		TEST(reset_behind_a_complete_answer_does_not_matter),
		TEST(body_waits_for_an_application_that_does_not_read),
		TEST(application_waits_for_a_reader_that_holds),
		TEST(held_before_the_answer_comes_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
