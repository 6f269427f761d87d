/* What the rejection cache keeps, of whom, and for how long. */
#include "game.h"

#include "weir/hash.h"

/* ---- its bounds ---- */

static void
nothing_is_known_for_longer_than_a_second(void **state)
{
	struct made_limit made;
	struct game game;
	struct decision decision;

	(void)state;
	make_limit(&made, "login", "1/1h");
	game_init(&game, &made);
	game.there_us = 100000;
	game.back_us = 200000;
	const int64_t sent = game.now_us;

	assert_int_equal(request(&game, 1).verdict, VERDICT_ADMITTED);
	/* From when the check was sent, not from its answer. */
	game.now_us = sent + US_PER_S - 1;
	assert_true(is_known(&game, 1, &decision));
	game.now_us = sent + US_PER_S;
	assert_false(is_known(&game, 1, &decision));
	/* An operator empties the store: that shows. */
	game.kept.len = 0;
	assert_int_equal(request(&game, 1).verdict, VERDICT_ADMITTED);
	rejections_free(game.rejections);
}

static void
steps_of_the_stores_clock_change_nothing_for_longer_than_a_second(void **state)
{
	static const int64_t steps[] = { 3600 * US_PER_S, -3600 * US_PER_S, 400 * US_PER_DAY,
		-400 * US_PER_DAY };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(steps); i++) {
		struct made_limit made;
		struct game game;
		struct decision decision;

		make_limit(&made, "page", "2/1s");
		game_init(&game, &made);
		while (request(&game, 1).verdict == VERDICT_ADMITTED)
			;
		game.offset_us += steps[i];
		for (unsigned n = 0; n < 1001; n++) {
			game.now_us += 1000;
			(void)request(&game, 1);
		}
		/* And is right again: the bucket's rate, and one bucket more at the most. */
		game.admitted = 0;
		for (unsigned n = 0; n < 10000; n++) {
			game.now_us += 1000;
			if (is_known(&game, 1, &decision))
				assert_int_equal(truth(&game, 1).verdict, VERDICT_REJECTED);
			else
				(void)request(&game, 1);
		}
		assert_in_range(game.admitted, 19, 21);
		rejections_free(game.rejections);
	}
}

static void
flood_costs_a_call_for_each_refill_and_one_a_second(void **state)
{
	static const struct {
		const char *policy;
		unsigned refills; /* in the next hundred seconds */
	} rows[] = { { "1/1h", 0 }, { "10/1s burst 1", 1000 }, { "1/7s", 14 },
		{ "6/1m sliding-log", 6 }, { "100/day calendar", 0 } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct made_limit made;
		struct game game;

		make_limit(&made, "page", rows[i].policy);
		game_init(&game, &made);
		while (request(&game, 1).verdict == VERDICT_ADMITTED)
			;
		game.calls = game.admitted = 0;
		for (unsigned n = 0; n < 1000000; n++) {
			game.now_us += 100;
			(void)request(&game, 1);
		}
		assert_row(game.calls <= 101 + rows[i].refills, "%s: %u calls", rows[i].policy,
			game.calls);
		assert_row(game.admitted >= rows[i].refills, "%s: %u admitted", rows[i].policy,
			game.admitted);
		rejections_free(game.rejections);
	}
}

static void
smaller_costs_are_asked_for_and_larger_ones_told_their_own_wait(void **state)
{
	struct made_limit made;
	struct game game;
	struct decision decision;

	(void)state;
	make_limit(&made, "page", "10/1m");
	game_init(&game, &made);
	assert_int_equal(request(&game, 7).verdict, VERDICT_ADMITTED);
	assert_int_equal(request(&game, 5).verdict, VERDICT_REJECTED);
	assert_false(is_known(&game, 3, &decision));
	assert_true(is_known(&game, 4, &decision));
	assert_int_equal(decision_violated(&decision)->retry_us, 6 * US_PER_S);
	assert_true(is_known(&game, 5, &decision));
	assert_int_equal(decision_violated(&decision)->retry_us, 12 * US_PER_S);
	assert_true(is_known(&game, 10, &decision));
	assert_int_equal(decision_violated(&decision)->retry_us, 42 * US_PER_S);
	assert_true(is_known(&game, 11, &decision));
	assert_int_equal(decision_violated(&decision)->retry_us, -1);
	assert_int_equal(decision_retry_after_s(&decision), 0);
	/* What is known of a smaller cost stays when a larger one is rejected. */
	const struct rejection_key key = key_of(&game);
	const struct decision larger = truth(&game, 9);

	rejections_keep(
		game.rejections, &key, larger.outcomes, 9, game.now_us, game.now_us, larger.now_us);
	assert_true(is_known(&game, 4, &decision));
	rejections_free(game.rejections);
}

/* An operator empties the store, and others are quick to use it: what is rejected next has room for
 * less. */
static void
what_an_answer_disproves_is_forgotten(void **state)
{
	struct made_limit made;
	struct game game;
	struct decision decision;

	(void)state;
	make_limit(&made, "page", "10/1h sliding-log");
	game_init(&game, &made);
	(void)ask_store(&game, 10);
	assert_int_equal(request(&game, 2).verdict, VERDICT_REJECTED);
	game.kept.len = 0;
	(void)ask_store(&game, 6);
	assert_true(is_known(&game, 2, &decision));
	assert_int_equal(request(&game, 5).verdict, VERDICT_REJECTED);
	assert_false(is_known(&game, 4, &decision));
	assert_true(is_known(&game, 5, &decision));
	/* Also when there is as little left again. */
	game.now_us += 10 * US_PER_S;
	(void)ask_store(&game, 4);
	assert_int_equal(request(&game, 3).verdict, VERDICT_REJECTED);
	assert_false(is_known(&game, 2, &decision));
	rejections_free(game.rejections);
}

/* ---- what is kept ---- */

static void
what_may_be_given_back_or_only_counts_is_not_kept(void **state)
{
	static const struct {
		const char *policies[3];
		bool shadow, may;
	} rows[] = {
		{ { "1/1s" }, false, true },
		{ { "1/1s", "5/1m sliding-window" }, false, true },
		{ { "1/1s" }, true, false },
		{ { "concurrent 2" }, false, false },
		{ { "1/1s", "concurrent 2" }, false, false },
		{ { "8/1s shards 4" }, false, false },
		{ { "1/1s", "2/1m shadow" }, false, false },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct made_limit made;

		made_limit_init(&made, "page", rows[i].policies);
		const struct check_item item = { .limit = &made.limit, .shadow = rows[i].shadow };

		assert_row(rejections_may_keep(&item) == rows[i].may, "row %zu", i);
	}
}

static void
another_configuration_knows_nothing(void **state)
{
	struct made_limit made, same;
	struct game game;
	struct decision decision = { .verdict = VERDICT_ADMITTED };

	(void)state;
	make_limit(&made, "page", "1/1h");
	make_limit(&same, "page", "1/1h");
	game_init(&game, &made);
	(void)request(&game, 1);
	assert_true(is_known(&game, 1, &decision));
	struct rejection_key key = key_of(&game);
	const struct check_item other = { .limit = &same.limit };

	key.generation++;
	assert_false(rejections_find(game.rejections, &key, 1, game.now_us, &decision));
	key.generation--;
	key.item = &other;
	assert_false(rejections_find(game.rejections, &key, 1, game.now_us, &decision));
	key.item = &game.item;
	for (unsigned i = 0; i < HASH_WIDE_SIZE; i++) {
		key.bucket.bytes[i] ^= 1;
		assert_false(rejections_find(game.rejections, &key, 1, game.now_us, &decision));
		key.bucket.bytes[i] ^= 1;
	}
	assert_true(rejections_find(game.rejections, &key, 1, game.now_us, &decision));
	rejections_free(game.rejections);
}

/* Two items of a check, both known: both are in the decision. */
static void
what_is_known_of_several_limits_is_told_together(void **state)
{
	struct made_limit page, login;
	struct game games[2];
	struct decision decision;

	(void)state;
	make_limit(&page, "page", "1/1s");
	make_limit(&login, "login", "1/1m", "1/1d");
	game_init(&games[0], &page);
	game_init(&games[1], &login);
	for (unsigned i = 0; i < 2; i++)
		(void)request(&games[i], 1);
	assert_true(is_known(&games[0], 1, &decision));
	const struct rejection_key key = key_of(&games[1]);

	assert_true(rejections_find(games[1].rejections, &key, 1, games[1].now_us, &decision));
	assert_int_equal(decision.count, 3);
	assert_string_equal(decision_violated(&decision)->policy->name, "1d");
	for (unsigned i = 0; i < 2; i++)
		rejections_free(games[i].rejections);
}

/* A million buckets: it stays as large as it is, and what it still knows is right. */
static void
more_buckets_than_there_is_room_for_displace_each_other(void **state)
{
	struct made_limit made;
	struct game game;
	unsigned known = 0;

	(void)state;
	make_limit(&made, "page", "1/1h");
	game_init(&game, &made);
	const struct decision empty = ask_store(&game, 1);
	struct rejection_key key = key_of(&game);

	for (uint32_t i = 0; i < 1000000; i++) {
		struct decision decision = { .verdict = VERDICT_ADMITTED };

		key.bucket = hash_wide(NULL, slice_make((const char *)&i, sizeof i));
		rejections_keep(game.rejections, &key, empty.outcomes, 1, game.now_us, game.now_us,
			empty.now_us);
		assert_true(rejections_find(game.rejections, &key, 1, game.now_us, &decision));
	}
	for (uint32_t i = 0; i < 1000000; i++) {
		struct decision decision = { .verdict = VERDICT_ADMITTED };

		key.bucket = hash_wide(NULL, slice_make((const char *)&i, sizeof i));
		known += rejections_find(game.rejections, &key, 1, game.now_us, &decision) ? 1 : 0;
	}
	assert_in_range(known, 4000, 4096);
	rejections_free(game.rejections);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_for_longer_than_a_second),
		cmocka_unit_test(steps_of_the_stores_clock_change_nothing_for_longer_than_a_second),
		cmocka_unit_test(flood_costs_a_call_for_each_refill_and_one_a_second),
		cmocka_unit_test(smaller_costs_are_asked_for_and_larger_ones_told_their_own_wait),
		cmocka_unit_test(what_an_answer_disproves_is_forgotten),
		cmocka_unit_test(what_may_be_given_back_or_only_counts_is_not_kept),
		cmocka_unit_test(another_configuration_knows_nothing),
		cmocka_unit_test(what_is_known_of_several_limits_is_told_together),
		cmocka_unit_test(more_buckets_than_there_is_room_for_displace_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
