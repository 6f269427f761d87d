/* A wait as a person reads it. */
#include "../unit.h"

#include "../../src/gate/gate_private.h"

#include <stdio.h>
#include <stdlib.h>

static void
wait_is_told_in_the_units_that_people_count_in(void **state)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} rows[] = {
		{ 1, "1 second" },
		{ 2, "2 seconds" },
		{ 59, "59 seconds" },
		{ 60, "1 minute" },
		{ 61, "1 minute and 1 second" },
		{ 150, "2 minutes and 30 seconds" },
		{ 3599, "59 minutes and 59 seconds" },
		{ 3600, "1 hour" },
		{ 3601, "1 hour and 1 minute" },
		{ 46603, "12 hours and 57 minutes" },
		{ 86399, "24 hours" },
		{ 86400, "1 day" },
		{ 86401, "1 day and 1 hour" },
		{ 2551193, "29 days and 13 hours" },
	};
	char text[WAIT_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(strcmp(wait_text(rows[i].seconds, text), rows[i].text) == 0, "%lld: %s",
			(long long)rows[i].seconds, text);
}

/* How long somebody waits who takes it at its word. */
static int64_t
seconds_of(const char *text)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = { { "day", 86400 }, { "hour", 3600 }, { "minute", 60 }, { "second", 1 } };
	int64_t sum = 0;

	for (size_t i = 0; i < LENGTH_OF(units); i++) {
		const char *at = strstr(text, units[i].name);

		if (at == NULL)
			continue;
		for (at -= 2; at > text && at[-1] >= '0' && at[-1] <= '9';)
			at--;
		sum += strtoll(at, NULL, 10) * units[i].seconds;
	}
	return sum;
}

static void
nobody_is_told_to_come_early_or_much_too_late(void **state)
{
	char text[WAIT_TEXT_SIZE];

	(void)state;
	for (int64_t seconds = 1; seconds < 40 * 86400; seconds += 1 + seconds / 97) {
		const int64_t told = seconds_of(wait_text(seconds, text));
		const int64_t unit = seconds < 3600 ? 1 : seconds < 86400 ? 60 : 3600;

		assert_row(told >= seconds && told < seconds + unit, "%lld: %s", (long long)seconds,
			text);
	}
	/* The longest that can be. */
	(void)wait_text(INT64_MAX / US_PER_S, text);
	assert_true(strlen(text) < WAIT_TEXT_SIZE - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wait_is_told_in_the_units_that_people_count_in),
		cmocka_unit_test(nobody_is_told_to_come_early_or_much_too_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
