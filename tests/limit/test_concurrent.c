/* Leases: taken by decisions, given back, prolonged, and ended by time. */
#include "asking.h"

#define LEASE_US (10 * US_PER_S)

static struct made_limit made;
static struct kept kept;

static int
setup(void **state)
{
	(void)state;
	make_limit(&made, "l", "concurrent 3 lease 10s");
	kept.len = 0;
	return 0;
}

static bool
take(uint64_t lease, int64_t after_us)
{
	return ask_for(&kept, &made.limit, 1, lease, IN_2026_US + after_us).verdict ==
		VERDICT_ADMITTED;
}

static bool
give_back(uint64_t lease)
{
	return kept_release(&kept, &made.limit, lease);
}

static bool
renew(uint64_t lease, int64_t after_us)
{
	return kept_renew(&kept, &made.limit, lease, IN_2026_US + after_us);
}

static uint64_t
free_places(int64_t after_us)
{
	struct kept copy = { .len = 0 };

	kept_copy(&copy, &kept);
	uint64_t places = 0;

	while (ask(&copy, &made, 1, IN_2026_US + after_us).verdict == VERDICT_ADMITTED)
		places++;
	return places;
}

static void
a_lease_that_is_given_back_makes_place_for_one(void **state)
{
	(void)state;
	assert_true(take(1000, 0) && take(2000, 1) && take(3000, 2));
	assert_false(take(4000, 3));
	assert_true(give_back(2000));
	assert_int_equal(free_places(3), 1);
	assert_true(take(4000, 3));
	assert_false(take(5000, 3));
}

static void
giving_back_what_is_not_held_changes_nothing(void **state)
{
	(void)state;
	assert_false(give_back(1000));
	assert_true(take(1000, 0));
	assert_false(give_back(2000));
	assert_true(give_back(1000));
	assert_false(give_back(1000));
	assert_int_equal(free_places(0), 3);
	assert_int_equal(kept.len, 0);
}

static void
a_lease_ends_by_itself_to_the_microsecond(void **state)
{
	(void)state;
	assert_true(take(1000, 0) && take(2000, 5) && take(3000, 5));
	assert_int_equal(free_places(LEASE_US - 1), 0);
	assert_int_equal(free_places(LEASE_US), 1);
	assert_int_equal(free_places(LEASE_US + 5), 3);
	/* Its late return takes nobody's place. */
	assert_true(take(4000, LEASE_US + 5));
	assert_false(give_back(1000));
	assert_int_equal(free_places(LEASE_US + 5), 2);
}

static void
a_lease_that_is_renewed_lasts_from_then_on(void **state)
{
	(void)state;
	assert_true(take(1000, 0) && take(2000, 0) && take(3000, 0));
	assert_true(renew(2000, LEASE_US - 1));
	assert_int_equal(free_places(LEASE_US), 2);
	assert_int_equal(free_places(2 * LEASE_US - 2), 2);
	assert_int_equal(free_places(2 * LEASE_US - 1), 3);
	/* What has ended may be somebody else's place by now. */
	assert_false(renew(1000, LEASE_US));
	assert_false(renew(9000, 0));
	assert_int_equal(free_places(LEASE_US), 2);
}

static void
the_same_lease_taken_twice_is_one(void **state)
{
	(void)state;
	assert_true(take(1000, 0) && take(2000, 0));
	assert_true(take(2000, LEASE_US - 1));
	assert_int_equal(free_places(LEASE_US - 1), 1);
	assert_int_equal(free_places(LEASE_US), 2);
	assert_true(give_back(2000));
	assert_int_equal(free_places(LEASE_US), 3);
	/* Where all places are taken, nobody looks whose they are. */
	assert_true(take(1000, LEASE_US) && take(2000, LEASE_US) && take(3000, LEASE_US));
	assert_false(take(2000, LEASE_US));
	assert_int_equal(free_places(LEASE_US), 0);
}

/* A process that dies leaves its leases; nothing else holds them. */
static void
a_thousand_are_counted_one_by_one(void **state)
{
	uint64_t random = 4;

	(void)state;
	make_limit(&made, "l", "concurrent 1000 lease 10s");
	for (uint64_t lease = 1; lease <= 1000; lease++)
		assert_true(take(lease, (int64_t)lease));
	assert_false(take(5000, 1001));
	for (unsigned n = 0; n < 300; n++)
		(void)give_back(1 + random_below(&random, 1000));
	const uint64_t places = free_places(1001);

	assert_in_range(places, 200, 300);
	assert_int_equal(kept.len, 3 + 2 * (1000 - places));
	assert_int_equal(free_places(LEASE_US + 1000), 1000);
}

static void
a_clock_that_was_set_back_keeps_nobody_longer_than_a_lease(void **state)
{
	(void)state;
	assert_true(take(1000, 0) && take(2000, 0) && take(3000, 0));
	const int64_t hour_us = 3600 * US_PER_S;
	struct decision decision = ask_for(&kept, &made.limit, 1, 4000, IN_2026_US - US_PER_S);

	assert_false(decision.clamped);
	decision = ask_for(&kept, &made.limit, 1, 4000, IN_2026_US - hour_us);
	assert_true(decision.clamped && kept.changed);
	assert_int_equal(decision.verdict, VERDICT_REJECTED);
	assert_int_equal(free_places(LEASE_US - hour_us - 1), 0);
	assert_int_equal(free_places(LEASE_US - hour_us), 3);
}

/* ---- two configurations ---- */

static struct decision
ask_of(const struct made_limit *of, uint64_t lease, int64_t after_us)
{
	return ask_for(&kept, &of->limit, 1, lease, IN_2026_US + after_us);
}

/* A reload that shortens the lease, or two gateways of which one was not reloaded yet. */
static void
a_lease_of_another_configuration_lasts_as_long_as_it_was_taken_for(void **state)
{
	static const char *const policies[] = { "concurrent 2 lease 2s", "concurrent 2 lease 1ms",
		"concurrent 2 lease 9999ms", "concurrent 2 lease 10m" };
	struct made_limit other;

	(void)state;
	make_limit(&made, "l", "concurrent 2 lease 10s");
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		kept.len = 0;
		make_limit(&other, "l", policies[i]);
		assert_true(take(1000, 0));
		/* The other one takes and gives back, over and over. */
		for (int64_t after_us = 1; after_us < LEASE_US; after_us += 777777) {
			struct decision decision = ask_of(&other, 2000, after_us);

			assert_row(decision.verdict == VERDICT_ADMITTED && !decision.clamped,
				"%s after %ld us", policies[i], (long)after_us);
			decision = ask_of(&other, 3000, after_us);
			assert_row(decision.verdict == VERDICT_REJECTED && !decision.clamped,
				"%s after %ld us", policies[i], (long)after_us);
			assert_true(kept_release(&kept, &other.limit, 2000));
		}
		assert_int_equal(ask_of(&other, 2000, LEASE_US - 1).outcomes[0].remaining, 0);
		assert_int_equal(ask_of(&other, 2000, LEASE_US).outcomes[0].remaining, 1);
	}
}

/* Whoever has written last. */
static void
a_lease_is_renewed_for_its_own_time_and_not_cut_for_it(void **state)
{
	struct made_limit other;

	(void)state;
	make_limit(&made, "l", "concurrent 2 lease 10s");
	make_limit(&other, "l", "concurrent 2 lease 1s");
	assert_true(take(1000, 0));
	assert_int_equal(ask_of(&other, 2000, LEASE_US - 10).verdict, VERDICT_ADMITTED);
	assert_true(kept_release(&kept, &other.limit, 2000));
	assert_true(renew(1000, LEASE_US - 9));
	for (int64_t after_us = LEASE_US; after_us < 2 * LEASE_US - 9; after_us += 333333) {
		const struct decision decision = ask_of(&other, 2000, after_us);

		assert_false(decision.clamped);
		assert_int_equal(decision.outcomes[0].remaining, 0);
	}
	assert_int_equal(ask_of(&other, 2000, 2 * LEASE_US - 9).outcomes[0].remaining, 1);
}

/* When the longer lease is over, so is what it excuses. */
static void
a_clock_that_was_set_back_is_seen_by_the_longest_lease_that_there_is(void **state)
{
	struct made_limit other;
	const int64_t back_us = -60 * US_PER_S;

	(void)state;
	make_limit(&other, "l", "concurrent 3 lease 1s");
	assert_true(take(1000, 0));
	assert_int_equal(ask_of(&other, 2000, 1).verdict, VERDICT_ADMITTED);
	struct decision decision = ask_of(&other, 3000, back_us);

	assert_true(decision.clamped);
	assert_int_equal(decision.outcomes[0].remaining, 0);
	assert_int_equal(free_places(back_us + LEASE_US - 1), 1);
	assert_int_equal(free_places(back_us + LEASE_US), 3);
	kept.len = 0;
	assert_true(take(1000, 0));
	assert_int_equal(ask_of(&other, 2000, LEASE_US).verdict, VERDICT_ADMITTED);
	assert_true(ask_of(&other, 3000, LEASE_US - 2 * US_PER_S).clamped);
}

static void
other_policies_of_the_limit_keep_what_was_spent(void **state)
{
	(void)state;
	make_limit(&made, "l", "10/1h", "concurrent 2 lease 10s", "concurrent 1 name log shadow");
	assert_true(take(1000, 0));
	const struct decision decision = ask_for(&kept, &made.limit, 4, 2000, IN_2026_US);

	assert_int_equal(decision.verdict, VERDICT_ADMITTED);
	assert_true(decision.outcomes[2].violated && decision.outcomes[2].shadow);
	assert_int_equal(decision.outcomes[0].remaining, 5);
	assert_false(take(3000, 0));
	assert_true(give_back(1000));
	/* Of both policies. */
	const struct decision after = ask_for(&kept, &made.limit, 1, 3000, IN_2026_US);

	assert_false(after.outcomes[1].violated || after.outcomes[2].violated);
	assert_int_equal(after.outcomes[0].remaining, 4);
}

#define concurrent_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		concurrent_test(a_lease_that_is_given_back_makes_place_for_one),
		concurrent_test(giving_back_what_is_not_held_changes_nothing),
		concurrent_test(a_lease_ends_by_itself_to_the_microsecond),
		concurrent_test(a_lease_that_is_renewed_lasts_from_then_on),
		concurrent_test(the_same_lease_taken_twice_is_one),
		concurrent_test(a_thousand_are_counted_one_by_one),
		concurrent_test(a_clock_that_was_set_back_keeps_nobody_longer_than_a_lease),
		concurrent_test(a_lease_of_another_configuration_lasts_as_long_as_it_was_taken_for),
		concurrent_test(a_lease_is_renewed_for_its_own_time_and_not_cut_for_it),
		concurrent_test(
			a_clock_that_was_set_back_is_seen_by_the_longest_lease_that_there_is),
		concurrent_test(other_policies_of_the_limit_keep_what_was_spent),
	};

	return cmocka_run_group_tests_name("limit/concurrent", tests, NULL, NULL);
}
