/* What `weir serve` tells systemd and operators, and the files that it keeps. */
#include "serving.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

/* ---- systemd ---- */

/* The next message; "" if none comes. */
static const char *
next_message(int fd)
{
	static char text[500];
	const ssize_t n = recv(fd, text, sizeof text - 1, 0);

	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void
systemd_is_told_how_it_is(void **state)
{
	(void)state;
	for (unsigned abstract = 0; abstract < 2; abstract++) {
		const struct directory_path path = directory_path(&directory, "notify");
		struct sockaddr_un name = unix_name(path.text);
		const size_t len = offsetof(struct sockaddr_un, sun_path) + strlen(path.text);
		const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		char variable[200];

		socket_limit_time(fd);
		if (abstract != 0)
			name.sun_path[0] = '\0';
		assert_int_equal(bind(fd, (const struct sockaddr *)&name, (socklen_t)len), 0);
		(void)snprintf(variable, sizeof variable, "NOTIFY_SOCKET=%s%s",
			abstract != 0 ? "@" : "", path.text + abstract);
		struct process_setup setup = { .environment =
						       (const char *const[]){ variable, NULL } };

		weir_start_with(LISTEN STATE NONE ALL, &setup);
		assert_string_equal(next_message(fd), "READY=1");
		/* Ready means that it serves. */
		assert_int_equal(status_at("weir.sock"), 200);
		process_signal(&process, SIGHUP);
		const char *reloading = next_message(fd);

		assert_row(strncmp(reloading, "RELOADING=1\nMONOTONIC_USEC=", 27) == 0, "%s",
			reloading);
		assert_true(strtoll(reloading + 27, NULL, 10) <= clock_monotonic_us());
		assert_string_equal(next_message(fd), "READY=1");
		process_signal(&process, SIGTERM);
		assert_string_equal(next_message(fd), "STOPPING=1");
		assert_int_equal(process_wait(&process), 0);
		process_release(&process);
		(void)close(fd);
	}
}

static void
notify_socket_that_is_none_does_no_harm(void **state)
{
	struct process_setup setup = { .environment = (const char *const[]){
					       "NOTIFY_SOCKET=/none/notify", NULL } };

	(void)state;
	weir_start_with(LISTEN STATE NONE ALL, &setup);
	assert_serving();
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

/* ---- state, metrics, logs ---- */

static void
state_that_cannot_be_used_ends_it_with_a_sentence(void **state)
{
	struct process_setup setup = { 0 };

	(void)state;
	assert_int_equal(weir_run(LISTEN "[memory]\nstate = DIR/none/state\n" NONE ALL, &setup), 1);
	assert_row(process_said(&process, "/none/state"), "%s", process_error(&process));
	/* Its socket has gone with it. */
	assert_int_equal(access(directory_path(&directory, "weir.sock").text, F_OK), -1);
}

static void
metrics_and_health_can_be_asked_for(void **state)
{
	(void)state;
	weir_start(LISTEN "metrics = unix:DIR/status.sock\n" STATE APP ALL);
	assert_non_null(strstr(page("/metrics"), "HTTP/1.0 200 "));
	assert_non_null(strstr(
		page("/metrics"), "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_non_null(strstr(page("/metrics"), "\nweir_breaker_open 0\n"));
	assert_non_null(strstr(page("/healthz"), "HTTP/1.0 200 "));
	assert_non_null(strstr(page("/healthz"), "\r\n\r\nok\n"));
	assert_non_null(strstr(page("/other"), "HTTP/1.0 404 "));
	/* A reload is counted, done or refused. */
	process_signal(&process, SIGHUP);
	assert_soon(strstr(page("/metrics"), "weir_reloads_total{result=\"done\"} 1\n") != NULL);
	write_config("nonsense\n");
	process_signal(&process, SIGHUP);
	assert_soon(strstr(page("/metrics"), "weir_reloads_total{result=\"refused\"} 1\n") != NULL);
	/* Who drains is not healthy. */
	const int fd = begin_request();

	assert_non_null(strstr(page("/metrics"), "\nweir_requests_in_flight 1\n"));
	process_signal(&process, SIGTERM);
	assert_soon(strstr(page("/healthz"), "HTTP/1.0 503 ") != NULL);
	assert_non_null(strstr(page("/healthz"), "\r\n\r\nstopping\n"));
	directory_write(&directory, "go", SLICE(""));
	assert_true(socket_read_to_end(fd));
	(void)close(fd);
	assert_int_equal(process_wait(&process), 0);
	assert_int_equal(access(directory_path(&directory, "status.sock").text, F_OK), -1);
}

#define WITH_METRICS LISTEN "metrics = unix:DIR/status.sock\n" STATE NONE ALL

/* It keeps nobody from being served, and is had as soon as it can be. */
static void
metrics_address_that_is_taken_is_an_error_and_tried_again(void **state)
{
	const struct directory_path path = directory_path(&directory, "status.sock");
	const int taken = unix_listen(path.text, 5);

	(void)state;
	weir_start(WITH_METRICS);
	assert_true(process_said(&process, "error: /metrics and /healthz cannot be served"));
	assert_true(process_said(&process, "status.sock: another process listens there already\""));
	assert_int_equal(status_at("weir.sock"), 200);
	/* Each time that it is tried, it is tried whether somebody listens. */
	socket_limit_time(taken);
	for (unsigned i = 0; i < 2; i++) {
		const int fd = accept(taken, NULL, NULL);

		assert_true(fd >= 0);
		(void)close(fd);
	}
	(void)close(taken);
	assert_soon(process_said(&process, "info: /metrics and /healthz are served now. metrics="));
	assert_non_null(strstr(page("/healthz"), "\r\n\r\nok\n"));
	/* Told once, however often it was tried. */
	const char *first = strstr(process_error(&process), "cannot be served");

	assert_null(strstr(first + 1, "cannot be served"));
	weir_stop();
	assert_int_equal(access(path.text, F_OK), -1);
}

/* mod_fcgid and lighttpd start several of us; the first has the address, and then the next. */
static void
one_of_several_that_were_spawned_has_the_metrics_address(void **state)
{
	const struct directory_path path = directory_path(&directory, "given.sock");
	struct process_setup setup = { .standard_input = unix_listen(path.text, 5) };
	struct process first;

	(void)state;
	weir_start_with(WITH_METRICS, &setup);
	assert_serving();
	first = process;
	weir_start_with(WITH_METRICS, &setup);
	assert_serving();
	assert_false(process_said(&process, "error:"));
	assert_true(
		process_said(&process, "another process of the web server may have its address"));
	assert_int_equal(status_at("given.sock"), 200);
	process_signal(&first, SIGTERM);
	assert_int_equal(process_wait(&first), 0);
	process_release(&first);
	assert_soon(process_said(&process, "/metrics and /healthz are served now."));
	assert_non_null(strstr(page("/healthz"), "\r\n\r\nok\n"));
	weir_stop();
	(void)close(setup.standard_input);
}

static bool
file_has(const char *name, const char *text)
{
	char *all = directory_read(&directory, name);
	const bool has = strstr(all, text) != NULL;

	free(all);
	return has;
}

static void
logs_go_where_they_are_sent(void **state)
{
	(void)state;
	struct process_setup setup = { 0 };

	weir_start_with(LISTEN
		"log = file:DIR/weir.log\nlog_format = json\nreject_log = DIR/reject.log\n" STATE
			NONE "[limit one]\npolicy = 1/1h\nmax_identities = 1000\n" ALL
		"limit = one\n",
		&setup);
	assert_soon(file_has("weir.log", "\"message\":\"Serving.\""));
	assert_int_equal(status_at("weir.sock"), 200);
	assert_int_equal(status_at("weir.sock"), 429);
	assert_soon(file_has("reject.log", "\"message\":\"Rejected.\",\"client\":\"192.0.2.1\""));
	assert_false(file_has("weir.log", "Rejected."));
	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	assert_true(file_has("weir.log", "\"message\":\"Stopped.\""));
	assert_string_equal(process_error(&process), "");
}

/* Whoever starts weir looks at its standard error first. */
static void
failure_to_start_is_told_on_standard_error_wherever_the_log_goes(void **state)
{
	static const struct {
		const char *ini, *text;
		bool is_logged;
	} rows[] = {
		{ "log = file:DIR/weir.log\n[memory]\nstate = DIR/none/state\n", "/none/state",
			true },
		{ "log = file:DIR/weir.log\nlisten = unix:DIR/none/x.sock\n" STATE, "/none/x.sock",
			true },
		{ "log = file:DIR/weir.log\nreject_log = DIR/none/reject.log\n" STATE,
			"/none/reject.log", true },
		{ "log = file:DIR/none/weir.log\n" STATE, "/none/weir.log", false },
		{ "log = syslog\n[memory]\nstate = DIR/none/state\n", "/none/state", false },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct process_setup setup = { 0 };
		char ini[400];

		(void)snprintf(ini, sizeof ini, LISTEN "%s" NONE ALL, rows[i].ini);
		assert_int_equal(weir_run(ini, &setup), 1);
		const char *said = process_error(&process), *at = strstr(said, rows[i].text);

		assert_row(strncmp(said, "weir serve: ", 12) == 0, "row %zu: %s", i, said);
		/* Once: no path is repeated, and nothing is said twice. */
		assert_row(
			at != NULL && strstr(at + 1, rows[i].text) == NULL, "row %zu: %s", i, said);
		if (rows[i].is_logged)
			assert_true(file_has("weir.log", "error: weir cannot start. reason="));
		process_release(&process);
		(void)unlink(directory_path(&directory, "weir.log").text);
	}
}

static void
serving_is_told_with_what_was_opened(void **state)
{
	(void)state;
	weir_start("[weir]\nlisten = unix:DIR/a.sock\nlisten = tcp:127.0.0.1:18473\n"
		   "metrics = unix:DIR/status.sock\n" STATE NONE ALL);
	char expected[400];

	(void)snprintf(expected, sizeof expected,
		" listen=\"unix:%s/a.sock, tcp:127.0.0.1:18473\" store=memory "
		"metrics=unix:%s/status.sock sockets=2 threads=1 enforce=yes\n",
		directory.path, directory.path);
	assert_row(process_said(&process, expected), "%s", process_error(&process));
	weir_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(systemd_is_told_how_it_is),
		TEST(notify_socket_that_is_none_does_no_harm),
		TEST(state_that_cannot_be_used_ends_it_with_a_sentence),
		TEST(metrics_and_health_can_be_asked_for),
		TEST(metrics_address_that_is_taken_is_an_error_and_tried_again),
		TEST(one_of_several_that_were_spawned_has_the_metrics_address),
		TEST(failure_to_start_is_told_on_standard_error_wherever_the_log_goes),
		TEST(serving_is_told_with_what_was_opened),
		TEST(logs_go_where_they_are_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
