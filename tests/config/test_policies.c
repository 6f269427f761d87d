/* Policies and caps: what is taken, with what name and numbers, and what is refused. */
#include "compose.h"

static void
token_buckets_have_a_rate_a_burst_and_a_name(void **state)
{
	struct config *config =
		loaded("[limit l]\npolicy = 10/s burst 60\npolicy = 100/10m\n"
		       "policy = 7/1h name hourly token-bucket burst 1000000\n"
		       "policy = 64/1s burst 640 shards 64 shadow name sharded\n"
		       "local_cap = 200/1s burst 400\n"
		       "[backend b]\nserver = unix:/run/x\n[route r]\nmatch = *\nlimit = l\n");
	const struct config_limit *limit = config->limits[0];
	const struct config_policy *policies = limit->policies;

	(void)state;
	assert_int_equal(limit->policy_count, 4);
	assert_string_equal(policies[0].name, "1s");
	assert_int_equal(policies[0].burst, 60);
	assert_int_equal(policies[0].rate.count, 10);
	assert_int_equal(policies[0].rate.window_us, US_PER_S);
	assert_int_equal(policies[0].place.line, 2);
	assert_int_equal(policies[0].shards, 1);
	assert_string_equal(policies[1].name, "10m");
	assert_int_equal(policies[1].burst, 100);
	assert_string_equal(policies[2].name, "hourly");
	assert_int_equal(policies[2].burst, 1000000);
	assert_int_equal(policies[3].shards, 64);
	assert_true(policies[3].shadow);
	assert_int_equal(limit->local_cap->rate.count, 200);
	assert_int_equal(limit->local_cap->burst, 400);
	assert_int_equal(limit->local_cap->shards, 1);
	config_free(config);
}

static void
every_algorithm_has_its_numbers(void **state)
{
	static const struct {
		const char *value, *name;
		enum policy_algorithm algorithm;
		uint64_t count;
		int64_t window_us, lease_us;
		enum calendar_period period;
		bool shadow;
	} rows[] = {
		{ "100/60s sliding-window", "60s", POLICY_SLIDING_WINDOW, 100, 60 * US_PER_S, 0, 0,
			false },
		{ "1000/1m sliding-log shadow", "1m", POLICY_SLIDING_LOG, 1000, 60 * US_PER_S, 0, 0,
			true },
		{ "1000/day calendar", "day", POLICY_CALENDAR, 1000, US_PER_DAY, 0, CALENDAR_DAY,
			false },
		{ "999999999999999/month calendar name plan", "plan", POLICY_CALENDAR,
			UINT64_C(999999999999999), 31 * US_PER_DAY, 0, CALENDAR_MONTH, false },
		{ "9/day calendar name UTC", "UTC", POLICY_CALENDAR, 9, US_PER_DAY, 0, CALENDAR_DAY,
			false },
		{ "concurrent 6", "concurrent", POLICY_CONCURRENT, 6, 0, 600 * US_PER_S, 0, false },
		{ "concurrent 1000 lease 2h name running shadow", "running", POLICY_CONCURRENT,
			1000, 0, 7200 * US_PER_S, 0, true },
	};
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		compose(ini, sizeof ini, "limit", "policy", rows[i].value);
		struct config *config = loaded(ini);
		const struct config_policy *policy = &config->limits[0]->policies[0];

		assert_string_equal(policy->name, rows[i].name);
		assert_int_equal(policy->algorithm, rows[i].algorithm);
		assert_true(policy->rate.count == rows[i].count && policy->burst == rows[i].count);
		assert_int_equal(policy->rate.window_us, rows[i].window_us);
		assert_int_equal(policy->lease_us, rows[i].lease_us);
		assert_int_equal(policy->period, rows[i].period);
		assert_int_equal(policy->shadow, rows[i].shadow);
		assert_int_equal(policy->shards, 1);
		config_free(config);
	}
}

static void
policies_say_what_is_wrong(void **state)
{
	static const struct {
		const char *value, *said;
	} wrong[] = {
		{ "10/1s burst", "\"burst\" wants a word behind it" },
		{ "10/1s burst 0",
			"the burst \"0\" is no whole number from 1 to 1000000000000000" },
		{ "10/1s burst 1000000000000001",
			"the burst \"1000000000000001\" is no whole number from 1 to "
			"1000000000000000" },
		{ "10/1s burst -1",
			"the burst \"-1\" is no whole number from 1 to 1000000000000000" },
		{ "10/1s burst 9223372036854775808",
			"the burst \"9223372036854775808\" is no whole number from 1 to "
			"1000000000000000" },
		{ "10/1s burst 18446744073709551617",
			"the burst \"18446744073709551617\" is no whole number from 1 to "
			"1000000000000000" },
		{ "0/1s",
			"a rate of 0 admits nothing; to refuse everyone, let the web server do "
			"it" },
		{ "9223372036854775808/1s",
			"the count \"9223372036854775808\" is no whole number from 1 to "
			"999999999999999" },
		{ "10/0s", "a window of 0 is no rate; write at least 1ms" },
		{ "10/1s burst 5 burst 5", "\"burst\" is given twice" },
		{ "10/1s brust 5",
			"\"brust\" is no word that can follow here; did you mean \"burst\"?" },
		{ "10/1s name a/b",
			"\"a/b\" is no name; a name is one word of letters, digits, \"-\", \"_\" "
			"and \".\"" },
		{ "10/1s, 50/1d", "a second policy is a second line, without a comma" },
		{ "10/min", "this rate is written 10/1m" },
		{ "10/hour", "this rate is written 10/1h" },
		{ "3r/m", "this rate is written 3/1m" },
		{ "3r/s burst=20 nodelay", "this rate is written 3/1s" },
		{ "3 / 1m", "this rate is written 3/1m" },
		{ "3/ 1m burst 5", "this rate is written 3/1m" },
		{ "3 /m", "this rate is written 3/1m" },
		{ "5/1sec", "this rate is written 5/1s" },
		{ "3/1min", "this rate is written 3/1m" },
		{ "100 requests per 10 minutes", "this rate is written 100/10m" },
		{ "100 per Minute", "this rate is written 100/1m" },
		{ "100/M", "this rate is written 100/1m" },
		{ "7/2w", "this rate is written 7/14d" },
		{ "3/minutely",
			"\"minutely\" is no window; write a number and ms, s, m, h or d, such as "
			"10/1s or 1000/1d" },
		{ "3",
			"\"3\" is no rate; write COUNT/WINDOW, such as 10/1s, 100/1m or "
			"1000/1d" },
		{ "3/500us",
			"\"500us\" is no window; write a number and ms, s, m, h or d, such as "
			"10/1s or 1000/1d" },
		/* the words behind it */
		{ "10/1s burst=20", "\"burst=20\" is written burst 20" },
		{ "10/1s burst:20", "\"burst:20\" is written burst 20" },
		{ "10/1s Burst=20", "\"Burst=20\" is written burst 20" },
		{ "10/1s burst=", "\"burst=\" is written burst" },
		{ "10/1s burst 20 nodelay",
			"\"nodelay\": weir never delays, it admits or rejects; leave it out" },
		{ "10/week", "this rate is written 10/7d" },
		/* algorithms */
		{ "10/1s sliding-log calendar",
			"\"sliding-log\" and \"calendar\" are two algorithms; choose one" },
		{ "10/1s fixed-window", "\"fixed-window\" is no word that can follow here" },
		{ "10/1s sliding-window burst 20",
			"\"burst\" is of a token bucket, and this is none; leave it out" },
		{ "10/1s sliding-log shards 2",
			"\"shards\" is of a token bucket, and this is none; leave it out" },
		{ "10/1s lease 10m",
			"\"lease\" is of requests at a time; write concurrent N lease DURATION" },
		{ "1001/1h sliding-log",
			"sliding-log keeps each request by itself, so its count is 1000 at the "
			"most; sliding-window takes any" },
		/* the calendar */
		{ "1000/day",
			"\"/day\" is a window of the calendar: write 1000/day calendar for a quota "
			"that begins anew with each day, or 1000/1d for one without a date" },
		{ "1000/month sliding-window",
			"\"/month\" is a window of the calendar: write 1000/month calendar for a "
			"quota that begins anew with each month, or 1000/30d for one without a "
			"date" },
		{ "1000/1d calendar",
			"calendar goes with /day or /month, such as 1000/day calendar; "
			"\"1000/1d\" is neither" },
		{ "0/day calendar",
			"a rate of 0 admits nothing; to refuse everyone, let the web server do "
			"it" },
		{ "x/month calendar",
			"the count \"x\" is no whole number from 1 to 999999999999999" },
		{ "1000/day calendar burst 5",
			"\"burst\" is of a token bucket, and this is none; leave it out" },
		{ "20/day calendar Europe/Berlin",
			"\"Europe/Berlin\": all calendars go by one time zone; write timezone = "
			"ZONE into [weir]" },
		{ "20/day calendar name x timezone UTC",
			"\"timezone\": all calendars go by one time zone; write timezone = ZONE "
			"into [weir]" },
		{ "20/day calendar UTC",
			"\"UTC\": all calendars go by one time zone; write timezone = ZONE into "
			"[weir]" },
		/* requests at a time */
		{ "2 concurrent", "this is written concurrent 2" },
		{ "2 concurrent lease 20m", "this is written concurrent 2" },
		{ "concurrent=2", "this is written concurrent 2" },
		{ "concurrent:2 name x", "this is written concurrent 2" },
		{ "concurrent=", "requests at a time are written concurrent N" },
		{ "10/1s concurrent", "requests at a time are written concurrent N" },
		{ "concurrent", "concurrent wants a number, such as concurrent 6" },
		{ "concurrent lease 10m", "concurrent wants a number, such as concurrent 6" },
		{ "concurrent 6/1s",
			"the number of requests at a time \"6/1s\" is no whole number from 1 to "
			"1000" },
		{ "concurrent 0",
			"the number of requests at a time \"0\" is no whole number from 1 to "
			"1000" },
		{ "concurrent 1001",
			"the number of requests at a time \"1001\" is no whole number from 1 to "
			"1000" },
		{ "concurrent 6 burst 7",
			"\"burst\" is of a token bucket, and this is none; leave it out" },
		{ "concurrent 6 token-bucket",
			"concurrent is an algorithm of its own; leave out \"token-bucket\"" },
		{ "concurrent 6 lease 999ms", "the lease \"999ms\" is not from 1s to 30d" },
		{ "concurrent 6 lease 31d", "the lease \"31d\" is not from 1s to 30d" },
		{ "concurrent 6 lease 0s", "\"0s\" is no time at all; write at least 1us" },
		/* shards */
		{ "100/1s shards 0", "the number of shards \"0\" is no whole number from 1 to 64" },
		{ "100/1s shards 65",
			"the number of shards \"65\" is no whole number from 1 to 64" },
		{ "3/1s burst 10 shards 4",
			"4 shards share a count of 3 and a burst of 10: each wants one at least" },
		{ "10/1s burst 3 shards 4",
			"4 shards share a count of 10 and a burst of 3: each wants one at least" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("limit", "policy", wrong[i].value, wrong[i].said);
	assert_refused(
		"limit", "local_cap", "10/1s shadow", "\"shadow\" is no word that can follow here");
	assert_refused("limit", "local_cap", "10r/s", "this rate is written 10/1s");
	assert_refused("limit", "local_cap", "10/day",
		"\"/day\" is a window of the calendar: write 10/day calendar for a quota that "
		"begins anew with each day, or 10/1d for one without a date");
	assert_refused("limit", "local_cap", "10/1s burst 0",
		"the burst \"0\" is no whole number from 1 to 1000000000000000");
}

/* ---- the whole ---- */

#define AROUND                                                                                     \
	"[redis]\n[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n[limit l]\n"

static void
policies_are_held_against_each_other(void **state)
{
	static const struct {
		const char *policies, *said;
	} rows[] = {
		/* only of one algorithm can it be told */
		{ "policy = 40/1h\npolicy = 40/1h sliding-log name log\n", "" },
		{ "policy = 10/1h sliding-log\npolicy = 20/1m sliding-log\n",
			"weir.ini:9: [limit l] policy: warning: can never reject, since \"1h\" at "
			"weir.ini:8 is stricter\n" },
		{ "policy = 10/1h sliding-window\npolicy = 20/1m sliding-window\n", "" },
		{ "policy = 10/1m sliding-window\npolicy = 20/60s sliding-window\n",
			"weir.ini:9: [limit l] policy: warning: can never reject, since \"1m\" at "
			"weir.ini:8 is stricter\n" },
		{ "policy = 500/day calendar\npolicy = 500/month calendar\n",
			"weir.ini:8: [limit l] policy: warning: can never reject, since \"month\" "
			"at weir.ini:9 is stricter\n" },
		{ "policy = 500/day calendar\npolicy = 501/month calendar\n", "" },
		{ "policy = concurrent 3\npolicy = concurrent 2 name two\n",
			"weir.ini:8: [limit l] policy: warning: can never reject, since \"two\" at "
			"weir.ini:9 is stricter\n" },
		/* what is only counted keeps nothing away from another */
		{ "policy = 10/1s\npolicy = 100/1m burst 5 shadow\n", "" },
		{ "policy = 10/1s shadow\npolicy = 100/1m burst 5\n",
			"weir.ini:8: [limit l] policy: warning: can never reject, since \"1m\" at "
			"weir.ini:9 is stricter in burst and in rate\n" },
		/* names */
		{ "policy = concurrent 3\npolicy = concurrent 2\n",
			"weir.ini:9: [limit l] policy: \"concurrent\" names a policy already at "
			"weir.ini:8; give one of them another name, such as: concurrent 2 name "
			"second\n" },
		{ "policy = 5/day calendar\npolicy = 4/1h name day\n",
			"weir.ini:9: [limit l] policy: \"day\" names a policy already at "
			"weir.ini:8; give one of them another name, such as: 4/1h name second\n" },
		/* shards */
		{ "policy = 1000000/1s burst 64 shards 64\n",
			"weir.ini:8: [limit l] policy: warning: burst 1 in each shard rejects a "
			"second request within 64 us; a page with its images and scripts asks for "
			"more at once\n" },
		/* only intervals are rounded */
		{ "policy = 999999/1s sliding-window\n", "" },
		{ "local_cap = 999999/1s\npolicy = 10/1s\n",
			"weir.ini:8: [limit l] local_cap: the time between two requests is kept in "
			"whole microseconds, so this rate would become 500000/1s; write that\n" },
	};
	char ini[512];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		(void)snprintf(ini, sizeof ini, "%s%s", AROUND, rows[i].policies);
		assert_said(ini, rows[i].said);
	}
}

static void
leases_outlive_what_they_are_for(void **state)
{
	(void)state;
	assert_said(AROUND "policy = concurrent 6\n", "");
	assert_said(AROUND "policy = concurrent 6 lease 9m\n",
		"weir.ini:8: [limit l] policy: warning: the lease of 9 min ends before a request "
		"that backend b may leave in silence for 10 min (idle_timeout), and its place is "
		"given away; write a longer lease\n");
	assert_said(AROUND "policy = concurrent 6 lease 9m\n[backend]\nidle_timeout = 1m\n", "");
	assert_said("[backend b]\ntype = none\n[route r]\nmatch = *\nlimit = l\n[limit l]\n"
		    "policy = concurrent 6\n",
		"weir.ini:7: [limit l] policy: warning: backend b of route r is of type none, so "
		"weir does not see how long a request runs, and concurrent counts nothing\n");
	/* a route whose backend is the listener's: each that it may be */
	assert_said("[backend b]\nserver = unix:/b\nlisten = unix:/lb\n"
		    "[backend c]\nserver = unix:/c\nlisten = unix:/lc\nidle_timeout = 1m\n"
		    "[route r]\nmatch = *\nlimit = l\n[limit l]\npolicy = concurrent 6 lease 9m\n",
		"weir.ini:12: [limit l] policy: warning: the lease of 9 min ends before a request "
		"that backend b may leave in silence for 10 min (idle_timeout), and its place is "
		"given away; write a longer lease\n");
}

static void
long_windows_of_any_algorithm_want_a_store_that_lasts(void **state)
{
	(void)state;
	assert_said("[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n[limit l]\n"
		    "policy = 5/day calendar\npolicy = 5/2h sliding-log\npolicy = concurrent 3\n",
		"weir.ini:7: [limit l] policy: warning: a count over a day is lost at a reboot; "
		"add "
		"[redis], or [memory] state = a file on a disk\n"
		"weir.ini:8: [limit l] policy: warning: a count over 2h is lost at a reboot; add "
		"[redis], or [memory] state = a file on a disk\n");
}

static void
the_memory_of_all_counters_is_added_up(void **state)
{
#define MEMORY_AROUND                                                                              \
	"[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = k, l\n[limit k]\n"           \
	"policy = 5/1m\n[limit l]\npolicy = 5/1m\n"
	static const struct {
		const char *ini, *said;
	} rows[] = {
		/* two defaults are nobody's mistake */
		{ MEMORY_AROUND, "" },
		{ MEMORY_AROUND "max_identities = 31072\n", "" },
		{ MEMORY_AROUND "max_identities = 31073\n",
			"weir.ini:10: [limit l] max_identities: warning: the identities of all "
			"limits together may take 17m and [memory] size is 16m: when it is full, "
			"the ones that owe least are forgotten; raise size or lower "
			"max_identities\n" },
		{ MEMORY_AROUND "max_identities = 31073\n[redis]\n", "" },
		{ MEMORY_AROUND "[memory]\nsize = 24m\n",
			"weir.ini:11: [memory] size: warning: the identities of all limits "
			"together may take 25m and [memory] size is 24m: when it is full, the ones "
			"that owe least are forgotten; raise size or lower max_identities\n" },
		{ MEMORY_AROUND "[memory]\nsize = 25m\n", "" },
		{ MEMORY_AROUND "[limit]\nmax_identities = 1000000000\n",
			"weir.ini:11: [limit] max_identities: warning: the identities of all "
			"limits together may take 244141m and [memory] size is 16m: when it is "
			"full, the ones that owe least are forgotten; raise size or lower "
			"max_identities\n" },
		/* more than two policies take more */
		{ MEMORY_AROUND "policy = 20/10m\npolicy = 60/1h\n[memory]\nsize = 25m\n",
			"weir.ini:13: [memory] size: warning: the identities of all limits "
			"together may take 37m and [memory] size is 25m: when it is full, the ones "
			"that owe least are forgotten; raise size or lower max_identities\n" },
		{ MEMORY_AROUND "policy = 84/1m sliding-log name log\n[redis]\n",
			"weir.ini:10: [limit l] policy: warning: a sliding-log of 84 takes up to "
			"1344 bytes for each identity, and 129m for 100000 of them; sliding-window "
			"takes 40, or lower max_identities\n" },
		{ MEMORY_AROUND "policy = 84/1m sliding-log name log\nmax_identities = 1000\n",
			"" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_said(rows[i].ini, rows[i].said);
}

/* ---- damage ---- */

static void
load_policy(void *context, struct slice mutant)
{
	char ini[512];
	const int len =
		snprintf(ini, sizeof ini, AROUND "policy = %.*s\n", (int)mutant.len, mutant.ptr);

	assert_in_range(len, 0, sizeof ini - 1);
	rewrite_file(*(const int *)context, slice_make(ini, (size_t)len));
	struct config *config = load_damaged("mutant.ini");

	for (unsigned i = 0; config != NULL && i < config->limits[0]->policy_count; i++) {
		const struct config_policy *policy = &config->limits[0]->policies[i];

		assert_true(policy->rate.count >= 1 && policy->burst >= 1);
		assert_true(policy->shards >= 1 && policy->shards <= POLICY_SHARDS_MAX &&
			policy->shards <= policy->burst && policy->shards <= policy->rate.count);
		assert_true(
			(policy->rate.window_us == 0) == (policy->algorithm == POLICY_CONCURRENT));
		assert_true((policy->lease_us > 0) == (policy->algorithm == POLICY_CONCURRENT));
		assert_true((policy->algorithm != POLICY_SLIDING_LOG &&
				    policy->algorithm != POLICY_CONCURRENT) ||
			policy->rate.count <= 1000);
	}
	config_free(config);
}

static void
no_damage_makes_a_policy_that_cannot_be_decided(void **state)
{
	static const char *const policies[] = { "100/1s burst 20 shards 4 name a shadow",
		"100/day calendar", "concurrent 6 lease 10m", "9/1m sliding-log" };

	int fd = open_damaged("mutant.ini");

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(policies); i++)
		each_damage(slice_of(policies[i]), load_policy, &fd);
	assert_int_equal(close(fd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(token_buckets_have_a_rate_a_burst_and_a_name),
		cmocka_unit_test(every_algorithm_has_its_numbers),
		cmocka_unit_test(policies_say_what_is_wrong),
		cmocka_unit_test(policies_are_held_against_each_other),
		cmocka_unit_test(leases_outlive_what_they_are_for),
		cmocka_unit_test(long_windows_of_any_algorithm_want_a_store_that_lasts),
		cmocka_unit_test(the_memory_of_all_counters_is_added_up),
		cmocka_unit_test(no_damage_makes_a_policy_that_cannot_be_decided),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
