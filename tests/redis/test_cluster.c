/*
 * A cluster of servers that lie: whatever they say of slots, each check is answered by its
 * deadline, and what they say is never believed further than it can be. Real clusters are in
 * tests/system/test_cluster.py.
 */
#include "liars.h"

#include "weir/hash.h"
#include "weir/log.h"

#include <stdio.h>

static struct made_limit made, other;

static int
setup(void **state)
{
	make_limit(&made, "l", "5/1m");
	make_limit(&other, "m", "5/1m");
	return liars_set_up(state);
}

static struct decision
decide_one(void)
{
	return liars_decide(&made, "l:192.0.2.1", NULL, NULL);
}

static struct decision
decide_both(const char *key, const char *second)
{
	return liars_decide(&made, key, &other, second);
}

static void
assert_unavailable(enum unavailable why)
{
	const struct decision decision = decide_one();

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, why);
}

/* ---- what is said ---- */

static void
a_moved_check_goes_to_who_has_it(void **state)
{
	char moved[64];

	(void)state;
	liar_name(moved, "MOVED", 1);
	liars[0].answer = moved;
	liars_open();
	assert_int_equal(decide_one().verdict, VERDICT_ADMITTED);
	assert_int_equal(liars[1].checks, 1);
	assert_int_equal(liars[1].asking, 0);
}

static void
a_check_is_asked_for_where_it_is_about_to_be(void **state)
{
	char ask[64];

	(void)state;
	liar_name(ask, "ASK", 1);
	liars[0].answer = ask;
	liars_open();
	for (unsigned i = 1; i <= 3; i++) {
		assert_int_equal(decide_one().verdict, VERDICT_ADMITTED);
		assert_int_equal(liars[1].asking, liars[1].checks);
	}
	assert_int_equal(liars[1].checks + liars[0].checks, 6);
}

static void
servers_that_name_each_other_are_given_up(void **state)
{
	char to_second[64], to_first[64];

	(void)state;
	liar_name(to_second, "MOVED", 1);
	liar_name(to_first, "MOVED", 0);
	liars[0].answer = to_second;
	liars[1].answer = to_first;
	liars_open();
	assert_unavailable(UNAVAILABLE_REPLY);
	assert_in_range(liars[0].checks + liars[1].checks, 2, 8);
	assert_false(breaker_is_open(rig.breaker));
}

static void
a_server_that_is_named_and_not_there_is_no_answer(void **state)
{
	(void)state;
	liars[0].answer = liars[1].answer = "-MOVED 1 127.0.0.1:1\r\n";
	liars_open();
	assert_int_equal(decide_one().verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decide_one().verdict, VERDICT_UNAVAILABLE);
}

/* They are well, so they are asked again at once. */
static void
nobodys_slot_and_a_wrong_target_open_no_breaker(void **state)
{
	static const char *const answers[] = { "-CLUSTERDOWN Hash slot not served\r\n",
		"-CLUSTERDOWN The cluster is down\r\n", "-TRYAGAIN Multiple keys\r\n",
		"-MOVED 99999 127.0.0.1:1\r\n", "-MOVED 1 ?:1\r\n", "-ASK 1\r\n" };

	(void)state;
	liars_open();
	for (size_t i = 0; i < LENGTH_OF(answers); i++) {
		liars[0].answer = liars[1].answer = answers[i];
		assert_unavailable(UNAVAILABLE_REPLY);
	}
	liars[0].answer = liars[1].answer = NULL;
	assert_int_equal(decide_one().verdict, VERDICT_ADMITTED);
	assert_false(breaker_is_open(rig.breaker));
}

/* Several keys of one slot are asked for one by one, and each is refused again. */
static void
who_says_tryagain_of_one_key_too_is_no_answer(void **state)
{
	(void)state;
	liars[0].answer = liars[1].answer = "-TRYAGAIN Multiple keys\r\n";
	liars_open();
	const struct decision decision = decide_both("l:192.0.2.1", "m:192.0.2.1");

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_int_equal(decision.why, UNAVAILABLE_REPLY);
	assert_int_equal(liars[0].checks + liars[1].checks, 2);
}

static void
limits_of_several_slots_are_one_decision(void **state)
{
	(void)state;
	liars_open();
	const struct decision decision = decide_both("l:192.0.2.1", "m:192.0.2.2");

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(decision.count, 2);
	assert_ptr_equal(decision.outcomes[0].limit, &made.limit);
	assert_ptr_equal(decision.outcomes[1].limit, &other.limit);
	assert_int_equal(decision.outcomes[1].remaining, 4);
	assert_int_equal(liars[0].checks + liars[1].checks, 2);
}

/* ---- the map ---- */

static void
assert_no_use_of(const char *slots)
{
	liars[0].slots = liars[1].slots = slots;
	liars_open();
	assert_int_equal(decide_one().verdict, VERDICT_UNAVAILABLE);
	assert_true(breaker_is_open(rig.breaker));
}

static void
who_is_no_cluster_is_not_used(void **state)
{
	(void)state;
	assert_no_use_of("-ERR This instance has cluster support disabled\r\n");
}

static void
a_map_of_the_wrong_shape_is_not_used(void **state)
{
	(void)state;
	assert_no_use_of("*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n");
}

static void
a_map_without_an_end_is_not_used(void **state)
{
	(void)state;
	assert_no_use_of(NULL);
}

static bool
admits_after_a_while(void)
{
	run_loop_for_ms(rig.loop, 20);
	return decide_one().verdict == VERDICT_ADMITTED;
}

/* What a connection that was cut has read of a map is not a part of the next one's. */
static void
a_server_that_told_a_map_without_an_end_is_used_when_it_has_one(void **state)
{
	enum { RANGES = 128, WIDTH = 16384 / RANGES };
	static char map[RANGES * 64];
	size_t len = (size_t)snprintf(map, sizeof map, "*%d\r\n", RANGES);

	(void)state;
	for (unsigned i = 0; i < RANGES; i++)
		len += (size_t)snprintf(map + len, sizeof map - len,
			"*3\r\n:%u\r\n:%u\r\n*2\r\n$0\r\n\r\n:%u\r\n", i * WIDTH,
			(i + 1) * WIDTH - 1, liars[0].port);
	liars[0].slots = liars[1].slots = NULL;
	liars_open();
	(void)decide_one();
	assert_true(breaker_is_open(rig.breaker));
	/* Several of them. */
	run_loop_for_ms(rig.loop, 1500);
	liars[0].slots = liars[1].slots = map;
	assert_soon(admits_after_a_while());
}

/* Each slot on a server of its own, of which there are more than weir keeps. */
static void
a_map_of_too_many_servers_is_used_as_far_as_it_goes(void **state)
{
	enum { SLOTS_ALL = 16384, ROOM = SLOTS_ALL * 64 };
	/* Static, since servers' threads may still read it behind the test. */
	static char map[ROOM];
	size_t len;

	(void)state;
	len = (size_t)snprintf(map, ROOM, "*%d\r\n", SLOTS_ALL);
	for (unsigned i = 0; i < SLOTS_ALL; i++)
		len += (size_t)snprintf(map + len, ROOM - len,
			"*3\r\n:%u\r\n:%u\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n", i, i, i + 40000);
	liars[0].slots = liars[1].slots = map;
	liars_open();
	/* Of servers that do not exist, or of anybody who is ready. */
	for (unsigned i = 0; i < 20; i++) {
		char key[32];

		(void)snprintf(key, sizeof key, "l:192.0.2.%u", i);
		(void)decide_both(key, NULL);
	}
}

/* ---- leases ---- */

static void
name_owner(char out[96], unsigned at)
{
	(void)snprintf(out, 96, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
		liars[at].port);
}

static struct check_item
lease_item(void)
{
	return (struct check_item){
		.limit = &made.limit, .key = SLICE("l:192.0.2.1"), .overflow = SLICE("l:overflow")
	};
}

static bool
is_connecting(void)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		const struct node *node = cluster->nodes[i];

		if (node != NULL && node->redis != NULL && node->redis->state != REDIS_READY &&
			node->redis->state != REDIS_DOWN)
			return true;
	}
	return false;
}

static void
open_with_leases(void)
{
	make_limit(&made, "l", "concurrent 2 lease 1m");
	liars_open();
	run_loop_while(rig.loop,
		cluster->slots[0] == 0 || cluster->nodes[cluster->slots[0] - 1]->redis == NULL ||
			cluster->nodes[cluster->slots[0] - 1]->redis->state != REDIS_READY);
	/* What the others will be is known too. */
	run_loop_while(rig.loop, is_connecting());
}

/* The two keys are in two slots. */
static void
a_lease_is_given_back_under_either_key_and_prolonged_where_it_stands(void **state)
{
	const struct check_item item = lease_item();
	char map[96];

	(void)state;
	name_owner(map, 1);
	liars[0].slots = liars[1].slots = map;
	open_with_leases();
	store_release(cluster_store(cluster), &item, 1);
	run_loop_while(rig.loop, liars[1].checks < 2);
	assert_true(store_renew(cluster_store(cluster), &item, 1));
	run_loop_while(rig.loop, liars[1].checks < 3);
	run_loop_for_ms(rig.loop, 20);
	assert_int_equal(liars[1].checks, 3);
	assert_int_equal(liars[0].checks, 0);
}

static void
what_waits_for_a_server_goes_to_who_takes_its_place(void **state)
{
	const struct check_item item = lease_item();
	struct store *store;
	char first[96], second[96];

	(void)state;
	name_owner(first, 0);
	name_owner(second, 1);
	liars[0].slots = liars[1].slots = first;
	open_with_leases();
	store = cluster_store(cluster);
	/* It goes; a moment later the others know. */
	liars[0].slots = "-ERR gone\r\n";
	assert_true(
		breaker_open(cluster->nodes[cluster->slots[0] - 1]->breaker, clock_monotonic_us()));
	assert_false(store_renew(store, &item, 1));
	store_release(store, &item, 1);
	assert_int_equal(store_kept(store), 2);
	liars[1].slots = second;
	run_loop_while(rig.loop, liars[1].checks < 2);
	assert_int_equal(store_kept(store), 0);
	assert_int_equal(liars[0].checks, 0);
}

/* Nobody has the slot for a while, and then somebody has. */
static void
what_nobody_takes_is_tried_again(void **state)
{
	const struct check_item item = lease_item();
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);
	char map[96];

	(void)state;
	name_owner(map, 0);
	liars[0].slots = liars[1].slots = map;
	open_with_leases();
	liars[0].answer = "-CLUSTERDOWN Hash slot not served\r\n";
	store_release(cluster_store(cluster), &item, 1);
	run_loop_while(rig.loop, liars[0].checks < 4);
	/* Not as fast as it can be refused. */
	run_loop_for_ms(rig.loop, 150);
	assert_in_range(liars[0].checks, 4, 12);
	liars[0].answer = NULL;
	run_loop_while(rig.loop, store_kept(cluster_store(cluster)) > 0);
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT), left);
}

/* Where the key is now that is named there may be nobody who can be asked. */
static void
what_is_sent_on_to_a_server_that_is_away_is_kept(void **state)
{
	const struct check_item item = lease_item();
	char map[96], moved[64];

	(void)state;
	name_owner(map, 0);
	liar_name(moved, "MOVED", 1);
	liars[0].slots = liars[1].slots = map;
	open_with_leases();
	liars[1].slots = "-ERR not yet\r\n";
	for (unsigned i = 0; i < cluster->node_count; i++) {
		if (cluster->nodes[i]->address.port == liars[1].port)
			(void)breaker_open(cluster->nodes[i]->breaker, clock_monotonic_us());
	}
	liars[0].answer = moved;
	store_release(cluster_store(cluster), &item, 1);
	run_loop_while(rig.loop, store_kept(cluster_store(cluster)) < 2);
	liars[1].slots = map;
	run_loop_while(rig.loop, liars[1].checks < 2);
	assert_int_equal(store_kept(cluster_store(cluster)), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, liars_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_moved_check_goes_to_who_has_it),
		TEST(a_check_is_asked_for_where_it_is_about_to_be),
		TEST(servers_that_name_each_other_are_given_up),
		TEST(a_server_that_is_named_and_not_there_is_no_answer),
		TEST(nobodys_slot_and_a_wrong_target_open_no_breaker),
		TEST(who_says_tryagain_of_one_key_too_is_no_answer),
		TEST(limits_of_several_slots_are_one_decision),
		TEST(who_is_no_cluster_is_not_used),
		TEST(a_map_of_the_wrong_shape_is_not_used),
		TEST(a_map_without_an_end_is_not_used),
		TEST(a_server_that_told_a_map_without_an_end_is_used_when_it_has_one),
		TEST(a_map_of_too_many_servers_is_used_as_far_as_it_goes),
		TEST(a_lease_is_given_back_under_either_key_and_prolonged_where_it_stands),
		TEST(what_waits_for_a_server_goes_to_who_takes_its_place),
		TEST(what_nobody_takes_is_tried_again),
		TEST(what_is_sent_on_to_a_server_that_is_away_is_kept),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/cluster", tests, NULL, NULL);
}
