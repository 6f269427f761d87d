/* How long a body is: as CONTENT_LENGTH says, longer, shorter, or not known. */
#include "ask.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends `sent` bytes where CONTENT_LENGTH says `length`. */
static void
answer_to_length(struct answer *answer, const char *length, size_t sent, const char *mode)
{
	const char *const params[] = { "MODE", mode, "CONTENT_LENGTH", length, NULL };
	const int fd = rig_connect(&rig);

	ask_begin(fd, false, params);
	(void)send_body(fd, sent, true);
	answer_read(answer, fd, 1);
	(void)close(fd);
}

static void
body_is_as_long_as_content_length_says(void **state)
{
	static const struct {
		const char *length;
		size_t sent;
		const char *expected; /* NULL: 400 */
	} rows[] = {
		{ "10", 10, "10 0" },
		{ "0010", 10, "10 0" },
		{ "", 0, "0 0" },
		{ "0", 0, "0 0" },
		{ "10", 11, "10 0" },
		{ "10", 1000000, "10 0" },
		{ "0", 10, "0 0" },
		{ "10", 9, NULL },
		{ "10", 0, NULL },
		{ "9223372036854775807", 10, NULL },
	};
	unsigned gone = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct answer answer;

		answer_to_length(&answer, rows[i].length, rows[i].sent, "body");
		assert_int_equal(answer.got, GOT_RECORD);
		if (rows[i].expected != NULL) {
			assert_slice(answer_body(&answer), slice_of(rows[i].expected));
		} else {
			/* The client has gone: nobody waits for what is not coming. Without any
			 * output Apache would make a 200 of it. */
			assert_int_equal(answer_status(&answer), 400);
			gone++;
		}
		assert_int_equal(rig_look(&rig).gone_peer, gone);
		answer_release(&answer);
	}
}

/* nginx's auth_request sends the length of a body that it keeps to itself. */
static void
short_body_that_nobody_wants_does_not_matter(void **state)
{
	struct answer answer;

	(void)state;
	answer_to_length(&answer, "5000", 0, "dump");
	assert_true(answer_is_whole(&answer));
	answer_release(&answer);
	const int fd = rig_connect(&rig);

	ask_begin(
		fd, false, (const char *const[]){ "MODE", "wait", "CONTENT_LENGTH", "5000", NULL });
	assert_true(send_body(fd, 0, true));
	assert_soon(rig_look(&rig).open == 1);
	assert_rig_serves(&rig);
	rig_answer(&rig);
	assert_answered(fd, 200);
	assert_int_equal(rig_look(&rig).gone_peer, 0);
	(void)close(fd);
}

static void
short_body_is_told_when_it_is_wanted_later(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(
		fd, true, (const char *const[]){ "MODE", "wait", "CONTENT_LENGTH", "5000", NULL });
	assert_true(send_body(fd, 0, true));
	assert_soon(rig_look(&rig).open == 1);
	assert_rig_serves(&rig);
	rig_want_body(&rig);
	assert_int_equal(rig_look(&rig).gone_peer, 1);
	assert_answered(fd, 400);
	assert_ended(fd);
	(void)close(fd);
}

/* What has begun as a 200 must not look like a whole one. */
static void
bad_body_behind_the_beginning_of_an_answer_cuts_it(void **state)
{
	struct front_settings settings = rig_settings();

	(void)state;
	settings.body_timeout_us = 100000;
	ask_anew(&settings);
	/* It ends too early; it stops coming. */
	for (unsigned kind = 0; kind < 2; kind++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		ask_begin(fd, true,
			(const char *const[]){
				"MODE", "both", "SIZE", "4", "CONTENT_LENGTH", "10", NULL });
		assert_true(send_body(fd, 9, kind == 0));
		answer_read(&answer, fd, 1);
		assert_int_equal(answer.got, GOT_END);
		assert_int_equal(answer_status(&answer), 200);
		assert_int_equal(answer_body(&answer).len, 4);
		assert_false(answer.ended || answer.out_ended);
		answer_release(&answer);
		(void)close(fd);
	}
	const struct rig_seen seen = rig_look(&rig);

	assert_int_equal(seen.gone_peer, 1);
	assert_int_equal(seen.gone_timeout, 1);
}

/* What becomes of it is the handler's affair. */
static void
body_without_its_length_ends_where_it_ends(void **state)
{
	static const size_t sizes[] = { 0, 1, 3000000 };
	const int fd = rig_connect(&rig);

	(void)state;
	for (unsigned i = 0; i < 3 * LENGTH_OF(sizes); i++) {
		const size_t sent = sizes[i / 3];
		struct answer answer;
		char expected[32];

		/* nginx sends an empty one, Caddy -1, Apache none. */
		ask_begin(fd, true,
			(const char *const[]){ "MODE", "body",
				i % 3 == 0 ? "CONTENT_TYPE" : "CONTENT_LENGTH",
				i % 3 == 1 ? "-1" : "", NULL });
		assert_true(send_body(fd, sent, true));
		answer_read(&answer, fd, 1);
		assert_true(answer_is_whole(&answer));
		(void)snprintf(expected, sizeof expected, "%zu 0", sent);
		assert_slice(answer_body(&answer), slice_of(expected));
		answer_release(&answer);
	}
	(void)close(fd);
}

/* Its end is missing, and so may be a part of it. */
static void
body_without_its_length_that_breaks_off_is_no_body(void **state)
{
	(void)state;
	for (unsigned half = 0; half < 2; half++) {
		const int fd = rig_connect(&rig);

		ask_begin(fd, true, (const char *const[]){ "MODE", "body", NULL });
		assert_true(send_body(fd, 1000, false));
		assert_soon(rig_look(&rig).body_bytes == 1000 * (half + 1));
		if (half != 0)
			assert_int_equal(shutdown(fd, SHUT_WR), 0);
		else
			(void)close(fd);
		assert_soon(rig_look(&rig).gone_peer == half + 1);
		assert_int_equal(rig_look(&rig).body_ends, 0);
		if (half != 0)
			(void)close(fd);
	}
}

static void
content_length_that_is_none_is_400(void **state)
{
	static const char *const lengths[] = { "-2", "-", "-0", "-01", "+1", "1e3", "x", " 1", "1 ",
		"1,1", "0x10", "9223372036854775808", "99999999999999999999999" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
		struct answer answer;

		answer_to_length(&answer, lengths[i], 3, "dump");
		assert_row(answer_status(&answer) == 400, "%s", lengths[i]);
		answer_release(&answer);
	}
	const int fd = rig_connect(&rig);
	struct answer answer;

	ask_begin(fd, false,
		(const char *const[]){ "CONTENT_LENGTH", "1", "CONTENT_LENGTH", "2", NULL });
	answer_read(&answer, fd, 1);
	assert_int_equal(answer_status(&answer), 400);
	answer_release(&answer);
	(void)close(fd);
	assert_int_equal(rig_look(&rig).requests, 0);
}

static unsigned
count_in(struct slice text, struct slice word)
{
	unsigned count = 0;

	for (; text.len >= word.len; text = slice_skip(text, 1))
		count += slice_has_prefix(text, word) ? 1 : 0;
	return count;
}

/* In the environment, and in the parameters that are passed on. */
static void
content_length_that_comes_twice_is_passed_on_once(void **state)
{
	static const struct {
		const char *first, *second, *passed_on;
	} rows[] = {
		{ "3", "3", "3" },
		{ "3", "", "3" },
		{ "", "3", "3" },
		{ "-1", "3", "3" },
		{ "3", "-1", "3" },
		{ "3", "03", "03" },
		{ "", "", "" },
		{ "", "-1", "-1" },
		{ "-1", "", "-1" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		for (unsigned reads = 0; reads < 2; reads++) {
			const char *const params[] = { "CONTENT_LENGTH", rows[i].first, "MODE",
				reads != 0 ? "body" : "dump", "CONTENT_LENGTH", rows[i].second,
				"BEHIND", "x", NULL };
			const int fd = rig_connect(&rig);
			struct answer answer;
			char line[40];

			answer_to(&answer, fd,
				&(const struct request_spec){
					.params = params, .body = SLICE("abc") });
			assert_int_equal(answer_status(&answer), 200);
			(void)snprintf(line, sizeof line, "CONTENT_LENGTH=%s\n", rows[i].passed_on);
			if (reads != 0) {
				assert_usual_body(&answer);
			} else {
				const struct slice seen = answer_body(&answer);

				assert_int_equal(count_in(seen, slice_of(line)), 1);
				assert_int_equal(count_in(seen, SLICE("CONTENT_LENGTH")), 2);
				assert_int_equal(count_in(seen, SLICE("BEHIND")), 2);
			}
			answer_release(&answer);
			(void)close(fd);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body_is_as_long_as_content_length_says),
		TEST(short_body_that_nobody_wants_does_not_matter),
		TEST(short_body_is_told_when_it_is_wanted_later),
		TEST(bad_body_behind_the_beginning_of_an_answer_cuts_it),
		TEST(body_without_its_length_ends_where_it_ends),
		TEST(body_without_its_length_that_breaks_off_is_no_body),
		TEST(content_length_that_is_none_is_400),
		TEST(content_length_that_comes_twice_is_passed_on_once),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
