/* Admitted requests on their way to the application and back, each side waiting for the other. */
#include "serve.h"

#include <stdio.h>
#include <unistd.h>

/* ---- what is passed on ---- */

static void
answer_comes_in_its_normal_form(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP ALL, answers);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_true(answer_is_whole(&answer));
	assert_slice(buf_slice(&answer.out),
		SLICE("Status: 404 Not Found\r\nSet-Cookie: a=1\r\nX-Powered-By: PHP\r\n"
		      "Set-Cookie: b=2\r\nContent-Length: 5\r\n\r\nhello"));
	assert_slice(buf_slice(&answer.err), SLICE("PHP Warning: something"));
	assert_int_equal(answer.app_status, 3);
	answer_release(&answer);
}

static void
request_arrives_as_it_came(void **state)
{
	static const char *const more[] = { "SCRIPT_FILENAME", "proxy:fcgi://localhost//srv/x.php",
		"HTTP_PROXY", "evil:80", "proxy-nokeepalive", "1", "EMPTY", "", "CONTENT_LENGTH",
		"3000000", NULL };

	(void)state;
	serve(APP ALL, answers);
	const int fd = begin(true, more);
	struct answer answer;

	assert_true(send_body(fd, 3000000, true));
	answer_read(&answer, fd, 1);
	assert_int_equal(answer_status(&answer), 404);
	assert_int_equal(fake_app_params(app, more[0], more[1]), 1);
	assert_int_equal(fake_app_params(app, "HTTP_PROXY", NULL), 0);
	assert_int_equal(fake_app_params(app, "proxy-nokeepalive", "1"), 1);
	assert_int_equal(fake_app_params(app, "EMPTY", ""), 1);
	assert_int_equal(fake_app_look(app).body_len, 3000000);
	assert_true(fake_app_look(app).body_ended);
	answer_release(&answer);
	(void)close(fd);
}

/* A web server has ended the client's connection, and what it lets through of it is the request.
 * Whoever could have a field left out would have one left out that a proxy in front has added, or
 * be counted by one that the application does not see. */
static void
fields_that_connection_names_are_passed_on(void **state)
{
	static const char *const more[] = { "HTTP_CONNECTION",
		"close, te, X-API-Key, X-Forwarded-For, Cookie, Host", "HTTP_TE", "trailers",
		"HTTP_X_API_KEY", "alice", "HTTP_X_FORWARDED_FOR", "198.51.100.1", "HTTP_COOKIE",
		"a=b", "HTTP_HOST", "a.test", NULL };

	(void)state;
	serve(APP "[limit key]\nidentity = header X-API-Key\non_missing = skip\npolicy = 1/1h\n" ALL
		  "limit = key\n",
		answers);
	assert_int_equal(rig_status(&rig, "GET", "/", more), 404);
	for (size_t i = 0; more[i] != NULL; i += 2)
		assert_row(fake_app_params(app, more[i], more[i + 1]) == 1, "%s", more[i]);
	assert_int_equal(rig_status(&rig, "GET", "/", more), 429);
}

static void
connection_is_kept_over_many_requests(void **state)
{
	const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/",
		"CONTENT_LENGTH", "4", NULL };

	(void)state;
	serve(APP ALL, answers);
	const int fd = rig_connect(&rig);

	for (unsigned i = 0; i < 50; i++) {
		struct answer answer;

		answer_to(&answer, fd,
			&(const struct request_spec){
				.params = params, .body = SLICE("body"), .keep = true });
		assert_true(answer_is_whole(&answer));
		assert_slice(answer_body(&answer), SLICE("hello"));
		answer_release(&answer);
	}
	(void)close(fd);
}

/* ---- limits that the application tells of its own accord ---- */

static void
tells_limits_in_odd_forms(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn,
			SLICE("RATELIMIT-policy: \"app\";q=1;w=1\r\nratelimit:\r\n "
			      "\"app\";r=0;\r\n\tt=1\r\nX-RateLimit-RESET : 9\n"
			      "ratelimit-remaining:3\r\nX-RateLimit-Other: 5\r\n"
			      "RateLimit: \"again\";r=1\r\nX-RateLimit-\r\n\r\nserved"));
}

static void
assert_fields(const char *options, const char *const *expected)
{
	struct answer answer;
	char ini[500];

	(void)snprintf(ini, sizeof ini, APP "[limit ten]\npolicy = 10/1h\n" ALL "limit = ten\n%s",
		options);
	serve(ini, tells_limits_in_odd_forms);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_true(answer_is_whole(&answer));
	for (; expected[0] != NULL; expected += 2) {
		assert_row(answer_field_count(&answer, expected[0]) == (expected[1] != NULL),
			"%s: %s", options, expected[0]);
		if (expected[1] != NULL)
			assert_slice(answer_field(&answer, expected[0]), slice_of(expected[1]));
	}
	assert_slice(answer_field(&answer, "X-RateLimit-Other"), SLICE("5"));
	assert_slice(answer_body(&answer), SLICE("served"));
	answer_release(&answer);
	(void)serve_tear_down(NULL);
}

/* Whichever dialects the two speak: what stands there is of one of them. */
static void
applications_limits_are_replaced(void **state)
{
	(void)state;
	assert_fields("headers = ratelimit\n",
		(const char *const[]){ "RateLimit-Policy", "\"ten\";q=10;w=3600", "RateLimit",
			"\"ten\";r=9;t=360", "RateLimit-Remaining", NULL, "X-RateLimit-Reset", NULL,
			NULL });
	assert_fields("headers = x-ratelimit\nown_headers = replace\n",
		(const char *const[]){ "RateLimit-Policy", NULL, "RateLimit", NULL,
			"RateLimit-Remaining", NULL, "X-RateLimit-Limit", "10",
			"X-RateLimit-Remaining", "9", "X-RateLimit-Reset", "360", NULL });
	assert_fields("headers = ratelimit-06, x-ratelimit\n",
		(const char *const[]){ "RateLimit-Policy", "10;w=3600", "RateLimit", NULL,
			"RateLimit-Limit", "10", "RateLimit-Remaining", "9", "RateLimit-Reset",
			"360", "X-RateLimit-Limit", "10", "X-RateLimit-Reset", "360", NULL });
}

static void
keeps_its_limits(const char *options)
{
	struct answer answer;
	char ini[500];

	(void)snprintf(ini, sizeof ini, APP "[limit ten]\npolicy = 10/1h\n" ALL "limit = ten\n%s",
		options);
	serve(ini, tells_limits_in_odd_forms);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_true(answer_is_whole(&answer));
	assert_slice(buf_slice(&answer.out),
		SLICE("Status: 200 OK\r\nRATELIMIT-policy: \"app\";q=1;w=1\r\n"
		      "ratelimit: \"app\";r=0; t=1\r\nX-RateLimit-RESET: 9\r\n"
		      "ratelimit-remaining: 3\r\nX-RateLimit-Other: 5\r\n"
		      "RateLimit: \"again\";r=1\r\n\r\nserved"));
	answer_release(&answer);
	(void)serve_tear_down(NULL);
}

static void
applications_limits_are_kept_where_that_is_said(void **state)
{
	(void)state;
	keeps_its_limits("headers = ratelimit\nown_headers = keep\n");
	keeps_its_limits("headers = x-ratelimit-epoch, ratelimit-07\nown_headers = keep\n");
	/* Ours there are none. */
	keeps_its_limits("headers = none\n");
}

static void
names_alone_are_no_limits(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn,
			SLICE("X-RateLimit-Other: 5\r\nX-Rate: RateLimit\r\nRateLimits: "
			      "1\r\n\r\n"));
}

static void
ours_are_told_if_the_application_tells_none(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP "[limit ten]\npolicy = 10/1h\n" ALL
		  "limit = ten\nheaders = ratelimit\nown_headers = keep\n",
		names_alone_are_no_limits);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_slice(buf_slice(&answer.out),
		SLICE("Status: 200 OK\r\nX-RateLimit-Other: 5\r\nX-Rate: RateLimit\r\n"
		      "RateLimits: 1\r\nRateLimit-Policy: \"ten\";q=10;w=3600\r\n"
		      "RateLimit: \"ten\";r=9;t=360\r\n\r\n"));
	answer_release(&answer);
}

/* ---- large bodies ---- */

struct upload {
	pthread_t thread;
	int fd;
	size_t len;
	bool sent;
};

static void *
send_upload(void *context)
{
	struct upload *upload = context;

	upload->sent = send_body(upload->fd, upload->len, true);
	return NULL;
}

static void
bodies_stream_in_both_directions_at_once(void **state)
{
	struct upload upload = { .len = 30000000 };
	struct answer answer;

	(void)state;
	serve(APP ALL, echoes);
	upload.fd = begin(true, (const char *const[]){ "CONTENT_LENGTH", "30000000", NULL });
	assert_int_equal(pthread_create(&upload.thread, NULL, send_upload, &upload), 0);
	answer_read(&answer, upload.fd, 1);
	assert_int_equal(pthread_join(upload.thread, NULL), 0);
	assert_true(upload.sent);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, upload.len);
	answer_release(&answer);
	(void)close(upload.fd);
}

static void
application_waits_for_a_slow_client(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP ALL, floods);
	const int fd = begin(true, NULL);

	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	(void)poll(NULL, 0, 100);
	/* The kernel's buffers and ours do not hold 30 MB. */
	assert_int_equal(fake_app_look(app).ended, 0);
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 30000003);
	answer_release(&answer);
	(void)close(fd);
}

static void
reads_nothing_for_a_while(struct app_conn *conn)
{
	if (!app_read_params(conn))
		return;
	(void)app_linger(conn, 150);
	if (app_read_body(conn))
		(void)app_answer(conn, SLICE("X: y\r\n\r\n"));
}

static void
upload_waits_for_a_slow_application(void **state)
{
	struct upload upload = { .len = 30000000 };
	struct answer answer;

	(void)state;
	serve(APP ALL, reads_nothing_for_a_while);
	upload.fd = begin(false, (const char *const[]){ "CONTENT_LENGTH", "30000000", NULL });
	assert_int_equal(pthread_create(&upload.thread, NULL, send_upload, &upload), 0);
	answer_read(&answer, upload.fd, 1);
	assert_int_equal(pthread_join(upload.thread, NULL), 0);
	assert_true(upload.sent && answer_is_whole(&answer));
	assert_int_equal(fake_app_look(app).body_len, upload.len);
	answer_release(&answer);
	(void)close(upload.fd);
}

static void
refuses_early(struct app_conn *conn)
{
	if (app_read_params(conn) && app_read_some(conn))
		(void)app_answer(conn, SLICE("Status: 413\r\n\r\ntoo large"));
}

static void
early_answer_ends_an_upload(void **state)
{
	(void)state;
	serve(APP ALL, refuses_early);
	for (unsigned keep = 0; keep < 2; keep++) {
		struct upload upload = { .len = 30000000 };
		struct answer answer;

		upload.fd = begin(
			keep != 0, (const char *const[]){ "CONTENT_LENGTH", "30000000", NULL });
		assert_int_equal(pthread_create(&upload.thread, NULL, send_upload, &upload), 0);
		answer_read(&answer, upload.fd, 1);
		assert_true(answer_is_whole(&answer));
		assert_int_equal(answer_status(&answer), 413);
		/* All that the web server still sends is taken. */
		assert_int_equal(pthread_join(upload.thread, NULL), 0);
		assert_true(upload.sent);
		answer_release(&answer);
		(void)close(upload.fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_comes_in_its_normal_form),
		TEST(request_arrives_as_it_came),
		TEST(fields_that_connection_names_are_passed_on),
		TEST(connection_is_kept_over_many_requests),
		cmocka_unit_test(applications_limits_are_replaced),
		cmocka_unit_test(applications_limits_are_kept_where_that_is_said),
		TEST(ours_are_told_if_the_application_tells_none),
		TEST(bodies_stream_in_both_directions_at_once),
		TEST(application_waits_for_a_slow_client),
		TEST(upload_waits_for_a_slow_application),
		TEST(early_answer_ends_an_upload),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
