/*
 * stream.h: bytes arrive whole and in order, and memory is bounded, whoever is slow. Most tests are
 * made with a unix socket and with TCP.
 */
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

/* ---- what is written arrives ---- */

static void
write_random_pieces(struct end *end, uint64_t total, uint64_t *random)
{
	uint64_t sent = 0;

	while (sent < total) {
		if (stream_is_full(end->stream)) {
			run_loop_until(loop, !stream_is_full(end->stream));
			continue;
		}
		static const size_t most[] = { 3, 300, 9000, 70000, 200000 };
		size_t len = 1 + random_below(random, most[random_below(random, LENGTH_OF(most))]);

		len = len > total - sent ? (size_t)(total - sent) : len;
		end_write(end, len, sent, random_below(random, 2) == 0 ? 0 : 1 + len / 9);
		sent += len;
		if (random_below(random, 4) == 0)
			run_loop_once(loop);
	}
}

static void
bytes_arrive_whole_and_in_order_whatever_the_sizes(void **state)
{
	uint64_t random = 22;

	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		const uint64_t total = 3 * 1024 * 1024 + random_below(&random, 1000);
		const enum pair_kind kind = round % 2 == 0 ? PAIR_UNIX : PAIR_TCP;
		struct pair pair = pair_open(kind);
		struct reader reader;
		struct end end;

		/* TCP with a tiny window waits for its timers. */
		if (round >= 4 && kind == PAIR_UNIX) {
			socket_limit_buffers(pair.ours, 1);
			socket_limit_buffers(pair.theirs, 1);
		}
		reader_start(&reader, pair.theirs, true);
		reader.is_slow = round >= 6;
		end_open(&end, pair.ours);
		write_random_pieces(&end, total, &random);
		stream_finish(end.stream);
		run_loop_until(loop, end.finishes > 0);
		assert_int_equal(reader_wait(&reader), total);
		assert_int_equal(end.finishes, 1);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

/* Two streams on one loop, each slow to read what the other one writes. */
static void
bytes_arrive_in_both_directions_between_readers_that_pause(void **state)
{
	const uint64_t total = 2 * 1024 * 1024;
	uint64_t random = 23;

	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end ends[2];
		uint64_t sent[2] = { 0, 0 };

		assert_int_equal(fcntl(pair.theirs, F_SETFL, O_NONBLOCK), 0);
		end_open(&ends[0], pair.ours);
		end_open(&ends[1], pair.theirs);
		while (ends[0].got < total || ends[1].got < total) {
			struct end *end = &ends[random_below(&random, 2)];
			uint64_t *done = &sent[end - ends];
			size_t len = 1 + random_below(&random, 100000);

			if (random_below(&random, 3) == 0)
				stream_pause(end->stream);
			else
				stream_resume(end->stream);
			len = len > total - *done ? (size_t)(total - *done) : len;
			if (len > 0 && !stream_is_full(end->stream)) {
				end_write(end, len, *done, 0);
				*done += len;
			}
			run_loop_once(loop);
		}
		end_close(&ends[0]);
		end_close(&ends[1]);
		assert_int_equal(ends[0].got, total);
		assert_int_equal(ends[1].got, total);
	}
}

static void
nothing_is_read_while_it_is_paused(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = pair_open(kind);
		struct end end;
		char bytes[100];

		end_fill(bytes, sizeof bytes, 0);
		end_open(&end, pair.ours);
		assert_false(stream_is_paused(end.stream));
		stream_pause(end.stream);
		assert_true(stream_is_paused(end.stream));
		assert_true(socket_send(pair.theirs, slice_make(bytes, sizeof bytes)));
		assert_int_equal(shutdown(pair.theirs, SHUT_WR), 0);
		run_loop_for_ms(loop, 20);
		assert_int_equal(end.count, 0);
		stream_resume(end.stream);
		run_loop_until(loop, end.eofs > 0);
		assert_int_equal(end.got, sizeof bytes);
		/* The end is told once, whatever comes then. */
		stream_pause(end.stream);
		stream_resume(end.stream);
		run_loop_for_ms(loop, 20);
		assert_int_equal(end.eofs, 1);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

static void
small_pieces_wait_for_the_end_of_the_turn_and_large_ones_do_not(void **state)
{
	struct pair pair = pair_open(PAIR_UNIX);
	struct end end;
	char byte;

	(void)state;
	end_open(&end, pair.ours);
	end_write(&end, 100, 0, 0);
	assert_int_equal(stream_queued(end.stream), 100);
	assert_int_equal(recv(pair.theirs, &byte, 1, MSG_DONTWAIT), -1);
	run_loop_once(loop);
	assert_int_equal(stream_queued(end.stream), 0);
	end_write(&end, 20000, 100, 8);
	assert_int_equal(stream_queued(end.stream), 0);
	struct reader reader;

	reader_start(&reader, pair.theirs, true);
	stream_finish(end.stream);
	run_loop_until(loop, end.finishes > 0);
	assert_int_equal(reader_wait(&reader), 20100);
	end_close(&end);
	(void)close(pair.theirs);
}

/* ---- back-pressure ---- */

static void
producer_that_looks_at_is_full_needs_little_memory(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = end_narrow_pair(kind);
		struct reader reader;
		struct end end;
		uint64_t sent = 0;

		reader_start(&reader, pair.theirs, false);
		end_open(&end, pair.ours);
		while (!stream_is_full(end.stream)) {
			end_write(&end, 10000, sent, 8);
			sent += 10000;
			run_loop_once(loop);
		}
		assert_in_range(stream_queued(end.stream), STREAM_FULL, STREAM_FULL + 10000);
		run_loop_for_ms(loop, 20);
		assert_int_equal(end.drains, 0);
		assert_true(stream_is_full(end.stream));
		reader.may_read = true;
		run_loop_until(loop, end.drains > 0);
		assert_false(stream_is_full(end.stream));
		assert_int_equal(stream_queued(end.stream), 0);
		stream_finish(end.stream);
		run_loop_until(loop, end.finishes > 0);
		assert_int_equal(reader_wait(&reader), sent);
		assert_int_equal(end.drains, 1);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

static void
producer_that_does_not_look_is_ended_at_the_queues_maximum(void **state)
{
	struct pair pair = pair_open(PAIR_UNIX);
	struct end end;
	uint64_t sent = 0;

	(void)state;
	end_open(&end, pair.ours);
	while (sent < 3 * (uint64_t)STREAM_QUEUE_MAX) {
		end_write(&end, 50000, sent, 8);
		sent += 50000;
		assert_true(stream_queued(end.stream) <= STREAM_QUEUE_MAX);
	}
	assert_int_equal(end.count, 0);
	run_loop_until(loop, end.count > 0);
	assert_int_equal(end.calls, CALL_FAILED);
	assert_int_equal(end.error, ENOBUFS);
	/* Told once, and nothing more is read or written. */
	end_write(&end, 10, sent, 0);
	assert_true(socket_send(pair.theirs, SLICE("x")));
	run_loop_for_ms(loop, 20);
	assert_int_equal(end.count, 1);
	end_close(&end);
	(void)close(pair.theirs);
}

/* ---- the end of what we send ---- */

static void
finish_comes_behind_all_that_is_queued(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = end_narrow_pair(kind);
		struct reader reader;
		struct end end;

		reader_start(&reader, pair.theirs, false);
		end_open(&end, pair.ours);
		end_write(&end, 3000000, 0, 8);
		assert_true(stream_queued(end.stream) > 0);
		stream_finish(end.stream);
		run_loop_for_ms(loop, 10);
		assert_int_equal(end.finishes, 0);
		assert_false(stream_is_finished(end.stream));
		reader.may_read = true;
		run_loop_until(loop, end.finishes > 0);
		assert_true(stream_is_finished(end.stream));
		assert_int_equal(reader_wait(&reader), 3000000);
		/* Our side only: theirs may go on. */
		assert_true(socket_send(pair.theirs, SLICE("\0")));
		run_loop_until(loop, end.got > 0);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

static void
write_the_rest_and_finish(struct end *end)
{
	end_write(end, 1000000, 1000000, 0);
	stream_finish(end->stream);
	end->on_drained = NULL;
}

static void
what_is_written_in_drained_comes_before_the_finish(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		struct pair pair = end_narrow_pair(kind);
		struct reader reader;
		struct end end;

		reader_start(&reader, pair.theirs, false);
		end_open(&end, pair.ours);
		end.on_drained = write_the_rest_and_finish;
		end_write(&end, 1000000, 0, 8);
		reader.may_read = true;
		run_loop_until(loop, end.finishes > 0);
		assert_int_equal(reader_wait(&reader), 2000000);
		end_close(&end);
		(void)close(pair.theirs);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, end_set_up, end_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(bytes_arrive_whole_and_in_order_whatever_the_sizes),
		TEST(bytes_arrive_in_both_directions_between_readers_that_pause),
		TEST(nothing_is_read_while_it_is_paused),
		TEST(small_pieces_wait_for_the_end_of_the_turn_and_large_ones_do_not),
		TEST(producer_that_looks_at_is_full_needs_little_memory),
		TEST(producer_that_does_not_look_is_ended_at_the_queues_maximum),
		TEST(finish_comes_behind_all_that_is_queued),
		TEST(what_is_written_in_drained_comes_before_the_finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
