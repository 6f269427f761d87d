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
	const int64_t would = rig_outcome("all", "would_refuse");

	for (unsigned i = 0; i < 3; i++)
		assert_row(rig_status(&rig, "GET", "/", NULL) == 200, "%s", ini);
	assert_row(rig_outcome("all", "would_refuse") - would == 3, "%s", ini);
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

static const char *const results[] = { "admitted", "rejected", "blocked", "refused" };

enum { RESULTS = sizeof results / sizeof results[0] };

/* What limits `keyed` and `page` have counted, with what would have been under its name. */
static void
read_counters(int64_t counts[2][RESULTS])
{
	static const char *const limits[] = { "keyed", "page" };
	static const char *const would[] = { NULL, "would_reject", "would_block", "would_refuse" };

	for (unsigned i = 0; i < LENGTH_OF(limits); i++) {
		for (unsigned j = 0; j < RESULTS; j++)
			counts[i][j] = rig_decisions(limits[i], results[j]) +
				(would[j] == NULL ? 0 : rig_decisions(limits[i], would[j]));
	}
}

/* Six requests: of nobody, of one that is blocked, and of one who is rejected from his second on;
 * each limit counts so many more. */
static void
count_six(const char *ini, const unsigned statuses[6], int64_t counts[2][RESULTS])
{
	static const char *const keys[] = { NULL, "bad", "k", "k", "k", NULL };
	int64_t before[2][RESULTS];

	serve(ini, answers_with_own_headers);
	read_counters(before);
	for (unsigned i = 0; i < 6; i++) {
		const char *const more[] = { "HTTP_X_KEY", keys[i], NULL };

		assert_row(
			rig_status(&rig, "GET", "/", keys[i] == NULL ? NULL : more) == statuses[i],
			"request %u of %s", i, ini);
	}
	read_counters(counts);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned j = 0; j < RESULTS; j++)
			counts[i][j] -= before[i][j];
	}
}

/* And so a dry run can be believed: nobody is counted elsewhere who would not have got there. */
static void
each_limit_counts_what_it_would_if_it_were_enforced(void **state)
{
	static const char *const orders[] = { "limit = keyed, page\n", "limit = page, keyed\n" };
	static const char parts[] =
		APP KEYED "[override bad]\nlimit = keyed\nfor = header X-Key bad\nblock = yes\n"
			  "[limit page]\npolicy = 2/1h\n" ALL;

	(void)state;
	for (unsigned i = 0; i < LENGTH_OF(orders); i++) {
		int64_t dry[2][RESULTS], enforced[2][RESULTS];
		char ini[1000];

		(void)snprintf(ini, sizeof ini, "%s%s", parts, orders[i]);
		count_six(ini, (const unsigned[]){ 403, 403, 200, 429, 429, 403 }, enforced);
		(void)serve_tear_down(NULL);
		(void)snprintf(ini, sizeof ini, NOT_ENFORCED "%s%s", parts, orders[i]);
		count_six(ini, (const unsigned[]){ 200, 200, 200, 200, 200, 200 }, dry);
		(void)serve_tear_down(NULL);
		assert_memory_equal(dry, enforced, sizeof dry);
		static const int64_t expected[2][RESULTS] = { { 1, 2, 1, 2 }, { 1, 0, 0, 0 } };

		assert_memory_equal(enforced, expected, sizeof expected);
	}
}

/* One outcome for each that there is where it is enforced. */
static void
what_would_have_been_keeps_its_kind(void **state)
{
	static const struct {
		const char *ini, *outcome;
	} rows[] = {
		{ KEYED ALL "limit = keyed\n", "would_refuse" },
		{ KEYED "enforce = no\n" ALL "limit = keyed\n", "would_refuse" },
		{ "[limit one]\npolicy = 9/1h\n[override bad]\nlimit = one\nfor = ip 0.0.0.0/0\n"
		  "block = yes\n" ALL "limit = one\n",
			"would_block" },
		{ "[limit one]\npolicy = 9/1h\nenforce = no\n[override bad]\nlimit = one\n"
		  "for = ip 0.0.0.0/0\nblock = yes\n" ALL "limit = one\n",
			"would_block" },
		{ "[limit one]\npolicy = 1/1h\n" ALL "limit = one\n", "would_reject" },
		{ "[limit one]\npolicy = 1/1h shadow\n" ALL "limit = one\n", "would_reject" },
	};

	(void)state;
	for (unsigned i = 0; i < LENGTH_OF(rows); i++) {
		const bool is_own = strstr(rows[i].ini, "enforce = no") != NULL ||
			strstr(rows[i].ini, "shadow") != NULL;
		char ini[1000];

		(void)snprintf(
			ini, sizeof ini, "%s" APP "%s", is_own ? "" : NOT_ENFORCED, rows[i].ini);
		serve(ini, answers_with_own_headers);
		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
		const int64_t before = rig_outcome("all", rows[i].outcome);

		assert_int_equal(rig_status(&rig, "GET", "/", NULL), 200);
		assert_row(rig_outcome("all", rows[i].outcome) - before == 1, "%s", ini);
		(void)serve_tear_down(NULL);
	}
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
		cmocka_unit_test(each_limit_counts_what_it_would_if_it_were_enforced),
		cmocka_unit_test(what_would_have_been_keeps_its_kind),
		TEST(one_that_is_enforced_refuses_beside_one_that_is_not),
	};

	return rig_start() != 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
