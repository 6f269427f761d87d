/*
 * decision.h: state that nobody has written, as a damaged file may hold. It costs counts: no loop
 * goes on for ever, no number leaves its range, and what is sound beside it stays.
 */
#include "asking.h"

static const char *const policies[] = { "5/1m name p", "5/1m sliding-window name p",
	"900000000000000/36525d sliding-window name p", "7/1ms sliding-window name p",
	"5/1m sliding-log name p", "1000/1d sliding-log name p", "5/day calendar name p",
	"900000000000000/month calendar name p", "concurrent 3 lease 10s name p",
	"concurrent 1000 lease 36525d name p" };

static struct kept kept;

/* A loop without an end is seen by the time that a test program may take. */
static int
setup(void **state)
{
	(void)state;
	kept.len = 0;
	return 0;
}

static void
put_field(struct kept *to, const struct policy *policy, const int64_t *words, unsigned count)
{
	int64_t *out = to->words + to->len;

	out[0] = (int64_t)((uint64_t)policy->algorithm << 48 | (uint64_t)count << 32 | policy->tag);
	out[1] = policy->interval_us;
	out[2] = policy->capacity_us;
	memcpy(out + 3, words, count * sizeof words[0]);
	to->len += 3 + count;
}

static void
assert_sound(const struct decision *decision)
{
	for (unsigned i = 0; i < decision->count; i++) {
		const struct outcome *outcome = &decision->outcomes[i];

		assert_true(outcome->remaining <= outcome->policy->burst);
		assert_true(outcome->more_us >= 0 && outcome->reset_us >= 0);
		assert_true(outcome->violated ? outcome->retry_us > 0 || outcome->retry_us == -1
					      : outcome->retry_us == 0);
	}
}

/* All that is done with a bucket. */
static void
assert_bears(const struct made_limit *made, int64_t now_us)
{
	static struct kept copy;
	const struct limit *limit = &made->limit;
	const uint64_t costs[] = { 1, 1, 3, limit->policies[0].burst, 1 };

	kept_copy(&copy, &kept);
	for (size_t i = 0; i < LENGTH_OF(costs); i++) {
		const struct decision decision = ask(&copy, made, costs[i], now_us + (int64_t)i);
		const struct bucket bucket = kept_bucket(&copy);

		assert_sound(&decision);
		(void)bucket_worthless_at(&bucket, now_us);
		(void)kept_renew(&copy, limit, 1, now_us);
		(void)kept_release(&copy, limit, 2);
	}
}

/* ---- words ---- */

static int64_t
damaged_word(uint64_t *random)
{
	const int64_t some[] = { INT64_MIN, INT64_MAX, -1, 0, 1, INT64_C(1) << 52, INT64_C(1) << 53,
		WORD_LIMIT - 1, WORD_LIMIT, IN_2026_US, -IN_2026_US };

	switch (random_below(random, 4)) {
	case 0:
		return (int64_t)random_next(random);
	case 1:
		return IN_2026_US + (int64_t)random_below(random, 100000000) - 50000000;
	case 2:
		return (int64_t)(random_next(random) >> random_below(random, 64));
	default:
		return some[random_below(random, LENGTH_OF(some))] +
			(int64_t)random_below(random, 3) * (random_below(random, 2) == 0);
	}
}

static void
any_words_of_a_state_are_borne(void **state)
{
	static struct made_limit made[LENGTH_OF(policies)];
	uint64_t random = 10;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++)
		make_limit(&made[i], "l", policies[i]);
	for (unsigned n = 0; n < 60000; n++) {
		const struct made_limit *one = &made[random_below(&random, LENGTH_OF(policies))];
		struct policy form = one->limit.policies[0];
		const struct algorithm *algorithm = algorithms[form.algorithm];
		const unsigned count = algorithm->record_words *
			(algorithm->records_max == 1 ? 1 : 1 + (unsigned)random_below(&random, 5));
		int64_t words[16];

		for (unsigned i = 0; i < count; i++)
			words[i] = damaged_word(&random);
		if (random_below(&random, 2) == 0)
			form.interval_us =
				1 + (int64_t)random_below(&random, (size_t)DURATION_MAX_US);
		if (random_below(&random, 2) == 0)
			form.capacity_us =
				1 + (int64_t)random_below(&random, (size_t)DURATION_MAX_US);
		kept.len = 0;
		put_field(&kept, &form, words, count);
		assert_bears(one, IN_2026_US);
	}
}

/* Each word by itself, in states that are sound but for it. */
static void
a_state_with_a_word_that_cannot_be_is_left_out_and_no_other(void **state)
{
	static const struct {
		const char *policy;
		int64_t words[4], limits[4]; /* from which on they cannot be */
		unsigned count;
	} rows[] = {
		{ "5/1m name p", { IN_2026_US }, { WORD_LIMIT }, 1 },
		{ "5/1m sliding-window name p", { 29683333, 2, 1 },
			{ WORD_LIMIT / 60000000, INT64_C(1) << 52, INT64_C(1) << 52 }, 3 },
		{ "5/1m sliding-log name p", { IN_2026_US, 1, IN_2026_US, 2 },
			{ WORD_LIMIT, 10000, WORD_LIMIT, 10000 }, 4 },
		{ "5/day calendar name p", { IN_2026_US, 3 }, { WORD_LIMIT, INT64_C(1) << 52 }, 2 },
		{ "concurrent 3 name p", { 7, IN_2026_US, 8, IN_2026_US },
			{ WORD_LIMIT, WORD_LIMIT, WORD_LIMIT, WORD_LIMIT }, 4 },
	};
	const int64_t beside = IN_2026_US + US_PER_S;
	struct made_limit made, other;

	(void)state;
	make_limit(&other, "l", "5/1m name other");
	for (size_t i = 0; i < LENGTH_OF(rows) * 4; i++) {
		const unsigned row = (unsigned)i / 4, at = i % 4;

		if (at >= rows[row].count)
			continue;
		make_limit(&made, "l", rows[row].policy);
		const int64_t limit = rows[row].limits[at];
		const int64_t tries[] = { rows[row].words[at], limit - 1, 0, limit, INT64_MAX, -1,
			INT64_MIN };

		for (size_t n = 0; n < LENGTH_OF(tries); n++) {
			int64_t words[4];

			memcpy(words, rows[row].words, sizeof words);
			words[at] = tries[n];
			kept.len = 0;
			put_field(&kept, &made.limit.policies[0], words, rows[row].count);
			put_field(&kept, &other.limit.policies[0], &beside, 1);
			assert_row((kept_words(&kept, &made.limit.policies[0]) != NULL) == (n < 3),
				"%s: word %u is %lld", rows[row].policy, at, (long long)tries[n]);
			assert_int_equal(kept_word(&kept, &other.limit.policies[0]), beside);
			assert_bears(&made, IN_2026_US);
		}
	}
}

/* ---- fields ---- */

/* As many as there can be, and then one that needs room. */
static void
fields_of_one_tag_are_one(void **state)
{
	struct made_limit made;
	const int64_t first = IN_2026_US + 40 * US_PER_S, later = IN_2026_US + 20 * US_PER_S;

	(void)state;
	make_limit(&made, "l", "5/1m name a", "5/1m name b", "5/1m name c");
	put_field(&kept, &made.limit.policies[0], &first, 1);
	for (unsigned i = 1; i < BUCKET_FIELDS_MAX; i++)
		put_field(&kept, &made.limit.policies[i % 2], &later, 1);
	assert_int_equal(kept_bucket(&kept).count, 2);
	const struct decision decision = ask(&kept, &made, 1, IN_2026_US);

	assert_int_equal(decision.outcomes[0].remaining, 0);
	assert_int_equal(decision.outcomes[1].remaining, 2);
	assert_int_equal(decision.outcomes[2].remaining, 4);
	assert_int_equal(kept_bucket(&kept).count, 3);
}

/* Bytes of a real bucket, each changed in all ways, and cut short. */
static void
borne(void *context, struct slice mutant)
{
	kept.len = mutant.len / sizeof kept.words[0];
	memcpy(kept.words, mutant.ptr, kept.len * sizeof kept.words[0]);
	assert_bears(context, IN_2026_US);
}

static void
a_bucket_with_any_byte_changed_is_borne(void **state)
{
	static struct kept whole;
	struct made_limit made;

	(void)state;
	make_limit(&made, "l", "5/1m name p", "5/1h sliding-window", "5/1m sliding-log",
		"5/day calendar", "concurrent 3 lease 10s");
	whole.len = 0;
	for (unsigned i = 0; i < 2; i++)
		(void)ask(&whole, &made, 1, IN_2026_US - 1000);
	each_mutation(slice_make((const char *)whole.words, whole.len * sizeof whole.words[0]),
		borne, &made);
}

#define damage_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		damage_test(any_words_of_a_state_are_borne),
		damage_test(a_state_with_a_word_that_cannot_be_is_left_out_and_no_other),
		damage_test(fields_of_one_tag_are_one),
		damage_test(a_bucket_with_any_byte_changed_is_borne),
	};

	(void)setenv("TZ", "UTC", 1);
	return cmocka_run_group_tests_name("limit/damaged", tests, NULL, NULL);
}
