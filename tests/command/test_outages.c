/* What the log says when Redis or the application is away, and when it is back. */
#include "../lib/redis_server.h"
#include "serving.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static struct redis_server server;

static int
close_all(void **state)
{
	redis_server_close(&server);
	return weir_tear_down(state);
}

/* ---- Redis ---- */

#define LIMITED                                                                                    \
	"[limit one]\npolicy = 1000/1s\nmax_identities = 1000\n[route all]\nmatch = *\n"           \
	"limit = one\n"

/* [redis] at this path, and what else its section has. */
static const char *
with_redis(const char *path, const char *more, const char *route_more)
{
	static char ini[1000];

	(void)snprintf(ini, sizeof ini, "%s[redis]\nserver = unix:%s\n%s%s%s", LISTEN STATE NONE,
		path, more, LIMITED, route_more);
	return ini;
}

static bool
said_behind(size_t start, const char *text)
{
	return strstr(process_error(&process) + start, text) != NULL;
}

/* Requests until it is said: who is idle notices nothing. */
static void
assert_said_soon(size_t start, const char *text)
{
	assert_soon((status_at("weir.sock"), said_behind(start, text)));
}

static unsigned
times_said(const char *text)
{
	unsigned count = 0;

	for (const char *at = process_error(&process); (at = strstr(at, text)) != NULL; at++)
		count++;
	return count;
}

static void
start_with_redis(void)
{
	redis_server_open(&server, NULL);
	weir_start(with_redis(server.address.host, "", ""));
	assert_said_soon(0, "info: Redis answers. server=unix:");
	assert_false(process_said(&process, "cannot be used"));
	char store[300];

	(void)snprintf(store, sizeof store, " store=unix:%s ", server.address.host);
	assert_row(process_said(&process, store), "%s", process_error(&process));
}

static void
outage_and_its_end_are_told_once(void **state)
{
	(void)state;
	start_with_redis();
	redis_server_kill(&server);
	assert_said_soon(0, "warning: Redis cannot be used: the breaker is open");
	/* It has not lasted yet. */
	assert_false(process_said(&process, "for_s="));
	/* A few probes fail. */
	const int64_t start_us = clock_monotonic_us();

	assert_soon((status_at("weir.sock"), clock_monotonic_us() > start_us + 1500000));
	redis_server_start(&server, NULL);
	assert_said_soon(0, "info: Redis answers again: the breaker is closed.");
	assert_int_equal(times_said("Redis cannot be used"), 1);
	assert_int_equal(times_said("Redis answers again"), 1);
	weir_stop();
}

/* Nobody would look again at a warning from a minute ago. */
static void
what_waiting_does_not_cure_is_an_error_with_its_remedy(void **state)
{
	(void)state;
	start_with_redis();
	redis_server_kill(&server);
	assert_said_soon(0, "warning: Redis cannot be used");
	redis_server_start(&server, (const char *const[]){ "--maxmemory", "1", NULL });
	assert_said_soon(0, "error: Redis cannot be used");
	assert_row(process_said(&process, "remedy=\"raise the server's maxmemory\""), "%s",
		process_error(&process));
	redisContext *direct = redis_server_connect(&server);

	redis_ok(direct, "CONFIG SET maxmemory 0");
	assert_said_soon(0, "info: Redis answers again");
	/* From one that works to a replica. */
	const size_t start = strlen(process_error(&process));

	redis_ok(direct, "REPLICAOF 127.0.0.1 1");
	assert_said_soon(start, "error: Redis cannot be used");
	assert_row(said_behind(start, "remedy=\"it is a replica: "), "%s",
		process_error(&process) + start);
	redis_ok(direct, "REPLICAOF NO ONE");
	assert_said_soon(start, "info: Redis answers again");
	redisFree(direct);
	assert_int_equal(times_said("Redis cannot be used"), 3);
	weir_stop();
}

static void
wrong_password_is_an_error_with_its_remedy(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	directory_write(&directory, "password", SLICE("wrong\n"));
	assert_int_equal(chmod(directory_path(&directory, "password").text, 0600), 0);
	weir_start(with_redis(server.address.host,
		"username = weir\npassword_file = DIR/password\n"
		"[weir]\nmetrics = unix:DIR/status.sock\n",
		""));
	assert_said_soon(0, "error: Redis cannot be used");
	assert_row(process_said(&process, "remedy=\"username and password_file of [redis]"), "%s",
		process_error(&process));
	/* Though it is this process's alone. */
	assert_non_null(strstr(page("/metrics"), "\nweir_breaker_open 1\n"));
	assert_non_null(strstr(page("/healthz"), "degraded"));
	redisContext *direct = redis_server_connect(&server);

	redis_ok(direct, "ACL SETUSER weir on >wrong ~weir:* +@all");
	redisFree(direct);
	assert_said_soon(0, "info: Redis answers again");
	assert_non_null(strstr(page("/metrics"), "\nweir_breaker_open 0\n"));
	weir_stop();
}

/* Answers anything with what a web server would. */
static void
speaks_http(struct app_conn *conn)
{
	(void)app_send(conn, SLICE("HTTP/1.1 400 Bad Request\r\n\r\n"));
	app_wait_gone(conn);
}

static void
address_of_something_else_is_an_error_with_its_remedy(void **state)
{
	const struct directory_path path = directory_path(&directory, "web.sock");

	(void)state;
	app = fake_app_start(unix_listen(path.text, 10), speaks_http, NULL);
	weir_start(with_redis(path.text, "", ""));
	assert_said_soon(0, "error: Redis cannot be used");
	assert_row(process_said(&process, "reason=\"what it sends is not Redis's protocol\""), "%s",
		process_error(&process));
	assert_true(process_said(&process, "remedy=\"server of [redis] must be the address of"));
	weir_stop();
}

static void
redis_that_is_reached_after_a_reload_is_told(void **state)
{
	(void)state;
	start_with_redis();
	size_t start = strlen(process_error(&process));

	write_config(with_redis("/none/redis.sock", "", ""));
	process_signal(&process, SIGHUP);
	assert_said_soon(start, "warning: Redis cannot be used");
	assert_true(said_behind(start, "server=unix:/none/redis.sock"));
	start = strlen(process_error(&process));
	write_config(with_redis(server.address.host, "", ""));
	process_signal(&process, SIGHUP);
	assert_said_soon(start, "info: Redis answers");
	weir_stop();
}

/* ---- refusals ---- */

static void
refusals_have_a_line_with_client_route_and_reason(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	redis_server_kill(&server);
	weir_start(with_redis(server.address.host, "", "store_down = reject\n"));
	assert_soon(status_at("weir.sock") == 503);
	assert_soon(process_said(&process,
		"info: Refused. client=192.0.2.1 route=all reason=\"store_down = reject\" "
		"status=503 method=GET path=/\n"));
	weir_stop();
	process_release(&process);
	weir_start(
		LISTEN STATE NONE "[limit api]\nidentity = header X-Api-Key\non_missing = reject\n"
				  "policy = 9/1s\n[route all]\nmatch = *\nlimit = api\n");
	assert_int_equal(status_at("weir.sock"), 403);
	assert_soon(process_said(&process,
		"info: Refused. client=192.0.2.1 route=all limit=api reason=\"on_missing = "
		"reject\" status=403 method=GET path=/\n"));
	weir_stop();
	process_release(&process);
	weir_start(LISTEN "max_in_flight = 1\n" STATE APP ALL);
	const int fd = begin_request();

	assert_int_equal(status_at("weir.sock"), 503);
	assert_soon(process_said(&process,
		"info: Refused. client=192.0.2.1 route=all reason=\"max_in_flight of [weir]\" "
		"status=503 method=GET path=/\n"));
	(void)close(fd);
	directory_write(&directory, "go", SLICE(""));
	weir_stop();
}

/* A rejection that is only counted says the wait as one that counts does. */
static void
would_be_rejections_tell_the_wait(void **state)
{
	static const struct {
		const char *weir, *limit;
	} rows[] = { { "enforce = no\n", "" }, { "", "enforce = no\n" }, { "", "" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char ini[800];
		unsigned wait = 0;

		(void)snprintf(ini, sizeof ini,
			LISTEN "%s" STATE NONE "[limit l%zu]\nmax_identities = 1000\n%spolicy = "
			       "1/1m%s\n[route all]\nmatch = *\nlimit = l%zu\n",
			rows[i].weir, i, rows[i].limit, i == 2 ? " shadow" : "", i);
		weir_start(ini);
		assert_int_equal(status_at("weir.sock"), 200);
		assert_int_equal(status_at("weir.sock"), 200);
		assert_soon(process_said(&process, "Would be rejected."));
		const char *at = strstr(process_error(&process), "Would be rejected.");
		const char *field = strstr(at, " admits=1/1m retry_after=");

		assert_row(
			field != NULL && sscanf(field, " admits=1/1m retry_after=%u ", &wait) == 1,
			"%s", at);
		assert_in_range(wait, 50, 60);
		weir_stop();
		process_release(&process);
	}
}

/* ---- the application ---- */

static void
answers(struct app_conn *conn)
{
	if (app_read_request(conn))
		(void)app_answer(conn, SLICE("Content-Type: text/plain\r\n\r\ndone"));
}

static void
application_that_goes_and_comes_back_is_told(void **state)
{
	const struct directory_path path = directory_path(&directory, "app.sock");
	char text[300];

	(void)state;
	for (unsigned reload = 0; reload < 2; reload++) {
		weir_start(LISTEN STATE APP ALL);
		assert_int_equal(status_at("weir.sock"), 502);
		assert_int_equal(status_at("weir.sock"), 502);
		assert_soon(times_said("warning: A backend cannot be reached. backend=app") == 2);
		assert_false(process_said(&process, "properly"));
		(void)snprintf(text, sizeof text,
			"warning: A backend's server cannot be connected to; it is asked last, and "
			"tried again after a second. backend=app server=unix:%s reason=\"No such "
			"file or directory\"\n",
			path.text);
		assert_row(process_said(&process, text), "%s", process_error(&process));
		if (reload != 0) {
			write_config(LISTEN "log_level = info\ndrain = 1s\n" STATE APP ALL);
			process_signal(&process, SIGHUP);
			assert_soon(process_said(&process, "was read anew."));
		}
		app = fake_app_start(unix_listen(path.text, 10), answers, NULL);
		assert_int_equal(status_at("weir.sock"), 200);
		assert_int_equal(status_at("weir.sock"), 200);
		assert_soon(times_said("info: A backend's server can be connected to again. "
				       "backend=app server=unix:") == 1);
		weir_stop();
		assert_int_equal(times_said("cannot be connected to"), 1);
		assert_int_equal(times_said("can be connected to again"), 1);
		process_release(&process);
		fake_app_stop(app);
		app = NULL;
		(void)unlink(path.text);
	}
}

/* Nobody else would notice: the other one answers. */
static void
one_server_of_two_that_is_away_is_told(void **state)
{
	(void)state;
	app = fake_app_start(
		unix_listen(directory_path(&directory, "app.sock").text, 10), answers, NULL);
	weir_start(LISTEN STATE
		"[backend app]\nserver = unix:DIR/none.sock\nserver = unix:DIR/app.sock\n" ALL);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(status_at("weir.sock"), 200);
	assert_soon(times_said("/none.sock reason=\"No such file or directory\"") == 1);
	assert_false(process_said(&process, "A backend cannot be reached"));
	weir_stop();
}

#define TEST_REDIS(name) cmocka_unit_test_setup_teardown(name, weir_set_up, close_all)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_REDIS(outage_and_its_end_are_told_once),
		TEST_REDIS(what_waiting_does_not_cure_is_an_error_with_its_remedy),
		TEST_REDIS(wrong_password_is_an_error_with_its_remedy),
		TEST_REDIS(redis_that_is_reached_after_a_reload_is_told),
		TEST_REDIS(refusals_have_a_line_with_client_route_and_reason),
		TEST(address_of_something_else_is_an_error_with_its_remedy),
		TEST(would_be_rejections_tell_the_wait),
		TEST(application_that_goes_and_comes_back_is_told),
		TEST(one_server_of_two_that_is_away_is_told),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
