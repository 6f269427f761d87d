/* arena.h: the memory of one request. */
#include "../unit.h"
#include "weir/arena.h"

#include <stdalign.h>

enum { PIECES = 3000 };

static void
pieces_are_aligned_and_do_not_overlap(void **state)
{
	static const size_t borders[] = { 0, 1, 15, 16, 17, 4000, 4064, 4065, 4080, 4096, 4097,
		9000 };
	static struct {
		unsigned char *at;
		size_t size;
	} pieces[PIECES];
	uint64_t random = 3;
	struct arena arena;

	(void)state;
	arena_init(&arena, 64 << 20);
	for (unsigned i = 0; i < PIECES; i++) {
		const size_t size = i % 3 == 0 ? borders[random_below(&random, LENGTH_OF(borders))]
					       : random_below(&random, 200);

		pieces[i].at = arena_alloc(&arena, size);
		pieces[i].size = size;
		assert_non_null(pieces[i].at);
		assert_int_equal((uintptr_t)pieces[i].at % alignof(max_align_t), 0);
		memset(pieces[i].at, (int)(i % 251), size);
	}
	for (unsigned i = 0; i < PIECES; i++) {
		for (size_t at = 0; at < pieces[i].size; at++)
			assert_int_equal(pieces[i].at[at], i % 251);
	}
	arena_release(&arena);
}

static void
maximum_is_kept_to_the_byte(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1600);
	assert_null(arena_alloc(&arena, 1601));
	assert_non_null(arena_alloc(&arena, 800));
	assert_null(arena_alloc(&arena, 801));
	assert_non_null(arena_alloc(&arena, 800));
	assert_null(arena_alloc(&arena, 1));
	assert_null(arena_text(&arena, SLICE("a")));
	assert_null(arena_printf(&arena, "%d", 1));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	arena_release(&arena);
}

/* Else many small pieces hold many times the maximum. */
static void
pieces_count_for_what_they_take(void **state)
{
	(void)state;
	for (size_t max = 0; max < 300; max++) {
		struct arena arena;
		size_t pieces = 0;

		arena_init(&arena, max);
		while (pieces <= max && arena_alloc(&arena, 1) != NULL)
			pieces++;
		assert_int_equal(pieces, max / alignof(max_align_t));
		arena_release(&arena);
	}
}

static void
sizes_beyond_all_memory_are_refused(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, SIZE_MAX);
	for (size_t less = 0; less < 64; less++)
		assert_null(arena_alloc(&arena, SIZE_MAX - less));
	assert_non_null(arena_alloc(&arena, 1));
	for (size_t less = 0; less < 64; less++)
		assert_null(arena_alloc(&arena, SIZE_MAX - less));
	arena_release(&arena);
}

/* A request with small pieces between large ones takes no chunk for each of the small ones. */
static void
large_piece_leaves_the_room_of_the_chunk_before_it(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 1 << 20);
	char *first = arena_alloc(&arena, 64);

	assert_non_null(first);
	assert_non_null(arena_alloc(&arena, 10000));
	assert_ptr_equal(arena_alloc(&arena, 64), first + 64);
	arena_release(&arena);
}

static void
texts_are_terminated_copies(void **state)
{
	struct arena arena;
	char source[] = "abc";

	(void)state;
	arena_init(&arena, 100000);
	char *copy = arena_text(&arena, slice_make(source, 2));
	char *nothing = arena_text(&arena, slice_of(NULL));

	assert_non_null(copy);
	source[0] = 'x';
	assert_string_equal(copy, "ab");
	assert_string_equal(nothing, "");
	for (int width = 1; width < 9000; width += 37) {
		char *printed = arena_printf(&arena, "%0*d", width, 0);

		if (printed == NULL)
			break;
		assert_int_equal(strlen(printed), width);
	}
	assert_string_equal(copy, "ab");
	arena_release(&arena);
}

static void
released_arena_can_be_used_again(void **state)
{
	struct arena arena;

	(void)state;
	arena_init(&arena, 5000);
	for (unsigned i = 0; i < 3; i++) {
		assert_non_null(arena_alloc(&arena, 4992));
		assert_null(arena_alloc(&arena, 4992));
		arena_release(&arena);
		arena_release(&arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
		cmocka_unit_test(maximum_is_kept_to_the_byte),
		cmocka_unit_test(pieces_count_for_what_they_take),
		cmocka_unit_test(sizes_beyond_all_memory_are_refused),
		cmocka_unit_test(large_piece_leaves_the_room_of_the_chunk_before_it),
		cmocka_unit_test(texts_are_terminated_copies),
		cmocka_unit_test(released_arena_can_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
