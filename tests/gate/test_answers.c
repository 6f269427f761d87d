/*
 * What our own answers say: which policies, in which dialect, when to come back, and in whose
 * words.
 */
#include "serve.h"

#include "../../src/gate/gate_private.h"

#include <stdio.h>
#include <unistd.h>

static void
open_rig(const char *ini)
{
	serve(ini, answers_with_own_headers);
}

static void
ask(struct answer *answer, const char *uri, const char *accept)
{
	rig_ask(&rig, answer, "GET", uri, (const char *const[]){ "HTTP_ACCEPT", accept, NULL });
	assert_true(answer_is_whole(answer));
}

static void
assert_has(struct slice text, const char *part)
{
	assert_row(memmem(text.ptr, text.len, part, strlen(part)) != NULL, "%.*s has no %s",
		(int)text.len, text.ptr, part);
}

static long
number_of(struct slice text)
{
	char digits[24] = "";

	assert_true(text.len > 0 && text.len < sizeof digits);
	memcpy(digits, text.ptr, text.len);
	assert_int_equal(strspn(digits, "0123456789"), text.len);
	return strtol(digits, NULL, 10);
}

/* ---- dialects ---- */

/* The fields that stand still, and how those begin that do not. */
static void
every_algorithm_is_told_as_what_it_is(void **state)
{
	static const struct {
		const char *policy, *quota, *admitted, *rejected, *older;
	} rows[] = {
		{ "1/1h", "\"l\";q=1;w=3600", "\"l\";r=0;t=3", "\"l\";r=0;t=3", "1;w=3600" },
		{ "60/1h burst 1", "\"l\";q=1;w=60", "\"l\";r=0;t=", "\"l\";r=0;t=", "1;w=60" },
		{ "1/1h sliding-window", "\"l\";q=1;w=3600",
			"\"l\";r=0;t=", "\"l\";r=0;t=", "1;w=3600" },
		{ "1/1h sliding-log", "\"l\";q=1;w=3600", "\"l\";r=0;t=3", "\"l\";r=0;t=3",
			"1;w=3600" },
		{ "1/month calendar", "\"l\";q=1;w=2678400",
			"\"l\";r=0;t=", "\"l\";r=0;t=", "1;w=2678400" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct answer answer;
		char ini[1000];

		(void)snprintf(ini, sizeof ini,
			APP "[limit l]\npolicy = %s\n[route old]\nmatch = /old\nlimit = l\n"
			    "headers = ratelimit-06\n" ALL
			    "limit = l\nheaders = ratelimit, x-ratelimit\n",
			rows[i].policy);
		open_rig(ini);
		for (unsigned j = 0; j < 2; j++) {
			const char *expected = j == 0 ? rows[i].admitted : rows[i].rejected;

			ask(&answer, "/", "*/*");
			assert_int_equal(answer_status(&answer), j == 0 ? 200 : 429);
			assert_slice(
				answer_field(&answer, "RateLimit-Policy"), slice_of(rows[i].quota));
			assert_row(slice_has_prefix(
					   answer_field(&answer, "RateLimit"), slice_of(expected)),
				"%s", expected);
			assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("1"));
			assert_int_equal(answer_field_count(&answer, "RateLimit-Limit"), 0);
			answer_release(&answer);
		}
		ask(&answer, "/old", "*/*");
		assert_slice(answer_field(&answer, "RateLimit-Policy"), slice_of(rows[i].older));
		assert_slice(answer_field(&answer, "RateLimit-Limit"), SLICE("1"));
		assert_slice(answer_field(&answer, "RateLimit-Remaining"), SLICE("0"));
		assert_slice(answer_field(&answer, "RateLimit-Reset"),
			answer_field(&answer, "Retry-After"));
		assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
		assert_int_equal(answer_field_count(&answer, "RateLimit"), 0);
		answer_release(&answer);
		if (i + 1 < LENGTH_OF(rows))
			(void)serve_tear_down(NULL);
	}
}

static void
too_many_at_a_time_may_come_back_in_a_second(void **state)
{
	struct answer answer;

	(void)state;
	serve(APP "[limit slots]\npolicy = concurrent 1\n" ALL
		  "limit = slots\nheaders = ratelimit\n",
		says_nothing);
	const int fd = begin(true, NULL);

	assert_true(send_body(fd, 0, true));
	assert_soon(fake_app_look(app).requests == 1);
	ask(&answer, "/", "application/json");
	assert_int_equal(answer_status(&answer), 429);
	assert_slice(answer_field(&answer, "Retry-After"), SLICE("1"));
	assert_slice(answer_field(&answer, "RateLimit-Policy"),
		SLICE("\"slots\";q=1;qu=\"concurrent-requests\""));
	assert_slice(answer_field(&answer, "RateLimit"), SLICE("\"slots\";r=0"));
	assert_has(answer_body(&answer), "\"violated-policies\":[\"slots\"]");
	answer_release(&answer);
	(void)close(fd);
}

/* Neither by its name nor by that of its neighbour. */
static void
what_only_counts_is_never_told(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit two]\npolicy = 2/1h\npolicy = 1/1d shadow\n"
		     "[limit silent]\npolicy = 1/1d\nenforce = no\n" ALL
		     "limit = two, silent\nheaders = ratelimit, x-ratelimit\n");
	for (unsigned i = 0; i < 3; i++) {
		ask(&answer, "/", "application/json");
		assert_int_equal(answer_status(&answer), i < 2 ? 200 : 429);
		assert_slice(
			answer_field(&answer, "RateLimit-Policy"), SLICE("\"two\";q=2;w=3600"));
		assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("2"));
		if (i == 2)
			assert_has(answer_body(&answer), "\"violated-policies\":[\"two\"]");
		answer_release(&answer);
	}
}

static void
nothing_is_told_where_nothing_is_enforced(void **state)
{
	struct answer answer;

	(void)state;
	open_rig("[weir]\nenforce = no\n" APP "[limit one]\npolicy = 1/1h\n" ALL
		 "limit = one\nheaders = ratelimit, x-ratelimit\n");
	for (unsigned i = 0; i < 3; i++) {
		ask(&answer, "/", "*/*");
		assert_int_equal(answer_status(&answer), 200);
		assert_int_equal(answer_field_count(&answer, "RateLimit"), 0);
		assert_int_equal(answer_field_count(&answer, "RateLimit-Policy"), 0);
		/* The application's own. */
		assert_slice(answer_field(&answer, "X-RateLimit-Limit"), SLICE("7"));
		answer_release(&answer);
	}
}

/* ---- when to come back ---- */

enum { TRIES = 60 };

static void
jitter_spreads_and_is_never_early(void **state)
{
	struct answer answer;
	long low = 1000000, high = 0;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\n" ALL
		     "limit = one\nheaders = ratelimit-07\nretry_jitter = 50%\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 0; i < TRIES; i++) {
		char sentence[100], words[WAIT_TEXT_SIZE], reset[100];

		ask(&answer, "/", "text/plain");
		const long wait = number_of(answer_field(&answer, "Retry-After"));

		assert_in_range(wait, 3500, 5400);
		low = wait < low ? wait : low;
		high = wait > high ? wait : high;
		/* Whatever it says, it says the same everywhere. */
		(void)snprintf(
			sentence, sizeof sentence, "Try again in %s.", wait_text(wait, words));
		assert_has(answer_body(&answer), sentence);
		(void)snprintf(reset, sizeof reset, "limit=1, remaining=0, reset=%ld", wait);
		assert_slice(answer_field(&answer, "RateLimit"), slice_of(reset));
		answer_release(&answer);
	}
	/* All in the same third of the range: less likely than 3 in 10^28. */
	assert_true(high - low > 600);
}

/* A wait of 20 seconds becomes one of 20 to 22. */
static void
jitter_of_ten_percent_is_as_much_at_times(void **state)
{
	long low = 1000, high = 0;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/20s\n" ALL "limit = one\nretry_jitter = 10%\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 0; i < TRIES; i++) {
		struct answer answer;

		ask(&answer, "/", "*/*");
		const long wait = number_of(answer_field(&answer, "Retry-After"));

		low = wait < low ? wait : low;
		high = wait > high ? wait : high;
		answer_release(&answer);
	}
	assert_in_range(low, 1, 20);
	assert_int_equal(high, 22);
}

static void
retry_after_is_not_before_the_window_of_any_policy_ends(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\npolicy = 100/1d\n" ALL
		     "limit = one\nheaders = ratelimit\nretry_jitter = 100%\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 0; i < TRIES; i++) {
		ask(&answer, "/", "*/*");
		const struct slice field = answer_field(&answer, "RateLimit");
		const struct slice start = SLICE("\"one-1h\";r=0;t=");

		assert_true(slice_has_prefix(field, start));
		const long window = number_of(slice_skip(field, start.len));

		assert_in_range(window, 3500, 3600);
		assert_in_range(number_of(answer_field(&answer, "Retry-After")), window, 7200);
		answer_release(&answer);
	}
}

/* There is no whole second within a tenth of one. */
static void
short_waits_have_no_jitter(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 12/1m burst 1\n" ALL
		     "limit = one\nretry_jitter = 10%\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 0; i < 20; i++) {
		ask(&answer, "/", "*/*");
		if (answer_status(&answer) == 429)
			assert_in_range(number_of(answer_field(&answer, "Retry-After")), 1, 5);
		answer_release(&answer);
	}
}

static void
cost_beyond_the_burst_is_told_apart(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP "[limit ten]\npolicy = 10/1h\n" ALL
		     "limit = ten\ncost = param n max 100\nheaders = ratelimit\n");
	ask(&answer, "/?n=11", "application/problem+json");
	assert_int_equal(answer_status(&answer), 429);
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	/* Nothing was spent, and there is nothing to wait for. */
	assert_slice(answer_field(&answer, "RateLimit"), SLICE("\"ten\";r=10"));
	assert_slice(answer_body(&answer),
		SLICE("{\"type\":\"https://iana.org/assignments/"
		      "http-problem-types#quota-exceeded\","
		      "\"title\":\"Too Many Requests\",\"status\":429,\"detail\":\"This request "
		      "costs more than its limit ever admits.\",\"reason\":\"cost-exceeds-burst\","
		      "\"violated-policies\":[\"ten\"]}\n"));
	answer_release(&answer);
	assert_int_equal(rig_logged(&rig, "cost exceeds burst"), 1);
	ask(&answer, "/?n=10", "*/*");
	assert_int_equal(answer_status(&answer), 200);
	answer_release(&answer);
	/* That one would pass some day. */
	ask(&answer, "/?n=10", "application/problem+json");
	assert_int_equal(answer_status(&answer), 429);
	assert_true(answer_field(&answer, "Retry-After").len > 0);
	assert_null(memmem(answer_body(&answer).ptr, answer_body(&answer).len, "\"reason\"", 8));
	answer_release(&answer);
}

/* ---- in whose words ---- */

static void
route_has_a_page_of_its_own(void **state)
{
	static const struct {
		const char *name, *type, *text;
	} pages[] = {
		{ "busy.html", "text/html; charset=utf-8", "<p>caf\xc3\xa9 %s is busy</p>" },
		{ "busy.json", "application/json", "{\"busy\":true}" },
		{ "busy.txt", "text/plain; charset=utf-8", "Busy.\r\n\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(pages); i++) {
		struct answer answer;
		char ini[1000];

		open_rig(APP ALL);
		directory_write(&rig.directory, pages[i].name, slice_of(pages[i].text));
		(void)snprintf(ini, sizeof ini,
			APP "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n"
			    "reject_page = DIR/%s\n",
			pages[i].name);
		rig_reload(&rig, ini);
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
		/* Whatever the client would have liked. */
		ask(&answer, "/", "application/problem+json");
		assert_int_equal(answer_status(&answer), 429);
		assert_slice(answer_field(&answer, "Content-Type"), slice_of(pages[i].type));
		assert_slice(answer_body(&answer), slice_of(pages[i].text));
		assert_int_equal(
			number_of(answer_field(&answer, "Content-Length")), strlen(pages[i].text));
		assert_slice(answer_field(&answer, "Cache-Control"), SLICE("no-store"));
		assert_true(answer_field(&answer, "Retry-After").len > 0);
		answer_release(&answer);
		rig_ask(&rig, &answer, "HEAD", "/", NULL);
		assert_true(answer_is_whole(&answer));
		assert_int_equal(
			number_of(answer_field(&answer, "Content-Length")), strlen(pages[i].text));
		assert_int_equal(answer_body(&answer).len, 0);
		answer_release(&answer);
		if (i + 1 < LENGTH_OF(pages))
			(void)serve_tear_down(NULL);
	}
}

static void
page_of_64_kilobytes_arrives_whole(void **state)
{
	enum { SIZE = 65536 };
	static char text[SIZE];
	struct answer answer;

	(void)state;
	memset(text, 'x', sizeof text);
	open_rig(APP ALL);
	directory_write(&rig.directory, "large.txt", slice_make(text, sizeof text));
	rig_reload(&rig,
		APP "[limit one]\npolicy = 1/1h\n" ALL
		    "limit = one\nreject_page = DIR/large.txt\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	ask(&answer, "/", "*/*");
	assert_int_equal(answer_status(&answer), 429);
	assert_slice(answer_body(&answer), slice_make(text, sizeof text));
	answer_release(&answer);
}

/* The page speaks of a rejection, and this is none. */
static void
page_is_for_rejections_only(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(APP ALL);
	directory_write(&rig.directory, "busy.txt", SLICE("Busy."));
	rig_reload(&rig,
		APP
		"[limit known]\nidentity = header X-Key\non_missing = reject\npolicy = 1/1h\n" ALL
		"limit = known\nreject_page = DIR/busy.txt\nreject_header = X-Why: you\n");
	ask(&answer, "/", "application/json");
	assert_int_equal(answer_status(&answer), 403);
	assert_slice(answer_field(&answer, "Content-Type"), SLICE("application/problem+json"));
	assert_slice(answer_field(&answer, "X-Why"), SLICE("you"));
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
	answer_release(&answer);
}

static void
blocked_client_is_told_nothing_but_403(void **state)
{
	static const char *const bad[] = { "REMOTE_ADDR", "198.51.100.7", "HTTP_ACCEPT",
		"application/json", NULL };
	struct answer answer;

	(void)state;
	open_rig(APP "[limit one]\npolicy = 100/1h\n"
		     "[override bad]\nlimit = one\nfor = ip 198.51.100.0/24\nblock = yes\n" ALL
		     "limit = one\nheaders = ratelimit, x-ratelimit\n");
	for (unsigned i = 0; i < 3; i++) {
		rig_ask(&rig, &answer, "GET", "/", bad);
		assert_true(answer_is_whole(&answer));
		assert_true(slice_has_prefix(
			buf_slice(&answer.out), SLICE("Status: 403 Forbidden\r\n")));
		assert_slice(answer_field(&answer, "Cache-Control"), SLICE("no-store"));
		assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
		assert_int_equal(answer_field_count(&answer, "RateLimit-Policy"), 0);
		assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
		assert_has(answer_body(&answer), "\"type\":\"about:blank\"");
		assert_has(answer_body(&answer), "\"status\":403");
		answer_release(&answer);
	}
	assert_int_equal(fake_app_look(app).accepted, 0);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
}

/* ---- as much as there can be ---- */

/* As long as a line of the configuration lets them be. */
#define X16 "xxxxxxxxxxxxxxxx"
#define X60 X16 X16 X16 "xxxxxxxxxxxx"

static void
put_longest(struct buf *ini)
{
	int result = buf_printf(ini, "%s", APP);

	for (unsigned i = 0; i < 8 && result == 0; i++)
		result = buf_printf(ini,
			"[limit l%03u" X16 "]\npolicy = 1/1h name p" X60 "001\n"
			"policy = 1/1d name p" X60 "002\n",
			i);
	if (result == 0)
		result = buf_printf(ini, ALL "headers = ratelimit, x-ratelimit-epoch\nlimit = ");
	for (unsigned i = 0; i < 8 && result == 0; i++)
		result = buf_printf(ini, "%sl%03u" X16, i == 0 ? "" : ",", i);
	for (unsigned i = 0; i < 32 && result == 0; i++)
		result = buf_printf(ini, "\nreject_header = X-%02u: " X60 X60, i);
	assert_int_equal(result, 0);
	assert_int_equal(buf_append(ini, "\n", 2), 0);
}

static void
the_longest_answer_is_whole(void **state)
{
	struct answer answer;
	struct buf ini;

	(void)state;
	bytes_init(&ini);
	put_longest(&ini);
	open_rig(buf_slice(&ini).ptr);
	buf_release(&ini);
	for (unsigned i = 0; i < 2; i++) {
		ask(&answer, "/", "application/json");
		assert_int_equal(answer_status(&answer), i == 0 ? 200 : 429);
		assert_has(answer_field(&answer, "RateLimit-Policy"), "002\";q=1;w=86400");
		assert_has(
			answer_field(&answer, "RateLimit"), "\"l007" X16 "-p" X60 "002\";r=0;t=");
		answer_release(&answer);
	}
	ask(&answer, "/", "application/json");
	assert_has(answer_body(&answer), "\"l007" X16 "-p" X60 "002\"]}\n");
	assert_int_equal(answer_field(&answer, "X-31").len, 120);
	assert_int_equal(
		number_of(answer_field(&answer, "Content-Length")), answer_body(&answer).len);
	answer_release(&answer);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_algorithm_is_told_as_what_it_is),
		TEST(too_many_at_a_time_may_come_back_in_a_second),
		TEST(what_only_counts_is_never_told),
		TEST(nothing_is_told_where_nothing_is_enforced),
		TEST(jitter_spreads_and_is_never_early),
		TEST(jitter_of_ten_percent_is_as_much_at_times),
		TEST(retry_after_is_not_before_the_window_of_any_policy_ends),
		TEST(short_waits_have_no_jitter),
		TEST(cost_beyond_the_burst_is_told_apart),
		TEST(route_has_a_page_of_its_own),
		TEST(page_of_64_kilobytes_arrives_whole),
		TEST(page_is_for_rejections_only),
		TEST(blocked_client_is_told_nothing_but_403),
		TEST(the_longest_answer_is_whole),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
