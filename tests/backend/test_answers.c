/* Answers and how they end: in order, too early, with too much, or with what is none. */
#include "../lib/valgrind.h"
#include "single.h"

#include <unistd.h>

/* ---- ends ---- */

static void
closes_at_once(struct app_conn *conn)
{
	(void)conn;
}

static void
closes_after_parameters(struct app_conn *conn)
{
	(void)app_read_params(conn);
}

static void
closes_after_request(struct app_conn *conn)
{
	(void)app_read_request(conn);
}

static void
closes_in_head(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("Content-Type: text/plain\r\nX-"));
}

static void
closes_in_record(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_send(conn, SLICE("\1\6\0\1\0\x40\0"));
}

static void
closes_after_error_text(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_err(conn, SLICE("PHP message: Fatal error"));
}

static void
close_before_a_whole_head_is_closed(void **state)
{
	static app_script *const scripts[] = { closes_at_once, closes_after_parameters,
		closes_after_request, closes_in_head, closes_in_record, closes_after_error_text };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++)
		assert_result(scripts[i], EXCHANGE_CLOSED);
	/* Never asked twice. */
	assert_int_equal(fake_app_look(app).accepted, LENGTH_OF(scripts));
}

static void
closes_in_body(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("Content-Length: 10\r\n\r\nhalf"));
}

static void
closes_in_body_of_unknown_length(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("Content-Type: text/plain\r\n\r\nall of it?"));
}

static void
closes_in_record_of_body(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\n")))
		(void)app_send(conn, SLICE("\1\6\0\1\0\x40\0\0half"));
}

static void
close_behind_the_head_is_truncated(void **state)
{
	static app_script *const scripts[] = { closes_in_body, closes_in_body_of_unknown_length,
		closes_in_record_of_body };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++)
		assert_result(scripts[i], EXCHANGE_TRUNCATED);
}

static void
ends_short(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 10\r\n\r\nhalf")) &&
		app_out_end(conn))
		(void)app_end(conn, 7, FCGI_REQUEST_COMPLETE);
}

static void
ends_short_without_output_end(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 1\r\n\r\n")))
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
ends_output_short_and_closes(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 10\r\n\r\nhalf")))
		(void)app_out_end(conn);
}

static void
answer_that_ends_before_its_length_is_short(void **state)
{
	static app_script *const scripts[] = { ends_short, ends_short_without_output_end,
		ends_output_short_and_closes };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++)
		assert_result(scripts[i], EXCHANGE_SHORT);
}

static void
has_length_and_closes(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("Content-Length: 4\r\n\r\nfull"));
}

static void
ends_output_and_closes(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nfull")))
		(void)app_out_end(conn);
}

static void
ends_without_output_end(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nfull")))
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
answer_that_is_known_to_be_whole_is_complete(void **state)
{
	static app_script *const scripts[] = { has_length_and_closes, ends_output_and_closes,
		ends_without_output_end };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		struct talk talk;

		serve(scripts[i]);
		talk_once(&talk, pool);
		assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
		assert_slice(buf_slice(&talk.body), SLICE("full"));
		talk_release(&talk);
	}
}

static void
ends_output_and_waits(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nfull")) && app_out_end(conn))
		app_wait_gone(conn);
}

static void
has_length_and_waits(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 4\r\n\r\nfull")))
		app_wait_gone(conn);
}

static void
has_no_body_and_waits(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 0\r\n\r\n")))
		app_wait_gone(conn);
}

static void
end_of_output_without_end_of_request_is_complete_after_a_while(void **state)
{
	static app_script *const scripts[] = { ends_output_and_waits, has_length_and_waits,
		has_no_body_and_waits };

	(void)state;
	use_idle_timeout(500000);
	for (unsigned i = 0; i < LENGTH_OF(scripts); i++) {
		assert_result(scripts[i], EXCHANGE_COMPLETE);
		assert_within_s(fake_app_look(app).gone == i + 1, 1);
	}
}

static void
never_ends(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 4\r\n\r\nfull")))
		while (app_linger(conn, 20) && app_out(conn, SLICE("more")))
			;
}

static void
surplus_does_not_hold_an_answer_up(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(500000);
	serve(never_ends);
	talk_once(&talk, pool);
	assert_int_equal(talk.result, EXCHANGE_SURPLUS);
	assert_slice(buf_slice(&talk.body), SLICE("full"));
	talk_release(&talk);
}

static void
says_more_than_it_should(struct app_conn *conn)
{
	struct buf bytes;

	if (!app_read_request(conn))
		return;
	bytes_init(&bytes);
	put_record(&bytes, FCGI_STDOUT, 2, SLICE("Other: request\r\n\r\n"), 0);
	put_record(&bytes, FCGI_GET_VALUES_RESULT, 0, SLICE("\1\1Ab"), 0);
	put_record(&bytes, 77, 1, SLICE("no such type"), 3);
	put_record(&bytes, FCGI_STDOUT, 1, SLICE("Content-Type: text/plain\r\nX-A: 1\r\n"), 0);
	put_end(&bytes, 2, 1, FCGI_OVERLOADED);
	put_record(&bytes, FCGI_STDOUT, 1, SLICE("\r\nhello\n"), 0);
	put_record(&bytes, FCGI_STDOUT, 9, SLICE("not for us"), 0);
	/* php-fpm sends what was in its memory in the three reserved bytes. */
	put_record(&bytes, FCGI_END_REQUEST, 1, SLICE("\0\0\0\3\0php"), 8);
	put_record(&bytes, FCGI_STDOUT, 1, SLICE("behind the end"), 0);
	(void)app_send(conn, buf_slice(&bytes));
	buf_release(&bytes);
}

static void
records_that_are_none_of_ours_are_ignored(void **state)
{
	struct talk talk;

	(void)state;
	serve(says_more_than_it_should);
	talk_once(&talk, pool);
	assert_usual(&talk);
	assert_int_equal(talk.app_status, 3);
	talk_release(&talk);
}

struct ending {
	const char *output;
	uint32_t app_status;
	uint8_t protocol_status;
};

static void
ends_as_told(struct app_conn *conn)
{
	const struct ending *ending = conn->context;

	if (!app_read_request(conn))
		return;
	if (ending->output[0] != '\0')
		(void)app_out(conn, slice_of(ending->output));
	(void)app_end(conn, ending->app_status, ending->protocol_status);
}

static void
protocol_status_and_app_status(void **state)
{
	static const struct {
		struct ending ending;
		enum exchange_result result;
	} rows[] = {
		{ { "X: y\r\n\r\nbody", 0, 0 }, EXCHANGE_COMPLETE },
		{ { "X: y\r\n\r\nbody", 0x01020304, 0 }, EXCHANGE_COMPLETE },
		{ { "X: y\r\n\r\n", 0, 0 }, EXCHANGE_COMPLETE },
		{ { "", 0, FCGI_CANT_MPX_CONN }, EXCHANGE_BAD_HEAD },
		{ { "", 0, FCGI_OVERLOADED }, EXCHANGE_BUSY },
		{ { "", 0, FCGI_UNKNOWN_ROLE }, EXCHANGE_BAD_HEAD },
		{ { "", 0, 200 }, EXCHANGE_BAD_HEAD },
		{ { "X: y\r\n\r\nbody", 0, FCGI_OVERLOADED }, EXCHANGE_TRUNCATED },
		{ { "", 0, 0 }, EXCHANGE_BAD_HEAD },
		{ { "X: y\r\n", 0, 0 }, EXCHANGE_BAD_HEAD },
	};
	static struct ending now;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct talk talk;

		now = rows[i].ending;
		serve_with_context(ends_as_told, &now);
		talk_once(&talk, pool);
		assert_row(talk.result == rows[i].result, "row %zu: %s: %s", i,
			exchange_result_names[talk.result], talk.why);
		if (talk.result == EXCHANGE_COMPLETE)
			assert_int_equal(talk.app_status, rows[i].ending.app_status);
		talk_release(&talk);
	}
}

static void
ends_with_short_record(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\n")))
		(void)app_send(conn, SLICE("\1\3\0\1\0\7\0\0\0\0\0\0\0\0\0"));
}

static void
ends_with_long_record(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\n")))
		(void)app_send(conn, SLICE("\1\3\0\1\0\11\0\0\0\0\0\0\0\0\0\0\0"));
}

static void
end_of_another_length_is_no_end(void **state)
{
	(void)state;
	assert_result(ends_with_short_record, EXCHANGE_TRUNCATED);
	assert_result(ends_with_long_record, EXCHANGE_TRUNCATED);
}

/* ---- what is no answer ---- */

static void
speaks_http(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_send(conn, SLICE("HTTP/1.1 400 Bad Request\r\n\r\n"));
}

static void
speaks_nonsense_in_body(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nbody")))
		(void)app_send(conn, SLICE("<br />\nWarning: something"));
}

static void
sends_endless_head(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	for (unsigned i = 0; i < 100000; i++) {
		if (!app_out(conn, SLICE("X-Field: value\r\n")))
			return;
	}
}

static void
sends_endless_line(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	for (unsigned i = 0; i < 100000; i++) {
		if (!app_out(conn, SLICE("XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX")))
			return;
	}
}

static void
sends_chunks(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(
			conn, SLICE("Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"));
}

static void
sends_no_field(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE("this is no head\n\nat all\n"));
}

static void
what_is_no_response_is_a_bad_head(void **state)
{
	static app_script *const scripts[] = { speaks_http, sends_endless_head, sends_endless_line,
		sends_chunks, sends_no_field };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++)
		assert_result(scripts[i], EXCHANGE_BAD_HEAD);
	assert_result(speaks_nonsense_in_body, EXCHANGE_TRUNCATED);
}

/* ---- error output ---- */

static void
complains_at_length(struct app_conn *conn)
{
	static char text[1000];

	memset(text, 'e', sizeof text);
	if (!app_read_request(conn))
		return;
	for (unsigned i = 0; i < 1000; i++)
		(void)app_err(conn, slice_make(text, sizeof text));
	(void)app_out(conn, slice_first(SLICE(USUAL_ANSWER), 30));
	(void)app_err(conn, SLICE("X-In: the-middle\r\n\r\n"));
	(void)app_out(conn, slice_skip(SLICE(USUAL_ANSWER), 30));
	(void)app_err(conn, SLICE("and behind"));
	(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
error_output_is_no_part_of_the_answer(void **state)
{
	struct talk talk;

	(void)state;
	serve(complains_at_length);
	talk_once(&talk, pool);
	assert_usual(&talk);
	assert_int_equal(talk.error_len, 1000000 + 20 + 10);
	assert_memory_equal(talk.error_start, "eeeeeeeeeeeee", 13);
	talk_release(&talk);
}

/* ---- whatever comes ---- */

static void
answers_noise(struct app_conn *conn)
{
	uint64_t random = *(const uint64_t *)conn->context + conn->number * 7919;
	struct buf bytes;

	if (!app_read_params(conn))
		return;
	bytes_init(&bytes);
	if (random_below(&random, 2) == 0)
		put_record(&bytes, FCGI_STDOUT, 1, SLICE("X: y\r\n\r\n"), 0);
	for (size_t i = 1 + random_below(&random, 10); i > 0; i--) {
		static const char *const texts[] = { "X: y\r\n", "\r\n", "Status: 200\r\n",
			"\r\n\r\n", "body", "Content-Length: 3\r\n", "", "\xff\1\0" };
		static const uint8_t types[] = { FCGI_STDOUT, FCGI_STDOUT, FCGI_STDOUT, FCGI_STDERR,
			FCGI_END_REQUEST, FCGI_STDIN, 99 };

		put_record(&bytes, types[random_below(&random, LENGTH_OF(types))],
			(uint16_t)(random_below(&random, 8) == 0 ? 2 : 1),
			slice_of(texts[random_below(&random, LENGTH_OF(texts))]),
			(uint8_t)random_below(&random, 3));
	}
	if (random_below(&random, 2) == 0 && bytes.len > 0)
		bytes.data[random_below(&random, bytes.len)] = (char)random_next(&random);
	if (random_below(&random, 2) == 0)
		put_end(&bytes, 1, 0, 0);
	(void)app_send(
		conn, slice_first(buf_slice(&bytes), 1 + random_below(&random, 2 * bytes.len)));
	buf_release(&bytes);
}

static void
any_answer_comes_to_an_end(void **state)
{
	static const uint64_t seed = 52;
	const unsigned rounds = runs_under_valgrind() ? 300 : 1000, some = rounds / 100;
	unsigned results[EXCHANGE_RESULTS] = { 0 };

	(void)state;
	serve_with_context(answers_noise, (void *)(uintptr_t)&seed);
	for (unsigned round = 0; round < rounds; round++) {
		struct talk talk;

		talk_once(&talk, pool);
		results[talk.result]++;
		talk_release(&talk);
	}
	/* Of every kind some. */
	assert_row(results[EXCHANGE_COMPLETE] > some && results[EXCHANGE_BAD_HEAD] > some &&
			results[EXCHANGE_CLOSED] > some && results[EXCHANGE_TRUNCATED] > some,
		"%u %u %u %u", results[EXCHANGE_COMPLETE], results[EXCHANGE_BAD_HEAD],
		results[EXCHANGE_CLOSED], results[EXCHANGE_TRUNCATED]);
	assert_int_equal(fake_app_look(app).accepted, rounds);
}

/* ---- more than was said ---- */

/* An early answer, while the web server still sends the request's body. */
static void
ends_output_and_reads_on(struct app_conn *conn)
{
	if (app_read_params(conn) && app_out(conn, SLICE("Status: 413 Too Large\r\n\r\n")) &&
		app_out_end(conn))
		while (app_read_some(conn))
			;
}

static void
feed_on(struct talk *talk, int64_t until_us)
{
	static const char zeros[1000];

	while (!talk->ended && clock_monotonic_us() < until_us) {
		exchange_body(talk->exchange, slice_make(zeros, sizeof zeros));
		run_loop_for_ms(loop, 20);
	}
}

static void
end_of_request_is_not_waited_for_longer_while_the_request_goes_on(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(500000);
	serve(ends_output_and_reads_on);
	assert_true(talk_start(&talk, pool, NULL));
	feed_on(&talk, clock_monotonic_us() + 20 * US_PER_S);
	assert_true(talk.ended);
	assert_int_equal(talk.result, EXCHANGE_COMPLETE);
	assert_int_equal(talk.status, 413);
	talk_release(&talk);
}

static const struct {
	const char *pieces[4]; /* in records of their own */
	const char *body;
} surplus[] = {
	{ { "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\nmore" }, "ok" },
	{ { "Content-Length: 2\r\n\r\n", "ok", "more" }, "ok" },
	{ { "Content-Length: 2\r\n\r\no", "k", "m" }, "ok" },
	{ { "Content-Length: 0\r\n\r\n", "m" }, "" },
};

static void
says_less_than_it_sends(struct app_conn *conn)
{
	const size_t row = *(const size_t *)conn->context;

	if (!app_read_request(conn))
		return;
	for (unsigned i = 0; i < 4 && surplus[row].pieces[i] != NULL; i++) {
		if (!app_out(conn, slice_of(surplus[row].pieces[i])))
			return;
	}
	(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
what_is_beyond_the_content_length_is_left_out(void **state)
{
	static size_t row;

	(void)state;
	for (row = 0; row < LENGTH_OF(surplus); row++) {
		struct talk talk;

		serve_with_context(says_less_than_it_sends, &row);
		talk_once(&talk, pool);
		assert_row(talk.result == EXCHANGE_SURPLUS, "row %zu: %s", row,
			exchange_result_names[talk.result]);
		assert_row(strstr(talk.why, "Content-Length") != NULL, "%s", talk.why);
		assert_slice(buf_slice(&talk.body), slice_of(surplus[row].body));
		talk_release(&talk);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(close_before_a_whole_head_is_closed),
		TEST(close_behind_the_head_is_truncated),
		TEST(answer_that_is_known_to_be_whole_is_complete),
		TEST(answer_that_ends_before_its_length_is_short),
		TEST(end_of_output_without_end_of_request_is_complete_after_a_while),
		TEST(surplus_does_not_hold_an_answer_up),
		TEST(records_that_are_none_of_ours_are_ignored),
		TEST(protocol_status_and_app_status),
		TEST(end_of_another_length_is_no_end),
		TEST(what_is_no_response_is_a_bad_head),
		TEST(error_output_is_no_part_of_the_answer),
		TEST(any_answer_comes_to_an_end),
		TEST(what_is_beyond_the_content_length_is_left_out),
		TEST(end_of_request_is_not_waited_for_longer_while_the_request_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
