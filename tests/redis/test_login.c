/* redis.h over a real server: which one it is, as whom, and in which database. */
#include "client.h"
#include "one_server.h"
#include "weir/log.h"

#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	make_limit(&made, "l", "5/1h");
	return 0;
}

static void
another_database_is_another_store(void **state)
{
	struct client client;

	(void)state;
	for (uint64_t database = 0; database <= 9; database += 9) {
		client_open(&client,
			&(const struct redis_settings){
				.server = server.address, .database = database });
		const struct decision decision = client_decide(&client, &made, "k");

		assert_int_equal(decision.verdict, VERDICT_ADMITTED);
		assert_int_equal(decision.outcomes[0].remaining, 4);
		client_close(&client);
	}
	redis_ok(direct, "SELECT 9");
	assert_int_equal(redis_number(direct, "EXISTS weir:k"), 1);
	redis_ok(direct, "SELECT 0");
}

static enum verdict
verdict_as(const char *username, const char *password, uint64_t database)
{
	struct client other;

	client_open(&other,
		&(const struct redis_settings){ .server = server.address,
			.username = username,
			.password = password,
			.database = database });
	struct decision decision = client_decide(&other, &made, "as");

	/* Enough for all that ever is asked: fields of others, and two limits. */
	if (decision.verdict != VERDICT_UNAVAILABLE) {
		struct made_limit before, after;
		struct asked asked;

		make_limit(&before, "l", "5/1h name before");
		make_limit(&after, "l", "5/1h name after", "7/1d");
		(void)client_decide(&other, &before, "as");
		asked_init(&asked, &other, &after, "as");
		asked_add(&asked, &made, "too");
		asked_send(&asked);
		asked_wait(&asked);
		decision = asked.decision;
	}
	client_close(&other);
	return decision.verdict;
}

/* A user with the rights that the manual names, and no others. */
static void
make_user_of_the_manual(void)
{
	static const char mark[] = "ACL SETUSER weir on >PASSWORD ~weir:* \\-@all ";
	const char *top = getenv("TOP_SRCDIR");
	char path[1000], line[1000], *rest;
	unsigned rights = 0;

	(void)snprintf(path, sizeof path, "%s/contrib/man/weir.ini.5", top == NULL ? "." : top);
	FILE *file = fopen(path, "r");

	assert_row(file != NULL, "%s cannot be read; set TOP_SRCDIR", path);
	redis_ok(direct, "ACL SETUSER least reset on >secret ~weir:* -@all");
	while (fgets(line, sizeof line, file) != NULL) {
		if (strncmp(line, mark, sizeof mark - 1) != 0)
			continue;
		for (char *right = strtok_r(line + sizeof mark - 1, " \n", &rest); right != NULL;
			right = strtok_r(NULL, " \n", &rest)) {
			redis_ok(direct, "ACL SETUSER least %s", right);
			rights++;
		}
	}
	(void)fclose(file);
	assert_in_range(rights, 1, 10);
}

static void
a_user_of_the_least_rights_is_enough(void **state)
{
	(void)state;
	make_user_of_the_manual();
	assert_int_equal(verdict_as("least", "secret", 0), VERDICT_ADMITTED);
	/* SELECT is among what it may not. */
	assert_int_equal(verdict_as("least", "secret", 1), VERDICT_UNAVAILABLE);
	redis_ok(direct, "ACL SETUSER least +select");
	assert_int_equal(verdict_as("least", "secret", 1), VERDICT_ADMITTED);
}

static void
the_same_rights_are_enough_for_leases(void **state)
{
	struct made_limit places;
	struct client other;
	struct asked asked;

	(void)state;
	make_user_of_the_manual();
	make_limit(&places, "l", "concurrent 1");
	client_open(&other,
		&(const struct redis_settings){
			.server = server.address, .username = "least", .password = "secret" });
	asked_init(&asked, &other, &places, "place");
	asked.check.lease = 7;
	asked_send(&asked);
	asked_wait(&asked);
	assert_int_equal(asked.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(redis_number(direct, "EXISTS weir:place"), 1);
	store_release(redis_store(other.redis), &asked.check.items[0], 7);
	client_wait_until_ready(&other);
	assert_int_equal(redis_number(direct, "EXISTS weir:place"), 0);
	assert_false(breaker_is_open(other.breaker));
	client_close(&other);
}

static void
whoever_may_not_log_in_or_run_the_script_is_unavailable(void **state)
{
	(void)state;
	assert_int_equal(verdict_as("nobody", "secret", 0), VERDICT_UNAVAILABLE);
	redis_ok(direct, "ACL SETUSER little on >secret ~weir:* -@all +evalsha +eval +get +time");
	assert_int_equal(verdict_as("little", "wrong", 0), VERDICT_UNAVAILABLE);
	assert_int_equal(verdict_as("little", "secret", 0), VERDICT_UNAVAILABLE);
	redis_ok(direct, "ACL SETUSER elsewhere on >secret ~other:* +@all");
	assert_int_equal(verdict_as("elsewhere", "secret", 0), VERDICT_UNAVAILABLE);
}

static void
a_password_for_all_is_given(void **state)
{
	(void)state;
	redis_ok(direct, "CONFIG SET requirepass pa\"ss%%wo\\rd");
	assert_int_equal(verdict_as(NULL, "pa\"ss%wo\\rd", 0), VERDICT_ADMITTED);
	assert_int_equal(verdict_as(NULL, "pa", 0), VERDICT_UNAVAILABLE);
	assert_int_equal(verdict_as(NULL, NULL, 0), VERDICT_UNAVAILABLE);
	redisReply *reply = redisCommand(direct, "AUTH %s", "pa\"ss%wo\\rd");

	freeReplyObject(reply);
	reply = redisCommand(direct, "CONFIG SET requirepass %s", "");
	assert_int_equal(reply->type, REDIS_REPLY_STATUS);
	freeReplyObject(reply);
}

/* Of /etc/hosts; no other look-up is made. */
static void
a_server_is_found_by_name_over_tcp(void **state)
{
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof name;
	const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct redis_server other;
	struct redis_settings settings = { .server = { .kind = ADDRESS_TCP, .host = "localhost" } };
	struct client client;
	char port[8];

	(void)state;
	assert_int_equal(bind(probe, (const struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(getsockname(probe, (struct sockaddr *)&name, &len), 0);
	assert_int_equal(close(probe), 0);
	settings.server.port = ntohs(name.sin_port);
	(void)snprintf(port, sizeof port, "%u", settings.server.port);
	redis_server_open(&other,
		(const char *const[]){ "--port", port, "--bind", "127.0.0.1", "-::1", NULL });
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
	redis_server_close(&other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(another_database_is_another_store, setup),
		cmocka_unit_test_setup(a_user_of_the_least_rights_is_enough, setup),
		cmocka_unit_test_setup(the_same_rights_are_enough_for_leases, setup),
		cmocka_unit_test_setup(
			whoever_may_not_log_in_or_run_the_script_is_unavailable, setup),
		cmocka_unit_test_setup(a_password_for_all_is_given, setup),
		cmocka_unit_test_setup(a_server_is_found_by_name_over_tcp, setup),
	};
	struct err err;

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	if (counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/login", tests, group_setup, group_teardown);
}
