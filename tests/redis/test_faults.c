/*
 * redis.h: the store over servers that fail in every way that they can. Whatever they do, a check
 * is answered once, by its deadline, and with what is known.
 */
#include "client.h"
#include "fake.h"
#include "weir/log.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

/* Short, where a test waits for it; what is asserted is that it holds, not how quick we are. What
 * is not to be answered by it has one that never comes. */
#define DEADLINE_US (100 * US_PER_MS)
#define LATE_US (5 * US_PER_S)

static struct fake fake;
static struct client client;
static struct made_limit made;

static void
open_with_deadline(fake_fn *serve, int64_t deadline_us)
{
	make_limit(&made, "l", "5/1m");
	fake_open(&fake, serve);
	client_open(&client,
		&(const struct redis_settings){
			.server = fake.address, .password = "secret", .deadline_us = deadline_us });
}

static void
open_both(fake_fn *serve)
{
	open_with_deadline(serve, DEADLINE_US);
}

static int
close_both(void **state)
{
	(void)state;
	client_close(&client);
	fake_close(&fake);
	return 0;
}

/* One check; its answer came by the deadline. */
static struct decision
decide_in_time(void)
{
	struct asked asked;

	asked_init(&asked, &client, &made, "k");
	asked_send(&asked);
	asked_wait(&asked);
	assert_in_range(asked.answered_at_us - asked.asked_at_us, 0, LATE_US);
	return asked.decision;
}

static void
assert_unavailable(const struct decision *decision, enum unavailable why)
{
	assert_int_equal(decision->verdict, VERDICT_UNAVAILABLE);
	assert_row(decision->why == why, "it was \"%s\" and not \"%s\"",
		unavailable_names[decision->why], unavailable_names[why]);
	assert_int_equal(decision->count, 0);
}

/* ---- silence, in each phase ---- */

static void
never_speaks(struct fake_peer *peer)
{
	fake_read_on(peer);
}

static void
speaks_once(struct fake_peer *peer)
{
	(void)fake_send(peer, SLICE("+OK\r\n"));
	fake_read_on(peer);
}

static void
shakes_hands_only(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
	fake_read_on(peer);
}

static void
answers_half(struct fake_peer *peer)
{
	redisReply *command = fake_answer_until_check(peer);

	if (command == NULL)
		return;
	freeReplyObject(command);
	(void)fake_send(peer, SLICE("*3\r\n:1\r\n:17810000"));
	fake_read_on(peer);
}

static void
the_deadline_holds_in_every_phase(void **state)
{
	fake_fn *const phases[] = { never_speaks, speaks_once, shakes_hands_only, answers_half };

	for (size_t i = 0; i < LENGTH_OF(phases); i++) {
		open_both(phases[i]);
		const struct decision decision = decide_in_time();

		/* A handshake's deadline began a little earlier, and opened the breaker. */
		assert_unavailable(&decision,
			decision.why == UNAVAILABLE_BREAKER ? UNAVAILABLE_BREAKER
							    : UNAVAILABLE_DEADLINE);
		(void)close_both(state);
	}
}

/* A TCP server whose queue is full does not refuse: it drops, and connect hangs. */
static void
the_deadline_holds_while_connecting(void **state)
{
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof name;
	struct redis_settings settings = { .deadline_us = DEADLINE_US };
	int fillers[4];

	(void)state;
	make_limit(&made, "l", "5/1m");
	assert_int_equal(bind(listener, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&name, &len), 0);
	for (size_t i = 0; i < LENGTH_OF(fillers); i++) {
		fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fillers[i], (const struct sockaddr *)&name, sizeof name);
	}
	settings.server = (struct address){ .kind = ADDRESS_TCP, .host = "127.0.0.1" };
	settings.server.port = ntohs(name.sin_port);
	client_open(&client, &settings);
	const struct decision decision = decide_in_time();

	assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	client_close(&client);
	for (size_t i = 0; i < LENGTH_OF(fillers); i++)
		assert_int_equal(close(fillers[i]), 0);
	assert_int_equal(close(listener), 0);
}

static void
after_a_few_misses_nobody_waits_any_more(void **state)
{
	unsigned waited = 0;

	open_both(shakes_hands_only);
	assert_false(breaker_is_open(client.breaker));
	for (unsigned i = 0; i < 50; i++) {
		const struct decision decision = decide_in_time();

		waited += decision.why != UNAVAILABLE_BREAKER;
		assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
	}
	assert_in_range(waited, 0, 25);
	assert_true(breaker_is_open(client.breaker));
	(void)close_both(state);
}

/* ---- answers that come too late ---- */

#define SLOW_US (400 * US_PER_MS)

/* After a deadline and a half, but the handshake; two would be silence. */
static void
answers_late(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_answer_until_check(peer)) != NULL) {
		(void)usleep(SLOW_US * 3 / 2);
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

/* However seldom it is asked: an answer that nobody waited for is no sign of health. */
static void
a_server_that_is_always_late_is_asked_no_more(void **state)
{
	open_with_deadline(answers_late, SLOW_US);
	for (unsigned i = 0; i < BREAKER_MISSES; i++) {
		const struct decision decision = decide_in_time();

		assert_unavailable(&decision, UNAVAILABLE_DEADLINE);
		if (i + 1 < BREAKER_MISSES)
			run_loop_for_ms(client.loop, SLOW_US * 3 / 4 / US_PER_MS);
	}
	assert_true(breaker_is_open(client.breaker));
	(void)close_both(state);
}

/* The first check's answer waits for the second check, and says "admitted"; all later ones say
 * "rejected". */
static void
admits_late_then_rejects(struct fake_peer *peer)
{
	redisReply *first = fake_answer_until_check(peer), *next;
	unsigned others = 0; /* commands between the two */
	char reply[100];

	if (first == NULL)
		return;
	while ((next = fake_read(peer)) != NULL && !fake_is_check(next)) {
		freeReplyObject(next);
		others++;
	}
	(void)fake_answer(peer, first);
	freeReplyObject(first);
	for (; others > 0; others--)
		(void)fake_send(peer, SLICE("+OK\r\n"));
	(void)snprintf(reply, sizeof reply, "*3\r\n:0\r\n:%lld\r\n:-60000001\r\n",
		(long long)clock_wall_us());
	while (next != NULL) {
		freeReplyObject(next);
		(void)fake_send(peer, slice_of(reply));
		next = fake_read(peer);
	}
}

static void
an_answer_is_never_taken_for_that_to_another_check(void **state)
{
	struct asked first, second;

	open_with_deadline(admits_late_then_rejects, 1 * US_PER_S);
	asked_init(&first, &client, &made, "a");
	asked_send(&first);
	asked_wait(&first);
	assert_unavailable(&first.decision, UNAVAILABLE_DEADLINE);
	asked_init(&second, &client, &made, "b");
	asked_send(&second);
	asked_wait(&second);
	assert_int_equal(second.decision.verdict, VERDICT_REJECTED);
	assert_int_equal(first.answers, 1);
	(void)close_both(state);
}

/* ---- connections that end ---- */

static void
closes_at_once(struct fake_peer *peer)
{
	(void)peer;
}

static void
closes_after_auth(struct fake_peer *peer)
{
	freeReplyObject(fake_read(peer));
	(void)fake_send(peer, SLICE("+OK\r\n"));
}

static void
closes_instead_of_an_answer(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
}

static void
closes_within_an_answer(struct fake_peer *peer)
{
	redisReply *command = fake_answer_until_check(peer);

	if (command == NULL)
		return;
	freeReplyObject(command);
	(void)fake_send(peer, SLICE("*3\r\n:1\r\n:178"));
}

static void
a_connection_that_ends_is_told_at_once(void **state)
{
	fake_fn *const endings[] = { closes_at_once, closes_after_auth, closes_instead_of_an_answer,
		closes_within_an_answer };

	for (size_t i = 0; i < LENGTH_OF(endings); i++) {
		open_with_deadline(endings[i], PATIENT_US);
		const struct decision decision = decide_in_time();

		assert_int_equal(decision.verdict, VERDICT_UNAVAILABLE);
		assert_true(decision.why == UNAVAILABLE_CONNECTION ||
			decision.why == UNAVAILABLE_BREAKER);
		assert_true(breaker_is_open(client.breaker));
		const struct decision next = decide_in_time();

		assert_unavailable(&next, UNAVAILABLE_BREAKER);
		(void)close_both(state);
	}
}

static void
a_server_that_is_not_there_is_told_at_once(void **state)
{
	open_both(never_speaks);
	(void)close_both(state);
	client_open(&client, &(const struct redis_settings){ .server = fake.address });
	const struct decision decision = decide_in_time();

	assert_unavailable(&decision, UNAVAILABLE_BREAKER);
	client_close(&client);
}

/* ---- what is no answer ---- */

static const char *bad_reply;

static void
answers_badly(struct fake_peer *peer)
{
	redisReply *command = fake_answer_until_check(peer);

	if (command == NULL)
		return;
	freeReplyObject(command);
	(void)fake_send(peer, slice_of(bad_reply));
	fake_read_on(peer);
}

static void
speaks_badly_at_once(struct fake_peer *peer)
{
	(void)fake_send(peer, slice_of(bad_reply));
	fake_read_on(peer);
}

static const char *const nonsense[] = { "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
	"\x15\x03\x01\x00\x02\x02\x46", "\r\n\r\n\r\n", "+OK\r\n", ":1\r\n", "$5\r\nhello\r\n",
	"*0\r\n", "*2\r\n:1\r\n:5\r\n", "*3\r\n:1\r\n:5\r\n:70000000\r\n",
	"*3\r\n:0\r\n:5\r\n:0\r\n", "*-2\r\n",
	"*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n*3\r\n", "$-7\r\n", ":x\r\n",
	"*1000000000\r\n", "*2147483647\r\n", "*52\r\n:1\r\n", "*2\r\n*1000000000\r\n" };

static void
nonsense_ends_the_connection_and_admits_nobody(void **state)
{
	for (size_t i = 0; i < LENGTH_OF(nonsense); i++) {
		bad_reply = nonsense[i];
		open_with_deadline(answers_badly, PATIENT_US);
		const struct decision decision = decide_in_time();

		assert_row(decision.verdict == VERDICT_UNAVAILABLE, "reply %zu was believed", i);
		assert_row(
			decision.why == UNAVAILABLE_REPLY || decision.why == UNAVAILABLE_CONNECTION,
			"reply %zu: %s", i, unavailable_names[decision.why]);
		assert_true(breaker_is_open(client.breaker));
		(void)close_both(state);
	}
}

static void
nonsense_instead_of_a_handshake_opens_the_breaker(void **state)
{
	for (size_t i = 0; i < LENGTH_OF(nonsense); i++) {
		bad_reply = nonsense[i];
		/* Some may be the beginning of one, and are found out by the deadline. */
		open_both(speaks_badly_at_once);
		const struct decision decision = decide_in_time();

		assert_row(decision.verdict == VERDICT_UNAVAILABLE, "reply %zu was believed", i);
		client_wait_for_breaker(&client, true);
		(void)close_both(state);
	}
}

static void
answers_twice(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_answer_until_check(peer)) != NULL) {
		(void)fake_answer(peer, command);
		(void)fake_answer(peer, command);
		freeReplyObject(command);
	}
}

static void
an_answer_to_nothing_ends_the_connection(void **state)
{
	open_with_deadline(answers_twice, PATIENT_US);
	const struct decision decision = decide_in_time();

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	client_wait_for_breaker(&client, true);
	(void)close_both(state);
}

/* Arrays in arrays, each of no more elements than one may have. */
static bool
send_arrays(struct fake_peer *peer, unsigned depth)
{
	if (!fake_send(peer, SLICE("*51\r\n")))
		return false;
	for (unsigned i = 0; i < 51; i++) {
		if (!(depth == 0 ? fake_send(peer, SLICE(":1\r\n")) : send_arrays(peer, depth - 1)))
			return false;
	}
	return true;
}

static void
answers_without_end(struct fake_peer *peer)
{
	freeReplyObject(fake_answer_until_check(peer));
	(void)send_arrays(peer, 5);
}

static void
a_reply_without_end_is_ended(void **state)
{
	open_with_deadline(answers_without_end, PATIENT_US);
	const struct decision decision = decide_in_time();

	assert_unavailable(&decision, UNAVAILABLE_CONNECTION);
	/* What we read, and what the kernel held. */
	assert_in_range(atomic_load(&fake.seen->bytes_sent), 10000, 1000000);
	(void)close_both(state);
}

#define fault_test(f) cmocka_unit_test(f)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		fault_test(the_deadline_holds_in_every_phase),
		fault_test(the_deadline_holds_while_connecting),
		fault_test(after_a_few_misses_nobody_waits_any_more),
		fault_test(a_server_that_is_always_late_is_asked_no_more),
		fault_test(an_answer_is_never_taken_for_that_to_another_check),
		fault_test(a_connection_that_ends_is_told_at_once),
		fault_test(a_server_that_is_not_there_is_told_at_once),
		fault_test(nonsense_ends_the_connection_and_admits_nobody),
		fault_test(nonsense_instead_of_a_handshake_opens_the_breaker),
		fault_test(an_answer_to_nothing_ends_the_connection),
		fault_test(a_reply_without_end_is_ended),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/faults", tests, NULL, NULL);
}
