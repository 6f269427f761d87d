/*
 * stream.h: how streams end. Every call back may close the stream, and a peer that has gone is told
 * once, also while nobody reads.
 */
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- closing in a call back ---- */

/* Makes the call come, on a stream that is closed in it. */
static void
close_in(enum call call, enum pair_kind kind)
{
	struct pair pair = end_narrow_pair(kind);
	struct end end;

	end_open(&end, pair.ours);
	end.close_in = (unsigned)call;
	/* Everything else is about to come as well. */
	stream_set_deadline(end.stream, call == CALL_EXPIRED ? 1 : clock_monotonic_us() + 5000);
	if (call == CALL_DRAINED || call == CALL_FINISHED || call == CALL_FAILED)
		end_write(&end, call == CALL_FAILED ? 5000000 : 1000000, 0, 8);
	if (call == CALL_FINISHED)
		stream_finish(end.stream);
	if (call == CALL_EOF)
		assert_int_equal(shutdown(pair.theirs, SHUT_WR), 0);
	if (call == CALL_DRAINED || call == CALL_FINISHED) {
		struct reader reader;

		/* It ends when the stream is closed. */
		stream_set_deadline(end.stream, 0);
		reader_start(&reader, pair.theirs, true);
		run_loop_until(loop, (end.calls & (unsigned)call) != 0);
		(void)reader_wait(&reader);
	} else {
		run_loop_until(loop, (end.calls & (unsigned)call) != 0);
	}
	assert_null(end.stream);
	run_loop_for_ms(loop, 10);
	assert_false(end.called_after_close);
	(void)close(pair.theirs);
}

static void
stream_may_be_closed_in_eof(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++)
		close_in(CALL_EOF, kind);
}

static void
stream_may_be_closed_in_drained(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++)
		close_in(CALL_DRAINED, kind);
}

static void
stream_may_be_closed_in_finished(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++)
		close_in(CALL_FINISHED, kind);
}

static void
stream_may_be_closed_in_failed(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++)
		close_in(CALL_FAILED, kind);
}

static void
stream_may_be_closed_in_expired(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++)
		close_in(CALL_EXPIRED, kind);
}

static void
stream_may_be_closed_in_input(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;

		end_open(&end, pair.ours);
		end.close_in = CALL_INPUT;
		end_write(&end, 100, 0, 0);
		assert_true(socket_send(pair.theirs, SLICE("\0")));
		assert_int_equal(shutdown(pair.theirs, SHUT_WR), 0);
		run_loop_until(loop, end.calls != 0);
		run_loop_for_ms(loop, 10);
		assert_int_equal(end.calls, CALL_INPUT);
		assert_false(end.called_after_close);
		(void)close(pair.theirs);
	}
}

static void
close_lets_null_pass_and_drops_what_is_queued(void **state)
{
	struct pair pair = pair_open(PAIR_UNIX);
	struct end end;
	char byte;

	(void)state;
	stream_close(NULL);
	end_open(&end, pair.ours);
	end_write(&end, 100, 0, 0);
	end_close(&end);
	assert_int_equal(recv(pair.theirs, &byte, 1, 0), 0);
	(void)close(pair.theirs);
}

/* ---- peers that go ---- */

static void
reset_is_told_while_reading(void **state)
{
	struct pair pair = pair_open(PAIR_TCP);
	struct end end;

	(void)state;
	end_open(&end, pair.ours);
	socket_reset_on_close(pair.theirs);
	(void)close(pair.theirs);
	run_loop_until(loop, end.count > 0);
	assert_int_equal(end.calls, CALL_FAILED);
	assert_int_equal(end.error, ECONNRESET);
	end_close(&end);
}

static void
peer_that_is_gone_is_told_while_writing(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;
		uint64_t sent = 0;

		end_open(&end, pair.ours);
		stream_pause(end.stream);
		(void)close(pair.theirs);
		while (end.count == 0 && sent < 100 * 1000000) {
			end_write(&end, 1000, sent, 0);
			sent += 1000;
			run_loop_once(loop);
		}
		assert_int_equal(end.calls, CALL_FAILED);
		assert_true(end.error == EPIPE || end.error == ECONNRESET);
		end_close(&end);
	}
}

/* An application that answers and closes before it has read all: a unix socket then says ECONNRESET
 * instead of an end. */
static void
deaf_peers_answer_is_read_to_its_end(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		char *answer = malloc(100000);
		struct pair pair = pair_open(kind);
		struct end end;
		uint64_t sent = 0;

		assert_non_null(answer);
		end_fill(answer, 100000, 0);
		end_open(&end, pair.ours);
		stream_read_on(end.stream);
		end_write(&end, 1000, 0, 0);
		run_loop_once(loop);
		assert_true(socket_send(pair.theirs, slice_make(answer, 100000)));
		(void)close(pair.theirs);
		while ((end.calls & (CALL_EOF | CALL_FAILED)) == 0) {
			end_write(&end, 20000, sent, 8);
			sent += 20000;
			run_loop_once(loop);
			assert_true(sent < 100 * 1000000);
		}
		assert_int_equal(end.got, 100000);
		assert_true(end.error == 0 || end.error == ECONNRESET);
		end_close(&end);
		free(answer);
	}
}

static void
deaf_stream_is_never_full_for_long(void **state)
{
	struct pair pair = pair_open(PAIR_UNIX);
	struct end end;
	uint64_t sent = 0;

	(void)state;
	end_open(&end, pair.ours);
	stream_read_on(end.stream);
	while (!stream_is_full(end.stream)) {
		end_write(&end, 10000, sent, 8);
		sent += 10000;
	}
	assert_int_equal(shutdown(pair.theirs, SHUT_RD), 0);
	run_loop_until(loop, end.drains > 0);
	assert_false(stream_is_full(end.stream));
	for (unsigned i = 0; i < 1000; i++)
		end_write(&end, 10000, 0, 8);
	assert_int_equal(stream_queued(end.stream), 0);
	assert_true(socket_send(pair.theirs, SLICE("\0")));
	run_loop_until(loop, end.got > 0);
	assert_int_equal(end.calls & CALL_FAILED, 0);
	end_close(&end);
	(void)close(pair.theirs);
}

static void
paused_stream_tells_that_its_peer_has_closed(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;

		end_open(&end, pair.ours);
		stream_watch_close(end.stream);
		stream_pause(end.stream);
		assert_true(socket_send(pair.theirs, SLICE("not read")));
		run_loop_for_ms(loop, 10);
		assert_int_equal(end.count, 0);
		(void)close(pair.theirs);
		run_loop_until(loop, end.count > 0);
		assert_int_equal(end.calls, CALL_FAILED);
		assert_int_equal(end.error, EPIPE);
		end_close(&end);
	}
}

/* A reset is an error to epoll, which libevent tells to readers and writers only. */
static void
paused_stream_tells_that_it_was_reset(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;

		end_open(&end, pair.ours);
		stream_watch_close(end.stream);
		end_write(&end, 10, 0, 0);
		run_loop_once(loop);
		stream_pause(end.stream);
		/* With our bytes unread: a reset on either kind. */
		if (kind == PAIR_TCP)
			socket_reset_on_close(pair.theirs);
		(void)close(pair.theirs);
		run_loop_until(loop, end.count > 0);
		assert_int_equal(end.calls, CALL_FAILED);
		end_close(&end);
	}
}

static void
peer_that_has_closed_one_side_only_is_not_gone(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;
		char byte;

		end_open(&end, pair.ours);
		stream_watch_close(end.stream);
		stream_trust_half_closed(end.stream, true);
		stream_pause(end.stream);
		assert_int_equal(shutdown(pair.theirs, SHUT_WR), 0);
		run_loop_for_ms(loop, 10);
		assert_int_equal(end.count, 0);
		assert_false(stream_peer_is_gone(end.stream));
		/* It still gets its answer ... */
		end_write(&end, 1, 0, 0);
		run_loop_once(loop);
		assert_int_equal(recv(pair.theirs, &byte, 1, 0), 1);
		/* ... and when it goes then, that is noticed: over TCP with what is sent next. */
		(void)close(pair.theirs);
		if (kind == PAIR_TCP)
			end_write(&end, 1, 0, 0);
		run_loop_until(loop, end.count > 0);
		assert_int_equal(end.calls, CALL_FAILED);
		assert_true(stream_peer_is_gone(end.stream));
		end_close(&end);
	}
}

static void
behind_the_end_of_input_it_can_be_told_who_is_gone(void **state)
{
	(void)state;
	for (unsigned closes = 0; closes < 2; closes++) {
		for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
			struct pair pair = pair_open(kind);
			struct end end;

			end_open(&end, pair.ours);
			assert_int_equal(shutdown(pair.theirs, SHUT_WR), 0);
			if (closes != 0)
				(void)close(pair.theirs);
			run_loop_until(loop, end.eofs > 0);
			assert_int_equal(
				stream_peer_is_gone(end.stream), closes != 0 || kind == PAIR_TCP);
			end_close(&end);
			if (closes == 0)
				(void)close(pair.theirs);
		}
	}
}

/* ---- deadlines ---- */

static void
deadline_can_be_moved_and_taken_away(void **state)
{
	struct pair pair = pair_open(PAIR_UNIX);
	struct end end;
	int64_t due_us = 0;

	(void)state;
	end_open(&end, pair.ours);
	stream_set_deadline(end.stream, 0);
	for (unsigned i = 0; i < 20; i++) {
		due_us = clock_monotonic_us() + 60000;
		stream_set_deadline(end.stream, due_us);
		run_loop_for_ms(loop, 1);
	}
	assert_int_equal(end.count, 0);
	run_loop_until(loop, end.count > 0);
	assert_true(clock_monotonic_us() >= due_us);
	assert_int_equal(end.calls, CALL_EXPIRED);
	stream_set_deadline(end.stream, clock_monotonic_us() + 5000);
	stream_set_deadline(end.stream, 0);
	run_loop_for_ms(loop, 30);
	assert_int_equal(end.count, 1);
	end_close(&end);
	(void)close(pair.theirs);
}

/* ---- all at once ---- */

/* Streams that are written to, paused, finished and closed as it comes, between peers that read,
 * write, shut down and reset: no call after a close, no byte out of order. */
static void
any_order_of_calls_and_peers_is_survived(void **state)
{
	uint64_t random = 24;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		const enum pair_kind kind = random_below(&random, 2) == 0 ? PAIR_UNIX : PAIR_TCP;
		struct pair pair = pair_open(kind);
		uint64_t sent = 0, theirs_sent = 0;
		bool finished = false, peer_ended = false;
		struct end end;
		char bytes[5000];

		assert_int_equal(fcntl(pair.theirs, F_SETFL, O_NONBLOCK), 0);
		end_open(&end, pair.ours);
		end.close_in = (unsigned)random_below(&random, 128) &
			(unsigned)random_below(&random, 128) & (unsigned)random_below(&random, 128);
		if (random_below(&random, 2) == 0)
			stream_read_on(end.stream);
		if (random_below(&random, 2) == 0)
			stream_watch_close(end.stream);
		for (unsigned step = 0; step < 40 && end.stream != NULL; step++) {
			switch (random_below(&random, 9)) {
			case 0:
			case 1:
				if (!finished)
					end_write(&end, random_below(&random, 100000), sent, 0);
				break;
			case 2:
				stream_pause(end.stream);
				break;
			case 3:
				stream_resume(end.stream);
				break;
			case 4:
				stream_set_deadline(end.stream,
					clock_monotonic_us() +
						(int64_t)random_below(&random, 2000));
				break;
			case 5:
				(void)recv(pair.theirs, bytes, sizeof bytes, 0);
				break;
			case 6:
				end_fill(bytes, sizeof bytes, theirs_sent);
				const ssize_t n = peer_ended
					? 0
					: send(pair.theirs, bytes, sizeof bytes, MSG_NOSIGNAL);

				theirs_sent += n > 0 ? (uint64_t)n : 0;
				break;
			case 7:
				if (random_below(&random, 4) == 0) {
					stream_finish(end.stream);
					finished = true;
				}
				break;
			case 8:
				if (random_below(&random, 8) == 0) {
					(void)shutdown(pair.theirs, SHUT_WR);
					peer_ended = true;
				}
				break;
			}
			if (random_below(&random, 2) == 0)
				run_loop_once(loop);
		}
		if (random_below(&random, 2) == 0)
			socket_reset_on_close(pair.theirs);
		(void)close(pair.theirs);
		run_loop_once(loop);
		end_close(&end);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, end_set_up, end_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(stream_may_be_closed_in_input),
		TEST(stream_may_be_closed_in_eof),
		TEST(stream_may_be_closed_in_drained),
		TEST(stream_may_be_closed_in_finished),
		TEST(stream_may_be_closed_in_failed),
		TEST(stream_may_be_closed_in_expired),
		TEST(close_lets_null_pass_and_drops_what_is_queued),
		TEST(reset_is_told_while_reading),
		TEST(peer_that_is_gone_is_told_while_writing),
		TEST(deaf_peers_answer_is_read_to_its_end),
		TEST(deaf_stream_is_never_full_for_long),
		TEST(paused_stream_tells_that_its_peer_has_closed),
		TEST(paused_stream_tells_that_it_was_reset),
		TEST(peer_that_has_closed_one_side_only_is_not_gone),
		TEST(behind_the_end_of_input_it_can_be_told_who_is_gone),
		TEST(deadline_can_be_moved_and_taken_away),
		TEST(any_order_of_calls_and_peers_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
