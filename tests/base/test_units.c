/* units.h: numbers with units, as text and back. */
#include "../unit.h"
#include "weir/units.h"

static void
uint_takes_decimal_digits_up_to_its_maximum(void **state)
{
	static const struct {
		const char *text;
		uint64_t max, value;
	} taken[] = {
		{ "0", 0, 0 },
		{ "7", 7, 7 },
		{ "007", 7, 7 },
		{ "65535", UINT16_MAX, UINT16_MAX },
		{ "18446744073709551615", UINT64_MAX, UINT64_MAX },
		{ "000000000000000000000018446744073709551615", UINT64_MAX, UINT64_MAX },
	};
	static const struct {
		const char *text;
		uint64_t max;
	} refused[] = {
		{ "", UINT64_MAX },
		{ "1", 0 },
		{ "65536", UINT16_MAX },
		{ "18446744073709551616", UINT64_MAX },
		{ "18446744073709551620", UINT64_MAX },
		{ "99999999999999999999", UINT64_MAX },
		{ "184467440737095516150", UINT64_MAX },
		{ "-1", UINT64_MAX },
		{ "+1", UINT64_MAX },
		{ " 1", UINT64_MAX },
		{ "1 ", UINT64_MAX },
		{ "0x1", UINT64_MAX },
		{ "1e3", UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(taken); i++) {
		uint64_t value;

		assert_row(parse_uint(slice_of(taken[i].text), taken[i].max, &value) == 0, "%s",
			taken[i].text);
		assert_true(value == taken[i].value);
	}
	for (size_t i = 0; i < LENGTH_OF(refused); i++) {
		uint64_t value = 42;

		assert_row(parse_uint(slice_of(refused[i].text), refused[i].max, &value) != 0, "%s",
			refused[i].text);
		assert_true(value == 42);
	}
}

static void
uint_takes_no_byte_but_digits(void **state)
{
	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		const char text[] = { '1', (char)c, '1' };
		uint64_t value;

		assert_row((parse_uint(slice_make(text, sizeof text), UINT64_MAX, &value) == 0) ==
				(c >= '0' && c <= '9'),
			"byte %u", c);
	}
}

static void
numbers_at_the_borders_are_written_whole(void **state)
{
	static const struct {
		uint64_t number;
		const char *text;
	} rows[] = {
		{ 0, "0" },
		{ 9, "9" },
		{ 10, "10" },
		{ 9999999999, "9999999999" },
		{ 10000000000, "10000000000" },
		{ UINT64_MAX - 1, "18446744073709551614" },
		{ UINT64_MAX, "18446744073709551615" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char text[UINT_TEXT_SIZE];

		assert_int_equal(uint_text(rows[i].number, text), strlen(rows[i].text));
		assert_string_equal(text, rows[i].text);
	}
}

static void
random_numbers_survive_text(void **state)
{
	uint64_t random = 4;

	(void)state;
	for (unsigned i = 0; i < 10000; i++) {
		const uint64_t number = random_next(&random) >> random_below(&random, 64);
		char text[UINT_TEXT_SIZE];
		uint64_t value;
		const struct slice written = slice_make(text, uint_text(number, text));

		assert_int_equal(text[written.len], '\0');
		assert_true(text[0] != '0' || number == 0);
		assert_int_equal(parse_uint(written, number, &value), 0);
		assert_true(value == number);
		assert_true(number == 0 || parse_uint(written, number - 1, &value) != 0);
	}
}

static void
durations_have_a_number_and_a_unit(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
	} rows[] = {
		{ "1us", 1 },
		{ "150ms", 150 * US_PER_MS },
		{ "10s", 10 * US_PER_S },
		{ "5m", 300 * US_PER_S },
		{ "2h", 7200 * US_PER_S },
		{ "1d", US_PER_DAY },
		{ "36525d", DURATION_MAX_US },
		{ "3155760000s", DURATION_MAX_US },
		{ "3155760000000000us", DURATION_MAX_US },
		{ "", -1 },
		{ "s", -1 },
		{ "10", -1 },
		{ "0", -1 },
		{ "0s", -1 },
		{ "-1s", -1 },
		{ "1.5s", -1 },
		{ "10 s", -1 },
		{ "10S", -1 },
		{ "10sec", -1 },
		{ "1h30m", -1 },
		{ "36526d", -1 },
		{ "3155760000000001us", -1 },
		{ "99999999999999999999999s", -1 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct err err = { "" };
		int64_t us = -1;
		const int result = parse_duration(slice_of(rows[i].text), &us, &err);

		assert_row(
			(result == 0) == (rows[i].us >= 0) && us == rows[i].us, "%s", rows[i].text);
		assert_true((err.text[0] != '\0') == (result != 0));
	}
}

static void
sizes_have_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		int result;
	} rows[] = {
		{ "0", 0, 0 },
		{ "1", 1, 0 },
		{ "64k", 65536, 0 },
		{ "64K", 65536, 0 },
		{ "16m", 16777216, 0 },
		{ "16M", 16777216, 0 },
		{ "2g", UINT64_C(2147483648), 0 },
		{ "0k", 0, 0 },
		{ "9223372036854775807", INT64_MAX, 0 },
		{ "8589934591g", UINT64_C(8589934591) << 30, 0 },
		{ "", 42, -1 },
		{ "k", 42, -1 },
		{ "1kb", 42, -1 },
		{ "1 k", 42, -1 },
		{ "1t", 42, -1 },
		{ "1.5m", 42, -1 },
		{ "-1", 42, -1 },
		{ "9223372036854775808", 42, -1 },
		{ "8589934592g", 42, -1 },
		{ "18446744073709551617", 42, -1 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct err err;
		uint64_t bytes = 42;
		const int result = parse_size(slice_of(rows[i].text), &bytes, &err);

		assert_row(result == rows[i].result && bytes == rows[i].bytes, "%s", rows[i].text);
	}
}

static void
size_suffix_is_one_of_three_letters(void **state)
{
	(void)state;
	for (unsigned c = 1; c < 256; c++) {
		const char text[] = { '1', (char)c };
		const bool is_taken = (c >= '0' && c <= '9') || strchr("kKmMgG", (int)c) != NULL;
		struct err err;
		uint64_t bytes;

		assert_row(
			(parse_size(slice_make(text, sizeof text), &bytes, &err) == 0) == is_taken,
			"byte %u", c);
	}
}

static void
rates_have_a_count_and_a_window(void **state)
{
	static const struct {
		const char *text;
		uint64_t count;
		int64_t window_us;
		const char *window;
	} taken[] = {
		{ "10/s", 10, US_PER_S, "1s" },
		{ "10/1s", 10, US_PER_S, "1s" },
		{ "100/1m", 100, 60 * US_PER_S, "1m" },
		{ "5/10s", 5, 10 * US_PER_S, "10s" },
		{ "1000/d", 1000, US_PER_DAY, "1d" },
		{ "1/500ms", 1, 500 * US_PER_MS, "500ms" },
		{ "1/01h", 1, 3600 * US_PER_S, "1h" },
		{ "999999999999999/3155760000000ms", UINT64_C(999999999999999), DURATION_MAX_US,
			"3155760000000ms" },
	};
	static const char *const refused[] = { "", "/", "10", "10/", "/s", "0/s", "10/0s", "10/1",
		"10/1us", "10/us", "10 /s", "10/ s", "-1/s", "1.5/s", "10/s/s", "10/1s 1s", "10/S",
		"10/36526d", "1000000000000000/s", "10/99999999999999999999d" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(taken); i++) {
		struct rate rate;
		struct err err;

		assert_row(parse_rate(slice_of(taken[i].text), &rate, &err) == 0, "%s: %s",
			taken[i].text, err.text);
		assert_true(rate.count == taken[i].count);
		assert_true(rate.window_us == taken[i].window_us);
		assert_string_equal(rate.window, taken[i].window);
	}
	for (size_t i = 0; i < LENGTH_OF(refused); i++) {
		struct rate rate = { .count = 42 };
		struct err err = { "" };

		assert_row(parse_rate(slice_of(refused[i]), &rate, &err) != 0, "%s", refused[i]);
		assert_true(rate.count == 42 && rate.window_us == 0);
		assert_true(err.text[0] != '\0');
	}
}

/* A window in microseconds has a unit; to be told that it has none does not help. */
static void
refused_window_is_told_which_units_there_are(void **state)
{
	struct rate rate;
	struct err err;

	(void)state;
	assert_int_equal(parse_rate(SLICE("10/100us"), &rate, &err), -1);
	assert_non_null(strstr(err.text, "100us"));
	assert_non_null(strstr(err.text, "ms, s, m, h or d"));
	assert_null(strstr(err.text, "has no unit"));
}

static void
parse_all(void *context, struct slice text)
{
	int64_t us;
	uint64_t bytes;
	struct rate rate;
	struct err err;

	(void)context;
	if (parse_duration(text, &us, &err) == 0)
		assert_true(us >= 1 && us <= DURATION_MAX_US);
	if (parse_size(text, &bytes, &err) == 0)
		assert_true(bytes <= INT64_MAX);
	if (parse_rate(text, &rate, &err) == 0)
		assert_true(rate.count >= 1 && rate.count < UINT64_C(1000000000000000) &&
			rate.window_us >= US_PER_MS && rate.window_us <= DURATION_MAX_US);
}

static void
any_mutation_is_taken_within_bounds_or_refused(void **state)
{
	static const char *const sound[] = { "10/s", "999999999999999/3155760000000ms", "36525d",
		"3155760000000000us", "8589934591g", "18446744073709551615", "150ms" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), parse_all, NULL);
}

static void
durations_are_spoken_in_two_units_at_the_most(void **state)
{
	static const struct {
		int64_t us;
		const char *text;
	} rows[] = {
		{ 0, "0 us" },
		{ 1, "1 us" },
		{ 999, "999 us" },
		{ 1000, "1 ms" },
		{ 1500, "1.5 ms" },
		{ 12 * US_PER_S, "12 s" },
		{ 1500 * US_PER_MS, "1.5 s" },
		{ 60 * US_PER_S, "1 min" },
		{ 1728 * US_PER_S, "28 min 48 s" },
		{ 3600 * US_PER_S, "1 h" },
		{ 3601 * US_PER_S, "1 h" },
		{ 5400 * US_PER_S, "1 h 30 min" },
		{ US_PER_DAY + 3600 * US_PER_S, "1 d 1 h" },
		{ DURATION_MAX_US, "36525 d" },
		{ INT64_MAX, "106751991 d 4 h" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char text[DURATION_TEXT_SIZE];

		assert_string_equal(duration_text(rows[i].us, text), rows[i].text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uint_takes_decimal_digits_up_to_its_maximum),
		cmocka_unit_test(uint_takes_no_byte_but_digits),
		cmocka_unit_test(numbers_at_the_borders_are_written_whole),
		cmocka_unit_test(random_numbers_survive_text),
		cmocka_unit_test(durations_have_a_number_and_a_unit),
		cmocka_unit_test(sizes_have_powers_of_1024),
		cmocka_unit_test(size_suffix_is_one_of_three_letters),
		cmocka_unit_test(rates_have_a_count_and_a_window),
		cmocka_unit_test(refused_window_is_told_which_units_there_are),
		cmocka_unit_test(any_mutation_is_taken_within_bounds_or_refused),
		cmocka_unit_test(durations_are_spoken_in_two_units_at_the_most),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
