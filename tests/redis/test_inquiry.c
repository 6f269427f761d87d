/*
 * inquiry.h over servers that are not quite Redis: what they say is read with care, and whatever
 * they do there is an end.
 */
#include "asking.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

static void
what_a_server_is_is_told(void **state)
{
	(void)state;
	SAID({ NULL, NULL });
	ask(answers_as_said);
	assert_int_equal(report.end, INQUIRY_ANSWERED);
	assert_string_equal(report.name, "valkey");
	assert_string_equal(report.version, "8.1.1");
	assert_int_equal(report.major, 8);
	assert_int_equal(report.mode, INQUIRY_MODE_ALONE);
	assert_string_equal(report.role, "master");
	assert_false(report.was_asked[INQUIRY_ROLE] || report.was_asked[INQUIRY_INFO_SERVER]);
	assert_true(report.has_clock && report.ahead_us < -1000000000 * US_PER_S);
	assert_true(report.round_trip_us > 0);
	assert_true(report.has_memory);
	assert_int_equal(report.used_memory, 7);
	for (unsigned i = 0; i < INQUIRY_QUESTIONS; i++)
		assert_string_equal(report.refusals[i], "");
}

/* Redis 5 and before. */
static void
a_server_that_knows_no_hello_is_asked_otherwise(void **state)
{
	(void)state;
	SAID({ "HELLO", "-ERR unknown command `HELLO`\r\n" },
		{ "INFO",
			"$54\r\n# Server\r\nredis_version:4.0.9\r\nredis_mode:standalone\r\n\r\n" },
		{ "ROLE", "*1\r\n$5\r\nslave\r\n" });
	ask(answers_as_said);
	assert_int_equal(report.end, INQUIRY_ANSWERED);
	assert_string_equal(report.version, "4.0.9");
	assert_int_equal(report.major, 4);
	assert_int_equal(report.mode, INQUIRY_MODE_ALONE);
	assert_string_equal(report.role, "slave");
}

static void
after_some_words_nothing_more_is_asked(void **state)
{
	static const char *const words[] = { "-NOAUTH Authentication required.\r\n",
		"-LOADING Redis is loading the dataset in memory\r\n" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(words); i++) {
		SAID({ "TIME", words[i] });
		ask(answers_as_said);
		assert_int_equal(report.end, INQUIRY_ANSWERED);
		assert_true(report.was_asked[INQUIRY_TIME]);
		assert_false(report.was_asked[INQUIRY_SET]);
		assert_int_equal(strncmp(report.refusals[INQUIRY_TIME], words[i] + 1, 6), 0);
	}
}

/* It is told before the login is, which may be wrong because of it. */
static void
what_it_is_is_asked_though_it_takes_no_login(void **state)
{
	(void)state;
	SAID({ "AUTH", "-WRONGPASS invalid username-password pair or user is disabled.\r\n" },
		{ "HELLO", "*2\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n" });
	password = "secret";
	ask(answers_as_said);
	password = NULL;
	assert_int_equal(report.mode, INQUIRY_MODE_SENTINEL);
	assert_true(report.was_asked[INQUIRY_HELLO] && !report.was_asked[INQUIRY_TIME]);
	assert_int_equal(strncmp(report.refusals[INQUIRY_AUTH], "WRONGPASS", 9), 0);
}

/* Of those that are easily taken for another's. */
static void
what_is_wrong_leads_to_what_is_right(void **state)
{
	static const struct {
		const char *why, *remedy;
	} rows[] = {
		{ "it does not trust the CA of our client certificate", "tls_cert and tls_key" },
		{ "it wants a client certificate", "write tls_cert and tls_key" },
		{ "it refuses the TLS handshake; it may want a client certificate",
			"write tls_cert and tls_key" },
		{ "its certificate has expired", "tls_ca, tls_cert and tls_name" },
		{ "what it sends is not TLS", "write tcp: in place of tls:" },
		{ "no sentinel answers: ERR unknown command 'SENTINEL'",
			"it is no sentinel but a server" },
		{ "ERR unknown command 'EVALSHA'", "it is a sentinel " },
		{ "MOVED 5 192.0.2.1:6379", "it is one of a cluster" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const char *remedy = redis_remedy(rows[i].why);

		assert_row(remedy != NULL && strstr(remedy, rows[i].remedy) != NULL, "%s: %s",
			rows[i].why, remedy == NULL ? "" : remedy);
	}
	assert_null(redis_remedy("Connection refused"));
}

/* ---- peers of ill will ---- */

static void
never_ends(struct fake_peer *peer)
{
	(void)fake_send(peer, SLICE("$1000000000\r\n"));
	while (fake_send(peer, SLICE("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")))
		;
}

static void
says_nothing(struct fake_peer *peer)
{
	fake_read_on(peer);
}

static void
closes(struct fake_peer *peer)
{
	freeReplyObject(fake_read(peer));
}

static void
says_twice(struct fake_peer *peer)
{
	freeReplyObject(fake_read(peer));
	(void)fake_send(peer, SLICE("+OK\r\n+OK\r\n"));
	fake_read_on(peer);
}

static void
whatever_a_server_does_there_is_an_end(void **state)
{
	static const struct {
		fake_fn *serve;
		const char *reason;
	} rows[] = { { never_ends, "its answer does not end" }, { says_nothing, "it is silent" },
		{ closes, "it closed the connection" },
		{ says_twice, "it answered what was not asked" } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		ask(rows[i].serve);
		assert_int_equal(report.end, INQUIRY_LOST);
		assert_string_equal(report.reason, rows[i].reason);
	}
}

/* Of any question. */
static void
answers_that_fit_nothing_are_not_believed(void **state)
{
	static const char *const nonsense[] = { ":1\r\n", "$-1\r\n", "*0\r\n", "+\r\n",
		"*2\r\n:1\r\n:2\r\n", "*3\r\n$0\r\n\r\n*1\r\n*0\r\n$4\r\nmode\r\n",
		"*2\r\n$7\r\nversion\r\n$40\r\n9999999999999999999999999999999999999999\r\n",
		"$22\r\nmaxmemory:-1\r\nused_mem\r\n" };
	static const char *const broken[] = { "HTTP/1.1 400\r\n\r\n", "*2000000\r\n",
		"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", "\x15\x03\x01" };

	(void)state;
	for (enum inquiry_kind kind = INQUIRY_ALONE; kind <= INQUIRY_SENTINEL; kind++) {
		for (size_t i = 0; i < LENGTH_OF(nonsense); i++) {
			said_list = (const struct said[]){ { NULL, nonsense[i] } };
			ask_as(answers_as_said, kind);
			assert_int_equal(report.end, INQUIRY_ANSWERED);
			assert_false(report.has_memory || report.has_clock);
			assert_int_equal(report.server_count, 0);
		}
	}
	for (size_t i = 0; i < LENGTH_OF(broken); i++) {
		said_list = (const struct said[]){ { NULL, broken[i] } };
		ask(answers_as_said);
		assert_int_equal(report.end, INQUIRY_LOST);
		assert_string_equal(report.reason, "what it sends is not Redis's protocol");
	}
}

/* It may be shown on a terminal. */
static void
words_of_a_server_are_made_harmless(void **state)
{
	(void)state;
	SAID({ "HELLO", "*2\r\n$7\r\nversion\r\n$8\r\n8\x1b[2J\n!a\r\n" },
		{ "TIME", "-ERR \x1b]0;x\x07y\r\n" });
	ask(answers_as_said);
	assert_string_equal(report.version, "8?[2J?!a");
	assert_string_equal(report.refusals[INQUIRY_TIME], "ERR ?]0;x?y");
}

static void
who_is_not_there_is_told(void **state)
{
	const struct address nobody = { .kind = ADDRESS_UNIX, .host = "/nonexistent/socket" };
	const struct address nowhere = {
		.kind = ADDRESS_TCP, .host = "no host has this name", .port = 1
	};

	(void)state;
	ask_at(&nobody, INQUIRY_ALONE);
	assert_int_equal(report.end, INQUIRY_UNREACHED);
	assert_int_equal(report.error, ENOENT);
	ask_at(&nowhere, INQUIRY_ALONE);
	assert_int_equal(report.end, INQUIRY_UNKNOWN);
	assert_true(report.reason[0] != '\0');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_server_is_is_told),
		cmocka_unit_test(a_server_that_knows_no_hello_is_asked_otherwise),
		cmocka_unit_test(after_some_words_nothing_more_is_asked),
		cmocka_unit_test(what_it_is_is_asked_though_it_takes_no_login),
		cmocka_unit_test(what_is_wrong_leads_to_what_is_right),
		cmocka_unit_test(whatever_a_server_does_there_is_an_end),
		cmocka_unit_test(answers_that_fit_nothing_are_not_believed),
		cmocka_unit_test(words_of_a_server_are_made_harmless),
		cmocka_unit_test(who_is_not_there_is_told),
	};

	return cmocka_run_group_tests_name("redis/inquiry", tests, NULL, NULL);
}
