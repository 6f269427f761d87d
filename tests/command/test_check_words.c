/*
 * What `weir check` prints besides limits and routes: where the counters live, whose word is
 * believed, and whom nobody has asked; and what --connect says of those.
 */
#include "serving.h"

#include <stdio.h>
#include <unistd.h>

static struct process checker;

static int
tear_down(void **state)
{
	process_release(&checker);
	return weir_tear_down(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, weir_set_up, tear_down)

static int
check(const char *ini, bool connects)
{
	const struct directory_path file = directory_path(&directory, "weir.ini");
	const char *const arguments[] = { "check", file.text, connects ? "--connect" : NULL, NULL };

	write_config(ini);
	process_release(&checker);
	return process_run(&checker, &(const struct process_setup){ .arguments = arguments });
}

static void
assert_printed(const char *ini, const char *text)
{
	const int status = check(ini, false);

	assert_row(status == 0 && strstr(process_output(&checker), text) != NULL,
		"%s\nnot printed: %s\n%s%s", ini, text, process_error(&checker),
		process_output(&checker));
}

static void
what_is_true_of_all_requests_is_said(void **state)
{
	static const struct {
		const char *ini, *text;
	} rows[] = {
		{ LISTEN STATE NONE ALL,
			"enforce = yes: what a limit rejects is answered 429\ncounters: memory of "
			"this host, in " },
		{ LISTEN STATE NONE ALL,
			"/state\nclients: the address that the web server tells\n"
			"hashes of identities: without a secret\ntime zone of calendars: UTC\n"
			"metrics: none\nroute all: " },
		{ LISTEN "enforce = no\n" STATE NONE ALL,
			"enforce = no: every limit decides, counts and logs, and lets pass\n" },
		{ LISTEN "trusted_proxies = 192.0.2.1, 2001:db8::/64\n" STATE NONE ALL,
			", or X-Forwarded-For if that is the address of a proxy in 192.0.2.1, "
			"2001:db8::/64\n" },
		{ LISTEN
			"trusted_proxies = ::1, ::2, ::3, ::4, ::5, ::6, ::7, ::8\n" STATE NONE ALL,
			" a proxy in ::1, ::2, ::3, ::4, ::5, ::6 and 2 more\n" },
		{ LISTEN "hash_key_file = DIR/key\n" STATE NONE ALL,
			"hashes of identities: with the secret of " },
		{ LISTEN "timezone = Europe/Berlin\n" STATE NONE ALL,
			"time zone of calendars: Europe/Berlin\n" },
		{ LISTEN "metrics = unix:DIR/m.sock\n" STATE NONE ALL, "metrics: unix:/" },
		{ LISTEN STATE "[redis]\ndeadline = 90ms\nprefix = w:\n" NONE ALL,
			"counters: Redis tcp:127.0.0.1:6379, keys w:*, 90 ms for a decision; while "
			"it is away memory of this host, in " },
		{ LISTEN STATE "[redis]\nsentinel = tcp:a:1, tcp:b:2\nmaster = m\n" NONE ALL,
			"counters: the Redis that sentinels know as m (tcp:a:1, tcp:b:2), keys " },
		{ LISTEN STATE "[redis]\ncluster = tls:a:1, tls:b:2\n" NONE ALL,
			"counters: the Redis Cluster of tls:a:1, tls:b:2, keys " },
	};

	(void)state;
	directory_write(&directory, "key", SLICE("0123456789abcdef\n"));
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_printed(rows[i].ini, rows[i].text);
}

/* Whoever shall remove the file need not look for it. */
static void
the_file_of_the_counters_is_told_without_a_key(void **state)
{
	char said[300], file[200];
	const char *counters;

	(void)state;
	assert_printed(LISTEN NONE ALL, "counters: memory of this host, in /");
	counters = strstr(process_output(&checker), "counters: memory of this host, in ");
	assert_int_equal(sscanf(counters, "counters: memory of this host, in %199s", file), 1);
	assert_true(access(file, F_OK) != 0);
	weir_start(LISTEN NONE ALL);
	(void)snprintf(said, sizeof said, "%s", file);
	assert_int_equal(access(said, F_OK), 0);
	weir_stop();
	assert_int_equal(unlink(said), 0);
}

#define UNSEEN "not connected to: "

static void
whom_nobody_has_asked_is_said(void **state)
{
	static const struct {
		const char *ini, *text;
	} rows[] = {
		{ LISTEN STATE "[redis]\nserver = tcp:redis.invalid:6379\n" NONE ALL,
			UNSEEN "Redis tcp:redis.invalid:6379; weir check --connect does\n" },
		{ LISTEN STATE
			"[backend b]\nserver = tcp:b.invalid:9000\nserver = tcp:[::1]:9\n" ALL,
			UNSEEN "backend b tcp:b.invalid:9000, backend b tcp:[::1]:9; weir check "
			       "--connect does\n" },
		{ LISTEN STATE "[redis]\ncluster = tcp:a:1\n[backend b]\nserver = tcp:x:1\n" ALL,
			UNSEEN "the Redis Cluster of tcp:a:1, backend b tcp:x:1; weir check" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_printed(rows[i].ini, rows[i].text);
	assert_int_equal(check(LISTEN STATE NONE ALL, false), 0);
	assert_null(strstr(process_output(&checker), UNSEEN));
	assert_int_equal(check(LISTEN STATE NONE ALL, true), 0);
	assert_null(strstr(process_output(&checker), UNSEEN));
}

static void
backends_are_connected_to_if_that_is_wanted(void **state)
{
	uint16_t port, closed;
	const int fd = tcp_listen(4, &port), other = tcp_listen(4, &closed);
	const int local = unix_listen(directory_path(&directory, "app.sock").text, 1);
	char ini[500], said[300];

	(void)state;
	(void)close(other);
	(void)snprintf(ini, sizeof ini,
		"%s[backend b]\nserver = tcp:127.0.0.1:%u\nserver = tcp:localhost:%u\n"
		"server = unix:DIR/app.sock\nserver = tcp:127.0.0.1:%u\n"
		"server = tcp:weir.invalid:9000\nidle_timeout = 5m\n%s",
		LISTEN STATE, (unsigned)port, (unsigned)port, (unsigned)closed, ALL);
	(void)close(local);
	assert_int_equal(check(ini, true), 0);
	(void)snprintf(said, sizeof said,
		"weir.ini:9: [backend b] server: warning: it cannot be connected to now: "
		"Connection refused\n");
	assert_row(process_said(&checker, said), "%s", process_error(&checker));
	assert_true(process_said(&checker,
		"weir.ini:10: [backend b] server: warning: it cannot be "
		"connected to now: Connection refused\n"));
	assert_true(process_said(&checker,
		"weir.ini:11: [backend b] server: warning: it cannot be "
		"connected to now: weir.invalid: "));
	assert_false(process_said(&checker, "weir.ini:7:"));
	assert_false(process_said(&checker, "weir.ini:8:"));
	(void)close(fd);
}

/* Nobody but systemd makes it, and it is gone after each boot. */
static void
who_makes_the_run_directory_is_said(void **state)
{
	(void)state;
	if (access(WEIR_RUNDIR, F_OK) == 0)
		skip();
	assert_int_equal(
		check("[weir]\nlisten = unix:" WEIR_RUNDIR "/weir.sock\n" STATE NONE ALL, false),
		1);
	assert_row(process_said(&checker,
			   ": No such file or directory; weir.service makes it, and "
			   "systemd-tmpfiles at the boot; by hand: install -d -o USER " WEIR_RUNDIR
			   " "),
		"%s", process_error(&checker));
	assert_int_equal(check(LISTEN "log = file:DIR/none/log\n" STATE NONE ALL, false), 1);
	assert_false(process_said(&checker, "weir.service"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_true_of_all_requests_is_said),
		TEST(the_file_of_the_counters_is_told_without_a_key),
		TEST(whom_nobody_has_asked_is_said),
		TEST(backends_are_connected_to_if_that_is_wanted),
		TEST(who_makes_the_run_directory_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
