/* store.h: leases of concurrent policies in Redis: taken, given back, prolonged, and ended by time.
 */
#include "client.h"
#include "one_server.h"
#include "values.h"
#include "weir/log.h"

#include <stdio.h>

static struct client client;
static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	make_limit(&made, "l", "concurrent 2 lease 1m");
	client_open(&client, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&client);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	client_close(&client);
	return 0;
}

static struct decision
take(const struct made_limit *limit, const char *key, uint64_t lease)
{
	struct asked asked;

	asked_init(&asked, &client, limit, key);
	asked.check.lease = lease;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_not_equal(asked.decision.verdict, VERDICT_UNAVAILABLE);
	return asked.decision;
}

static bool
takes(const char *key, uint64_t lease)
{
	return take(&made, key, lease).verdict == VERDICT_ADMITTED;
}

static struct check_item
item_of(const struct made_limit *limit, const char *key)
{
	return (struct check_item){ .limit = &limit->limit, .key = slice_of(key) };
}

/* A check that is answered after it tells that Redis has done it. */
static void
release(const struct made_limit *limit, const char *key, uint64_t lease)
{
	const struct check_item item = item_of(limit, key);

	store_release(redis_store(client.redis), &item, lease);
	client_wait_until_ready(&client);
}

static void
renew(const struct made_limit *limit, const char *key, uint64_t lease)
{
	const struct check_item item = item_of(limit, key);

	assert_true(store_renew(redis_store(client.redis), &item, lease));
	client_wait_until_ready(&client);
}

static bool
is_there(const char *key)
{
	return assert_value_is_sound(direct, client.settings.prefix, key);
}

static long long
life_ms(const char *key)
{
	return redis_number(direct, "PTTL %s%s", client.settings.prefix, key);
}

/* ---- given back ---- */

static void
a_place_that_is_given_back_is_free(void **state)
{
	(void)state;
	assert_true(takes("k", 11) && takes("k", 12));
	assert_false(takes("k", 13));
	release(&made, "k", 11);
	assert_true(takes("k", 13));
	assert_false(takes("k", 14));
	assert_true(is_there("k"));
}

static void
a_key_without_leases_is_gone(void **state)
{
	(void)state;
	assert_true(takes("k", 11) && takes("k", 12));
	release(&made, "k", 12);
	assert_true(is_there("k"));
	release(&made, "k", 11);
	assert_false(is_there("k"));
}

static void
what_is_not_held_cannot_be_given_back(void **state)
{
	(void)state;
	release(&made, "k", 11);
	renew(&made, "k", 11);
	assert_false(is_there("k"));
	assert_true(takes("k", 11) && takes("k", 12));
	release(&made, "k", 1);
	release(&made, "k", 111);
	assert_false(takes("k", 13));
}

static void
the_same_lease_is_counted_once(void **state)
{
	(void)state;
	assert_true(takes("k", 11) && takes("k", 11) && takes("k", 11));
	assert_int_equal(take(&made, "k", 12).outcomes[0].remaining, 0);
	/* Where all places are taken, nobody looks whose they are. */
	assert_false(takes("k", 11));
	release(&made, "k", 11);
	assert_int_equal(take(&made, "k", 12).outcomes[0].remaining, 1);
}

/* The day's quota is spent for good, and lives for longer or shorter than the lease did. */
static void
other_policies_keep_what_is_spent_and_their_life(void **state)
{
	struct made_limit both;

	(void)state;
	make_limit(&both, "l", "concurrent 2 lease 1h", "5/5s");
	assert_int_equal(take(&both, "k", 11).verdict, VERDICT_ADMITTED);
	assert_in_range(life_ms("k"), 3590000, 3601001);
	release(&both, "k", 11);
	assert_true(is_there("k"));
	assert_in_range(life_ms("k"), 1, 2001);
	make_limit(&both, "l", "concurrent 2 lease 1s", "5/1h");
	assert_int_equal(take(&both, "m", 11).verdict, VERDICT_ADMITTED);
	release(&both, "m", 11);
	assert_in_range(life_ms("m"), 700000, 721001);
	const struct decision decision = take(&both, "m", 12);

	assert_int_equal(decision.outcomes[0].remaining, 1);
	assert_int_equal(decision.outcomes[1].remaining, 3);
}

/* ---- time ---- */

static void
a_lease_ends_by_itself(void **state)
{
	(void)state;
	make_limit(&made, "l", "concurrent 1 lease 50ms");
	assert_true(takes("k", 11));
	run_loop_for_ms(client.loop, 60);
	assert_true(takes("k", 12));
	make_limit(&made, "l", "concurrent 1 lease 1m");
	assert_true(takes("m", 11));
	assert_false(takes("m", 12));
}

static void
a_lease_that_is_prolonged_lives_on(void **state)
{
	(void)state;
	make_limit(&made, "l", "concurrent 1 lease 1m");
	assert_true(takes("k", 11));
	freeReplyObject(redis_command(direct, "PEXPIRE %sk 5000", client.settings.prefix));
	renew(&made, "k", 11);
	assert_in_range(life_ms("k"), 50000, 61001);
	/* By a configuration with longer leases. */
	make_limit(&made, "l", "concurrent 1 lease 1h");
	renew(&made, "k", 11);
	assert_in_range(life_ms("k"), 3500000, 3601001);
	assert_false(takes("k", 12));
	assert_true(is_there("k"));
}

static void
a_lease_that_has_ended_is_not_prolonged(void **state)
{
	(void)state;
	make_limit(&made, "l", "concurrent 1 lease 20ms", "5/1h");
	assert_int_equal(take(&made, "k", 11).verdict, VERDICT_ADMITTED);
	run_loop_for_ms(client.loop, 30);
	renew(&made, "k", 11);
	assert_int_equal(take(&made, "k", 12).verdict, VERDICT_ADMITTED);
}

/* ---- on the way ---- */

static void
a_check_that_was_cancelled_is_followed_by_its_release(void **state)
{
	struct asked asked;

	(void)state;
	asked_init(&asked, &client, &made, "k");
	asked.check.lease = 11;
	asked_send(&asked);
	store_cancel(redis_store(client.redis), &asked.check);
	release(&made, "k", 11);
	assert_int_equal(asked.answers, 0);
	assert_false(is_there("k"));
}

static void
what_is_given_back_while_connecting_waits(void **state)
{
	struct made_limit gone;

	(void)state;
	assert_true(takes("k", 11));
	client_close(&client);
	client_open(&client, &client.settings);
	make_limit(&gone, "l", "concurrent 2 lease 1m");
	const struct check_item item = item_of(&gone, "k");

	store_release(redis_store(client.redis), &item, 11);
	/* Nothing of the item is needed any more. */
	memset(&gone, 0xff, sizeof gone);
	client_wait_until_ready(&client);
	assert_false(is_there("k"));
}

static void
without_the_script_it_is_brought_along(void **state)
{
	(void)state;
	assert_true(takes("k", 11) && takes("k", 12));
	redis_ok(direct, "SCRIPT FLUSH");
	release(&made, "k", 11);
	assert_true(takes("k", 13));
	redis_ok(direct, "SCRIPT FLUSH");
	const struct check_item item = item_of(&made, "k");

	store_release(redis_store(client.redis), &item, 12);
	store_release(redis_store(client.redis), &item, 13);
	client_wait_until_ready(&client);
	assert_false(is_there("k"));
}

static void
it_is_given_back_where_it_was_taken(void **state)
{
	struct asked asked;

	(void)state;
	assert_true(takes("known", 11));
	struct check_item unknown = item_of(&made, "unknown"), known = item_of(&made, "known");

	unknown.overflow = known.overflow = SLICE("shared");
	asked_init(&asked, &client, &made, "unknown");
	asked.check.items[0] = unknown;
	asked.check.lease = 12;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.overflowed, 1);
	assert_true(is_there("shared") && is_there("known"));
	assert_false(is_there("unknown"));
	store_release(redis_store(client.redis), &unknown, 12);
	store_release(redis_store(client.redis), &known, 11);
	client_wait_until_ready(&client);
	assert_false(is_there("shared") || is_there("known"));
}

/* ---- prolonged while Redis is away ---- */

/* Whoever holds the lease is told, and tries again. */
static void
what_cannot_be_prolonged_is_told_and_not_kept(void **state)
{
	const struct check_item item = item_of(&made, "k");
	struct store *store = redis_store(client.redis);

	(void)state;
	assert_true(takes("k", 11));
	assert_true(store_renew(store, &item, 11));
	assert_true(breaker_open(client.breaker, clock_monotonic_us()));
	assert_false(store_renew(store, &item, 11));
	assert_int_equal(store_kept(store), 0);
	client_wait_until_ready(&client);
	assert_true(store_renew(store, &item, 11));
	client_close(&client);
	client_open(&client, &client.settings);
	assert_false(store_renew(redis_store(client.redis), &item, 11));
	client_wait_until_ready(&client);
}

static void
what_was_lost_before_it_was_prolonged_is_counted(void **state)
{
	const int64_t lost = counter_sum(COUNT_LEASES_LOST);

	(void)state;
	assert_true(takes("k", 11) && takes("k", 12));
	renew(&made, "k", 11);
	renew(&made, "k", 12);
	assert_int_equal(counter_sum(COUNT_LEASES_LOST) - lost, 0);
	release(&made, "k", 12);
	renew(&made, "k", 12);
	assert_int_equal(counter_sum(COUNT_LEASES_LOST) - lost, 1);
	redis_ok(direct, "FLUSHALL");
	renew(&made, "k", 11);
	assert_int_equal(counter_sum(COUNT_LEASES_LOST) - lost, 2);
}

#define lease_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		lease_test(a_place_that_is_given_back_is_free),
		lease_test(a_key_without_leases_is_gone),
		lease_test(what_is_not_held_cannot_be_given_back),
		lease_test(the_same_lease_is_counted_once),
		lease_test(other_policies_keep_what_is_spent_and_their_life),
		lease_test(a_lease_ends_by_itself),
		lease_test(a_lease_that_is_prolonged_lives_on),
		lease_test(a_lease_that_has_ended_is_not_prolonged),
		lease_test(a_check_that_was_cancelled_is_followed_by_its_release),
		lease_test(what_is_given_back_while_connecting_waits),
		lease_test(without_the_script_it_is_brought_along),
		lease_test(it_is_given_back_where_it_was_taken),
		lease_test(what_cannot_be_prolonged_is_told_and_not_kept),
		lease_test(what_was_lost_before_it_was_prolonged_is_counted),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/leases", tests, group_setup, group_teardown);
}
