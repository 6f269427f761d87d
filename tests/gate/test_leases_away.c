/*
 * Places of a concurrent policy while Redis is away: those of requests that end meanwhile are free
 * soon after it is back, and those of requests that go on are kept.
 */
#include "with_redis.h"

#include <unistd.h>

#define KEY "weir:two:192.0.2.1"
#define TWO(lease)                                                                                 \
	APP "[limit two]\npolicy = concurrent 2 lease " lease "\n" ALL                             \
	    "limit = two\nstore_down = admit\n"

enum { BACK_S = 2, ASKED_MAX = 20 };

static bool
is_held(void)
{
	return redis_number(look, "EXISTS " KEY) == 1;
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

static int64_t
left(void)
{
	return counter_sum(COUNT_LEASES_LEFT);
}

static void
serve_two(const char *ini)
{
	serve(with_redis("", "150ms", ini), says_nothing);
}

/* Until nobody asks it any more. */
static void
freeze(void)
{
	redis_server_freeze(&server);
	fake_app_set_script(app, answers);
	assert_soon(rig_status(&rig, "GET", "/", NULL) == 404 &&
		rig_logged(&rig, "the breaker is open") > 0);
}

static void
places_of_requests_that_end_meanwhile_are_free_when_it_is_back(void **state)
{
	const int64_t left_before = left();

	(void)state;
	serve_two(TWO("10m"));
	const int first = hold(), second = hold();

	freeze();
	(void)close(first);
	(void)close(second);
	assert_soon(rig_in_flight() == 0);
	redis_server_thaw(&server);
	assert_within_s(!is_held(), BACK_S);
	assert_int_equal(left(), left_before);
}

/* Whose store goes with its last request, or when that has nothing to give back any more. */
static void
an_old_configuration_gives_them_back_too(void **state)
{
	const int64_t left_before = left();

	(void)state;
	serve_two(TWO("10m"));
	const int first = hold();

	freeze();
	rig_reload(&rig, APP ALL);
	(void)close(first);
	assert_soon(rig_in_flight() == 0);
	redis_server_thaw(&server);
	assert_within_s(!is_held(), BACK_S);
	assert_int_equal(left(), left_before);
}

static void
it_is_waited_for_when_weir_stops(void **state)
{
	const int64_t left_before = left();

	(void)state;
	serve_two(TWO("10m"));
	const int first = hold();

	freeze();
	(void)close(first);
	assert_soon(rig_in_flight() == 0);
	rig_stop(&rig);
	assert_soon(rig_connections() == 0);
	(void)poll(NULL, 0, 60);
	assert_int_equal(rig.empty, 0);
	redis_server_thaw(&server);
	assert_soon(rig.empty == 1);
	assert_soon(!is_held());
	assert_int_equal(left(), left_before);
	assert_int_equal(rig_logged(&rig, "could not be given back"), 0);
}

static void
what_weir_does_not_give_back_it_says(void **state)
{
	const int64_t left_before = left();

	(void)state;
	serve_two(TWO("10m"));
	const int first = hold(), second = hold();

	freeze();
	(void)close(first);
	(void)close(second);
	assert_soon(rig_in_flight() == 0);
	rig_stop(&rig);
	rig_close(&rig);
	const unsigned told = rig_logged(&rig, "could not be given back");

	rig_open(&rig, APP ALL);
	assert_int_equal(told, 1);
	/* And those of the checks whose decision nobody knows. */
	assert_in_range(left() - left_before, 2, 2 + ASKED_MAX);
	redis_server_thaw(&server);
	assert_true(is_held());
}

/* Away when the place is to be renewed, at 2 s: it is renewed soon after Redis is back, and not at
 * 4 s only. A key lives for a second longer than its leases. */
static void
place_of_a_request_that_goes_on_is_kept(void **state)
{
	const int64_t lost_before = counter_sum(COUNT_LEASES_LOST);
	long long least = 7001, at;

	(void)state;
	serve_two(TWO("6s"));
	const int first = hold();

	assert_soon(redis_number(look, "PTTL " KEY) < 5900);
	freeze();
	(void)poll(NULL, 0, 500);
	redis_server_thaw(&server);
	while ((at = redis_number(look, "PTTL " KEY)) <= least && at > 0) {
		least = at;
		(void)poll(NULL, 0, 1);
	}
	assert_in_range(least, 3200, 5000);
	assert_in_range(at, 6500, 7001);
	assert_int_equal(counter_sum(COUNT_LEASES_LOST), lost_before);
	(void)close(first);
	assert_soon(!is_held());
}

/* Away for longer than that: the place may be another's, and that can be seen. */
static void
place_that_was_lost_is_counted(void **state)
{
	const int64_t lost_before = counter_sum(COUNT_LEASES_LOST);

	(void)state;
	serve_two(TWO("1s"));
	const int first = hold();

	freeze();
	(void)poll(NULL, 0, 1000);
	redis_server_thaw(&server);
	assert_soon(counter_sum(COUNT_LEASES_LOST) > lost_before);
	(void)close(first);
	assert_soon(rig_in_flight() == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(places_of_requests_that_end_meanwhile_are_free_when_it_is_back),
		REDIS_TEST(an_old_configuration_gives_them_back_too),
		REDIS_TEST(it_is_waited_for_when_weir_stops),
		REDIS_TEST(what_weir_does_not_give_back_it_says),
		REDIS_TEST(place_of_a_request_that_goes_on_is_kept),
		REDIS_TEST(place_that_was_lost_is_counted),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
