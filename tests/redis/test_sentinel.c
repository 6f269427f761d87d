/* Sentinels that lie, are silent, or know better: who is asked, whom the store believes, and that
 * none of it takes longer than the deadline. */
#include "../../src/redis/redis_private.h"
#include "../lib/directory.h"
#include "spots.h"
#include "weir/counter.h"
#include "weir/memory.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

static struct made_limit made;

/* ---- what is found ---- */

static void
master_is_where_the_first_answer_says(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *first = spot_open(1, serve_as_sentinel, named(master, "127.0.0.1"));
	struct spot *second = spot_open(2, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = { address_of(first), address_of(second) };
	const struct redis_settings settings = settings_of(sentinels, 2, PATIENT_US);
	struct client client;

	(void)state;
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_int_equal(first->asked, 1);
	assert_int_equal(second->asked, 0);
	assert_int_equal(first->logins, 0);
	client_close(&client);
}

/* Sentinels may be told to announce names. */
static void
master_may_be_named_by_a_name(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *first = spot_open(1, serve_as_sentinel, named(master, "localhost"));
	const struct address sentinels[] = { address_of(first) };
	const struct redis_settings settings = settings_of(sentinels, 1, PATIENT_US);
	struct client client;

	(void)state;
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	client_close(&client);
}

static void
sentinels_that_are_gone_or_silent_are_passed_over_within_the_deadline(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *silent = spot_open(1, serve_as_sentinel, NULL);
	struct spot *gone = spot_open(2, serve_as_sentinel, NULL);
	struct spot *good = spot_open(3, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = {
		{ .kind = ADDRESS_TCP, .host = "no-such-name.invalid", .port = 1 },
		address_of(silent), address_of(gone), address_of(good)
	};
	const struct redis_settings settings = settings_of(sentinels, 4, 8 * US_PER_S);
	struct client client;

	(void)state;
	spot_close(gone);
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_false(breaker_is_open(client.breaker));
	assert_int_equal(silent->asked, 1);
	client_close(&client);
}

static void
sentinels_may_want_a_login(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *first = spot_open(1, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = { address_of(first) };
	struct redis_settings settings = settings_of(sentinels, 1, PATIENT_US);
	struct client client;

	(void)state;
	settings.sentinels.username = "weir";
	settings.sentinels.password = "secret";
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_int_equal(first->logins, 1);
	client_close(&client);
}

/* ---- what is not believed ---- */

static char said[8192];

static void
keep_line(void *context, enum log_level level, const char *line, size_t len)
{
	const size_t used = strlen(said);

	(void)context, (void)level;
	if (len < sizeof said - used)
		memcpy(said + used, line, len);
}

static void
hear(void)
{
	memset(said, 0, sizeof said);
	log_set_sink(keep_line, NULL);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
}

static void
hear_no_more(void)
{
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	log_set_sink(NULL, NULL);
}

/* Until the breaker opens. */
static void
assert_not_found(const struct redis_settings *settings, const char *reason)
{
	struct client client;
	struct asked asked;

	hear();
	client_open(&client, settings);
	asked_init(&asked, &client, &made, "k");
	asked_send(&asked);
	asked_wait(&asked);
	client_wait_for_breaker(&client, true);
	hear_no_more();
	assert_row(asked.decision.verdict == VERDICT_UNAVAILABLE, "%s", reason);
	assert_row(asked.answered_at_us - asked.asked_at_us < 2 * settings->deadline_us,
		"%s: after %lld us", reason, (long long)(asked.answered_at_us - asked.asked_at_us));
	assert_row(strstr(said, reason) != NULL, "not said: %s\n%s", reason, said);
	client_close(&client);
}

#define HOST "$9\r\n127.0.0.1\r\n"
#define LETTERS_16 "aaaaaaaaaaaaaaaa"
#define LETTERS_256                                                                                \
	LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16    \
		LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16 LETTERS_16       \
			LETTERS_16

static void
answer_that_is_none_is_not_used(void **state)
{
	static const struct {
		const char *answer, *reason;
	} rows[] = {
		{ "*-1\r\n", "it knows no master of this name" },
		{ "$-1\r\n", "it knows no master of this name" },
		{ "-ERR No such master\r\n", "ERR No such master" },
		{ "-\r\n", "no sentinel answers" },
		{ "+OK\r\n", "its answer is no address" },
		{ ":6379\r\n", "its answer is no address" },
		{ "*0\r\n", "its answer is no address" },
		{ "*1\r\n" HOST, "its answer is no address" },
		{ "*2\r\n" HOST ":6379\r\n", "its answer is no address" },
		{ "*2\r\n$-1\r\n$-1\r\n", "its answer is no address" },
		{ "*2\r\n*0\r\n*0\r\n", "its answer is no address" },
		{ "*2\r\n" HOST "$1\r\n0\r\n", "its answer is no address" },
		{ "*2\r\n" HOST "$5\r\n65536\r\n", "its answer is no address" },
		{ "*2\r\n" HOST "$2\r\n-1\r\n", "its answer is no address" },
		{ "*2\r\n" HOST "$0\r\n\r\n", "its answer is no address" },
		{ "*2\r\n$0\r\n\r\n$4\r\n6379\r\n", "its answer is no address" },
		{ "*2\r\n$4\r\n/a/b\r\n$4\r\n6379\r\n", "its answer is no address" },
		{ "*2\r\n$3\r\na b\r\n$4\r\n6379\r\n", "its answer is no address" },
		{ "*2\r\n$256\r\n" LETTERS_256 "\r\n$4\r\n6379\r\n", "its answer is no address" },
		{ "*3\r\n" HOST "$4\r\n6379\r\n$1\r\na\r\n", "is not Redis's protocol" },
		{ "*1000000000\r\n", "is not Redis's protocol" },
		{ "HTTP/1.1 400 Bad Request\r\n", "is not Redis's protocol" },
		{ "*2\r\n$2000000000\r\n", "no sentinel answered within the deadline" },
		{ "*2\r\n$9\r\n127.", "no sentinel answered within the deadline" },
		{ NULL, "no sentinel answered within the deadline" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct spot *liar = spot_open(1, serve_as_sentinel, rows[i].answer);
		const struct address sentinels[] = { address_of(liar) };
		const struct redis_settings settings = settings_of(sentinels, 1, 500 * US_PER_MS);

		assert_not_found(&settings, rows[i].reason);
		spot_close(liar);
	}
}

/* One that sends and sends. */
static void
serve_without_end(struct spot *spot, struct fake_peer *peer)
{
	(void)spot;
	if (fake_send(peer, SLICE("*2\r\n$500000000\r\n"))) {
		while (fake_send(peer, SLICE(LETTERS_256)))
			;
	}
}

static void
answer_that_does_not_end_is_cut_off(void **state)
{
	struct spot *liar = spot_open(1, serve_without_end, NULL);
	const struct address sentinels[] = { address_of(liar) };
	const struct redis_settings settings = settings_of(sentinels, 1, 2 * US_PER_S);

	(void)state;
	assert_not_found(&settings, "its answer does not end");
}

static void
sentinels_that_refuse_the_login_are_told_of(void **state)
{
	struct spot *first = spot_open(1, serve_as_sentinel, NULL);
	const struct address sentinels[] = { address_of(first) };
	struct redis_settings settings = settings_of(sentinels, 1, 2 * US_PER_S);

	(void)state;
	settings.sentinels.password = "wrong";
	assert_not_found(&settings, "sentinel_password_file of [redis]");
}

/* As during a failover: one sentinel is behind. */
static void
replica_is_not_used_and_another_sentinel_is_asked(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *replica = spot_open(1, serve_as_redis, "slave");
	struct spot *behind = spot_open(2, serve_as_sentinel, named(replica, "127.0.0.1"));
	struct spot *ahead = spot_open(3, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = { address_of(behind), address_of(ahead) };
	const struct redis_settings settings = settings_of(sentinels, 2, 2 * US_PER_S);
	struct client client;

	(void)state;
	hear();
	client_open(&client, &settings);
	client_wait_for_breaker(&client, true);
	assert_row(strstr(said, "it is no master but") != NULL, "%s", said);
	client_wait_for_breaker(&client, false);
	hear_no_more();
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_int_equal(replica->seen.checks, 0);
	client_close(&client);
}

/* ---- what changes ---- */

static void
sentinel_that_changes_its_mind_is_followed(void **state)
{
	enum { MANY = 20 };
	static struct asked asked[MANY];
	struct spot *old = spot_open(0, serve_as_redis, "master");
	struct spot *new = spot_open(1, serve_as_redis, "master");
	struct spot *sentinel = spot_open(2, serve_as_sentinel, named(old, "127.0.0.1"));
	const struct address sentinels[] = { address_of(sentinel) };
	const struct redis_settings settings = settings_of(sentinels, 1, PATIENT_US);
	struct client client;

	(void)state;
	client_open(&client, &settings);
	assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_ADMITTED);
	assert_int_equal(old->seen.checks, 1);
	sentinel->answer = named(new, "127.0.0.1");
	/* The old one does not answer any more; the new one decides what it was asked. */
	spots_are_mute = true;
	for (unsigned i = 0; i < MANY; i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
	client.answers = 0;
	run_loop_until(client.loop, client.answers == MANY);
	spots_are_mute = false;
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(asked[i].decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(new->seen.checks, MANY);
	assert_int_equal(sentinel->seen.connections, 1);
	assert_false(breaker_is_open(client.breaker));
	client_close(&client);
}

/* Counts what it is asked for: none of it is asked for again. */
static void
master_by_another_name_is_the_same(void **state)
{
	enum { MANY = 20 };
	static const char *const hosts[] = { "::ffff:127.0.0.1", "localhost", "::ffff:7f00:1" };
	static struct asked asked[MANY];
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *sentinel = spot_open(2, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = { address_of(sentinel) };
	const struct redis_settings settings = settings_of(sentinels, 1, PATIENT_US);
	struct client client;

	(void)state;
	client_open(&client, &settings);
	client_wait_until_ready(&client);
	spots_are_mute = true;
	for (unsigned i = 0; i < MANY; i++) {
		asked_init(&asked[i], &client, &made, "k");
		asked_send(&asked[i]);
	}
	const unsigned checks = master->seen.checks;

	for (size_t i = 0; i < LENGTH_OF(hosts); i++) {
		const unsigned before = sentinel->asked;
		const char *answer = named(master, hosts[i]);

		sentinel->answer = answer;
		run_loop_while(client.loop, sentinel->asked == before);
		run_loop_for_ms(client.loop, 50);
	}
	spots_are_mute = false;
	assert_int_equal(master->seen.connections, 1);
	assert_in_range(master->seen.checks, checks, checks + MANY);
	for (unsigned i = 0; i < MANY; i++)
		store_cancel(redis_store(client.redis), &asked[i].check);
	client_close(&client);
}

/* Whose name nobody answers for in time; or leads to somebody else. */
static void
master_by_a_name_is_gone_to_if_it_is_another(void **state)
{
	struct spot *old = spot_open(0, serve_as_redis, "master");
	struct spot *new = spot_open(1, serve_as_redis, "master");
	struct spot *sentinel = spot_open(2, serve_as_sentinel, named(old, "127.0.0.1"));
	const struct address sentinels[] = { address_of(sentinel) };
	const struct redis_settings settings = settings_of(sentinels, 1, PATIENT_US);
	struct client client;

	(void)state;
	client_open(&client, &settings);
	client_wait_until_ready(&client);
	sentinel->answer = named(new, "localhost");
	run_loop_while(client.loop, new->seen.connections == 0);
	client_wait_until_ready(&client);
	assert_true(new->seen.checks > 0);
	assert_false(breaker_is_open(client.breaker));
	client_close(&client);
}

/* A name server that says nothing until it is told to say that there is no such name. */
static int
late_name_server(const struct directory *directory)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof name;
	char text[100];

	assert_int_equal(bind(fd, (const struct sockaddr *)&name, len), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &len), 0);
	const int n = snprintf(text, sizeof text,
		"nameserver 127.0.0.1:%u\noptions timeout:60 attempts:1\n", ntohs(name.sin_port));

	directory_write(directory, "resolv.conf", slice_make(text, (size_t)n));
	return fd;
}

/* To all that it was asked. */
static unsigned
say_no_such_name(int fd)
{
	uint8_t packet[512];
	struct sockaddr_in from;
	socklen_t len = sizeof from;
	unsigned count = 0;
	ssize_t n;

	while ((n = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &len)) > 3) {
		/* RFC 1035 section 4.1.1: a response, NXDOMAIN. */
		packet[2] |= 0x80;
		packet[3] = 0x83;
		assert_int_equal(
			sendto(fd, packet, (size_t)n, 0, (const struct sockaddr *)&from, len), n);
		count++;
	}
	return count;
}

/* The old one is left for the sentinels' word all the same; and what the name server says when that
 * is long over is nothing to the connection that there is then. */
static void
master_by_a_name_that_is_not_found_in_time_is_another(void **state)
{
	struct spot *old = spot_open(0, serve_as_redis, "master");
	struct spot *new = spot_open(1, serve_as_redis, "master");
	struct spot *sentinel = spot_open(2, serve_as_sentinel, named(old, "127.0.0.1"));
	const struct address sentinels[] = { address_of(sentinel) };
	const struct redis_settings settings = settings_of(sentinels, 1, 300 * US_PER_MS);
	struct directory directory;
	struct client client;

	(void)state;
	directory_make(&directory);
	const int names = late_name_server(&directory);
	const struct directory_path path = directory_path(&directory, "resolv.conf");

	client_open_with(&client, &settings, NULL, path.text);
	client_wait_until_ready(&client);
	sentinel->answer = named(new, "master.test");
	run_loop_while(client.loop, client.redis->lookup == NULL);
	run_loop_while(client.loop, client.redis->state == REDIS_READY);
	sentinel->answer = named(new, "127.0.0.1");
	client_wait_until_ready(&client);
	assert_true(new->seen.checks > 0);
	const unsigned connections = new->seen.connections;

	assert_true(say_no_such_name(names) > 0);
	run_loop_for_ms(client.loop, 100);
	assert_int_equal(new->seen.connections, connections);
	assert_int_equal(client.redis->state, REDIS_READY);
	client_close(&client);
	(void)close(names);
	directory_remove(&directory);
}

/* It closes the connection, as a server does that ends or is demoted, or says that it is no master
 * any more; and the sentinels know by then. */
static void
master_that_goes_is_asked_for_anew(void **state)
{
	static const char *const refusals[] = { "",
		"-READONLY You can't write against a read only replica.\r\n" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(refusals); i++) {
		struct spot *old = spot_open(0, serve_as_redis, "master");
		struct spot *new = spot_open(1, serve_as_redis, "master");
		struct spot *sentinel = spot_open(2, serve_as_sentinel, named(old, "127.0.0.1"));
		const struct address sentinels[] = { address_of(sentinel) };
		const struct redis_settings settings = settings_of(sentinels, 1, 2 * US_PER_S);
		struct client client;

		client_open(&client, &settings);
		client_wait_until_ready(&client);
		sentinel->answer = named(new, "127.0.0.1");
		old->answer = "slave";
		old->refusal = refusals[i];
		const unsigned checks = old->seen.checks;

		assert_int_equal(client_decide(&client, &made, "k").verdict, VERDICT_UNAVAILABLE);
		client_wait_until_ready(&client);
		assert_true(new->seen.checks > 0);
		assert_int_equal(old->seen.checks, checks + 1);
		assert_true(sentinel->asked > 1);
		client_close(&client);
		(void)spots_tear_down(state);
	}
}

static void
silence_at_role_is_waited_for_no_longer(void **state)
{
	struct spot *silent = spot_open(0, serve_as_redis, NULL);
	struct spot *sentinel = spot_open(2, serve_as_sentinel, named(silent, "127.0.0.1"));
	const struct address sentinels[] = { address_of(sentinel) };
	const struct redis_settings settings = settings_of(sentinels, 1, 400 * US_PER_MS);

	(void)state;
	assert_not_found(&settings, "it did not answer within the deadline");
	assert_int_equal(silent->asked, 1);
	assert_int_equal(silent->seen.checks, 0);
}

/* Also in the middle of a question. */
static void
store_may_be_closed_at_any_time(void **state)
{
	struct spot *master = spot_open(0, serve_as_redis, "master");
	struct spot *silent = spot_open(1, serve_as_sentinel, NULL);
	struct spot *good = spot_open(2, serve_as_sentinel, named(master, "127.0.0.1"));
	const struct address sentinels[] = { address_of(silent), address_of(good) };
	const struct redis_settings settings = settings_of(sentinels, 2, 80 * US_PER_MS);

	(void)state;
	for (int ms = 0; ms < 30; ms++) {
		struct client client;

		client_open(&client, &settings);
		run_loop_for_ms(client.loop, ms);
		client_close(&client);
	}
}

/* ---- the breaker ---- */

static bool
is_same_breaker(const struct redis_settings *a, const struct redis_settings *b)
{
	static char area[MEMORY_AREA_SIZE];
	const struct breaker_areas areas = { .host = area, .size = sizeof area };
	struct breaker *breaker_a, *breaker_b;

	memset(area, 0, sizeof area);
	breaker_a = redis_breaker(a, &areas);
	breaker_b = redis_breaker(b, &areas);
	assert_true(breaker_a != NULL && breaker_b != NULL);
	assert_true(breaker_open(breaker_a, clock_monotonic_us()));
	const bool is_same = breaker_is_open(breaker_b);

	breaker_free(breaker_a);
	breaker_free(breaker_b);
	return is_same;
}

static void
breaker_is_of_the_sentinels_and_the_name(void **state)
{
	const struct address one = { .kind = ADDRESS_TCP, .host = "a", .port = 1 },
			     two = { .kind = ADDRESS_TCP, .host = "b", .port = 1 };
	const struct address there[] = { one, two }, back[] = { two, one };
	struct redis_settings settings = settings_of(there, 2, 1), same = settings_of(back, 2, 1),
			      fewer = settings_of(there, 1, 1), other = settings_of(there, 2, 1);

	(void)state;
	settings.prefix = same.prefix = fewer.prefix = other.prefix = "weir:";
	other.sentinels.master = "other";
	assert_true(is_same_breaker(&settings, &same));
	assert_false(is_same_breaker(&settings, &fewer));
	assert_false(is_same_breaker(&settings, &other));
	/* Where the master is makes no difference. */
	same.server = one;
	assert_true(is_same_breaker(&settings, &same));
}

#define SENTINEL_TEST(name) cmocka_unit_test_teardown(name, spots_tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		SENTINEL_TEST(master_is_where_the_first_answer_says),
		SENTINEL_TEST(master_may_be_named_by_a_name),
		SENTINEL_TEST(
			sentinels_that_are_gone_or_silent_are_passed_over_within_the_deadline),
		SENTINEL_TEST(sentinels_may_want_a_login),
		SENTINEL_TEST(answer_that_is_none_is_not_used),
		SENTINEL_TEST(answer_that_does_not_end_is_cut_off),
		SENTINEL_TEST(sentinels_that_refuse_the_login_are_told_of),
		SENTINEL_TEST(replica_is_not_used_and_another_sentinel_is_asked),
		SENTINEL_TEST(sentinel_that_changes_its_mind_is_followed),
		SENTINEL_TEST(master_by_another_name_is_the_same),
		SENTINEL_TEST(master_by_a_name_is_gone_to_if_it_is_another),
		SENTINEL_TEST(master_by_a_name_that_is_not_found_in_time_is_another),
		SENTINEL_TEST(master_that_goes_is_asked_for_anew),
		SENTINEL_TEST(silence_at_role_is_waited_for_no_longer),
		SENTINEL_TEST(store_may_be_closed_at_any_time),
		SENTINEL_TEST(breaker_is_of_the_sentinels_and_the_name),
	};
	struct err err;

	make_limit(&made, "l", "1000000/1m");
	log_configure(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	return counter_thread_start(&err) != 0
		? 1
		: cmocka_run_group_tests_name("redis/sentinel", tests, NULL, NULL);
}
