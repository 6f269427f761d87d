/* Overrides, exempt networks, costs, shards and policies that only count, as requests meet them. */
#include "serve.h"

#include <stdio.h>

/* The gate alone answers. */
#define NONE "[backend none]\ntype = none\n"

static const char *const gold[] = { "HTTP_X_API_KEY", "gold", NULL };
static const char *const bad[] = { "HTTP_X_API_KEY", "bad", NULL };
static const char *const office[] = { "REMOTE_ADDR", "198.51.100.7", NULL };

static int
tear_down(void **state)
{
	(void)state;
	rig_close(&rig);
	return 0;
}

static void
ask_times(unsigned times, unsigned status, const char *const *more)
{
	for (unsigned i = 0; i < times; i++)
		assert_int_equal(rig_status(&rig, "GET", "/", more), status);
}

#define PLANS                                                                                      \
	"[limit api]\nidentity = header X-API-Key, ip\npolicy = 1/1h\npolicy = 50/1d\n"            \
	"[override gold]\nlimit = api\nfor = header X-API-Key gold\npolicy = 3/1h name 1h\n"       \
	"[override office]\nlimit = api\nfor = ip 198.51.100.0/24\nexempt = yes\n"                 \
	"[override bad]\nlimit = api\nfor = header X-API-Key bad\nblock = yes\n"

static void
plan_has_its_own_policies(void **state)
{
	(void)state;
	rig_open(&rig, NONE PLANS ALL "limit = api\n");
	ask_times(1, 200, NULL);
	ask_times(1, 429, NULL);
	ask_times(3, 200, gold);
	ask_times(1, 429, gold);
	/* What was counted goes on when the plan goes. */
	rig_reload(&rig,
		NONE "[limit api]\nidentity = header X-API-Key, ip\npolicy = 1/1h\n" ALL
		     "limit = api\n");
	ask_times(1, 429, gold);
}

/* Whose plan was too small for him, and whose key was none. */
static void
line_of_a_rejection_names_the_override(void **state)
{
	(void)state;
	for (unsigned enforced = 0; enforced < 2; enforced++) {
		rig_open(&rig,
			enforced != 0 ? NONE PLANS ALL "limit = api\n"
				      : "[weir]\nenforce = no\n" NONE PLANS ALL "limit = api\n");
		ask_times(3, 200, gold);
		ask_times(1, enforced != 0 ? 429 : 200, gold);
		ask_times(1, 200, NULL);
		ask_times(1, enforced != 0 ? 429 : 200, NULL);
		assert_int_equal(rig_logged(&rig, "ejected. client="), 2);
		assert_int_equal(
			rig_logged(&rig, " policy=1h admits=3/1h override=gold retry_after="), 1);
		assert_int_equal(rig_logged(&rig, " policy=1h admits=1/1h retry_after="), 1);
		/* It costs as much as usual, so nothing is said of it. */
		assert_int_equal(rig_logged(&rig, "cost="), 0);
		if (enforced == 0)
			rig_close(&rig);
	}
}

/* Also where the limit's own cap is what rejects. */
static void
line_of_a_cap_names_the_override(void **state)
{
	(void)state;
	rig_open(&rig,
		NONE "[limit api]\nidentity = header X-API-Key, ip\npolicy = 9/1h\n"
		     "local_cap = 1/1h\n[override gold]\nlimit = api\n"
		     "for = header X-API-Key gold\npolicy = 8/1h\n" ALL "limit = api\n");
	ask_times(1, 200, gold);
	ask_times(1, 429, gold);
	assert_int_equal(rig_logged(&rig, " admits=1/1h override=gold "), 1);
}

static void
exempt_is_not_counted(void **state)
{
	struct answer answer;

	(void)state;
	rig_open(&rig, NONE PLANS "[route all]\nmatch = *\nlimit = api\nheaders = x-ratelimit\n");
	const int64_t admitted = rig_decisions("api", "admitted");

	ask_times(10, 200, office);
	assert_int_equal(rig_decisions("api", "admitted"), admitted);
	rig_ask(&rig, &answer, "GET", "/", office);
	assert_int_equal(answer_field_count(&answer, "X-RateLimit-Limit"), 0);
	answer_release(&answer);
}

static void
blocked_is_403_with_a_line_and_a_counter_of_its_own(void **state)
{
	struct answer answer;

	(void)state;
	rig_open(&rig, NONE PLANS ALL "limit = api\n");
	const int64_t blocked = rig_outcome("all", "blocked");

	rig_ask(&rig, &answer, "GET", "/", bad);
	assert_int_equal(answer_status(&answer), 403);
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	answer_release(&answer);
	assert_int_equal(rig_outcome("all", "blocked") - blocked, 1);
	assert_int_equal(rig_logged(&rig, "Blocked."), 1);
	assert_int_equal(rig_logged(&rig, "override=bad"), 1);
	assert_int_equal(rig_logged(&rig, "gold"), 0);
}

static void
where_nothing_is_enforced_nobody_is_blocked(void **state)
{
	(void)state;
	rig_open(&rig, "[weir]\nenforce = no\n" NONE PLANS ALL "limit = api\n");
	const int64_t would = rig_outcome("all", "would_block");

	ask_times(2, 200, bad);
	assert_int_equal(rig_outcome("all", "would_block") - would, 2);
	assert_int_equal(rig_logged(&rig, "Would be blocked."), 2);
	assert_int_equal(rig_logged(&rig, "info: Blocked."), 0);
}

static void
exempt_network_of_a_route_is_not_counted(void **state)
{
	(void)state;
	rig_open(&rig,
		NONE "[limit one]\npolicy = 1/1h\n" ALL
		     "limit = one\nexempt_ip = 198.51.100.0/24\n");
	ask_times(5, 200, office);
	ask_times(1, 200, NULL);
	ask_times(1, 429, NULL);
}

static void
request_costs_what_its_parameter_says(void **state)
{
	struct answer answer;

	(void)state;
	rig_open(&rig,
		NONE "[limit ten]\npolicy = 10/1h\n" ALL "limit = ten\ncost = param n max 100\n");
	assert_int_equal(rig_status(&rig, "GET", "/?n=6", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/?n=5", NULL), 429);
	assert_int_equal(rig_status(&rig, "GET", "/?n=4", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
	rig_ask(&rig, &answer, "GET", "/?n=11", NULL);
	assert_int_equal(answer_status(&answer), 429);
	assert_int_equal(answer_field_count(&answer, "Retry-After"), 0);
	answer_release(&answer);
	/* Why it was rejected with some left. */
	assert_int_equal(rig_logged(&rig, " admits=10/1h cost=5 retry_after="), 1);
	assert_int_equal(
		rig_logged(&rig, " admits=10/1h cost=11 reason=\"cost exceeds burst\" "), 1);
	assert_int_equal(rig_logged(&rig, "cost="), 2);
}

static void
shadow_policy_is_counted_and_logged_and_rejects_nobody(void **state)
{
	(void)state;
	rig_open(&rig,
		NONE "[limit page]\npolicy = 5/1h\npolicy = 2/1d name trial shadow\n" ALL
		     "limit = page\n");
	const int64_t would = rig_decisions("page", "would_reject"),
		      admitted = rig_decisions("page", "admitted"),
		      rejected = rig_decisions("page", "rejected"),
		      passed = rig_outcome("all", "would_reject");

	ask_times(5, 200, NULL);
	ask_times(1, 429, NULL);
	assert_int_equal(rig_decisions("page", "admitted") - admitted, 2);
	assert_int_equal(rig_decisions("page", "would_reject") - would, 3);
	assert_int_equal(rig_decisions("page", "rejected") - rejected, 1);
	assert_int_equal(rig_outcome("all", "would_reject") - passed, 3);
	/* The request that was rejected would have been by the other policy too. */
	assert_int_equal(rig_logged(&rig, "Would be rejected."), 4);
	assert_int_equal(rig_logged(&rig, "policy=trial"), 4);
	assert_int_equal(rig_logged(&rig, "info: Rejected."), 1);
}

/* Which of two new policies is the one that is too strict. */
static void
each_policy_that_rejects_is_counted(void **state)
{
	static const char *const policies[] = { "1d", "loose", "strict" };
	int64_t before[2][3];

	(void)state;
	rig_open(&rig,
		NONE "[limit tried]\npolicy = 4/1d\npolicy = 3/1d name loose shadow\n"
		     "policy = 1/1d name strict shadow\n" ALL "limit = tried\n");
	for (unsigned i = 0; i < LENGTH_OF(policies); i++) {
		before[0][i] = rig_rejections("tried", policies[i], "would_reject");
		before[1][i] = rig_rejections("tried", policies[i], "rejected");
	}
	ask_times(4, 200, NULL);
	ask_times(2, 429, NULL);
	static const int64_t expected[2][3] = { { 0, 3, 5 }, { 2, 0, 0 } };

	for (unsigned i = 0; i < LENGTH_OF(policies); i++) {
		assert_row(rig_rejections("tried", policies[i], "would_reject") - before[0][i] ==
				expected[0][i],
			"would_reject %s", policies[i]);
		assert_row(rig_rejections("tried", policies[i], "rejected") - before[1][i] ==
				expected[1][i],
			"rejected %s", policies[i]);
	}
}

static void
a_proxy_that_names_nobody_is_counted_and_told_once(void **state)
{
	static const char *const proxy[] = { "REMOTE_ADDR", "10.0.0.1", NULL };
	static const char *const client[] = { "REMOTE_ADDR", "10.0.0.1", "HTTP_X_FORWARDED_FOR",
		"192.0.2.1", NULL };

	(void)state;
	rig_open(&rig, "[weir]\ntrusted_proxies = 10.0.0.0/24\n" NONE ALL);
	const int64_t before = counter_sum(COUNT_FORWARDED_MISSING);

	ask_times(3, 200, client);
	assert_int_equal(counter_sum(COUNT_FORWARDED_MISSING), before);
	ask_times(3, 200, proxy);
	assert_int_equal(counter_sum(COUNT_FORWARDED_MISSING) - before, 3);
	assert_int_equal(rig_logged(&rig, "warning: A trusted proxy named no client"), 1);
	assert_int_equal(rig_logged(&rig, " proxy=10.0.0.1"), 1);
}

static void
shards_together_never_admit_more_than_the_limit(void **state)
{
	unsigned admitted = 0;

	(void)state;
	rig_open(&rig,
		NONE "[limit hot]\nidentity = all\npolicy = 10/1h burst 12 shards 4\n" ALL
		     "limit = hot\n");
	for (unsigned i = 0; i < 400; i++)
		admitted += rig_status(&rig, "GET", "/", NULL) == 200 ? 1 : 0;
	assert_int_equal(admitted, 12);
}

#define OWN_TEST(name) cmocka_unit_test_teardown(name, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		OWN_TEST(plan_has_its_own_policies),
		OWN_TEST(line_of_a_rejection_names_the_override),
		OWN_TEST(line_of_a_cap_names_the_override),
		OWN_TEST(each_policy_that_rejects_is_counted),
		OWN_TEST(a_proxy_that_names_nobody_is_counted_and_told_once),
		OWN_TEST(exempt_is_not_counted),
		OWN_TEST(blocked_is_403_with_a_line_and_a_counter_of_its_own),
		OWN_TEST(where_nothing_is_enforced_nobody_is_blocked),
		OWN_TEST(exempt_network_of_a_route_is_not_counted),
		OWN_TEST(request_costs_what_its_parameter_says),
		OWN_TEST(shadow_policy_is_counted_and_logged_and_rejects_nobody),
		OWN_TEST(shards_together_never_admit_more_than_the_limit),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
