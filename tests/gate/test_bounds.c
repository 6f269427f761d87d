/*
 * What one process sends to Redis and makes there at the most, with a real one: caps, and the
 * number of identities.
 */
#include "with_redis.h"

#include <stdio.h>
#include <unistd.h>

#define NONE "[backend none]\ntype = none\n"

enum { CLIENTS = 32 };

/* ---- local_cap ---- */

static void
cap_rejects_before_redis_is_asked(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 100/1h\nlocal_cap = 3/1h\n" ALL
			     "limit = page\n"));
	const int64_t rejected = rig_decisions("page", "rejected"),
		      admitted = rig_decisions("page", "admitted");

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	const unsigned long before = redis_calls();

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(redis_calls(), before);
	assert_int_equal(rig_decisions("page", "rejected") - rejected, 10);
	assert_int_equal(rig_decisions("page", "admitted") - admitted, 3);
	assert_int_equal(rig_logged(&rig, "limit=page policy=local_cap"), 10);
	/* Another identity has its own; and a reload keeps what was counted. */
	assert_int_equal(rig_status(&rig, "GET", "/",
				 (const char *const[]){ "REMOTE_ADDR", "192.0.2.2", NULL }),
		200);
	rig_reload(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 100/1h\nlocal_cap = 3/1h\n" ALL
			     "limit = page\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

static void
cap_of_a_limit_that_only_counts_only_counts(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit trial]\npolicy = 100/1h\nlocal_cap = 2/1h\n"
			     "enforce = no\n[limit five]\npolicy = 5/1h\n" ALL
			     "limit = trial, five\n"));
	const int64_t would = rig_decisions("trial", "would_reject"),
		      passed = rig_outcome("all", "would_reject"),
		      five = rig_decisions("five", "admitted");

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(rig_decisions("trial", "would_reject") - would, 4);
	assert_int_equal(rig_outcome("all", "would_reject") - passed, 3);
	assert_int_equal(rig_decisions("five", "admitted") - five, 5);
	/* Redis was not asked about it. */
	assert_int_equal(redis_number(look, "EXISTS weir:trial:192.0.2.1"), 1);
	rig_reload(&rig,
		with_redis("[weir]\nenforce = no\n", "5s",
			NONE "[limit trial]\npolicy = 100/1h\nlocal_cap = 2/1h\n" ALL
			     "limit = trial\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_decisions("trial", "would_reject") - would, 5);
}

/* ---- max_identities ---- */

static void
identities_beyond_the_maximum_share_a_bucket(void **state)
{
	enum { MAX = 1000, ALL_OF_THEM = 100000 };
	int fds[CLIENTS];
	unsigned admitted = 0;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 2/1h\nmax_identities = 1000\n" ALL
			     "limit = page\n"));
	const struct slice page = SLICE("page");
	const counter_cell overflowed = counter_find(COUNT_IDENTITIES_OVERFLOWED, &page),
			   known = counter_find(COUNT_IDENTITIES, &page);
	const int64_t before = counter_sum(overflowed);

	for (unsigned i = 0; i < CLIENTS; i++)
		fds[i] = rig_connect(&rig);
	for (unsigned first = 0; first < ALL_OF_THEM; first += CLIENTS) {
		for (unsigned i = 0; i < CLIENTS; i++) {
			char address[32];
			struct buf bytes;

			(void)snprintf(address, sizeof address, "10.%u.%u.%u", (first + i) >> 16,
				(first + i) >> 8 & 255, (first + i) & 255);
			bytes_init(&bytes);
			put_ask(&bytes, address);
			assert_true(socket_send(fds[i], buf_slice(&bytes)));
			buf_release(&bytes);
		}
		for (unsigned i = 0; i < CLIENTS; i++) {
			struct answer answer;

			answer_read(&answer, fds[i], 1);
			admitted += answer_status(&answer) == 200 ? 1 : 0;
			answer_release(&answer);
		}
	}
	for (unsigned i = 0; i < CLIENTS; i++)
		(void)close(fds[i]);
	/* Those that were there first, the two of the bucket that the others share, and the keys.
	 */
	assert_int_equal(admitted, MAX + 2);
	assert_in_range(redis_number(look, "DBSIZE"), MAX + 1, MAX + 2);
	assert_int_equal(redis_number(look, "EXISTS weir:page:overflow"), 1);
	assert_int_equal(counter_sum(known), MAX);
	assert_int_equal(counter_sum(overflowed) - before, ALL_OF_THEM - MAX);
	assert_int_equal(rig_logged(&rig, "max_identities"), 1);
	/* Who was there is decided by himself, and after a reload too. */
	static const char *const old[] = { "REMOTE_ADDR", "10.0.0.7", NULL };
	static const char *const new[] = { "REMOTE_ADDR", "192.0.2.7", NULL };

	assert_int_equal(rig_status(&rig, "GET", "/", old), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", old), 429);
	assert_int_equal(rig_status(&rig, "GET", "/", new), 429);
	rig_reload(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 2/1h\nmax_identities = 1000\n" ALL
			     "limit = page\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", new), 429);
	/* An identity that another gateway has made is decided by itself. */
	redis_ok(look, "RENAME weir:page:10.0.0.9 weir:page:192.0.2.9");
	assert_int_equal(rig_status(&rig, "GET", "/",
				 (const char *const[]){ "REMOTE_ADDR", "192.0.2.9", NULL }),
		200);
}

static void
identities_whose_bucket_is_full_again_make_room(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 100/1s\nmax_identities = 2\n" ALL
			     "limit = page\n"));
	for (unsigned i = 0; i < 6; i++) {
		char address[32];
		const char *const more[] = { "REMOTE_ADDR", address, NULL };
		char key[64];

		(void)snprintf(address, sizeof address, "192.0.2.%u", i);
		(void)snprintf(key, sizeof key, "EXISTS weir:page:192.0.2.%u", i);
		/* Redis keeps a bucket for a second longer than it says something. */
		assert_soon(rig_status(&rig, "GET", "/", more) == 200 &&
			redis_number(look, "%s", key) == 1);
	}
}

static void
place_under_the_shared_bucket_is_given_back(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit two]\npolicy = concurrent 2\nmax_identities = 1\n" ALL
			     "limit = two\n"));
	for (unsigned i = 0; i < 20; i++) {
		char address[32];
		const char *const more[] = { "REMOTE_ADDR", address, NULL };

		(void)snprintf(address, sizeof address, "192.0.2.%u", i);
		assert_int_equal(rig_status(&rig, "GET", "/", more), 200);
	}
	assert_soon(redis_number(look, "EXISTS weir:two:overflow") == 0);
	assert_int_equal(counter_sum(COUNT_LEASES), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(cap_rejects_before_redis_is_asked),
		REDIS_TEST(cap_of_a_limit_that_only_counts_only_counts),
		REDIS_TEST(identities_beyond_the_maximum_share_a_bucket),
		REDIS_TEST(identities_whose_bucket_is_full_again_make_room),
		REDIS_TEST(place_under_the_shared_bucket_is_given_back),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
