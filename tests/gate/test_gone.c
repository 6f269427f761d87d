/* Clients that go: whatever was done for them is over within a second. */
#include "serve.h"

#include <unistd.h>

/* ---- clients that go ---- */

static void
reads_nothing(struct app_conn *conn)
{
	if (app_read_params(conn)) {
		(void)app_linger(conn, 20000);
		app_wait_gone(conn);
	}
}

static void
answers_half(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\nhalf")))
		app_wait_gone(conn);
}

static void
floods_and_waits(struct app_conn *conn)
{
	floods(conn);
	app_wait_gone(conn);
}

/* Closes the client's end, and everything that was done for it is over within a second. */
static void
assert_gone(int fd, unsigned ended)
{
	const int64_t gone = rig_outcome("all", "client_gone");

	(void)close(fd);
	assert_within_s(rig_outcome("all", "client_gone") == gone + 1, 1);
	assert_int_equal(rig_in_flight(), 0);
	assert_int_equal(rig_at_backend(), 0);
	if (app != NULL)
		assert_within_s(fake_app_look(app).ended == ended, 1);
}

static void
client_that_goes_ends_the_applications_work(void **state)
{
	static const struct {
		app_script *script;
		size_t body;
		const char *length; /* the body's as it is announced */
		const char *at; /* which stage it is */
	} rows[] = {
		{ says_nothing, 0, "0", "waiting for the first byte" },
		{ says_nothing, 100000, "200000", "upload" },
		{ reads_nothing, 250000, "500000", "upload that nobody takes" },
		{ answers_half, 10, "10", "response" },
		{ floods_and_waits, 10, "10", "response that is not read" },
		{ echoes, 200000, "400000", "both" },
	};

	(void)state;
	serve(APP ALL, says_nothing);
	for (unsigned keep = 0; keep < 2; keep++) {
		for (size_t i = 0; i < LENGTH_OF(rows); i++) {
			fake_app_set_script(app, rows[i].script);
			const unsigned before = fake_app_look(app).requests;
			const int fd = begin(keep != 0,
				(const char *const[]){ "CONTENT_LENGTH", rows[i].length, NULL });

			assert_true(send_body(fd, rows[i].body, rows[i].body <= 10));
			assert_soon(fake_app_look(app).requests == before + 1);
			assert_int_equal(rig_in_flight(), 1);
			if (rows[i].script == answers_half || rows[i].script == floods_and_waits ||
				rows[i].script == echoes) {
				char byte;

				assert_int_equal(recv(fd, &byte, 1, MSG_PEEK), 1);
			}
			assert_gone(fd, before + 1);
		}
	}
}

static void
client_that_aborts_ends_the_applications_work(void **state)
{
	struct buf bytes;
	struct answer answer;

	(void)state;
	serve(APP ALL, says_nothing);
	const int fd = begin(true, NULL);

	bytes_init(&bytes);
	put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_soon(fake_app_look(app).requests == 1);
	buf_consume(&bytes, bytes.len);
	put_record(&bytes, FCGI_ABORT_REQUEST, 1, SLICE(""), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_within_s(fake_app_look(app).gone == 1, 1);
	answer_read(&answer, fd, 1);
	assert_true(answer.ended);
	assert_int_equal(answer.out.len, 0);
	answer_release(&answer);
	assert_int_equal(rig_in_flight(), 0);
	buf_release(&bytes);
	(void)close(fd);
}

static void
client_that_goes_while_the_store_is_asked_costs_nothing(void **state)
{
	(void)state;
	rig_open(&rig, APP ALL);
	/* A Redis that listens and never answers. */
	const int redis = unix_listen(directory_path(&rig.directory, "redis.sock").text, 5);

	rig_reload(&rig,
		"[redis]\nserver = unix:DIR/redis.sock\ndeadline = 20s\n" APP
		"[limit one]\npolicy = 1/1h\n" ALL "limit = one\n");
	for (unsigned i = 0; i < 3; i++) {
		const int fd = begin(true,
			i == 0 ? NULL : (const char *const[]){ "CONTENT_LENGTH", "1000", NULL });

		if (i > 0)
			assert_true(send_body(fd, 1000, i > 1));
		assert_soon(rig_in_flight() == 1);
		assert_gone(fd, 0);
	}
	(void)close(redis);
}

static void
client_that_goes_while_the_application_is_connected_to_costs_nothing(void **state)
{
	(void)state;
	rig_open(&rig, APP ALL);
	/* A full backlog. */
	const int listening = unix_listen(directory_path(&rig.directory, "app.sock").text, 0);
	const int filler = unix_connect(directory_path(&rig.directory, "app.sock").text);
	const int fd = begin(false, (const char *const[]){ "CONTENT_LENGTH", "1000", NULL });

	assert_true(send_body(fd, 1000, true));
	assert_soon(rig_in_flight() == 1);
	assert_gone(fd, 0);
	(void)close(filler);
	(void)close(listening);
}

static void
body_that_stops_is_408_and_ends_the_applications_work(void **state)
{
	struct answer answer;

	(void)state;
	serve("[weir]\nbody_timeout = 100ms\n" APP ALL, says_nothing);
	const int64_t gone = rig_outcome("all", "client_gone"),
		      timeouts = rig_outcome("all", "body_timeout");
	const int fd = begin(true, (const char *const[]){ "CONTENT_LENGTH", "2000", NULL });

	assert_true(send_body(fd, 1000, false));
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 408);
	answer_release(&answer);
	assert_within_s(fake_app_look(app).ended == 1, 1);
	assert_int_equal(rig_in_flight(), 0);
	(void)close(fd);
	assert_int_equal(rig_outcome("all", "body_timeout") - timeouts, 1);
	assert_int_equal(rig_outcome("all", "client_gone") - gone, 0);
}

static void
request_that_is_cut_at_the_end_is_no_client_that_went(void **state)
{
	(void)state;
	serve(APP ALL, says_nothing);
	const int64_t gone = rig_outcome("all", "client_gone"), cut = rig_outcome("all", "cut");
	const int fd = begin(true, NULL);

	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	rig_stop(&rig);
	rig_cut(&rig);
	assert_int_equal(rig_outcome("all", "cut") - cut, 1);
	assert_int_equal(rig_outcome("all", "client_gone") - gone, 0);
	assert_int_equal(rig.cut, 1);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(client_that_goes_ends_the_applications_work),
		TEST(client_that_aborts_ends_the_applications_work),
		TEST(client_that_goes_while_the_store_is_asked_costs_nothing),
		TEST(client_that_goes_while_the_application_is_connected_to_costs_nothing),
		TEST(body_that_stops_is_408_and_ends_the_applications_work),
		TEST(request_that_is_cut_at_the_end_is_no_client_that_went),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
