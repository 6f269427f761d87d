/* breaker.h: in one process, and shared by several. Times are arguments; nobody waits. They begin
 * now, since an old one is an abandoned one's. */
#include "../unit.h"
#include "weir/breaker.h"
#include "weir/clock.h"
#include "weir/hash.h"
#include "weir/memory.h"
#include "weir/redis.h"
#include "weir/units.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t started_us;
#define NOW_US started_us
#define DAY_US (INT64_C(86400) * 1000000)

/* The longest back-off with its jitter. */
#define LONGEST_US (INT64_C(12) * BREAKER_BACKOFF_MAX_US / 10)

/* The process's is not shared, as it is with memory_process_area. */
static struct breaker_areas areas;
static _Alignas(64) uint8_t process_area[MEMORY_AREA_SIZE];

static int
setup(void **state)
{
	(void)state;
	started_us = clock_monotonic_us();
	memset(process_area, 0, sizeof process_area);
	areas = (struct breaker_areas){ .process = process_area, .size = MEMORY_AREA_SIZE };
	areas.host = mmap(
		NULL, MEMORY_AREA_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return areas.host == MAP_FAILED ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	return munmap(areas.host, MEMORY_AREA_SIZE);
}

static struct breaker *
attach(const char *target)
{
	struct breaker *breaker = breaker_attach(&areas, slice_of(target));

	assert_non_null(breaker);
	return breaker;
}

/* ---- one process ---- */

static void
a_new_breaker_is_closed(void **state)
{
	struct breaker *breaker = attach("unix:/redis");

	(void)state;
	assert_false(breaker_is_open(breaker));
	assert_false(breaker_take_probe(breaker, NOW_US));
	assert_false(breaker_close(breaker));
	breaker_free(breaker);
}

static void
it_opens_once_and_closes_once(void **state)
{
	struct breaker *breaker = attach("unix:/redis");

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		assert_true(breaker_open(breaker, NOW_US));
		assert_true(breaker_is_open(breaker));
		assert_false(breaker_open(breaker, NOW_US));
		assert_true(breaker_close(breaker));
		assert_false(breaker_is_open(breaker));
		assert_false(breaker_close(breaker));
	}
	breaker_free(breaker);
}

static void
misses_in_a_row_open_it(void **state)
{
	struct breaker *breaker = attach("unix:/redis");

	(void)state;
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 1; i < BREAKER_MISSES; i++)
			assert_false(breaker_miss(breaker, NOW_US));
		breaker_hit(breaker);
		for (unsigned i = 1; i < BREAKER_MISSES; i++)
			assert_false(breaker_miss(breaker, NOW_US));
		assert_false(breaker_is_open(breaker));
		assert_true(breaker_miss(breaker, NOW_US));
		assert_true(breaker_is_open(breaker));
		assert_false(breaker_miss(breaker, NOW_US));
		/* What missed while it was open is not held against it afterwards. */
		for (unsigned i = 0; i < 10; i++)
			assert_false(breaker_miss(breaker, NOW_US));
		assert_true(breaker_close(breaker));
	}
	breaker_free(breaker);
}

static void
one_may_probe_when_the_back_off_is_over(void **state)
{
	struct breaker *breaker = attach("unix:/redis");

	(void)state;
	assert_true(breaker_open(breaker, NOW_US));
	const int64_t at = breaker_probe_at(breaker, NOW_US);

	assert_in_range(
		at - NOW_US, BREAKER_BACKOFF_MIN_US * 8 / 10, BREAKER_BACKOFF_MIN_US * 12 / 10);
	assert_false(breaker_take_probe(breaker, at - 1));
	assert_true(breaker_take_probe(breaker, at));
	assert_false(breaker_take_probe(breaker, at));
	assert_true(breaker_is_open(breaker));
	breaker_free(breaker);
}

static void
the_back_off_doubles_up_to_a_second(void **state)
{
	struct breaker *breaker = attach("unix:/redis");
	int64_t now = NOW_US, backoff = BREAKER_BACKOFF_MIN_US;

	(void)state;
	assert_true(breaker_open(breaker, now));
	for (unsigned i = 0; i < 10; i++) {
		now = breaker_probe_at(breaker, now);
		assert_true(breaker_take_probe(breaker, now));
		backoff =
			backoff * 2 < BREAKER_BACKOFF_MAX_US ? backoff * 2 : BREAKER_BACKOFF_MAX_US;
		assert_in_range(
			breaker_probe_at(breaker, now) - now, backoff * 8 / 10, backoff * 12 / 10);
	}
	assert_true(breaker_close(breaker));
	assert_true(breaker_open(breaker, now));
	assert_in_range(breaker_probe_at(breaker, now) - now, 0, BREAKER_BACKOFF_MIN_US * 12 / 10);
	breaker_free(breaker);
}

static void
hosts_do_not_knock_all_at_once(void **state)
{
	struct breaker *breaker = attach("unix:/redis");
	int64_t least = INT64_MAX, most = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		assert_true(breaker_open(breaker, NOW_US));
		const int64_t after = breaker_probe_at(breaker, NOW_US) - NOW_US;

		least = after < least ? after : least;
		most = after > most ? after : most;
		assert_true(breaker_close(breaker));
	}
	assert_true(most - least > BREAKER_BACKOFF_MIN_US / 5);
	breaker_free(breaker);
}

/* ---- targets ---- */

static void
a_target_is_one_breaker_and_others_are_others(void **state)
{
	struct breaker *a = attach("unix:/a"), *b = attach("unix:/b"), *again = attach("unix:/a");

	(void)state;
	assert_true(breaker_open(a, NOW_US));
	assert_true(breaker_is_open(again));
	assert_false(breaker_is_open(b));
	assert_true(breaker_close(again));
	assert_false(breaker_is_open(a));
	breaker_free(a);
	breaker_free(b);
	breaker_free(again);
}

/* Whatever is different may fail for its own reason. */
static void
a_server_that_is_used_in_another_way_is_another_target(void **state)
{
	const struct address server = { .kind = ADDRESS_UNIX, .host = "/redis" },
			     other = { .kind = ADDRESS_UNIX, .host = "/other" };
	const struct redis_settings uses[] = {
		{ .server = server, .prefix = "weir:" },
		{ .server = other, .prefix = "weir:" },
		{ .server = server, .prefix = "weir:", .password = "a" },
		{ .server = server, .prefix = "weir:", .password = "b" },
		{ .server = server, .prefix = "weir:", .username = "a", .password = "b" },
		{ .server = server, .prefix = "weir:", .username = "b", .password = "a" },
		{ .server = server, .prefix = "weir:", .database = 1 },
		{ .server = server, .prefix = "" },
		{ .server = server, .prefix = "weir", .password = ":" },
	};
	struct breaker *breakers[LENGTH_OF(uses)];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(uses); i++) {
		breakers[i] = redis_breaker(&uses[i], &areas);
		assert_non_null(breakers[i]);
		assert_false(breaker_is_open(breakers[i]));
		assert_true(breaker_open(breakers[i], NOW_US));
		/* Whose deadline is another waits for the same server. */
		struct redis_settings patient = uses[i];

		patient.deadline_us = US_PER_S;
		struct breaker *again = redis_breaker(&patient, &areas);

		assert_true(breaker_is_open(again));
		breaker_free(again);
	}
	for (size_t i = 0; i < LENGTH_OF(uses); i++)
		breaker_free(breakers[i]);
}

/* As another process sees it. */
static bool
is_open_elsewhere(unsigned server)
{
	static _Alignas(64) uint8_t others_area[MEMORY_AREA_SIZE];
	struct breaker_areas others = areas;
	char target[32];

	others.process = others_area;
	(void)snprintf(target, sizeof target, "tcp:host%u:6379", server);
	struct breaker *breaker = breaker_attach(&others, slice_of(target));

	assert_non_null(breaker);
	const bool is_open = breaker_is_open(breaker);

	breaker_free(breaker);
	return is_open;
}

static struct breaker *
attach_server(unsigned server)
{
	char target[32];

	(void)snprintf(target, sizeof target, "tcp:host%u:6379", server);
	return attach(target);
}

/* With that of the whole, and those of a cluster that was used before. */
static void
a_breaker_of_each_server_of_the_largest_cluster_is_shared(void **state)
{
	enum { MANY = REDIS_CLUSTER_SERVERS_MAX + 100 };
	static struct breaker *breakers[MANY];

	(void)state;
	for (unsigned i = 0; i < MANY; i++)
		breakers[i] = attach_server(i);
	for (unsigned i = 0; i < MANY; i++)
		assert_true(breaker_open(breakers[i], NOW_US));
	for (unsigned i = 0; i < MANY; i++) {
		assert_row(is_open_elsewhere(i), "%u", i);
		assert_false(breaker_tell_full(breakers[i]));
		assert_true(breaker_close(breakers[i]));
		breaker_free(breakers[i]);
	}
}

/* Servers come and go, and passwords change, for as long as the host runs. */
static void
a_place_is_for_whoever_needs_it(void **state)
{
	enum { MANY = 4 * MEMORY_AREA_SIZE / BREAKER_SIZE };
	struct breaker *first = attach_server(0), *missing = attach_server(1);

	(void)state;
	assert_false(breaker_miss(missing, NOW_US));
	assert_false(breaker_miss(missing, NOW_US));
	for (unsigned i = 2; i < MANY; i++) {
		struct breaker *breaker = attach_server(i);

		assert_true(breaker_open(breaker, NOW_US));
		assert_row(is_open_elsewhere(i), "%u", i);
		assert_true(breaker_close(breaker));
		assert_false(is_open_elsewhere(i));
		breaker_free(breaker);
	}
	assert_false(breaker_is_open(first));
	assert_true(breaker_open(first, NOW_US));
	assert_true(is_open_elsewhere(0));
	/* What it had counted is still its own. */
	assert_true(breaker_miss(missing, NOW_US));
	assert_true(is_open_elsewhere(1));
	breaker_free(first);
	breaker_free(missing);
}

static void
who_finds_no_place_has_a_breaker_of_the_process_and_it_is_told_once(void **state)
{
	enum { ROOM = (MEMORY_AREA_SIZE - sizeof(uint64_t)) / BREAKER_SIZE };
	struct breaker *one = NULL;

	(void)state;
	/* Nobody needs to hold them for that. */
	for (unsigned i = 0; i < ROOM; i++) {
		breaker_free(one);
		one = attach_server(i);
		assert_true(breaker_open(one, NOW_US));
		assert_false(breaker_tell_full(one));
	}
	for (unsigned i = ROOM; i < ROOM + 8; i++) {
		struct breaker *late = attach_server(i), *thread = attach_server(i);
		unsigned told = 0;

		assert_true(breaker_open(late, NOW_US));
		told += breaker_tell_full(late);
		assert_true(breaker_is_open(thread));
		told += breaker_tell_full(thread);
		assert_int_equal(told, i == ROOM ? 1 : 0);
		assert_false(is_open_elsewhere(i));
		assert_true(breaker_close(late));
		assert_false(breaker_is_open(thread));
		/* The next outage finds a place that has become free. */
		assert_true(breaker_close(one));
		assert_true(breaker_open(late, NOW_US));
		assert_true(is_open_elsewhere(i));
		assert_true(breaker_close(late));
		assert_true(breaker_open(one, NOW_US));
		breaker_free(late);
		breaker_free(thread);
	}
	breaker_free(one);
}

/* By passwords of before, by processes that were killed, by servers that are no more. */
static void
places_that_were_left_behind_are_free_again(void **state)
{
	enum { ROOM = (MEMORY_AREA_SIZE - sizeof(uint64_t)) / BREAKER_SIZE };
	const int64_t left_us[] = { NOW_US - 120 * US_PER_S, NOW_US + DAY_US };

	for (size_t i = 0; i < LENGTH_OF(left_us); i++) {
		for (unsigned server = 0; server < ROOM; server++) {
			struct breaker *breaker = attach_server(server);

			if (server % 2 == 0)
				assert_true(breaker_open(breaker, left_us[i]));
			else
				assert_false(breaker_miss(breaker, left_us[i]));
			breaker_free(breaker);
		}
		for (unsigned server = ROOM; server < 2 * ROOM; server++) {
			struct breaker *breaker = attach_server(server);

			assert_false(breaker_is_open(breaker));
			assert_false(breaker_miss(breaker, NOW_US));
			assert_true(breaker_open(breaker, NOW_US));
			assert_row(is_open_elsewhere(server), "%u", server);
			breaker_free(breaker);
		}
		assert_int_equal(teardown(state), 0);
		assert_int_equal(setup(state), 0);
	}
}

static void
without_an_area_it_works_as_well(void **state)
{
	struct breaker_areas none = { NULL, NULL, 0 };
	struct breaker *a = breaker_attach(&none, SLICE("x")),
		       *b = breaker_attach(&none, SLICE("x"));

	(void)state;
	assert_true(breaker_open(a, NOW_US));
	assert_false(breaker_is_open(b));
	breaker_free(a);
	breaker_free(b);
}

/* ---- several processes ---- */

enum { PROCESSES = 4, ROUNDS = 2000 };

/* Counts by round what all processes together have done. */
struct tally {
	_Atomic unsigned arrived[4 * ROUNDS];
	_Atomic unsigned opened[ROUNDS], probed[ROUNDS], closed[ROUNDS];
};

static void
meet(struct tally *tally, unsigned at)
{
	(void)atomic_fetch_add(&tally->arrived[at], 1);
	while (atomic_load(&tally->arrived[at]) < PROCESSES)
		(void)usleep(0);
}

static void
compete(struct tally *tally)
{
	struct breaker *breaker = breaker_attach(&areas, SLICE("shared"));
	int64_t now = NOW_US;

	for (unsigned round = 0; breaker != NULL && round < ROUNDS; round++, now += DAY_US) {
		meet(tally, 4 * round);
		if (breaker_miss(breaker, now))
			(void)atomic_fetch_add(&tally->opened[round], 1);
		meet(tally, 4 * round + 1);
		if (breaker_take_probe(breaker, now + LONGEST_US))
			(void)atomic_fetch_add(&tally->probed[round], 1);
		meet(tally, 4 * round + 2);
		if (breaker_close(breaker))
			(void)atomic_fetch_add(&tally->closed[round], 1);
		meet(tally, 4 * round + 3);
	}
	_exit(breaker == NULL);
}

static void
of_several_processes_one_finds_that_it_was_it(void **state)
{
	struct tally *tally = mmap(
		NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[PROCESSES];

	(void)state;
	assert_true(tally != MAP_FAILED);
	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			(void)alarm(60); /* the others wait for it */
			compete(tally);
		}
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	for (unsigned round = 0; round < ROUNDS; round++) {
		assert_row(atomic_load(&tally->opened[round]) == 1, "round %u", round);
		assert_row(atomic_load(&tally->probed[round]) == 1, "round %u", round);
		assert_row(atomic_load(&tally->closed[round]) == 1, "round %u", round);
	}
	assert_int_equal(munmap(tally, sizeof *tally), 0);
}

/* Who probes and dies has the right for one back-off and no longer. */
static void
a_process_that_dies_while_it_probes_is_forgotten(void **state)
{
	struct breaker *breaker = attach("unix:/redis");
	int status;

	(void)state;
	assert_true(breaker_open(breaker, NOW_US));
	const int64_t at = breaker_probe_at(breaker, NOW_US);
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(!breaker_take_probe(breaker, at));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(breaker_take_probe(breaker, at));
	assert_true(breaker_take_probe(breaker, breaker_probe_at(breaker, at)));
	breaker_free(breaker);
}

/* ---- what a death or a restart leaves ---- */

/* The area on a disk, before and after the host was started: its clock begins anew. */
static void
a_time_that_nobody_can_have_stored_is_past(void **state)
{
	struct breaker *breaker = attach("unix:/redis");
	const int64_t now = 5000000;

	(void)state;
	assert_true(breaker_open(breaker, now + 30 * DAY_US));
	assert_int_equal(breaker_probe_at(breaker, now), now);
	assert_true(breaker_take_probe(breaker, now));
	assert_in_range(breaker_probe_at(breaker, now), now + 1, now + LONGEST_US);
	assert_false(breaker_take_probe(breaker, now));
	assert_int_equal(breaker_open_for(breaker, now), 0);
	breaker_free(breaker);
}

/* Whoever opens it may die between any two stores. */
static void
a_back_off_that_was_not_stored_is_the_least(void **state)
{
	static const int64_t left[] = { 0, -1, 1, INT64_MIN, INT64_MAX, INT64_MAX / 2 + 1 };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(left); i++) {
		struct breaker *breaker = attach("unix:/redis");
		int64_t *words = areas.host, *backoff = NULL;

		assert_true(breaker_open(breaker, NOW_US));
		for (size_t w = 0; w < MEMORY_AREA_SIZE / sizeof words[0]; w++) {
			if (words[w] == BREAKER_BACKOFF_MIN_US)
				backoff = &words[w];
		}
		assert_non_null(backoff);
		*backoff = left[i];
		const int64_t now = breaker_probe_at(breaker, NOW_US);

		assert_true(breaker_take_probe(breaker, now));
		assert_in_range(breaker_probe_at(breaker, now) - now,
			BREAKER_BACKOFF_MIN_US * 8 / 10, LONGEST_US);
		assert_true(breaker_close(breaker));
		breaker_free(breaker);
	}
}

/* ---- a process's own ---- */

static void
what_is_our_own_is_open_for_all_of_this_process_and_nobody_else(void **state)
{
	struct breaker *breaker = attach("unix:/redis"), *thread = attach("unix:/redis"),
		       *elsewhere = attach("unix:/other");
	struct breaker_areas others = areas;
	static _Alignas(64) uint8_t others_area[MEMORY_AREA_SIZE];

	(void)state;
	others.process = others_area;
	struct breaker *other = breaker_attach(&others, SLICE("unix:/redis"));

	assert_non_null(other);
	assert_true(breaker_open_own(breaker, NOW_US));
	assert_false(breaker_open_own(thread, NOW_US));
	assert_true(breaker_is_open(breaker));
	assert_true(breaker_is_open(thread));
	assert_false(breaker_is_open(other));
	assert_false(breaker_is_open(elsewhere));
	assert_int_equal(breaker_open_for(thread, NOW_US + 5), 5);
	/* The right to probe is the process's, too. */
	const int64_t at = breaker_probe_at(thread, NOW_US);

	assert_in_range(at - NOW_US, 1, LONGEST_US);
	assert_true(breaker_take_probe(thread, at));
	assert_false(breaker_take_probe(breaker, at));
	/* Others may open the host's, and it closes with ours: whoever was let in knows. */
	assert_true(breaker_open(other, at));
	assert_true(breaker_close(breaker));
	assert_false(breaker_is_open(thread));
	assert_false(breaker_is_open(other));
	breaker_free(breaker);
	breaker_free(thread);
	breaker_free(elsewhere);
	breaker_free(other);
}

/* ---- the log ---- */

static void
an_outage_is_told_when_it_begins_worsens_and_lasts(void **state)
{
	struct breaker *breaker = attach("unix:/redis"), *other = attach("unix:/redis");
	int64_t now = NOW_US;

	(void)state;
	assert_true(breaker_open(breaker, now));
	assert_int_equal(breaker_open_for(breaker, now + 5), 5);
	assert_true(breaker_tell(breaker, now, false));
	assert_false(breaker_tell(breaker, now, false));
	/* By one of the host's processes. */
	assert_false(breaker_tell(other, now + 1, false));
	assert_true(breaker_tell(other, now + 2, true));
	assert_false(breaker_tell(breaker, now + 3, true));
	/* What is told to last is not told to pass, and back again. */
	assert_false(breaker_tell(breaker, now + 4, false));
	assert_false(breaker_tell(breaker, now + 5, true));
	now += 2;
	for (unsigned i = 0; i < 5; i++) {
		assert_false(breaker_tell(breaker, now + BREAKER_REMIND_US - 1, i % 2 == 0));
		now += BREAKER_REMIND_US;
		assert_true(breaker_tell(breaker, now, i % 2 == 0));
		assert_false(breaker_tell(other, now, i % 2 == 0));
	}
	/* The next one begins anew. */
	assert_true(breaker_close(breaker));
	assert_int_equal(breaker_open_for(breaker, now), 0);
	assert_true(breaker_open(breaker, now));
	assert_true(breaker_tell(breaker, now, false));
	breaker_free(breaker);
	breaker_free(other);
}

/* The monotonic clock begins anew with the host. */
static void
an_outage_from_before_the_host_was_started_is_told(void **state)
{
	struct breaker *breaker = attach("unix:/redis");

	(void)state;
	assert_true(breaker_open(breaker, NOW_US));
	assert_true(breaker_tell(breaker, NOW_US, false));
	assert_true(breaker_tell(breaker, 1, false));
	breaker_free(breaker);
}

#define breaker_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		breaker_test(a_new_breaker_is_closed),
		breaker_test(an_outage_is_told_when_it_begins_worsens_and_lasts),
		breaker_test(an_outage_from_before_the_host_was_started_is_told),
		breaker_test(it_opens_once_and_closes_once),
		breaker_test(misses_in_a_row_open_it),
		breaker_test(one_may_probe_when_the_back_off_is_over),
		breaker_test(the_back_off_doubles_up_to_a_second),
		breaker_test(hosts_do_not_knock_all_at_once),
		breaker_test(a_target_is_one_breaker_and_others_are_others),
		breaker_test(a_server_that_is_used_in_another_way_is_another_target),
		breaker_test(a_breaker_of_each_server_of_the_largest_cluster_is_shared),
		breaker_test(a_place_is_for_whoever_needs_it),
		breaker_test(who_finds_no_place_has_a_breaker_of_the_process_and_it_is_told_once),
		breaker_test(places_that_were_left_behind_are_free_again),
		breaker_test(without_an_area_it_works_as_well),
		breaker_test(of_several_processes_one_finds_that_it_was_it),
		breaker_test(a_process_that_dies_while_it_probes_is_forgotten),
		breaker_test(a_time_that_nobody_can_have_stored_is_past),
		breaker_test(a_back_off_that_was_not_stored_is_the_least),
		breaker_test(what_is_our_own_is_open_for_all_of_this_process_and_nobody_else),
	};
	struct err err;

	if (hash_start(&err) != 0)
		return 1;
	return cmocka_run_group_tests_name("redis/breaker", tests, NULL, NULL);
}
