/* src/redis/reply.c: what is believed of a reply, and what is not. */
#include "reading.h"

#include <stdio.h>

/* Two limits, of two policies and of one; 10 and 100 tokens, and 5 of a second one. */
static struct made_limit user, all;
static struct check check;

static int
setup(void **state)
{
	(void)state;
	make_limit(&user, "user", "10/1s", "100/1m");
	make_limit(&all, "all", "5/5s");
	check = (struct check){ .items = { { .limit = &user.limit }, { .limit = &all.limit } },
		.count = 2,
		.cost = 1 };
	return 0;
}

static struct read
read_numbers(const int64_t *numbers, size_t count)
{
	char bytes[ARRAY_MAX * 24];

	return read_for(&check, array_of(bytes, numbers, count));
}

#define read_array(...)                                                                            \
	read_numbers((const int64_t[]){ __VA_ARGS__ },                                             \
		sizeof((const int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))

/* ---- decisions ---- */

static void
an_admitted_request_is_read(void **state)
{
	const struct read read = read_array(1, IN_2026_US, 100000, 1200000, 5000000);

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.now_us, IN_2026_US);
	assert_int_equal(read.decision.verdict, VERDICT_ADMITTED);
	assert_int_equal(read.decision.now_us, IN_2026_US);
	assert_false(read.decision.clamped);
	assert_int_equal(read.decision.count, 3);
	assert_int_equal(read.decision.outcomes[0].remaining, 9);
	assert_int_equal(read.decision.outcomes[1].remaining, 98);
	assert_int_equal(read.decision.outcomes[2].remaining, 0);
	assert_ptr_equal(read.decision.outcomes[2].limit, &all.limit);
	assert_int_equal(read.decision.outcomes[2].reset_us, 5000000);
	assert_false(read.decision.outcomes[2].violated);
}

static void
a_rejected_request_is_read(void **state)
{
	const struct read read = read_array(0, IN_2026_US, -1 - 950000, 1200000, -1 - 5000000);

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.verdict, VERDICT_REJECTED);
	assert_true(read.decision.outcomes[0].violated);
	assert_int_equal(read.decision.outcomes[0].retry_us, 50000);
	assert_false(read.decision.outcomes[1].violated);
	assert_int_equal(read.decision.outcomes[2].retry_us, 1000000);
	assert_ptr_equal(decision_violated(&read.decision), &read.decision.outcomes[2]);
}

static void
a_clock_set_right_is_told(void **state)
{
	const struct read read = read_array(2, IN_2026_US, -1 - 1000000, 0, 0);

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_true(read.decision.clamped);
}

static void
shadows_do_not_decide(void **state)
{
	(void)state;
	check.items[1].shadow = true;
	struct read read = read_array(1, IN_2026_US, 100000, 600000, -1 - 5000000);

	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.verdict, VERDICT_ADMITTED);
	assert_true(read.decision.outcomes[2].violated && read.decision.outcomes[2].shadow);
	/* Rejected by nobody who may. */
	assert_int_equal(
		read_array(0, IN_2026_US, 100000, 600000, -1 - 5000000).kind, REPLY_ABSURD);
}

static void
a_late_check_is_read(void **state)
{
	const struct read read = read_array(-1, IN_2026_US);

	(void)state;
	assert_int_equal(read.kind, REPLY_LATE);
	assert_int_equal(read.now_us, IN_2026_US);
}

/* A probe, or a check that was cancelled or missed its deadline. */
static void
with_nobody_to_tell_only_the_clock_is_read(void **state)
{
	char bytes[ARRAY_MAX * 24];
	const int64_t numbers[] = { 1, IN_2026_US, 1 };
	struct read read = read_for(NULL, array_of(bytes, numbers, 3));

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.now_us, IN_2026_US);
	read = read_for(NULL, SLICE("*2\r\n:1\r\n$1\r\nx\r\n"));
	assert_int_equal(read.kind, REPLY_ABSURD);
}

/* ---- what is no answer ---- */

static void
every_other_shape_is_absurd(void **state)
{
	static const char *const replies[] = { "+OK\r\n", ":1\r\n", "$-1\r\n", "$2\r\n:1\r\n",
		"*0\r\n", "*-1\r\n", "*1\r\n:1\r\n", "*2\r\n:1\r\n:5\r\n", /* too short */
		"*4\r\n:1\r\n:5\r\n:0\r\n:0\r\n", "*6\r\n:1\r\n:5\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
		"*3\r\n:-1\r\n:5\r\n:0\r\n", /* late, and more */
		"*5\r\n:1\r\n:5\r\n$1\r\n0\r\n:0\r\n:0\r\n", /* a string */
		"*5\r\n:1\r\n:5\r\n*0\r\n:0\r\n:0\r\n", "*5\r\n:1\r\n:5\r\n:0\r\n:0\r\n$-1\r\n",
		"*5\r\n*1\r\n:1\r\n:5\r\n:0\r\n:0\r\n:0\r\n",
		"*5\r\n+1\r\n:5\r\n:0\r\n:0\r\n:0\r\n", "*5\r\n-ERR x\r\n:5\r\n:0\r\n:0\r\n:0\r\n",
		"*1\r\n*5\r\n:1\r\n:5\r\n:0\r\n:0\r\n:0\r\n" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(replies); i++)
		assert_row(read_for(&check, slice_of(replies[i])).kind == REPLY_ABSURD, "reply %zu",
			i);
}

static void
every_other_number_is_absurd(void **state)
{
	static const int64_t replies[][5] = {
		{ 4, 5, 0, 0, 0 }, { -2, 5, 0, 0, 0 }, { INT64_MAX, 5, 0, 0, 0 },
		{ INT64_MIN, 5, 0, 0, 0 }, { 1, -1, 0, 0, 0 }, /* before 1970 */
		{ 1, INT64_MIN, 0, 0, 0 }, { 1, (INT64_C(1) << 53) + 1, 0, 0, 0 },
		{ 1, INT64_MAX, 0, 0, 0 }, /* too late */
		{ 1, 5, INT64_MAX, 0, 0 }, /* debts beyond what can be */
		{ 1, 5, INT64_MIN, 0, 0 }, { 0, 5, INT64_MIN + 1, 0, 0 },
		{ 1, 5, 1000001, 0, 0 }, /* owed more than the bucket, and not violated */
		{ 0, 5, 1000001, -1 - 60000000, 0 },
		{ 0, 5, 0, 0, 0 }, /* rejected, and nobody says so */
		{ 1, 5, 0, -1 - 60000000, 0 }, /* admitted, and somebody says no */
		{ 0, 5, -1 - 900000, 0, 0 }, /* violated, and there is room */
		{ 0, 5, 950000, -1 - 60000000, 0 }, /* no room, and not violated */
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(replies); i++)
		assert_row(read_numbers(replies[i], 5).kind == REPLY_ABSURD, "reply %zu", i);
}

static void
a_debt_of_another_configuration_may_exceed_the_bucket(void **state)
{
	struct read read = read_array(0, IN_2026_US, -1 - DURATION_MAX_US, 0, 0);

	(void)state;
	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.outcomes[0].remaining, 0);
	assert_int_equal(read.decision.outcomes[0].retry_us, DURATION_MAX_US - 900000);
	read = read_array(0, IN_2026_US, -2 - 2 * DURATION_MAX_US - US_PER_S, 0, 0);
	assert_int_equal(read.kind, REPLY_ABSURD);
}

static void
a_cost_beyond_the_burst_is_read(void **state)
{
	(void)state;
	check.cost = 6;
	const struct read read = read_array(0, IN_2026_US, 0, 0, -1);

	assert_int_equal(read.kind, REPLY_DECISION);
	assert_int_equal(read.decision.outcomes[2].retry_us, -1);
	assert_int_equal(read.decision.outcomes[2].remaining, 5);
	/* The others would have had room. */
	assert_int_equal(read_array(1, IN_2026_US, 600000, 3600000, 5000000).kind, REPLY_ABSURD);
}

/* ---- errors ---- */

static enum reply_kind
kind_of_error(const char *text)
{
	char bytes[600];
	const int n = snprintf(bytes, sizeof bytes, "-%s\r\n", text);
	const struct read read = read_for(&check, slice_make(bytes, (size_t)n));

	assert_row(strncmp(read.err.text, text, 200) == 0, "\"%s\" is said as \"%s\"", text,
		read.err.text);
	return read.kind;
}

static void
errors_are_told_apart_by_their_words(void **state)
{
	static const struct {
		const char *text;
		enum reply_kind kind;
	} rows[] = {
		{ "NOSCRIPT No matching script. Please use EVAL.", REPLY_NOSCRIPT },
		{ "READONLY You can't write against a read only replica.", REPLY_UNUSABLE },
		{ "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
		  "'no'.",
			REPLY_UNUSABLE },
		{ "LOADING Redis is loading the dataset in memory", REPLY_UNUSABLE },
		{ "CLUSTERDOWN Hash slot not served", REPLY_UNUSABLE },
		{ "OOM command not allowed when used memory > 'maxmemory'.", REPLY_UNUSABLE },
		{ "NOREPLICAS Not enough good replicas to write.", REPLY_UNUSABLE },
		{ "MISCONF Redis is configured to save RDB snapshots", REPLY_UNUSABLE },
		{ "BUSY Redis is busy running a script.", REPLY_UNUSABLE },
		{ "NOAUTH Authentication required.", REPLY_UNUSABLE },
		{ "WRONGPASS invalid username-password pair or user is disabled.", REPLY_UNUSABLE },
		{ "NOPERM this user has no permissions to run the 'evalsha' command",
			REPLY_UNUSABLE },
		{ "TRYAGAIN Multiple keys request during rehashing of slot", REPLY_UNUSABLE },
		{ "ERR invalid password", REPLY_UNUSABLE },
		{ "ERR Client sent AUTH, but no password is set", REPLY_UNUSABLE },
		/* From within a script: Redis 7 of rights, and of all else, and before. */
		{ "ERR ACL failure in script: User weir has no permissions to run the 'time' "
		  "command script: 9ce5, on @user_script:5.",
			REPLY_UNUSABLE },
		{ "ERR The user executing the script can't run this command or subcommand script: "
		  "9ce5, on @user_script:5.",
			REPLY_UNUSABLE },
		{ "READONLY You can't write against a read only replica. script: 5f8c, on "
		  "@user_script:73.",
			REPLY_UNUSABLE },
		{ "ERR Error running script (call to f_5f8c): @user_script:73: @user_script: 73: "
		  "-OOM command not allowed when used memory > 'maxmemory'.",
			REPLY_UNUSABLE },
		/* Of this key only. */
		{ "WRONGTYPE Operation against a key holding the wrong kind of value script: 5f8c, "
		  "on @user_script:15.",
			REPLY_ERROR },
		{ "ERR Error running script (call to f_5f8c): @user_script:15: WRONGTYPE Operation "
		  "against a key holding the wrong kind of value",
			REPLY_ERROR },
		{ "ERR value is not an integer or out of range", REPLY_ERROR },
		{ "MOVED 3999 127.0.0.1:6381", REPLY_ERROR },
		{ "", REPLY_ERROR },
		{ "ERR", REPLY_ERROR },
		{ "x", REPLY_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(kind_of_error(rows[i].text) == rows[i].kind, "%s", rows[i].text);
}

static void
an_error_of_any_length_is_cut(void **state)
{
	char text[590];

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_int_equal(kind_of_error(text), REPLY_ERROR);
}

static void
a_status_is_ok_or_it_is_not(void **state)
{
	static const struct {
		const char *bytes;
		enum reply_kind kind;
	} rows[] = { { "+OK\r\n", REPLY_DECISION }, { "+QUEUED\r\n", REPLY_ABSURD },
		{ "+OKAY\r\n", REPLY_ABSURD }, { "+\r\n", REPLY_ABSURD },
		{ ":0\r\n", REPLY_ABSURD }, { "$2\r\nOK\r\n", REPLY_ABSURD },
		{ "*0\r\n", REPLY_ABSURD }, { "$-1\r\n", REPLY_ABSURD },
		{ "-ERR DB index is out of range\r\n", REPLY_UNUSABLE },
		{ "-WRONGPASS invalid username-password pair\r\n", REPLY_UNUSABLE },
		{ "-NOSCRIPT x\r\n", REPLY_ABSURD } };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct err err;
		redisReply *reply = reply_of(slice_of(rows[i].bytes));

		assert_non_null(reply);
		assert_row(reply_status(reply, &err) == rows[i].kind, "%s", rows[i].bytes);
		freeReplyObject(reply);
	}
}

/* ---- any bytes ---- */

static void
no_mutation_of_a_reply_leads_astray(void **state)
{
	static const char *const replies[] = {
		"*5\r\n:1\r\n:1781000000123456\r\n:100000\r\n:1200000\r\n:5000000\r\n",
		"*5\r\n:0\r\n:1781000000123456\r\n:-950001\r\n:1200000\r\n:-5000001\r\n",
		"*2\r\n:-1\r\n:1781000000123456\r\n",
		"-NOSCRIPT No matching script. Please use EVAL.\r\n",
		"*2\r\n:0\r\n*2\r\n:1\r\n$3\r\nabc\r\n",
	};
	unsigned decisions = 0;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(replies); i++)
		decisions += read_mutations(&check, replies[i]);
	assert_in_range(decisions, 100, 100000);
}

#define reply_test(f) cmocka_unit_test_setup(f, setup)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		reply_test(an_admitted_request_is_read),
		reply_test(a_rejected_request_is_read),
		reply_test(a_clock_set_right_is_told),
		reply_test(shadows_do_not_decide),
		reply_test(a_late_check_is_read),
		reply_test(with_nobody_to_tell_only_the_clock_is_read),
		reply_test(every_other_shape_is_absurd),
		reply_test(every_other_number_is_absurd),
		reply_test(a_debt_of_another_configuration_may_exceed_the_bucket),
		reply_test(a_cost_beyond_the_burst_is_read),
		reply_test(errors_are_told_apart_by_their_words),
		reply_test(an_error_of_any_length_is_cut),
		reply_test(a_status_is_ok_or_it_is_not),
		reply_test(no_mutation_of_a_reply_leads_astray),
	};

	return cmocka_run_group_tests_name("redis/reply", tests, NULL, NULL);
}
