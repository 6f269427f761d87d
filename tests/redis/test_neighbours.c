/*
 * redis.h over a real server: several processes of a host, by the memory that they share. What one
 * suffers for reasons of its own is nothing to the others.
 */
#include "../../src/redis/redis_private.h"
#include "../lib/redis_server.h"
#include "client.h"
#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/log.h"
#include "weir/memory.h"

static struct redis_server server;
static redisContext *direct;
static struct made_limit made;
static _Alignas(64) uint8_t area[MEMORY_AREA_SIZE];

static int
setup(void **state)
{
	(void)state;
	memset(area, 0, sizeof area);
	make_limit(&made, "l", "1000/1h");
	redis_server_open(&server, NULL);
	direct = redis_server_connect(&server);
	redis_ok(direct, "ACL SETUSER us on >secret ~* +@all");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	redisFree(direct);
	redis_server_close(&server);
	return 0;
}

static void
open_as(struct client *client, const struct redis_settings *settings)
{
	struct redis_settings copy = *settings;

	copy.server = server.address;
	client_open_shared(client, &copy, area);
}

static void
whoever_cannot_use_redis_takes_it_from_nobody_else(void **state)
{
	static const struct redis_settings good = { .username = "us", .password = "secret" };
	static const struct redis_settings bad[] = {
		{ .username = "us", .password = "wrong" },
		{ .username = "nobody", .password = "secret" },
		{ .username = "us", .password = "secret", .database = 99 },
		{ .username = "few", .password = "secret", .prefix = "other:" },
	};
	struct client client, other;

	(void)state;
	redis_ok(direct, "ACL SETUSER few on >secret ~weir:* +@all");
	open_as(&client, &good);
	client_wait_until_ready(&client);
	for (size_t i = 0; i < LENGTH_OF(bad); i++) {
		open_as(&other, &bad[i]);
		client_wait_for_breaker(&other, true);
		assert_false(breaker_is_open(client.breaker));
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
		client_close(&other);
	}
	/* The two that are connected are all that it takes. */
	redis_ok(direct, "CONFIG SET maxclients 2");
	open_as(&other, &good);
	client_wait_for_breaker(&other, true);
	for (unsigned i = 0; i < 20; i++) {
		run_loop_for_ms(other.loop, 20);
		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	}
	assert_false(breaker_is_open(client.breaker));
	redis_ok(direct, "CONFIG SET maxclients 100");
	client_wait_for_breaker(&other, false);
	client_close(&other);
	/* But what is the server's own is told to all who use it alike. */
	open_as(&other, &good);
	client_wait_until_ready(&other);
	redis_server_kill(&server);
	client_wait_for_breaker(&other, true);
	client_wait_for_breaker(&client, true);
	client_close(&other);
	client_close(&client);
	redis_server_start(&server, NULL);
}

/* Without a check that would do it. */
static void
who_finds_that_a_neighbour_has_closed_the_breaker_connects_as_well(void **state)
{
	struct redis_settings settings = { .username = "us", .password = "secret" };
	struct client clients[2];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(clients); i++) {
		open_as(&clients[i], &settings);
		client_wait_until_ready(&clients[i]);
	}
	redis_server_kill(&server);
	for (size_t i = 0; i < LENGTH_OF(clients); i++)
		client_wait_for_breaker(&clients[i], true);
	run_loop_while(clients[1].loop, clients[1].redis->state != REDIS_DOWN);
	redisFree(direct);
	redis_server_start(&server, NULL);
	direct = redis_server_connect(&server);
	redis_ok(direct, "ACL SETUSER us on >secret ~* +@all");
	client_wait_for_breaker(&clients[0], false);
	run_loop_while(clients[1].loop, clients[1].redis->state != REDIS_READY);
	for (size_t i = 0; i < LENGTH_OF(clients); i++)
		client_close(&clients[i]);
}

/* Redis lets go on who logged in with the old one. */
static void
a_password_that_was_changed_is_whose_trouble_it_is(void **state)
{
	static const struct redis_settings old = { .username = "us", .password = "secret" };
	struct client client, late;

	(void)state;
	open_as(&client, &old);
	client_wait_until_ready(&client);
	redis_ok(direct, "ACL SETUSER us resetpass >new");
	open_as(&late, &old);
	client_wait_for_breaker(&late, true);
	assert_false(breaker_is_open(client.breaker));
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	/* And it is over when it is over. */
	redis_ok(direct, "ACL SETUSER us resetpass >secret");
	client_wait_for_breaker(&late, false);
	assert_int_equal(client_decide(&late, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&late);
	client_close(&client);
}

/* ---- found open ---- */

static char said[4096];

static void
keep_line(void *context, enum log_level level, const char *line, size_t len)
{
	const size_t used = strlen(said);

	(void)context, (void)level;
	if (len < sizeof said - used)
		memcpy(said + used, line, len);
}

/* A state on a disk whose host was started anew: the monotonic clock was far ahead. */
static void
a_breaker_from_before_the_host_was_started_is_said_and_closes(void **state)
{
	const struct redis_settings settings = { .server = server.address, .prefix = "weir:" };
	const struct breaker_areas areas = { .host = area, .size = sizeof area };
	struct breaker *breaker = redis_breaker(&settings, &areas);
	struct client client;

	(void)state;
	assert_non_null(breaker);
	assert_true(breaker_open(breaker, clock_monotonic_us() + 30 * US_PER_DAY));
	log_set_sink(keep_line, NULL);
	log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	open_as(&client, &settings);
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
	assert_row(strstr(said, "The breaker was found open") != NULL, "%s", said);
	client_wait_for_breaker(&client, false);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
	breaker_free(breaker);
}

/* The neighbour who closes it, in the moment when the log is told that it is open. */
static struct breaker *closing;

static void
close_once(void *context, enum log_level level, const char *line, size_t len)
{
	struct breaker *breaker = closing;

	(void)context, (void)level, (void)line, (void)len;
	closing = NULL;
	if (breaker != NULL)
		assert_true(breaker_close(breaker));
}

static void
hear_closing(struct breaker *breaker)
{
	closing = breaker;
	log_set_sink(close_once, NULL);
	log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
}

static void
assert_connects_unasked(struct client *client)
{
	run_loop_while(client->loop, client->redis->state != REDIS_READY);
	assert_null(closing);
	assert_false(breaker_is_open(client->breaker));
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
}

/* Between the look at the breaker and that at the time of the next probe: there is none to wait
 * for, and nobody who asks. */
static void
a_breaker_that_is_closed_while_it_is_looked_at_leaves_nobody_without_a_connection(void **state)
{
	const struct redis_settings settings = { .server = server.address, .prefix = "weir:" };
	const struct breaker_areas areas = { .host = area, .size = sizeof area };
	struct breaker *breaker = redis_breaker(&settings, &areas);
	struct client client;

	(void)state;
	assert_non_null(breaker);
	/* When it was found open, */
	assert_true(breaker_open(breaker, clock_monotonic_us()));
	hear_closing(breaker);
	open_as(&client, &settings);
	assert_connects_unasked(&client);
	/* and when the store itself has opened it. */
	redis_server_kill(&server);
	hear_closing(breaker);
	run_loop_while(client.loop, closing != NULL);
	redis_server_start(&server, NULL);
	assert_connects_unasked(&client);
	client_close(&client);
	breaker_free(breaker);
}

/* Whose connection ends while the breaker is open has made no probe. */
static void
probes_that_fail_are_counted_and_connections_that_end_are_not(void **state)
{
	const struct redis_settings settings = { .prefix = "weir:" };
	const int64_t before = counter_sum(COUNT_BREAKER_PROBES_FAILED);
	struct client clients[2];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(clients); i++) {
		open_as(&clients[i], &settings);
		client_wait_until_ready(&clients[i]);
	}
	assert_true(breaker_open(clients[0].breaker, clock_monotonic_us() + 500 * US_PER_MS));
	redis_server_kill(&server);
	for (size_t i = 0; i < LENGTH_OF(clients); i++)
		run_loop_for_ms(clients[i].loop, 50);
	assert_int_equal(counter_sum(COUNT_BREAKER_PROBES_FAILED) - before, 0);
	run_loop_while(clients[0].loop, counter_sum(COUNT_BREAKER_PROBES_FAILED) - before == 0);
	for (size_t i = 0; i < LENGTH_OF(clients); i++)
		client_close(&clients[i]);
	redis_server_start(&server, NULL);
}

#define neighbour_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		neighbour_test(whoever_cannot_use_redis_takes_it_from_nobody_else),
		neighbour_test(who_finds_that_a_neighbour_has_closed_the_breaker_connects_as_well),
		neighbour_test(a_password_that_was_changed_is_whose_trouble_it_is),
		neighbour_test(probes_that_fail_are_counted_and_connections_that_end_are_not),
		neighbour_test(a_breaker_from_before_the_host_was_started_is_said_and_closes),
		neighbour_test(
			a_breaker_that_is_closed_while_it_is_looked_at_leaves_nobody_without_a_connection),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return cmocka_run_group_tests_name("redis/neighbours", tests, NULL, NULL);
}
