/*
 * A process may die at any instruction while it writes an entry. A child writes entries into a
 * shared stripe and is stepped through it one instruction at a time; after each one that changed
 * anything a copy of the stripe is repaired, as the next process would, and looked at.
 */
#include "stripe.h"

#include "../lib/valgrind.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* One write: this key gets a state of so many words, which tell the write by its number. */
struct put {
	unsigned key, words;
	int64_t number;
};

struct shared {
	struct test_stripe stripe;
	_Atomic unsigned done; /* puts */
};

enum { KEYS_MAX = STRIPE_CELLS, WORTHLESS_AT_US = 1000, NOW_US = 10 };

static struct shared *shared;

enum { WORDS_MAX = 100 };

static void
put(const struct stripe_view *view, const struct put *put, int64_t worthless_at_us)
{
	const struct hash_wide key = key_of(put->key);
	int64_t words[WORDS_MAX];
	unsigned evicted = 0;

	for (unsigned i = 0; i < put->words; i++)
		words[i] = put->number * WORDS_MAX + i;
	stripe_write(view, &key, (const uint8_t *)words, put->words * sizeof words[0],
		worthless_at_us, NOW_US, &evicted);
}

static bool
is_whole(const struct put *put, const int64_t *words, size_t count)
{
	if (put == NULL || count != put->words)
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (words[i] != put->number * WORDS_MAX + i)
			return false;
	}
	return true;
}

/* What a key may have: nothing, or the state of one of two puts, and not a mixture. */
static void
check_entry(const struct stripe_view *view, unsigned key, const struct put *before,
	const struct put *after)
{
	static int64_t words[BUCKET_PACKED_MAX];
	const struct hash_wide hash = key_of(key);
	const struct cell *head = stripe_find(view, &hash);

	if (head == NULL) {
		assert_row(before == NULL, "key %u is lost", key);
		return;
	}
	const size_t count = stripe_read(view, head, (uint8_t *)words) / sizeof words[0];

	assert_row(is_whole(before, words, count) || is_whole(after, words, count),
		"key %u has %zu words that nobody put there", key, count);
}

/* Entries that were there before, and are worth something: from this key on, but every third. */
enum { OTHERS = 200 };

static unsigned others;

static void
check_others(const struct stripe_view *view)
{
	for (unsigned i = 0; i < others; i++) {
		const struct hash_wide hash = key_of(OTHERS + i);

		assert_row(i % 3 == 0 || stripe_find(view, &hash) != NULL, "entry %u is lost", i);
	}
}

/* `puts[done]` is the one in flight. */
static void
check_puts(const struct stripe_view *view, const struct put *puts, unsigned count, unsigned done)
{
	for (unsigned key = 0; key < KEYS_MAX; key++) {
		const struct put *before = NULL, *after = NULL;

		for (unsigned i = 0; i < done && i < count; i++) {
			if (puts[i].key == key)
				before = &puts[i];
		}
		if (done < count && puts[done].key == key)
			after = &puts[done];
		check_entry(view, key, before, after);
	}
}

static void
write_all(const struct put *puts, unsigned count)
{
	const struct stripe_view view = stripe_view_of(&shared->stripe);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(2);
	(void)raise(SIGSTOP);
	for (unsigned i = 0; i < count; i++) {
		put(&view, &puts[i], WORTHLESS_AT_US);
		atomic_store(&shared->done, i + 1);
	}
	_exit(0);
}

static void
check_a_death_here(const struct put *puts, unsigned count)
{
	static struct test_stripe copy;
	const struct stripe_view view = stripe_view_of(&copy);

	memcpy(&copy, &shared->stripe, sizeof copy);
	stripe_repair(&view);
	(void)check_stripe(&view);
	check_puts(&view, puts, count, atomic_load(&shared->done));
	check_others(&view);
	/* And it works. */
	put(&view, &(const struct put){ KEYS_MAX + 1, 64, 1 }, WORTHLESS_AT_US);
	(void)check_stripe(&view);
}

/* Returns the number of moments at which the child might have died. */
static unsigned
step_through(const struct put *puts, unsigned count)
{
	static struct test_stripe last;
	unsigned moments = 0;
	int status;
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		write_all(puts, count);
	memcpy(&last, &shared->stripe, sizeof last);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status)) {
		print_message("this system does not let a process be traced\n");
		skip();
	}
	while (WIFSTOPPED(status)) {
		if (memcmp(&last, &shared->stripe, sizeof last) != 0) {
			check_a_death_here(puts, count);
			memcpy(&last, &shared->stripe, sizeof last);
			moments++;
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(atomic_load(&shared->done), count);
	return moments;
}

static void
an_entry_is_old_or_new_wherever_its_writer_dies(void **state)
{
	/* New, written over, longer by one cell, by many, as long as can be, and shorter again. */
	static const struct put puts[] = { { 1, 4, 11 }, { 2, 4, 12 }, { 1, 4, 13 }, { 1, 8, 14 },
		{ 1, 12, 15 }, { 2, 8, 16 }, { 1, 16, 17 }, { 3, 64, 18 }, { 1, 64, 19 },
		{ 1, 64, 20 }, { 2, 20, 21 }, { 1, 100, 22 }, { 3, 12, 23 }, { 1, 4, 24 },
		{ 2, 0, 25 }, { 4, 28, 26 }, { 4, 28, 27 }, { 3, 4, 28 } };

	(void)state;
	assert_in_range(step_through(puts, LENGTH_OF(puts)), 100, 100000);
}

static void
nothing_of_worth_is_lost_when_a_writer_dies_in_a_full_stripe(void **state)
{
	struct put puts[KEYS_MAX];
	unsigned count = 0;
	const struct stripe_view view = stripe_view_of(&shared->stripe);

	(void)state;
	/* Of one cell or of two. */
	for (others = 0; view.stripe->free != CELL_NONE; others++) {
		const struct put one = { OTHERS + others, 4 + others % 2 * 8, 7 };

		put(&view, &one, others % 3 == 0 ? NOW_US : 100 * WORTHLESS_AT_US);
	}
	for (unsigned key = 0; key < 12; key++)
		puts[count++] = (struct put){ key, 4 + key % 4 * 4, 30 + key };
	assert_in_range(step_through(puts, count), 50, 100000);
	check_others(&view);
	others = 0;
}

static int
setup(void **state)
{
	(void)state;
	shared = mmap(
		NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -1;
	const struct stripe_view view = stripe_view_of(&shared->stripe);

	stripe_init(&view);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	return munmap(shared, sizeof *shared);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_entry_is_old_or_new_wherever_its_writer_dies, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_of_worth_is_lost_when_a_writer_dies_in_a_full_stripe, setup,
			teardown),
	};

	if (runs_under_valgrind())
		return 77;
	return cmocka_run_group_tests_name("memory/crash", tests, NULL, NULL);
}
