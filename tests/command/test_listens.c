/* One socket for each site: what arrives at a backend's own `listen` goes to that backend. */
#include "serving.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct fake_app *one, *two;

/* Its context is its name. */
static void
answers_its_name(struct app_conn *conn)
{
	if (app_read_request(conn) && app_out(conn, SLICE("Content-Type: text/plain\r\n\r\n")))
		(void)app_answer(conn, slice_of(conn->context));
}

static struct fake_app *
start_app(const char *name)
{
	return fake_app_start(unix_listen(directory_path(&directory, name).text, 10),
		answers_its_name, (void *)(uintptr_t)name);
}

static int
set_up(void **state)
{
	if (weir_set_up(state) != 0)
		return -1;
	one = start_app("one");
	two = start_app("two");
	return 0;
}

static int
tear_down(void **state)
{
	fake_app_stop(one);
	fake_app_stop(two);
	return weir_tear_down(state);
}

#define LISTEN_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#define ONE "[backend one]\nserver = unix:DIR/one\nlisten = unix:DIR/one-in mode 0600\n"
#define TWO "[backend two]\nserver = unix:DIR/two\nlisten = unix:DIR/two-in mode 0600\n"
#define SPECIAL "[route special]\nmatch = /special\nbackend = two\n"

static void
assert_answer(const char *socket, const char *path, unsigned status, const char *body)
{
	const char *const pairs[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", path, "REMOTE_ADDR",
		"192.0.2.1", NULL };
	const int fd = connect_to(socket);
	struct answer answer;

	answer_to(&answer, fd, &(const struct request_spec){ .params = pairs });
	assert_row(answer_status(&answer) == status, "%s %s: %u", socket, path,
		answer_status(&answer));
	if (body != NULL)
		assert_slice(answer_body(&answer), slice_of(body));
	answer_release(&answer);
	(void)close(fd);
}

static void
request_goes_to_the_backend_that_it_came_to_unless_its_route_names_another(void **state)
{
	(void)state;
	weir_start(STATE ONE TWO SPECIAL ALL);
	assert_answer("one-in", "/", 200, "one");
	assert_answer("two-in", "/", 200, "two");
	assert_answer("one-in", "/special", 200, "two");
	assert_answer("two-in", "/special", 200, "two");
	weir_stop();
	assert_int_equal(access(directory_path(&directory, "one-in").text, F_OK), -1);
	assert_int_equal(access(directory_path(&directory, "two-in").text, F_OK), -1);
}

/* Also where all other sockets are [weir]'s, and on several threads. */
static void
the_only_backend_may_have_sockets_of_its_own(void **state)
{
	(void)state;
	weir_start(LISTEN "threads = 2\n" STATE ONE ALL);
	assert_answer("one-in", "/", 200, "one");
	assert_answer("weir.sock", "/", 200, "one");
	weir_stop();
}

static void
identity_backend_is_the_one_that_the_request_came_to(void **state)
{
	(void)state;
	weir_start(STATE "[limit site]\nidentity = backend\npolicy = 1/1h\n" ONE TWO ALL
			 "limit = site\n");
	assert_answer("one-in", "/", 200, "one");
	assert_answer("one-in", "/", 429, NULL);
	assert_answer("two-in", "/", 200, "two");
	assert_answer("two-in", "/", 429, NULL);
	weir_stop();
}

/* ---- sockets that are given ---- */

static void
given_socket_is_the_backend_s_that_would_listen_there(void **state)
{
	struct process_setup setup = {
		.listening = { unix_listen(directory_path(&directory, "two-in").text, 5),
			unix_listen(directory_path(&directory, "one-in").text, 5) },
	};

	(void)state;
	weir_start_with(STATE ONE TWO SPECIAL ALL, &setup);
	assert_serving();
	assert_answer("one-in", "/", 200, "one");
	assert_answer("two-in", "/", 200, "two");
	weir_stop();
	(void)close(setup.listening[0]);
	(void)close(setup.listening[1]);
}

static void
given_socket_that_is_no_backend_s_wants_routes_that_name_one(void **state)
{
	struct process_setup setup = {
		.listening = { unix_listen(directory_path(&directory, "given").text, 5) },
	};

	(void)state;
	assert_int_equal(weir_run(STATE ONE TWO SPECIAL ALL, &setup), 1);
	assert_row(process_said(&process,
			   "/given was given by systemd and is no backend's `listen`, but route "
			   "all names no backend"),
		"%s", process_error(&process));
	process_release(&process);
	weir_start_with(STATE ONE TWO SPECIAL ALL "backend = one\n", &setup);
	assert_serving();
	assert_answer("given", "/", 200, "one");
	weir_stop();
	(void)close(setup.listening[0]);
}

/* ---- reloads ---- */

static void
reload(const char *ini)
{
	const size_t before = strlen(process_error(&process));

	write_config(ini);
	process_signal(&process, SIGHUP);
	assert_soon(strstr(process_error(&process) + before, "was read anew.") != NULL);
}

static void
assert_says_restart(const char *ini, const char *what)
{
	const size_t before = strlen(process_error(&process));

	reload(ini);
	assert_row(strstr(process_error(&process) + before, what) != NULL, "%s",
		process_error(&process) + before);
}

static void
reload_says_which_sockets_need_a_restart(void **state)
{
	static const char gone[] = "The `listen` of a backend that has come or gone takes effect "
				   "only with a restart. backend=two";

	(void)state;
	weir_start(STATE ONE TWO ALL);
	assert_says_restart(STATE ONE "listen = unix:DIR/more\n" TWO ALL,
		"takes effect only with a restart. key=\"[backend one] listen\"");
	assert_says_restart(STATE ONE ALL, gone);
	/* The only one that is left. */
	assert_answer("two-in", "/", 200, "one");
	weir_stop();
	process_release(&process);
	weir_start(STATE ONE ALL);
	assert_says_restart(STATE ONE TWO ALL, gone);
	assert_answer("one-in", "/", 200, "one");
	weir_stop();
}

/* Nobody else's application gets it. */
static void
request_for_a_backend_that_is_gone_is_refused(void **state)
{
	(void)state;
	weir_start(STATE ONE TWO ALL);
	reload(STATE ONE "[backend two]\ntype = none\n[backend three]\nserver = unix:DIR/two\n"
			 "[route special]\nmatch = /special\nbackend = three\n" ALL);
	assert_answer("one-in", "/", 200, "one");
	assert_answer("two-in", "/", 200, "Admitted.\n");
	reload(STATE ONE "[backend three]\nserver = unix:DIR/two\n"
			 "[route special]\nmatch = /special\nbackend = three\n" ALL);
	assert_answer("two-in", "/", 502, NULL);
	assert_answer("two-in", "/special", 200, "two");
	assert_soon(process_said(&process,
		"A request came to a socket that is no backend's, and its route names none. "
		"route=all"));
	reload(STATE ONE TWO ALL);
	assert_answer("two-in", "/", 200, "two");
	weir_stop();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		LISTEN_TEST(
			request_goes_to_the_backend_that_it_came_to_unless_its_route_names_another),
		LISTEN_TEST(the_only_backend_may_have_sockets_of_its_own),
		LISTEN_TEST(identity_backend_is_the_one_that_the_request_came_to),
		LISTEN_TEST(given_socket_is_the_backend_s_that_would_listen_there),
		LISTEN_TEST(given_socket_that_is_no_backend_s_wants_routes_that_name_one),
		LISTEN_TEST(reload_says_which_sockets_need_a_restart),
		LISTEN_TEST(request_for_a_backend_that_is_gone_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
