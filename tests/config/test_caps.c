/* What can never act, or acts where nobody expects it: caps, shards, costs, names. */
#include "compose.h"

struct row {
	const char *ini, *said;
};

static void
assert_rows(const char *around, const struct row *rows, size_t count)
{
	char ini[2048];

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(ini, sizeof ini, "%s%s", around, rows[i].ini);
		assert_said(ini, rows[i].said);
	}
}

#define BACKEND "[redis]\n[backend b]\nserver = unix:/b\n"
#define ROUTE "[route r]\nmatch = *\nlimit = l\n"
#define LIMIT BACKEND ROUTE "[limit l]\n"

static void
a_cap_behind_a_stricter_policy_changes_nothing(void **state)
{
#define NOTHING(policy, line)                                                                      \
	"weir.ini:8: [limit l] local_cap: warning: changes nothing, since policy \"" policy        \
	"\" at weir.ini:" line                                                                     \
	" is stricter in burst and in rate; write less than that, or leave it out\n"
	static const struct row rows[] = {
		{ "local_cap = 3/1s\npolicy = 1/1s\n", NOTHING("1s", "9") },
		{ "local_cap = 1/1s\npolicy = 1/1s\n", NOTHING("1s", "9") },
		{ "local_cap = 3/1s\npolicy = 9/1s burst 2\npolicy = 3/1m\n", NOTHING("1m", "10") },
		/* smaller in one of both */
		{ "local_cap = 3/1s burst 2\npolicy = 3/1s\n", "" },
		{ "local_cap = 1/2s burst 9\npolicy = 3/1s\n", "" },
		/* what is only counted keeps nobody away */
		{ "local_cap = 3/1s\npolicy = 1/1s shadow\n", "" },
		/* shards, and other algorithms, are compared with nothing */
		{ "local_cap = 8/1s\npolicy = 8/1s burst 4 shards 2\n", "" },
		{ "local_cap = 8/1s\npolicy = 8/1s sliding-window\n", "" },
		/* a plan may be what it is for */
		{ "local_cap = 8/1s\npolicy = 5/1s\n[override o]\nlimit = l\n"
		  "for = ip 192.0.2.1\npolicy = 6/1s\n",
			"" },
		/* there is nothing else while Redis is away */
		{ "local_cap = 3/1s\npolicy = 1/1s\n[route]\nstore_down = admit\n", "" },
		/* one for all limits */
		{ "policy = 1/1s\n[limit]\nlocal_cap = 3/1s\n", "" },
	};

	(void)state;
	assert_rows(LIMIT, rows, LENGTH_OF(rows));
}

static void
a_plan_beyond_the_cap_is_told(void **state)
{
#define PLAN(policy) "[override gold]\nlimit = l\nfor = ip 192.0.2.1\npolicy = " policy "\n"
#define BEYOND                                                                                     \
	"weir.ini:13: [override gold] policy: warning: is more than local_cap of limit l at "      \
	"weir.ini:8, which is the same for all: no process admits more than 20 at once and "       \
	"20/1m; write a larger local_cap\n"
	static const struct row rows[] = {
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("100/1m"), BEYOND },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("20/1m burst 21"), BEYOND },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("21/1m burst 20"), BEYOND },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("21/1m sliding-log"), BEYOND },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("30000/day calendar name 1m"),
			BEYOND },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("20/1m"), "" },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("1000/day calendar name 1m"), "" },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("concurrent 99 name 1m"), "" },
		{ "local_cap = 20/1m\npolicy = 40/1m\n" PLAN("100/1m shadow"), "" },
	};

	(void)state;
	assert_rows(LIMIT, rows, LENGTH_OF(rows));
}

/* Of the cap, the policies and the plans, the one that holds least is what counts. */
static void
a_cost_is_held_against_the_cap(void **state)
{
#define COST(cost) BACKEND ROUTE "cost = " cost "\n[limit l]\n"
#define CAP "local_cap = 5/1s burst 5\npolicy = 10/1s\n"
	(void)state;
	assert_said(COST("6") CAP,
		"weir.ini:7: [route r] cost: 6 is more than local_cap of limit l ever holds (burst "
		"5), so no request would be admitted\n");
	assert_said(COST("5") CAP, "");
	assert_said(COST("param n max 6") CAP,
		"weir.ini:7: [route r] cost: warning: a request may cost more than local_cap of "
		"limit l ever holds (burst 5), and would never be admitted; write max 5\n");
	assert_said(COST("param n max 5") CAP, "");
	assert_said(COST("header N") "local_cap = 5/1s\npolicy = 10/1s burst 4\n",
		"weir.ini:7: [route r] cost: warning: a request may cost more than policy \"1s\" "
		"of limit l ever holds (burst 4), and would never be admitted; write max 4\n");
	assert_said(COST("param n") CAP "[override o]\nlimit = l\nfor = ip 192.0.2.1\n"
					"policy = 3/1s\n",
		"weir.ini:7: [route r] cost: warning: a request may cost more than policy \"1s\" "
		"of override o ever holds (burst 3), and would never be admitted; write max 3\n");
}

static void
shards_hold_a_whole_number_each(void **state)
{
#define LOST(shards, each, all, burst, right)                                                      \
	"weir.ini:8: [limit l] policy: warning: " shards " shards of " each " hold " all           \
	" together, and not " burst "; write burst " right "\n"
	static const struct row rows[] = {
		{ "policy = 70/1m burst 70 shards 7\n", "" },
		{ "policy = 70/1m burst 127 shards 16\n", LOST("16", "7", "112", "127", "128") },
		{ "policy = 9/1m burst 9 shards 2\n", LOST("2", "4", "8", "9", "10") },
		/* a hundredth */
		{ "policy = 200/1m burst 201 shards 2\n", "" },
		{ "policy = 10/1s burst 199 shards 3\n", "" },
		{ "policy = 10/1s burst 101 shards 3\n", LOST("3", "33", "99", "101", "102") },
		/* by default it is the count */
		{ "policy = 7/1m shards 4\n",
			LOST("4", "1", "4", "7",
				"8") "weir.ini:8: [limit l] policy: warning: burst 1 in each shard "
				     "rejects a second request within 34.29 s; a page with its "
				     "images "
				     "and scripts asks for more at once\n" },
		/* an interval of a shard is long, and so is less lost by rounding it */
		{ "policy = 600000/1s burst 640 shards 64\n", "" },
	};

	(void)state;
	assert_rows(LIMIT, rows, LENGTH_OF(rows));
}

/* Whatever stands in one shard of the second. */
static void
shards_are_compared_by_what_they_hold(void **state)
{
	static const struct row rows[] = {
		{ "policy = 10/1s burst 12 shards 4\npolicy = 1/1m burst 12\n", "" },
		{ "policy = 1/1m burst 3\npolicy = 100/1s burst 12 shards 4\n",
			"weir.ini:9: [limit l] policy: warning: can never reject, since \"1m\" at "
			"weir.ini:8 is stricter in burst and in rate\n" },
		{ "policy = 100/1s burst 4\npolicy = 100/1s burst 16 shards 4 name two\n", "" },
	};

	(void)state;
	assert_rows(LIMIT, rows, LENGTH_OF(rows));
}

static void
no_two_policies_have_one_name_for_clients(void **state)
{
#define BOTH BACKEND "[route r]\nmatch = *\nlimit = a, a-b\n"
#define TOLD(line, key, name, other)                                                               \
	"weir.ini:" line ": [limit " key ": warning: clients know it as \"" name                   \
	"\", and what stands at weir.ini:" other " too; give one of them another name\n"
	static const struct row rows[] = {
		{ "[limit a]\npolicy = 9/1s name b-c\npolicy = 90/1m\n"
		  "[limit a-b]\npolicy = 9/1s\npolicy = 90/1m name c\n",
			TOLD("12", "a-b] policy", "a-b-c", "8") },
		{ "[limit a-b]\npolicy = 9/1s\npolicy = 90/1m name c\n"
		  "[limit a]\npolicy = 9/1s name b-c\npolicy = 90/1m\n",
			TOLD("11", "a] policy", "a-b-c", "9") },
		{ "[limit a]\npolicy = 9/1s name b\npolicy = 90/1m\n[limit a-b]\npolicy = 9/1s\n",
			TOLD("10", "a-b]", "a-b", "8") },
		/* one policy that rejects is known by the limit alone */
		{ "[limit a]\npolicy = 9/1s name b\npolicy = 90/1m shadow\n"
		  "[limit a-b]\npolicy = 9/1s\n",
			"" },
		{ "[limit a]\npolicy = 9/1s name b-c\npolicy = 90/1m\n"
		  "[limit a-b]\npolicy = 9/1s\npolicy = 90/1m name d\n",
			"" },
	};

	(void)state;
	assert_rows(BOTH, rows, LENGTH_OF(rows));
}

static void
a_route_without_limit_exempts_nobody(void **state)
{
	(void)state;
	assert_said(BACKEND "[limit l]\npolicy = 5/1m\n[route h]\nmatch = /h\n"
			    "exempt_ip = 192.0.2.1\n" ROUTE,
		"weir.ini:8: [route h] exempt_ip: warning: has no effect: this route has no limit; "
		"for all routes write it into [route]\n");
	assert_said(BACKEND "[limit l]\npolicy = 5/1m\n[route h]\nmatch = /h\n" ROUTE
			    "[route]\nexempt_ip = 192.0.2.1\n",
		"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cap_behind_a_stricter_policy_changes_nothing),
		cmocka_unit_test(a_plan_beyond_the_cap_is_told),
		cmocka_unit_test(a_cost_is_held_against_the_cap),
		cmocka_unit_test(shards_hold_a_whole_number_each),
		cmocka_unit_test(shards_are_compared_by_what_they_hold),
		cmocka_unit_test(no_two_policies_have_one_name_for_clients),
		cmocka_unit_test(a_route_without_limit_exempts_nobody),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
