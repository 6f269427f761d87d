/* src/redis/reply.c: what is believed of a reply of lua/engine.lua, and what is not. */
#include "reading.h"

/* A log of 10 tokens with a shadow quota of 3, and 2 at a time; the second limit may overflow. */
static struct made_limit mixed, places;
static struct check check;

static int
setup(void **state)
{
	(void)state;
	make_limit(&mixed, "mixed", "10/1s sliding-log", "3/day calendar shadow");
	make_limit(&places, "places", "concurrent 2");
	check = (struct check){ .items = { { .limit = &mixed.limit },
					{ .limit = &places.limit, .overflow = SLICE("o") } },
		.count = 2,
		.cost = 2 };
	return 0;
}

static struct read
read_numbers(const int64_t *numbers, size_t count)
{
	char bytes[ARRAY_MAX * 24];

	return read_for(&check, array_of(bytes, numbers, count));
}

static void
three_numbers_a_policy_are_read(void **state)
{
	const int64_t admitted[] = { 1, IN_2026_US, 2, 5, 400, 900, -3, 8000, 8000, 1, 1000000,
		1000000 };
	const int64_t rejected[] = { 2, IN_2026_US, 0, 8, 400, 900, 0, 0, 0, -3, 1000000, 1000000 };
	struct read read = read_numbers(admitted, LENGTH_OF(admitted));
	const struct outcome *outcomes = read.decision.outcomes;

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(read.decision.overflowed, 2);
	assert_int_equal(read.decision.count, 3);
	assert_int_equal(outcomes[0].remaining, 5);
	assert_int_equal(outcomes[0].more_us, 400);
	assert_int_equal(outcomes[0].reset_us, 900);
	assert_true(outcomes[1].violated && outcomes[1].shadow);
	assert_int_equal(outcomes[1].remaining, 1);
	assert_int_equal(outcomes[1].retry_us, 8000);
	assert_int_equal(outcomes[2].remaining, 1);
	read = read_numbers(rejected, LENGTH_OF(rejected));
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.verdict, VERDICT_REJECTED);
	assert_true(read.decision.clamped);
	assert_int_equal(outcomes[0].remaining, 2);
	assert_int_equal(outcomes[1].remaining, 3);
	assert_ptr_equal(decision_violated(&read.decision), &read.decision.outcomes[2]);
}

static void
three_numbers_that_cannot_be_are_absurd(void **state)
{
	/* The log's, the quota's, the places', behind status, clock and overflow. */
	static const int64_t replies[][12] = {
		{ 1, 5, 1, 5, 4, 9, 2, 4, 9, 1, 4, 9 }, /* what has no overflow key overflowed */
		{ 1, 5, 4, 5, 4, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, -1, 5, 4, 9, 2, 4, 9, 1, 4, 9 },
		{ 4, 5, 0, 5, 4, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, -5, 0, 5, 4, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 1, 4, 9, 2, 4, 9, 1, 4, 9 }, /* spent, and less is used than it cost */
		{ 1, 5, 0, 5, 4, 9, 1, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, 4, 9, 2, 4, 9, 0, 0, 0 },
		{ 1, 5, 0, 11, 4, 9, 2, 4, 9, 1, 4, 9 }, /* more than the burst */
		{ 1, 5, 0, 5, 4, 9, 2, 4, 9, 3, 4, 9 },
		{ 1, 5, 0, 5, 10, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, 0, 9, 2, 4, 9, 1, 4, 9 }, /* no wait, and something is used */
		{ 1, 5, 0, 5, 4, 0, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, -1, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, 4, INT64_MAX, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, 4, 9, -1 - 1, 4, 9, 1, 4, 9 }, /* violated, and there is room */
		{ 1, 5, 0, 5, 4, 9, INT64_MIN, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, INT64_MAX, 4, 9, 2, 4, 9, 1, 4, 9 },
		{ 1, 5, 0, 5, 4, 9, -1 - 2, 0, 9, 1, 4, 9 }, /* and nothing to wait for */
		{ 1, 5, 0, 5, 4, 9, -1 - 2, -1, 9, 1, 4, 9 },
		{ 0, 5, 0, 5, 4, 9, 0, 0, 0, 1, 4, 9 },
		{ 1, 5, 0, -1 - 9, 4, 9, 2, 4, 9, 1, 4, 9 }, /* admitted, and somebody says no */
		{ 0, 5, 0, 9, 4, 9, 0, 0, 0, -1 - 2, 4, 9 }, /* no room, and not violated */
		{ 0, 5, 0, 8, 4, 9, 0, 0, 7, -1 - 2, 4, 9 },
		{ 0, 5, 0, 8, 4, 9, 0, 3, 0, -1 - 2, 4, 9 },
	};

	static const int64_t sound[] = { 1, 5, 2, 5, 4, 9, 2, 4, 9, 1, 4, 9 };

	(void)state;
	assert_int_equal(read_numbers(sound, 12).kind, REPLY_DECISION);
	for (size_t i = 0; i < LENGTH_OF(replies); i++)
		assert_row(read_numbers(replies[i], 12).kind == REPLY_ABSURD, "reply %zu", i);
	for (size_t i = 0; i < 12; i++)
		assert_row(read_numbers(sound, i).kind == REPLY_ABSURD, "%zu", i);
}

static void
no_mutation_of_a_reply_leads_astray(void **state)
{
	static const char *const replies[] = {
		"*12\r\n:1\r\n:1781000000123456\r\n:2\r\n:5\r\n:400\r\n:900\r\n:2\r\n:40\r\n:"
		"90\r\n:1\r\n"
		":1000000\r\n:1000000\r\n",
		"*12\r\n:0\r\n:1781000000123456\r\n:0\r\n:-10\r\n:400\r\n:900\r\n:0\r\n:0\r\n:"
		"0\r\n:-3\r\n"
		":1000000\r\n:1000000\r\n",
	};
	unsigned decisions = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(replies); i++)
		decisions += read_mutations(&check, replies[i]);
	assert_in_range(decisions, 100, 100000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(three_numbers_a_policy_are_read, setup),
		cmocka_unit_test_setup(three_numbers_that_cannot_be_are_absurd, setup),
		cmocka_unit_test_setup(no_mutation_of_a_reply_leads_astray, setup),
	};

	return cmocka_run_group_tests_name("redis/reply_engine", tests, NULL, NULL);
}
