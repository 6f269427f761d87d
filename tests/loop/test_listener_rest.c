/* listener.h: what still waits when accepting is to end. */
#include "one_listener.h"
#include "weir/socket.h"

static unsigned nones;

static void
none_waits(void *context)
{
	assert_ptr_equal(context, &taken);
	nones++;
	/* As its owner may. */
	listener_free(taken.listener);
	taken.listener = NULL;
	loop_stop(loop);
}

static void
rest_is_taken_and_its_end_told_once(void **state)
{
	static const unsigned batches[] = { 1, 2, 8, 16, 1000 };

	(void)state;
	for (size_t i = 0; i < 2 * LENGTH_OF(batches); i++) {
		const bool is_shut = i >= LENGTH_OF(batches);
		const int listening = listen_here();
		int fds[40], late;

		open_listener(listening, batches[i % LENGTH_OF(batches)]);
		nones = 0;
		connect_here(fds, LENGTH_OF(fds));
		if (is_shut)
			socket_refuse(listening);
		listener_take_rest(taken.listener, none_waits);
		run_loop_until(loop, nones == 1);
		assert_int_equal(taken.count, LENGTH_OF(fds));
		if (!is_shut)
			connect_here(&late, 1);
		run_loop_for_ms(loop, 5);
		assert_int_equal(taken.count, LENGTH_OF(fds));
		assert_int_equal(nones, 1);
		assert_int_equal(log_lines, 0);
		if (!is_shut)
			(void)close(late);
		close_listener();
		close_all(fds, LENGTH_OF(fds));
		(void)close(listening);
		directory_remove(&directory);
		directory_make(&directory);
	}
}

static void
end_of_the_rest_is_told_where_nothing_waits(void **state)
{
	const int listening = listen_here();

	(void)state;
	nones = 0;
	open_listener(listening, 16);
	listener_take_rest(taken.listener, none_waits);
	assert_int_equal(nones, 0);
	run_loop_until(loop, nones == 1);
	close_listener();
	(void)close(listening);
}

static void
rest_waits_for_a_pause_to_end(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	nones = 0;
	open_listener(listening, 16);
	taken.pause_at = 3;
	connect_here(fds, LENGTH_OF(fds));
	listener_take_rest(taken.listener, none_waits);
	run_loop_until(loop, taken.count == 3);
	run_loop_for_ms(loop, 20);
	assert_int_equal(taken.count, 3);
	/* It ends in the pause itself: only asking shows that nothing is left. */
	taken.pause_at = LENGTH_OF(fds);
	listener_resume(taken.listener);
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	run_loop_for_ms(loop, 20);
	assert_int_equal(nones, 0);
	listener_resume(taken.listener);
	run_loop_until(loop, nones == 1);
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
rest_is_taken_when_there_are_descriptors_again(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	nones = 0;
	open_listener(listening, 16);
	connect_here(fds, LENGTH_OF(fds));
	none_left = true;
	accepts = 0;
	listener_take_rest(taken.listener, none_waits);
	run_loop_for_ms(loop, 250);
	none_left = false;
	assert_in_range(accepts, 1, 4);
	assert_int_equal(nones, 0);
	run_loop_until(loop, nones == 1);
	assert_int_equal(taken.count, LENGTH_OF(fds));
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

/* Another thread may shut it while this one still accepts. */
static void
shut_socket_neither_spins_nor_is_a_fault(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	open_listener(listening, 16);
	connect_here(fds, LENGTH_OF(fds));
	socket_refuse(listening);
	run_loop_until(loop, taken.count == LENGTH_OF(fds));
	accepts = 0;
	run_loop_for_ms(loop, 150);
	assert_in_range(accepts, 0, 1);
	assert_int_equal(log_lines, 0);
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

static void
dropped_rest_is_counted_if_it_has_said_something(void **state)
{
	const int listening = listen_here();
	int fds[10];

	(void)state;
	open_listener(listening, 16);
	connect_here(fds, LENGTH_OF(fds));
	for (unsigned i = 0; i < 4; i++)
		assert_true(socket_send(fds[i], SLICE("x")));
	assert_int_equal(listener_drop_rest(taken.listener), 4);
	for (unsigned i = 0; i < LENGTH_OF(fds); i++)
		assert_int_equal(socket_read_to_end(fds[i]), i >= 4);
	close_listener();
	close_all(fds, LENGTH_OF(fds));
	(void)close(listening);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rest_is_taken_and_its_end_told_once),
		TEST(end_of_the_rest_is_told_where_nothing_waits),
		TEST(rest_waits_for_a_pause_to_end),
		TEST(rest_is_taken_when_there_are_descriptors_again),
		TEST(shut_socket_neither_spins_nor_is_a_fault),
		TEST(dropped_rest_is_counted_if_it_has_said_something),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
