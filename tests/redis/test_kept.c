/*
 * store.h: places that are given back while Redis is away, in whatever way it is, are free when it
 * is back; and what that costs Redis, and us, has bounds.
 */
#include "../lib/redis_server.h"
#include "../../src/redis/redis_private.h"
#include "client.h"
#include "fake.h"
#include "weir/log.h"

#include <stdio.h>

enum { DEADLINE_MS = 200, BACK_MS = 5000, AT_A_TIME = 16 };

static const char *const durable[] = { "--appendonly", "yes", "--appendfsync", "always", NULL };
static const struct redis_settings impatient = { .deadline_us = DEADLINE_MS * US_PER_MS };

static struct redis_server server;
static redisContext *direct;
static struct client client;
static struct made_limit made;

static struct check_item
item_of(const char *key)
{
	return (struct check_item){ .limit = &made.limit, .key = slice_of(key) };
}

static void
release(const char *key, uint64_t lease)
{
	const struct check_item item = item_of(key);

	store_release(redis_store(client.redis), &item, lease);
}

static unsigned
kept(void)
{
	return store_kept(redis_store(client.redis));
}

static int64_t
left(void)
{
	return counter_sum(COUNT_LEASES_LEFT);
}

/* By a client that waits for as long as it takes. */
static void
take(const char *key, uint64_t lease)
{
	struct client patient;
	struct asked asked;

	client_open(&patient, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&patient);
	asked_init(&asked, &patient, &made, key);
	asked.check.lease = lease;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
	client_close(&patient);
}

static void
open_client(const struct address *address, const struct redis_settings *settings)
{
	struct redis_settings with_address = *settings;

	with_address.server = *address;
	client_open(&client, &with_address);
}

/* ---- every way to be away ---- */

static void
another_opens_the_breaker(void)
{
	assert_true(breaker_open(client.breaker, clock_monotonic_us()));
}

static void
hang(void)
{
	redis_server_freeze(&server);
}

static void
hang_until_it_is_noticed(void)
{
	redis_server_freeze(&server);
	while (!breaker_is_open(client.breaker))
		(void)client_decide(&client, &made, "other");
}

static void
die_without_a_word(void)
{
	redis_server_kill(&server);
}

static void
become_a_replica(void)
{
	redis_ok(direct, "REPLICAOF 127.0.0.1 1");
}

static void
run_out_of_memory(void)
{
	redis_ok(direct, "CONFIG SET maxmemory 1");
}

static void
close_all_connections(void)
{
	(void)redis_number(direct, "CLIENT KILL TYPE normal SKIPME yes");
}

static void
do_nothing(void)
{
}

static void
wake(void)
{
	redis_server_thaw(&server);
}

static void
wake_and_another_finds_it_so(void)
{
	redis_server_thaw(&server);
	(void)breaker_close(client.breaker);
}

static void
start_anew(void)
{
	redis_server_start(&server, durable);
	redisFree(direct);
	direct = redis_server_connect(&server);
}

/* What had come and was not read is lost. */
static void
die_and_start_anew(void)
{
	redis_server_kill(&server);
	start_anew();
}

static void
be_master_again(void)
{
	redis_ok(direct, "REPLICAOF NO ONE");
}

static void
have_memory_again(void)
{
	redis_ok(direct, "CONFIG SET maxmemory 0");
}

static const struct {
	const char *name;
	void (*go)(void);
	void (*come_back)(void);
	bool is_told; /* what is given back meanwhile is sent, and refused */
} ways[] = {
	{ "another process opens the breaker", another_opens_the_breaker, do_nothing, false },
	{ "it hangs", hang, wake, false },
	{ "it hangs and the breaker opens", hang_until_it_is_noticed, wake, false },
	{ "another process closes the breaker", hang_until_it_is_noticed,
		wake_and_another_finds_it_so, false },
	{ "it hangs and dies", hang, die_and_start_anew, false },
	{ "it dies", die_without_a_word, start_anew, false },
	{ "it is a replica for a while", become_a_replica, be_master_again, true },
	{ "it has no memory for a while", run_out_of_memory, have_memory_again, true },
	{ "it closes the connection", close_all_connections, do_nothing, false },
};

static void
place_given_back_meanwhile_is_free_when_it_is_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(ways); i++) {
		const int64_t left_before = left();

		redis_ok(direct, "FLUSHALL");
		take("k", 11);
		take("k", 12);
		open_client(&server.address, &impatient);
		client_wait_until_ready(&client);
		ways[i].go();
		release("k", 11);
		if (ways[i].is_told)
			client_wait_for_breaker(&client, true);
		release("k", 12);
		ways[i].come_back();
		const int64_t back_us = clock_monotonic_us();

		while (redis_number(direct, "EXISTS weir:k") == 1) {
			assert_row(clock_monotonic_us() - back_us < BACK_MS * US_PER_MS,
				"still taken: %s", ways[i].name);
			run_loop_for_ms(client.loop, 5);
		}
		client_wait_until_ready(&client);
		assert_row(kept() == 0, "kept on: %s", ways[i].name);
		assert_row(left() == left_before, "counted: %s", ways[i].name);
		client_close(&client);
	}
}

/* ---- bounds ---- */

static void
no_more_are_kept_than_may_be(void **state)
{
	char key[520];
	struct check_item long_item;
	int64_t left_before = left();

	(void)state;
	open_client(&server.address, &impatient);
	for (unsigned i = 0; i < KEPT_MAX + 100; i++)
		release("k", i + 1);
	assert_int_equal(kept(), KEPT_MAX);
	assert_int_equal(left() - left_before, 100);
	/* Those that are long take the room of more. */
	memset(key, 'k', sizeof key - 1);
	key[sizeof key - 1] = '\0';
	long_item = item_of(key);
	long_item.overflow = long_item.key;
	for (unsigned i = 0; i < KEPT_MAX; i++)
		store_release(redis_store(client.redis), &long_item, i + 1);
	assert_in_range(kept(), 1000, KEPT_BYTES_MAX / sizeof key);
	assert_int_equal(kept() + (left() - left_before), 2 * KEPT_MAX + 100);
	left_before = left() + kept();
	client_close(&client);
	assert_int_equal(left(), left_before);
}

/* The first gives way, since its lease ends first. */
static void
the_one_that_was_kept_longest_gives_way(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	take("k", 1);
	take("k", 2);
	open_client(&server.address, &impatient);
	release("k", 1);
	for (unsigned i = 0; i < KEPT_MAX - 1; i++)
		release("nobody", 3);
	release("k", 2);
	run_loop_while(client.loop, kept() > 0);
	client_wait_until_ready(&client);
	take("k", 3);
	assert_int_equal(redis_number(direct, "EXISTS weir:k"), 1);
	release("k", 3);
	client_wait_until_ready(&client);
	assert_int_equal(redis_number(direct, "EXISTS weir:k"), 1);
	client_close(&client);
}

static void
what_is_over_is_not_kept(void **state)
{
	const int64_t left_before = left();

	(void)state;
	make_limit(&made, "l", "concurrent 2 lease 50ms");
	open_client(&server.address, &impatient);
	hang();
	release("k", 1);
	release("k", 2);
	assert_int_equal(kept(), 2);
	run_loop_while(client.loop, kept() > 0);
	assert_int_equal(left() - left_before, 2);
	wake();
	client_close(&client);
	make_limit(&made, "l", "concurrent 2 lease 1m");
}

/* ---- with a server that can be looked into ---- */

static void
answers_no_release(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
	fake_read_on(peer);
}

static void
answers_all(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		if (fake_is_check(command))
			(void)fake_send(peer, SLICE("*2\r\n:1\r\n:1\r\n"));
		else
			(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void
a_few_are_sent_at_a_time(void **state)
{
	enum { RELEASES = 10 * AT_A_TIME };
	fake_fn *const servers[] = { answers_no_release, answers_all };
	const unsigned most[] = { AT_A_TIME, RELEASES };
	struct fake fake;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(servers); i++) {
		fake_open(&fake, servers[i]);
		open_client(&fake.address, &(const struct redis_settings){ 0 });
		for (unsigned j = 0; j < RELEASES; j++)
			release("k", j + 1);
		run_loop_while(client.loop, atomic_load(&fake.seen->checks) < most[i]);
		/* Time enough for more. */
		run_loop_for_ms(client.loop, 150);
		assert_int_equal(atomic_load(&fake.seen->checks), most[i]);
		assert_int_equal(kept(), RELEASES - most[i]);
		client_close(&client);
		fake_close(&fake);
	}
}

static void
hears_a_check_and_goes(struct fake_peer *peer)
{
	if (atomic_load(&peer->seen->connections) == 1)
		freeReplyObject(fake_answer_until_check(peer));
	else
		answers_all(peer);
}

/* It may still decide the check, and is not told over another connection before it has. */
static void
nothing_is_given_back_before_it_can_be_taken(void **state)
{
	const struct redis_settings settings = { .deadline_us = 700 * US_PER_MS };
	struct asked asked;
	struct fake fake;

	(void)state;
	fake_open(&fake, hears_a_check_and_goes);
	open_client(&fake.address, &settings);
	asked_init(&asked, &client, &made, "k");
	asked.check.lease = 1;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.why, UNAVAILABLE_CONNECTION);
	release("k", 1);
	for (;;) {
		const unsigned heard = atomic_load(&fake.seen->checks);

		if (clock_monotonic_us() >= asked.check.deadline_us)
			break;
		assert_int_equal(heard, 1);
		run_loop_for_ms(client.loop, 2);
	}
	run_loop_while(client.loop, atomic_load(&fake.seen->checks) == 1);
	assert_true(atomic_load(&fake.seen->connections) > 1);
	client_close(&client);
	fake_close(&fake);
}

static int
group_setup(void **state)
{
	(void)state;
	make_limit(&made, "l", "concurrent 2 lease 1m");
	redis_server_open(&server, durable);
	direct = redis_server_connect(&server);
	return 0;
}

static int
group_teardown(void **state)
{
	(void)state;
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_given_back_meanwhile_is_free_when_it_is_back),
		cmocka_unit_test(no_more_are_kept_than_may_be),
		cmocka_unit_test(the_one_that_was_kept_longest_gives_way),
		cmocka_unit_test(what_is_over_is_not_kept),
		cmocka_unit_test(a_few_are_sent_at_a_time),
		cmocka_unit_test(nothing_is_given_back_before_it_can_be_taken),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/kept", tests, group_setup, group_teardown);
}
