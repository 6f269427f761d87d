/* The servers of a cluster: what they take together, however many there are, what is asked of each
 * when they change, and that none has more time than the deadline. */
#include "liars.h"

#include "weir/hash.h"
#include "weir/log.h"
#include "weir/memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { HALF = SLOTS / 2, SERVERS = 256, RANGE = SLOTS / SERVERS };

static struct made_limit made, other, leased;
static char map[256], moved[64], rejected[64];
static char many[SERVERS * 96];

/* A key of the slots of the first liar, or of the second. */
static const char *
key_of(unsigned liar, const char *limit, char out[32])
{
	for (unsigned i = 0;; i++) {
		(void)snprintf(out, 32, "%s:192.0.2.%u", limit, i);
		if (cluster_slot(cluster, slice_of(out)) / HALF == liar)
			return out;
	}
}

/* NULL: it is not known. */
static struct node *
find_node(unsigned liar)
{
	for (unsigned i = 0; i < cluster->node_count; i++) {
		struct node *node = cluster->nodes[i];

		if (node != NULL && node->address.port == liars[liar].port)
			return node;
	}
	return NULL;
}

static struct node *
node_of(unsigned liar)
{
	struct node *node = find_node(liar);

	if (node == NULL)
		abort();
	return node;
}

static bool
is_ready(unsigned liar)
{
	const struct node *node = find_node(liar);

	return node != NULL && node->redis != NULL && node->redis->state == REDIS_READY;
}

/* Both have their half. */
static void
open_halves(void)
{
	liars_share_slots(map, HALF);
	liars[0].slots = liars[1].slots = map;
	liars_open();
	run_loop_while(rig.loop, !cluster->has_map || !is_ready(0) || !is_ready(1));
}

static int
setup(void **state)
{
	make_limit(&made, "l", "5/1m");
	make_limit(&other, "m", "5/1m");
	make_limit(&leased, "l", "concurrent 2 lease 1m");
	return liars_set_up(state);
}

/* ---- many ---- */

/* One way of many to write the address of the first liar. */
static void
write_host(unsigned nth, char out[64])
{
	static const char *const zeros[] = { "0", "00", "000", "0000" };

	(void)snprintf(out, 64, "%s:%s:%s:%s:0:ffff:127.0.0.1", zeros[nth % 4], zeros[nth / 4 % 4],
		zeros[nth / 16 % 4], zeros[nth / 64 % 4]);
}

/* Which are all the first liar. */
static void
open_many(void)
{
	size_t len = (size_t)snprintf(many, sizeof many, "*%d\r\n", SERVERS);
	char host[64];

	for (unsigned i = 0; i < SERVERS; i++) {
		write_host(i, host);
		len += (size_t)snprintf(many + len, sizeof many - len,
			"*3\r\n:%u\r\n:%u\r\n*2\r\n$%zu\r\n%s\r\n:%u\r\n", i * RANGE,
			(i + 1) * RANGE - 1, strlen(host), host, liars[0].port);
	}
	liars_deadline_us = PATIENT_US;
	liars[0].slots = liars[1].slots = many;
	liars_open();
	run_loop_while(rig.loop, !cluster->has_map);
}

static unsigned done, overloaded;

static void
count_answer(struct check *check, const struct decision *decision)
{
	(void)check;
	done++;
	overloaded += decision->why == UNAVAILABLE_OVERLOAD;
}

/* Nobody of them has more than its share, which is far below what one alone may have. */
static void
calls_of_all_servers_are_bounded_together(void **state)
{
	enum { MANY = CLUSTER_CALLS_MAX + 2000 };
	static struct check checks[MANY];
	static char keys[MANY][16];

	(void)state;
	done = overloaded = 0;
	liars[0].answer = "";
	open_many();
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(keys[i], sizeof keys[i], "l:%u", i);
		checks[i] = (struct check){ .count = 1,
			.cost = 1,
			.deadline_us = clock_monotonic_us() + PATIENT_US,
			.done = count_answer };
		checks[i].items[0] =
			(struct check_item){ .limit = &made.limit, .key = slice_of(keys[i]) };
		store_decide(cluster_store(cluster), &checks[i]);
	}
	assert_int_equal(done, overloaded);
	/* What connects has calls too. */
	assert_in_range(MANY - done, CLUSTER_CALLS_MAX - 4 * SERVERS, CLUSTER_CALLS_MAX);
	assert_true(cluster->load.bytes <= CLUSTER_BYTES_MAX);
	for (unsigned i = 0; i < MANY; i++) {
		if (checks[i].store_private != NULL)
			store_cancel(cluster_store(cluster), &checks[i]);
	}
	cluster_free(cluster);
	cluster = NULL;
}

static void
places_that_all_servers_keep_are_bounded_together(void **state)
{
	enum { MANY = KEPT_MAX + 2000 };
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);
	char key[16];

	(void)state;
	open_many();
	for (unsigned i = 0; i < cluster->node_count; i++)
		(void)breaker_open(cluster->nodes[i]->breaker, clock_monotonic_us() + 2 * US_PER_S);
	for (unsigned i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof key, "l:%u", i);
		store_release(cluster_store(cluster),
			&(const struct check_item){ .limit = &leased.limit, .key = slice_of(key) },
			i + 1);
	}
	const unsigned kept = store_kept(cluster_store(cluster));

	assert_in_range(kept, KEPT_MAX / 4, KEPT_MAX);
	assert_true(cluster->load.kept_bytes <= KEPT_BYTES_MAX);
	assert_int_equal(kept + counter_sum(COUNT_LEASES_LEFT) - left, MANY);
}

static void
release_at(unsigned liar, const struct made_limit *limit, uint64_t lease)
{
	char key[32];

	store_release(cluster_store(cluster),
		&(const struct check_item){
			.limit = &limit->limit, .key = slice_of(key_of(liar, "l", key)) },
		lease);
}

/* There is room for one less than is kept, and what would end last is what comes last. */
static void
assert_first_to_end_gives_way(unsigned soon, unsigned late)
{
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);
	struct made_limit brief;

	make_limit(&brief, "l", "concurrent 2 lease 30s");
	open_halves();
	for (unsigned i = 0; i < LIARS; i++)
		assert_true(breaker_open(node_of(i)->breaker, clock_monotonic_us() + 2 * US_PER_S));
	release_at(late, &leased, 1);
	release_at(soon, &brief, 2);
	for (unsigned i = 2; i < KEPT_MAX; i++)
		release_at(late, &leased, i + 1);
	assert_int_equal(store_kept(cluster_store(cluster)), KEPT_MAX);
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 0);
	release_at(late, &leased, KEPT_MAX + 1);
	assert_int_equal(node_of(soon)->redis->kept.calls.count, 0);
	assert_int_equal(node_of(late)->redis->kept.calls.count, KEPT_MAX);
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 1);
}

static void
of_places_kept_for_all_servers_the_first_to_end_gives_way(void **state)
{
	(void)state;
	assert_first_to_end_gives_way(0, 1);
}

static void
of_places_kept_for_all_servers_the_first_to_end_gives_way_wherever_it_is(void **state)
{
	(void)state;
	assert_first_to_end_gives_way(1, 0);
}

/* Half a map, as long as a whole one may be, from each. */
static void
answers_of_all_servers_are_bounded_together(void **state)
{
	enum { LEN = 400 * 1024 };
	static char half[LEN + 1];
	size_t len = (size_t)snprintf(half, sizeof half, "*16384\r\n");
	char key[16];
	unsigned asked;
	int64_t until_us;
	size_t most = 0;

	(void)state;
	while (len < LEN - 64)
		len += (size_t)snprintf(half + len, sizeof half - len,
			"*3\r\n:0\r\n:0\r\n*2\r\n$9\r\n127.0.0.1\r\n:1\r\n");
	open_many();
	asked = liars[0].maps + liars[1].maps;
	liars[0].slots = liars[1].slots = half;
	for (unsigned i = 0; i < 8 * SERVERS; i++) {
		(void)snprintf(key, sizeof key, "l:%u", i);
		store_release(cluster_store(cluster),
			&(const struct check_item){ .limit = &leased.limit, .key = slice_of(key) },
			1);
	}
	run_loop_while(rig.loop, liars[0].maps + liars[1].maps < asked + SERVERS / 2);
	until_us = clock_monotonic_us() + 300 * US_PER_MS;
	/* A loaded machine takes longer until so much has come. */
	while (clock_monotonic_us() < until_us ||
		(most <= CLUSTER_REPLIES_MAX / 2 &&
			clock_monotonic_us() < until_us + 10 * US_PER_S)) {
		run_loop_for_ms(rig.loop, 2);
		assert_in_range(cluster->load.reply_bytes, 0, CLUSTER_REPLIES_MAX + 2 * LEN);
		if (cluster->load.reply_bytes > most)
			most = cluster->load.reply_bytes;
	}
	/* Which is more than one alone may send. */
	assert_true(most > CLUSTER_REPLIES_MAX / 2);
}

/* ---- leases under either of two keys ---- */

/* The second server is away, so what is for it is kept; and then the lease is over. */
static void
release_while_second_is_away(const char *answer_of_first)
{
	char key[32], overflow[32];
	const struct check_item item = { .limit = &leased.limit,
		.key = slice_of(key_of(0, "l", key)),
		.overflow = slice_of(key_of(1, "l", overflow)) };
	const unsigned before = liars[0].checks;
	struct redis *second = node_of(1)->redis;

	liars[0].answer = answer_of_first;
	store_release(cluster_store(cluster), &item, 1);
	run_loop_while(rig.loop, liars[0].checks == before || node_of(0)->redis->sent.count > 0);
	assert_int_equal(second->kept.calls.count, 1);
	second->kept.calls.first->ends_us = 1;
	run_loop_while(rig.loop, second->kept.calls.count > 0);
}

static void
a_place_is_left_only_if_it_may_stand_where_nobody_was_told(void **state)
{
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);

	(void)state;
	open_halves();
	liars[1].slots = "-ERR gone\r\n";
	assert_true(breaker_open(node_of(1)->breaker, clock_monotonic_us() + 2 * US_PER_S));
	release_while_second_is_away("*2\r\n:1\r\n:1\r\n");
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 0);
	release_while_second_is_away("*2\r\n:0\r\n:1\r\n");
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 1);
}

/* The other way round: it was given up for the second before the first has answered. */
static void
release_and_give_up_second(const char *answer_of_first)
{
	char key[32], overflow[32];
	const struct check_item item = { .limit = &leased.limit,
		.key = slice_of(key_of(0, "l", key)),
		.overflow = slice_of(key_of(1, "l", overflow)) };
	struct kept *kept = &node_of(1)->redis->kept;

	liars[0].answer = answer_of_first;
	liars[0].waits = true;
	store_release(cluster_store(cluster), &item, 1);
	assert_int_equal(kept->calls.count, 1);
	kept->calls.first->ends_us = 1;
	run_loop_while(rig.loop, kept->calls.count > 0);
	liars[0].waits = false;
	run_loop_while(rig.loop, node_of(0)->redis->sent.count > 0);
}

static void
a_place_is_left_if_who_was_told_late_does_not_have_it(void **state)
{
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);

	(void)state;
	liars_deadline_us = PATIENT_US;
	open_halves();
	liars[1].slots = "-ERR gone\r\n";
	assert_true(breaker_open(node_of(1)->breaker, clock_monotonic_us() + 2 * US_PER_S));
	release_and_give_up_second("*2\r\n:1\r\n:1\r\n");
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 0);
	release_and_give_up_second("*2\r\n:0\r\n:1\r\n");
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 1);
}

/* It is one place. */
static void
a_place_that_nobody_was_told_of_is_left_once(void **state)
{
	const int64_t left = counter_sum(COUNT_LEASES_LEFT);
	char key[32], overflow[32];

	(void)state;
	open_halves();
	const struct check_item item = { .limit = &leased.limit,
		.key = slice_of(key_of(0, "l", key)),
		.overflow = slice_of(key_of(1, "l", overflow)) };

	for (unsigned i = 0; i < LIARS; i++) {
		liars[i].slots = "-ERR gone\r\n";
		(void)breaker_open(node_of(i)->breaker, clock_monotonic_us() + 2 * US_PER_S);
	}
	store_release(cluster_store(cluster), &item, 1);
	assert_int_equal(store_kept(cluster_store(cluster)), 2);
	for (unsigned i = 0; i < LIARS; i++)
		node_of(i)->redis->kept.calls.first->ends_us = 1;
	run_loop_while(rig.loop, store_kept(cluster_store(cluster)) > 0);
	assert_int_equal(counter_sum(COUNT_LEASES_LEFT) - left, 1);
}

/* ---- what was spent ---- */

/* The first liar admits, and the second rejects; `renew`: in between, the first one's connection is
 * another. */
static void
reject_behind_the_first(bool renew)
{
	char key[32], second[32];
	struct asked asked;

	(void)snprintf(rejected, sizeof rejected, "*3\r\n:0\r\n:%lld\r\n:%d\r\n",
		(long long)clock_wall_us(), -1 - 60000000);
	liars_deadline_us = PATIENT_US;
	open_halves();
	liars[1].waits = true;
	liars[1].answer = rejected;
	asked_init(&asked, &rig, &made, key_of(0, "l", key));
	asked_add(&asked, &other, key_of(1, "m", second));
	asked.check.deadline_us = clock_monotonic_us() + PATIENT_US;
	store_decide(cluster_store(cluster), &asked.check);
	run_loop_while(rig.loop, liars[1].checks == 0);
	if (renew) {
		connection_renew(node_of(0)->redis);
		run_loop_while(rig.loop, !is_ready(0));
	}
	liars[1].waits = false;
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_REJECTED);
	run_loop_for_ms(rig.loop, 20);
}

static void
what_was_spent_before_a_rejection_is_given_back(void **state)
{
	(void)state;
	reject_behind_the_first(false);
	assert_int_equal(liars[0].given_back, 1);
}

/* Behind the address there may be another server by now. */
static void
what_was_spent_over_another_connection_is_not_given_back(void **state)
{
	(void)state;
	reject_behind_the_first(true);
	assert_int_equal(liars[0].given_back, 0);
}

/* Who has the key now may not have it as it was. */
static void
what_is_given_back_does_not_follow_the_key(void **state)
{
	(void)state;
	liar_name(moved, "MOVED", 1);
	liars[0].answer_to_give_back = moved;
	reject_behind_the_first(false);
	assert_int_equal(liars[0].given_back, 1);
	assert_int_equal(liars[1].given_back, 0);
}

/* ---- what changes ---- */

/* The first has missed the script, and then lost the slot; the second may have it. */
static void
a_moved_check_comes_without_the_script(void **state)
{
	char key[32];

	(void)state;
	liar_name(moved, "MOVED", 1);
	liars[0].answer = "-NOSCRIPT No matching script.\r\n";
	liars[0].answer_to_script = moved;
	open_halves();
	assert_int_equal(
		liars_decide(&made, key_of(0, "l", key), NULL, NULL).verdict, VERDICT_ADMITTED);
	assert_int_equal(liars[0].scripts, 1);
	assert_int_equal(liars[1].scripts, 0);
	assert_int_equal(liars[1].checks, 1);
}

/* Each of which makes the map doubtful, while it says the same again and again. */
static void
moved_checks_ask_for_the_map_once_a_second(void **state)
{
	enum { MANY = 50 };
	char key[32];

	(void)state;
	liar_name(moved, "MOVED", 1);
	open_halves();
	liars[0].answer = moved;
	const unsigned before = liars[0].maps + liars[1].maps;
	const int64_t from_us = clock_monotonic_us();

	/* It was asked for long ago. */
	cluster->asked_us -= 2 * US_PER_S;
	for (unsigned i = 0; i < MANY; i++) {
		(void)liars_decide(&made, key_of(0, "l", key), NULL, NULL);
		run_loop_for_ms(rig.loop, 2);
		for (unsigned slot = 0; slot < HALF; slot++)
			cluster->slots[slot] = (uint16_t)(node_of(0)->index + 1);
	}
	assert_int_equal(liars[0].checks, MANY);
	/* Once for the doubt, and once with the tick. */
	const int64_t seconds = (clock_monotonic_us() - from_us) / US_PER_S;

	assert_in_range(liars[0].maps + liars[1].maps - before, 1, 2 + 2 * seconds);
}

static void
a_server_without_slots_goes_after_a_while(void **state)
{
	(void)state;
	open_halves();
	liars_share_slots(map, SLOTS - 1);
	for (unsigned slot = HALF; slot < SLOTS; slot++)
		cluster->slots[slot] = (uint16_t)(node_of(0)->index + 1);
	node_of(1)->has_slots = false;
	run_loop_for_ms(rig.loop, 1200);
	assert_non_null(find_node(1));
	/* As if a minute had passed; the other one has slots. */
	node_of(1)->used_us -= 61 * US_PER_S;
	node_of(0)->used_us -= 61 * US_PER_S;
	run_loop_while(rig.loop, find_node(1) != NULL);
	assert_non_null(find_node(0));
}

static void
the_cluster_is_well_when_its_servers_are(void **state)
{
	char key[32];

	(void)state;
	open_halves();
	assert_false(breaker_is_open(rig.breaker));
	assert_true(breaker_open(node_of(1)->breaker, clock_monotonic_us()));
	run_loop_while(rig.loop, !breaker_is_open(rig.breaker));
	(void)liars_decide(&made, key_of(1, "l", key), NULL, NULL);
	run_loop_while(rig.loop, breaker_is_open(rig.breaker));
	assert_false(breaker_is_open(node_of(1)->breaker));
}

/* Another process of the host, which one of the servers refuses for a reason of its own: that the
 * cluster is well to us and not to it does not go to and fro between the two. */
static void
the_cluster_is_well_to_each_process_by_its_own_servers(void **state)
{
	static _Alignas(64) uint8_t host[MEMORY_AREA_SIZE], ours[MEMORY_AREA_SIZE],
		theirs[MEMORY_AREA_SIZE];
	const struct breaker_areas other_areas = { host, theirs, sizeof host };
	struct cluster *of_us;
	struct err err;

	(void)state;
	liars_areas = (struct breaker_areas){ host, ours, sizeof host };
	open_halves();
	struct breaker *breaker = redis_breaker(&rig.settings, &other_areas);
	struct cluster *of_other =
		cluster_new(rig.loop, rig.resolver, &rig.settings, &other_areas, breaker, &err);

	assert_true(breaker != NULL && of_other != NULL);
	of_us = cluster;
	cluster = of_other;
	/* Whoever becomes ready closes the breaker. */
	run_loop_while(rig.loop, !cluster->has_map || !is_ready(0) || !is_ready(1));
	/* No time passes, so nobody probes meanwhile. */
	assert_true(breaker_open_own(node_of(1)->breaker, clock_monotonic_us()));
	node_changed(node_of(1));
	assert_true(breaker_is_open(breaker));
	assert_false(breaker_is_open(rig.breaker));
	cluster = of_us;
	node_changed(node_of(1));
	assert_true(breaker_is_open(breaker));
	assert_false(breaker_is_open(rig.breaker));
	/* What a server is to both of them they share. */
	assert_true(breaker_open(node_of(0)->breaker, clock_monotonic_us()));
	node_changed(node_of(0));
	assert_true(breaker_is_open(rig.breaker));
	cluster_free(of_other);
	breaker_free(breaker);
}

/* ---- silence ---- */

/* It has had its time, and not another. */
static void
assert_ended_by_the_deadline(enum unavailable why, const char *key)
{
	const int64_t from_us = clock_monotonic_us();
	const struct decision decision = liars_decide(&made, key, NULL, NULL);
	const int64_t took_us = clock_monotonic_us() - from_us;

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	assert_row(decision.why == why || decision.why == UNAVAILABLE_DEADLINE, "%s",
		unavailable_names[decision.why]);
	assert_in_range(took_us, liars_deadline_us / 2, 2 * liars_deadline_us);
}

static void
a_silent_target_of_moved_and_of_ask_is_waited_for_no_longer(void **state)
{
	static const char *const words[] = { "MOVED", "ASK" };
	char key[32];

	(void)state;
	open_halves();
	liars[1].answer = "";
	for (size_t i = 0; i < LENGTH_OF(words); i++) {
		liar_name(moved, words[i], 1);
		liars[0].answer = moved;
		assert_ended_by_the_deadline(UNAVAILABLE_DEADLINE, key_of(0, "l", key));
		assert_int_equal(liars[1].checks, i + 1);
		connection_renew(node_of(1)->redis);
		run_loop_while(rig.loop, !is_ready(1));
	}
}

/* It is to be connected to first, and says nothing. */
static void
a_target_of_moved_that_is_silent_at_once_is_waited_for_no_longer(void **state)
{
	char key[32];

	(void)state;
	liar_name(moved, "MOVED", 1);
	open_halves();
	liars[0].answer = moved;
	liars[1].slots = "";
	connection_renew(node_of(1)->redis);
	run_loop_while(rig.loop, liars[1].maps < 2);
	assert_false(is_ready(1));
	assert_ended_by_the_deadline(UNAVAILABLE_BREAKER, key_of(0, "l", key));
	assert_int_equal(liars[1].checks, 0);
}

static void
silence_at_cluster_slots_is_waited_for_no_longer(void **state)
{
	(void)state;
	liars[0].slots = liars[1].slots = "";
	liars_open();
	assert_ended_by_the_deadline(UNAVAILABLE_BREAKER, "l:192.0.2.1");
	assert_true(liars[0].maps + liars[1].maps > 0);
	run_loop_while(rig.loop, !breaker_is_open(rig.breaker));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, liars_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(calls_of_all_servers_are_bounded_together),
		TEST(places_that_all_servers_keep_are_bounded_together),
		TEST(of_places_kept_for_all_servers_the_first_to_end_gives_way),
		TEST(of_places_kept_for_all_servers_the_first_to_end_gives_way_wherever_it_is),
		TEST(answers_of_all_servers_are_bounded_together),
		TEST(a_place_is_left_only_if_it_may_stand_where_nobody_was_told),
		TEST(a_place_is_left_if_who_was_told_late_does_not_have_it),
		TEST(a_place_that_nobody_was_told_of_is_left_once),
		TEST(what_was_spent_before_a_rejection_is_given_back),
		TEST(what_was_spent_over_another_connection_is_not_given_back),
		TEST(what_is_given_back_does_not_follow_the_key),
		TEST(a_moved_check_comes_without_the_script),
		TEST(moved_checks_ask_for_the_map_once_a_second),
		TEST(a_server_without_slots_goes_after_a_while),
		TEST(the_cluster_is_well_when_its_servers_are),
		TEST(the_cluster_is_well_to_each_process_by_its_own_servers),
		TEST(a_silent_target_of_moved_and_of_ask_is_waited_for_no_longer),
		TEST(a_target_of_moved_that_is_silent_at_once_is_waited_for_no_longer),
		TEST(silence_at_cluster_slots_is_waited_for_no_longer),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/cluster_servers", tests, NULL, NULL);
}
