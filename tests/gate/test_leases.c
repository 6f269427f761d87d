/*
 * Places of a concurrent policy: held while a request lasts and free when it has ended, in whatever
 * way. With the memory store, and with a real Redis that can be looked into.
 */
#include "with_redis.h"

#include <stdio.h>
#include <unistd.h>

#define TWO APP "[limit two]\npolicy = concurrent 2\n" ALL "limit = two\n"
#define KEY "weir:two:192.0.2.1"

static bool
is_held(void)
{
	return redis_number(look, "EXISTS " KEY) == 1;
}

static int64_t
held(void)
{
	return counter_sum(COUNT_LEASES);
}

/* A request that the application is working on. */
static int
hold(void)
{
	const unsigned before = fake_app_look(app).requests;
	const int fd = begin(true, (const char *const[]){ "CONTENT_LENGTH", "10", NULL });

	assert_true(send_body(fd, 10, true));
	assert_soon(fake_app_look(app).requests == before + 1);
	return fd;
}

static void
answers_at_once(void **state)
{
	(void)state;
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

/* ---- in memory ---- */

static void
so_many_are_worked_on_at_a_time_and_no_more(void **state)
{
	struct answer answer;

	serve(TWO, says_nothing);
	const int first = hold(), second = hold();

	assert_int_equal(held(), 2);
	answers_at_once(state);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_slice(answer_field(&answer, "Retry-After"), SLICE("1"));
	answer_release(&answer);
	/* A client that goes makes room. */
	(void)close(first);
	assert_soon(rig_in_flight() == 1);
	const int third = hold();

	answers_at_once(state);
	(void)close(second);
	(void)close(third);
	assert_soon(rig_in_flight() == 0);
	assert_int_equal(held(), 0);
	/* And so does an answer. */
	fake_app_set_script(app, answers);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
}

static void
fails(struct app_conn *conn)
{
	(void)app_read_params(conn);
}

static void
application_that_fails_leaves_its_place(void **state)
{
	(void)state;
	serve(TWO, fails);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 502);
	fake_app_stop(app);
	app = NULL;
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 502);
	assert_int_equal(held(), 0);
}

static void
rejected_request_holds_nothing(void **state)
{
	(void)state;
	serve(APP "[limit two]\npolicy = concurrent 2\n[limit one]\npolicy = 1/1h\n" ALL
		  "limit = two, one\n",
		answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(held(), 0);
	rig_reload(&rig, TWO);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
}

static void
reload_keeps_the_places_that_are_held(void **state)
{
	serve(TWO, says_nothing);
	const int first = hold(), second = hold();

	rig_reload(&rig, TWO);
	answers_at_once(state);
	(void)close(first);
	assert_soon(rig_in_flight() == 1);
	rig_reload(&rig, TWO);
	const int third = hold();

	answers_at_once(state);
	(void)close(second);
	(void)close(third);
	assert_soon(rig_in_flight() == 0);
}

/* ---- in Redis ---- */

static void
place_in_redis_goes_with_the_request(void **state)
{
	serve(with_redis("", "5s", TWO), says_nothing);
	const int first = hold(), second = hold();

	assert_true(is_held());
	answers_at_once(state);
	(void)close(first);
	assert_soon(rig_in_flight() == 1);
	const int third = hold();

	(void)close(second);
	assert_soon(rig_in_flight() == 1);
	assert_true(is_held());
	(void)close(third);
	assert_soon(!is_held());
	fake_app_set_script(app, answers);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	assert_soon(!is_held());
}

/* The last request of an old configuration ends, and its connection to Redis with it. */
static void
place_of_an_old_configuration_is_given_back(void **state)
{
	(void)state;
	serve(with_redis("", "5s", TWO), says_nothing);
	const int first = hold();

	rig_reload(&rig, APP ALL);
	assert_true(is_held());
	(void)close(first);
	assert_soon(!is_held());
}

/* weir stops with the request under way. */
static void
cut_requests_give_their_places_back(void **state)
{
	(void)state;
	serve(with_redis("", "5s", TWO), says_nothing);
	const int first = hold();

	assert_true(is_held());
	rig_stop(&rig);
	rig_close(&rig);
	assert_soon(!is_held());
	assert_int_equal(held(), 0);
	(void)close(first);
	rig_open(&rig, TWO);
}

static void
client_that_goes_before_the_decision_holds_nothing(void **state)
{
	(void)state;
	serve(with_redis("", "5s", TWO), says_nothing);
	/* The connection and the script are there. */
	fake_app_set_script(app, answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	redis_server_freeze(&server);
	for (unsigned i = 0; i < 4; i++) {
		const int fd = begin(true, NULL);

		assert_soon(rig_in_flight() == 1);
		(void)close(fd);
		assert_soon(rig_in_flight() == 0);
	}
	redis_server_thaw(&server);
	/* What it has spent for them it has taken back before the next. */
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	assert_soon(!is_held());
	assert_int_equal(held(), 0);
}

/*
 * Redis sleeps, and four ask. When three have missed their deadlines the breaker opens and the
 * connection is closed, while the fourth one's check is still in time. Redis wakes and decides it,
 * and nobody waits for that.
 */
static void
decision_that_nobody_hears_holds_nothing(void **state)
{
	struct buf bytes;
	int fds[4];

	(void)state;
	serve(with_redis("", "2s", TWO "store_down = admit\n"), answers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 404);
	assert_soon(!is_held());
	const unsigned long before = redis_calls();
	const int64_t undecided = rig_outcome("all", "undecided"), start_us = clock_monotonic_us();

	redis_server_freeze(&server);
	bytes_init(&bytes);
	put_request(&bytes,
		&(const struct request_spec){ .params = (const char *const[]){ "REQUEST_URI", "/",
						      "REMOTE_ADDR", "192.0.2.1", NULL } });
	for (unsigned i = 0; i < LENGTH_OF(fds); i++) {
		assert_soon(clock_monotonic_us() - start_us >= (i < 3 ? 0 : 1000000));
		fds[i] = rig_connect(&rig);
		assert_true(socket_send(fds[i], buf_slice(&bytes)));
	}
	buf_release(&bytes);
	assert_soon(rig_outcome("all", "undecided") - undecided == LENGTH_OF(fds));
	redis_server_thaw(&server);
	assert_int_equal(rig_logged(&rig, "the breaker is open"), 1);
	/* Each check, and a release behind it. */
	assert_soon(redis_calls() - before >= 2 * LENGTH_OF(fds));
	assert_soon(!is_held());
	assert_int_equal(held(), 0);
	for (unsigned i = 0; i < LENGTH_OF(fds); i++)
		(void)close(fds[i]);
}

/* A key lives for a second longer than its leases. */
static void
place_is_renewed_when_a_third_of_its_lease_is_over(void **state)
{
	long long least = 5001, left;

	(void)state;
	serve(with_redis("", "5s",
		      APP "[limit two]\npolicy = concurrent 2 lease 4s\n" ALL "limit = two\n"),
		says_nothing);
	const int fd = hold();

	while ((left = redis_number(look, "PTTL " KEY)) <= least && left > 0) {
		least = left;
		(void)poll(NULL, 0, 1);
	}
	/* A half would be at 3001. */
	assert_in_range(least, 3150, 3700);
	assert_in_range(left, 4800, 5001);
	(void)close(fd);
	assert_soon(!is_held());
}

static void
place_is_held_for_as_long_as_the_request_lasts(void **state)
{
	long long left;

	(void)state;
	serve(with_redis("", "5s",
		      APP "[limit two]\npolicy = concurrent 2 lease 1s\n" ALL "limit = two\n"),
		says_nothing);
	const int fd = hold();

	/* Three times over: what was to end is prolonged. */
	for (unsigned i = 0; i < 3; i++) {
		assert_soon((left = redis_number(look, "PTTL " KEY)) < 1800);
		assert_true(left > 0);
		assert_soon((left = redis_number(look, "PTTL " KEY)) > 1800 || left < 0);
		assert_true(is_held());
	}
	(void)close(fd);
	assert_soon(!is_held());
}

int
main(void)
{
	const struct CMUnitTest in_memory[] = {
		TEST(so_many_are_worked_on_at_a_time_and_no_more),
		TEST(application_that_fails_leaves_its_place),
		TEST(rejected_request_holds_nothing),
		TEST(reload_keeps_the_places_that_are_held),
	};
	const struct CMUnitTest in_redis[] = {
		REDIS_TEST(place_in_redis_goes_with_the_request),
		REDIS_TEST(place_of_an_old_configuration_is_given_back),
		REDIS_TEST(cut_requests_give_their_places_back),
		REDIS_TEST(client_that_goes_before_the_decision_holds_nothing),
		REDIS_TEST(decision_that_nobody_hears_holds_nothing),
		REDIS_TEST(place_is_renewed_when_a_third_of_its_lease_is_over),
		REDIS_TEST(place_is_held_for_as_long_as_the_request_lasts),
	};

	if (rig_start() != 0)
		return 1;
	const int failed = cmocka_run_group_tests(in_memory, NULL, NULL);

	if (!redis_server_is_installed())
		return failed != 0 ? failed : REDIS_SERVER_SKIPPED;
	return failed + cmocka_run_group_tests(in_redis, NULL, NULL);
}
