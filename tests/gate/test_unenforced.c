/*
 * Where nothing is enforced nothing is refused, whatever the reason would be: it is counted, told
 * in the log, and let pass.
 */
#include "serve.h"

#include <stdio.h>

#define AWAY "[redis]\nserver = unix:DIR/nobody.sock\n"
#define NOT_ENFORCED "[weir]\nenforce = no\n"
#define KEYED "[limit keyed]\nidentity = header X-Key\non_missing = reject\npolicy = 1/1h\n"

/* Three requests that would be refused, for one reason, with this status. */
static void
assert_passes(const char *ini, const char *reason, unsigned status)
{
	char told[100];

	serve(ini, answers_with_own_headers);
	const int64_t would = rig_outcome("all", "would_reject");

	for (unsigned i = 0; i < 3; i++)
		assert_row(rig_status(&rig, "GET", "/", NULL) == 200, "%s", ini);
	assert_row(rig_outcome("all", "would_reject") - would == 3, "%s", ini);
	assert_int_equal(fake_app_look(app).accepted, 3);
	(void)snprintf(told, sizeof told, "reason=\"%s\" status=%u", reason, status);
	assert_row(rig_logged(&rig, told) == 3, "%s", told);
	assert_int_equal(rig_logged(&rig, "Would be refused."), 3);
	assert_int_equal(rig_logged(&rig, "info: Refused."), 0);
	(void)serve_tear_down(NULL);
}

static void
nobody_is_refused_for_saying_nothing_of_himself(void **state)
{
	(void)state;
	assert_passes(NOT_ENFORCED APP KEYED ALL "limit = keyed\n", "on_missing = reject", 403);
	assert_passes(APP KEYED "enforce = no\n" ALL "limit = keyed\n", "on_missing = reject", 403);
}

static void
nobody_is_refused_because_the_store_is_away(void **state)
{
	(void)state;
	assert_passes(NOT_ENFORCED AWAY APP "[limit one]\npolicy = 1/1h\n" ALL
					    "limit = one\nstore_down = reject\n",
		"store_down = reject", 503);
	assert_passes(AWAY APP "[limit one]\npolicy = 1/1h\nenforce = no\n" ALL
			       "limit = one\nstore_down = reject\n",
		"store_down = reject", 503);
	assert_passes(AWAY APP "[limit one]\npolicy = 1/1h shadow\n" ALL
			       "limit = one\nstore_down = reject\n",
		"store_down = reject", 503);
}

/* The limit that is not enforced takes no other one with it. */
static void
one_that_is_enforced_refuses_beside_one_that_is_not(void **state)
{
	(void)state;
	serve(AWAY APP KEYED "enforce = no\n"
			     "[limit one]\npolicy = 1/1d shadow\npolicy = 1/1h\n" ALL
			     "limit = keyed, one\nstore_down = reject\n",
		answers_with_own_headers);
	const int64_t down = rig_outcome("all", "store_down");

	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 503);
	assert_int_equal(rig_outcome("all", "store_down") - down, 1);
	assert_int_equal(rig_logged(&rig, "info: Refused."), 1);
	rig_reload(&rig,
		APP KEYED "enforce = no\n[limit one]\npolicy = 1/1h\n" ALL "limit = keyed, one\n");
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
	assert_int_equal(rig_status(&rig, "GET", "/", NULL), 429);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_refused_for_saying_nothing_of_himself),
		cmocka_unit_test(nobody_is_refused_because_the_store_is_away),
		TEST(one_that_is_enforced_refuses_beside_one_that_is_not),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
