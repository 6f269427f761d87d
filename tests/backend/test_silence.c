/* Applications that say nothing, and exchanges that nobody wants any more. */
#include "single.h"

#include <unistd.h>

/* ---- silence ---- */

static void
says_nothing(struct app_conn *conn)
{
	if (app_read_request(conn))
		app_wait_gone(conn);
}

static void
reads_nothing(struct app_conn *conn)
{
	(void)app_linger(conn, 20000);
	app_wait_gone(conn);
}

static void
stops_in_body(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nhalf")))
		app_wait_gone(conn);
}

static void
silence_is_a_timeout(void **state)
{
	const int64_t start_us = clock_monotonic_us();

	(void)state;
	use_idle_timeout(400000);
	assert_result(says_nothing, EXCHANGE_TIMEOUT);
	assert_true(clock_monotonic_us() >= start_us + 400000);
	assert_result(stops_in_body, EXCHANGE_TRUNCATED);
	assert_soon(fake_app_look(app).gone == 2);
	/* Not reading is silence as well. */
	struct talk talk;

	serve(reads_nothing);
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = 100000000;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_int_equal(talk.result, EXCHANGE_TIMEOUT);
	talk_release(&talk);
	assert_soon(fake_app_look(app).gone == 3);
}

static void
dribbles(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	for (size_t i = 0; i < sizeof USUAL_ANSWER - 1; i++) {
		(void)app_linger(conn, 20);
		if (!app_out(conn, slice_first(slice_skip(SLICE(USUAL_ANSWER), i), 1)))
			return;
	}
	(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
slow_is_not_silent(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(600000);
	serve(dribbles);
	const int64_t start_us = clock_monotonic_us();

	talk_once(&talk, pool);
	assert_usual(&talk);
	assert_true(clock_monotonic_us() - start_us > 600000);
	talk_release(&talk);
}

/* While we hold it the application's silence is our doing. */
static void
held_answer_has_no_deadline(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(400000);
	serve(floods);
	assert_true(talk_start(&talk, pool, NULL));
	talk_feed(&talk);
	talk.hold_after = 1;
	run_loop_until(loop, talk.body_len > 0);
	run_loop_for_ms(loop, 1000);
	assert_false(talk.ended);
	exchange_resume(talk.exchange);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	talk_release(&talk);
}

/* Whoever sends a body slowly is no reason to say that the application is silent. */
static void
body_that_comes_slowly_is_not_silence(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(1100000);
	serve(answers);
	assert_true(talk_start(&talk, pool, NULL));
	for (unsigned i = 0; i < 12; i++) {
		run_loop_for_ms(loop, 100);
		assert_false(talk.ended);
		exchange_body(talk.exchange, SLICE("x"));
	}
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
}

static void
reads_late_and_answers_late(struct app_conn *conn)
{
	(void)app_linger(conn, 1000);
	if (!app_read_request(conn))
		return;
	(void)app_linger(conn, 1000);
	(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

static void
reading_is_not_silence(void **state)
{
	static const char zeros[2000000];
	struct talk talk;

	(void)state;
	use_idle_timeout(1900000);
	serve(reads_late_and_answers_late);
	assert_true(talk_start(&talk, pool, NULL));
	/* All at once: what it reads is the only sign of life. */
	exchange_body(talk.exchange, slice_make(zeros, sizeof zeros));
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
}

/* A client's pause, however long, is not the application's. */
static void
silence_of_the_client_is_not_the_applications(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(300000);
	serve(answers);
	assert_true(talk_start(&talk, pool, NULL));
	exchange_body(talk.exchange, SLICE("x"));
	run_loop_for_ms(loop, 1000);
	assert_row(!talk.ended, "%s", talk.why);
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
}

static void
answers_late(struct app_conn *conn)
{
	if (app_read_request(conn) && app_linger(conn, 400))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

/* It could not answer before, however late in its time the end has come. */
static void
application_has_its_time_from_the_end_of_the_body_on(void **state)
{
	struct talk talk;

	(void)state;
	use_idle_timeout(600000);
	serve(answers_late);
	assert_true(talk_start(&talk, pool, NULL));
	exchange_body(talk.exchange, SLICE("x"));
	run_loop_for_ms(loop, 1000);
	assert_row(!talk.ended, "%s", talk.why);
	talk_feed(&talk);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_COMPLETE, "%s", talk.why);
	assert_usual(&talk);
	talk_release(&talk);
}

/* Half of a body of 150,000 bytes is more than a unix socket hands back before it says that there
 * is room. */
static void
reads_little_by_little(struct app_conn *conn)
{
	if (!app_read_params(conn))
		return;
	for (unsigned i = 0; i < 30; i++) {
		(void)app_linger(conn, 60);
		for (unsigned j = 0; j < 5; j++)
			(void)app_read_some(conn);
	}
	if (app_read_body(conn))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

static void
reading_slowly_is_not_silence(void **state)
{
	static const char zeros[1000];
	struct talk talk;

	(void)state;
	use_idle_timeout(700000);
	serve(reads_little_by_little);
	const int64_t start_us = clock_monotonic_us();

	assert_true(talk_start(&talk, pool, NULL));
	for (unsigned i = 0; i < 150; i++)
		exchange_body(talk.exchange, slice_make(zeros, sizeof zeros));
	talk_feed(&talk);
	talk_finish(&talk);
	assert_usual(&talk);
	assert_true(clock_monotonic_us() - start_us > 2 * 700000);
	talk_release(&talk);
}

/* ---- cancelling ---- */

static void
cancelled_exchange_closes_its_connection_and_calls_no_more(void **state)
{
	static app_script *const scripts[] = { says_nothing, reads_nothing, stops_in_body, floods };
	unsigned accepted = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		/* At once; while it sends; when the application works; in the middle of the answer.
		 */
		for (unsigned stage = 0; stage < 4; stage++) {
			struct talk talk;

			serve(scripts[i]);
			assert_true(talk_start(&talk, pool, NULL));
			assert_int_equal(talk_in_flight(), 1);
			talk.to_send = stage == 1 ? 10000000 : 100;
			if (stage > 0)
				talk_feed(&talk);
			if (stage > 1)
				run_loop_for_ms(loop, 10);
			if (stage > 2 && i > 1)
				run_loop_until(loop, talk.body_len > 0);
			talk_cancel(&talk);
			run_loop_once(loop);
			assert_int_equal(talk_in_flight(), 0);
			accepted++;
			assert_soon(fake_app_look(app).accepted == accepted);
			assert_soon(fake_app_look(app).ended == accepted);
			run_loop_once(loop);
			talk_release(&talk);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(silence_is_a_timeout),
		TEST(slow_is_not_silent),
		TEST(held_answer_has_no_deadline),
		TEST(body_that_comes_slowly_is_not_silence),
		TEST(reading_is_not_silence),
		TEST(silence_of_the_client_is_not_the_applications),
		TEST(application_has_its_time_from_the_end_of_the_body_on),
		TEST(reading_slowly_is_not_silence),
		TEST(cancelled_exchange_closes_its_connection_and_calls_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
