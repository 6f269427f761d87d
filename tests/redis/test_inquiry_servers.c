/*
 * inquiry.h of servers that do not stand alone: whom they know, and what those are asked that may
 * not be written to.
 */
#include "asking.h"

#include <stdio.h>

#define ENTRY(host, port) "*2\r\n$9\r\n" host "\r\n:" port "\r\n"

static void
a_node_may_have_the_key_or_not(void **state)
{
	(void)state;
	SAID({ "SET", "-MOVED 5 192.0.2.1:6379\r\n" },
		{ "GET", "-NOPERM this user has no permissions to run the 'get' command\r\n" },
		{ "CLUSTER",
			"*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n192.0.2.1\r\n:6379\r\n"
			"*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n192.0.2.2\r\n:6379\r\n" });
	ask_as(answers_as_said, INQUIRY_NODE);
	assert_int_equal(report.end, INQUIRY_ANSWERED);
	assert_true(report.was_asked[INQUIRY_ASKING] == (report.mode != INQUIRY_MODE_ALONE));
	assert_string_equal(report.refusals[INQUIRY_SET], "");
	assert_true(strncmp(report.refusals[INQUIRY_GET], "NOPERM", 6) == 0);
	SAID({ "HELLO", "*2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n" },
		{ "CLUSTER",
			"*2\r\n*3\r\n:0\r\n:8191\r\n*2\r\n$9\r\n192.0.2.1\r\n:6379\r\n"
			"*3\r\n:8192\r\n:16383\r\n*2\r\n$9\r\n192.0.2.2\r\n:6379\r\n" });
	ask_as(answers_as_said, INQUIRY_NODE);
	assert_int_equal(report.server_count, 2);
	assert_string_equal(report.servers[1].address.host, "192.0.2.2");
}

/* Each once, whether it is a master or not; and the slots that nobody has. */
static void
a_node_tells_all_servers_and_who_has_what(void **state)
{
	static const struct {
		const char *host;
		unsigned slots;
	} rows[] = { { "192.0.2.1", 101 }, { "192.0.2.2", 16000 }, { "192.0.2.3", 0 },
		{ "192.0.2.4", 0 } };
	unsigned missing = 0;

	(void)state;
	SAID({ "HELLO", "*2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n" },
		{ "CLUSTER",
			"*3\r\n*4\r\n:0\r\n:99\r\n" ENTRY("192.0.2.1", "1")
				ENTRY("192.0.2.3", "3") "*3\r\n:101\r\n:101\r\n" ENTRY("192.0.2.1",
					"1") "*6\r\n:384\r\n:16383\r\n" ENTRY("192.0.2.2", "2")
					ENTRY("192.0.2.4", "4") ENTRY("192.0.2.3", "3")
						ENTRY("192.0.2.?", "5") });
	ask_as(answers_as_said, INQUIRY_NODE);
	assert_int_equal(report.server_count, LENGTH_OF(rows));
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		unsigned at = 0;

		while (at < report.server_count &&
			strcmp(report.servers[at].address.host, rows[i].host) != 0)
			at++;
		assert_row(at < report.server_count, "%s", rows[i].host);
		assert_int_equal(report.servers[at].slots, rows[i].slots);
	}
	for (unsigned slot = 0; slot < INQUIRY_ALL_SLOTS; slot++)
		missing += !report.is_served[slot];
	assert_int_equal(missing, INQUIRY_ALL_SLOTS - 101 - 16000);
	assert_true(report.is_served[101] && !report.is_served[100] && !report.is_served[102]);
	assert_false(report.names_more);
}

/* As many as a liar likes. */
static void
servers_beyond_the_most_are_not_taken(void **state)
{
	static char answer[INQUIRY_SERVERS_MAX * 80];
	size_t len = (size_t)snprintf(answer, sizeof answer, "*%d\r\n", INQUIRY_SERVERS_MAX + 1);

	(void)state;
	for (unsigned i = 0; i <= INQUIRY_SERVERS_MAX; i++)
		len += (size_t)snprintf(answer + len, sizeof answer - len,
			"*3\r\n:%u\r\n:%u\r\n*2\r\n$9\r\n192.0.2.1\r\n:%u\r\n", i, i, i + 1);
	SAID({ "HELLO", "*2\r\n$4\r\nmode\r\n$7\r\ncluster\r\n" }, { "CLUSTER", answer });
	ask_as(answers_as_said, INQUIRY_NODE);
	assert_int_equal(report.server_count, INQUIRY_SERVERS_MAX);
	assert_true(report.names_more && report.is_served[INQUIRY_SERVERS_MAX]);
}

static void
a_sentinel_tells_the_master(void **state)
{
	(void)state;
	SAID({ "SENTINEL", "*2\r\n$9\r\n192.0.2.7\r\n$4\r\n6379\r\n" });
	ask_as(answers_as_said, INQUIRY_SENTINEL);
	assert_int_equal(report.server_count, 1);
	assert_string_equal(report.servers[0].address.host, "192.0.2.7");
	assert_false(report.was_asked[INQUIRY_SET]);
	SAID({ "SENTINEL", "*2\r\n$9\r\n192 0.2.7\r\n$4\r\n6379\r\n" });
	ask_as(answers_as_said, INQUIRY_SENTINEL);
	assert_int_equal(report.server_count, 0);
	SAID({ "SENTINEL", "*-1\r\n" });
	ask_as(answers_as_said, INQUIRY_SENTINEL);
	assert_int_equal(report.server_count, 0);
	assert_int_equal(report.end, INQUIRY_ANSWERED);
}

static void
a_master_tells_its_replicas(void **state)
{
	(void)state;
	SAID({ "ROLE",
		"*3\r\n$6\r\nmaster\r\n:7\r\n*3\r\n"
		"*3\r\n$9\r\n192.0.2.7\r\n$4\r\n6379\r\n$1\r\n7\r\n"
		"*3\r\n$9\r\n192.0.2. \r\n$4\r\n6379\r\n$1\r\n7\r\n*1\r\n:5\r\n" });
	ask_as(answers_as_said, INQUIRY_MASTER_OF_SENTINELS);
	assert_int_equal(report.server_count, 1);
	assert_string_equal(report.servers[0].address.host, "192.0.2.7");
	assert_int_equal(report.servers[0].address.port, 6379);
	ask_as(answers_as_said, INQUIRY_ALONE);
	assert_int_equal(report.server_count, 0);
}

/* It refuses what it is not asked for as a replica, and what its user may not do all the same. */
static void
a_replica_is_asked_for_rights_alone(void **state)
{
	(void)state;
	SAID({ "SET", "-READONLY You can't write against a read only replica.\r\n" },
		{ "DEL", "-NOPERM this user has no permissions to run the 'del' command\r\n" },
		{ "ROLE", "*2\r\n$5\r\nslave\r\n$1\r\nx\r\n" });
	ask_as(answers_as_said, INQUIRY_REPLICA);
	assert_string_equal(report.refusals[INQUIRY_SET], "");
	assert_int_equal(strncmp(report.refusals[INQUIRY_DEL], "NOPERM", 6), 0);
	assert_true(report.was_asked[INQUIRY_ROLE] && !report.was_asked[INQUIRY_ENGINE]);
	ask_as(answers_as_said, INQUIRY_ALONE);
	assert_int_equal(strncmp(report.refusals[INQUIRY_SET], "READONLY", 8), 0);
}

/* Of a server that limits do not use yet nothing else is known, and nothing is written there. */
static void
a_candidate_is_asked_for_its_role_alone(void **state)
{
	static const char *const answers[] = { "*3\r\n$6\r\nmaster\r\n:7\r\n*0\r\n",
		"*2\r\n$5\r\nslave\r\n$1\r\nx\r\n", "-NOAUTH Authentication required.\r\n" };
	static const char *const roles[] = { "master", "slave", "" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(answers); i++) {
		SAID({ "ROLE", answers[i] });
		ask_as(answers_as_said, INQUIRY_CANDIDATE);
		assert_int_equal(report.end, INQUIRY_ANSWERED);
		assert_string_equal(report.role, roles[i]);
		for (unsigned question = 0; question < INQUIRY_QUESTIONS; question++)
			assert_row(report.was_asked[question] == (question == INQUIRY_ROLE), "%u",
				question);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_may_have_the_key_or_not),
		cmocka_unit_test(a_node_tells_all_servers_and_who_has_what),
		cmocka_unit_test(servers_beyond_the_most_are_not_taken),
		cmocka_unit_test(a_sentinel_tells_the_master),
		cmocka_unit_test(a_master_tells_its_replicas),
		cmocka_unit_test(a_replica_is_asked_for_rights_alone),
		cmocka_unit_test(a_candidate_is_asked_for_its_role_alone),
	};

	return cmocka_run_group_tests_name("redis/inquiry_servers", tests, NULL, NULL);
}
