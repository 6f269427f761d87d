/* What signals do to `weir serve`: it ends in order, or takes another configuration. */
#include "serving.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- signals ---- */

static void
each_stop_signal_lets_a_request_end(void **state)
{
	static const int signals[][2] = { { SIGTERM, 0 }, { SIGINT, 0 }, { SIGUSR1, 0 },
		{ SIGQUIT, 0 }, { SIGTERM, SIGTERM }, { SIGUSR1, SIGTERM }, { SIGTERM, SIGHUP } };

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
a_signal_without_a_meaning_is_told(void **state)
{
	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	process_signal(&process, SIGUSR2);
	assert_soon(process_said(&process, "SIGUSR2 has no meaning for weir"));
	assert_serving();
	weir_stop();
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
	assert_true(process_said(&process, "line=9 key=\"[limit one] policy\" what="));
	assert_int_equal(status_at("weir.sock"), 429);
	/* Nor does one that is not there. */
	assert_int_equal(unlink(directory_path(&directory, "weir.ini").text), 0);
	process_signal(&process, SIGHUP);
	assert_soon(strstr(strstr(process_error(&process), "stays in use") + 1, "stays in use") !=
		NULL);
	/* Where there is no line and no key, none is told. */
	const char *last =
		strstr(strstr(process_error(&process), "stays in use"), "is wrong. file=");
	const size_t len = last == NULL ? 0 : strcspn(last, "\n");

	assert_non_null(last);
	assert_null(memmem(last, len, " line=", 6));
	assert_null(memmem(last, len, " key=", 5));
	assert_non_null(memmem(last, len, "No such file", 12));
	assert_int_equal(status_at("weir.sock"), 429);
	weir_stop();
}

static void
reload_says_what_it_changes(void **state)
{
	static const struct {
		const char *ini, *text;
	} rows[] = {
		{ LISTEN STATE NONE ALL, " changed=nothing\n" },
		{ LISTEN "enforce = no\n" STATE NONE ALL,
			" changed=\"[weir] enforce: yes -> no\"\n" },
		{ LISTEN STATE NONE "[limit l]\npolicy = 1/1s\nmax_identities = 100\n" ALL
				    "limit = l\n",
			" changed=\"[weir] enforce: no -> yes; +[limit l]; [route all] limit: "
			"nothing -> l\"\n" },
		{ LISTEN STATE NONE
			"[limit l]\npolicy = 1/1s\npolicy = 9/1m\nmax_identities = 100\n" ALL
			"limit = l\n",
			" changed=\"[limit l] policy\"\n" },
		{ LISTEN "timezone = Europe/Berlin\n" STATE NONE
			 "[limit l]\npolicy = 1/1s\npolicy = 9/1m\nmax_identities = 100\n" ALL
			 "limit = l\n",
			" changed=\"[weir] timezone: UTC -> Europe/Berlin (with a restart)\"\n" },
		{ LISTEN "log_level = info\ntimezone = Europe/Berlin\n" STATE NONE ALL,
			" changed=\"[route all] limit: l -> nothing; -[limit l]\"\n" },
	};

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const size_t before = strlen(process_error(&process));

		write_config(rows[i].ini);
		process_signal(&process, SIGHUP);
		assert_soon(strstr(process_error(&process) + before,
				    "The configuration was read anew. file=") != NULL);
		assert_row(strstr(process_error(&process) + before, rows[i].text) != NULL, "%s",
			process_error(&process) + before);
	}
	weir_stop();
}

/* A configuration that is another one altogether is told in one line. */
static void
more_changes_than_a_line_holds_are_counted(void **state)
{
	char ini[8000];
	size_t len;

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	len = (size_t)snprintf(ini, sizeof ini, LISTEN STATE NONE);
	for (unsigned i = 0; i < 100; i++)
		len += (size_t)snprintf(
			ini + len, sizeof ini - len, "[route number-%u]\nmatch = /%u\n", i, i);
	(void)snprintf(ini + len, sizeof ini - len, ALL);
	write_config(ini);
	process_signal(&process, SIGHUP);
	assert_soon(process_said(&process, "The configuration was read anew. file="));
	const char *at = strstr(process_error(&process), "+[route number-0]; +[route number-1]; ");
	unsigned listed = 0, others = 0;

	assert_non_null(at);
	for (const char *one = at; (one = strstr(one, "+[route ")) != NULL; one++)
		listed++;
	assert_int_equal(sscanf(strstr(at, "; and "), "; and %u more\"\n", &others), 1);
	assert_int_equal(listed + others, 100);
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
	static const char *const keys[] = { "with a restart. key=\"[weir] listen\"",
		"with a restart. key=\"[weir] threads\"",
		"remove the memory store's file, start weir. key=\"[memory] size\"" };

	for (size_t i = 0; i < LENGTH_OF(keys); i++)
		assert_row(process_said(&process, keys[i]), "%s", process_error(&process));
	assert_false(process_said(&process, "key=\"[memory] state\""));
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

/* Whoever may use the socket is part of where it is. */
static void
rights_of_a_socket_need_a_restart_too(void **state)
{
	static const char *const others[] = { "mode 0660", "mode 0600 owner root",
		"mode 0600 group root" };

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		const size_t before = strlen(process_error(&process));
		char ini[400];

		(void)snprintf(ini, sizeof ini, "[weir]\nlisten = unix:DIR/weir.sock %s\n%s",
			others[i], STATE NONE ALL);
		write_config(ini);
		process_signal(&process, SIGHUP);
		assert_soon(strstr(process_error(&process) + before, "was read anew.") != NULL);
		assert_row(strstr(process_error(&process) + before,
				   "with a restart. key=\"[weir] listen\"") != NULL,
			"%s", process_error(&process) + before);
	}
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
		TEST(a_signal_without_a_meaning_is_told),
		TEST(what_does_not_end_within_drain_is_cut),
		TEST(stop_without_requests_is_quick_also_with_kept_connections),
		TEST(reload_takes_a_new_configuration),
		TEST(reload_of_a_wrong_configuration_changes_nothing),
		TEST(reload_says_what_it_changes),
		TEST(more_changes_than_a_line_holds_are_counted),
		TEST(rights_of_a_socket_need_a_restart_too),
		TEST(keys_that_need_a_restart_are_named_by_a_reload),
		TEST(counts_outlive_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
