/* What signals do to `weir serve`: it ends in order, or takes another configuration. */
#include "serving.h"

#include <signal.h>
#include <unistd.h>

/* ---- signals ---- */

static void
each_stop_signal_lets_a_request_end(void **state)
{
	static const int signals[][2] = { { SIGTERM, 0 }, { SIGINT, 0 }, { SIGUSR1, 0 },
		{ SIGTERM, SIGTERM }, { SIGUSR1, SIGTERM }, { SIGTERM, SIGHUP } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(signals); i++) {
		struct answer answer;

		weir_start(LISTEN STATE APP ALL);
		const int fd = begin_request();

		for (size_t j = 0; j < 2 && signals[i][j] != 0; j++) {
			process_signal(&process, signals[i][j]);
			assert_soon(process_said(&process, "Stopping: no new requests"));
		}
		/* Nobody new gets in, and the one who is in is served. */
		assert_soon(process_said(&process, "Stopping"));
		directory_write(&directory, "go", SLICE(""));
		answer_read(&answer, fd, 1);
		assert_true(answer_is_whole(&answer));
		assert_slice(answer_body(&answer), SLICE("done"));
		answer_release(&answer);
		(void)close(fd);
		assert_int_equal(process_wait(&process), 0);
		assert_true(process_said(&process, "Stopped. requests_cut=0"));
		/* Once, however many signals came. */
		const char *first = strstr(process_error(&process), "Stopping");

		assert_null(strstr(first + 1, "Stopping"));
		process_release(&process);
		fake_app_stop(app);
		app = NULL;
		assert_int_equal(unlink(go.text), 0);
		assert_int_equal(unlink(directory_path(&directory, "app.sock").text), 0);
	}
}

static void
what_does_not_end_within_drain_is_cut(void **state)
{
	struct answer answer;

	(void)state;
	weir_start(LISTEN "drain = 300ms\n" STATE APP ALL);
	const int fd = begin_request();
	const int half = connect_to("weir.sock");

	assert_true(socket_send(half, SLICE("\1\1\0\1\0\10\0\0\0\1\0")));
	const int64_t start_us = clock_monotonic_us();

	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	assert_true(clock_monotonic_us() >= start_us + 300000);
	assert_row(
		process_said(&process, "Stopped. requests_cut=1"), "%s", process_error(&process));
	/* No truncated answer looks whole. */
	answer_read(&answer, fd, 1);
	assert_int_not_equal(answer.got, GOT_RECORD);
	assert_int_equal(answer.out.len, 0);
	answer_release(&answer);
	(void)close(fd);
	(void)close(half);
	directory_write(&directory, "go", SLICE(""));
}

static void
stop_without_requests_is_quick_also_with_kept_connections(void **state)
{
	int fds[5];

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		struct answer answer;

		fds[i] = connect_to("weir.sock");
		answer_to(&answer, fds[i],
			&(const struct request_spec){ .params = params, .keep = true });
		assert_true(answer_is_whole(&answer));
		answer_release(&answer);
	}
	const int64_t start_us = clock_monotonic_us();

	weir_stop();
	/* Far less than the drain's seven seconds. */
	assert_true(clock_monotonic_us() - start_us < 5000000);
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		(void)close(fds[i]);
}

/* ---- reload ---- */

static void
reload_takes_a_new_configuration(void **state)
{
	struct answer answer;

	(void)state;
	weir_start(LISTEN STATE APP ALL);
	const int fd = begin_request();

	write_config(LISTEN STATE NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n");
	process_signal(&process, SIGHUP);
	assert_soon(process_said(&process, "The configuration was read anew."));
	assert_int_equal(status_at("weir.sock"), 200);
	assert_int_equal(status_at("weir.sock"), 429);
	/* The request from before ends as it began. */
	directory_write(&directory, "go", SLICE(""));
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	assert_slice(answer_body(&answer), SLICE("done"));
	answer_release(&answer);
	(void)close(fd);
	weir_stop();
}

static void
reload_of_a_wrong_configuration_changes_nothing(void **state)
{
	(void)state;
	weir_start(LISTEN STATE NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n");
	assert_int_equal(status_at("weir.sock"), 200);
	write_config(LISTEN STATE NONE "[limit one]\npolicy = soon\n" ALL "limit = one\n");
	process_signal(&process, SIGHUP);
	assert_soon(process_said(&process, "the old one stays in use"));
	assert_row(process_said(&process, "The configuration is wrong. file="), "%s",
		process_error(&process));
	assert_true(process_said(&process, "line=9"));
	assert_int_equal(status_at("weir.sock"), 429);
	/* Nor does one that is not there. */
	assert_int_equal(unlink(directory_path(&directory, "weir.ini").text), 0);
	process_signal(&process, SIGHUP);
	assert_soon(strstr(strstr(process_error(&process), "stays in use") + 1, "stays in use") !=
		NULL);
	assert_int_equal(status_at("weir.sock"), 429);
	weir_stop();
}

static void
keys_that_need_a_restart_are_named_by_a_reload(void **state)
{
	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	write_config("[weir]\nlisten = unix:DIR/other.sock\nthreads = 2\n"
		     "[memory]\nstate = DIR/state\nsize = 2m\n" NONE ALL);
	process_signal(&process, SIGHUP);
	assert_soon(process_said(&process, "The configuration was read anew."));
	static const char *const keys[] = { "key=\"[weir] listen\"", "key=\"[weir] threads\"",
		"key=\"[memory] size\"" };

	for (size_t i = 0; i < LENGTH_OF(keys); i++)
		assert_row(process_said(&process, keys[i]), "%s", process_error(&process));
	assert_false(process_said(&process, "key=\"[memory] state\""));
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

static void
counts_outlive_a_restart(void **state)
{
	static const char ini[] =
		LISTEN STATE NONE "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n";

	(void)state;
	weir_start(ini);
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
	process_release(&process);
	weir_start(ini);
	assert_int_equal(status_at("weir.sock"), 429);
	weir_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_stop_signal_lets_a_request_end),
		TEST(what_does_not_end_within_drain_is_cut),
		TEST(stop_without_requests_is_quick_also_with_kept_connections),
		TEST(reload_takes_a_new_configuration),
		TEST(reload_of_a_wrong_configuration_changes_nothing),
		TEST(keys_that_need_a_restart_are_named_by_a_reload),
		TEST(counts_outlive_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
