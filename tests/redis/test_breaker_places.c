/* Places of breakers that two take at the same time, each in the middle of what the other does: one
 * is held up where the clock is read, or at any instruction. */
#include "../lib/valgrind.h"
#include "../unit.h"
#include "weir/breaker.h"
#include "weir/clock.h"
#include "weir/hash.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIP = 77 };

static struct breaker_areas areas; /* without a process's two breakers are as two processes' */
static _Alignas(64) uint8_t process_area[2 * BREAKER_SIZE + sizeof(uint64_t)];
static struct breaker *one, *other, *first, *second;

/* ---- a look at the clock, in which something happens ---- */

int64_t __real_clock_monotonic_us(void);
int64_t __wrap_clock_monotonic_us(void);

static void (*meanwhile)(void); /* once */

int64_t
__wrap_clock_monotonic_us(void)
{
	void (*const happens)(void) = meanwhile;

	meanwhile = NULL;
	if (happens != NULL)
		happens();
	return __real_clock_monotonic_us();
}

/* ---- setting ---- */

static void
open_places(unsigned count)
{
	areas.size = count * BREAKER_SIZE + sizeof(uint64_t);
	areas.host =
		mmap(NULL, areas.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(areas.host != MAP_FAILED);
	one = other = first = second = NULL;
}

static int
teardown(void **state)
{
	(void)state;
	breaker_free(one);
	breaker_free(other);
	breaker_free(first);
	breaker_free(second);
	one = other = first = second = NULL;
	return munmap(areas.host, areas.size);
}

static struct breaker *
attach(const char *target)
{
	struct breaker *breaker = breaker_attach(&areas, slice_of(target));

	assert_non_null(breaker);
	return breaker;
}

/* ---- two places for one target ---- */

static void
take_the_second_place_and_free_the_first(void)
{
	areas.process = NULL;
	other = attach("target");
	assert_true(breaker_close(first));
}

/* Each has found that there is none, and then the first place that says nothing is another one for
 * each. */
static void
who_takes_a_place_at_the_same_time_as_another_shares_it(void **state)
{
	(void)state;
	open_places(2);
	first = attach("first");
	second = attach("second");
	assert_true(breaker_open(first, clock_monotonic_us()));
	/* Of its own it has a place: the clock is read for one of the host's. */
	areas.process = process_area;
	meanwhile = take_the_second_place_and_free_the_first;
	one = attach("target");
	assert_non_null(other);
	assert_true(breaker_open(one, clock_monotonic_us()));
	assert_true(breaker_is_open(other));
	assert_true(breaker_close(other));
	assert_false(breaker_is_open(one));
	/* The place that was given up is for whoever needs it. */
	assert_true(breaker_open(one, clock_monotonic_us()));
	assert_true(breaker_open(second, clock_monotonic_us()));
	breaker_free(first);
	first = attach("second");
	assert_true(breaker_is_open(first));
}

/* ---- a place that is opened before it is wholly taken ---- */

static void
take_as_a_child(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(SKIP);
	(void)raise(SIGSTOP);
	_exit(breaker_attach(&areas, SLICE("target")) == NULL);
}

/* To the instruction that makes the place the child's target's. */
static bool
step_until_taken(pid_t pid)
{
	_Atomic uint64_t *target = areas.host;
	const uint64_t before = atomic_load(target);
	int status;

	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (atomic_load(target) != before)
			return true;
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	}
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SKIP);
	return false;
}

static void
an_outage_that_is_told_in_a_place_while_it_is_taken_stays_told(void **state)
{
	int status;

	(void)state;
	if (runs_under_valgrind())
		skip();
	open_places(1);
	first = attach("first");
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		take_as_a_child();
	if (!step_until_taken(pid))
		skip();
	one = attach("target");
	assert_true(breaker_open(one, clock_monotonic_us()));
	assert_int_equal(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(breaker_is_open(one));
	other = attach("target");
	assert_true(breaker_is_open(other));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			who_takes_a_place_at_the_same_time_as_another_shares_it, teardown),
		cmocka_unit_test_teardown(
			an_outage_that_is_told_in_a_place_while_it_is_taken_stays_told, teardown),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/breaker_places", tests, NULL, NULL);
}
