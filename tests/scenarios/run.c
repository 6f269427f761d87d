/*
 * Plays each scenario of this directory against the memory store and against a real Redis. Without
 * redis-server against the memory store alone, and the program is then skipped.
 */
#include "scenario.h"

#include "../lib/redis_server.h"

#include <dirent.h>
#include <stdio.h>

enum { SCENARIOS_MAX = 200 };

static struct redis_server server;
static bool has_redis;

/* What a scenario must not be, and what is said of it. */
static const struct {
	const char *text, *wrong;
} bad[] = {
#define LIMITED "[limit page]\npolicy = 2/1m\n[route default]\nmatch = *\nlimit = page\n"
	{ "", "bad.txt:0: there is no request in it" },
	{ LIMITED "at 1s\n", "bad.txt:6: there is no request in it" },
	{ LIMITED "request GET / from 192.0.2.1\n",
		"bad.txt:6: nothing is expected of 1 of the requests of line 6" },
	{ LIMITED "request GET / from 192.0.2.1, 2 times\nexpect 200\nat 1s\n",
		"bad.txt:8: nothing is expected of 1 of the requests of line 6" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 2 times 200\n",
		"bad.txt:7: there are 1 requests left to expect something of" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 429\n",
		"bad.txt:7: the answer was 200, of page 1m remaining 1" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 200 would-reject\n",
		"bad.txt:7: the answer was 200, of page 1m remaining 1" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 200 remaining 2\n",
		"bad.txt:7: the answer was 200, of page 1m remaining 1" },
	{ LIMITED "request GET / from 192.0.2.1, 3 times\nexpect 2 times 200\nexpect 429 "
		  "retry-after 29\n",
		"bad.txt:8: the answer was 429, by page 1m remaining 0, retry-after 30" },
	{ LIMITED "request GET / from 192.0.2.1, 3 times\nexpect 2 times 200\nexpect 429 by page "
		  "1h\n",
		"bad.txt:8: the answer was 429, by page 1m remaining 0, retry-after 30" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 200\n\tX-RateLimit-Limit: 2\n",
		"bad.txt:8: the answer's fields are:\n" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 200 surely\n",
		"bad.txt:7: \"surely\" is nothing to expect" },
	{ LIMITED "request GET / from 192.0.2.1 at once\n",
		"bad.txt:6: \"at\" is no word of a request" },
	{ LIMITED "request GET /\n",
		"bad.txt:6: a request is \"request METHOD TARGET from ADDRESS\"" },
	{ LIMITED "request GET / from 192.0.2.1\n\tHost\n",
		"bad.txt:7: a header field is \"Name: value\"" },
	{ LIMITED "wait 1s\n", "bad.txt:6: there is no \"=\" in this line" },
	{ LIMITED "at 2s\nat 1s\n", "bad.txt:7: time goes back" },
	{ LIMITED "at noon\n", "bad.txt:6: " },
	{ LIMITED "start 2026-02-30\n",
		"bad.txt:6: a start is a date such as 2026-02-28T23:59:59Z, or \"now\"" },
	{ LIMITED "request GET / from 192.0.2.1 as one\nexpect 200\n",
		"bad.txt:7: no limit of the request is concurrent: it has no end" },
	{ LIMITED "end one\n", "bad.txt:6: requests can end only after \"start now\"" },
	{ LIMITED "redis away\n",
		"bad.txt:6: there is no Redis; \"redis only\" comes before all else" },
	{ LIMITED "request GET / from 192.0.2.1\nexpect 200\nredis only\n",
		"bad.txt:8: this comes before all else" },
	{ LIMITED "request GET / from 192.0.2.1, 3 times\nexpect 2 times 200\nexpect 429 "
		  "retry-after 31 to 32\n",
		"bad.txt:8: the answer was 429, by page 1m remaining 0, retry-after 30" },
	{ LIMITED "request GET / from 192.0.2.1 env ONE\nexpect 200\n",
		"bad.txt:6: a parameter is NAME=VALUE" },
	{ LIMITED "app it\n", "bad.txt:6: an application stands alone, and there is one" },
	{ "request GET / from 192.0.2.1\n", "bad.txt:1: there is no configuration yet" },
	{ "\n\n[limit page]\npolicy = many\n[route default]\nmatch = *\nlimit = page\nat 1s\n",
		"bad.txt:4: [limit page] policy: " },
};

static struct err
played(struct redis_server *redis, const char *file, struct slice text)
{
	struct directory directory;
	struct world world;
	struct err err = { "" };

	directory_make(&directory);
	world_open(&world, directory.path, redis);
	if (scenario_play(&world, file, text, &err) != 0)
		assert_true(err.text[0] != '\0');
	world_close(&world);
	directory_remove(&directory);
	return err;
}

static void
what_is_wrong_is_said_with_its_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < LENGTH_OF(bad); i++) {
		const struct err err = played(NULL, "bad.txt", slice_of(bad[i].text));

		assert_row(strncmp(err.text, bad[i].wrong, strlen(bad[i].wrong)) == 0,
			"of\n%s\nwas said\n%s\nand not\n%s", bad[i].text, err.text, bad[i].wrong);
	}
}

/* ---- the files ---- */

struct scenario {
	char name[64], path[512];
	bool on_redis;
};

static struct scenario scenarios[SCENARIOS_MAX];

static void
the_scenario_is_as_told(void **state)
{
	const struct scenario *scenario = *state;
	char text[65536];
	FILE *file = fopen(scenario->path, "r");

	assert_non_null(file);
	const size_t len = fread(text, 1, sizeof text, file);

	assert_int_equal(fclose(file), 0);
	assert_in_range(len, 1, sizeof text - 1);
	const struct err err =
		played(scenario->on_redis ? &server : NULL, scenario->path, slice_make(text, len));

	assert_row(err.text[0] == '\0', "%s", err.text);
}

static int
is_scenario(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot != NULL && strcmp(dot, ".txt") == 0;
}

/* Returns how many there are, each once for each store. */
static unsigned
find_scenarios(const char *directory)
{
	struct dirent **entries;
	const int found = scandir(directory, &entries, is_scenario, alphasort);
	unsigned count = 0;

	for (int i = 0; i < found; i++) {
		for (int on_redis = 0; on_redis <= has_redis; on_redis++) {
			struct scenario *scenario = &scenarios[count++];

			if (count == SCENARIOS_MAX)
				abort();
			(void)snprintf(scenario->name, sizeof scenario->name, "%.50s %s",
				entries[i]->d_name, on_redis ? "redis" : "memory");
			(void)snprintf(scenario->path, sizeof scenario->path, "%s/%s", directory,
				entries[i]->d_name);
			scenario->on_redis = on_redis;
		}
		free(entries[i]);
	}
	if (found >= 0)
		free(entries);
	return count;
}

static int
setup(void **state)
{
	(void)state;
	if (has_redis)
		redis_server_open(&server, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (has_redis)
		redis_server_close(&server);
	return 0;
}

int
main(int argc, char **argv)
{
	static struct CMUnitTest tests[SCENARIOS_MAX + 1] = { cmocka_unit_test(
		what_is_wrong_is_said_with_its_line) };
	const char *top = getenv("TOP_SRCDIR");
	char directory[256];
	struct err err;

	(void)snprintf(directory, sizeof directory, "%s/tests/scenarios", top == NULL ? "." : top);
	log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	has_redis = redis_server_is_installed();
	const unsigned count = find_scenarios(argc > 1 ? argv[1] : directory);

	if (count == 0 || counter_thread_start(&err) != 0 || hash_start(&err) != 0 ||
		front_start(&err) != 0) {
		(void)fprintf(stderr, "no scenarios in %s\n", directory);
		return 1;
	}
	for (unsigned i = 0; i < count; i++)
		tests[i + 1] = (struct CMUnitTest){ .name = scenarios[i].name,
			.test_func = the_scenario_is_as_told,
			.initial_state = &scenarios[i] };
	const int failed = _cmocka_run_group_tests("scenarios", tests, count + 1, setup, teardown);

	return failed == 0 && !has_redis ? REDIS_SERVER_SKIPPED : failed;
}
