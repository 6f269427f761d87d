/* The checks of the whole: each row is a configuration and exactly what is said of it. */
#include "load.h"

#include <grp.h>

struct row {
	const char *ini, *said;
};

static void
assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_said(rows[i].ini, rows[i].said);
}

#define BACKEND "[backend b]\nserver = unix:/run/b\n"
#define ROUTE "[route r]\nmatch = *\n"

static void
limits_are_judged_by_themselves(void **state)
{
	static const struct row rows[] = {
		/* used, and complete */
		{ BACKEND ROUTE "[limit a]\npolicy = 1/1s\n",
			"weir.ini:5: [limit a]: warning: no route uses this limit\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\n",
			"weir.ini:6: [limit a] policy: is missing: how much is admitted? Write "
			"policy "
			"= 10/1s burst 60\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 1/1s\nidentity = user, header X\n",
			"weir.ini:6: [limit a] on_missing: is missing: what of a request that has "
			"none "
			"of the identities? Write skip, reject or share, or end the list of "
			"identities "
			"with ip\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 1/1s\nidentity = user\n"
				"[limit]\non_missing = share\n",
			"" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 5/1m\nidentity = user, all\n",
			"weir.ini:8: [limit a] identity: warning: all: one bucket for all clients, "
			"so "
			"one of them can use up everybody's\n" },
		/* names of policies */
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 9/1m\npolicy = 5/1m\n",
			"weir.ini:8: [limit a] policy: \"1m\" names a policy already at "
			"weir.ini:7; "
			"give one of them another name, such as: 5/1m name second\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 5/1m\npolicy = 20/1h name 1m\n",
			"weir.ini:8: [limit a] policy: \"1m\" names a policy already at "
			"weir.ini:7; "
			"give one of them another name, such as: 20/1h name second\n" },
		/* one stricter than the other */
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 100/1h\npolicy = 2/1m burst 5\n",
			"" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 10/1s\npolicy = 100/1m burst 5\n",
			"weir.ini:7: [limit a] policy: warning: can never reject, since \"1m\" at "
			"weir.ini:8 is stricter in burst and in rate\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 2/2s\npolicy = 1/1s burst 2\n",
			"weir.ini:8: [limit a] policy: warning: can never reject, since \"2s\" at "
			"weir.ini:7 is stricter in burst and in rate\n" },
		/* burst */
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 1/10s\n", "" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 10/1s burst 1\n",
			"weir.ini:7: [limit a] policy: warning: burst 1 rejects a second request "
			"within "
			"100 ms; a page with its images and scripts asks for more at once\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
long_windows_want_a_store_that_lasts(void **state)
{
	static const struct row rows[] = {
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 50/1h\n", "" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 50/1d\n",
			"weir.ini:7: [limit a] policy: warning: a count over 1d is lost at a "
			"reboot; "
			"add [redis], or [memory] state = a file on a disk\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 50/61m\n[memory]\nstate = "
				"/run/weir/state\n",
			"weir.ini:7: [limit a] policy: warning: a count over 61m is lost at a "
			"reboot, since [memory] state is in /run/; add [redis], or [memory] state "
			"= a file on a disk, such as /var/lib/weir/state\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 5/day calendar\n[memory]\nstate = "
				"/tmp/weir/state\n",
			"weir.ini:7: [limit a] policy: warning: a count over a day is lost at a "
			"reboot, since [memory] state is in /tmp/; add [redis], or [memory] state "
			"= a file on a disk, such as /var/lib/weir/state\n" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 50/1d\n[memory]\nstate = "
				"/var/lib/weir/state\n",
			"" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 50/1d\n[redis]\n", "" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
rates_are_kept_within_a_hundredth(void **state)
{
	static const char refused[] =
		"weir.ini:7: [limit a] policy: the time between two requests is kept in whole "
		"microseconds, so this rate would become %s/1s; write that\n";
	static const struct {
		const char *rate, *right; /* NULL: taken */
	} rates[] = {
		{ "1000000/1s", NULL },
		{ "2000000/1s", "1000000" },
		{ "999999999999999/100d", "1000000" },
		{ "30000/1s", "29412" },
		{ "29412/1s", NULL },
		{ "29411/1s", "28572" },
		{ "28572/1s", NULL },
		{ "34/1ms", "33334" },
		{ "33334/1s", NULL },
		{ "7/1s", NULL },
		{ "12000/1s", NULL },
		{ "1/36525d", NULL },
		{ "999999/1s", "500000" },
	};
	char ini[512], expected[512];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rates); i++) {
		(void)snprintf(ini, sizeof ini,
			"%slimit = a\n[limit a]\npolicy = %s burst 5\n[redis]\n", BACKEND ROUTE,
			rates[i].rate);
		(void)snprintf(expected, sizeof expected, refused, rates[i].right);
		if (strcmp(rates[i].rate, "1/36525d") == 0)
			(void)snprintf(ini, sizeof ini,
				"%slimit = a\n[limit a]\npolicy = 1/36525d\n[redis]\n",
				BACKEND ROUTE);
		assert_said(ini, rates[i].right == NULL ? "" : expected);
	}
}

/* What is proposed instead of a refused rate is taken, and is never faster. */
static void
a_proposed_rate_is_good(void **state)
{
	uint64_t random = 7;

	(void)state;
	for (int i = 0; i < 300; i++) {
		const unsigned count = 5000 + (unsigned)random_below(&random, 1200000);
		char ini[512];
		unsigned right = count;

		(void)snprintf(ini, sizeof ini, "%slimit = a\n[limit a]\npolicy = %u/1s\n",
			BACKEND ROUTE, count);
		char *said = said_of(ini, NULL);
		const char *proposal = strstr(said, "would become ");

		if (proposal != NULL)
			assert_int_equal(sscanf(proposal, "would become %u/1s", &right), 1);
		free(said);
		assert_true(right <= count);
		(void)snprintf(ini, sizeof ini, "%slimit = a\n[limit a]\npolicy = %u/1s\n",
			BACKEND ROUTE, right);
		assert_said(ini, "");
	}
}

static void
buckets_fill_within_a_hundred_years(void **state)
{
	static const char refused[] =
		"weir.ini:7: [limit a] policy: an empty bucket would take more than 100 years to "
		"fill; write a smaller burst or a faster rate\n";
	static const struct row rows[] = {
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 1/1d burst 36525\n[redis]\n", "" },
		{ BACKEND ROUTE "limit = a\n[limit a]\npolicy = 1/1d burst 36526\n[redis]\n",
			refused },
		{ BACKEND ROUTE
			"limit = a\n[limit a]\npolicy = 1/36525d burst 1000000000000000\n[redis]\n",
			refused },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
routes_are_judged_by_themselves(void **state)
{
	static const struct row rows[] = {
		{ BACKEND ROUTE "[route s]\n",
			"weir.ini:5: [route s] match: is missing, and script too, so the route "
			"would "
			"take nothing; write match = /path or script = */name.php\n" },
		{ BACKEND "[backend c]\nserver = unix:/run/c\n" ROUTE "backend = c\n",
			"weir.ini:1: [backend b]: warning: no route uses this backend\n" },
		{ BACKEND "[backend c]\nserver = unix:/run/c\n[route s]\nmatch = /s\n" ROUTE
			  "backend = c\n",
			"weir.ini:5: [route s] backend: is missing: there are 2 backends; say "
			"which, "
			"such as backend = b\n" },
		/* cost */
		{ BACKEND ROUTE "cost = 5\nlimit = a, b\n[limit a]\npolicy = 9/1s\npolicy = 4/1m\n"
				"[limit b]\npolicy = 5/1m\n",
			"weir.ini:5: [route r] cost: 5 is more than policy \"1m\" of limit a ever "
			"holds (burst 4), so no request would be admitted\n"
			"weir.ini:8: [limit a] policy: warning: can never reject, since \"1m\" at "
			"weir.ini:9 is stricter in burst and in rate\n" },
		/* what a client writes */
		{ BACKEND ROUTE "limit = a, b\n[limit a]\npolicy = 9/1s\nidentity = header X, ip\n"
				"[limit b]\npolicy = 5/1m\n",
			"" },
		{ BACKEND ROUTE "limit = a, b\n[limit a]\npolicy = 9/1s\nidentity = header X, ip\n"
				"[limit b]\npolicy = 5/1m\nidentity = user, ip\n",
			"" },
		{ BACKEND ROUTE "limit = a, b\n[limit a]\npolicy = 9/1s\nidentity = header X, ip\n"
				"[limit b]\npolicy = 5/1m\nenforce = no\n",
			"weir.ini:5: [route r] limit: warning: limit a counts by header X, which a "
			"client writes: anyone gets a fresh bucket for each request; add a limit "
			"by ip, or write known behind it\n" },
		/* store_down */
		{ BACKEND ROUTE "store_down = reject\n",
			"weir.ini:5: [route r] store_down: warning: has no effect without "
			"[redis]\n" },
		{ BACKEND ROUTE
			"limit = a\n[limit a]\npolicy = 1/1s\n[redis]\n[route]\nstore_down = "
			"reject\n",
			"weir.ini:10: [route] store_down: warning: reject on a route that takes "
			"everything: with Redis gone the site is gone; local counts on this host "
			"alone "
			"meanwhile\n" },
		{ BACKEND ROUTE "[route]\nstore_down = admit\n",
			"weir.ini:6: [route] store_down: warning: has no effect without "
			"[redis]\n" },
		/* patterns */
		{ BACKEND
			"[route s]\nmatch = /a.php\nmatch = */b.CGI\nmatch = ~ ^/c\\.php$\n" ROUTE,
			"weir.ini:4: [route s] match: warning: the script can be reached by other "
			"URLs "
			"too (rewriting, a front controller); script = holds against the script "
			"that "
			"runs\n"
			"weir.ini:5: [route s] match: warning: the script can be reached by other "
			"URLs "
			"too (rewriting, a front controller); script = holds against the script "
			"that "
			"runs\n"
			"weir.ini:6: [route s] match: warning: the script can be reached by other "
			"URLs "
			"too (rewriting, a front controller); script = holds against the script "
			"that "
			"runs\n" },
		{ BACKEND "[route s]\nmatch = /a.php\nscript = */a.php\nmatch = ~ ^/php$\n" ROUTE,
			"" },
		{ BACKEND "[route s]\nmatch = ~ /a\nscript = ~ [^/]\\^\nmatch = ~ (^/b|^/c)\n"
			  "match = ~ \\A/d\nmatch = ~ [[^]^/e\n" ROUTE,
			"weir.ini:4: [route s] match: warning: the expression fits anywhere in a "
			"path; "
			"begin it with ^ to fit from its start\n"
			"weir.ini:5: [route s] script: warning: the expression fits anywhere in a "
			"path; begin it with ^ to fit from its start\n" },
		{ BACKEND "[route s]\nmatch = GET|PSOT|PURGE|VERSION-CONTROL /a\n" ROUTE,
			"weir.ini:4: [route s] match: warning: \"PSOT\" is no usual method; did "
			"you "
			"mean \"POST\"?\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
the_first_route_that_fits_is_taken(void **state)
{
	static const struct row rows[] = {
		{ BACKEND ROUTE "[route s]\nmatch = /s\nscript = /t\n",
			"weir.ini:5: [route s]: can never match, since route r at weir.ini:3 takes "
			"everything that it would; put it before that one\n" },
		{ BACKEND "[route a]\nmatch = /a\n[route b]\nmatch = /a/b\nmatch = = /a\n" ROUTE,
			"weir.ini:5: [route b]: can never match, since route a at weir.ini:3 takes "
			"everything that it would; put it before that one\n" },
		{ BACKEND "[route a]\nmatch = /a\n[route b]\nmatch = /a/b\nmatch = /ab\n" ROUTE,
			"weir.ini:6: [route b] match: warning: is never reached, since route a at "
			"weir.ini:3 takes it first\n" },
		{ BACKEND "[route a]\nmatch = GET /\n[route b]\nscript = /a\n[route c]\nmatch = "
			  "POST /\n" ROUTE,
			"" },
		{ BACKEND "[route a]\nmatch = GET|POST *\n[route b]\nscript = POST *.php\n" ROUTE,
			"weir.ini:5: [route b]: can never match, since route a at weir.ini:3 takes "
			"everything that it would; put it before that one\n" },
		{ BACKEND "[route a]\nmatch = /a\n[route b]\nmatch = /b\n[route c]\nmatch = /a/x\n"
			  "match = /b/x\n" ROUTE,
			"weir.ini:7: [route c]: can never match, since route b at weir.ini:5 takes "
			"everything that it would; put it before that one\n" },
		{ BACKEND "[route a]\nmatch = /\n" ROUTE, "" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
a_route_takes_what_is_left(void **state)
{
	static const struct row rows[] = {
		{ BACKEND "[route a]\nmatch = /a\n",
			"weir.ini:3: [route a]: no route takes what the others leave; add behind "
			"the last one:\n"
			"    [route default]\n"
			"    match = *\n" },
		{ BACKEND "[backend c]\nserver = unix:/run/c\n[limit k]\npolicy = 1/1s\nidentity = "
			  "user, ip\n[limit l]\npolicy = 1/1s\n[route a]\nmatch = GET *\nlimit = "
			  "k, l\n"
			  "backend = b\n[route d]\nscript = *\nbackend = c\n",
			"weir.ini:15: [route d] script: takes only requests that have a script, so "
			"no route takes what the others leave; write match = *\n" },
		{ BACKEND "[backend c]\nserver = unix:/run/c\n[limit k]\npolicy = 1/1s\nidentity = "
			  "user, ip\n[limit l]\npolicy = 1/1s\n[route default]\nmatch = GET *\n"
			  "limit = k, l\nbackend = b\n[route d]\nscript = *.php\nbackend = c\n",
			"weir.ini:14: [route d]: no route takes what the others leave; add behind "
			"the last one:\n"
			"    [route rest2]\n"
			"    match = *\n"
			"    limit = l\n"
			"    backend = b\n" },
		{ BACKEND "[route default]\nmatch = GET|POST *\n",
			"weir.ini:4: [route default] match: takes only these methods, so no route "
			"takes what the others leave; write match = *\n" },
		{ BACKEND "[route a]\nmatch = /\n",
			"weir.ini:4: [route a] match: does not fit \"OPTIONS *\", so no route "
			"takes "
			"what the others leave; write match = *\n" },
		{ BACKEND,
			"weir.ini: no route takes what the others leave; add:\n"
			"    [route default]\n"
			"    match = *\n" },
		{ ROUTE,
			"weir.ini: there is no backend, where admitted requests go; add:\n"
			"    [backend php]\n"
			"    server = unix:/run/php/php-fpm.sock\n" },
		{ "",
			"weir.ini: there is no backend, where admitted requests go; add:\n"
			"    [backend php]\n"
			"    server = unix:/run/php/php-fpm.sock\n"
			"weir.ini: no route takes what the others leave; add:\n"
			"    [route default]\n"
			"    match = *\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

#define A "[backend a]\nserver = unix:/s/a\nlisten = unix:/a\n"
#define B "[backend b]\nserver = unix:/s/b\nlisten = unix:/b\n"

static void
sockets_of_backends_are_judged_with_all_others(void **state)
{
	static const struct row rows[] = {
		{ A B ROUTE, "" },
		{ A B ROUTE "backend = a\n",
			"weir.ini:4: [backend b]: warning: no route uses this backend\n" },
		/* Some requests come to no backend's socket. */
		{ A B ROUTE "[weir]\nlisten = unix:/c\n",
			"weir.ini:7: [route r] backend: is missing: there are 2 backends; say "
			"which, such as backend = a\n" },
		{ A "[backend b]\nserver = unix:/s/b\n" ROUTE,
			"weir.ini:4: [backend b]: warning: no route uses this backend\n" },
		{ A "listen = unix:/b\n" B ROUTE,
			"weir.ini:7: [backend b] listen: is listened on twice; the first is at "
			"weir.ini:4\n" },
		{ "[weir]\nlisten = unix:/a\n" A ROUTE,
			"weir.ini:5: [backend a] listen: is listened on twice; the first is at "
			"weir.ini:2\n" },
		{ A "server = unix:/b\n" B ROUTE,
			"weir.ini:4: [backend a] server: is where weir itself listens, so requests "
			"would go round\n" },
		{ A "listen = tcp:192.0.2.1:9000\n" ROUTE,
			"weir.ini:4: [backend a] listen: who reaches this port runs code as the "
			"application's user (SCRIPT_FILENAME, PHP_ADMIN_VALUE); listen on "
			"unix:" WEIR_RUNDIR "/weir.sock or on a loopback address\n" },
		/* The host would choose it. */
		{ A B "[route h]\nmatch = /h\nhost = h.example\nbackend = a\n" ROUTE,
			"weir.ini:9: [route h] host: a client can write any host, so it may choose "
			"a limit, never a backend: elsewhere the same request goes to route r with "
			"its listener's backend\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

#undef A
#undef B

#define DANGER                                                                                     \
	"who reaches this port runs code as the application's user (SCRIPT_FILENAME, "             \
	"PHP_ADMIN_VALUE)"
#define LOCAL_DANGER                                                                               \
	"warning: " DANGER ", and every user of this host does; prefer unix:" WEIR_RUNDIR          \
	"/weir.sock\n"

static void
sockets_are_not_for_everybody(void **state)
{
	static const struct row rows[] = {
		{ BACKEND ROUTE "[weir]\nlisten = tcp:127.1.2.3:9000\nlisten = tcp:[::1]:9000\n"
				"listen = tcp:localhost:9001\n",
			"weir.ini:6: [weir] listen: " LOCAL_DANGER
			"weir.ini:7: [weir] listen: " LOCAL_DANGER
			"weir.ini:8: [weir] listen: " LOCAL_DANGER },
		{ BACKEND ROUTE
			"[weir]\nlisten = tcp:192.0.2.1:9000\nlisten = tcp:*:9000\nlisten = "
			"tcp:[::]:9000\n",
			"weir.ini:6: [weir] listen: " DANGER "; listen on unix:" WEIR_RUNDIR
			"/weir.sock or on a loopback address\n"
			"weir.ini:7: [weir] listen: " DANGER "; listen on unix:" WEIR_RUNDIR
			"/weir.sock or on a loopback address\n"
			"weir.ini:8: [weir] listen: " DANGER "; listen on unix:" WEIR_RUNDIR
			"/weir.sock or on a loopback address\n" },
		{ BACKEND ROUTE "[weir]\nlisten = unix:/a\nlisten = unix:/a mode 0600\nmetrics = "
				"unix:/a\n",
			"weir.ini:7: [weir] listen: is listened on twice; the first is at "
			"weir.ini:6\n"
			"weir.ini:8: [weir] metrics: listen has the same address; give each its "
			"own\n" },
		/* Of a web server's questions nothing is run. */
		{ "[backend b]\ntype = none\n" ROUTE "[weir]\nlisten = tcp:127.0.0.1:9000\n", "" },
		{ "[backend b]\ntype = none\n[backend c]\nserver = unix:/c\nlisten = "
		  "unix:/l\n" ROUTE "backend = b\n[weir]\nlisten = tcp:127.0.0.1:9000\n",
			"weir.ini:3: [backend c]: warning: no route uses this backend\n"
			"weir.ini:10: [weir] listen: " LOCAL_DANGER },
		{ BACKEND ROUTE "[weir]\nmetrics = tcp:127.0.0.1:9180\n", "" },
		{ BACKEND ROUTE "[weir]\nmetrics = tcp:0.0.0.0:9180\n",
			"weir.ini:6: [weir] metrics: warning: others than this host can read the "
			"counters; listen on tcp:127.0.0.1:PORT or a unix: socket unless a "
			"firewall "
			"decides who\n" },
		{ "[backend b]\nserver = unix:/a\nserver = unix:/run/b\n" ROUTE
		  "[weir]\nlisten = unix:/run/b\n",
			"weir.ini:3: [backend b] server: is where weir itself listens, so requests "
			"would go round\n" },
		{ "[backend b]\n" ROUTE,
			"weir.ini:1: [backend b] server: is missing: where do admitted requests "
			"go? "
			"Write server = unix:/run/php/php-fpm.sock or tcp:HOST:PORT\n" },
		{ "[backend b]\ntype = none\nserver = unix:/b\n" ROUTE,
			"weir.ini:3: [backend b] server: a backend of type none has no server: the "
			"web "
			"server serves the request\n" },
		{ "[backend b]\ntype = cgi\nprogram = /p\nserver = unix:/b\n" ROUTE,
			"weir.ini:4: [backend b] server: a backend of type cgi has no server: weir "
			"starts its program itself\n" },
		{ "[backend b]\ntype = cgi\n" ROUTE,
			"weir.ini:1: [backend b] program: is missing: what is to be started? Write "
			"program = /usr/lib/cgi-bin/NAME, or root = /usr/lib/cgi-bin for any "
			"program below it\n" },
		{ "[backend b]\ntype = cgi\nprogram = /p\nroot = /r\n" ROUTE,
			"weir.ini:4: [backend b] root: there is a program already, which all "
			"requests go to; leave one of both out\n" },
		{ "[backend b]\nserver = unix:/b\nenv = A=b\n" ROUTE,
			"weir.ini:3: [backend b] env: is for programs that weir starts; write type "
			"= cgi, too, or leave it out\n" },
		{ "[backend b]\ntype = scgi\nserver = unix:/b\nkeep_idle = 1\n" ROUTE,
			"weir.ini:4: [backend b] keep_idle: is for backends of type fastcgi: no "
			"other connection serves two requests; leave it out\n" },
		{ BACKEND "keep_idle = 3\n" ROUTE "[weir]\nthreads = 4\n",
			"weir.ini:3: [backend b] keep_idle: warning: each of 4 threads keeps one "
			"at least, so 4 are kept\n" },
		{ BACKEND "keep_idle = 4\n" ROUTE "[weir]\nthreads = 4\n", "" },
		{ BACKEND ROUTE "[redis]\nusername = weir\n",
			"weir.ini:6: [redis] username: needs password_file; Redis takes a name "
			"only "
			"together with a password\n" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

/* ---- secrets ---- */

static void
assert_secret_said(const char *content, mode_t mode, const char *format)
{
	char ini[3 * PATH_MAX], path[PATH_MAX + 16], said[5 * PATH_MAX];

	(void)snprintf(path, sizeof path, "%s/secret", load_directory);
	(void)snprintf(ini, sizeof ini,
		"%s[redis]\npassword_file = %s\n[weir]\nhash_key_file = %s\n", BACKEND ROUTE, path,
		path);
	if (content != NULL)
		write_file("secret", slice_of(content));
	if (content != NULL)
		assert_int_equal(chmod("secret", mode), 0);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(said, sizeof said, format, path, path, path, path);
#pragma GCC diagnostic pop
	assert_said(ini, said);
	(void)unlink("secret");
}

static void
secrets_are_for_weir_alone(void **state)
{
	(void)state;
	assert_secret_said("geheim, und lang", 0600, "");
	assert_secret_said("geheim, und lang", 0640, "");
	assert_secret_said("geheim, und lang", 0644,
		"weir.ini:6: [redis] password_file: warning: every user of this host can read %s; "
		"chmod o= %s\n"
		"weir.ini:8: [weir] hash_key_file: warning: every user of this host can read %s; "
		"chmod o= %s\n");
	assert_secret_said("", 0600,
		"weir.ini:6: [redis] password_file: %s holds no password: it is empty\n"
		"weir.ini:8: [weir] hash_key_file: %s holds no secret: it is empty\n");
}

/* Only root can give a file to a group that is not its own. */
static void
the_web_servers_group_is_not_trusted(void **state)
{
	const struct group *web = getgrnam(WEIR_WEB_GROUP);
	char format[512];

	(void)state;
	if (geteuid() != 0 || web == NULL || web->gr_gid == getegid())
		skip();
	write_file("secret", SLICE("geheim, und lang"));
	assert_int_equal(chmod("secret", 0640), 0);
	assert_int_equal(chown("secret", 0, web->gr_gid), 0);
	(void)snprintf(format, sizeof format,
		"weir.ini:6: [redis] password_file: warning: the members of group id %u can read "
		"%%s; chmod g= %%s, or give it a group of weir's own\n"
		"weir.ini:8: [weir] hash_key_file: warning: the members of group id %u can read "
		"%%s; chmod g= %%s, or give it a group of weir's own\n",
		(unsigned)web->gr_gid, (unsigned)web->gr_gid);
	assert_secret_said(NULL, 0, format);
}

static void
a_missing_secret_is_named(void **state)
{
	char ini[3 * PATH_MAX], said[3 * PATH_MAX];

	(void)state;
	(void)snprintf(ini, sizeof ini, "%s[weir]\nhash_key_file = %s/none\n", BACKEND ROUTE,
		load_directory);
	(void)snprintf(said, sizeof said,
		"weir.ini:6: [weir] hash_key_file: %s/none cannot be read by user id %u: No such "
		"file "
		"or directory\n",
		load_directory, (unsigned)geteuid());
	assert_said(ini, said);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_are_judged_by_themselves),
		cmocka_unit_test(long_windows_want_a_store_that_lasts),
		cmocka_unit_test(rates_are_kept_within_a_hundredth),
		cmocka_unit_test(a_proposed_rate_is_good),
		cmocka_unit_test(buckets_fill_within_a_hundred_years),
		cmocka_unit_test(routes_are_judged_by_themselves),
		cmocka_unit_test(the_first_route_that_fits_is_taken),
		cmocka_unit_test(a_route_takes_what_is_left),
		cmocka_unit_test(sockets_of_backends_are_judged_with_all_others),
		cmocka_unit_test(sockets_are_not_for_everybody),
		cmocka_unit_test(secrets_are_for_weir_alone),
		cmocka_unit_test(the_web_servers_group_is_not_trusted),
		cmocka_unit_test(a_missing_secret_is_named),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
