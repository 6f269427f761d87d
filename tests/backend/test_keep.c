/* Connections that serve one request after the other: when they do, and when they must not. */
#include "single.h"

#include <pthread.h>
#include <stdatomic.h>

/* The application closes its connections, or goes on, when it is told. */
static _Atomic unsigned told;

static void
wait_for(unsigned number)
{
	assert_soon(told >= number);
}

/* ---- applications ---- */

/* The next request on the connection. */
static bool
reads_next(struct app_conn *conn)
{
	buf_consume(&conn->params, conn->params.len);
	conn->seen = (struct app_seen){ 0 };
	return app_read_request(conn);
}

static void
answers_all(struct app_conn *conn)
{
	while (reads_next(conn) && app_answer(conn, SLICE(USUAL_ANSWER)))
		;
}

/* As a child that has served pm.max_requests. */
static void
answers_one(struct app_conn *conn)
{
	if (reads_next(conn))
		(void)app_answer(conn, SLICE(USUAL_ANSWER));
}

static void
answers_one_and_closes_when_told(struct app_conn *conn)
{
	answers_one(conn);
	if (conn->number == 0)
		wait_for(1);
	else
		answers_all(conn);
}

static void
answers_one_and_closes_at_the_next(struct app_conn *conn)
{
	answers_one(conn);
	(void)app_read_params(conn);
}

/* ---- pools ---- */

static void
use_keep_idle(uint64_t keep_idle, int64_t idle_timeout_us)
{
	static struct address address;
	static struct config_backend config;

	address = directory_socket(&directory, "s");
	config = (struct config_backend){ .name = "app",
		.servers = &address,
		.server_count = 1,
		.max_in_flight = 100,
		.connect_timeout_us = 1000000,
		.idle_timeout_us = idle_timeout_us,
		.keep_idle = keep_idle };
	backend_pool_release(pool);
	pool = talk_pool_of(&config);
}

static int
set_up(void **state)
{
	told = 0;
	if (single_set_up(state) != 0)
		return -1;
	use_keep_idle(2, 20000000);
	return 0;
}

#define KEEP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, single_tear_down)

static void
ask(void)
{
	struct talk talk;

	talk_once(&talk, pool);
	assert_usual(&talk);
	talk_release(&talk);
}

static void
assert_connections(unsigned accepted)
{
	assert_int_equal(fake_app_look(app).accepted, accepted);
}

/* ---- which are kept ---- */

static void
by_default_none_is_kept(void **state)
{
	(void)state;
	use_keep_idle(0, 20000000);
	serve(answers_all);
	for (unsigned i = 1; i <= 3; i++) {
		ask();
		assert_soon(fake_app_look(app).ended == i);
		assert_int_equal(fake_app_look(app).flags, 0);
	}
	assert_connections(3);
}

static void
kept_connection_serves_one_request_after_the_other(void **state)
{
	(void)state;
	serve(answers_all);
	for (unsigned i = 0; i < 5; i++) {
		struct talk talk;

		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = i * 100000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_usual(&talk);
		talk_release(&talk);
		assert_int_equal(fake_app_look(app).flags, FCGI_KEEP_CONN);
		assert_int_equal(fake_app_look(app).body_len, i * 100000);
	}
	assert_connections(1);
	assert_int_equal(fake_app_look(app).requests, 5);
}

static void
begins_and_ends_when_told(struct app_conn *conn)
{
	if (!reads_next(conn) ||
		!app_out(conn, SLICE("Content-Type: text/plain\r\nX-A: 1\r\n\r\n")))
		return;
	wait_for(1);
	if (app_answer(conn, SLICE("hello\n")))
		answers_all(conn);
}

static void
no_more_are_kept_than_the_pool_may(void **state)
{
	struct talk talks[4];

	(void)state;
	serve(begins_and_ends_when_told);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	for (size_t i = 0; i < LENGTH_OF(talks); i++)
		run_loop_until(loop, talks[i].heads == 1);
	told = 1;
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		talk_finish(&talks[i]);
		assert_usual(&talks[i]);
		talk_release(&talks[i]);
	}
	assert_soon(fake_app_look(app).ended == 2);
	ask();
	assert_connections(4);
	assert_int_equal(fake_app_look(app).ended, 2);
}

static pthread_mutex_t only_child = PTHREAD_MUTEX_INITIALIZER;

/* As php-fpm with one child: a connection is served to its end before the next. */
static void
answers_as_the_only_child(struct app_conn *conn)
{
	(void)pthread_mutex_lock(&only_child);
	answers_all(conn);
	(void)pthread_mutex_unlock(&only_child);
}

static unsigned
count_ended(const struct talk *talks, size_t count)
{
	unsigned ended = 0;

	for (size_t i = 0; i < count; i++)
		ended += talks[i].ended ? 1 : 0;
	return ended;
}

/* A child would hold a kept connection while the other requests wait for a child. */
static void
none_is_kept_while_another_request_waits_for_the_server(void **state)
{
	struct talk talks[5];

	(void)state;
	use_keep_idle(5, 20000000);
	serve(answers_as_the_only_child);
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_true(talk_start(&talks[i], pool, NULL));
		talk_feed(&talks[i]);
	}
	for (unsigned ended = 1; ended < LENGTH_OF(talks); ended++) {
		run_loop_until(loop, count_ended(talks, LENGTH_OF(talks)) >= ended);
		/* The loop does not run now, so that no time of ours can end a kept one. */
		assert_soon(fake_app_look(app).ended >= ended);
	}
	run_loop_until(loop, count_ended(talks, LENGTH_OF(talks)) == LENGTH_OF(talks));
	for (size_t i = 0; i < LENGTH_OF(talks); i++) {
		assert_usual(&talks[i]);
		talk_release(&talks[i]);
	}
	/* The last one left nobody waiting. */
	assert_int_equal(fake_app_look(app).ended, LENGTH_OF(talks) - 1);
}

/* Who has gone waits no more. */
static void
cancelled_request_does_not_keep_others_from_keeping(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_all);
	assert_true(talk_start(&talk, pool, NULL));
	talk_cancel(&talk);
	talk_release(&talk);
	ask();
	ask();
	assert_connections(2);
}

static void
kept_connection_goes_when_it_is_idle_for_long(void **state)
{
	(void)state;
	use_keep_idle(2, 100000);
	serve(answers_all);
	ask();
	assert_int_equal(fake_app_look(app).ended, 0);
	run_loop_while(loop, fake_app_look(app).ended == 0);
	ask();
	assert_connections(2);
}

static void
retired_and_released_pools_keep_none(void **state)
{
	(void)state;
	serve(answers_all);
	ask();
	backend_pool_retire(pool);
	assert_soon(fake_app_look(app).ended == 1);
	ask();
	assert_soon(fake_app_look(app).ended == 2);
	use_keep_idle(2, 20000000);
	ask();
	backend_pool_release(pool);
	pool = NULL;
	assert_soon(fake_app_look(app).ended == 3);
	backend_pool_retire(NULL);
}

/* ---- which must not serve again ---- */

/* STDOUT and then what comes before, within and behind END_REQUEST. */
struct strange {
	const char *before, *after;
	bool is_late; /* `after` comes when the exchange has ended */
};

#define END_OF_1 "\1\3\0\1\0\10\0\0\0\0\0\0\0\0\0\0"

static const struct strange stranges[] = {
	{ "\1\6\0\2\0\0\0\0", "", false },
	{ "\1\7\0\7\0\0\0\0", "", false },
	{ "\1\11\0\0\0\0\0\0", "", false },
	{ "", "\1\5\0\1\0\0\0\0", false },
	{ "", "\1\6\0\1\0\0\0\0", false },
	{ "", "\1\3\0\1\0\10\0\0", false },
	{ "", "\1\6\0\1\0\0\0\0", true },
	{ "", "\0\0\0\0\0\0\0\0", true },
};

static void
answers_strangely(struct app_conn *conn)
{
	const struct strange *strange = conn->context;
	const bool is_first = conn->number % 2 == 0;
	struct buf all;

	if (!is_first) {
		answers_all(conn);
		return;
	}
	if (!reads_next(conn) || !app_out(conn, SLICE(USUAL_ANSWER)))
		return;
	bytes_init(&all);
	if (strange->before[0] != '\0')
		bytes_add(&all, slice_make(strange->before, 8));
	bytes_add(&all, slice_make(END_OF_1, 16));
	if (!strange->is_late && strange->after[0] != '\0')
		bytes_add(&all, slice_make(strange->after, 8));
	if (app_send(conn, buf_slice(&all)) && strange->is_late) {
		wait_for(1);
		(void)app_send(conn, slice_make(strange->after, 8));
		told = 2;
	}
	buf_release(&all);
	app_wait_gone(conn);
}

static void
connection_that_is_out_of_step_is_not_used_again(void **state)
{
	for (size_t i = 0; i < LENGTH_OF(stranges); i++) {
		assert_int_equal(set_up(state), 0);
		serve_with_context(answers_strangely, (void *)(uintptr_t)&stranges[i]);
		ask();
		told = 1;
		if (stranges[i].is_late)
			wait_for(2);
		ask();
		ask();
		assert_row(fake_app_look(app).accepted == 2, "row %zu: %u connections", i,
			fake_app_look(app).accepted);
		assert_soon(fake_app_look(app).gone == 1);
		assert_int_equal(single_tear_down(state), 0);
	}
}

static void
answers_too_much(struct app_conn *conn)
{
	while (reads_next(conn) && app_answer(conn, SLICE("Content-Length: 2\r\n\r\nhello\n")))
		;
}

static void
answers_early(struct app_conn *conn)
{
	while (app_read_params(conn) && app_answer(conn, SLICE(USUAL_ANSWER)))
		;
}

static void
answers_without_reading(struct app_conn *conn)
{
	socket_limit_buffers(conn->fd, 1);
	if (!app_read_params(conn) || !app_answer(conn, SLICE(USUAL_ANSWER)))
		return;
	wait_for(1);
	app_wait_gone(conn);
}

static void
connection_with_more_than_was_said_or_less_than_was_asked_is_not_used_again(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_too_much);
	talk_once(&talk, pool);
	assert_int_equal(talk.result, EXCHANGE_SURPLUS);
	talk_release(&talk);
	assert_soon(fake_app_look(app).ended == 1);
	/* The end of the body is not given. */
	serve(answers_early);
	assert_true(talk_start(&talk, pool, NULL));
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
	assert_soon(fake_app_look(app).ended == 2);
	/* The end of the body is given, but waits to be taken. */
	serve(answers_without_reading);
	assert_true(talk_start(&talk, pool, NULL));
	talk.to_send = 260000;
	talk_feed(&talk);
	assert_true(talk.fed);
	talk_finish(&talk);
	assert_usual(&talk);
	talk_release(&talk);
	told = 1;
	assert_soon(fake_app_look(app).gone == 1);
	/* It was cancelled. */
	serve(answers_all);
	ask();
	assert_true(talk_start(&talk, pool, NULL));
	talk_cancel(&talk);
	talk_release(&talk);
	assert_soon(fake_app_look(app).ended == 4);
}

/* Who held the answer back when it ended does not hold the next one. */
static void
next_answer_on_a_connection_that_was_held_comes(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_all);
	assert_true(talk_start(&talk, pool, NULL));
	talk.hold_after = 1;
	talk_feed(&talk);
	run_loop_until(loop, talk.body_len > 0);
	if (talk.exchange != NULL)
		exchange_resume(talk.exchange);
	talk_finish(&talk);
	talk_release(&talk);
	ask();
	assert_connections(1);
}

/* ---- connections that the server closes ---- */

static void
connection_that_was_closed_meanwhile_is_not_used(void **state)
{
	(void)state;
	serve(answers_one);
	for (unsigned i = 1; i <= 3; i++) {
		ask();
		/* The loop does not learn of it before the next request. */
		assert_soon(fake_app_look(app).ended == i);
	}
	assert_connections(3);
}

/* The kernel took nothing: the application cannot have seen anything, whatever the method. */
static void
request_of_which_nothing_was_taken_is_made_on_a_new_connection(void **state)
{
	static const uint64_t lengths[] = { 0, 1, 1000, 100000 };

	for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
		struct talk talk;

		assert_int_equal(set_up(state), 0);
		serve(answers_one_and_closes_when_told);
		ask();
		assert_true(talk_start(&talk, pool, NULL));
		told = 1;
		assert_soon(fake_app_look(app).ended == 1);
		talk.to_send = lengths[i];
		talk_feed(&talk);
		talk_finish(&talk);
		assert_usual(&talk);
		assert_connections(2);
		assert_int_equal(fake_app_look(app).requests, 2);
		assert_int_equal(fake_app_look(app).body_len, lengths[i]);
		talk_release(&talk);
		assert_int_equal(single_tear_down(state), 0);
	}
}

static void
new_connection_may_be_refused(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_one_and_closes_when_told);
	ask();
	assert_true(talk_start(&talk, pool, NULL));
	told = 1;
	fake_app_stop(app);
	app = NULL;
	talk_feed(&talk);
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_REFUSED, "%s", talk.why);
	talk_release(&talk);
}

/* It may have run and crashed, so that even a GET is not asked again. */
static void
request_that_was_taken_is_not_made_again(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_one_and_closes_at_the_next);
	ask();
	talk_once(&talk, pool);
	assert_row(talk.result == EXCHANGE_CLOSED, "%s", talk.why);
	talk_release(&talk);
	assert_connections(1);
	assert_int_equal(fake_app_look(app).requests, 2);
}

/* Not read, but that cannot be known. */
static void
request_that_only_the_kernel_took_is_not_made_again(void **state)
{
	struct talk talk;

	(void)state;
	serve(answers_one_and_closes_when_told);
	ask();
	assert_true(talk_start(&talk, pool, NULL));
	talk_feed(&talk);
	run_loop_once(loop);
	told = 1;
	talk_finish(&talk);
	assert_row(talk.result == EXCHANGE_CLOSED, "%s", talk.why);
	talk_release(&talk);
	assert_connections(1);
}

/* ---- requests that the server refuses ---- */

struct refusal {
	uint8_t protocol_status;
	const char *before; /* comes before it */
	bool is_kept;
	enum exchange_result result;
	unsigned accepted;
};

static const struct refusal refusals[] = {
	{ FCGI_CANT_MPX_CONN, "", true, EXCHANGE_COMPLETE, 2 },
	{ FCGI_CANT_MPX_CONN, "X: y\r\n\r\n", true, EXCHANGE_TRUNCATED, 1 },
	{ FCGI_CANT_MPX_CONN, "X", true, EXCHANGE_BAD_HEAD, 1 },
	{ FCGI_CANT_MPX_CONN, "", false, EXCHANGE_BAD_HEAD, 1 },
	{ FCGI_OVERLOADED, "", true, EXCHANGE_BUSY, 1 },
	{ FCGI_OVERLOADED, "", false, EXCHANGE_BUSY, 1 },
	{ FCGI_UNKNOWN_ROLE, "", true, EXCHANGE_BAD_HEAD, 1 },
	{ FCGI_UNKNOWN_ROLE, "", false, EXCHANGE_BAD_HEAD, 1 },
};

static void
refuses(struct app_conn *conn)
{
	const struct refusal *refusal = conn->context;

	if (conn->number > 0) {
		answers_all(conn);
		return;
	}
	if (refusal->is_kept)
		answers_one(conn);
	if (reads_next(conn) && app_out(conn, slice_of(refusal->before)))
		(void)app_end(conn, 0, refusal->protocol_status);
	app_wait_gone(conn);
}

static void
refused_request_is_made_once_more_if_the_connection_was_the_reason(void **state)
{
	for (size_t i = 0; i < LENGTH_OF(refusals); i++) {
		const struct refusal *refusal = &refusals[i];
		struct talk talk;

		assert_int_equal(set_up(state), 0);
		serve_with_context(refuses, (void *)(uintptr_t)refusal);
		if (refusal->is_kept)
			ask();
		assert_true(talk_start(&talk, pool, NULL));
		talk.to_send = 1000;
		talk_feed(&talk);
		talk_finish(&talk);
		assert_row(talk.result == refusal->result, "row %zu: %s", i, talk.why);
		assert_row(fake_app_look(app).accepted == refusal->accepted, "row %zu", i);
		assert_int_equal(fake_app_look(app).body_len, 1000);
		assert_soon(fake_app_look(app).gone == 1);
		talk_release(&talk);
		assert_int_equal(single_tear_down(state), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		KEEP_TEST(by_default_none_is_kept),
		KEEP_TEST(kept_connection_serves_one_request_after_the_other),
		KEEP_TEST(no_more_are_kept_than_the_pool_may),
		KEEP_TEST(none_is_kept_while_another_request_waits_for_the_server),
		KEEP_TEST(cancelled_request_does_not_keep_others_from_keeping),
		KEEP_TEST(kept_connection_goes_when_it_is_idle_for_long),
		KEEP_TEST(retired_and_released_pools_keep_none),
		cmocka_unit_test(connection_that_is_out_of_step_is_not_used_again),
		KEEP_TEST(
			connection_with_more_than_was_said_or_less_than_was_asked_is_not_used_again),
		KEEP_TEST(next_answer_on_a_connection_that_was_held_comes),
		KEEP_TEST(connection_that_was_closed_meanwhile_is_not_used),
		cmocka_unit_test(request_of_which_nothing_was_taken_is_made_on_a_new_connection),
		KEEP_TEST(new_connection_may_be_refused),
		KEEP_TEST(request_that_was_taken_is_not_made_again),
		KEEP_TEST(request_that_only_the_kernel_took_is_not_made_again),
		cmocka_unit_test(
			refused_request_is_made_once_more_if_the_connection_was_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
