/*
 * Applications that fail: what the client is told, what the operator, and that a cut answer is seen
 * to be cut.
 */
#include "serve.h"

#include <unistd.h>

/* ---- applications that fail ---- */

static void
closes_at_once(struct app_conn *conn)
{
	(void)app_read_request(conn);
}

static void
answers_nonsense(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE("no head at all\n\n"));
}

static void
is_overloaded(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_end(conn, 0, FCGI_OVERLOADED);
}

static void
ends_without_output(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

static void
failing_application_has_its_own_status_counter_and_log_line(void **state)
{
	static const struct {
		app_script *script; /* NULL: nobody listens */
		unsigned status;
		const char *reason, *outcome;
	} rows[] = {
		{ closes_at_once, 502, "closed", "backend_failed" },
		{ answers_nonsense, 502, "bad_head", "backend_failed" },
		{ ends_without_output, 502, "bad_head", "backend_failed" },
		{ is_overloaded, 503, "busy", "busy" },
		{ says_nothing, 504, "timeout", "backend_failed" },
		{ NULL, 502, "refused", "backend_failed" },
	};
	static const char *const more[] = { "HTTP_ACCEPT", "application/json", NULL };

	(void)state;
	serve(APP "idle_timeout = 1s\n" ALL, closes_at_once);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int64_t failures = rig_backend_failures("app", rows[i].reason),
			      outcomes = rig_outcome("all", rows[i].outcome);
		const unsigned lines = rig_logged(&rig, rows[i].reason);
		struct answer answer;

		if (rows[i].script != NULL) {
			fake_app_set_script(app, rows[i].script);
		} else {
			fake_app_stop(app);
			app = NULL;
		}
		rig_ask(&rig, &answer, "GET", "/a path", more);
		assert_true(answer_is_whole(&answer));
		assert_row(answer_status(&answer) == rows[i].status, "row %zu: %u", i,
			answer_status(&answer));
		assert_int_equal(
			answer_field_count(&answer, "Retry-After"), rows[i].status == 503 ? 1 : 0);
		assert_slice(
			answer_field(&answer, "Content-Type"), SLICE("application/problem+json"));
		/* What went wrong is the operator's business, and not the client's. */
		assert_null(memmem(answer.out.data, answer.out.len, rig.directory.path,
			strlen(rig.directory.path)));
		answer_release(&answer);
		assert_int_equal(rig_backend_failures("app", rows[i].reason) - failures, 1);
		assert_int_equal(rig_outcome("all", rows[i].outcome) - outcomes, 1);
		/* Five a second. */
		if (i < 5)
			assert_int_equal(rig_logged(&rig, rows[i].reason), lines + 1);
	}
}

static void
backend_with_too_many_requests_is_503(void **state)
{
	(void)state;
	serve(APP "max_in_flight = 1\n" ALL, says_nothing);
	const int fd = begin(false, NULL);
	struct answer answer;

	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_int_equal(answer_status(&answer), 503);
	assert_slice(answer_field(&answer, "Retry-After"), SLICE("1"));
	answer_release(&answer);
	(void)close(fd);
	assert_soon(rig_in_flight() == 0);
}

/* ---- answers that break off ---- */

static void
breaks_off(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("Content-Length: 10\r\n\r\nhalf"));
}

static void
answer_that_breaks_off_is_seen_to_be_cut(void **state)
{
	(void)state;
	serve(APP ALL, breaks_off);
	const int64_t failures = rig_backend_failures("app", "truncated");

	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = begin(keep != 0, NULL);
		struct answer answer;

		assert_true(send_body(fd, 0, true));
		answer_read(&answer, fd, 1);
		assert_int_equal(answer.got, GOT_END);
		assert_false(answer.ended);
		assert_slice(answer_field(&answer, "Content-Length"), SLICE("10"));
		assert_slice(answer_body(&answer), SLICE("half"));
		answer_release(&answer);
		(void)close(fd);
	}
	assert_int_equal(rig_backend_failures("app", "truncated") - failures, 2);
}

static void
breaks_off_without_a_length(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_out(conn, SLICE("X: y\r\n\r\nhalf"));
}

static void
ends_short(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Length: 10\r\n\r\nhalf")))
		(void)app_end(conn, 3, FCGI_REQUEST_COMPLETE);
}

static void
names_a_file(struct app_conn *conn)
{
	if (app_read_request(conn) &&
		app_out(conn, SLICE("X-Sendfile: /f\r\nContent-Length: 10\r\n\r\n")))
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
}

/* What a client's connection is kept behind would be taken for the rest of what was promised. */
static void
answer_that_is_shorter_than_promised_has_no_end_but_where_none_was_promised(void **state)
{
	static const struct {
		app_script *script;
		const char *software;
		bool by_mod_fcgid, has_end;
		const char *method;
		uint32_t app_status;
	} rows[] = {
		{ breaks_off, "Apache/2.4.71", true, false, "GET", 0 },
		{ breaks_off, "Apache/2.4.71", false, false, "GET", 0 },
		{ breaks_off_without_a_length, "Apache/2.4.71", true, true, "GET", 1 },
		{ breaks_off_without_a_length, "Apache/2.4.71", false, false, "GET", 0 },
		/* nginx, behind a spawner, is not Apache. */
		{ breaks_off_without_a_length, "nginx/1.22", true, false, "GET", 0 },
		{ ends_short, "nginx/1.22", false, false, "GET", 0 },
		{ ends_short, "lighttpd/1.4.69", true, false, "GET", 0 },
		{ ends_short, "Apache/2.4.71", true, false, "GET", 0 },
		{ ends_short, "Apache/2.4.71", false, true, "GET", 3 },
		{ ends_short, "nginx/1.22", false, true, "HEAD", 3 },
		{ names_a_file, "lighttpd/1.4.69", false, true, "GET", 0 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct answer answer;

		if (i > 0)
			(void)serve_tear_down(NULL);
		rig.by_mod_fcgid = rows[i].by_mod_fcgid;
		serve(APP ALL, rows[i].script);
		rig_ask(&rig, &answer, rows[i].method, "/",
			(const char *const[]){ "SERVER_SOFTWARE", rows[i].software, NULL });
		assert_row(answer_is_whole(&answer) == rows[i].has_end, "row %zu", i);
		if (rows[i].has_end)
			assert_row(answer.app_status == rows[i].app_status, "row %zu", i);
		answer_release(&answer);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(failing_application_has_its_own_status_counter_and_log_line),
		TEST(backend_with_too_many_requests_is_503),
		TEST(answer_that_breaks_off_is_seen_to_be_cut),
		TEST(answer_that_is_shorter_than_promised_has_no_end_but_where_none_was_promised),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
