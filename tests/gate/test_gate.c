/*
 * What clients are told of limits: rejections in all their forms, headers on admitted answers, and
 * web servers that only ask.
 */
#include "serve.h"

#include <unistd.h>

static void
open_rig(const char *ini)
{
	serve(ini, answers_with_own_headers);
}

/* ---- rejections ---- */

static void
rejection_is_429_and_says_when_to_come_back(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(ONE_AN_HOUR);
	const int64_t rejected = rig_outcome("all", "rejected"),
		      admitted = rig_outcome("all", "admitted");

	assert_int_equal(rig_status(&rig, "GET", "/a", NULL), 200);
	rig_ask(&rig, &answer, "GET", "/b?c", NULL);
	assert_true(answer_is_whole(&answer));
	assert_true(slice_has_prefix(
		buf_slice(&answer.out), SLICE("Status: 429 Too Many Requests\r\n")));
	assert_between(answer_field(&answer, "Retry-After"), 3590, 3600);
	assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("1"));
	assert_slice(answer_field(&answer, "X-RateLimit-Remaining"), SLICE("0"));
	assert_between(answer_field(&answer, "X-RateLimit-Reset"), 3590, 3600);
	assert_slice(answer_field(&answer, "Cache-Control"), SLICE("no-store"));
	assert_slice(answer_field(&answer, "Content-Type"), SLICE("text/plain; charset=utf-8"));
	assert_between(answer_field(&answer, "Content-Length"), (long)answer_body(&answer).len,
		(long)answer_body(&answer).len);
	assert_true(slice_is(answer_body(&answer),
			    SLICE("Too many requests. Try again in 1 hour.\n")) ||
		slice_has_prefix(
			answer_body(&answer), SLICE("Too many requests. Try again in 59 minutes")));
	answer_release(&answer);
	/* The application never heard of it. */
	assert_int_equal(fake_app_look(app).accepted, 1);
	assert_int_equal(rig_outcome("all", "rejected") - rejected, 1);
	assert_int_equal(rig_outcome("all", "admitted") - admitted, 1);
	assert_int_equal(rig_logged(&rig, "Rejected. client=192.0.2.1 route=all limit=one"), 1);
	/* Others have their own bucket. */
	assert_int_equal(rig_status(&rig, "GET", "/a",
				 (const char *const[]){ "REMOTE_ADDR", "192.0.2.2", NULL }),
		200);
}

static void
body_has_the_form_that_the_client_asked_for(void **state)
{
	static const struct {
		const char *accept, *type, *begin, *has;
	} rows[] = {
		{ "*/*", "text/plain; charset=utf-8", "Too many", "Try again in " },
		{ "text/html", "text/html; charset=utf-8", "<!DOCTYPE html>",
			"<h1>Too Many Requests</h1><p>Too many requests. Try again in " },
		{ "application/json", "application/problem+json",
			"{\"type\":\"https://iana.org/assignments/"
			"http-problem-types#quota-exceeded\",",
			"\"status\":429,\"detail\":\"Too many requests. Try again in " },
	};

	(void)state;
	open_rig(ONE_AN_HOUR);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const char *const more[] = { "HTTP_ACCEPT", rows[i].accept, NULL };
		struct answer answer, head;

		rig_ask(&rig, &answer, "GET", "/", more);
		assert_int_equal(answer_status(&answer), 429);
		assert_slice(answer_field(&answer, "Content-Type"), slice_of(rows[i].type));
		const struct slice body = answer_body(&answer);

		assert_true(slice_has_prefix(body, slice_of(rows[i].begin)));
		assert_non_null(memmem(body.ptr, body.len, rows[i].has, strlen(rows[i].has)));
		/* HEAD is told the same, but for the body. */
		rig_ask(&rig, &head, "HEAD", "/", more);
		assert_true(answer_is_whole(&head));
		assert_int_equal(answer_status(&head), 429);
		assert_slice(answer_field(&head, "Content-Type"), slice_of(rows[i].type));
		assert_true(answer_field(&head, "Content-Length").len > 0);
		assert_int_equal(answer_body(&head).len, 0);
		answer_release(&answer);
		answer_release(&head);
	}
}

/* A little more than a look at the braces. */
static const char *
json_value(const char *at)
{
	const char open = *at, close = open == '{' ? '}' : ']';

	if (open == '"') {
		at++;
		while (*at != '"') {
			if (*at < ' ' || *at > '~' || *at == '\\')
				return NULL;
			at++;
		}
		return at + 1;
	}
	if (*at >= '0' && *at <= '9')
		return at + strspn(at, "0123456789");
	if (open != '{' && open != '[')
		return NULL;
	for (at++;; at++) {
		if (open == '{') {
			at = *at == '"' ? json_value(at) : NULL;
			if (at == NULL || *at++ != ':')
				return NULL;
		}
		at = json_value(at);
		if (at == NULL || *at == close)
			return at == NULL ? NULL : at + 1;
		if (*at != ',')
			return NULL;
	}
}

static void
problem_names_the_policies_that_were_violated(void **state)
{
	static const struct {
		const char *uri, *expected;
	} rows[] = {
		{ "/one", "\"violated-policies\":[\"one\"]" },
		{ "/two", "\"violated-policies\":[\"two-1h\",\"two-day\"]" },
		{ "/both", "\"violated-policies\":[\"one\",\"two-1h\",\"two-day\"]" },
	};
	struct answer answer;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\n"
		     "[limit two]\npolicy = 1/1h\npolicy = 1/1d name day\n"
		     "[route one]\nmatch = /one\nlimit = one\n"
		     "[route two]\nmatch = /two\nlimit = two\n"
		     "[route both]\nmatch = *\nlimit = one, two\n");
	assert_int_equal(rig_status(&rig, "GET", "/both", NULL), 200);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char text[1000] = "";

		rig_ask(&rig, &answer, "GET", rows[i].uri,
			(const char *const[]){ "HTTP_ACCEPT", "application/problem+json", NULL });
		assert_int_equal(answer_status(&answer), 429);
		assert_true(answer_body(&answer).len < sizeof text);
		memcpy(text, answer_body(&answer).ptr, answer_body(&answer).len);
		const char *end = json_value(text);

		assert_row(end != NULL && strcmp(end, "\n") == 0, "no JSON: %s", text);
		assert_row(strstr(text, rows[i].expected) != NULL, "%s", text);
		answer_release(&answer);
	}
}

static void
rejected_request_spends_nothing(void **state)
{
	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\n[limit three]\npolicy = 3/1h\n"
		     "[route both]\nmatch = /both\nlimit = three, one\n" ALL "limit = three\n");
	assert_int_equal(rig_status(&rig, "GET", "/both", NULL), 200);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/both", NULL), 429);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

static void
cost_counts_for_so_many(void **state)
{
	(void)state;
	open_rig(APP "[limit ten]\npolicy = 10/1h\n"
		     "[route dear]\nmatch = /dear\nlimit = ten\ncost = 4\n" ALL "limit = ten\n");
	assert_int_equal(rig_status(&rig, "GET", "/dear", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/dear", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/dear", NULL), 429);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

static void
rejection_has_the_routes_own_headers(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"
		     "reject_header = Access-Control-Allow-Origin: *\n"
		     "reject_header = X-Why: slow down\n");
	for (unsigned i = 0; i < 2; i++) {
		rig_ask(&rig, &answer, "GET", "/", NULL);
		assert_int_equal(answer_status(&answer), i == 0 ? 200 : 429);
		assert_int_equal(answer_field_count(&answer, "Access-Control-Allow-Origin"), i);
		assert_int_equal(answer_field_count(&answer, "X-Why"), i);
		if (i == 1)
			assert_slice(answer_field(&answer, "X-Why"), SLICE("slow down"));
		answer_release(&answer);
	}
}

/* ---- rate-limit headers on admitted answers ---- */

static void
applications_own_headers_are_replaced(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit ten]\npolicy = 10/1h\n" ALL "limit = ten\nheaders = x-ratelimit\n");
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_int_equal(answer_status(&answer), 200);
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 1);
	assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("10"));
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Remaining"), 1);
	assert_slice(answer_field(&answer, "X-RateLimit-Remaining"), SLICE("9"));
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Reset"), 1);
	assert_between(answer_field(&answer, "X-RateLimit-Reset"), 1, 360);
	/* Others with such a name are not ours. */
	assert_slice(answer_field(&answer, "X-RateLimit-Other"), SLICE("5"));
	assert_slice(answer_body(&answer), SLICE("served"));
	answer_release(&answer);
}

static void
applications_own_headers_are_kept_where_we_have_none(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit ten]\npolicy = 10/1h\n" ALL "limit = ten\n");
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 1);
	assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("7"));
	assert_slice(answer_field(&answer, "X-RateLimit-Remaining"), SLICE("6"));
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Reset"), 0);
	answer_release(&answer);
}

static void
reset_is_told_as_a_time_where_that_is_asked_for(void **state)
{
	struct answer answer;
	const long now = (long)(clock_wall_us() / 1000000);

	(void)state;
	open_rig(APP "[limit ten]\npolicy = 10/1h\n" ALL
		     "limit = ten\nheaders = x-ratelimit-epoch\n");
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_between(answer_field(&answer, "X-RateLimit-Reset"), now + 300, now + 3600);
	answer_release(&answer);
}

/* ---- where the web server only asks ---- */

static void
ask_as(struct answer *answer, uint16_t role, bool keep)
{
	static const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/",
		"REMOTE_ADDR", "192.0.2.1", "CONTENT_LENGTH", "5000", NULL };
	const int fd = rig_connect(&rig);

	answer_to(answer, fd,
		&(const struct request_spec){ .params = params, .role = role, .keep = keep });
	(void)close(fd);
}

static void
assert_asked(uint16_t role)
{
	struct answer answer;

	for (unsigned i = 0; i < 3; i++) {
		ask_as(&answer, role, i % 2 == 0);
		assert_true(answer_is_whole(&answer));
		/* Status first: lighttpd drops what stands before it. */
		assert_int_equal(answer_status(&answer), i < 2 ? 200 : 429);
		assert_int_equal(answer_field_count(&answer, "Retry-After"), i < 2 ? 0 : 1);
		answer_release(&answer);
	}
	assert_int_equal(fake_app_look(app).accepted, 0);
}

static void
authorizer_is_answered_without_the_application(void **state)
{
	(void)state;
	open_rig(APP "[limit two]\npolicy = 2/1h\n" ALL "limit = two\n");
	assert_asked(FCGI_AUTHORIZER);
}

/* nginx's auth_request: a responder without a body, but with the length of one. */
static void
route_without_an_application_is_answered(void **state)
{
	(void)state;
	open_rig("[backend app]\ntype = none\n[limit two]\npolicy = 2/1h\n" ALL "limit = two\n");
	assert_asked(FCGI_RESPONDER);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rejection_is_429_and_says_when_to_come_back),
		TEST(body_has_the_form_that_the_client_asked_for),
		TEST(problem_names_the_policies_that_were_violated),
		TEST(rejected_request_spends_nothing),
		TEST(cost_counts_for_so_many),
		TEST(rejection_has_the_routes_own_headers),
		TEST(applications_own_headers_are_replaced),
		TEST(applications_own_headers_are_kept_where_we_have_none),
		TEST(reset_is_told_as_a_time_where_that_is_asked_for),
		TEST(authorizer_is_answered_without_the_application),
		TEST(route_without_an_application_is_answered),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
