/* Answers and how they end: what becomes of the connection, and of the rest of a body. */
#include "ask.h"

#include <unistd.h>

/* ---- the end of an answer ---- */

static void
our_side_is_shut_behind_the_answer_if_it_is_not_kept(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, false, dump);
	assert_answered(fd, 200);
	/* Although we have not closed, nor ended the body. */
	assert_ended(fd);
	(void)close(fd);
}

static void
refused_upload_is_read_to_its_end(void **state)
{
	static const char *const lengths[] = { "30000000", "" };

	(void)state;
	for (unsigned keep = 0; keep < 2; keep++) {
		for (size_t i = 0; i < LENGTH_OF(lengths); i++) {
			const char *const params[] = { "MODE", "dump", "CONTENT_LENGTH", lengths[i],
				NULL };
			const int fd = rig_connect(&rig);

			ask_begin(fd, keep != 0, params);
			/* All of it is taken, though the answer came before. */
			assert_true(send_body(fd, 30000000, true));
			assert_answered(fd, 200);
			assert_int_equal(rig_look(&rig).body_bytes, keep == 0 ? 0 : 3 * i);
			if (keep != 0)
				assert_goes_on(fd);
			else
				assert_ended(fd);
			(void)close(fd);
			assert_soon(rig_connections() == 0);
		}
	}
}

static void
next_request_ends_the_rest_of_a_body(void **state)
{
	static const size_t sent[] = { 0, 1, 30000 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sent); i++) {
		const char *const params[] = { "MODE", "dump", "CONTENT_LENGTH", "60000", NULL };
		const int fd = rig_connect(&rig);

		ask_begin(fd, true, params);
		assert_answered(fd, 200);
		assert_true(send_body(fd, sent[i], false));
		assert_goes_on(fd);
		assert_goes_on(fd);
		(void)close(fd);
	}
}

static void
small_rest_of_a_body_is_skipped_and_the_connection_kept(void **state)
{
	static const size_t sent_before[] = { 0, 1, 30000, 60000 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sent_before); i++) {
		const char *const params[] = { "MODE", "dump", "CONTENT_LENGTH", "60000", NULL };
		const int fd = rig_connect(&rig);

		ask_begin(fd, true, params);
		assert_true(send_body(fd, sent_before[i], false));
		assert_answered(fd, 200);
		assert_true(send_body(fd, 60000 - sent_before[i], true));
		assert_goes_on(fd);
		assert_goes_on(fd);
		(void)close(fd);
	}
}

static void
rest_of_a_body_that_was_begun_is_skipped(void **state)
{
	const char *const params[] = { "MODE", "early", "CONTENT_LENGTH", "60000", NULL };
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, true, params);
	assert_true(send_body(fd, 10, false));
	assert_answered(fd, 200);
	assert_true(send_body(fd, 59990, true));
	assert_goes_on(fd);
	assert_int_equal(rig_look(&rig).pieces, 2);
	(void)close(fd);
}

/* CONTENT_LENGTH was a lie. */
static void
endless_rest_of_a_body_ends_the_connection(void **state)
{
	const char *const params[] = { "MODE", "dump", "CONTENT_LENGTH", "10", NULL };
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, true, params);
	assert_answered(fd, 200);
	assert_true(send_body(fd, 1000000, false));
	assert_ended(fd);
	(void)close(fd);
}

static void
end_without_output_has_no_empty_output_record(void **state)
{
	static struct record record;
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, false, (const char *const[]){ "MODE", "end", NULL });
	assert_int_equal(read_record(fd, &record), GOT_RECORD);
	assert_int_equal(record.type, FCGI_END_REQUEST);
	assert_int_equal(record.content[3], 7);
	assert_ended(fd);
	(void)close(fd);
}

static void
cut_answer_has_no_end(void **state)
{
	(void)state;
	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		ask_begin(fd, keep != 0, (const char *const[]){ "MODE", "cut", NULL });
		answer_read(&answer, fd, 1);
		assert_int_equal(answer.got, GOT_END);
		assert_slice(answer_body(&answer), SLICE("half"));
		assert_false(answer.ended || answer.out_ended);
		answer_release(&answer);
		(void)close(fd);
	}
}

/* mod_fcgid would kill us; the client sees the short body by its Content-Length. */
static void
cut_answer_ends_in_order_for_mod_fcgid(void **state)
{
	struct front_settings settings = rig_settings();
	const char *const params[] = { "MODE", "cut", "SERVER_SOFTWARE", "Apache/2.4", NULL };

	(void)state;
	settings.by_mod_fcgid = true;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);
	struct answer answer;

	ask_begin(fd, false, params);
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer.app_status, 1);
	assert_slice(answer_body(&answer), SLICE("half"));
	answer_release(&answer);
	assert_ended(fd);
	(void)close(fd);
}

/* ---- large answers ---- */

static void
producer_waits_for_a_slow_reader(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, false, (const char *const[]){ "MODE", "big", "SIZE", "20000000", NULL });
	/* It stops: the rest does not wait in memory. */
	assert_soon(rig_look(&rig).open == 1);
	assert_rig_serves(&rig);
	(void)poll(NULL, 0, 20);
	assert_int_equal(rig_look(&rig).open, 1);
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 20000000);
	assert_true(rig_look(&rig).drains > 3);
	answer_release(&answer);
	(void)close(fd);
}

static void
error_text_is_passed_on_up_to_its_maximum(void **state)
{
	static const char *const sizes[] = { "1", "65535", "65536", "65537", "1000000" };
	static const size_t passed[] = { 1, 65535, 65536, 65536, 65536 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
		const int fd = rig_connect(&rig);
		struct answer answer;

		ask_begin(fd, false,
			(const char *const[]){ "MODE", "stderr", "SIZE", sizes[i], NULL });
		answer_read(&answer, fd, 1);
		assert_true(answer_is_whole(&answer));
		assert_int_equal(answer.err.len, passed[i]);
		assert_slice(answer_body(&answer), SLICE("told"));
		answer_release(&answer);
		(void)close(fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(our_side_is_shut_behind_the_answer_if_it_is_not_kept),
		TEST(refused_upload_is_read_to_its_end),
		TEST(next_request_ends_the_rest_of_a_body),
		TEST(small_rest_of_a_body_is_skipped_and_the_connection_kept),
		TEST(rest_of_a_body_that_was_begun_is_skipped),
		TEST(endless_rest_of_a_body_ends_the_connection),
		TEST(end_without_output_has_no_empty_output_record),
		TEST(cut_answer_has_no_end),
		TEST(cut_answer_ends_in_order_for_mod_fcgid),
		TEST(producer_waits_for_a_slow_reader),
		TEST(error_text_is_passed_on_up_to_its_maximum),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
