/* A request that is given up while nobody wants its body: what comes behind the body is seen. */
#include "ask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* More than the kernel keeps for a connection over TCP here, and less than is read ahead. */
enum { PART = 150000 };

static int
set_up(void **state)
{
	(void)ask_set_up(state);
	ask_listen_on_tcp(4096);
	return 0;
}

static int
begin(enum pair_kind kind, const char *mode, bool keep)
{
	const char *const params[] = { "MODE", mode, "CONTENT_LENGTH", "1000000", NULL };
	const int fd = kind == PAIR_TCP ? tcp_connect(tcp_port) : rig_connect(&rig);

	ask_begin(fd, keep, params);
	assert_soon(rig_look(&rig).open == 1);
	return fd;
}

static void
put_abort(struct buf *out, bool with_next_head)
{
	put_record(out, FCGI_ABORT_REQUEST, 1, SLICE(""), 0);
	if (with_next_head)
		put_usual(out);
}

/* Before anybody wants a body, and when a piece of it has been enough. */
static const char *const holding[] = { "wait", "hold" };

static void
assert_answer_to_abort(int fd)
{
	struct answer answer;

	answer_read(&answer, fd, 1);
	assert_true(answer.ended);
	assert_int_equal(answer.app_status, 1);
	answer_release(&answer);
}

static void
abort_behind_a_held_body_ends_the_request_within_a_second(void **state)
{
	unsigned aborts = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(holding); i++) {
		for (unsigned keep = 0; keep < 2; keep++) {
			const int fd = begin(PAIR_UNIX, holding[i], keep != 0);
			struct buf bytes;

			bytes_init(&bytes);
			put_abort(&bytes, false);
			assert_true(send_body(fd, PART, i == 1));
			assert_true(socket_send(fd, buf_slice(&bytes)));
			assert_within_s(rig_look(&rig).gone_peer == aborts + 1, 1);
			aborts++;
			assert_answer_to_abort(fd);
			if (keep != 0)
				assert_goes_on(fd);
			else
				assert_ended(fd);
			buf_release(&bytes);
			(void)close(fd);
		}
	}
}

/* The abort and the next request come together, and the rest of the body is before them. */
static void
next_request_behind_an_abort_is_served(void **state)
{
	const int fd = begin(PAIR_UNIX, "hold", true);
	struct answer answer;
	struct buf bytes;

	(void)state;
	bytes_init(&bytes);
	put_abort(&bytes, true);
	assert_true(send_body(fd, PART, false));
	assert_true(socket_send(fd, buf_slice(&bytes)));
	assert_answer_to_abort(fd);
	answer_read(&answer, fd, 1);
	assert_usual_answer(&answer);
	answer_release(&answer);
	assert_int_equal(rig_look(&rig).gone_peer, 1);
	buf_release(&bytes);
	(void)close(fd);
}

/* TCP delivers it only behind the body. */
static void
end_behind_a_held_body_ends_the_request_within_a_second(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		for (size_t i = 0; i < LENGTH_OF(holding); i++) {
			const unsigned before = rig_look(&rig).gone_peer;
			const int fd = begin(kind, holding[i], true);

			assert_true(send_body(fd, PART, false));
			(void)close(fd);
			assert_within_s(rig_look(&rig).gone_peer == before + 1, 1);
			assert_within_s(rig_connections() == 0, 1);
		}
	}
}

/* On a unix socket that is not to have gone. */
static void
who_only_sends_no_more_is_answered(void **state)
{
	const int fd = rig_connect(&rig);

	(void)state;
	ask_begin(fd, true,
		(const char *const[]){ "MODE", "wait", "CONTENT_LENGTH", "150000", NULL });
	assert_soon(rig_look(&rig).open == 1);
	assert_true(send_body(fd, PART, true));
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	(void)poll(NULL, 0, 300);
	assert_int_equal(rig_look(&rig).gone_peer, 0);
	rig_want_body(&rig);
	assert_answered(fd, 200);
	assert_int_equal(rig_look(&rig).body_bytes, PART);
	assert_ended(fd);
	assert_soon(rig_connections() == 0);
	(void)close(fd);
}

/* Each piece is taken when it has been looked behind. */
static void
body_that_was_looked_behind_stays_in_order(void **state)
{
	static char body[200000];
	const int fd = rig_connect(&rig);
	uint64_t sum = 0;
	struct buf bytes;
	struct answer answer;
	char expected[40];

	(void)state;
	for (size_t i = 0; i < sizeof body; i++) {
		body[i] = (char)(i * 7919 >> 3);
		sum = sum * 31 + (uint8_t)body[i];
	}
	bytes_init(&bytes);
	put_head(&bytes,
		&(const struct request_spec){ .params = (const char *const[]){ "MODE", "hold",
						      "CONTENT_LENGTH", "200000", NULL } });
	put_stream(&bytes, FCGI_STDIN, 1, slice_make(body, sizeof body), 20000);
	put_record(&bytes, FCGI_STDIN, 1, SLICE(""), 0);
	assert_true(socket_send(fd, buf_slice(&bytes)));
	for (unsigned i = 0; rig_look(&rig).body_ends == 0; i++) {
		(void)poll(NULL, 0, i < 3 ? 150 : 0);
		rig_want_body(&rig);
	}
	answer_read(&answer, fd, 1);
	(void)snprintf(expected, sizeof expected, "200000 %llu", (unsigned long long)sum);
	assert_slice(answer_body(&answer), slice_of(expected));
	answer_release(&answer);
	buf_release(&bytes);
	(void)close(fd);
}

/* It has taken all that it takes: nothing more within a while, which is no word on how soon it is
 * at work. */
static bool
takes_no_more(int fd, bool has_begun)
{
	struct pollfd state = { .fd = fd, .events = POLLOUT };

	return poll(&state, 1, has_begun ? 300 : 10000) == 0;
}

static void
no_more_than_a_bounded_part_is_read_ahead(void **state)
{
	enum { LEAST_READ = 256 * 1024 };
	static const char zeros[32768];
	const int fd = begin(PAIR_UNIX, "wait", false);
	struct buf record;
	size_t taken = 0;
	ssize_t n;

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	bytes_init(&record);
	put_record(&record, FCGI_STDIN, 1, slice_make(zeros, sizeof zeros), 0);
	while (!takes_no_more(fd, taken > LEAST_READ)) {
		const size_t at = taken % record.len;

		n = send(fd, record.data + at, record.len - at, MSG_NOSIGNAL);
		taken += n > 0 ? (size_t)n : 0;
		assert_true(taken < 2 * 1024 * 1024);
	}
	assert_true(taken > LEAST_READ);
	assert_int_equal(rig_look(&rig).pieces, 0);
	/* The end is seen all the same. */
	(void)close(fd);
	assert_within_s(rig_look(&rig).gone_peer == 1, 1);
	buf_release(&record);
}

/* What is not sound there is no worse than it is in its turn. */
static void
abort_of_another_and_noise_behind_a_held_body_end_nothing_early(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < 3; kind++) {
		const unsigned before = rig_look(&rig).gone_peer;
		const int fd = begin(PAIR_UNIX, "wait", true);
		struct buf bytes;

		bytes_init(&bytes);
		if (kind == 0)
			put_record(&bytes, FCGI_ABORT_REQUEST, 2, SLICE(""), 0);
		else if (kind == 1)
			put_abort(&bytes, false);
		else
			bytes_add(&bytes, SLICE("this is no FastCGI at all"));
		if (kind == 1) {
			/* Of the request that stands before it. */
			struct buf next;

			bytes_init(&next);
			put_usual(&next);
			assert_true(send_body(fd, PART, true));
			assert_true(socket_send(fd, buf_slice(&next)));
			buf_release(&next);
		} else {
			assert_true(send_body(fd, 1000, false));
		}
		assert_true(socket_send(fd, buf_slice(&bytes)));
		(void)poll(NULL, 0, 250);
		assert_int_equal(rig_look(&rig).gone_peer, before);
		assert_int_equal(rig_look(&rig).open, 1);
		(void)close(fd);
		assert_soon(rig_look(&rig).open == 0 && rig_connections() == 0);
		buf_release(&bytes);
	}
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, ask_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(abort_behind_a_held_body_ends_the_request_within_a_second),
		TEST(next_request_behind_an_abort_is_served),
		TEST(end_behind_a_held_body_ends_the_request_within_a_second),
		TEST(who_only_sends_no_more_is_answered),
		TEST(body_that_was_looked_behind_stays_in_order),
		TEST(no_more_than_a_bounded_part_is_read_ahead),
		TEST(abort_of_another_and_noise_behind_a_held_body_end_nothing_early),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
