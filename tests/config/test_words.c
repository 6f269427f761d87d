/* Limits in words, as weir check prints them. */
#include "load.h"

static void
assert_words(const char *limit, const char *expected)
{
	char ini[1024], *words = NULL;
	size_t len;
	FILE *out = open_memstream(&words, &len);

	assert_non_null(out);
	(void)snprintf(ini, sizeof ini,
		"[limit l]\n%s\n[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n"
		"[redis]\n",
		limit);
	struct config *config = loaded(ini);

	config_limit_words(config->limits[0], out);
	assert_int_equal(fclose(out), 0);
	assert_row(strcmp(words, expected) == 0, "%s\nis said as:\n%s\nand not:\n%s", limit, words,
		expected);
	free(words);
	config_free(config);
}

static void
a_rate_is_a_burst_and_what_follows(void **state)
{
	static const struct {
		const char *policy, *words;
	} rows[] = {
		{ "10/1s burst 60", "60 at once, then 10 a second; at most 864060 a day" },
		{ "10/s", "10 at once, then 10 a second; at most 864010 a day" },
		{ "5/1m", "5 at once, then one every 12 s" },
		{ "20/1h", "20 at once, then one every 3 min" },
		{ "50/1d", "50 at once, then one every 28 min 48 s; at most 100 in the first day" },
		{ "1/1s", "1 at once, then one a second" },
		{ "60/1m burst 3", "3 at once, then one a second" },
		{ "1/1m", "1 at once, then one a minute" },
		{ "1/1h burst 2", "2 at once, then one an hour" },
		{ "1/10s", "1 at once, then one every 10 s" },
		{ "100/1m", "100 at once, then 100 a minute; at most 144100 a day" },
		{ "100/10s", "100 at once, then 100 every 10 s; at most 864100 a day" },
		{ "5000/1h", "5000 at once, then 5000 an hour; at most 125000 a day" },
		{ "1000/7d",
			"1000 at once, then one every 10 min 4 s; at most 2000 in the first "
			"7 d" },
		{ "1/1d", "1 at once, then one a day; at most 2 in the first day" },
		{ "1000000/1d",
			"1000000 at once, then 1000000 a day; at most 2000000 in the first day" },
		/* 84 us instead of 83 1/3 */
		{ "12000/1s burst 10",
			"10 at once, then 12000 a second (in effect 11904.76 a second); at most "
			"1028571438 a day" },
		{ "7/1s", "7 at once, then 7 a second; at most 604803 a day" },
	};
	char limit[200], expected[400];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		(void)snprintf(limit, sizeof limit, "policy = %s", rows[i].policy);
		(void)snprintf(expected, sizeof expected,
			"limit l: per client address (IPv6 by /64): %s\n", rows[i].words);
		assert_words(limit, expected);
	}
}

static void
who_is_counted_stands_in_front(void **state)
{
	static const struct {
		const char *identity, *who;
	} rows[] = {
		{ "ip", "per client address (IPv6 by /64)" },
		{ "ip/32/128", "per client address" },
		{ "ip/24/128", "per client network (IPv4 by /24)" },
		{ "ip/24/48", "per client network (IPv4 by /24, IPv6 by /48)" },
		{ "all", "all clients together" },
		{ "user, ip", "per user, else client address (IPv6 by /64)" },
		{ "header X-API-Key, all", "per value of X-API-Key, else all others together" },
		{ "user\non_missing = skip", "per user, without it not limited" },
		{ "user, header Y\non_missing = reject",
			"per user, else value of Y, without any of them rejected" },
		{ "user\non_missing = share", "per user, all without it together" },
	};
	char limit[200], expected[400];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		(void)snprintf(
			limit, sizeof limit, "policy = 5/1m\nidentity = %s", rows[i].identity);
		(void)snprintf(expected, sizeof expected,
			"limit l: %s: 5 at once, then one every 12 s\n", rows[i].who);
		assert_words(limit, expected);
	}
}

static void
several_policies_have_a_line_each(void **state)
{
	(void)state;
	assert_words("policy = 5/1m\npolicy = 50/1d name daily\nenforce = no",
		"limit l (not enforced): per client address (IPv6 by /64), each of:\n"
		"    1m: 5 at once, then one every 12 s\n"
		"    daily: 50 at once, then one every 28 min 48 s; at most 100 in the first "
		"day\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_a_burst_and_what_follows),
		cmocka_unit_test(who_is_counted_stands_in_front),
		cmocka_unit_test(several_policies_have_a_line_each),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
