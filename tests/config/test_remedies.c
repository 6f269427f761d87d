/*
 * What the sentences about a configuration are worth: what they tell to write is good, they name
 * the line, and nothing is said that is only the consequence of another fault.
 */
#include "compose.h"

#define BACKEND "[backend b]\nserver = unix:/run/b\n"
#define ROUTE "[route r]\nmatch = *\n"

struct row {
	const char *ini, *said;
};

static void
assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_said(rows[i].ini, rows[i].said);
}

/* ---- remedies that are followed ---- */

/* What stands behind `mark` in the sentence, to the end of the line or of the example. */
static char *
proposal_of(const char *said, const char *mark)
{
	const char *at = strstr(said, mark);

	assert_row(at != NULL, "%s\nhas no \"%s\"", said, mark);
	return strdup(at + strlen(mark));
}

static void
a_route_that_is_proposed_is_good(void **state)
{
	static const char *const inis[] = {
		BACKEND "[limit l]\npolicy = 5/1m\n[route default]\nmatch = /a\nlimit = l\n",
		BACKEND "[limit l]\npolicy = 5/1m\n[route default]\nmatch = GET *\nlimit = l\n"
			"[route rest2]\nmatch = /b\n",
		BACKEND "[route r]\nmatch = *\nwhen = user\n",
		BACKEND "[backend c]\nserver = unix:/run/c\n[route r]\nmatch = /x\nbackend = c\n",
		"[backend b]\ntype = none\n",
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(inis); i++) {
		char ini[1000], *said = said_of(inis[i], NULL);
		char *lines = proposal_of(said, "add");
		char *section = strstr(lines, "[route ");

		assert_non_null(section);
		/* The example ends where its indentation does. */
		char *end = section;

		while ((end = strchr(end, '\n')) != NULL && strncmp(end, "\n    ", 5) == 0)
			end++;
		if (end != NULL)
			*end = '\0';
		(void)snprintf(ini, sizeof ini, "%s%s\n", inis[i], section);
		config_free(loaded(ini));
		free(lines);
		free(said);
	}
}

/* Of "KEY = WRONG" the sentence ends in "written RIGHT", and RIGHT is taken. */
static void
what_is_written_so_is_good(void **state)
{
	static const struct {
		const char *section, *key, *wrong;
	} rows[] = {
		{ "weir", "listen", "/run/weir/x.sock" },
		{ "weir", "listen", "9000" },
		{ "weir", "metrics", "127.0.0.1:9180" },
		{ "weir", "metrics", "[::1]:9180" },
		{ "backend", "server", "php.example.org:9000" },
		{ "redis", "server", "6379" },
		{ "limit", "policy", "3r/m" },
		{ "limit", "policy", "10 requests per second" },
		{ "limit", "local_cap", "100 / 1s" },
		{ "route", "match", "~* ^/api" },
	};
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		compose(ini, sizeof ini, rows[i].section, rows[i].key, rows[i].wrong);
		char *said = said_of(ini, NULL), *right = proposal_of(said, " written ");

		right[strcspn(right, "\n")] = '\0';
		compose(ini, sizeof ini, rows[i].section, rows[i].key, right);
		config_free(loaded(ini));
		free(right);
		free(said);
	}
}

static void
keys_of_other_programs_are_known(void **state)
{
	static const struct row rows[] = {
		{ BACKEND ROUTE "[limit a]\nrate = 3r/m\n",
			"weir.ini:6: [limit a] rate: [limit] has no such key; write policy = "
			"3/1m\n" },
		{ BACKEND ROUTE "[limit a]\nrate = fast\n",
			"weir.ini:6: [limit a] rate: [limit] has no such key; write policy = "
			"10/1s\n" },
		{ "[backend b]\nfastcgi_pass = unix:/run/b\n" ROUTE,
			"weir.ini:2: [backend b] fastcgi_pass: [backend] has no such key; write "
			"server = unix:/PATH\n" },
		{ BACKEND "[route r]\nlocation = /\n",
			"weir.ini:4: [route r] location: [route] has no such key; write match = "
			"/path\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
what_is_refused_is_not_offered(void **state)
{
	(void)state;
	assert_refused("backend", "server", "nowhere",
		"\"nowhere\" is no address; write unix:/path or tcp:host:port");
	assert_refused("backend", "server", "unix:php.sock",
		"\"unix:php.sock\" is no absolute path; write unix:/directory/php.sock");
}

static void
a_key_that_is_too_short_is_told_with_its_line(void **state)
{
	char ini[2 * PATH_MAX], said[3 * PATH_MAX];

	(void)state;
	write_file("short", SLICE("fifteen bytes.\n"));
	assert_int_equal(chmod("short", 0600), 0);
	compose(ini, sizeof ini, "weir", "hash_key_file", "DIR/short");
	(void)snprintf(said, sizeof said,
		"weir.ini:2: [weir] hash_key_file: %s/short has 15 bytes; a secret has at least "
		"16: "
		"head -c 32 /dev/urandom | base64 > %s/short\n",
		load_directory, load_directory);
	assert_said(ini, said);
}

/* ---- consequences ---- */

static void
an_error_is_not_told_as_something_else_too(void **state)
{
	static const struct row rows[] = {
		/* a misspelt section, and who would have used it */
		{ BACKEND "[limits everyone]\npolicy = 9/1s\n[limit api]\npolicy = 5/1m\n"
			  "identity = header X, ip\n[route r]\nmatch = *\nlimit = api\n",
			"weir.ini:3: [limits everyone]: there is no section of this kind; did you "
			"mean \"limit\"?\n" },
		{ BACKEND "[limit l]\npolicy = 50/1d\n[route r]\nmatch = *\nlimit = l\n"
			  "store_down = admit\n[rediss]\n",
			"weir.ini:9: [rediss]: there is no section of this kind; did you mean "
			"\"redis\"?\n" },
		/* a route that is defined twice */
		{ BACKEND
			"[limit api]\npolicy = 5/1m\n[route r]\nmatch = /a\n[route r]\nmatch = /b\n"
			"limit = api\n[route d]\nmatch = *\n",
			"weir.ini:7: [route r]: is defined twice; the first is at weir.ini:5\n" },
		/* a name that is none */
		{ BACKEND "[limit api]\npolicy = 5/1m\n[route r]\nmatch = *\nlimit = apo\n",
			"weir.ini:7: [route r] limit: there is no [limit apo]; did you mean "
			"\"api\"?\n" },
		/* a condition that is lost with its error */
		{ BACKEND "[route a]\nmatch = *\nwhen = hedaer X\n[route b]\nmatch = /b\n" ROUTE,
			"weir.ini:5: [route a] when: \"hedaer\" is none of ip, user, header, "
			"cookie, "
			"param, env; did you mean \"header\"?\n" },
		/* without an error the same things are told */
		{ BACKEND "[limit api]\npolicy = 50/1d\n[route r]\nmatch = *\nstore_down = admit\n",
			"weir.ini:3: [limit api]: warning: no route uses this limit\n"
			"weir.ini:4: [limit api] policy: warning: a count over 1d is lost at a "
			"reboot; add [redis], or [memory] state = a file on a disk\n"
			"weir.ini:7: [route r] store_down: warning: has no effect without "
			"[redis]\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

/* ---- what is not what it looks like ---- */

static void
names_that_no_header_has_are_told(void **state)
{
	(void)state;
	assert_said(BACKEND
		"[route x]\nmatch = /a\nwhen = header HTTP_X_API_KEY\nwhen = header X_API_Key a\n"
		"when = header X-API-Key\nwhen = env HTTP_X_API_KEY\ncost = header n_n\n" ROUTE,
		"weir.ini:5: [route x] when: warning: HTTP_X_API_KEY is the variable of a header, "
		"and no client sends a header of that name; write header X-API-KEY\n"
		"weir.ini:6: [route x] when: warning: header X_API_Key: web servers drop a header "
		"whose name has an underscore, or take it for the one with -; write header "
		"X-API-Key\n"
		"weir.ini:9: [route x] cost: warning: header n_n: web servers drop a header whose "
		"name has an underscore, or take it for the one with -; write header n-n\n");
}

static void
a_path_with_a_slash_leaves_out_the_path(void **state)
{
	static const struct row rows[] = {
		{ BACKEND "[route a]\nmatch = /api/\nscript = GET */x.php/ nocase\n" ROUTE,
			"weir.ini:4: [route a] match: warning: does not fit /api itself; write "
			"/api, "
			"which fits all below it too\n"
			"weir.ini:5: [route a] script: warning: does not fit */x.php itself; write "
			"*/x.php, which fits all below it too\n" },
		{ BACKEND "[route a]\nmatch = /api/*\n" ROUTE,
			"weir.ini:4: [route a] match: warning: does not fit /api itself; write "
			"/api, "
			"which fits all below it too\n" },
		{ BACKEND
			"[route a]\nmatch = /api/\nmatch = = /api\nmatch = = /b/\nmatch = /c/*.x\n"
			"match = /d\nmatch = /e/\nmatch = /e*\n" ROUTE,
			"" },
		{ BACKEND "[route a]\nmatch = /\nscript = /*\n" ROUTE, "" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
a_long_time_is_told(void **state)
{
	(void)state;
	assert_said(BACKEND ROUTE
		"[weir]\ndrain = 10m\nhead_timeout = 2m\n[redis]\ndeadline = 60s\n"
		"[backend]\nconnect_timeout = 2m\n",
		"weir.ini:6: [weir] drain: warning: \"10m\" is long: systemd ends a service 90 s "
		"after it was told to stop; set TimeoutStopSec of weir.service to more than this\n"
		"weir.ini:7: [weir] head_timeout: warning: \"2m\" is long: a web server sends the "
		"parameters at once, and one that does not keeps a connection so long\n"
		"weir.ini:9: [redis] deadline: warning: \"60s\" is long: while Redis does not "
		"answer, requests wait so long before store_down decides; Redis takes about 1 ms, "
		"and 150ms is usual\n"
		"weir.ini:11: [backend] connect_timeout: warning: \"2m\" is long: while a server "
		"does not take connections, requests wait so long before the next is tried\n");
	assert_said(BACKEND ROUTE
		"[weir]\ndrain = 85s\nhead_timeout = 1m\n[redis]\ndeadline = 1s\n",
		"");
}

/* ---- addresses ---- */

#define GOES_ROUND "server: is where weir itself listens, so requests would go round\n"

static void
an_address_is_known_however_it_is_written(void **state)
{
	static const struct row rows[] = {
		{ "[weir]\nlisten = unix:/run/w/x.sock\n[backend b]\nserver = unix:/a\n"
		  "server = unix:/run//w/./x.sock\n" ROUTE,
			"weir.ini:5: [backend b] " GOES_ROUND },
		{ "[weir]\nlisten = tcp:127.0.0.1:9\n[backend b]\nserver = tcp:localhost:9\n" ROUTE,
			"weir.ini:2: [weir] listen: warning: who reaches this port runs code as "
			"the "
			"application's user (SCRIPT_FILENAME, PHP_ADMIN_VALUE), and every user of "
			"this host does; prefer unix:" WEIR_RUNDIR "/weir.sock\n"
			"weir.ini:4: [backend b] " GOES_ROUND },
		{ "[backend b]\nserver = tcp:[::1]:9\nserver = tcp:A.example:9\n"
		  "server = tcp:[0:0::1]:9\nserver = tcp:[::1]:8\nserver = tcp:a.EXAMPLE:9\n" ROUTE,
			"weir.ini:4: [backend b] server: warning: is given twice, so it is set "
			"aside as two and gets two parts of the requests; leave one out\n"
			"weir.ini:6: [backend b] server: warning: is given twice, so it is set "
			"aside as two and gets two parts of the requests; leave one out\n" },
		{ "[backend]\nserver = unix:/a\nserver = unix:/a\n[backend b]\n" ROUTE,
			"weir.ini:3: [backend] server: warning: is given twice, so it is set aside "
			"as two and gets two parts of the requests; leave one out\n" },
		{ BACKEND ROUTE "[weir]\nmetrics = unix:/run/m\nlisten = unix:/run/l\n[redis]\n"
				"server = unix:/run/./m\n",
			"weir.ini:9: [redis] server: is where weir itself listens\n" },
		{ BACKEND ROUTE "[redis]\nserver = unix:/run/b\n",
			"weir.ini:2: [backend b] server: is where Redis is, which speaks no "
			"FastCGI\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
a_socket_for_everybody_is_told(void **state)
{
	(void)state;
	assert_said(BACKEND ROUTE
		"[weir]\nlisten = unix:/run/a mode 0666\nlisten = unix:/run/b2 mode 0660\n",
		"weir.ini:6: [weir] listen: warning: mode 0666: who reaches this socket runs code "
		"as the application's user (SCRIPT_FILENAME, PHP_ADMIN_VALUE), and every user of "
		"this host does; write mode 0660 and the web server's group\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_that_is_proposed_is_good),
		cmocka_unit_test(what_is_written_so_is_good),
		cmocka_unit_test(keys_of_other_programs_are_known),
		cmocka_unit_test(what_is_refused_is_not_offered),
		cmocka_unit_test(a_key_that_is_too_short_is_told_with_its_line),
		cmocka_unit_test(an_error_is_not_told_as_something_else_too),
		cmocka_unit_test(names_that_no_header_has_are_told),
		cmocka_unit_test(a_path_with_a_slash_leaves_out_the_path),
		cmocka_unit_test(a_long_time_is_told),
		cmocka_unit_test(an_address_is_known_however_it_is_written),
		cmocka_unit_test(a_socket_for_everybody_is_told),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
