/* How long a body is: as CONTENT_LENGTH says, longer, shorter, or not known. */
#include "ask.h"

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
	static const char *const lengths[] = { "10", "10", NULL };

	(void)state;
	settings.body_timeout_us = 100000;
	ask_anew(&settings);
	/* It ends too early; it stops coming; its length is not said. */
	for (unsigned kind = 0; kind < LENGTH_OF(lengths); kind++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		ask_begin(fd, true,
			(const char *const[]){ "MODE", "both", "SIZE", "4",
				lengths[kind] == NULL ? NULL : "CONTENT_LENGTH", lengths[kind],
				NULL });
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
	assert_int_equal(seen.gone_no_length, 1);
}

/* php-fpm does not read such a body: the upload would vanish without a word. */
static void
body_without_its_length_is_411(void **state)
{
	const int64_t before = rig_faults("no_length");

	(void)state;
	for (unsigned empty = 0; empty < 2; empty++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		/* nginx sends an empty one, Apache none. */
		ask_begin(fd, true,
			(const char *const[]){ "MODE", "body",
				empty != 0 ? "CONTENT_LENGTH" : "CONTENT_TYPE", "", NULL });
		assert_soon(rig_look(&rig).open == 1);
		assert_true(send_body(fd, 1, false));
		answer_read(&answer, fd, 1);
		assert_true(answer_is_whole(&answer));
		assert_int_equal(answer_status(&answer), 411);
		assert_non_null(memmem(answer.out.data, answer.out.len, "Content-Length: the", 19));
		answer_release(&answer);
		/* The rest is read, or Apache would lose the answer. */
		assert_true(send_body(fd, 3000000, true));
		assert_ended(fd);
		(void)close(fd);
	}
	assert_int_equal(rig_look(&rig).gone_no_length, 2);
	assert_int_equal(rig_look(&rig).pieces, 0);
	assert_int_equal(rig_faults("no_length") - before, 2);
}

/* It is rejected for what it is, and a body that is not there needs no length. */
static void
length_is_not_asked_for_without_need(void **state)
{
	const char *const no_length[] = { "MODE", "body", NULL };
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, true, dump);
	assert_true(send_body(fd, 100000, true));
	assert_answered(fd, 200);
	ask_begin(fd, true, no_length);
	assert_true(send_body(fd, 0, true));
	assert_answered(fd, 200);
	assert_int_equal(rig_look(&rig).gone_no_length, 0);
	(void)close(fd);
}

static void
content_length_that_is_none_is_400(void **state)
{
	static const char *const lengths[] = { "-1", "+1", "1e3", "x", " 1", "1 ", "1,1", "0x10",
		"9223372036854775808", "99999999999999999999999" };

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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body_is_as_long_as_content_length_says),
		TEST(short_body_that_nobody_wants_does_not_matter),
		TEST(short_body_is_told_when_it_is_wanted_later),
		TEST(bad_body_behind_the_beginning_of_an_answer_cuts_it),
		TEST(body_without_its_length_is_411),
		TEST(length_is_not_asked_for_without_need),
		TEST(content_length_that_is_none_is_400),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
