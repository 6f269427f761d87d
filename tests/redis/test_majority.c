/* Sentinels of which the one that named the master is gone: whom of the others the store follows,
 * while nothing is wrong with the master that it has. */
#include "spots.h"
#include "weir/counter.h"
#include "weir/log.h"

static struct made_limit made;
static struct client client;
static struct spot *old, *new, *namer, *others[2];
static struct address sentinels[3];

/* The first one, which is asked first, names the old master for as long as it answers. */
static void
open_all(const struct spot *first_names, const struct spot *second_names)
{
	namer = spot_open(2, serve_as_sentinel, named(old, "127.0.0.1"));
	others[0] = spot_open(3, serve_as_sentinel, named(first_names, "127.0.0.1"));
	others[1] = spot_open(4, serve_as_sentinel, named(second_names, "127.0.0.1"));
	sentinels[0] = address_of(namer);
	sentinels[1] = address_of(others[0]);
	sentinels[2] = address_of(others[1]);
	const struct redis_settings settings = settings_of(sentinels, 3, PATIENT_US);

	client_open(&client, &settings);
	client_wait_until_ready(&client);
	assert_int_equal(others[0]->asked + others[1]->asked, 0);
}

static int
setup(void **state)
{
	(void)state;
	old = spot_open(0, serve_as_redis, "master");
	new = spot_open(1, serve_as_redis, "master");
	return 0;
}

static int
teardown(void **state)
{
	client_close(&client);
	return spots_tear_down(state);
}

static void
ask_once(void)
{
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
}

/* So many times that it would have been followed, while the old master decides. */
static void
wait_for_questions(const struct spot *sentinel, unsigned count)
{
	const unsigned end = sentinel->asked + count;

	while (sentinel->asked < end) {
		ask_once();
		run_loop_for_ms(client.loop, 50);
	}
}

/* The connection in use is well, so nobody waits for the other one. */
static void
wait_until_new_is_used(void)
{
	const int64_t give_up_us = clock_monotonic_us() + SOON_S * US_PER_S;

	while (new->seen.checks == 0) {
		assert_true(clock_monotonic_us() < give_up_us);
		ask_once();
		run_loop_for_ms(client.loop, 20);
	}
	assert_false(breaker_is_open(client.breaker));
}

static void
most_of_the_others_are_followed(void **state)
{
	(void)state;
	open_all(new, new);
	namer->is_gone = true;
	wait_until_new_is_used();
	/* Whoever was asked before is heard no more. */
	const unsigned connections = new->seen.connections, checks = old->seen.checks;

	namer->is_gone = false;
	wait_for_questions(others[0]->asked > others[1]->asked ? others[0] : others[1], 2);
	assert_int_equal(new->seen.connections, connections);
	assert_int_equal(old->seen.checks, checks);
}

static void
others_that_disagree_are_not_followed(void **state)
{
	(void)state;
	open_all(new, old);
	namer->is_gone = true;
	wait_for_questions(others[0], 5);
	assert_true(others[1]->asked > 0);
	assert_int_equal(new->seen.connections, 0);
	assert_int_equal(old->seen.connections, 1);
}

/* Who is silent is gone too. */
static void
other_that_is_no_master_is_not_followed_before_it_is_one(void **state)
{
	(void)state;
	new->answer = "slave";
	open_all(new, new);
	namer->answer = NULL;
	wait_for_questions(others[0], 5);
	assert_true(new->seen.connections > 0);
	assert_int_equal(new->seen.checks, 0);
	assert_int_equal(old->seen.connections, 1);
	new->answer = "master";
	wait_until_new_is_used();
}

#define MAJORITY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		MAJORITY_TEST(most_of_the_others_are_followed),
		MAJORITY_TEST(others_that_disagree_are_not_followed),
		MAJORITY_TEST(other_that_is_no_master_is_not_followed_before_it_is_one),
	};
	struct err err;

	make_limit(&made, "l", "1000000/1m");
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return counter_thread_start(&err) != 0
		? 1
		: cmocka_run_group_tests_name("redis/majority", tests, NULL, NULL);
}
