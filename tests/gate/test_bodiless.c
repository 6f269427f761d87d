/* Answers that have no body, whatever the application sends: to HEAD, and those of a status that
 * has none (RFC 9110 sections 6.4.1, 8.6 and 15.3.6). */
#include "serve.h"

#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM "[backend app]\ntype = cgi\nprogram = DIR/program\n"

static const struct row {
	const char *method;
	const char *sent;
	unsigned status;
	const char *length; /* of the answer's Content-Length; NULL: there is none */
	const char *body;
} rows[] = {
	{ "HEAD", "X: y\r\n\r\nsome body", 200, NULL, "" },
	{ "HEAD", "Content-Length: 9\r\n\r\nsome body", 200, "9", "" },
	{ "HEAD", "Content-Length: 9\r\n\r\n", 200, "9", "" },
	{ "HEAD", "Content-Length: 9\r\n\r\nsome", 200, "9", "" },
	{ "HEAD", "Content-Length: 4\r\n\r\nsome body", 200, "4", "" },
	{ "HEAD", "Status: 404\r\nContent-Length: 9\r\n\r\n", 404, "9", "" },
	{ "GET", "Status: 204\r\n\r\nsome body", 204, NULL, "" },
	{ "GET", "Status: 204\r\nContent-Length: 9\r\n\r\nsome body", 204, NULL, "" },
	{ "GET", "Status: 204\r\nContent-Length: 0\r\n\r\n", 204, NULL, "" },
	{ "GET", "Status: 205\r\nContent-Length: 9\r\n\r\nsome body", 205, NULL, "" },
	{ "GET", "Status: 205\r\n\r\nsome body", 205, NULL, "" },
	/* It may tell what a 200 would have. */
	{ "GET", "Status: 304\r\nContent-Length: 9\r\n\r\n", 304, "9", "" },
	{ "GET", "Status: 304\r\nContent-Length: 9\r\n\r\nsome body", 304, "9", "" },
	{ "GET", "Status: 304\r\n\r\nsome body", 304, NULL, "" },
	/* These do have one. */
	{ "GET", "Content-Length: 9\r\n\r\nsome body", 200, "9", "some body" },
	{ "POST", "Status: 201\r\n\r\nsome body", 201, NULL, "some body" },
	{ "GET", "Status: 404\r\n\r\nsome body", 404, NULL, "some body" },
};

static const struct row *_Atomic current;

static void
answers_as_the_row_says(struct app_conn *conn)
{
	while (app_read_request(conn)) {
		if (!app_answer(conn, slice_of(current->sent)))
			return;
	}
}

static void
assert_rows(void)
{
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct answer answer;

		current = &rows[i];
		directory_write(&rig.directory, "reply", slice_of(rows[i].sent));
		rig_ask(&rig, &answer, rows[i].method, "/", NULL);
		const struct slice length = answer_field(&answer, "Content-Length");

		assert_row(answer_is_whole(&answer), "row %zu is not whole", i);
		assert_int_equal(answer_status(&answer), rows[i].status);
		assert_row((length.ptr == NULL) == (rows[i].length == NULL), "row %zu: length", i);
		if (rows[i].length != NULL)
			assert_slice(length, slice_of(rows[i].length));
		assert_slice(answer_body(&answer), slice_of(rows[i].body));
		answer_release(&answer);
	}
}

static void
applications_answer_has_no_body_where_none_has_a_place(void **state)
{
	(void)state;
	serve(APP ALL, answers_as_the_row_says);
	assert_rows();
}

/* The connection stays in step. */
static void
kept_connection_goes_on_behind_it(void **state)
{
	(void)state;
	serve(APP "keep_idle = 1\n" ALL, answers_as_the_row_says);
	assert_rows();
	assert_int_equal(fake_app_look(app).accepted, 1);
}

static void
sends_without_end(struct app_conn *conn)
{
	static const char zeros[1000];

	if (!app_read_request(conn) || !app_out(conn, SLICE("X: y\r\n\r\n")))
		return;
	while (app_out(conn, slice_make(zeros, sizeof zeros)))
		;
}

/* Nobody would end it: the client reads nothing, and the application is not silent. */
static void
body_without_end_is_not_read_for_ever(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP ALL, sends_without_end);
	rig_ask(&rig, &answer, "HEAD", "/", NULL);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_status(&answer), 200);
	assert_slice(answer_body(&answer), SLICE(""));
	answer_release(&answer);
	assert_soon(fake_app_look(app).ended == 1);
	assert_int_equal(rig_logged(&rig, "backend"), 0);
}

static void
sends_a_long_body(struct app_conn *conn)
{
	static const char zeros[100000];

	while (app_read_request(conn) && app_out(conn, SLICE("X: y\r\n\r\n"))) {
		for (unsigned i = 0; i < 100; i++)
			(void)app_out(conn, slice_make(zeros, sizeof zeros));
		(void)app_out_end(conn);
		(void)app_end(conn, 0, FCGI_REQUEST_COMPLETE);
	}
}

/* As php-fpm does it to HEAD. */
static void
long_body_that_ends_costs_no_connection(void **state)
{
	(void)state;
	serve(APP "keep_idle = 1\n" ALL, sends_a_long_body);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_status(&rig, "HEAD", "/", NULL), 200);
	assert_int_equal(fake_app_look(app).accepted, 1);
}

/* Its answer ends with its output: what Content-Length says is not waited for. */
static void
programs_answer_has_no_body_where_none_has_a_place(void **state)
{
	char script[200];

	(void)state;
	serve(PROGRAM ALL, answers_as_the_row_says);
	(void)snprintf(script, sizeof script, "#!/bin/sh\nexec cat %s/reply\n", rig.directory.path);
	directory_write(&rig.directory, "program", slice_of(script));
	assert_int_equal(chmod(directory_path(&rig.directory, "program").text, 0755), 0);
	assert_rows();
}

/* With HEAD nobody gets more programs at a time than with GET, whether he stays or leaves. */
static void
head_holds_its_place_as_long_as_its_program(void **state)
{
	static const char *const head[] = { "REQUEST_METHOD", "HEAD", NULL };

	(void)state;
	serve(PROGRAM "[limit one]\npolicy = concurrent 1\n" ALL "limit = one\n", says_nothing);
	directory_write(&rig.directory, "program",
		SLICE("#!/bin/sh\nprintf 'X: y\\r\\n\\r\\n'\nexec sleep 100\n"));
	assert_int_equal(chmod(directory_path(&rig.directory, "program").text, 0755), 0);
	const int fd = begin(false, head);

	assert_true(send_body(fd, 0, true));
	assert_soon(rig_in_flight() == 1);
	(void)poll(NULL, 0, 2500);
	assert_int_equal(rig_status(&rig, "HEAD", "/", NULL), 429);
	assert_int_equal(rig_in_flight(), 1);
	(void)close(fd);
	assert_soon(rig_in_flight() == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(applications_answer_has_no_body_where_none_has_a_place),
		TEST(kept_connection_goes_on_behind_it),
		TEST(body_without_end_is_not_read_for_ever),
		TEST(long_body_that_ends_costs_no_connection),
		TEST(programs_answer_has_no_body_where_none_has_a_place),
		TEST(head_holds_its_place_as_long_as_its_program),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
