/* slice.h: views of bytes. */
#include "../unit.h"

static void
null_and_empty_texts_are_empty_slices(void **state)
{
	(void)state;
	assert_int_equal(slice_of(NULL).len, 0);
	assert_int_equal(slice_of("").len, 0);
	assert_true(slice_is(slice_of(NULL), SLICE("")));
	assert_true(slice_has_prefix(slice_of(NULL), slice_of(NULL)));
	assert_int_equal(slice_skip(slice_of(NULL), 0).len, 0);
	assert_int_equal(slice_first(slice_of(NULL), 7).len, 0);
	assert_int_equal(slice_trim(slice_of(NULL)).len, 0);
	assert_int_equal(slice_find(slice_of(NULL), '\0'), 0);
}

static void
equality_is_of_all_bytes(void **state)
{
	(void)state;
	assert_true(slice_is(SLICE("a\0b"), SLICE("a\0b")));
	assert_false(slice_is(SLICE("a\0b"), SLICE("a\0c")));
	assert_false(slice_is(SLICE("ab"), SLICE("abc")));
	assert_false(slice_is(SLICE("abc"), SLICE("ab")));
}

static void
prefix_is_at_most_the_whole(void **state)
{
	(void)state;
	assert_true(slice_has_prefix(SLICE("unix:/x"), SLICE("unix:")));
	assert_true(slice_has_prefix(SLICE("unix:"), SLICE("unix:")));
	assert_true(slice_has_prefix(SLICE("unix:"), SLICE("")));
	assert_false(slice_has_prefix(SLICE("unix"), SLICE("unix:")));
	assert_false(slice_has_prefix(SLICE("xunix:"), SLICE("unix:")));
}

static void
case_is_ignored_in_ascii_letters_only(void **state)
{
	(void)state;
	for (int a = 0; a < 256; a++) {
		for (int b = 0; b < 256; b++) {
			const char left = (char)a, right = (char)b;
			const bool letters = (a ^ b) == 0x20 &&
				((a >= 'a' && a <= 'z') || (a >= 'A' && a <= 'Z'));

			assert_row(slice_is_nocase(slice_make(&left, 1), slice_make(&right, 1)) ==
					(a == b || letters),
				"bytes %d and %d", a, b);
		}
	}
	assert_true(slice_is_nocase(SLICE("Content-LENGTH"), SLICE("content-length")));
	assert_false(slice_is_nocase(SLICE("content-length"), SLICE("content-lengt")));
	assert_false(slice_is_nocase(SLICE("content-lengt"), SLICE("content-length")));
}

static void
trim_takes_blanks_and_tabs_at_both_ends(void **state)
{
	static const struct {
		struct slice text, trimmed;
	} rows[] = {
		{ { "", 0 }, { "", 0 } },
		{ { " ", 1 }, { "", 0 } },
		{ { " \t \t", 4 }, { "", 0 } },
		{ { "a", 1 }, { "a", 1 } },
		{ { "\t a b \t", 7 }, { "a b", 3 } },
		{ { " \r", 2 }, { "\r", 1 } },
		{ { "\n ", 2 }, { "\n", 1 } },
		{ { "\0 ", 2 }, { "\0", 1 } },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice text = exact_copy(rows[i].text);

		assert_slice(slice_trim(text), rows[i].trimmed);
		exact_free(text);
	}
}

static void
list_of_n_separators_has_one_part_more(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		char text[12];
		const size_t len = random_below(&random, sizeof text + 1);
		unsigned separators = 0, parts = 0;
		char joined[2 * sizeof text];
		size_t joined_len = 0;

		for (size_t i = 0; i < len; i++) {
			text[i] = ",a"[random_below(&random, 2)];
			separators += text[i] == ',';
		}
		struct slice rest = slice_make(text, len), part;

		while (slice_split(&rest, ',', &part)) {
			if (parts++ > 0)
				joined[joined_len++] = ',';
			memcpy(joined + joined_len, part.ptr, part.len);
			joined_len += part.len;
		}
		assert_int_equal(parts, separators + 1);
		assert_slice(slice_make(joined, joined_len), slice_make(text, len));
		assert_false(slice_split(&rest, ',', &part));
	}
}

static void
parts_of_a_list_are_trimmed(void **state)
{
	struct slice rest = SLICE(" a ,\tb c,, "), part;

	(void)state;
	assert_true(slice_split(&rest, ',', &part));
	assert_slice(part, SLICE("a"));
	assert_true(slice_split(&rest, ',', &part));
	assert_slice(part, SLICE("b c"));
	assert_true(slice_split(&rest, ',', &part));
	assert_slice(part, SLICE(""));
	assert_true(slice_split(&rest, ',', &part));
	assert_slice(part, SLICE(""));
	assert_false(slice_split(&rest, ',', &part));
}

static void
find_gives_the_first_or_the_length(void **state)
{
	(void)state;
	assert_int_equal(slice_find(SLICE("a:b:c"), ':'), 1);
	assert_int_equal(slice_find(SLICE("abc"), ':'), 3);
	assert_int_equal(slice_find(SLICE("ab\0c"), '\0'), 2);
	assert_int_equal(slice_find(slice_make("abc:", 3), ':'), 3);
	assert_int_equal(slice_find(SLICE("\xff"), '\xff'), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_and_empty_texts_are_empty_slices),
		cmocka_unit_test(equality_is_of_all_bytes),
		cmocka_unit_test(prefix_is_at_most_the_whole),
		cmocka_unit_test(case_is_ignored_in_ascii_letters_only),
		cmocka_unit_test(trim_takes_blanks_and_tabs_at_both_ends),
		cmocka_unit_test(list_of_n_separators_has_one_part_more),
		cmocka_unit_test(parts_of_a_list_are_trimmed),
		cmocka_unit_test(find_gives_the_first_or_the_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
