/*
 * Places of concurrent policies and max_identities: who holds one counts among the identities that
 * have a bucket in Redis, for as long as he holds it and no longer; and a place under the bucket
 * that the others share is given back as any.
 */
#include "with_redis.h"

#include <unistd.h>

#define ONE_IDENTITY(policies)                                                                     \
	APP "[limit two]\nidentity = env WHO\non_missing = skip\nmax_identities = 1\n" policies    \
		ALL "limit = two\nstore_down = admit\n"
#define SHARED "weir:two:overflow"

static int
hold(const char *who)
{
	const unsigned before = fake_app_look(app).requests;
	const int fd =
		begin(true, (const char *const[]){ "CONTENT_LENGTH", "10", "WHO", who, NULL });

	assert_true(send_body(fd, 10, true));
	assert_soon(fake_app_look(app).requests == before + 1);
	return fd;
}

static void
end(int fd)
{
	const int64_t before = rig_in_flight();

	(void)close(fd);
	assert_soon(rig_in_flight() == before - 1);
}

static bool
is_shared(void)
{
	return redis_number(look, "EXISTS " SHARED) == 1;
}

static void
serve_one_identity(const char *deadline, const char *ini)
{
	serve(with_redis("", deadline, ini), says_nothing);
}

static void
who_has_given_his_place_back_makes_room_at_once(void **state)
{
	(void)state;
	serve_one_identity("5s", ONE_IDENTITY("policy = concurrent 2\n"));
	end(hold("one"));
	const int second = hold("another");

	assert_false(is_shared());
	/* And while he has one, nobody else gets a bucket. */
	const int third = hold("one");

	assert_true(is_shared());
	end(third);
	assert_soon(!is_shared());
	end(second);
}

/* What else is counted stands there on. */
static void
who_has_spent_more_than_a_place_does_not(void **state)
{
	(void)state;
	serve_one_identity("5s", ONE_IDENTITY("policy = concurrent 2\npolicy = 5/1h\n"));
	end(hold("one"));
	const int second = hold("another");

	assert_true(is_shared());
	end(second);
}

/* For longer than the first lease was to last, and Redis's second behind it. While he asks, he
 * counts for a second beyond his deadline. */
static void
who_renews_his_place_counts_on(void **state)
{
	(void)state;
	serve_one_identity("900ms", ONE_IDENTITY("policy = concurrent 2 lease 1s\n"));
	const int first = hold("one");

	(void)poll(NULL, 0, 2100);
	const int second = hold("another");

	assert_true(is_shared());
	end(second);
	end(first);
}

/* He is gone before it is known under which bucket his place stands. */
static void
place_that_nobody_hears_of_is_given_back_under_the_shared_bucket(void **state)
{
	(void)state;
	serve_one_identity("5s", ONE_IDENTITY("policy = concurrent 2\n"));
	const int first = hold("one");

	redis_server_freeze(&server);
	for (unsigned i = 0; i < 2; i++) {
		const int fd = begin(true, (const char *const[]){ "WHO", "another", NULL });

		assert_soon(rig_in_flight() == 2);
		end(fd);
	}
	redis_server_thaw(&server);
	fake_app_set_script(app, answers);
	/* Behind all that was asked before. */
	assert_int_equal(
		rig_status(&rig, "GET", "/", (const char *const[]){ "WHO", "one", NULL }), 404);
	assert_soon(!is_shared());
	end(first);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(who_has_given_his_place_back_makes_room_at_once),
		REDIS_TEST(who_has_spent_more_than_a_place_does_not),
		REDIS_TEST(who_renews_his_place_counts_on),
		REDIS_TEST(place_that_nobody_hears_of_is_given_back_under_the_shared_bucket),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
