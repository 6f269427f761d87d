/*
 * What every unit test begins with: cmocka behind the headers that it needs, and a few helpers.
 */
#ifndef WEIR_TESTS_UNIT_H
#define WEIR_TESTS_UNIT_H

#include "weir/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

/* A test that waits for what never comes ends with SIGALRM, seconds. */
enum { UNIT_TEST_MAX_S = 540 };

__attribute__((constructor)) static inline void
unit_limit_time(void)
{
	(void)alarm(UNIT_TEST_MAX_S);
}

#define LENGTH_OF(array) (sizeof(array) / sizeof(array)[0])

/* Says which row of a table failed: put it before the assertions of the row. */
#define assert_row(condition, ...)                                                                 \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_error(__VA_ARGS__);                                                  \
			print_error("\n");                                                         \
			_fail(__FILE__, __LINE__);                                                 \
		}                                                                                  \
	} while (0)

#define assert_slice(actual, expected) unit_assert_slice(actual, expected, __FILE__, __LINE__)

static inline void
unit_assert_slice(struct slice actual, struct slice expected, const char *file, int line)
{
	if (slice_is(actual, expected))
		return;
	print_error("\"%.*s\" is not \"%.*s\"\n", (int)actual.len,
		actual.ptr == NULL ? "" : actual.ptr, (int)expected.len,
		expected.ptr == NULL ? "" : expected.ptr);
	_fail(file, line);
}

/* The same numbers in each run (xorshift64*). Begin with any state but 0. */
static inline uint64_t
random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* 0 to limit - 1. */
static inline size_t
random_below(uint64_t *state, size_t limit)
{
	return (size_t)(random_next(state) >> 16) % limit;
}

/* A copy in memory of exactly its length, so that a sanitizer sees a byte read behind its end. */
static inline struct slice
exact_copy(struct slice s)
{
	char *copy = malloc(s.len);

	assert_true(copy != NULL || s.len == 0);
	if (s.len > 0)
		memcpy(copy, s.ptr, s.len);
	return slice_make(copy, s.len);
}

static inline void
exact_free(struct slice s)
{
	free((void *)(uintptr_t)s.ptr);
}

/*
 * Calls back for every text that differs from `s` in one byte: one changed to any value, one taken
 * out or one put in.
 */
static inline void
each_mutation(struct slice s, void (*each)(void *context, struct slice mutant), void *context)
{
	for (size_t at = 0; at <= s.len; at++) {
		for (unsigned c = 0; c < 256 && at < s.len; c++) {
			struct slice mutant = exact_copy(s);

			((char *)(uintptr_t)mutant.ptr)[at] = (char)c;
			each(context, mutant);
			exact_free(mutant);
		}
		char longer[1024];

		assert_true(s.len < sizeof longer);
		memcpy(longer, s.ptr, at);
		if (at < s.len) {
			memcpy(longer + at, s.ptr + at + 1, s.len - at - 1);
			struct slice shorter = exact_copy(slice_make(longer, s.len - 1));

			each(context, shorter);
			exact_free(shorter);
		}
		memcpy(longer + at + 1, s.ptr + at, s.len - at);
		for (unsigned c = 0; c < 256; c++) {
			longer[at] = (char)c;
			struct slice mutant = exact_copy(slice_make(longer, s.len + 1));

			each(context, mutant);
			exact_free(mutant);
		}
	}
}

#endif
