/*
 * algorithm.h: what each algorithm says, case by case, in numbers that were reckoned by hand. A
 * case is a policy and what is asked of it; times are in ms after a round beginning of a second, a
 * minute, an hour and a day.
 */
#include "asking.h"

/* A multiple of each window below. */
#define BEGIN_US (INT64_C(1781308800) * US_PER_S)

enum { STEPS_MAX = 12 };

struct step {
	int64_t at_ms;
	uint64_t cost;
	/* What is answered; waits are in ms. `wait_ms` is retry_us if it is violated, else more_us.
	 */
	bool is_violated;
	uint64_t remaining;
	int64_t wait_ms, reset_ms;
};

struct script {
	const char *policy;
	struct step steps[STEPS_MAX]; /* until one with cost 0 */
};

#define YES false
#define NO true

static const struct script scripts[] = {
	/* A token comes back each 100 ms, whatever the clock says. */
	{ "10/1s burst 3",
		{ { 30, 1, YES, 2, 100, 100 }, { 30, 2, YES, 0, 100, 300 },
			{ 30, 1, NO, 0, 100, 300 }, { 80, 2, NO, 0, 150, 250 },
			{ 230, 1, YES, 1, 100, 200 } } },
	/* In the first tenth of the next window nine tenths of the last one count, rounded up. */
	{ "10/1s sliding-window",
		{ { 0, 4, YES, 6, 1250, 2000 }, { 999, 6, YES, 0, 101, 1001 },
			{ 999, 1, NO, 0, 101, 1001 }, { 1000, 1, NO, 0, 100, 1000 },
			{ 1050, 1, NO, 0, 50, 950 }, { 1100, 1, YES, 0, 100, 1900 },
			{ 1500, 1, YES, 3, 100, 1500 }, { 1500, 4, NO, 3, 100, 1500 },
			{ 2000, 1, YES, 7, 500, 2000 } } },
	/* Past two windows nothing is known. */
	{ "2/1s sliding-window",
		{ { 0, 2, YES, 0, 1500, 2000 }, { 2000, 2, YES, 0, 1500, 2000 } } },
	/* More than there is room for in this window: only the next one can give it. */
	{ "4/1s sliding-window",
		{ { 500, 4, YES, 0, 750, 1500 }, { 500, 4, NO, 0, 1500, 1500 },
			{ 500, 2, NO, 0, 1000, 1500 } } },
	{ "3/1s sliding-log",
		{ { 0, 1, YES, 2, 1000, 1000 }, { 400, 2, YES, 0, 600, 1000 },
			{ 999, 1, NO, 0, 1, 401 }, { 999, 2, NO, 0, 401, 401 },
			{ 1000, 1, YES, 0, 400, 1000 }, { 1400, 1, YES, 1, 600, 1000 },
			{ 3000, 3, YES, 0, 1000, 1000 } } },
	{ "5/day calendar",
		{ { 0, 2, YES, 3, 86400000, 86400000 }, { 86399999, 3, YES, 0, 1, 1 },
			{ 86399999, 1, NO, 0, 1, 1 },
			{ 86400000, 5, YES, 0, 86400000, 86400000 } } },
	/* Each is one, whatever it costs, and nobody knows when it ends. */
	{ "concurrent 2 lease 10s",
		{ { 0, 7, YES, 1, 1000, 1000 }, { 4000, 1, YES, 0, 1000, 1000 },
			{ 4000, 1, NO, 0, 1000, 1000 }, { 9999, 1, NO, 0, 1000, 1000 },
			{ 10000, 1, YES, 0, 1000, 1000 }, { 13999, 1, NO, 0, 1000, 1000 },
			{ 14000, 1, YES, 0, 1000, 1000 } } },
};

static void
run_step(const struct script *script, const struct made_limit *made, struct kept *kept, size_t at)
{
	const struct step *step = &script->steps[at];
	const struct decision decision =
		ask(kept, made, step->cost, BEGIN_US + step->at_ms * US_PER_MS);
	const struct outcome *outcome = &decision.outcomes[0];
	const int64_t wait_us = step->is_violated ? outcome->retry_us : outcome->more_us;

	assert_row(outcome->violated == step->is_violated &&
			(decision.verdict == VERDICT_REJECTED) == step->is_violated,
		"%s, step %zu: the verdict", script->policy, at);
	assert_row(outcome->remaining == step->remaining, "%s, step %zu: %d remain", script->policy,
		at, (int)outcome->remaining);
	assert_row(wait_us == step->wait_ms * US_PER_MS, "%s, step %zu: wait %ld", script->policy,
		at, (long)wait_us);
	assert_row(outcome->reset_us == step->reset_ms * US_PER_MS, "%s, step %zu: reset %ld",
		script->policy, at, (long)outcome->reset_us);
}

static void
answers_are_those_that_were_reckoned_by_hand(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(scripts); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", scripts[i].policy);
		for (size_t j = 0; j < STEPS_MAX && scripts[i].steps[j].cost > 0; j++)
			run_step(&scripts[i], &made, &kept, j);
	}
}

static const char *const policies[] = { "7/1s", "7/1s sliding-window", "7/1s sliding-log",
	"7/day calendar", "concurrent 7" };

static void
a_cost_beyond_the_burst_never_passes(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", policies[i]);
		if (made.limit.policies[0].algorithm == POLICY_CONCURRENT)
			continue;
		(void)ask(&kept, &made, 2, BEGIN_US);
		const struct decision decision = ask(&kept, &made, 8, BEGIN_US);

		assert_int_equal(decision.verdict, VERDICT_REJECTED);
		assert_int_equal(decision.outcomes[0].retry_us, -1);
		assert_int_equal(decision.outcomes[0].more_us, 0);
		assert_int_equal(decision.outcomes[0].remaining, 5);
		assert_int_equal(decision_retry_after_s(&decision), 0);
		assert_false(kept.changed);
	}
}

static void
nothing_used_means_nothing_to_wait_for(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", policies[i]);
		if (made.limit.policies[0].algorithm == POLICY_CONCURRENT)
			continue;
		const struct decision decision = ask(&kept, &made, 8, BEGIN_US);

		assert_int_equal(decision.outcomes[0].remaining, 7);
		assert_int_equal(decision.outcomes[0].more_us, 0);
		assert_int_equal(decision.outcomes[0].reset_us, 0);
		assert_int_equal(kept.len, 0);
	}
}

static void
a_state_is_worth_something_as_long_as_it_counts(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", policies[i]);
		const int64_t reset_us = ask(&kept, &made, 3, BEGIN_US).outcomes[0].reset_us;
		const struct bucket bucket = kept_bucket(&kept);
		const int64_t at_us = bucket_worthless_at(&bucket, BEGIN_US);

		assert_int_equal(bucket.count, 1);
		assert_true(at_us >= BEGIN_US + reset_us && at_us <= BEGIN_US + US_PER_DAY);
		assert_int_equal(ask(&kept, &made, 7, at_us).verdict, VERDICT_ADMITTED);
	}
}

/* What a database, a disk or an older version left there. */
static void
what_cannot_be_a_field_is_left_out(void **state)
{
	uint64_t random = 77;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		struct kept kept = { .len = 0 };
		struct made_limit made;

		make_limit(&made, "l", policies[round % LENGTH_OF(policies)], "3/1h name other");
		(void)ask(&kept, &made, 2, BEGIN_US);
		const size_t len = kept.len;
		int64_t *word = &kept.words[random_below(&random, len)];

		if (round % 3 == 0)
			kept.len = random_below(&random, len);
		else if (word == kept.words)
			*word ^= (int64_t)((uint64_t)1 << random_below(&random, 64));
		const struct bucket bucket = kept_bucket(&kept);

		for (unsigned i = 0; i < bucket.count; i++) {
			const struct bucket_field *field = &bucket.fields[i];
			const struct algorithm *algorithm = algorithms[field->algorithm];

			assert_true(field->count > 0);
			assert_int_equal(field->count % algorithm->record_words, 0);
			assert_true(field->words + field->count <= kept.words + kept.len);
		}
		(void)ask(&kept, &made, 1, BEGIN_US + 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_those_that_were_reckoned_by_hand),
		cmocka_unit_test(a_cost_beyond_the_burst_never_passes),
		cmocka_unit_test(nothing_used_means_nothing_to_wait_for),
		cmocka_unit_test(a_state_is_worth_something_as_long_as_it_counts),
		cmocka_unit_test(what_cannot_be_a_field_is_left_out),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("limit/algorithms", tests, NULL, NULL);
}
