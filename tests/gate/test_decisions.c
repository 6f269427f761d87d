/*
 * Which requests are decided, and how: with the store away, by limits that only count, for clients
 * that do not say who they are; and those that are none.
 */
#include "../../src/memory/memory_private.h"
#include "../lib/limits.h"
#include "serve.h"
#include "weir/store.h"

#include <stdio.h>
#include <unistd.h>

static void
open_rig(const char *ini)
{
	serve(ini, answers_with_own_headers);
}

/* ---- the store is away ---- */

#define AWAY "[redis]\nserver = unix:DIR/nobody.sock\n"

static void
without_the_store_this_host_counts_alone(void **state)
{
	(void)state;
	open_rig(AWAY APP "[limit two]\npolicy = 2/1h\n" ALL "limit = two\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(rig_logged(&rig, "breaker is open"), 1);
}

static void
without_the_store_requests_pass_where_that_is_wanted(void **state)
{
	(void)state;
	open_rig(AWAY APP "[limit two]\npolicy = 2/1h\n" ALL "limit = two\nstore_down = admit\n");
	const int64_t undecided = rig_outcome("all", "undecided");

	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_outcome("all", "undecided") - undecided, 5);
}

static void
without_the_store_requests_are_503_where_that_is_wanted(void **state)
{
	struct answer answer;

	(void)state;
	open_rig(AWAY APP "[limit two]\npolicy = 2/1h\n"
			  "[route free]\nmatch = /free\n" ALL "limit = two\nstore_down = reject\n");
	const int64_t down = rig_outcome("all", "store_down");

	rig_ask(&rig, &answer, "GET", "/",
		(const char *const[]){ "HTTP_ACCEPT", "application/json", NULL });
	assert_int_equal(answer_status(&answer), 503);
	assert_between(answer_field(&answer, "Retry-After"), 1, 60);
	/* No policy was violated. */
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
	assert_null(memmem(answer.out.data, answer.out.len, "violated", 8));
	answer_release(&answer);
	assert_int_equal(rig_outcome("all", "store_down") - down, 1);
	assert_int_equal(fake_app_look(app).accepted, 0);
	/* Who has no limit needs no store. */
	assert_int_equal(rig_status(&rig, "GET", "/free", NULL), 200);
}

/* As by a process that was stopped inside. */
static void
lock_of_the_memory_store_that_is_held_lets_pass_and_is_told_of(void **state)
{
	(void)state;
	open_rig(APP "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n");
	const int64_t undecided = rig_outcome("all", "undecided");

	for (uint32_t i = 0; i < rig.memory->layout.stripe_count; i++)
		assert_int_equal(
			pthread_mutex_lock(&memory_stripe_at(rig.memory, i).stripe->lock), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (uint32_t i = 0; i < rig.memory->layout.stripe_count; i++)
		assert_int_equal(
			pthread_mutex_unlock(&memory_stripe_at(rig.memory, i).stripe->lock), 0);
	assert_int_equal(rig_outcome("all", "undecided") - undecided, 3);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(rig_logged(&rig, "The memory store did not decide"), 1);
}

/* ---- limits that only count ---- */

static void
nothing_is_rejected_where_nothing_is_enforced(void **state)
{
	struct answer answer;

	(void)state;
	open_rig("[weir]\nenforce = no\n" APP "[limit one]\npolicy = 1/1h\n" ALL
		 "limit = one\nheaders = x-ratelimit\n");
	const int64_t would = rig_outcome("all", "would_reject"),
		      decided = rig_decisions("one", "would_reject");

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_outcome("all", "would_reject") - would, 3);
	assert_int_equal(rig_decisions("one", "would_reject") - decided, 3);
	assert_int_equal(rig_logged(&rig, "Would be rejected."), 3);
	assert_int_equal(rig_logged(&rig, "info: Rejected."), 0);
	assert_int_equal(fake_app_look(app).accepted, 4);
	/* And it is not told that it was rejected. */
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	answer_release(&answer);
}

static void
limit_that_is_not_enforced_rejects_nobody_and_spares_no_other(void **state)
{
	(void)state;
	open_rig(APP
		"[limit shadow]\npolicy = 1/1h\nenforce = no\n[limit three]\npolicy = 3/1h\n" ALL
		"limit = shadow, three\n");
	const int64_t shadow = rig_decisions("shadow", "would_reject"),
		      three = rig_decisions("three", "rejected");

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(rig_decisions("shadow", "would_reject") - shadow, 3);
	assert_int_equal(rig_decisions("three", "rejected") - three, 1);
}

/* ---- clocks ---- */

static void
ignore(struct check *check, const struct decision *decision)
{
	(void)check;
	assert_int_equal(decision->verdict, VERDICT_ADMITTED);
}

/* As after a failover to a host whose clock is behind. */
static void
time_far_ahead_is_taken_as_empty_and_counted(void **state)
{
	static struct made_limit made;

	(void)state;
	open_rig(ONE_AN_HOUR);
	make_limit(&made, "one", "1/1h");
	struct check check = { .items = { { .limit = &made.limit, .key = SLICE("one:192.0.2.1") } },
		.count = 1,
		.cost = 1,
		.now_us = clock_wall_us() + 1000 * 3600 * INT64_C(1000000),
		.done = ignore };
	const int64_t clamped = counter_sum(COUNT_CLOCK_CLAMPED);

	store_decide(memory_store(rig.memory), &check);
	assert_int_equal(counter_sum(COUNT_CLOCK_CLAMPED), clamped);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(counter_sum(COUNT_CLOCK_CLAMPED), clamped + 1);
	/* It was set right. */
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	assert_int_equal(counter_sum(COUNT_CLOCK_CLAMPED), clamped + 1);
}

/* ---- who is counted ---- */

static void
request_without_identity_is_refused_let_pass_or_shares(void **state)
{
	static const char *const key[] = { "HTTP_X_API_KEY", "k", NULL };
	struct answer answer;

	(void)state;
	open_rig(APP "[limit strict]\nidentity = header X-API-Key\non_missing = reject\n"
		     "policy = 2/1h\n"
		     "[limit mild]\nidentity = header X-API-Key\non_missing = skip\npolicy = 1/1h\n"
		     "[limit shared]\nidentity = header X-API-Key\non_missing = share\n"
		     "policy = 1/1h\n"
		     "[route strict]\nmatch = /strict\nlimit = strict\n"
		     "[route mild]\nmatch = /mild\nlimit = mild\n" ALL "limit = shared\n");
	const int64_t unidentified = rig_outcome("strict", "unidentified");

	rig_ask(&rig, &answer, "GET", "/strict", NULL);
	assert_int_equal(answer_status(&answer), 403);
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	answer_release(&answer);
	assert_int_equal(rig_outcome("strict", "unidentified") - unidentified, 1);
	assert_int_equal(rig_status(&rig, "GET", "/strict", key), 200);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(rig_status(&rig, "GET", "/mild", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/mild", key), 200);
	assert_int_equal(rig_status(&rig, "GET", "/mild", key), 429);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/",
				 (const char *const[]){ "REMOTE_ADDR", "192.0.2.9", NULL }),
		429);
	/* No key stands in the log. */
	assert_int_equal(rig_logged(&rig, "identity=mild:k"), 0);
}

static void
requests_without_an_address_share_a_bucket_and_are_told_of_once(void **state)
{
	static const char *const none[] = { "REMOTE_ADDR", "", NULL };
	static const char *const odd[] = { "REMOTE_ADDR", "unix:", NULL };

	(void)state;
	open_rig(APP "[limit two]\npolicy = 2/1h\n" ALL "limit = two\n");
	assert_int_equal(rig_status(&rig, "GET", "/", none), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", odd), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", none), 429);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_logged(&rig, "without a usable REMOTE_ADDR"), 1);
}

static void
user_that_was_only_claimed_is_not_believed(void **state)
{
	static const char *const claimed[] = { "REMOTE_USER", "alice", NULL };
	static const char *const proven[] = { "REMOTE_USER", "alice", "AUTH_TYPE", "Basic", NULL };

	(void)state;
	open_rig(APP "[limit one]\nidentity = user\non_missing = reject\npolicy = 1/1h\n" ALL
		     "limit = one\n");
	assert_int_equal(rig_status(&rig, "GET", "/", claimed), 403);
	assert_int_equal(rig_status(&rig, "GET", "/", claimed), 403);
	assert_int_equal(rig_status(&rig, "GET", "/", proven), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", proven), 429);
	assert_int_equal(rig_logged(&rig, "REMOTE_USER came without AUTH_TYPE"), 1);
}

/* ---- requests of which nothing can be made ---- */

static void
path_without_a_normal_form_is_400(void **state)
{
	static const char *const paths[] = { "/%", "/%2", "/%zz", "/a%00b", "/%2" };

	(void)state;
	open_rig(ONE_AN_HOUR);
	const int64_t bad = rig_outcome("", "bad_request");

	for (size_t i = 0; i < LENGTH_OF(paths); i++)
		assert_row(rig_status(&rig, "GET", paths[i], NULL) == 400, "%s", paths[i]);
	assert_int_equal(rig_outcome("", "bad_request") - bad, LENGTH_OF(paths));
	assert_int_equal(fake_app_look(app).accepted, 0);
	/* They have spent nothing. */
	assert_int_equal(rig_status(&rig, "GET", "/%41", NULL), 200);
}

static void
pattern_that_takes_too_long_is_400(void **state)
{
	char path[60];

	(void)state;
	open_rig(APP "[route slow]\nmatch = ~ ^/(a|a)*$\n" ALL);
	assert_int_equal(rig_status(&rig, "GET", "/aa", NULL), 200);
	(void)snprintf(path, sizeof path, "/%050dx", 0);
	for (char *at = path + 1; *at == '0'; at++)
		*at = 'a';
	assert_int_equal(rig_status(&rig, "GET", path, NULL), 400);
}

/* ---- too many at once ---- */

/* So many that wait for the application, and one more, which is refused. */
static void
assert_in_flight_at_most(unsigned most)
{
	static const char *const params[] = { "REQUEST_METHOD", "GET", "REQUEST_URI", "/", NULL };
	struct answer answer;
	int fds[8];

	fake_app_set_script(app, says_nothing);
	const int64_t busy = rig_outcome("all", "busy");

	for (unsigned i = 0; i < most; i++) {
		struct buf bytes;

		bytes_init(&bytes);
		fds[i] = rig_connect(&rig);
		put_request(&bytes, &(const struct request_spec){ .params = params });
		assert_true(socket_send(fds[i], buf_slice(&bytes)));
		buf_release(&bytes);
	}
	assert_soon(fake_app_look(app).requests == most);
	rig_ask(&rig, &answer, "GET", "/", NULL);
	assert_int_equal(answer_status(&answer), 503);
	assert_slice(answer_field(&answer, "Retry-After"), SLICE("1"));
	answer_release(&answer);
	assert_int_equal(rig_outcome("all", "busy") - busy, 1);
	/* One that goes makes room. */
	(void)close(fds[0]);
	assert_soon(rig_in_flight() == (int64_t)most - 1);
	fake_app_set_script(app, answers_with_own_headers);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	for (unsigned i = 1; i < most; i++)
		(void)close(fds[i]);
}

static void
more_than_max_in_flight_are_503(void **state)
{
	(void)state;
	open_rig("[weir]\nmax_in_flight = 3\n" APP ALL);
	assert_in_flight_at_most(3);
}

static void
threads_share_max_in_flight(void **state)
{
	(void)state;
	rig.threads = 3;
	open_rig("[weir]\nmax_in_flight = 4\n" APP ALL);
	assert_in_flight_at_most(2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_the_store_this_host_counts_alone),
		TEST(without_the_store_requests_pass_where_that_is_wanted),
		TEST(without_the_store_requests_are_503_where_that_is_wanted),
		TEST(lock_of_the_memory_store_that_is_held_lets_pass_and_is_told_of),
		TEST(nothing_is_rejected_where_nothing_is_enforced),
		TEST(limit_that_is_not_enforced_rejects_nobody_and_spares_no_other),
		TEST(time_far_ahead_is_taken_as_empty_and_counted),
		TEST(request_without_identity_is_refused_let_pass_or_shares),
		TEST(requests_without_an_address_share_a_bucket_and_are_told_of_once),
		TEST(user_that_was_only_claimed_is_not_believed),
		TEST(path_without_a_normal_form_is_400),
		TEST(pattern_that_takes_too_long_is_400),
		TEST(more_than_max_in_flight_are_503),
		TEST(threads_share_max_in_flight),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
