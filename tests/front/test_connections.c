/* The front's connections as a whole: how many there may be, which go first, and how they end. */
#include "ask.h"

#include "../lib/valgrind.h"
#include "weir/counter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

/* Whether something has come, or the end. */
static bool
is_quiet(int fd)
{
	struct pollfd state = { .fd = fd, .events = POLLIN };

	return poll(&state, 1, 0) == 0;
}

/* ---- how many there may be ---- */

static void
longest_idle_connection_makes_room_for_a_new_one(void **state)
{
	int fds[5];

	(void)state;
	ask_allow(4);
	const int64_t evicted = counter_sum(COUNT_CONNECTIONS_EVICTED);

	for (size_t i = 0; i < LENGTH_OF(fds) - 1; i++) {
		fds[i] = rig_connect(&rig);
		ask_whole(fds[i], dump, true);
		assert_answer_of(fds[i], 0);
	}
	/* The first is used again, so that the second has been idle for longest. */
	ask_whole(fds[0], dump, true);
	assert_answer_of(fds[0], 0);
	fds[4] = rig_connect(&rig);
	ask_whole(fds[4], dump, true);
	assert_answer_of(fds[4], 0);
	assert_ended(fds[1]);
	ask_whole(fds[0], dump, true);
	assert_answer_of(fds[0], 0);
	assert_int_equal(counter_sum(COUNT_CONNECTIONS_EVICTED) - evicted, 1);
	assert_int_equal(rig_connections(), 4);
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		(void)close(fds[i]);
}

/* In this process a connection is two: ours stays, and takes one of theirs. */
static void
idle_connections_give_way_before_descriptors_are_out(void **state)
{
	enum { CONNECTIONS = 36, DESCRIPTORS = 56 };
	int fds[CONNECTIONS];
	struct rlimit before, few;

	(void)state;
	if (runs_under_valgrind())
		skip();
	const int64_t evicted = counter_sum(COUNT_CONNECTIONS_EVICTED);
	const int next = dup(0);

	(void)close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ .rlim_cur = (rlim_t)next + DESCRIPTORS,
		.rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	ask_allow(1000);
	for (size_t i = 0; i < CONNECTIONS; i++) {
		fds[i] = rig_connect(&rig);
		ask_whole(fds[i], dump, true);
		assert_answer_of(fds[i], 0);
	}
	assert_true(counter_sum(COUNT_CONNECTIONS_EVICTED) > evicted);
	for (size_t i = 0; i < CONNECTIONS; i++)
		(void)close(fds[i]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	ask_allow(1000);
}

static pthread_mutex_t loop_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool is_held;

static void
wait_for_lock(void *context)
{
	(void)context;
	atomic_store(&is_held, true);
	(void)pthread_mutex_lock(&loop_lock);
	(void)pthread_mutex_unlock(&loop_lock);
	atomic_store(&is_held, false);
}

/* The loop does nothing until it is let go: what is sent meanwhile has left our hands, but nobody
 * has read it yet. */
static void
hold_loop(void)
{
	(void)pthread_mutex_lock(&loop_lock);
	assert_int_equal(loop_post(rig.thread.loop, wait_for_lock, NULL), 0);
	assert_soon(atomic_load(&is_held));
}

static void
let_loop_go(void)
{
	(void)pthread_mutex_unlock(&loop_lock);
	assert_soon(!atomic_load(&is_held));
}

/* The new connection comes before the requests, and is taken when they are there. */
static void
request_that_is_not_read_yet_is_not_dropped_to_make_room(void **state)
{
	int fds[5];

	(void)state;
	ask_allow(4);
	for (size_t i = 0; i < LENGTH_OF(fds) - 1; i++) {
		fds[i] = rig_connect(&rig);
		ask_whole(fds[i], dump, true);
		assert_answer_of(fds[i], 0);
	}
	hold_loop();
	fds[4] = rig_connect(&rig);
	for (size_t i = 0; i < LENGTH_OF(fds) - 2; i++)
		ask_whole(fds[i], dump, true);
	ask_whole(fds[4], dump, true);
	let_loop_go();
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		if (i != 3)
			assert_answer_of(fds[i], 0);
	}
	assert_ended(fds[3]);
	for (size_t i = 0; i < LENGTH_OF(fds); i++)
		(void)close(fds[i]);
}

enum { KEPT = 80, EXCESS = 64, NEW_A_ROUND = 16, ROUNDS = 8 };

/* New ones come, and then a request on each that is kept; all are there when the front looks.
 * What has been dropped meanwhile is -1. */
static void
come_before_requests(int *fresh, int *kept)
{
	/* The turn that answered has ended: who is dropped in it has been. */
	rig_want_body(&rig);
	hold_loop();
	for (size_t i = 0; i < NEW_A_ROUND; i++)
		fresh[i] = rig_connect(&rig);
	for (size_t i = 0; i < KEPT; i++) {
		if (kept[i] >= 0 && is_quiet(kept[i])) {
			ask_whole(kept[i], dump, true);
		} else if (kept[i] >= 0) {
			(void)close(kept[i]);
			kept[i] = -1;
		}
	}
	let_loop_go();
	for (size_t i = 0; i < KEPT; i++) {
		if (kept[i] >= 0)
			assert_answer_of(kept[i], 0);
	}
}

static void
connections_beyond_the_limit_are_bounded_and_become_fewer(void **state)
{
	int kept[KEPT], fresh[ROUNDS * NEW_A_ROUND];
	int64_t most = 0;

	(void)state;
	ask_allow(KEPT);
	for (size_t i = 0; i < KEPT; i++) {
		kept[i] = rig_connect(&rig);
		ask_whole(kept[i], dump, true);
		assert_answer_of(kept[i], 0);
	}
	for (size_t i = 0; i < ROUNDS; i++) {
		come_before_requests(fresh + i * NEW_A_ROUND, kept);
		most = rig_connections() > most ? rig_connections() : most;
	}
	assert_row(most > KEPT && most <= KEPT + EXCESS, "%lld", (long long)most);
	/* All have their turn. */
	for (size_t i = 0; i < LENGTH_OF(fresh); i++) {
		ask_whole(fresh[i], dump, true);
		assert_answer_of(fresh[i], 0);
		assert_true(rig_connections() <= KEPT + EXCESS);
	}
	assert_within_s(rig_connections() <= KEPT, 1);
	for (size_t i = 0; i < LENGTH_OF(fresh); i++)
		(void)close(fresh[i]);
	for (size_t i = 0; i < KEPT; i++) {
		if (kept[i] >= 0)
			(void)close(kept[i]);
	}
}

static void
answer_that_is_not_read_yet_is_not_dropped_to_make_room(void **state)
{
	int slow, other;

	(void)state;
	ask_allow(1);
	slow = rig_connect(&rig);
	ask_whole(slow, (const char *const[]){ "MODE", "flood", "SIZE", "1000000", NULL }, true);
	assert_soon(rig_look(&rig).requests == 1);
	assert_soon(rig_look(&rig).open == 0);
	other = rig_connect(&rig);
	ask_whole(other, dump, true);
	assert_answer_of(other, 0);
	struct answer answer;

	answer_read(&answer, slow, 1);
	assert_true(answer_is_whole(&answer));
	assert_int_equal(answer_body(&answer).len, 1000000);
	answer_release(&answer);
	(void)close(slow);
	(void)close(other);
}

static void
without_an_idle_connection_new_ones_wait_for_their_turn(void **state)
{
	int fds[10];

	(void)state;
	ask_allow(3);
	for (size_t i = 0; i < LENGTH_OF(fds); i++) {
		fds[i] = rig_connect(&rig);
		ask_whole(fds[i], waits, i % 2 == 0);
	}
	for (size_t done = 0; done < LENGTH_OF(fds); done++) {
		const size_t left = LENGTH_OF(fds) - done;

		assert_soon(rig_look(&rig).open == (left < 3 ? left : 3));
		assert_true(rig_connections() <= 3);
		rig_answer(&rig);
		/* Whichever it was: it is answered, and a close makes room if it was not kept. */
		size_t answered = LENGTH_OF(fds);

		for (size_t i = 0; answered == LENGTH_OF(fds); i = (i + 1) % LENGTH_OF(fds)) {
			if (fds[i] >= 0 && !is_quiet(fds[i]))
				answered = i;
		}
		assert_answer_of(fds[answered], 0);
		(void)close(fds[answered]);
		fds[answered] = -1;
	}
	assert_int_equal(rig_look(&rig).requests, LENGTH_OF(fds));
}

static void
thousand_half_heads_delay_nobody(void **state)
{
	enum { HALVES = 1000 };
	static int fds[HALVES];
	struct rlimit limit;
	struct buf bytes;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	if (limit.rlim_cur < 2 * HALVES + 100)
		skip();
	ask_allow(HALVES + 10);
	bytes_init(&bytes);
	put_request(&bytes, &(const struct request_spec){ .params = dump });
	for (size_t i = 0; i < HALVES; i++) {
		fds[i] = rig_connect(&rig);
		assert_true(socket_send(
			fds[i], slice_first(buf_slice(&bytes), 1 + i % (bytes.len - 20))));
	}
	for (unsigned i = 0; i < 10; i++)
		assert_rig_serves(&rig);
	assert_soon(rig_connections() == HALVES);
	/* And each of them may still be finished. */
	for (size_t i = 0; i < HALVES; i++) {
		assert_true(socket_send(
			fds[i], slice_skip(buf_slice(&bytes), 1 + i % (bytes.len - 20))));
	}
	for (size_t i = 0; i < HALVES; i++) {
		assert_answer_of(fds[i], 0);
		(void)close(fds[i]);
	}
	buf_release(&bytes);
}

static void
settings_hold_for_what_comes_then(void **state)
{
	(void)state;
	struct front_settings settings = rig_settings();
	const int fd = rig_connect(&rig);

	ask_whole(fd, dump, true);
	assert_answer_of(fd, 0);
	settings.max_params = 1;
	rig_configure(&rig, &settings);
	struct answer answer;

	answer_to(&answer, fd,
		&(const struct request_spec){
			.params = (const char *const[]){ "A", "b", "C", "d", NULL } });
	assert_int_equal(answer_status(&answer), 431);
	answer_release(&answer);
	(void)close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle_connections_give_way_before_descriptors_are_out),
		TEST(longest_idle_connection_makes_room_for_a_new_one),
		TEST(request_that_is_not_read_yet_is_not_dropped_to_make_room),
		TEST(connections_beyond_the_limit_are_bounded_and_become_fewer),
		TEST(answer_that_is_not_read_yet_is_not_dropped_to_make_room),
		TEST(without_an_idle_connection_new_ones_wait_for_their_turn),
		TEST(thousand_half_heads_delay_nobody),
		TEST(settings_hold_for_what_comes_then),
	};
	struct err err;

	return front_start(&err) != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
