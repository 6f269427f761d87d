/* local_cap: what the manual says of it, a sentence a test, with a real Redis behind it. */
#include "with_redis.h"

#include "../../src/gate/commons.h"
#include "../lib/limits.h"

#include <stdio.h>

#define NONE "[backend none]\ntype = none\n"

static unsigned
status_of(const char *uri)
{
	return rig_status(&rig, "GET", uri, NULL);
}

/* As Redis has it, to be compared with what it has later. */
static void
read_state(const char *key, char state[256])
{
	redisReply *reply = redis_command(look, "GET %s", key);

	assert_int_equal(reply->type, REDIS_REPLY_STRING);
	assert_true(reply->len > 0 && reply->len < 256);
	memcpy(state, reply->str, reply->len + 1);
	freeReplyObject(reply);
}

/* ---- "... for each identity in each process that is asked before the store" ---- */

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
		assert_int_equal(status_of("/"), 200);
	const unsigned long before = redis_calls();

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(status_of("/"), 429);
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
	assert_int_equal(status_of("/"), 429);
}

static void
cap_of_a_limit_that_only_counts_only_counts(void **state)
{
	char before[256], after[256];

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit trial]\npolicy = 100/1h name trial\nlocal_cap = 2/1h\n"
			     "enforce = no\n[limit five]\npolicy = 5/1h\n" ALL
			     "limit = trial, five\n"));
	const int64_t would = rig_decisions("trial", "would_reject"),
		      passed = rig_outcome("all", "would_reject"),
		      five = rig_decisions("five", "admitted");

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(status_of("/"), 200);
	read_state("weir:trial:192.0.2.1", before);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(status_of("/"), 200);
	assert_int_equal(status_of("/"), 429);
	assert_int_equal(rig_decisions("trial", "would_reject") - would, 4);
	assert_int_equal(rig_outcome("all", "would_reject") - passed, 3);
	assert_int_equal(rig_decisions("five", "admitted") - five, 5);
	/* Redis was not asked about it, as it would not be if the cap rejected. */
	read_state("weir:trial:192.0.2.1", after);
	assert_string_equal(after, before);
	rig_reload(&rig,
		with_redis("[weir]\nenforce = no\n", "5s",
			NONE "[limit trial]\npolicy = 100/1h\nlocal_cap = 2/1h\n" ALL
			     "limit = trial\n"));
	assert_int_equal(status_of("/"), 200);
	assert_int_equal(rig_decisions("trial", "would_reject") - would, 5);
}

/* ---- "What it admits and the store rejects is spent in it all the same" ---- */

#define COSTLY ALL "limit = page\ncost = param n max 8\n"

static void
cap_spends_the_cost_of_the_request(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 100/1h\nlocal_cap = 10/1h\n" COSTLY));
	assert_int_equal(status_of("/?n=6"), 200);
	assert_int_equal(status_of("/?n=5"), 429);
	assert_int_equal(status_of("/?n=4"), 200);
	assert_int_equal(status_of("/?n=1"), 429);
	assert_int_equal(rig_logged(&rig, "policy=local_cap"), 2);
}

static void
what_the_cap_admits_and_redis_rejects_is_spent_in_it(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis(
			"", "5s", NONE "[limit page]\npolicy = 4/1h\nlocal_cap = 8/1h\n" COSTLY));
	assert_int_equal(status_of("/?n=3"), 200);
	assert_int_equal(status_of("/?n=2"), 429);
	assert_int_equal(rig_logged(&rig, "policy=1h"), 1);
	/* Three are left, and not five. */
	rig_reload(&rig,
		with_redis(
			"", "5s", NONE "[limit page]\npolicy = 100/1h\nlocal_cap = 8/1h\n" COSTLY));
	assert_int_equal(status_of("/?n=4"), 429);
	assert_int_equal(rig_logged(&rig, "policy=local_cap"), 1);
	assert_int_equal(status_of("/?n=3"), 200);
}

/* The same request again is known to be rejected, and then nothing is asked, here neither. */
static void
what_is_known_to_be_rejected_is_not_spent_in_the_cap(void **state)
{
	(void)state;
	rig_open(&rig,
		with_redis(
			"", "5s", NONE "[limit page]\npolicy = 2/1h\nlocal_cap = 4/1h\n" COSTLY));
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(status_of("/"), 200);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(status_of("/"), 429);
	assert_int_equal(rig_logged(&rig, "policy=local_cap"), 0);
}

/* ---- "Overrides do not change it" ---- */

static void
plans_do_not_change_the_cap(void **state)
{
	unsigned admitted = 0;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 5/1h\nlocal_cap = 3/1h\n"
			     "[override gold]\nlimit = page\nfor = ip 192.0.2.1\n"
			     "policy = 100/1h\n" ALL "limit = page\n"));
	for (unsigned i = 0; i < 10; i++)
		admitted += status_of("/") == 200 ? 1 : 0;
	assert_int_equal(admitted, 3);
	assert_int_equal(rig_logged(&rig, "policy=local_cap"), 7);
}

/* However many shards the limit has. */
static void
cap_of_a_limit_with_shards_is_one(void **state)
{
	unsigned admitted = 0;

	(void)state;
	rig_open(&rig,
		with_redis("", "5s",
			NONE "[limit page]\npolicy = 400/1h shards 4\nlocal_cap = 3/1h\n" ALL
			     "limit = page\n"));
	for (unsigned i = 0; i < 20; i++)
		admitted += status_of("/") == 200 ? 1 : 0;
	assert_int_equal(admitted, 3);
}

/* ---- "At most 4 MiB; beyond, those that owe least are forgotten" ---- */

struct cap_check {
	struct check check;
	enum verdict verdict;
};

static void
on_done(struct check *check, const struct decision *decision)
{
	((struct cap_check *)(void *)check)->verdict = decision->verdict;
}

static enum verdict
ask_cap(struct store *caps, const struct made_limit *made, unsigned identity, uint64_t cost)
{
	char key[32];
	struct cap_check asked = { .check = { .count = 1, .cost = cost, .done = on_done } };

	(void)snprintf(key, sizeof key, "page:%u", identity);
	asked.check.items[0] = (struct check_item){ .limit = &made->limit, .key = slice_of(key) };
	store_decide(caps, &asked.check);
	return asked.verdict;
}

static void
caps_stay_small_and_forget_those_that_owe_least(void **state)
{
	enum { GREEDY = 100, MANY = 300000 };
	struct made_limit made;
	unsigned known = 0, others = 0;
	struct err err;
	struct gate_commons *commons = gate_commons_new(&err);

	(void)state;
	assert_non_null(commons);
	struct store *caps = commons_caps(commons, &err);

	assert_non_null(caps);
	assert_ptr_equal(commons_caps(commons, &err), caps);
	make_limit(&made, "page", "10/1h");
	for (unsigned i = 0; i < GREEDY; i++)
		assert_int_equal(ask_cap(caps, &made, i, 10), VERDICT_ADMITTED);
	for (unsigned i = GREEDY; i < MANY; i++)
		assert_int_equal(ask_cap(caps, &made, i, 1), VERDICT_ADMITTED);
	for (unsigned i = 0; i < GREEDY; i++)
		known += ask_cap(caps, &made, i, 1) == VERDICT_REJECTED ? 1 : 0;
	assert_int_equal(known, GREEDY);
	/* Of the others as many as have room: each takes more than 32 bytes. */
	for (unsigned i = MANY; i-- > GREEDY;)
		others += ask_cap(caps, &made, i, 10) == VERDICT_REJECTED ? 1 : 0;
	assert_in_range(others, 10000, CAPS_SIZE / 32);
	gate_commons_free(commons);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		REDIS_TEST(cap_rejects_before_redis_is_asked),
		REDIS_TEST(cap_of_a_limit_that_only_counts_only_counts),
		REDIS_TEST(cap_spends_the_cost_of_the_request),
		REDIS_TEST(what_the_cap_admits_and_redis_rejects_is_spent_in_it),
		REDIS_TEST(what_is_known_to_be_rejected_is_not_spent_in_the_cap),
		REDIS_TEST(plans_do_not_change_the_cap),
		REDIS_TEST(cap_of_a_limit_with_shards_is_one),
		cmocka_unit_test(caps_stay_small_and_forget_those_that_owe_least),
	};

	if (!redis_server_is_installed())
		return REDIS_SERVER_SKIPPED;
	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
