/* What lua/engine.lua leaves of the fields that other configurations have written. */
#include "../lib/limits.h"
#include "../unit.h"
#include "one_server.h"
#include "run_engine.h"
#include "values.h"

#include <stdio.h>

static int
setup(void **state)
{
	(void)state;
	redis_ok(direct, "FLUSHALL");
	return 0;
}

static struct engine_reply
run(const struct made_limit *made, int64_t cost, uint64_t lease, int64_t now_us)
{
	return engine_run(direct,
		&(const struct engine_call){ .limit = &made->limit,
			.key = "k",
			.now_us = now_us,
			.cost = cost,
			.lease = lease });
}

/* How many fields the value has; 0: it is not there. */
static unsigned
fields(void)
{
	redisReply *reply = redis_command(direct, "GET k");
	unsigned count = 0;

	if (reply->type != REDIS_REPLY_NIL) {
		assert_row(value_is_well_formed(reply->str), "%s", reply->str);
		count = 1;
		for (const char *at = reply->str; *at != '\0'; at++)
			count += *at == ',';
	}
	freeReplyObject(reply);
	return count;
}

/* ---- leases ---- */

/* With a number for the signature, in full, and with states that are no times. */
static const char *const others[] = { "3/1h", "3/1h name h", "3/1h sliding-window",
	"3/1h sliding-log", "3/month calendar", "concurrent 3 lease 1h name other" };

static void
the_last_lease_given_back_leaves_what_others_have_spent(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		struct made_limit other, made;

		redis_ok(direct, "FLUSHALL");
		make_limit(&other, "l", others[i]);
		make_limit(&made, "l", "concurrent 2 name c");
		for (uint64_t n = 1; n <= 3; n++)
			assert_int_equal(run(&other, 1, 10 + n, IN_2026_US).numbers[0], 1);
		for (uint64_t lease = 1; lease <= 3; lease++) {
			assert_int_equal(run(&made, 1, lease, IN_2026_US + 1).numbers[0], 1);
			assert_int_equal(fields(), 2);
			assert_int_equal(run(&made, -1, lease, IN_2026_US + 2).numbers[0], 1);
			assert_int_equal(fields(), 2);
			assert_int_equal(run(&made, 0, lease, IN_2026_US + 3).numbers[0], 1);
			assert_int_equal(fields(), 1);
			assert_row(run(&other, 1, 20, IN_2026_US + 4).numbers[0] == 0,
				"%s has forgotten what was spent", others[i]);
		}
	}
}

static void
when_nothing_is_left_the_key_goes(void **state)
{
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "concurrent 2", "concurrent 1 name b shadow");
	assert_int_equal(run(&made, 1, 1, IN_2026_US).numbers[0], 1);
	assert_int_equal(run(&made, 0, 1, IN_2026_US).numbers[0], 1);
	assert_int_equal(redis_number(direct, "EXISTS k"), 0);
	assert_int_equal(run(&made, 0, 1, IN_2026_US).numbers[0], 0);
	assert_int_equal(redis_number(direct, "EXISTS k"), 0);
}

/* ---- too many ---- */

/* Each that was renamed leaves one behind. */
static void
of_others_no_more_are_kept_than_make_sixteen(void **state)
{
	static const char *const forms[] = { "100/1d name", "100/1d sliding-window name",
		"100/month calendar name", "concurrent 100 lease 1h name" };
	struct made_limit made;
	char policy[64];

	(void)state;
	for (unsigned n = 0; n < 40; n++) {
		(void)snprintf(policy, sizeof policy, "%s n%u", forms[n % LENGTH_OF(forms)], n);
		make_limit(&made, "l", policy);
		assert_int_equal(run(&made, 1, 1, IN_2026_US + n).numbers[0], 1);
		assert_int_equal(fields(), n < BUCKET_FIELDS_MAX ? n + 1 : BUCKET_FIELDS_MAX);
		assert_int_equal(run(&made, 1, 2, IN_2026_US + n).numbers[3], 2);
	}
	/* The one before the last is there, the first is not. */
	(void)snprintf(policy, sizeof policy, "%s n38", forms[38 % LENGTH_OF(forms)]);
	make_limit(&made, "l", policy);
	assert_int_equal(run(&made, 1, 3, IN_2026_US + 50).numbers[3], 3);
	make_limit(&made, "l", "100/1d name n0");
	assert_int_equal(run(&made, 1, 3, IN_2026_US + 50).numbers[3], 1);
	/* Nor more of a limit that has several policies itself. */
	make_limit(&made, "l", "9/1h sliding-log", "9/1d name a", "9/1d name b", "9/1d name c",
		"9/1d name d", "9/1d name e", "9/1d name f", "9/1d name g");
	assert_int_equal(run(&made, 1, 4, IN_2026_US + 60).numbers[0], 1);
	assert_int_equal(fields(), BUCKET_FIELDS_MAX);
}

#define value_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		value_test(the_last_lease_given_back_leaves_what_others_have_spent),
		value_test(when_nothing_is_left_the_key_goes),
		value_test(of_others_no_more_are_kept_than_make_sixteen),
	};

	(void)setenv("TZ", "UTC", 1);
	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return cmocka_run_group_tests_name(
		"redis/engine_values", tests, group_setup, group_teardown);
}
