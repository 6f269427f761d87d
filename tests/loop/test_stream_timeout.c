/* stream.h: a peer that takes nothing is given up at the send timeout, one that takes a little not.
 */
#include "end.h"

#include <errno.h>
#include <unistd.h>

enum { SIZE = 3000000, TIMEOUT_MS = 100 };

static void
open_stalled(struct end *end, struct pair *pair, enum pair_kind kind)
{
	*pair = pair_open(kind);
	socket_limit_buffers(pair->ours, 65536);
	socket_limit_buffers(pair->theirs, 65536);
	end_open(end, pair->ours);
	stream_set_send_timeout(end->stream, TIMEOUT_MS * INT64_C(1000));
	end_write(end, SIZE, 0, 0);
	run_loop_once(loop);
	assert_true(stream_queued(end->stream) > 0);
}

static void
peer_that_takes_nothing_is_given_up(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair;
		struct end end;
		const int64_t start_us = clock_monotonic_us();

		open_stalled(&end, &pair, kind);
		run_loop_until(loop, (end.calls & CALL_FAILED) != 0);
		assert_int_equal(end.error, ETIMEDOUT);
		assert_true(clock_monotonic_us() - start_us >= TIMEOUT_MS * 1000);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

/* However long nothing more is written. */
static void
nothing_is_given_up_when_all_has_been_taken(void **state)
{
	static char bytes[65536];

	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair;
		struct end end;

		open_stalled(&end, &pair, kind);
		for (size_t got = 0; got < SIZE;) {
			const ssize_t n = recv(pair.theirs, bytes, sizeof bytes, MSG_DONTWAIT);

			got += n > 0 ? (size_t)n : 0;
			run_loop_for_ms(loop, n > 0 ? 0 : 1);
		}
		assert_int_equal(stream_queued(end.stream), 0);
		run_loop_for_ms(loop, 3 * TIMEOUT_MS);
		assert_int_equal(end.calls & CALL_FAILED, 0);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

static void
peer_may_take_its_time_without_a_timeout(void **state)
{
	struct pair pair;
	struct end end;

	(void)state;
	pair = pair_open(PAIR_UNIX);
	end_open(&end, pair.ours);
	end_write(&end, SIZE, 0, 0);
	run_loop_for_ms(loop, 3 * TIMEOUT_MS);
	assert_int_equal(end.calls & CALL_FAILED, 0);
	end_close(&end);
	(void)close(pair.theirs);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			peer_that_takes_nothing_is_given_up, end_set_up, end_tear_down),
		cmocka_unit_test_setup_teardown(
			nothing_is_given_up_when_all_has_been_taken, end_set_up, end_tear_down),
		cmocka_unit_test_setup_teardown(
			peer_may_take_its_time_without_a_timeout, end_set_up, end_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
