/*
 * What a request costs the server that is rejected: about as little by a thousand leases as by ten,
 * since a flood can ask for it as often as it likes. So none of them is read but the first and the
 * last: that is counted exactly. The server's own count of time is only held against what reading
 * all of them costs, a hundred times as much, since the machine does other work meanwhile.
 */
#include "../lib/redis_server.h"
#include "client.h"
#include "weir/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL = 1000, FEW = 10, ROUNDS = 9, REJECTED = 100 };

static struct redis_server server;
static redisContext *direct;
static struct client client;
static struct asked asked[FULL];

static unsigned
ask_many(const struct made_limit *made, unsigned count, uint64_t first_lease)
{
	unsigned admitted = 0;

	client.answers = 0;
	for (unsigned i = 0; i < count; i++) {
		asked_init(&asked[i], &client, made, made->limit.name);
		asked[i].check.lease = first_lease + i;
		asked_send(&asked[i]);
	}
	run_loop_until(client.loop, client.answers == count);
	for (unsigned i = 0; i < count; i++) {
		assert_int_not_equal(asked[i].decision.verdict, VERDICT_UNAVAILABLE);
		admitted += asked[i].decision.verdict == VERDICT_ADMITTED;
	}
	return admitted;
}

/* How often the server has carried out this command since its counts were reset. */
static long long
calls_in(const char *commandstats, const char *command)
{
	char name[64];

	(void)snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
	const char *at = strstr(commandstats, name);

	return at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);
}

/* The server's own time for so many rejections; the least of some rounds, in nanoseconds each. Of
 * many leases the value is not read as a whole. */
static long long
rejecting_costs(const struct made_limit *made, bool reads_all)
{
	long long least = INT64_MAX;

	for (unsigned round = 0; round < ROUNDS; round++) {
		redis_ok(direct, "CONFIG RESETSTAT");
		assert_int_equal(ask_many(made, REJECTED, UINT64_C(1) << 50), 0);
		redisReply *reply = redis_command(direct, "INFO commandstats");
		const char *at = strstr(reply->str, "cmdstat_evalsha:calls=");

		assert_non_null(at);
		assert_int_equal(calls_in(reply->str, "evalsha"), REJECTED);
		assert_int_equal(calls_in(reply->str, "get"), reads_all ? REJECTED : 0);
		assert_int_equal(calls_in(reply->str, "getrange"), reads_all ? 0 : 2 * REJECTED);
		const long long us = strtoll(strstr(at, "usec=") + 5, NULL, 10);

		freeReplyObject(reply);
		least = us * 1000 / REJECTED < least ? us * 1000 / REJECTED : least;
	}
	return least;
}

/* Whatever their number, and not much more than by a bucket, which has a script of its own. */
static void
rejecting_at_a_thousand_leases_costs_about_what_it_does_at_ten(void **state)
{
	static struct made_limit plain, few, full, mixed;

	(void)state;
	make_limit(&plain, "plain", "1000/36500d");
	make_limit(&few, "few", "concurrent 10 lease 1h");
	make_limit(&full, "full", "concurrent 1000 lease 1h");
	make_limit(&mixed, "mixed", "9000/1d", "concurrent 1000 lease 1h", "9000/1d name other");
	assert_int_equal(ask_many(&plain, FULL, 1), FULL);
	assert_int_equal(ask_many(&few, FEW, 1), FEW);
	assert_int_equal(ask_many(&full, FULL, 1), FULL);
	assert_int_equal(ask_many(&mixed, FULL, 1), FULL);
	const long long plain_ns = rejecting_costs(&plain, true),
			few_ns = rejecting_costs(&few, true),
			full_ns = rejecting_costs(&full, false),
			mixed_ns = rejecting_costs(&mixed, false);

	print_message("rejecting costs the server %lld ns by a token bucket, %lld at ten leases, "
		      "%lld at a thousand, %lld with two buckets beside them\n",
		plain_ns, few_ns, full_ns, mixed_ns);
	assert_in_range(full_ns, 1, 15 * few_ns);
	assert_in_range(mixed_ns, 1, 15 * few_ns);
}

static int
group_setup(void **state)
{
	(void)state;
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	client_open(&client, &(const struct redis_settings){ .server = server.address });
	client_wait_until_ready(&client);
	return 0;
}

static int
group_teardown(void **state)
{
	(void)state;
	client_close(&client);
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rejecting_at_a_thousand_leases_costs_about_what_it_does_at_ten),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/engine_cost", tests, group_setup, group_teardown);
}
