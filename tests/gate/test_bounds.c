/* How many identities one process makes in Redis at the most, with a real one. */
#include "with_redis.h"

#include <stdio.h>
#include <unistd.h>

#define NONE "[backend none]\ntype = none\n"

enum { CLIENTS = 32 };

static void
identities_beyond_the_maximum_share_a_bucket(void **state)
{
	enum { MAX = 1000, ALL_OF_THEM = 20000 };
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
			put_ask(&bytes, "/", address);
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

/* Not before it is gone: Redis keeps a bucket for a second longer than it says something. */
static void
identities_whose_bucket_is_full_again_make_room(void **state)
{
	static const char *const next[] = { "REMOTE_ADDR", "192.0.2.2", NULL };

	(void)state;
	rig_open(&rig,
		with_redis("", "100ms",
			NONE "[limit page]\npolicy = 1/2s\nmax_identities = 1\n" ALL
			     "limit = page\n"));
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(redis_number(look, "EXISTS weir:page:192.0.2.1"), 1);
	assert_soon(rig_status(&rig, "GET", "/", next) != 0 &&
		redis_number(look, "EXISTS weir:page:192.0.2.2") == 1);
	assert_int_equal(redis_number(look, "EXISTS weir:page:192.0.2.1"), 0);
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
		REDIS_TEST(identities_beyond_the_maximum_share_a_bucket),
		REDIS_TEST(identities_whose_bucket_is_full_again_make_room),
		REDIS_TEST(place_under_the_shared_bucket_is_given_back),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
