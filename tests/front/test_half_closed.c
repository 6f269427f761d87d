/* Peers that send no more and wait for what is left of an answer, and peers that are gone: over TCP
 * they look alike until something is sent. */
#include "ask.h"

#include <unistd.h>

static int
set_up(void **state)
{
	(void)ask_set_up(state);
	ask_listen_on_tcp(65536);
	return 0;
}

/* More than the kernel takes, and all of it is queued when the request has ended. */
enum { SIZE = 3500000 };
static const char *const floods[] = { "MODE", "flood", "SIZE", "3500000", NULL };

/* A connection on which an answer waits for its reader. */
static int
answered(enum pair_kind kind, bool keep)
{
	const int fd = kind == PAIR_TCP ? tcp_connect(tcp_port) : rig_connect(&rig);
	const unsigned before = rig_look(&rig).requests;

	ask_begin(fd, keep, floods);
	assert_true(send_body(fd, 0, true));
	assert_soon(rig_look(&rig).requests == before + 1 && rig_look(&rig).open == 0);
	return fd;
}

static void
answer_leaves_whole_though_the_peer_sends_no_more(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		for (unsigned keep = 0; keep < 2; keep++) {
			const int fd = answered(kind, keep != 0);

			assert_int_equal(shutdown(fd, SHUT_WR), 0);
			/* By then it has been noticed. */
			assert_rig_serves(&rig);
			assert_answer_of(fd, SIZE);
			assert_ended(fd);
			assert_soon(rig_connections() == 0);
			(void)close(fd);
		}
	}
}

/* Apache: a request behind one whose answer it has not read yet. */
static void
answer_leaves_whole_before_a_request_that_waits(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		const int fd = answered(kind, true);

		ask_begin(fd, true, floods);
		assert_rig_serves(&rig);
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		assert_rig_serves(&rig);
		assert_answer_of(fd, SIZE);
		(void)close(fd);
		assert_soon(rig_connections() == 0);
	}
}

static void
peer_that_is_gone_keeps_nothing(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		for (unsigned keep = 0; keep < 4; keep++) {
			const int fd = answered(kind, keep % 2 != 0);

			/* At once, or behind the end of what it sends. */
			if (keep >= 2) {
				assert_int_equal(shutdown(fd, SHUT_WR), 0);
				assert_rig_serves(&rig);
			}
			(void)close(fd);
			assert_within_s(rig_connections() == 0, 1);
		}
	}
}

/* While a request is worked on a TCP peer that has ended has gone: web servers do nothing else. */
static void
work_is_ended_within_a_second(void **state)
{
	(void)state;
	for (enum pair_kind kind = PAIR_UNIX; kind < PAIR_KINDS; kind++) {
		const int fd = kind == PAIR_TCP ? tcp_connect(tcp_port) : rig_connect(&rig);

		ask_begin(fd, true, waits);
		assert_true(send_body(fd, 0, true));
		assert_soon(rig_look(&rig).open == 1);
		(void)close(fd);
		assert_within_s(rig_look(&rig).open == 0 && rig_connections() == 0, 1);
	}
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, ask_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_leaves_whole_though_the_peer_sends_no_more),
		TEST(answer_leaves_whole_before_a_request_that_waits),
		TEST(peer_that_is_gone_keeps_nothing),
		TEST(work_is_ended_within_a_second),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
