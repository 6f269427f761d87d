/*
 * redis.h: the life of checks and of the connection: cancelled checks, more checks than may wait,
 * who asks anew at once, and the breaker.
 */
#include "client.h"
#include "fake.h"
#include "weir/log.h"
#include "weir/memory.h"

#include <stdio.h>
#include <unistd.h>

static struct fake fake;
static struct client client;
static struct made_limit made;

static void
open_with(fake_fn *serve, int64_t deadline_us)
{
	make_limit(&made, "l", "5/1m");
	fake_open(&fake, serve);
	client_open(&client,
		&(const struct redis_settings){
			.server = fake.address, .deadline_us = deadline_us });
}

static int
close_both(void **state)
{
	(void)state;
	client_close(&client);
	fake_close(&fake);
	return 0;
}

static void
assert_unavailable(const struct decision *decision, enum unavailable why)
{
	assert_int_equal(decision->verdict, VERDICT_UNAVAILABLE);
	assert_row(decision->why == why, "it was \"%s\" and not \"%s\"",
		unavailable_names[decision->why], unavailable_names[why]);
}

static void
works(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

/* ---- cancelled ---- */

static void
answers_slowly(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		(void)usleep(fake_is_check(command) ? 20000 : 50000);
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void
a_cancelled_check_is_not_answered_and_the_others_are(void **state)
{
	struct asked asked[6];

	open_with(answers_slowly, 0);
	/* First while there is no connection, then while the answers are under way. */
	for (unsigned round = 0; round < 2; round++) {
		client.answers = 0;
		for (size_t i = 0; i < LENGTH_OF(asked); i++) {
			asked_init(&asked[i], &client, &made, "k");
			asked_send(&asked[i]);
		}
		for (size_t i = 0; i < LENGTH_OF(asked); i += 2)
			store_cancel(redis_store(client.redis), &asked[i].check);
		run_loop_until(client.loop, client.answers == LENGTH_OF(asked) / 2);
		run_loop_for_ms(client.loop, 100);
		for (size_t i = 0; i < LENGTH_OF(asked); i++)
			assert_int_equal(asked[i].answers, i % 2);
	}
	/* What was cancelled before it was sent never was. */
	assert_int_equal(atomic_load(&fake.seen->checks), 3 + 6);
	(void)close_both(state);
}

static void
swallows_checks(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
	fake_read_on(peer);
}

static void
what_is_under_way_when_the_store_goes_is_dropped(void **state)
{
	struct asked asked[4];

	open_with(swallows_checks, 0);
	for (size_t i = 0; i < LENGTH_OF(asked); i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
	run_loop_while(client.loop, atomic_load(&fake.seen->checks) < LENGTH_OF(asked));
	(void)close_both(state);
	for (size_t i = 0; i < LENGTH_OF(asked); i++)
		assert_int_equal(asked[i].answers, 0);
}

/* ---- too many ---- */

enum { CHECKS = 4096, MORE = 300 };

static void
never_speaks(struct fake_peer *peer)
{
	fake_read_on(peer);
}

static unsigned
count_refused(const struct asked *asked, size_t count)
{
	unsigned refused = 0;

	for (size_t i = 0; i < count; i++) {
		if (asked[i].answers == 0)
			continue;
		assert_unavailable(&asked[i].decision, UNAVAILABLE_OVERLOAD);
		refused++;
	}
	return refused;
}

static void
more_checks_than_may_wait_are_refused_at_once(void **state)
{
	fake_fn *const phases[] = { never_speaks, swallows_checks };
	static struct asked asked[CHECKS + MORE];

	for (size_t phase = 0; phase < LENGTH_OF(phases); phase++) {
		open_with(phases[phase], 0);
		asked_init(&asked[0], &client, &made, "k");
		asked_send(&asked[0]);
		/* To the handshake, or through it. */
		while (atomic_load(&fake.seen->commands) == 0 ||
			(phase > 0 && atomic_load(&fake.seen->checks) == 0))
			run_loop_for_ms(client.loop, 1);
		for (size_t i = 1; i < LENGTH_OF(asked); i++) {
			asked_init(&asked[i], &client, &made, "k");
			asked_send(&asked[i]);
		}
		/* One or two of those under way are of the handshake. */
		assert_in_range(count_refused(asked, LENGTH_OF(asked)), MORE, MORE + 2);
		for (size_t i = 0; i < CHECKS - 2; i++)
			assert_int_equal(asked[i].answers, 0);
		(void)close_both(state);
	}
}

/* Clients that come and go while there is no connection. */
static void
cancelled_checks_count_as_long_as_they_hold_memory(void **state)
{
	static struct asked asked[CHECKS + MORE];

	open_with(never_speaks, 0);
	for (size_t i = 0; i < LENGTH_OF(asked); i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
		if (asked[i].answers == 0)
			store_cancel(redis_store(client.redis), &asked[i].check);
	}
	assert_in_range(count_refused(asked, LENGTH_OF(asked)), MORE, MORE + 2);
	(void)close_both(state);
}

/* ---- who asks anew at once ---- */

struct again {
	struct asked asked;
	unsigned left;
};

static void
ask_again(struct check *check, const struct decision *decision)
{
	struct again *again = (struct again *)(uintptr_t)check;

	again->asked.answers++;
	again->asked.decision = *decision;
	client.answers++;
	loop_stop(client.loop);
	if (again->left-- > 0)
		asked_send(&again->asked);
}

static void
send_again(struct again *again, unsigned times)
{
	asked_init(&again->asked, &client, &made, "k");
	again->asked.check.done = ask_again;
	again->left = times;
	asked_send(&again->asked);
}

/* A connection is settled after a second. */
static void
works_for_a_while(struct fake_peer *peer)
{
	redisReply *command;
	const int64_t end_us = clock_monotonic_us() + 1300000;

	while ((command = fake_read(peer)) != NULL) {
		if (fake_is_check(command) && clock_monotonic_us() > end_us)
			break;
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
	freeReplyObject(command);
}

static void
a_settled_connection_that_ends_is_replaced_at_once(void **state)
{
	struct again again[10];

	open_with(works_for_a_while, 0);
	client_wait_until_ready(&client);
	run_loop_for_ms(client.loop, 1400);
	client.answers = 0;
	/* All are lost, ask anew from within the answer, and are admitted. */
	for (size_t i = 0; i < LENGTH_OF(again); i++)
		send_again(&again[i], 1);
	run_loop_until(client.loop, client.answers == 2 * LENGTH_OF(again));
	run_loop_for_ms(client.loop, 20);
	for (size_t i = 0; i < LENGTH_OF(again); i++) {
		assert_int_equal(again[i].asked.answers, 2);
		assert_int_equal(again[i].asked.decision.verdict, VERDICT_ADMITTED);
	}
	assert_false(breaker_is_open(client.breaker));
	assert_int_equal(atomic_load(&fake.seen->connections), 2);
	(void)close_both(state);
}

static void
closes_instead_of_an_answer(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
}

static void
who_asks_anew_when_the_breaker_opens_is_told_so(void **state)
{
	struct again again[10];

	open_with(closes_instead_of_an_answer, 0);
	run_loop_for_ms(client.loop, 50);
	for (size_t i = 0; i < LENGTH_OF(again); i++)
		send_again(&again[i], 2);
	run_loop_until(client.loop, client.answers == 3 * LENGTH_OF(again));
	for (size_t i = 0; i < LENGTH_OF(again); i++)
		assert_unavailable(&again[i].asked.decision, UNAVAILABLE_BREAKER);
	(void)close_both(state);
}

/* ---- the breaker ---- */

static void
while_it_is_open_only_probes_are_sent(void **state)
{
	open_with(closes_instead_of_an_answer, 200 * US_PER_MS);
	(void)client_decide(&client, &made, "k");
	assert_true(breaker_is_open(client.breaker));
	fake_stop(&fake);
	const unsigned connections = atomic_load(&fake.seen->connections),
		       checks = atomic_load(&fake.seen->checks);

	/* Nobody is there; then somebody is who does not speak. */
	for (unsigned i = 0; i < 40; i++) {
		const struct decision decision = client_decide(&client, &made, "k");

		assert_unavailable(&decision, UNAVAILABLE_BREAKER);
		run_loop_for_ms(client.loop, 10);
	}
	fake_start(&fake, never_speaks);
	for (unsigned i = 0; i < 100; i++) {
		(void)client_decide(&client, &made, "k");
		run_loop_for_ms(client.loop, 10);
	}
	fake_stop(&fake);
	/* After 0.1, 0.2, 0.4, 0.8, 1 s, and so on on a busy machine. */
	assert_in_range(atomic_load(&fake.seen->connections) - connections, 0, 12);
	assert_int_equal(atomic_load(&fake.seen->checks), checks);
	fake_start(&fake, works);
	client_wait_for_breaker(&client, false);
	/* It was a probe that closed it. */
	assert_int_equal(atomic_load(&fake.seen->checks), checks);
	const struct decision decision = client_decide(&client, &made, "k");

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	(void)close_both(state);
}

/* As two processes of a host, by the memory that they share. */
static void
what_one_finds_out_the_other_need_not(void **state)
{
	static uint8_t area[MEMORY_AREA_SIZE] __attribute__((aligned(64)));
	struct client other;

	open_with(works, 0);
	client_wait_until_ready(&client);
	/* Both get the shared breaker in place of their own. */
	client_close(&client);
	client_open_shared(&client, &client.settings, area);
	client_open_shared(&other, &client.settings, area);
	client_wait_until_ready(&client);
	client_wait_until_ready(&other);
	fake_stop(&fake);
	client_wait_for_breaker(&client, true);
	assert_true(breaker_is_open(other.breaker));
	const struct decision decision = client_decide(&other, &made, "k");

	assert_unavailable(&decision, UNAVAILABLE_BREAKER);
	fake_start(&fake, works);
	client_wait_for_breaker(&client, false);
	client_wait_until_ready(&other);
	client_close(&other);
	(void)close_both(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cancelled_check_is_not_answered_and_the_others_are),
		cmocka_unit_test(what_is_under_way_when_the_store_goes_is_dropped),
		cmocka_unit_test(more_checks_than_may_wait_are_refused_at_once),
		cmocka_unit_test(cancelled_checks_count_as_long_as_they_hold_memory),
		cmocka_unit_test(a_settled_connection_that_ends_is_replaced_at_once),
		cmocka_unit_test(who_asks_anew_when_the_breaker_opens_is_told_so),
		cmocka_unit_test(while_it_is_open_only_probes_are_sent),
		cmocka_unit_test(what_one_finds_out_the_other_need_not),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/checks", tests, NULL, NULL);
}
