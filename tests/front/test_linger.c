/* What comes when nobody wants it any more: read for a while, for so many bytes, and no longer. */
#include "ask.h"

#include <errno.h>
#include <unistd.h>

static const char *const upload[] = { "MODE", "dump", "CONTENT_LENGTH", "50000000", NULL };

/* Settings that no test reaches by accident, but for those that it sets. */
static struct front_settings
patient(void)
{
	struct front_settings settings = rig_settings();

	settings.linger_timeout_us = 60 * INT64_C(1000000);
	settings.linger_total_us = 600 * INT64_C(1000000);
	return settings;
}

/* Sends a little every few milliseconds until the other side takes no more. */
static bool
trickle_is_stopped(int fd)
{
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * INT64_C(1000000);

	while (clock_monotonic_us() < give_up_us) {
		if (!send_body(fd, 10, false))
			return true;
		(void)poll(NULL, 0, 5);
	}
	return false;
}

/* ---- connections that are not kept ---- */

static void
connection_that_is_not_closed_is_closed_after_a_silence(void **state)
{
	(void)state;
	for (unsigned in_all = 0; in_all < 2; in_all++) {
		struct front_settings settings = patient();

		if (in_all != 0)
			settings.linger_total_us = 50000;
		else
			settings.linger_timeout_us = 50000;
		ask_anew(&settings);
		const int fd = rig_connect(&rig);

		ask_begin(fd, false, upload);
		assert_answered(fd, 200);
		assert_ended(fd);
		assert_soon(rig_connections() == 0);
		(void)close(fd);
	}
}

static void
refused_upload_is_not_read_for_ever(void **state)
{
	struct front_settings settings = patient();

	(void)state;
	settings.linger_total_us = 100000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	ask_begin(fd, false, upload);
	assert_answered(fd, 200);
	assert_true(trickle_is_stopped(fd));
	assert_soon(rig_connections() == 0);
	(void)close(fd);
}

static void
refused_upload_is_read_up_to_a_number_of_bytes(void **state)
{
	struct front_settings settings = patient();

	(void)state;
	settings.linger_bytes = 100000;
	ask_anew(&settings);
	for (unsigned keep = 0; keep < 2; keep++) {
		const int fd = rig_connect(&rig);

		ask_begin(fd, keep != 0, upload);
		assert_answered(fd, 200);
		/* A kept one lingers first, for as much again. */
		assert_false(send_body(fd, 5000000, false));
		assert_soon(rig_connections() == 0);
		(void)close(fd);
	}
}

static void
both_sides_have_ended_so_nothing_is_waited_for(void **state)
{
	const struct front_settings settings = patient();

	(void)state;
	ask_anew(&settings);
	/* First they, then we; and the other way round. */
	for (unsigned first = 0; first < 2; first++) {
		const int fd = rig_connect(&rig);

		ask_begin(fd, false, waits);
		assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).open == 1);
		if (first == 0)
			assert_int_equal(shutdown(fd, SHUT_WR), 0);
		assert_rig_serves(&rig);
		rig_answer(&rig);
		assert_answered(fd, 200);
		assert_ended(fd);
		if (first != 0)
			assert_int_equal(shutdown(fd, SHUT_WR), 0);
		assert_soon(rig_connections() == 0);
		(void)close(fd);
	}
}

/* ---- kept ones ---- */

/* Apache sends no rest when it has the answer: the connection is of use at once, and stays so. */
static void
kept_connection_is_idle_after_a_silence(void **state)
{
	struct front_settings settings = patient();

	(void)state;
	settings.linger_timeout_us = 50000;
	settings.max_connections = 1;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	ask_begin(fd, true, upload);
	assert_answered(fd, 200);
	/* Longer than every clock of the body's rest. */
	(void)poll(NULL, 0, 200);
	assert_goes_on(fd);
	(void)poll(NULL, 0, 200);
	assert_goes_on(fd);
	ask_begin(fd, true, upload);
	assert_answered(fd, 200);
	/* Idle, it makes room for another. */
	assert_rig_serves(&rig);
	assert_ended(fd);
	(void)close(fd);
}

/* The clock of the rest ends with the rest. */
static void
kept_connection_has_no_clock_behind_the_rest_of_a_body(void **state)
{
	struct front_settings settings = patient();

	(void)state;
	settings.linger_timeout_us = 100000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	ask_begin(fd, true, upload);
	assert_answered(fd, 200);
	assert_true(send_body(fd, 10, true));
	(void)poll(NULL, 0, 300);
	assert_goes_on(fd);
	(void)close(fd);
}

static void
rest_of_a_body_that_comes_for_ever_ends_a_kept_connection(void **state)
{
	struct front_settings settings = patient();

	(void)state;
	settings.linger_total_us = 100000;
	ask_anew(&settings);
	const int fd = rig_connect(&rig);

	ask_begin(fd, true, upload);
	assert_answered(fd, 200);
	assert_true(trickle_is_stopped(fd));
	assert_soon(rig_connections() == 0);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(connection_that_is_not_closed_is_closed_after_a_silence),
		TEST(refused_upload_is_not_read_for_ever),
		TEST(refused_upload_is_read_up_to_a_number_of_bytes),
		TEST(both_sides_have_ended_so_nothing_is_waited_for),
		TEST(kept_connection_is_idle_after_a_silence),
		TEST(kept_connection_has_no_clock_behind_the_rest_of_a_body),
		TEST(rest_of_a_body_that_comes_for_ever_ends_a_kept_connection),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
