/* Another configuration in the middle of requests, and the end of them all. */
#include "serve.h"

#include "weir/counter.h"

#include <unistd.h>

/* ---- another configuration ---- */

static void
answers_when_told(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	while (access(conn->context, F_OK) != 0) {
		if (!app_linger(conn, 1))
			return;
	}
	(void)app_answer(conn, SLICE("X: old\r\n\r\nold"));
}

static void
answers_anew(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE("X: new\r\n\r\nnew"));
}

static void
reload_lets_requests_end_as_they_began(void **state)
{
	struct answer answer;

	(void)state;
	rig_open(&rig,
		APP "[limit one]\npolicy = 5/1h\n" ALL "limit = one\nheaders = x-ratelimit\n");
	const struct directory_path go = directory_path(&rig.directory, "go");

	app = fake_app_start(unix_listen(directory_path(&rig.directory, "app.sock").text, 10),
		answers_when_told, (void *)(uintptr_t)go.text);
	struct fake_app *other = rig_app(&rig, "other.sock", answers_anew);
	const int fd = begin(true, NULL);

	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	/* Another application, another limit, and the old one is gone. */
	for (unsigned i = 0; i < 3; i++)
		rig_reload(&rig,
			"[backend app]\nserver = unix:DIR/other.sock\n"
			"[limit two]\npolicy = 1/1h\n" ALL "limit = two\n");
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_slice(answer_body(&answer), SLICE("new"));
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
	answer_release(&answer);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	directory_write(&rig.directory, "go", SLICE(""));
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_slice(answer_body(&answer), SLICE("old"));
	assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("5"));
	answer_release(&answer);
	/* The next request on that connection is one of the new times. */
	answer_to(&answer, fd,
		&(const struct request_spec){ .params = (const char *const[]){ "REQUEST_URI", "/",
						      "REMOTE_ADDR", "192.0.2.3", NULL } });
	assert_slice(answer_body(&answer), SLICE("new"));
	answer_release(&answer);
	(void)close(fd);
	fake_app_stop(other);
}

/* The first request is begun with and goes on until it is told; all others are answered. */
static void
begins_the_first_and_answers_the_others(struct app_conn *conn)
{
	if (!app_read_request(conn))
		return;
	if (conn->number == 0) {
		(void)app_out(conn, SLICE("X: y\r\n\r\n"));
		app_wait_gone(conn);
		return;
	}
	do {
		(void)app_answer(conn, SLICE("X: y\r\n\r\n"));
		conn->seen.body_ended = false;
	} while (app_read_request(conn));
}

/* Also while requests of the old configuration are under way. A kept connection lasts 3 s. */
static void
kept_connections_end_with_a_reload_and_with_the_stop(void **state)
{
	(void)state;
	for (unsigned stops = 0; stops < 2; stops++) {
		rig_open(&rig, APP "keep_idle = 2\n" ALL);
		app = rig_app(&rig, "app.sock", begins_the_first_and_answers_the_others);
		const int fd = begin(true, NULL);
		char byte;

		assert_true(send_body(fd, 0, true));
		assert_int_equal(recv(fd, &byte, 1, 0), 1);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
		assert_int_equal(fake_app_look(app).accepted, 2);
		assert_int_equal(fake_app_look(app).ended, 0);
		if (stops == 0)
			rig_reload(&rig, APP "keep_idle = 2\n" ALL);
		else
			rig_stop(&rig);
		assert_within_s(fake_app_look(app).ended == 1, 2);
		assert_int_equal(rig_at_backend(), 1);
		(void)close(fd);
		if (stops == 0) {
			rig_close(&rig);
			fake_app_stop(app);
			app = NULL;
		}
	}
}

static void
reload_keeps_what_was_counted(void **state)
{
	static const char ini[] = APP "[limit two]\npolicy = 2/1h\n" ALL "limit = two\n";

	(void)state;
	serve(ini, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	rig_reload(&rig, ini);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	rig_reload(&rig, ini);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

static void
reload_changes_what_the_front_allows(void **state)
{
	const char *more[2 * 20 + 1];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(more); i++)
		more[i] = i + 1 < LENGTH_OF(more) ? "A" : NULL;
	serve("[weir]\nmax_params = 100\n" APP ALL, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", more), 404);
	rig_reload(&rig, "[weir]\nmax_params = 16\n" APP ALL);
	assert_int_equal(rig_status(&rig, "GET", "/", more), 431);
}

static void
many_reloads_under_load_lose_no_request(void **state)
{
	static const char *const inis[] = { APP ALL,
		APP "[limit one]\npolicy = 1000/1s burst 1000\n" ALL "limit = one\n" };

	(void)state;
	serve(inis[0], answers);
	for (unsigned i = 0; i < 60; i++) {
		int fds[4];

		for (size_t j = 0; j < LENGTH_OF(fds); j++) {
			fds[j] = begin(j % 2 == 0,
				(const char *const[]){ "CONTENT_LENGTH", "40000", NULL });
			assert_true(send_body(fds[j], 20000, false));
		}
		rig_reload(&rig, inis[i % 2]);
		for (size_t j = 0; j < LENGTH_OF(fds); j++) {
			struct answer answer;

			assert_true(send_body(fds[j], 20000, true));
			answer_read(&answer, fds[j], 1);
			assert_int_equal(answer_status(&answer), 404);
			answer_release(&answer);
			(void)close(fds[j]);
		}
	}
}

/* ---- the end ---- */

static void
stop_lets_requests_end_and_cut_ends_them(void **state)
{
	const int64_t before = counter_sum(COUNT_DRAIN_CUT);

	(void)state;
	serve(APP ALL, says_nothing);
	const int stuck = begin(true, NULL);

	assert_true(send_body(stuck, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	fake_app_set_script(app, answers_anew);
	const int going = begin(true, (const char *const[]){ "CONTENT_LENGTH", "10", NULL });

	assert_soon(rig_in_flight() == 2);
	rig_stop(&rig);
	assert_true(send_body(going, 10, true));
	struct answer answer;

	answer_read(&answer, going, 1);
	assert_true(answer_is_whole(&answer));
	assert_slice(answer_body(&answer), SLICE("new"));
	answer_release(&answer);
	(void)close(going);
	assert_int_equal(rig.empty, 0);
	rig_cut(&rig);
	assert_int_equal(rig.cut, 1);
	assert_int_equal(counter_sum(COUNT_DRAIN_CUT) - before, 1);
	assert_within_s(fake_app_look(app).gone == 1, 1);
	answer_read(&answer, stuck, 1);
	assert_int_not_equal(answer.got, GOT_RECORD);
	answer_release(&answer);
	(void)close(stuck);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(reload_lets_requests_end_as_they_began),
		TEST(kept_connections_end_with_a_reload_and_with_the_stop),
		TEST(reload_keeps_what_was_counted),
		TEST(reload_changes_what_the_front_allows),
		TEST(many_reloads_under_load_lose_no_request),
		TEST(stop_lets_requests_end_and_cut_ends_them),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
