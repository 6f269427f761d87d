/* Where the sockets of `weir serve` come from, and what becomes of them. */
#include "serving.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- where the sockets come from ---- */

static void
without_a_socket_it_is_wrong_use(void **state)
{
	struct process_setup setup = { 0 };

	(void)state;
	assert_int_equal(weir_run(STATE NONE ALL, &setup), 2);
	assert_row(process_said(&process, "there is nothing to serve on"), "%s",
		process_error(&process));
	/* A pipe or a connection as descriptor 0 is none either. */
	const struct pair pair = pair_open(PAIR_UNIX);

	process_release(&process);
	setup.standard_input = pair.ours;
	assert_int_equal(weir_run(STATE NONE ALL, &setup), 2);
	(void)close(pair.ours);
	(void)close(pair.theirs);
}

static void
wrong_configuration_ends_it_with_all_errors(void **state)
{
	struct process_setup setup = { 0 };

	(void)state;
	assert_int_equal(weir_run(LISTEN STATE "[backend app]\n" ALL "limit = none\n", &setup), 1);
	assert_row(process_said(&process, "weir.ini:6: "), "%s", process_error(&process));
	assert_row(process_said(&process, "weir.ini:9: "), "%s", process_error(&process));
	assert_int_equal(access(directory_path(&directory, "weir.sock").text, F_OK), -1);
}

static void
its_own_socket_has_the_configured_mode_and_goes_with_it(void **state)
{
	const struct directory_path path = directory_path(&directory, "weir.sock");
	const mode_t before = umask(0);
	struct stat st;

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	(void)umask(before);
	assert_int_equal(lstat(path.text, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
	assert_int_equal(access(path.text, F_OK), -1);
}

static void
its_own_socket_is_the_web_servers_group_s_if_nothing_else_is_said(void **state)
{
	const struct group *group = getgrnam(WEIR_WEB_GROUP);
	struct stat st;

	(void)state;
	if (group == NULL || geteuid() != 0)
		skip();
	weir_start(LISTEN STATE NONE ALL);
	assert_int_equal(lstat(directory_path(&directory, "weir.sock").text, &st), 0);
	assert_int_equal(st.st_gid, group->gr_gid);
	weir_stop();
}

static void
it_may_open_as_many_descriptors_as_it_is_allowed(void **state)
{
	struct rlimit before, few, its;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = 300, .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	weir_start(LISTEN STATE NONE ALL);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(prlimit(process.pid, RLIMIT_NOFILE, NULL, &its), 0);
	assert_int_equal(its.rlim_cur, its.rlim_max);
	assert_true(its.rlim_max >= before.rlim_max);
	weir_stop();
}

static void
connections_of_a_cluster_are_counted_among_the_descriptors(void **state)
{
	static const char *const stores[] = { "server = unix:DIR/none",
		"cluster = tcp:127.0.0.1:1" };
	struct rlimit most;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &most), 0);
	if (most.rlim_max < 10000 || most.rlim_max > 1000000)
		skip();
	for (size_t i = 0; i < LENGTH_OF(stores); i++) {
		char ini[500];

		(void)snprintf(ini, sizeof ini,
			LISTEN "threads = 2\nmax_in_flight = 100\nmax_connections = %llu\n" STATE
			       "[redis]\n%s\n" NONE ALL,
			(unsigned long long)most.rlim_max - 2000, stores[i]);
		weir_start(ini);
		assert_int_equal(
			process_said(&process, "and Redis may need more descriptors"), i > 0);
		weir_stop();
		process_release(&process);
	}
}

static void
several_sockets_and_threads_serve(void **state)
{
	(void)state;
	weir_start("[weir]\nlisten = unix:DIR/a.sock\nlisten = unix:DIR/b.sock\n"
		   "threads = 3\n" STATE NONE ALL);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(status_at(i % 2 == 0 ? "a.sock" : "b.sock"), 200);
	weir_stop();
}

static void
stale_socket_is_replaced(void **state)
{
	(void)state;
	(void)close(unix_listen(directory_path(&directory, "weir.sock").text, 1));
	weir_start(LISTEN STATE NONE ALL);
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

static void
live_socket_is_refused_and_left_alone(void **state)
{
	struct process first;

	(void)state;
	weir_start(LISTEN STATE NONE ALL);
	first = process;
	struct process_setup setup = { 0 };

	assert_int_equal(weir_run(LISTEN STATE NONE ALL, &setup), 1);
	assert_row(process_said(&process, "weir.sock: another process listens there already"), "%s",
		process_error(&process));
	process_release(&process);
	process = first;
	assert_int_equal(status_at("weir.sock"), 200);
	weir_stop();
}

static void
socket_as_descriptor_0_is_served(void **state)
{
	const struct directory_path path = directory_path(&directory, "given.sock");
	struct process_setup setup = { .standard_input = unix_listen(path.text, 5) };

	(void)state;
	weir_start_with(LISTEN STATE NONE ALL, &setup);
	assert_serving();
	assert_true(process_said(&process,
		"`listen` is ignored: the sockets were given by who started weir. given_by=\"the "
		"program that started weir, as descriptor 0\"\n"));
	assert_true(process_said(&process, "/given.sock store="));
	assert_int_equal(access(directory_path(&directory, "weir.sock").text, F_OK), -1);
	assert_int_equal(status_at("given.sock"), 200);
	weir_stop();
	/* It is not ours to remove. */
	assert_int_equal(access(path.text, F_OK), 0);
	(void)close(setup.standard_input);
}

/* FastCGI 1.0 section 2.2: descriptor 0 may be all that there is. What is opened then must not be
 * taken for standard error. */
static void
descriptors_1_and_2_may_be_closed(void **state)
{
	struct process_setup setup = {
		.standard_input = unix_listen(directory_path(&directory, "given.sock").text, 5),
		.without_output = true,
	};

	(void)state;
	weir_start_with("[weir]\nlog_level = debug\n" STATE NONE "[limit one]\npolicy = 1/1h\n" ALL
			"limit = one\n",
		&setup);
	assert_int_equal(status_at("given.sock"), 200);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(status_at("given.sock"), 429);
	for (unsigned fd = 1; fd <= 2; fd++) {
		char link[64], target[64] = "";

		(void)snprintf(link, sizeof link, "/proc/%d/fd/%u", (int)process.pid, fd);
		assert_true(readlink(link, target, sizeof target - 1) > 0);
		assert_string_equal(target, "/dev/null");
	}
	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	(void)close(setup.standard_input);
}

static void
sockets_of_systemd_are_served(void **state)
{
	struct process_setup setup = {
		.listening = { unix_listen(directory_path(&directory, "a.sock").text, 5),
			unix_listen(directory_path(&directory, "b.sock").text, 5) },
		.environment =
			(const char *const[]){ "LISTEN_FDNAMES=weir.socket:weir.socket", NULL },
	};

	(void)state;
	weir_start_with(LISTEN STATE NONE ALL, &setup);
	assert_serving();
	assert_true(process_said(&process, "sockets=2"));
	assert_true(process_said(&process, "given_by=\"systemd (weir.socket)\"\n"));
	/* No restart would change it either. */
	write_config("[weir]\nlisten = unix:DIR/other.sock\n" STATE NONE ALL);
	process_signal(&process, SIGHUP);
	assert_soon(process_said(&process, "The configuration was read anew."));
	assert_row(process_said(&process,
			   "A changed key has no effect, after a restart neither: the sockets are "
			   "given by who starts weir. key=\"[weir] listen\" given_by=\"systemd "
			   "(weir.socket)\"\n"),
		"%s", process_error(&process));
	assert_false(process_said(&process, "takes effect only with a restart"));
	assert_int_equal(status_at("a.sock"), 200);
	assert_int_equal(status_at("b.sock"), 200);
	assert_int_equal(access(directory_path(&directory, "weir.sock").text, F_OK), -1);
	weir_stop();
	assert_int_equal(access(directory_path(&directory, "a.sock").text, F_OK), 0);
	(void)close(setup.listening[0]);
	(void)close(setup.listening[1]);
}

static void
sockets_for_another_process_are_not_taken(void **state)
{
	struct process_setup setup = {
		.listening = { unix_listen(directory_path(&directory, "a.sock").text, 5) },
		.for_another = true,
	};

	(void)state;
	assert_int_equal(weir_run(STATE NONE ALL, &setup), 2);
	(void)close(setup.listening[0]);
}

static void
descriptor_of_systemd_that_is_no_listening_socket_is_refused(void **state)
{
	const struct pair pair = pair_open(PAIR_UNIX);
	struct process_setup setup = { .listening = { pair.ours } };

	(void)state;
	assert_int_equal(weir_run(STATE NONE ALL, &setup), 1);
	assert_row(process_said(&process, "no listening stream socket"), "%s",
		process_error(&process));
	(void)close(pair.ours);
	(void)close(pair.theirs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_socket_it_is_wrong_use),
		TEST(wrong_configuration_ends_it_with_all_errors),
		TEST(its_own_socket_has_the_configured_mode_and_goes_with_it),
		TEST(its_own_socket_is_the_web_servers_group_s_if_nothing_else_is_said),
		TEST(it_may_open_as_many_descriptors_as_it_is_allowed),
		TEST(connections_of_a_cluster_are_counted_among_the_descriptors),
		TEST(several_sockets_and_threads_serve),
		TEST(stale_socket_is_replaced),
		TEST(live_socket_is_refused_and_left_alone),
		TEST(socket_as_descriptor_0_is_served),
		TEST(descriptors_1_and_2_may_be_closed),
		TEST(sockets_of_systemd_are_served),
		TEST(sockets_for_another_process_are_not_taken),
		TEST(descriptor_of_systemd_that_is_no_listening_socket_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
