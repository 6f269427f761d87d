/* What each web server is told that only asks, by what its requests say and by `front`. */
#include "serve.h"

#include <stdio.h>

#define LIMITED "[limit one]\npolicy = 1/1h\n" ALL "limit = one\nheaders = x-ratelimit\n"
#define NONE "[backend none]\ntype = none\n"

static void
ask(struct answer *answer, const char *software, uint16_t role)
{
	const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/", "REMOTE_ADDR",
		"192.0.2.1", "SERVER_SOFTWARE", software, NULL };
	const int fd = rig_connect(&rig);

	answer_to(answer, fd, &(const struct request_spec){ .params = params, .role = role });
	(void)close(fd);
	assert_true(answer_is_whole(answer));
}

static const struct row {
	const char *front, *backend, *software;
	uint16_t role;
	bool by_mod_fcgid;
	unsigned status; /* of a rejection */
	const char *field; /* that has its status, or NULL */
	bool has_body;
} rows[] = {
	{ "auto", NONE, "lighttpd/1.4.69", FCGI_AUTHORIZER, false, 429, NULL, true },
	{ "auto", NONE, "lighttpd/1.4.69", FCGI_AUTHORIZER, true, 429, NULL, true },
	{ "auto", NONE, "Apache/2.4.62 (Debian)", FCGI_AUTHORIZER, false, 429, NULL, true },
	{ "auto", NONE, "Apache", FCGI_AUTHORIZER, true, 200, "Variable-WEIR_STATUS", false },
	{ "auto", APP, "Apache", FCGI_AUTHORIZER, true, 200, "Variable-WEIR_STATUS", false },
	{ "auto", NONE, "nginx/1.22.1", FCGI_RESPONDER, false, 403, "Weir-Status", false },
	{ "auto", NONE, "nginx/1.22.1", FCGI_RESPONDER, true, 403, "Weir-Status", false },
	/* a backend is there: the answer is the client's */
	{ "auto", APP, "nginx/1.22.1", FCGI_RESPONDER, false, 429, NULL, true },
	{ "nginx", APP, "nginx/1.22.1", FCGI_RESPONDER, false, 429, NULL, true },
	{ "mod_fcgid", APP, "Apache", FCGI_RESPONDER, true, 429, NULL, true },
	/* unknown, or said otherwise */
	{ "auto", NONE, "Caddy/2", FCGI_RESPONDER, false, 429, NULL, true },
	{ "auto", NONE, "", FCGI_AUTHORIZER, true, 429, NULL, true },
	{ "nginx", NONE, "", FCGI_RESPONDER, false, 403, "Weir-Status", false },
	{ "mod_fcgid", NONE, "", FCGI_AUTHORIZER, false, 200, "Variable-WEIR_STATUS", false },
	{ "lighttpd", NONE, "nginx/1.22.1", FCGI_RESPONDER, false, 429, NULL, true },
	{ "mod_authnz", NONE, "Apache", FCGI_AUTHORIZER, true, 429, NULL, true },
};

static void
assert_rejection(const struct row *row, const struct answer *answer)
{
	assert_row(answer_status(answer) == row->status, "%s %s", row->front, row->software);
	assert_int_equal(answer_field_count(answer, "Retry-After"), 1);
	assert_int_equal(answer_field_count(answer, "X-RateLimit-Limit"), 1);
	assert_int_equal(answer_field_count(answer, "Cache-Control"), 1);
	if (row->field != NULL)
		assert_slice(answer_field(answer, row->field), SLICE("429"));
	/* A type and length of ours would be those of a page that is the web server's. */
	assert_int_equal(answer_field_count(answer, "Content-Type"), row->has_body ? 1 : 0);
	assert_int_equal(answer_field_count(answer, "Content-Length"), row->has_body ? 1 : 0);
	assert_row(
		(answer_body(answer).len > 0) == row->has_body, "%s %s", row->front, row->software);
}

static void
each_is_told_what_it_makes_a_429_of(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct answer answer;
		char ini[512];

		rig.by_mod_fcgid = rows[i].by_mod_fcgid;
		(void)snprintf(ini, sizeof ini, "%s" LIMITED "front = %s\n", rows[i].backend,
			rows[i].front);
		serve(ini, answers_with_own_headers);
		ask(&answer, rows[i].software, rows[i].role);
		assert_int_equal(answer_status(&answer), 200);
		assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 1);
		if (rows[i].role == FCGI_AUTHORIZER) {
			/* The web server serves it, and some add our fields to theirs. */
			assert_int_equal(answer_field_count(&answer, "Content-Type"), 0);
			assert_int_equal(answer_field_count(&answer, "Content-Length"), 0);
			assert_int_equal(answer_field_count(&answer, "Cache-Control"), 0);
			assert_int_equal(answer_body(&answer).len, 0);
		}
		answer_release(&answer);
		ask(&answer, rows[i].software, rows[i].role);
		assert_rejection(&rows[i], &answer);
		answer_release(&answer);
		(void)serve_tear_down(state);
	}
	serve(APP ALL, answers_with_own_headers);
	rig.by_mod_fcgid = false;
}

/* mod_authnz_fcgi takes 8192 bytes, and those only with the head. */
static void
page_that_does_not_arrive_gives_way(void **state)
{
	static const size_t sizes[] = { 8192, 8193 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char page[8194];
		struct answer answer;

		memset(page, 'p', sizeof page);
		page[sizes[i]] = '\0';
		serve(NONE LIMITED, answers_with_own_headers);
		directory_write(&rig.directory, "busy.txt", slice_make(page, sizes[i]));
		rig_reload(&rig, NONE LIMITED "reject_page = DIR/busy.txt\n");
		ask(&answer, "Apache", FCGI_AUTHORIZER);
		answer_release(&answer);
		ask(&answer, "Apache", FCGI_AUTHORIZER);
		assert_int_equal(answer_status(&answer), 429);
		if (i == 0)
			assert_int_equal(answer_body(&answer).len, sizes[i]);
		else
			assert_true(answer_body(&answer).len < 200);
		answer_release(&answer);
		(void)serve_tear_down(state);
	}
	serve(APP ALL, answers_with_own_headers);
}

/* Whoever asks an authenticator takes 200 for "the password is right" (mod_fcgid's
 * FcgidAuthenticator, mod_authnz_fcgi as an AuthBasicProvider). */
static void
no_password_is_right(void **state)
{
	static const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/",
		"REMOTE_ADDR", "192.0.2.1", "SERVER_SOFTWARE", "Apache", "REMOTE_USER", "u",
		"REMOTE_PASSWD", "", NULL };
	struct answer answer;

	(void)state;
	serve(NONE LIMITED, answers_with_own_headers);
	for (unsigned i = 0; i < 2; i++) {
		const int fd = rig_connect(&rig);

		answer_to(&answer, fd,
			&(const struct request_spec){ .params = params, .role = FCGI_AUTHORIZER });
		(void)close(fd);
		assert_int_equal(answer_status(&answer), 403);
		answer_release(&answer);
	}
	assert_int_equal(rig_logged(&rig, "asked whether a password is right"), 1);
	/* It has cost nobody anything. */
	ask(&answer, "Apache", FCGI_AUTHORIZER);
	assert_int_equal(answer_status(&answer), 200);
	answer_release(&answer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_is_told_what_it_makes_a_429_of),
		TEST(page_that_does_not_arrive_gives_way),
		TEST(no_password_is_right),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
