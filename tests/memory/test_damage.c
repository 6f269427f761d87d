/*
 * The memory under the hands of others: each word of the header, of locks, chains and cells is
 * written over, and the file is cut. What is counted may be lost by that. But the store answers, a
 * process that comes opens the file or says why not, and nobody crashes or hangs.
 */
#include "../../src/memory/locks.h"
#include "../lib/directory.h"
#include "store.h"
#define STRIPE_CELLS 61
#include "stripe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = MEMORY_SIZE_MIN, CHILD_SECONDS = 20 };

static struct directory directory;
static struct directory_path path;
static struct made_limit made;

static int
setup(void **state)
{
	(void)state;
	directory_make(&directory);
	path = directory_path(&directory, "state");
	make_limit(&made, "l", "10/1d");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	directory_remove(&directory);
	return 0;
}

static const uint32_t bad_words[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0x1000, 0x7fffffff, 0x80000000,
	0xfffffffe, 0xffffffff, 0x5a5a5a5a };

/* ---- in a process of its own ---- */

struct damage {
	struct memory *memory;
	uint32_t *word;
	uint32_t value;
};

/* Whatever the answer is. The deadline is over, so that a lock is waited for shortly. */
static void
ask_all(struct memory *memory, unsigned keys)
{
	char key[16];

	for (unsigned i = 0; i < keys; i++) {
		(void)snprintf(key, sizeof key, "%u", i);
		struct memory_asked asked = memory_question(&made, key, 1, IN_2026_US);

		asked.check.deadline_us = 1;
		(void)memory_ask(memory, &asked);
	}
}

static void
run_child(const struct damage *damage, unsigned keys)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)alarm(CHILD_SECONDS);
	*damage->word = damage->value;
	ask_all(damage->memory, keys);
	_exit(0);
}

static void
assert_survived(const struct damage *damage, unsigned keys, const char *what, size_t at)
{
	int status;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		run_child(damage, keys);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_row(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		"%s, word %zu with %#x: the process ended with %#x", what, at,
		(unsigned)damage->value, (unsigned)status);
}

/* ---- the file in use ---- */

/* A second process comes, too: it takes the file, or says why not. */
static void
open_another(void)
{
	uint64_t size = SIZE;
	struct err err = { "" };
	struct memory *other = memory_open(path.text, &size, &err);

	memory_require(other != NULL || err.text[0] != '\0', "no word of why");
	if (other != NULL)
		ask_all(other, 10);
	memory_close(other);
}

static void
every_word_of_the_header_may_be_written_over(void **state)
{
	(void)state;
	/* The rest is the area, which is its users'. */
	for (size_t at = 0; at < offsetof(struct memory_header, area) / 4; at++) {
		for (size_t i = 0; i < LENGTH_OF(bad_words); i += 2) {
			struct memory *memory = memory_open_size(path.text, SIZE);
			uint32_t *word = (uint32_t *)(void *)memory->header + at;

			assert_int_equal(memory_decide(memory, &made, "k", 3, IN_2026_US).verdict,
				VERDICT_ADMITTED);
			*word = bad_words[i];
			assert_int_equal(memory_remaining(memory, &made, "k", IN_2026_US), 7);
			ask_all(memory, 50);
			assert_true(memory_used(memory) <= memory_room(memory));
			open_another();
			memory_close(memory);
			open_another();
			assert_int_equal(unlink(path.text), 0);
		}
	}
}

static void
every_word_of_a_lock_may_be_written_over(void **state)
{
	struct memory *memory = memory_open_size(path.text, SIZE);
	const size_t words = sizeof(struct stripe) / 4;

	(void)state;
	for (size_t at = 0; at < words; at++) {
		const struct hash_wide key = hash_wide(memory->layout.hash_key, SLICE("0"));
		struct stripe *stripe = memory_stripe(memory, &key).stripe;
		uint32_t *word = (uint32_t *)(void *)stripe + at;
		const uint32_t before = *word;

		for (size_t i = 0; i < 32 + LENGTH_OF(bad_words); i++) {
			const struct stripe kept = *stripe;
			const struct damage damage = { memory, word,
				i < 32 ? before ^ UINT32_C(1) << i : bad_words[i - 32] };

			assert_survived(&damage, 3, "lock", at);
			*stripe = kept;
		}
	}
	memory_close(memory);
}

/* ---- a stripe ---- */

static unsigned puts_number;

static void
put(const struct stripe_view *view, unsigned key, size_t words)
{
	static int64_t state[64];
	const struct hash_wide hash = key_of(key);
	unsigned evicted = 0;

	state[0] = puts_number++;
	stripe_write(
		view, &hash, (const uint8_t *)state, words * sizeof state[0], 1000, 10, &evicted);
}

static void
use(const struct stripe_view *view)
{
	static uint8_t out[STATE_MAX];

	for (unsigned key = 0; key < 30; key++) {
		const struct hash_wide hash = key_of(key);
		const struct cell *head = stripe_find(view, &hash);

		if (head != NULL)
			assert_in_range(stripe_read(view, head, out), 0, STATE_MAX);
		put(view, key, key % 5 == 0 ? 40 : 4);
	}
}

/* After some use and a repair, as of a process that dies in it, all is in its place again. */
static void
assert_recovers(const struct stripe_view *view)
{
	use(view);
	use(view);
	stripe_repair(view);
	(void)check_stripe(view);
	put(view, 1, 64);
	const struct hash_wide hash = key_of(1);

	assert_non_null(stripe_find(view, &hash));
	(void)check_stripe(view);
}

static void
fill(struct test_stripe *stripe)
{
	const struct stripe_view view = stripe_view_of(stripe);

	memset(stripe, 0, sizeof *stripe);
	stripe_init(&view);
	for (unsigned key = 0; key < 30; key++)
		put(&view, key, key % 5 == 0 ? 40 : 4);
}

static void
every_word_of_a_stripe_may_be_written_over(void **state)
{
	static const uint32_t links[] = { 0, 1, 5, STRIPE_CELLS - 1, STRIPE_CELLS, 0x01020102,
		0x0000ffff, 0xffff0001, 0xffffffff };
	static struct test_stripe whole, stripe;
	const struct stripe_view view = stripe_view_of(&stripe);

	(void)state;
	fill(&whole);
	for (size_t at = 0; at < sizeof stripe / 4; at++) {
		for (size_t i = 0; i < LENGTH_OF(links); i++) {
			memcpy(&stripe, &whole, sizeof stripe);
			((uint32_t *)(void *)&stripe)[at] = links[i];
			assert_recovers(&view);
		}
	}
}

static void
a_stripe_may_be_written_over_at_random(void **state)
{
	static struct test_stripe whole, stripe;
	const struct stripe_view view = stripe_view_of(&stripe);
	uint64_t random = 1;

	(void)state;
	fill(&whole);
	for (unsigned round = 0; round < 3000; round++) {
		const unsigned words = 1 + (unsigned)(random_next(&random) >> 40) % 200;

		memcpy(&stripe, &whole, sizeof stripe);
		for (unsigned i = 0; i < words; i++) {
			const uint64_t at = random_next(&random) >> 32;
			const uint32_t value = (uint32_t)(random_next(&random) >> 32);

			((uint32_t *)(void *)&stripe)[at % (sizeof stripe / 4)] =
				round % 2 == 0 ? value : value % (STRIPE_CELLS + 2);
		}
		assert_recovers(&view);
	}
}

/* ---- the file as it lies there ---- */

static void
a_file_that_was_cut_anywhere_is_made_anew(void **state)
{
	static const off_t sizes[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 100, 4095, 4096, 4097,
		SIZE / 2, SIZE - 1 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sizes); i++) {
		memory_close(memory_open_size(path.text, SIZE));
		assert_int_equal(truncate(path.text, sizes[i]), 0);
		struct memory *memory = memory_open_size(path.text, SIZE);

		assert_int_equal(memory_remaining(memory, &made, "k", IN_2026_US), 10);
		memory_close(memory);
	}
}

static void
what_became_of_the_file_is_told(void **state)
{
	struct memory *memory = memory_open_size(path.text, SIZE);
	const struct directory_path other = directory_path(&directory, "other");

	(void)state;
	assert_string_equal(memory_path(memory), path.text);
	assert_int_equal(memory_look(memory), MEMORY_FILE_SAME);
	assert_int_equal(truncate(path.text, SIZE / 2), 0);
	assert_int_equal(memory_look(memory), MEMORY_FILE_CUT);
	assert_int_equal(truncate(path.text, SIZE), 0);
	assert_int_equal(memory_look(memory), MEMORY_FILE_SAME);
	assert_int_equal(rename(path.text, other.text), 0);
	assert_int_equal(memory_look(memory), MEMORY_FILE_GONE);
	directory_write(&directory, "state", SLICE("x"));
	assert_int_equal(memory_look(memory), MEMORY_FILE_REPLACED);
	assert_int_equal(rename(other.text, path.text), 0);
	assert_int_equal(memory_look(memory), MEMORY_FILE_SAME);
	memory_close(memory);
	struct err err;

	memory = memory_open_private(SIZE, &err);
	assert_non_null(memory);
	assert_null(memory_path(memory));
	assert_int_equal(memory_look(memory), MEMORY_FILE_SAME);
	memory_close(memory);
}

#define damage_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		damage_test(every_word_of_the_header_may_be_written_over),
		damage_test(every_word_of_a_lock_may_be_written_over),
		damage_test(every_word_of_a_stripe_may_be_written_over),
		damage_test(a_stripe_may_be_written_over_at_random),
		damage_test(a_file_that_was_cut_anywhere_is_made_anew),
		damage_test(what_became_of_the_file_is_told),
	};
	struct err err;

	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("memory/damage", tests, NULL, NULL);
}
