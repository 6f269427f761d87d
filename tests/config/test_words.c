/* Limits and routes in words, as weir check prints them. */
#include "load.h"

static void
assert_words(const char *limit, const char *expected)
{
	char ini[2048], *words = NULL;
	size_t len;
	FILE *out = open_memstream(&words, &len);

	assert_non_null(out);
	(void)snprintf(ini, sizeof ini,
		"[limit l]\n%s\n[backend b]\nserver = unix:/b\n[route r]\nmatch = *\nlimit = l\n"
		"[redis]\n",
		limit);
	struct config *config = loaded(ini);

	config_limit_words(config, config->limits[0], out);
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
		{ "10/1s burst 60",
			"60 at once, then 10 a second; at most 70 in the first second, 864060 a "
			"day" },
		{ "10/s",
			"10 at once, then 10 a second; at most 20 in the first second, 864010 a "
			"day" },
		{ "5/1m",
			"5 at once, then one every 12 s; at most 10 in the first minute, 7205 a "
			"day" },
		{ "20/1h",
			"20 at once, then one every 3 min; at most 40 in the first hour, 500 a "
			"day" },
		{ "50/1d", "50 at once, then one every 28 min 48 s; at most 100 in the first day" },
		{ "1/1s",
			"1 at once, then one a second; at most 2 in the first second, 86401 a "
			"day" },
		{ "60/1m burst 3",
			"3 at once, then one a second; at most 63 in the first minute, 86403 a "
			"day" },
		{ "1/1m",
			"1 at once, then one a minute; at most 2 in the first minute, 1441 a day" },
		{ "1/1h burst 2",
			"2 at once, then one an hour; at most 3 in the first hour, 26 a day" },
		{ "1/10s",
			"1 at once, then one every 10 s; at most 2 in the first 10 s, 8641 a day" },
		{ "100/1m",
			"100 at once, then 100 a minute; at most 200 in the first minute, 144100 a "
			"day" },
		{ "100/10s",
			"100 at once, then 100 every 10 s; at most 200 in the first 10 s, 864100 a "
			"day" },
		{ "5000/1h",
			"5000 at once, then 5000 an hour; at most 10000 in the first hour, 125000 "
			"a day" },
		{ "1000/7d",
			"1000 at once, then one every 10 min 4 s; at most 2000 in the first "
			"7 d" },
		{ "1/1d", "1 at once, then one a day; at most 2 in the first day" },
		{ "1000000/1d",
			"1000000 at once, then 1000000 a day; at most 2000000 in the first day" },
		/* 84 us instead of 83 1/3 */
		{ "12000/1s burst 10",
			"10 at once, then 12000 a second (in effect 11904.76 a second); at most "
			"11914 in the first second, 1028571438 a day" },
		{ "7/1s",
			"7 at once, then 7 a second; at most 13 in the first second, 604803 a "
			"day" },
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
		{ "backend+ip/24/48", "per backend and client network (IPv4 by /24, IPv6 by /48)" },
		{ "cookie sid+path, route", "per value of cookie sid and path, else route" },
		{ "param k+env GEO\non_missing = skip",
			"per value of parameter k and value of variable GEO, without it not "
			"limited" },
		{ "user known+host, ip/32/128", "per known user and host, else client address" },
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
			"limit l: %s: 5 at once, then one every 12 s; at most 10 in the first "
			"minute, 7205 a day\n",
			rows[i].who);
		assert_words(limit, expected);
	}
}

static void
every_algorithm_has_its_words(void **state)
{
	static const struct {
		const char *policy, *words;
	} rows[] = {
		{ "100/60s sliding-window", "about 100 in any 60 s" },
		{ "100/1m sliding-log", "100 in any 60 s" },
		{ "5/s sliding-log", "5 in any second" },
		{ "5/1h sliding-log", "5 in any 60 min" },
		{ "5/1d sliding-window", "about 5 in any 24 h" },
		{ "5/90s sliding-log", "5 in any 1 min 30 s" },
		{ "1000/day calendar", "1000 each calendar day (UTC)" },
		{ "1000/month calendar\n[weir]\ntimezone = Europe/Berlin",
			"1000 each calendar month (Europe/Berlin)" },
		{ "concurrent 6", "6 at a time" },
		{ "100/1s burst 64 shards 4",
			"64 at once, then 100 a second; at most 164 in the first second, 8640064 a "
			"day; in 4 shards of 16 "
			"at once" },
		/* what the shards hold, and not what is written */
		{ "7/1m burst 13 shards 4",
			"12 at once, then one every 8.571 s; at most 16 in the first minute, "
			"10088 a day; in 4 shards of 3 at once" },
		{ "3/1s burst 4 shards 3",
			"3 at once, then 3 a second; at most 6 in the first second, 259203 a day; "
			"in 3 shards of 1 at once" },
		{ "5/1m shadow",
			"5 at once, then one every 12 s; at most 10 in the first minute, 7205 a "
			"day (only counted)" },
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
overrides_stand_below_their_limit(void **state)
{
	FILE *file = fopen("gold", "w");

	(void)state;
	assert_non_null(file);
	for (unsigned i = 0; i < 499; i++)
		(void)fprintf(file, "key%u\n", i);
	assert_int_equal(fclose(file), 0);
	char limit[PATH_MAX + 1024];

	(void)snprintf(limit, sizeof limit,
		"identity = header X-API-Key known, ip\npolicy = 5/1m\nlocal_cap = 200/s burst "
		"400\n"
		"[override gold]\nlimit = l\nfor = header X-API-Key @%s/gold\nfor = user alice\n"
		"for = header x-api-key zz\npolicy = 100/1s burst 200 name 1m\n"
		"[override none]\nlimit = l\nfor = header X-API-Key a\n"
		"[override office]\nlimit = l\nfor = ip 192.0.2.0/24\nfor = user bob, carol\n"
		"exempt = yes\n"
		"[override bots]\nlimit = l\nfor = ip 192.0.3.1, 192.0.3.2\nblock = yes\n",
		load_directory);
	assert_words(limit,
		"limit l: per known value of X-API-Key, else client address (IPv6 by /64): 5 at "
		"once, then one every 12 s; at most 10 in the first minute, 7205 a day\n"
		"    in each process, before the store is asked: 400 at once, then 200 a second; "
		"at most 600 in the first second, 17280400 a day\n"
		"    override gold: header X-API-Key (500 values), user alice: 200 at once, then "
		"100 "
		"a second; at most 300 in the first second, 8640200 a day\n"
		"    override none: header X-API-Key (1 value): as the limit says\n"
		"    override office: ip 192.0.2.0/24, user (2 values): not counted\n"
		"    override bots: ip (2 networks): answered 403\n");
}

static void
an_override_of_some_policies_says_which(void **state)
{
	(void)state;
	assert_words("policy = 5/1m\npolicy = 20/1h\npolicy = concurrent 3\n"
		     "[override a]\nlimit = l\nfor = ip 192.0.2.1\npolicy = concurrent 6\n"
		     "[override b]\nlimit = l\nfor = ip 192.0.2.2\npolicy = 9/1m\npolicy = 90/1h\n",
		"limit l: per client address (IPv6 by /64), each of:\n"
		"    1m: 5 at once, then one every 12 s; at most 10 in the first minute, 7205 a "
		"day\n"
		"    1h: 20 at once, then one every 3 min; at most 40 in the first hour, 500 a "
		"day\n"
		"    concurrent: 3 at a time\n"
		"    override a: ip 192.0.2.1, instead of concurrent: 6 at a time\n"
		"    override b: ip 192.0.2.2, instead of:\n"
		"        1m: 9 at once, then one every 6.667 s; at most 17 in the first minute, "
		"12968 a day\n"
		"        1h: 90 at once, then one every 40 s; at most 180 in the first hour, 2250 "
		"a day\n");
}

static void
several_policies_have_a_line_each(void **state)
{
	(void)state;
	assert_words("policy = 5/1m\npolicy = 50/1d name daily\nenforce = no",
		"limit l (not enforced): per client address (IPv6 by /64), each of:\n"
		"    1m: 5 at once, then one every 12 s; at most 10 in the first minute, 7205 a "
		"day\n"
		"    daily: 50 at once, then one every 28 min 48 s; at most 100 in the first "
		"day\n");
}

/* ---- routes ---- */

static void
assert_route(const char *ini, const char *expected)
{
	char *words = NULL;
	size_t len;
	FILE *out = open_memstream(&words, &len);
	struct config *config = loaded(ini);

	assert_non_null(out);
	for (unsigned i = 0; i < config->route_count; i++)
		config_route_words(config, config->routes[i], out);
	assert_int_equal(fclose(out), 0);
	assert_row(strcmp(words, expected) == 0, "%s\nis said as:\n%s\nand not:\n%s", ini, words,
		expected);
	free(words);
	config_free(config);
}

#define APP "[backend php]\nserver = unix:/b\n[limit a]\npolicy = 9/1m\n[limit b]\npolicy = 5/1m\n"

static void
a_route_says_what_it_takes_and_where_it_goes(void **state)
{
	(void)state;
	assert_route(APP "[route default]\nmatch = *\nlimit = a\n[redis]\n",
		"route default: * -> limit a, backend php; Redis away: this host alone\n");
	assert_route(APP "[limit c]\nidentity = user, ip\npolicy = 9/1s shards 3\n"
			 "[route both]\nmatch = /x\nlimit = a, b\n"
			 "[route all]\nmatch = *\nlimit = a, b, c\n[redis]\ncluster = tcp:h:1\n",
		"route both: /x -> limits a, b, backend php; Redis away: this host alone\n"
		"route all: * -> limits a, b, c, backend php; decided slot by slot, since a and c "
		"have shards; Redis away: this host alone\n");
	assert_route(APP "[limit c]\nidentity = user, ip\npolicy = 9/1s\n"
			 "[route all]\nmatch = *\nlimit = a, c\n[redis]\ncluster = tcp:h:1\n",
		"route all: * -> limits a, c, backend php; decided slot by slot, since a and c "
		"count by different identities; Redis away: this host alone\n");
	assert_route(APP "[route login]\nscript = POST|PUT */login.php nocase\nmatch = = /login\n"
			 "match = ~ ^/in$\nlimit = a, b\ncost = 3\nstore_down = reject\n"
			 "[route api]\nmatch = /v1\nwhen = header X-API-Key\n"
			 "when = not ip 192.0.2.0/28, 2001:db8::/32\nwhen = cookie a ~ ^b\n"
			 "host = example.org, *.example.net\ncost = param n max 7\nlimit = a\n"
			 "exempt_ip = 192.0.2.1\nstore_down = admit\n"
			 "[route default]\nmatch = *\n[redis]\n",
		"route login: = /login, ~ ^/in$, script POST|PUT */login.php nocase -> limits a, "
		"b, "
		"backend php; costs 3; Redis away: answered 503\n"
		"route api: /v1 of host example.org, *.example.net when header X-API-Key and not "
		"ip 192.0.2.0/28, 2001:db8::/32 and cookie a ~ ^b -> limit a, backend php; costs "
		"what param n says, 7 at the most; 1 network not counted; Redis away: passes\n"
		"route default: * -> no limit, backend php\n");
}

static void
a_cost_without_maximum_says_so(void **state)
{
	(void)state;
	assert_route("[backend php]\nserver = unix:/b\n[limit a]\npolicy = 9/1m\n"
		     "[route r]\nmatch = *\nlimit = a\ncost = param n\n",
		"route r: * -> limit a, backend php; costs what param n says, and never passes if "
		"that is no number\n");
	assert_route("[backend php]\nserver = unix:/b\n[limit a]\npolicy = 9/1m\n"
		     "[route r]\nmatch = *\nlimit = a\ncost = param WIDTH nocase max 7\n",
		"route r: * -> limit a, backend php; costs what param WIDTH nocase says, 7 at the "
		"most\n");
}

/* A thousand patterns are no line to be read. */
static void
many_patterns_are_counted(void **state)
{
	(void)state;
	assert_route(APP "[route r]\nmatch = /a\nmatch = /b\nmatch = /c\nmatch = /d\n"
			 "match = /e\nmatch = /f\nmatch = /g\nmatch = /h\n"
			 "[route default]\nmatch = *\nlimit = b\n",
		"route r: /a, /b, /c, /d, /e, /f and 2 more -> no limit, backend php\n"
		"route default: * -> limit b, backend php\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_a_burst_and_what_follows),
		cmocka_unit_test(who_is_counted_stands_in_front),
		cmocka_unit_test(every_algorithm_has_its_words),
		cmocka_unit_test(overrides_stand_below_their_limit),
		cmocka_unit_test(an_override_of_some_policies_says_which),
		cmocka_unit_test(several_policies_have_a_line_each),
		cmocka_unit_test(a_route_says_what_it_takes_and_where_it_goes),
		cmocka_unit_test(a_cost_without_maximum_says_so),
		cmocka_unit_test(many_patterns_are_counted),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
