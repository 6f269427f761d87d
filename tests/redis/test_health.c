/*
 * redis.h: what the store takes for a sign of health, what it knows of the server's clock, and how
 * much it lets wait. The servers are made up.
 */
#include "client.h"
#include "fake.h"
#include "weir/log.h"

#include <stdio.h>
#include <sys/mman.h>
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

/* ---- misses ---- */

#define DEADLINE_US (600 * US_PER_MS)

enum { IN_TIME = 3 };

/* After a deadline and a half, but one; two would be silence. */
static void
answers_one_in_time(struct fake_peer *peer)
{
	redisReply *command;

	for (unsigned i = 1; (command = fake_answer_until_check(peer)) != NULL; i++) {
		if (i != IN_TIME)
			(void)usleep(DEADLINE_US * 3 / 2);
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void
misses_that_an_answer_lies_between_are_not_in_a_row(void **state)
{
	const int64_t opened = counter_sum(COUNT_BREAKER_OPENED);

	open_with(answers_one_in_time, DEADLINE_US);
	for (unsigned i = 1; i <= BREAKER_MISSES + 1; i++) {
		const struct decision decision = client_decide(&client, &made, "k");

		assert_int_equal(
			decision.verdict, i == IN_TIME ? VERDICT_ADMITTED : VERDICT_UNAVAILABLE);
		/* For the late answer. */
		run_loop_for_ms(client.loop, DEADLINE_US * 3 / 4 / US_PER_MS);
	}
	/* A probe would have closed it by now. */
	assert_int_equal(counter_sum(COUNT_BREAKER_OPENED), opened);
	(void)close_both(state);
}

/* ---- clocks ---- */

/* Shared with the server: its clock minus the right one, and for how long the last check was good
 * by its clock. */
struct times {
	_Atomic int64_t ahead_us, good_for_us;
};

static struct times *times;

static void
has_a_clock_of_its_own(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_answer_until_check(peer)) != NULL) {
		const int64_t now = clock_wall_us() + atomic_load(&times->ahead_us);
		char reply[128];

		/* EVALSHA, script, 1, key, expires, signature, need, capacity */
		assert_int_equal(command->elements, 8);
		atomic_store(
			&times->good_for_us, strtoll(command->element[4]->str, NULL, 10) - now);
		(void)snprintf(reply, sizeof reply, "*3\r\n:1\r\n:%lld\r\n:%s\r\n", (long long)now,
			command->element[6]->str);
		(void)fake_send(peer, slice_of(reply));
		freeReplyObject(command);
	}
}

/* Else what is late would spend, or all would be late. */
static void
a_clock_that_is_set_is_learnt_with_the_next_answer(void **state)
{
	static const int64_t steps[] = { 0, -3600, 0, 3600, -7200, 30, 0, -30 };

	times = mmap(
		NULL, sizeof *times, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(times != MAP_FAILED);
	open_with(has_a_clock_of_its_own, PATIENT_US);
	for (size_t i = 0; i < LENGTH_OF(steps); i++) {
		atomic_store(&times->ahead_us, steps[i] * US_PER_S);
		for (unsigned j = 0; j < 2; j++)
			assert_int_equal(
				client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
		assert_in_range(atomic_load(&times->good_for_us), 1, PATIENT_US);
	}
	(void)close_both(state);
	assert_int_equal(munmap(times, sizeof *times), 0);
}

/* ---- bytes ---- */

enum { CHECKS = 1500, KEY_LEN = 400, QUEUE = 1024 * 1024 };

static void
reads_one_check(struct fake_peer *peer)
{
	redisReply *command = fake_answer_until_check(peer);

	if (command == NULL)
		return;
	(void)fake_answer(peer, command);
	freeReplyObject(command);
	for (;;)
		(void)pause();
}

/* Long before there are too many of them. */
static void
checks_that_are_large_are_refused_beyond_a_mebibyte(void **state)
{
	static struct asked asked[CHECKS];
	char key[KEY_LEN + 1];
	size_t taken = 0;

	memset(key, 'k', KEY_LEN);
	key[KEY_LEN] = '\0';
	open_with(reads_one_check, PATIENT_US);
	client_wait_until_ready(&client);
	for (size_t i = 0; i < CHECKS; i++) {
		asked_init(&asked[i], &client, &made, key);
		while (asked[i].check.count < CHECK_LIMITS_MAX)
			asked_add(&asked[i], &made, key);
		asked_send(&asked[i]);
		taken += asked[i].answers == 0;
		if (asked[i].answers != 0)
			assert_int_equal(asked[i].decision.why, UNAVAILABLE_OVERLOAD);
	}
	/* What the kernel holds comes on top. */
	assert_in_range(taken * KEY_LEN * CHECK_LIMITS_MAX, QUEUE / 3, 2 * QUEUE);
	(void)close_both(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(misses_that_an_answer_lies_between_are_not_in_a_row),
		cmocka_unit_test(a_clock_that_is_set_is_learnt_with_the_next_answer),
		cmocka_unit_test(checks_that_are_large_are_refused_beyond_a_mebibyte),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/health", tests, NULL, NULL);
}
