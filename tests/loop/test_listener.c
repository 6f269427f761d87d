/* listener.h: accepting, also while descriptors are short. */
#include "one_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

static void
every_connection_is_handed_over_whatever_the_batch(void **state)
{
	static const unsigned batches[] = { 1, 2, 16, 1000 };
	const int listening = listen_here();
	int fds[40];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(batches); i++) {
		open_listener(listening, batches[i]);
		connect_here(fds, LENGTH_OF(fds));
		run_loop_until(loop, taken.count == LENGTH_OF(fds));
		run_loop_for_ms(loop, 5);
		assert_int_equal(taken.count, LENGTH_OF(fds));
		close_listener();
		close_all(fds, LENGTH_OF(fds));
	}
	(void)close(listening);
}

static int
tcp_number(int fd, int option)
{
	int number = -1;
	socklen_t len = sizeof number;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, option, &number, &len), 0);
	return number;
}

static void
connection_does_not_block_nor_outlive_an_exec_nor_delay_nor_vanish(void **state)
{
	uint16_t port;
	const int listening = tcp_listen(5, &port);
	int one = 0;
	socklen_t len = sizeof one;

	(void)state;
	assert_int_equal(fcntl(listening, F_SETFL, O_NONBLOCK), 0);
	open_listener(listening, 16);
	const int theirs = tcp_connect(port);

	run_loop_until(loop, taken.count == 1);
	assert_true((fcntl(taken.fds[0], F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(taken.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(getsockopt(taken.fds[0], IPPROTO_TCP, TCP_NODELAY, &one, &len), 0);
	assert_int_equal(one, 1);
	one = 0;
	assert_int_equal(getsockopt(taken.fds[0], SOL_SOCKET, SO_KEEPALIVE, &one, &len), 0);
	assert_int_equal(one, 1);
	assert_true(tcp_number(taken.fds[0], TCP_KEEPIDLE) +
			tcp_number(taken.fds[0], TCP_KEEPINTVL) *
				tcp_number(taken.fds[0], TCP_KEEPCNT) <=
		120);
	close_listener();
	(void)close(theirs);
	(void)close(listening);
}

static void
paused_listener_leaves_connections_to_the_backlog(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	open_listener(listening, 16);
	/* In the middle of a batch. */
	taken.pause_at = 3;
	connect_here(fds, LENGTH_OF(fds));
	run_loop_until(loop, taken.count == 3);
	run_loop_for_ms(loop, 20);
	assert_int_equal(taken.count, 3);
	listener_pause(taken.listener);
	listener_resume(taken.listener);
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
two_listeners_of_one_socket_take_each_connection_once(void **state)
{
	const int listening = listen_here();
	struct listener *other;
	int fds[40];

	(void)state;
	open_listener(listening, 4);
	other = listener_new(loop, listening, 4, take, &taken);
	assert_non_null(other);
	connect_here(fds, LENGTH_OF(fds));
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	run_loop_for_ms(loop, 5);
	assert_int_equal(taken.count, LENGTH_OF(fds));
	assert_int_equal(log_lines, 0);
	listener_free(other);
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
without_descriptors_it_rests_and_then_goes_on(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	open_listener(listening, 16);
	connect_here(fds, LENGTH_OF(fds));
	none_left = true;
	accepts = 0;
	run_loop_for_ms(loop, 350);
	none_left = false;
	/* Every 100 ms, and told once. */
	assert_in_range(accepts, 1, 4);
	assert_int_equal(log_lines, 1);
	assert_int_equal(taken.count, 0);
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
listener_that_is_paused_while_it_rests_stays_paused(void **state)
{
	const int listening = listen_here();
	int fds[2];

	(void)state;
	open_listener(listening, 16);
	connect_here(fds, LENGTH_OF(fds));
	none_left = true;
	while (log_lines == 0)
		run_loop_once(loop);
	none_left = false;
	listener_pause(taken.listener);
	run_loop_for_ms(loop, 150);
	assert_int_equal(taken.count, 0);
	listener_resume(taken.listener);
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
socket_stays_the_callers(void **state)
{
	const int listening = listen_here();

	(void)state;
	open_listener(listening, 16);
	close_listener();
	listener_free(NULL);
	assert_int_equal(fcntl(listening, F_GETFD) < 0, 0);
	(void)close(listening);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_connection_is_handed_over_whatever_the_batch),
		TEST(connection_does_not_block_nor_outlive_an_exec_nor_delay_nor_vanish),
		TEST(paused_listener_leaves_connections_to_the_backlog),
		TEST(two_listeners_of_one_socket_take_each_connection_once),
		TEST(without_descriptors_it_rests_and_then_goes_on),
		TEST(listener_that_is_paused_while_it_rests_stays_paused),
		TEST(socket_stays_the_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
