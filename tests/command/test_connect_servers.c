/* What `weir check --connect` says of servers that are no good for limits, of those that may not be
 * some day, and of none. */
#include "../redis/said.h"
#include "connecting.h"

#include <stdio.h>
#include <unistd.h>

static void
a_replica_is_told(void **state)
{
	(void)state;
	redis_ok(direct, "REPLICAOF 127.0.0.1 1");
	assert_refused("", "weir.ini:7: [redis] server: unix:");
	assert_said("it is a replica, which counts nothing; name the master");
}

static void
a_server_that_may_evict_limits_is_told(void **state)
{
	static const char *const policies[] = { "allkeys-lru", "volatile-ttl", "volatile-random" };

	(void)state;
	redis_ok(direct, "CONFIG SET maxmemory 100mb");
	assert_good("");
	assert_printed("when its maxmemory of 100 MiB is full it refuses to count (OOM)");
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		char text[100];

		redis_ok(direct, "CONFIG SET maxmemory-policy %s", policies[i]);
		assert_int_equal(check(""), 0);
		(void)snprintf(text, sizeof text, "maxmemory-policy %s evicts limits", policies[i]);
		assert_said(text);
		assert_said("weir.ini:7: [redis] server: warning: unix:");
		assert_printed("weir.ini: good, with warnings\n");
	}
	redis_ok(direct, "CONFIG SET maxmemory 0");
	assert_good("");
}

static void
a_server_that_is_full_is_told(void **state)
{
	(void)state;
	redis_ok(direct, "CONFIG SET maxmemory 1");
	assert_refused("", "it refuses SET: OOM ");
	assert_said("; raise the server's maxmemory\n");
}

static void
a_server_of_a_cluster_is_told(void **state)
{
	struct redis_server other;

	(void)state;
	redis_server_open(&other, (const char *const[]){ "--cluster-enabled", "yes", NULL });
	assert_int_equal(check_at(other.address.host, ""), 1);
	assert_said("it is a server of a Redis Cluster, which has only some of the keys; write "
		    "cluster = ");
	assert_said("weir.ini: 1 error\n");
	redis_server_close(&other);
}

/* ---- servers of other kinds ---- */

/* What a server says that answers so. */
static int
check_said(const char *keys)
{
	struct fake fake;

	fake_open(&fake, answers_as_said);
	const int status = check_at(fake.address.host, keys);

	fake_close(&fake);
	return status;
}

static void
a_server_that_is_too_old_is_told(void **state)
{
	(void)state;
	SAID({ "HELLO", "-ERR unknown command `HELLO`\r\n" },
		{ "INFO", "$44\r\nredis_version:4.0.9\r\nredis_mode:standalone\r\n\r\n" });
	assert_int_equal(check_said(""), 1);
	assert_said("Redis 4.0.9 is too old: before 5.0 a script cannot write once it has read the "
		    "clock\n");
	assert_said("weir.ini: 1 error\n");
}

static void
a_server_that_loads_its_data_is_told(void **state)
{
	(void)state;
	SAID({ "TIME", "-LOADING Redis is loading the dataset in memory\r\n" });
	assert_int_equal(check_said(""), 1);
	assert_said("it refuses TIME: LOADING Redis is loading the dataset in memory\n");
	assert_said("weir.ini: 1 error\n");
}

/* What waits for a person, as far as the server's own words do not say it. */
static void
what_may_cure_it_is_told(void **state)
{
	static const struct {
		const char *answer, *text;
	} rows[] = {
		{ "-NOREPLICAS Not enough good replicas to write.\r\n",
			"it refuses SET: NOREPLICAS Not enough good replicas to write.; it has "
			"fewer "
			"replicas than its min-replicas-to-write\n" },
		{ "-CLUSTERDOWN The cluster is down\r\n",
			"it refuses SET: CLUSTERDOWN The cluster is down; slots have no server; "
			"cluster-require-full-coverage no lets the others go on\n" },
		{ "-MISCONF Errors writing to the AOF file\r\n",
			"; the server cannot save its data: look at its disk and its log\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		SAID({ "SET", rows[i].answer });
		assert_int_equal(check_said(""), 1);
		assert_said(rows[i].text);
		assert_said("weir.ini: 1 error\n");
	}
}

/* Since 1970. */
static void
a_clock_that_is_wrong_is_told(void **state)
{
	(void)state;
	SAID({ NULL, NULL });
	assert_int_equal(check_said(""), 0);
	assert_said("weir.ini:7: [redis] server: warning: unix:");
	assert_said(": its clock is ");
	assert_said(" behind this host's; limits go by its clock");
}

static void
a_server_that_is_far_away_is_told(void **state)
{
	(void)state;
	SAID({ NULL, NULL });
	said_delay_ms = 60;
	assert_int_equal(check_said("deadline = 110ms\n"), 0);
	assert_said("weir.ini:8: [redis] deadline: warning: unix:");
	assert_said(": a decision takes ");
	assert_said(" there and back, of a deadline of 110 ms: many will miss it");
	assert_int_equal(check_said("deadline = 10s\n"), 0);
	assert_false(process_said(&checker, "a decision takes "));
	said_delay_ms = 0;
}

/* ---- no server ---- */

static void
a_server_that_is_not_there_is_told(void **state)
{
	const struct directory_path gone = directory_path(&directory, "gone.sock");
	const int fd = unix_listen(directory_path(&directory, "left.sock").text, 1);

	(void)state;
	(void)close(fd);
	assert_int_equal(check_at(gone.text, ""), 1);
	assert_said("it cannot be connected to: No such file or directory");
	assert_int_equal(check_at(directory_path(&directory, "left.sock").text, ""), 1);
	assert_said("nobody listens there: Connection refused; start the server");
	assert_said("weir.ini: 1 error\n");
}

static void
a_silent_server_is_told(void **state)
{
	(void)state;
	redis_server_freeze(&server);
	assert_refused("deadline = 10ms\n", "it does not answer as a Redis does: it is silent\n");
	redis_server_thaw(&server);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_replica_is_told),
		TEST(a_server_that_may_evict_limits_is_told),
		TEST(a_server_that_is_full_is_told),
		TEST(a_server_of_a_cluster_is_told),
		TEST(a_server_that_is_too_old_is_told),
		TEST(a_server_that_loads_its_data_is_told),
		TEST(what_may_cure_it_is_told),
		TEST(a_clock_that_is_wrong_is_told),
		TEST(a_server_that_is_far_away_is_told),
		TEST(a_server_that_is_not_there_is_told),
		TEST(a_silent_server_is_told),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests_name(
		"command/connect_servers", tests, connect_group_setup, connect_group_teardown);
}
