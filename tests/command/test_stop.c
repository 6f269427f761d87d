/* What becomes of clients that are connected but not accepted when `weir serve` stops. */
#include "serving.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 200 };

static int fds[CLIENTS];
static uint16_t tcp_port; /* 0: the clients use weir.sock */

static int
connect_client(void)
{
	return tcp_port == 0 ? connect_to("weir.sock") : tcp_connect(tcp_port);
}

/* Whole requests stand at the socket of a process that sleeps, and then it is to stop. */
static void
stop_with_requests_waiting(int signo)
{
	struct buf bytes;

	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = params, .keep = true });
	process_signal(&process, SIGSTOP);
	assert_int_equal(waitpid(process.pid, NULL, WUNTRACED), process.pid);
	for (size_t i = 0; i < CLIENTS; i++) {
		fds[i] = connect_client();
		assert_true(socket_send(fds[i], buf_slice(&bytes)));
	}
	buf_release(&bytes);
	process_signal(&process, signo);
	process_signal(&process, SIGCONT);
}

/* How many of them before the first that is not. */
static unsigned
count_served(void)
{
	unsigned served = 0;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct answer answer;

		if (served == i) {
			answer_read(&answer, fds[i], 1);
			served += answer_is_whole(&answer) && answer_status(&answer) == 200;
			answer_release(&answer);
		}
		(void)close(fds[i]);
	}
	return served;
}

static void
assert_stopped(void)
{
	assert_int_equal(process_wait(&process), 0);
	assert_row(
		process_said(&process, "Stopped. requests_cut=0"), "%s", process_error(&process));
	process_release(&process);
}

/* A port that was free a moment ago. */
static uint16_t
free_port(void)
{
	uint16_t port;

	(void)close(tcp_listen(1, &port));
	return port;
}

static void
what_waits_at_own_sockets_is_served(void **state)
{
	static const unsigned threads[] = { 1, 2 };

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH_OF(threads); i++) {
		char ini[300], listen[60] = "unix:DIR/weir.sock mode 0600";

		tcp_port = i % 2 == 0 ? 0 : free_port();
		if (tcp_port != 0)
			(void)snprintf(listen, sizeof listen, "tcp:127.0.0.1:%u", tcp_port);
		(void)snprintf(ini, sizeof ini, "[weir]\nlisten = %s\nthreads = %u\n%s", listen,
			threads[i / 2], STATE NONE ALL);
		weir_start(ini);
		stop_with_requests_waiting(SIGTERM);
		assert_int_equal(count_served(), CLIENTS);
		assert_stopped();
	}
	tcp_port = 0;
}

/* Of the processes that lighttpd or mod_fcgid starts each often has a socket of its own. */
static void
what_waits_at_descriptor_0_is_served(void **state)
{
	struct process_setup setup = {
		.standard_input =
			unix_listen(directory_path(&directory, "weir.sock").text, CLIENTS),
	};

	(void)state;
	weir_start_with(STATE NONE ALL, &setup);
	assert_serving();
	stop_with_requests_waiting(SIGUSR1);
	assert_int_equal(count_served(), CLIENTS);
	assert_stopped();
	(void)close(setup.standard_input);
}

static void
what_is_not_accepted_from_systemd_is_served_by_the_next(void **state)
{
	struct process_setup setup = {
		.listening = { unix_listen(directory_path(&directory, "weir.sock").text, CLIENTS) },
	};

	(void)state;
	weir_start_with(STATE NONE ALL, &setup);
	assert_serving();
	stop_with_requests_waiting(SIGTERM);
	assert_stopped();
	weir_start_with(STATE NONE ALL, &setup);
	assert_serving();
	assert_int_equal(count_served(), CLIENTS);
	weir_stop();
	(void)close(setup.listening[0]);
}

static bool
is_refused(const struct sockaddr *name, socklen_t len)
{
	const int fd = socket(name->sa_family, SOCK_STREAM, 0);
	const bool refused = connect(fd, name, len) != 0 && errno == ECONNREFUSED;

	(void)close(fd);
	return refused;
}

/* So that a web server turns to another host at once, while a request is still under way. */
static void
nobody_new_gets_in(void **state)
{
	const uint16_t port = free_port();
	const struct sockaddr_in in = { .sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char ini[300];
	struct answer answer;

	(void)state;
	const struct sockaddr_un un = unix_name(directory_path(&directory, "weir.sock").text);

	(void)snprintf(
		ini, sizeof ini, LISTEN "listen = tcp:127.0.0.1:%u\n%s", port, STATE APP ALL);
	weir_start(ini);
	const int fd = begin_request();

	process_signal(&process, SIGTERM);
	assert_soon(is_refused((const struct sockaddr *)&un, sizeof un));
	assert_soon(is_refused((const struct sockaddr *)&in, sizeof in));
	assert_false(process_has_ended(&process));
	directory_write(&directory, "go", SLICE(""));
	answer_read(&answer, fd, 1);
	assert_true(answer_is_whole(&answer));
	answer_release(&answer);
	(void)close(fd);
	assert_stopped();
}

/* There is room for one connection, and it does not end within drain. */
static void
what_cannot_be_accepted_is_cut_and_counted(void **state)
{
	struct buf bytes;

	(void)state;
	weir_start(LISTEN "drain = 300ms\nmax_connections = 1\n" STATE APP ALL);
	fds[0] = begin_request();
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = params });
	for (size_t i = 1; i < 5; i++) {
		fds[i] = connect_to("weir.sock");
		assert_true(socket_send(fds[i], buf_slice(&bytes)));
	}
	buf_release(&bytes);
	process_signal(&process, SIGTERM);
	assert_int_equal(process_wait(&process), 0);
	assert_row(
		process_said(&process, "Stopped. requests_cut=5"), "%s", process_error(&process));
	for (size_t i = 0; i < 5; i++)
		(void)close(fds[i]);
	directory_write(&directory, "go", SLICE(""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_waits_at_own_sockets_is_served),
		TEST(what_waits_at_descriptor_0_is_served),
		TEST(what_is_not_accepted_from_systemd_is_served_by_the_next),
		TEST(nobody_new_gets_in),
		TEST(what_cannot_be_accepted_is_cut_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
