/* loop.h: what runs when, and that a call back may change what comes next. */
#include "one_loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* In the place of the system's (the linker's --wrap). */
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __real_write(int fd, const void *bytes, size_t len);

static bool write_fails;

ssize_t
__wrap_write(int fd, const void *bytes, size_t len)
{
	if (!write_fails)
		return __real_write(fd, bytes, len);
	errno = EIO;
	return -1;
}

/* ---- work put off ---- */

enum { ITEMS = 6 };

struct item {
	struct deferred deferred;
	char name;
	struct item *defers[2], *undefers[2]; /* when it runs; NULL: none */
	unsigned times; /* how often it does so */
};

static struct item items[ITEMS];
static char story[64];
static size_t story_len;

static void
tell(char c)
{
	assert_true(story_len < sizeof story - 1);
	story[story_len++] = c;
	story[story_len] = '\0';
}

static void
run_item(void *context)
{
	struct item *item = context;

	tell(item->name);
	if (item->times == 0)
		return;
	item->times--;
	for (size_t i = 0; i < LENGTH_OF(item->defers); i++) {
		if (item->defers[i] != NULL)
			loop_defer(loop, &item->defers[i]->deferred);
		if (item->undefers[i] != NULL)
			loop_undefer(loop, &item->undefers[i]->deferred);
	}
}

static void
make_items(void)
{
	memset(items, 0, sizeof items);
	for (size_t i = 0; i < ITEMS; i++) {
		items[i].name = (char)('a' + i);
		items[i].times = 1;
		items[i].deferred.run = run_item;
		items[i].deferred.context = &items[i];
	}
	story_len = 0;
	story[0] = '\0';
}

static void
deferred_work_runs_once_in_the_order_that_it_was_put_off(void **state)
{
	(void)state;
	make_items();
	for (size_t i = ITEMS; i > 0; i--) {
		loop_defer(loop, &items[i - 1].deferred);
		loop_defer(loop, &items[ITEMS - 1].deferred);
	}
	run_loop_once(loop);
	assert_string_equal(story, "fedcba");
	run_loop_once(loop);
	assert_string_equal(story, "fedcba");
}

static void
tell_x(void *context)
{
	(void)context;
	tell('x');
	loop_stop(loop);
}

static void
what_deferred_work_puts_off_runs_in_the_same_turn(void **state)
{
	struct timer *timer;

	(void)state;
	make_items();
	timer = timer_new(loop, tell_x, NULL);
	assert_non_null(timer);
	timer_set(timer, 1); /* long due, but only in the next turn */
	items[0].defers[0] = &items[1];
	items[1].defers[0] = &items[2];
	items[2].defers[0] = &items[0];
	loop_defer(loop, &items[0].deferred);
	run_loop_until(loop, story_len == 5);
	assert_string_equal(story, "abcax");
	timer_free(timer);
}

static void
deferred_work_may_put_itself_off_again(void **state)
{
	(void)state;
	make_items();
	items[0].defers[0] = &items[0];
	items[0].times = 5;
	loop_defer(loop, &items[0].deferred);
	loop_defer(loop, &items[1].deferred);
	run_loop_once(loop);
	assert_string_equal(story, "abaaaaa");
}

static void
deferred_work_may_take_other_work_back(void **state)
{
	(void)state;
	for (size_t other = 1; other < 4; other++) {
		static const char *const left[] = { "", "acd", "abd", "abc" };

		make_items();
		items[0].undefers[0] = &items[other];
		items[0].undefers[1] = &items[0];
		for (size_t i = 0; i < 4; i++)
			loop_defer(loop, &items[i].deferred);
		run_loop_once(loop);
		assert_string_equal(story, left[other]);
	}
}

/* Against a list that is kept in the simplest way. */
static void
any_order_of_defer_and_undefer_keeps_the_queue_whole(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		char expected[ITEMS + 1] = "";

		make_items();
		for (unsigned step = 0; step < 12; step++) {
			struct item *item = &items[random_below(&random, ITEMS)];
			char *at = strchr(expected, item->name);

			if (random_below(&random, 3) > 0) {
				loop_defer(loop, &item->deferred);
				if (at == NULL)
					(void)strncat(expected, &item->name, 1);
			} else {
				loop_undefer(loop, &item->deferred);
				if (at != NULL)
					memmove(at, at + 1, strlen(at));
			}
		}
		run_loop_once(loop);
		assert_string_equal(story, expected);
	}
}

/* ---- the clock ---- */

static int64_t seen_us[3];

static void
look_at_the_clock_twice(void *context)
{
	(void)context;
	seen_us[0] = loop_now_us(loop);
	while (clock_monotonic_us() < seen_us[0] + 2000)
		;
	seen_us[1] = loop_now_us(loop);
}

static void
look_at_the_clock_again(void *context)
{
	(void)context;
	seen_us[2] = loop_now_us(loop);
	loop_stop(loop);
}

static void
clock_stands_still_in_a_turn_and_goes_on_in_the_next(void **state)
{
	struct timer *timer = timer_new(loop, look_at_the_clock_again, NULL);
	struct deferred deferred = { .run = look_at_the_clock_twice };

	(void)state;
	assert_non_null(timer);
	/* Twice: what was read in the last turn of a run is not used in the first of the next. */
	for (unsigned round = 0; round < 2; round++) {
		memset(seen_us, 0, sizeof seen_us);
		const int64_t before_us = clock_monotonic_us();

		loop_defer(loop, &deferred);
		timer_set(timer, 1);
		run_loop_until(loop, seen_us[2] != 0);
		assert_true(seen_us[0] >= before_us);
		assert_true(seen_us[1] == seen_us[0]);
		assert_true(seen_us[2] >= seen_us[1] + 2000);
	}
	timer_free(timer);
}

/* ---- other threads ---- */

enum { POSTERS = 4, POSTS = 5000 };

struct poster {
	pthread_t thread;
	unsigned next; /* of the numbers that came */
	bool out_of_order;
};

struct parcel {
	struct poster *poster;
	unsigned number;
};

static unsigned parcels_taken;

static void
take_parcel(void *context)
{
	struct parcel *parcel = context;
	struct poster *poster = parcel->poster;

	poster->out_of_order = poster->out_of_order || parcel->number != poster->next;
	poster->next++;
	free(parcel);
	if (++parcels_taken == POSTERS * POSTS)
		loop_stop(loop);
}

static void *
post_parcels(void *context)
{
	for (unsigned i = 0; i < POSTS; i++) {
		struct parcel *parcel = malloc(sizeof *parcel);

		if (parcel == NULL)
			return NULL;
		*parcel = (struct parcel){ context, i };
		if (loop_post(loop, take_parcel, parcel) != 0)
			return NULL;
	}
	return NULL;
}

static void
count_call(void *context)
{
	(*(unsigned *)context)++;
	loop_stop(loop);
}

/* What 0 was returned for is the loop's, and comes; what is not is the caller's, and never does. */
static void
what_is_posted_is_the_loops_even_if_it_could_not_be_woken(void **state)
{
	unsigned calls = 0, later = 0;

	(void)state;
	write_fails = true;
	const int result = loop_post(loop, count_call, &calls);

	write_fails = false;
	assert_int_equal(loop_post(loop, count_call, &later), 0);
	loop_run(loop);
	assert_int_equal(later, 1);
	assert_int_equal(calls, result == 0 ? 1 : 0);
}

static void
what_threads_post_comes_once_and_in_each_ones_order(void **state)
{
	struct poster posters[POSTERS] = { 0 };

	(void)state;
	parcels_taken = 0;
	for (size_t i = 0; i < POSTERS; i++)
		assert_int_equal(
			pthread_create(&posters[i].thread, NULL, post_parcels, &posters[i]), 0);
	run_loop_until(loop, parcels_taken == POSTERS * POSTS);
	for (size_t i = 0; i < POSTERS; i++) {
		assert_int_equal(pthread_join(posters[i].thread, NULL), 0);
		assert_false(posters[i].out_of_order);
		assert_int_equal(posters[i].next, POSTS);
	}
}

static unsigned chain_left;

static void
post_the_next(void *context)
{
	if (--chain_left == 0)
		loop_stop(loop);
	else if (loop_post(loop, post_the_next, context) != 0)
		chain_left = UINT32_MAX;
}

static void
posted_call_may_post(void **state)
{
	(void)state;
	chain_left = 1000;
	assert_int_equal(loop_post(loop, post_the_next, NULL), 0);
	run_loop_until(loop, chain_left == 0);
}

/* The worker's thread ends so. */
static void
what_is_posted_to_a_loop_that_is_freed_is_dropped(void **state)
{
	struct err err;
	struct loop *other = loop_new(&err);

	(void)state;
	assert_non_null(other);
	chain_left = 7;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(loop_post(other, post_the_next, NULL), 0);
	loop_free(other);
	assert_int_equal(chain_left, 7);
	loop_free(NULL);
}

/* ---- signals ---- */

static int signal_came;

static void
on_signal(void *context, int signo)
{
	assert_ptr_equal(context, &signal_came);
	signal_came = signo;
	loop_stop(loop);
}

static void
signal_is_told_on_the_loop(void **state)
{
	static const int signals[] = { SIGUSR1, SIGHUP, SIGTERM, SIGINT };
	struct err err;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(signals); i++)
		assert_int_equal(
			loop_on_signal(loop, signals[i], on_signal, &signal_came, &err), 0);
	for (size_t i = 0; i < 3 * LENGTH_OF(signals); i++) {
		const int signo = signals[i % LENGTH_OF(signals)];

		signal_came = 0;
		assert_int_equal(raise(signo), 0);
		assert_int_equal(signal_came, 0);
		run_loop_until(loop, signal_came != 0);
		assert_int_equal(signal_came, signo);
	}
}

static void
too_many_signals_are_refused_with_a_sentence(void **state)
{
	struct err err = { "" };
	int result = 0;

	(void)state;
	for (unsigned i = 0; i < 100 && result == 0; i++)
		result = loop_on_signal(loop, SIGUSR2, on_signal, &signal_came, &err);
	assert_int_equal(result, -1);
	assert_true(err.text[0] != '\0');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(deferred_work_runs_once_in_the_order_that_it_was_put_off),
		TEST(what_deferred_work_puts_off_runs_in_the_same_turn),
		TEST(deferred_work_may_put_itself_off_again),
		TEST(deferred_work_may_take_other_work_back),
		TEST(any_order_of_defer_and_undefer_keeps_the_queue_whole),
		TEST(clock_stands_still_in_a_turn_and_goes_on_in_the_next),
		TEST(what_threads_post_comes_once_and_in_each_ones_order),
		TEST(what_is_posted_is_the_loops_even_if_it_could_not_be_woken),
		TEST(posted_call_may_post),
		TEST(what_is_posted_to_a_loop_that_is_freed_is_dropped),
		TEST(signal_is_told_on_the_loop),
		TEST(too_many_signals_are_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
