/*
 * A decision is made by its deadline, wherever the server falls silent: while its name is looked
 * up, it is connected to, logged in to, or asked. (TLS: test_tls.c; sentinels: test_sentinel.c.)
 */
#include "../lib/sockets.h"
#include "client.h"
#include "fake.h"
#include "weir/counter.h"
#include "weir/log.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define DEADLINE_US (400 * US_PER_MS)

static struct made_limit made;

/* It has had its time, and not another. */
static void
assert_answered_by_the_deadline(struct client *client, enum unavailable why, const char *phase)
{
	struct asked asked;

	asked_init(&asked, client, &made, "k");
	asked_send(&asked);
	asked_wait(&asked);
	const int64_t took_us = asked.answered_at_us - asked.asked_at_us;

	assert_row(asked.decision.verdict == VERDICT_UNAVAILABLE, "%s: it was decided", phase);
	/* A handshake's time and the check's end together, and either may be told first. */
	assert_row(asked.decision.why == why ||
			(why == UNAVAILABLE_BREAKER && asked.decision.why == UNAVAILABLE_DEADLINE),
		"%s: %s", phase, unavailable_names[asked.decision.why]);
	assert_row(
		took_us < 2 * DEADLINE_US, "%s: answered after %lld us", phase, (long long)took_us);
}

/* ---- a server that falls silent at a command ---- */

static struct {
	const char *name; /* of the command that is not answered */
	bool is_check; /* of EVALSHA and EVAL: a client's */
	bool has_no_script;
} silence;

static void
serve_until_silence(struct fake_peer *peer)
{
	redisReply *command;

	while ((command = fake_read(peer)) != NULL) {
		const bool is_check = fake_is_check(command);
		const bool is_it = fake_is(command, silence.name) && is_check == silence.is_check;

		if (!is_it && silence.has_no_script && fake_is(command, "EVALSHA") &&
			is_check == silence.is_check)
			(void)fake_send(peer, SLICE("-NOSCRIPT No matching script.\r\n"));
		else if (!is_it)
			(void)fake_answer(peer, command);
		freeReplyObject(command);
		if (is_it)
			fake_read_on(peer);
	}
}

static void
silence_at_any_command_is_waited_for_no_longer(void **state)
{
	static const struct {
		const char *name;
		bool is_check, has_no_script;
		enum unavailable why;
	} rows[] = {
		{ "AUTH", false, false, UNAVAILABLE_BREAKER },
		{ "SELECT", false, false, UNAVAILABLE_BREAKER },
		{ "EVALSHA", false, false, UNAVAILABLE_BREAKER },
		{ "EVAL", false, true, UNAVAILABLE_BREAKER },
		{ "EVALSHA", true, false, UNAVAILABLE_DEADLINE },
		{ "EVAL", true, true, UNAVAILABLE_DEADLINE },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct client client;
		struct fake fake;

		silence.name = rows[i].name;
		silence.is_check = rows[i].is_check;
		silence.has_no_script = rows[i].has_no_script;
		fake_open(&fake, serve_until_silence);
		client_open(&client,
			&(const struct redis_settings){ .server = fake.address,
				.password = "secret",
				.database = 3,
				.deadline_us = DEADLINE_US });
		assert_answered_by_the_deadline(&client, rows[i].why, rows[i].name);
		assert_true(fake.seen->commands >= (i < 3 ? 1U : 4U));
		client_close(&client);
		fake_close(&fake);
	}
}

/* ---- before there is a connection ---- */

/* A full backlog of TCP answers nothing. */
static void
connection_that_is_not_taken_is_waited_for_no_longer(void **state)
{
	uint16_t port;
	const int listener = tcp_listen(0, &port), filler = tcp_connect(port);
	struct client client;

	(void)state;
	client_open(&client,
		&(const struct redis_settings){
			.server = { .kind = ADDRESS_TCP, .host = "127.0.0.1", .port = port },
			.deadline_us = DEADLINE_US });
	assert_answered_by_the_deadline(&client, UNAVAILABLE_BREAKER, "connect");
	client_close(&client);
	(void)close(filler);
	(void)close(listener);
}

static void
name_that_nobody_answers_for_is_waited_for_no_longer(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof name;
	struct directory directory;
	struct client client;
	char text[80];

	(void)state;
	assert_int_equal(bind(silent, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&name, &len), 0);
	(void)snprintf(text, sizeof text, "nameserver 127.0.0.1:%u\n", ntohs(name.sin_port));
	directory_make(&directory);
	directory_write(&directory, "resolv.conf", slice_of(text));
	client_open_with(&client,
		&(const struct redis_settings){
			.server = { .kind = ADDRESS_TCP, .host = "redis.test", .port = 6379 },
			.deadline_us = DEADLINE_US },
		NULL, directory_path(&directory, "resolv.conf").text);
	assert_answered_by_the_deadline(&client, UNAVAILABLE_BREAKER, "resolve");
	/* It was asked. */
	assert_true(recv(silent, text, sizeof text, MSG_DONTWAIT) > 0);
	client_close(&client);
	(void)close(silent);
	directory_remove(&directory);
}

static int
group_setup(void **state)
{
	(void)state;
	make_limit(&made, "l", "5/1m");
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_at_any_command_is_waited_for_no_longer),
		cmocka_unit_test(connection_that_is_not_taken_is_waited_for_no_longer),
		cmocka_unit_test(name_that_nobody_answers_for_is_waited_for_no_longer),
	};
	struct err err;

	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return counter_thread_start(&err) != 0
		? 1
		: cmocka_run_group_tests_name("redis/deadlines", tests, group_setup, NULL);
}
