/* buf.h: capped buffers. */
#include "../unit.h"
#include "weir/buf.h"

enum { SMALL_MAX = 5000 };

static void
random_appends_and_consumes_keep_the_bytes(void **state)
{
	static char written[400000];
	uint64_t random = 2;
	size_t appended = 0, consumed = 0;
	struct buf buf;

	(void)state;
	for (size_t i = 0; i < sizeof written; i++)
		written[i] = (char)random_next(&random);
	buf_init(&buf, SMALL_MAX);
	while (appended < sizeof written) {
		size_t n = random_below(&random, 700);

		n = n < sizeof written - appended ? n : sizeof written - appended;
		if (n <= buf_room(&buf)) {
			assert_int_equal(buf_append(&buf, written + appended, n), 0);
			appended += n;
		} else {
			assert_int_equal(buf_append(&buf, written + appended, n), -1);
		}
		assert_slice(buf_slice(&buf), slice_make(written + consumed, appended - consumed));
		n = random_below(&random, buf.len + 1);
		buf_consume(&buf, n);
		consumed += n;
		if (random_below(&random, 16) == 0)
			buf_rest(&buf);
		assert_slice(buf_slice(&buf), slice_make(written + consumed, appended - consumed));
		assert_int_equal(buf_room(&buf), SMALL_MAX - (appended - consumed));
	}
	buf_release(&buf);
}

static void
full_buffer_refuses_and_is_as_before(void **state)
{
	static const size_t maxima[] = { 0, 1, 2, 255, 256, 257, 511, 512, 513, 4096, 5000 };
	static const char bytes[5001];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(maxima); i++) {
		const size_t max = maxima[i];
		struct buf buf;

		buf_init(&buf, max);
		assert_int_equal(buf_append(&buf, bytes, max + 1), -1);
		assert_int_equal(buf.len, 0);
		assert_int_equal(buf_append(&buf, bytes, max), 0);
		assert_int_equal(buf_room(&buf), 0);
		assert_int_equal(buf_append(&buf, bytes, 0), 0);
		assert_int_equal(buf_append(&buf, bytes, 1), -1);
		assert_int_equal(buf_printf(&buf, "x"), -1);
		assert_null(buf_reserve(&buf, 1));
		assert_null(buf_reserve(&buf, SIZE_MAX));
		assert_slice(buf_slice(&buf), slice_make(bytes, max));
		buf_release(&buf);
		assert_int_equal(buf_room(&buf), max);
	}
}

static void
printed_text_may_fill_the_buffer_to_its_last_byte(void **state)
{
	(void)state;
	for (size_t max = 1; max < 600; max++) {
		struct buf buf;

		buf_init(&buf, max);
		assert_int_equal(buf_printf(&buf, "%*d", (int)max + 1, 7), -1);
		assert_int_equal(buf.len, 0);
		assert_row(buf_printf(&buf, "%*d", (int)max, 7) == 0, "maximum %zu", max);
		assert_int_equal(buf.len, max);
		assert_int_equal(buf_slice(&buf).ptr[max - 1], '7');
		assert_int_equal(buf_printf(&buf, "%s", ""), 0);
		buf_release(&buf);
	}
}

static void
printed_text_follows_what_was_there(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_append_slice(&buf, SLICE("a ")), 0);
	assert_int_equal(buf_printf(&buf, "%d-%s", 12, "b"), 0);
	assert_int_equal(buf_append_slice(&buf, SLICE("!")), 0);
	assert_slice(buf_slice(&buf), SLICE("a 12-b!"));
	buf_release(&buf);
}

static void
reserved_room_counts_only_when_committed(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 10);
	char *room = buf_reserve(&buf, 10);

	assert_non_null(room);
	assert_int_equal(buf.len, 0);
	memcpy(room, "0123456789", 10);
	buf_commit(&buf, 4);
	assert_slice(buf_slice(&buf), SLICE("0123"));
	assert_null(buf_reserve(&buf, 7));
	assert_non_null(buf_reserve(&buf, 6));
	buf_release(&buf);
}

/* How many bytes a stream through a buffer that stays nearly full moves, for each that it passes.
 */
static size_t
moved_for_each_byte(size_t max, size_t step)
{
	static const char bytes[65536];
	size_t moved = 0, passed = 0;
	struct buf buf;

	buf_init(&buf, max);
	assert_int_equal(buf_append(&buf, bytes, max), 0);
	while (passed < 64 * max) {
		buf_consume(&buf, step);
		const size_t start = buf.start, len = buf.len;
		const char *data = buf.data;

		assert_int_equal(buf_append(&buf, bytes, step), 0);
		if (buf.data != data || buf.start < start)
			moved += len;
		assert_true(buf.size <= 2 * max);
		passed += step;
	}
	buf_release(&buf);
	return moved / passed;
}

static void
nearly_full_stream_is_not_moved_at_each_step(void **state)
{
	static const size_t maxima[] = { 300, 512, 4096, 5000, 65536 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(maxima); i++) {
		for (size_t step = 1; step <= maxima[i]; step *= 8)
			assert_row(moved_for_each_byte(maxima[i], step) <= 2,
				"maximum %zu in steps of %zu", maxima[i], step);
	}
}

static void
resting_gives_memory_back_only_when_empty(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, 100);
	assert_int_equal(buf_append(&buf, "abc", 3), 0);
	buf_rest(&buf);
	assert_slice(buf_slice(&buf), SLICE("abc"));
	buf_consume(&buf, 3);
	assert_non_null(buf.data);
	buf_rest(&buf);
	assert_null(buf.data);
	assert_int_equal(buf_slice(&buf).len, 0);
	assert_int_equal(buf_append(&buf, "d", 1), 0);
	buf_release(&buf);
}

static void
lengths_beyond_all_memory_are_refused(void **state)
{
	struct buf buf;

	(void)state;
	buf_init(&buf, SIZE_MAX);
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_int_equal(buf_append(&buf, "a", 1), 0);
	assert_null(buf_reserve(&buf, SIZE_MAX));
	assert_null(buf_reserve(&buf, SIZE_MAX - 1));
	assert_slice(buf_slice(&buf), SLICE("a"));
	buf_release(&buf);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_appends_and_consumes_keep_the_bytes),
		cmocka_unit_test(full_buffer_refuses_and_is_as_before),
		cmocka_unit_test(printed_text_may_fill_the_buffer_to_its_last_byte),
		cmocka_unit_test(printed_text_follows_what_was_there),
		cmocka_unit_test(reserved_room_counts_only_when_committed),
		cmocka_unit_test(nearly_full_stream_is_not_moved_at_each_step),
		cmocka_unit_test(resting_gives_memory_back_only_when_empty),
		cmocka_unit_test(lengths_beyond_all_memory_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
