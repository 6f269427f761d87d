/*
 * form_code() of policy.h: which policies have a code, and that it says all of them. The lists are
 * held against those of lua/value.lua by redis/test_codes.
 */
#include "../lib/limits.h"
#include "../unit.h"
#include "weir/hash.h"

#include <limits.h>

enum { CODE_MAX = 922336 };

static void
what_is_no_code_is_no_policy(void **state)
{
	static const int none[] = { 0, CODE_MAX, -CODE_MAX, CODE_MAX + 1, INT_MAX, INT_MIN + 1,
		INT_MIN };
	uint32_t tag;
	int64_t interval_us, capacity_us;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(none); i++)
		assert_false(form_of_code(none[i], &tag, &interval_us, &capacity_us));
}

static void
assert_has_code(const char *name, uint64_t count, int64_t window_us, uint64_t burst)
{
	const int code = form_code(name, count, window_us, burst);
	const int64_t interval_us = window_us / (int64_t)count + (window_us % (int64_t)count != 0);
	uint32_t tag;
	int64_t decoded_us, capacity_us;

	assert_row(form_of_code(code, &tag, &decoded_us, &capacity_us) &&
			tag == policy_tag(name, POLICY_TOKEN_BUCKET) && decoded_us == interval_us &&
			capacity_us == (int64_t)burst * interval_us,
		"%llu/%s burst %llu has code %d", (unsigned long long)count, name,
		(unsigned long long)burst, code);
}

/* What people write: a window by its usual name, small or round counts, and any such burst. What a
 * code says is what it was made of, so no two forms have the same. */
static void
common_forms_have_a_code(void **state)
{
	static const unsigned round[] = { 100, 120, 150, 200, 250, 300, 400, 500, 600, 1000, 1200,
		1500, 2000, 2500, 3600, 5000, 8000, 10000, 50000, 100000 };
	static const struct {
		const char *name;
		int64_t s;
	} windows[] = { { "1s", 1 }, { "7s", 7 }, { "10s", 10 }, { "30s", 30 }, { "60s", 60 },
		{ "1m", 60 }, { "5m", 300 }, { "15m", 900 }, { "1h", 3600 }, { "12h", 43200 },
		{ "1d", 86400 }, { "7d", 604800 }, { "30d", 2592000 } };
	enum { AMOUNTS = 99 + LENGTH_OF(round) };
	unsigned amounts[AMOUNTS], forms = 0;

	(void)state;
	for (unsigned i = 0; i < AMOUNTS; i++)
		amounts[i] = i < 99 ? i + 1 : round[i - 99];
	for (size_t i = 0; i < LENGTH_OF(windows) * AMOUNTS * AMOUNTS; i++) {
		const unsigned count = amounts[i / AMOUNTS % AMOUNTS], burst = amounts[i % AMOUNTS];
		const int64_t us = windows[i / AMOUNTS / AMOUNTS].s * US_PER_S;

		if (burst > 31 * US_PER_DAY / (us / count + 1))
			continue;
		assert_has_code(windows[i / AMOUNTS / AMOUNTS].name, count, us, burst);
		forms++;
	}
	assert_in_range(forms, 100000, LENGTH_OF(windows) * AMOUNTS * AMOUNTS);
}

static void
other_forms_have_none(void **state)
{
	static const struct {
		const char *name;
		uint64_t count;
		int64_t window_us;
		uint64_t burst;
	} rows[] = {
		{ "1s", 0, US_PER_S, 1 },
		{ "1s", 1, US_PER_S, 0 },
		{ "1s", 101, US_PER_S, 10 },
		{ "1s", 10, US_PER_S, 101 },
		{ "1s", 1010, US_PER_S, 10 },
		{ "1s", UINT64_MAX, US_PER_S, 10 },
		{ "1s", 10, US_PER_S, UINT64_MAX },
		{ "1s", 10, US_PER_S, 160000 },
		{ "1m", 10, US_PER_S, 10 }, /* a name that is not its window */
		{ "60s", 10, US_PER_S, 10 },
		{ "short", 10, US_PER_S, 10 },
		{ "11s", 10, 11 * US_PER_S, 10 },
		{ "", 10, US_PER_S, 10 },
		{ "30d", 10, 30 * US_PER_DAY, 11 }, /* longer than the times can be told apart */
		{ "1d", 1, US_PER_DAY, 32 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(form_code(rows[i].name, rows[i].count, rows[i].window_us,
				   rows[i].burst) == 0,
			"row %zu", i);
	assert_int_equal(form_code("1s", 1, US_PER_S, 1), 1);
	assert_has_code("1d", 1, US_PER_DAY, 31);
}

/* A code and thirteen digits are a number that Redis keeps as an integer; and every time and debt
 * is one that a double holds exactly. */
static void
every_coded_state_fits_64_bits(void **state)
{
	uint32_t tag;
	int64_t interval_us, capacity_us;

	(void)state;
	assert_true(CODE_MAX == INT64_MAX / INT64_C(10000000000000) - 1);
	for (int code = CODE_MAX + 1; code < 2 * CODE_MAX; code++) {
		assert_false(form_of_code(code, &tag, &interval_us, &capacity_us));
		assert_false(form_of_code(-code, &tag, &interval_us, &capacity_us));
	}
	assert_true(IN_2100_US + DURATION_MAX_US < INT64_C(1) << 53);
	assert_true(DURATION_MAX_US + DURATION_MAX_US < INT64_C(1) << 53);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_code_is_no_policy),
		cmocka_unit_test(common_forms_have_a_code),
		cmocka_unit_test(other_forms_have_none),
		cmocka_unit_test(every_coded_state_fits_64_bits),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("limit/form", tests, NULL, NULL);
}
