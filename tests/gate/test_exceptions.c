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
	const int64_t would = rig_outcome("all", "would_reject");

	ask_times(2, 200, bad);
	assert_int_equal(rig_outcome("all", "would_reject") - would, 2);
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
	assert_int_equal(rig_logged(&rig, "reason=\"cost exceeds burst\""), 1);
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
