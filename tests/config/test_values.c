/* Values, kind by kind; and every row of the table of options with a good and a bad one. */
#include "compose.h"

/* ---- every row ---- */

static const struct {
	const char *section, *key, *good, *bad;
	const char *said; /* of the bad one; NULL: it is base that says it */
} rows[] = {
	{ "weir", "enforce", "no", "on", "\"on\" is none of yes, no; did you mean \"yes\"?" },
	{ "weir", "listen", "unix:/run/weir/a.sock mode 0600 owner weir group adm", "/run/a.sock",
		"\"/run/a.sock\" is written unix:/run/a.sock" },
	{ "weir", "threads", "64", "65", "\"65\" is neither a number from 1 to 64 nor auto" },
	{ "weir", "max_in_flight", "1", "0", "\"0\" is no whole number from 1 to 1000000" },
	{ "weir", "max_connections", "1000000", "1000001",
		"\"1000001\" is no whole number from 1 to 1000000" },
	{ "weir", "max_head", "4k", "2m", "\"2m\" is no size from 4k to 1m" },
	{ "weir", "max_params", "16", "15", "\"15\" is no whole number from 16 to 100000" },
	{ "weir", "head_timeout", "1ms", "2h", "\"2h\" is no duration from 1 ms to 1 h" },
	{ "weir", "body_timeout", "1d", "10", NULL },
	{ "weir", "drain", "30s", "0s", NULL },
	{ "weir", "spool_directory", "/srv/tmp", "tmp", NULL },
	{ "weir", "trusted_proxies", "192.0.2.7, 2001:db8::/48", "192.0.2.0/33",
		"\"192.0.2.0/33\": an IPv4 prefix has 0 to 32 bits" },
	{ "weir", "timezone", "Europe/Berlin", "Europe/Berlim",
		"there is no time zone \"Europe/Berlim\" below /usr/share/zoneinfo; did you mean "
		"\"Europe/Berlin\"?" },
	{ "weir", "hash_key_file", "DIR/secret", "hash.key",
		"\"hash.key\" is no absolute path; begin with /" },
	{ "weir", "metrics", "unix:/run/weir/status.sock", "9180",
		"\"9180\" is written tcp:127.0.0.1:9180" },
	{ "weir", "log", "file:/var/log/weir.log", "/var/log/weir.log",
		"\"/var/log/weir.log\" is none of stderr, syslog and file:/PATH" },
	{ "weir", "log_level", "debug", "warn",
		"\"warn\" is none of error, warning, info, debug; did you mean \"warning\"?" },
	{ "weir", "log_format", "json", "xml", "\"xml\" is none of text, json" },
	{ "weir", "reject_log", "/var/log/reject.log", "file:/var/log/reject.log",
		"\"file:/var/log/reject.log\" is no absolute path; begin with /" },
	{ "memory", "size", "64g", "512k", "\"512k\" is no size from 1m to 64g" },
	{ "memory", "state", "/var/lib/weir/state", "state",
		"\"state\" is no absolute path; begin with /" },
	{ "redis", "server", "unix:/run/redis/redis-server.sock", "6379",
		"\"6379\" is written tcp:127.0.0.1:6379" },
	{ "redis", "sentinel", "tcp:a:26379, tcp:b:26379\nmaster = m", "tcp:a:1, tls:b:1",
		"some of them are tcp: and some tls:; the master is connected to as they "
		"are, so write all of them alike" },
	{ "redis", "cluster", "tcp:a:6379, tcp:[::1]:6379", "tcp:a:1, unix:/x",
		"\"unix:/x\" is no tcp: or tls: address; a cluster is in the network" },
	{ "redis", "master", "main-1\nsentinel = tcp:a:1", "main 1",
		"\"main 1\" is no name that a sentinel takes: letters, digits, \".\", \"-\" and "
		"\"_\"" },
	{ "redis", "sentinel_username",
		"weir\nsentinel_password_file = DIR/secret\nsentinel = tcp:a:1\nmaster = m",
		"we ir", "\"we ir\" is more than one word" },
	{ "redis", "sentinel_password_file", "DIR/secret\nsentinel = tcp:a:1\nmaster = m", "none",
		"\"none\" is no absolute path; begin with /" },
	{ "redis", "tls_ca", "/etc/ca.pem\nserver = tls:a:1", "ca.pem",
		"\"ca.pem\" is no absolute path; begin with /" },
	{ "redis", "tls_cert", "/etc/a.pem\ntls_key = DIR/secret\nserver = tls:a:1", "a.pem",
		"\"a.pem\" is no absolute path; begin with /" },
	{ "redis", "tls_key", "DIR/secret\ntls_cert = /etc/a.pem\nserver = tls:a:1", "a.key",
		"\"a.key\" is no absolute path; begin with /" },
	{ "redis", "tls_name", "redis.example.org\nserver = tls:a:1", "a b",
		"\"a b\" is no host name and no IP address, such as redis.example.org" },
	{ "redis", "username", "weir\npassword_file = DIR/secret", "we ir",
		"\"we ir\" is more than one word" },
	{ "redis", "password_file", "DIR/secret", "none",
		"\"none\" is no absolute path; begin with /" },
	{ "redis", "database", "2147483647", "-1",
		"\"-1\" is no whole number from 0 to 2147483647" },
	{ "redis", "deadline", "1ms", "2m", "\"2m\" is no duration from 1 ms to 1 min" },
	{ "redis", "prefix", "w",
		"{weir}:", "braces in \"{weir}:\" would put all keys on one node of a cluster" },
	{ "limit", "identity", "user, ip/24/48+path", "adress",
		"\"adress\" is none of ip, user, header, cookie, param, env, host, path, backend, "
		"route, all" },
	{ "limit", "on_missing", "share", "shared",
		"\"shared\" is none of skip, reject, share; did you mean \"share\"?" },
	{ "limit", "policy", "3/s burst 10 token-bucket name short", "3", NULL },
	{ "limit", "enforce", "no", "No", "\"No\" is none of yes, no; did you mean \"no\"?" },
	{ "limit", "max_identities", "1000000000", "0",
		"\"0\" is no whole number from 1 to 1000000000" },
	{ "limit", "local_cap", "200/1s burst 400", "200/1s name x",
		"\"name\" is no word that can follow here" },
	{ "override", "limit", "l", "k", "there is no [limit k]; did you mean \"l\"?" },
	{ "override", "for", "user alice, bob", "group alice",
		"\"group\" is none of ip, user, header, cookie, param, env" },
	{ "override", "policy", "9/1m burst 10", "9/1m burst 0",
		"the burst \"0\" is no whole number from 1 to 1000000000000000" },
	{ "override", "exempt", "yes", "true",
		"\"true\" is none of yes, no; did you mean \"yes\"?" },
	{ "override", "block", "yes", "1", "\"1\" is none of yes, no; did you mean \"yes\"?" },
	{ "backend", "type", "fastcgi", "fcgi",
		"\"fcgi\" is none of fastcgi, cgi, scgi, none; did you mean \"fastcgi\"?" },
	{ "backend", "listen", "unix:/run/a.sock mode 0600", "/run/a.sock",
		"\"/run/a.sock\" is written unix:/run/a.sock" },
	{ "backend", "keep_idle", "10000", "10001", NULL },
	{ "backend", "spool", "0", "-1", NULL },
	{ "backend", "server", "tcp:[::1]:9000", "tcp:::1:9000", NULL },
	{ "backend", "program", "/usr/lib/cgi-bin/x", "x", NULL },
	{ "backend", "root", "/usr/lib/cgi-bin//", "/",
		"/ holds every program there is; write the directory of those that are meant, such "
		"as /usr/lib/cgi-bin" },
	{ "backend", "env", "GIT_PROJECT_ROOT=/srv/git", "A-B=c",
		"\"A-B=c\" is no variable; write NAME=VALUE, such as GIT_PROJECT_ROOT=/srv/git" },
	{ "backend", "max_in_flight", "1000000", "many",
		"\"many\" is no whole number from 1 to 1000000" },
	{ "backend", "connect_timeout", "10m", "11m",
		"\"11m\" is no duration from 1 ms to 10 min" },
	{ "backend", "idle_timeout", "30d", "31d", "\"31d\" is no duration from 1 ms to 30 d" },
	{ "route", "match", "GET|HEAD /a* nocase", "/a b",
		"\"/a b\" has a blank; a second pattern is a second line, and a blank in a path is "
		"written with * or as ~ expression" },
	{ "route", "script", "POST */index.php", "index.php",
		"\"index.php\" is no method, since those are in capitals, nor a pattern: one "
		"begins "
		"with / or *, or is = /path or ~ expression" },
	{ "route", "limit", "l", "m", "there is no [limit m]; did you mean \"l\"?" },
	{ "route", "backend", "b", "bb", "there is no [backend bb]; did you mean \"b\"?" },
	{ "route", "when", "not header User-Agent ~ (bot|crawl) nocase", "header User-Agent: bot",
		"header wants the name of one, such as header X-API-Key" },
	{ "route", "host", "example.org, *.example.org", "example.org:8080",
		"\"example.org:8080\" has a port, which is not compared; leave it out" },
	{ "route", "exempt_ip", "192.0.2.7", "health.example.org",
		"\"health.example.org\" is no network; write 192.0.2.0/24, 2001:db8::/32 or an "
		"address" },
	{ "route", "cost", "param n max 5", "0",
		"\"0\" is no whole number from 1 to 1000000000000000" },
	{ "route", "store_down", "admit", "open",
		"\"open\" is none of local, admit, reject; did you mean \"admit\"?" },
	{ "route", "headers", "x-ratelimit-epoch, ratelimit", "x-rate-limit",
		"\"x-rate-limit\" is none of none, x-ratelimit, x-ratelimit-epoch, ratelimit, "
		"ratelimit-06, ratelimit-07; did you mean \"x-ratelimit\"?" },
	{ "route", "own_headers", "keep", "yes", "\"yes\" is none of replace, keep" },
	{ "route", "front", "mod_fcgid", "apache",
		"\"apache\" is none of auto, lighttpd, mod_fcgid, mod_authnz, nginx" },
	{ "route", "retry_jitter", "10%", "10",
		"\"10\" is neither 0 nor a percentage from 0% to 100%" },
	{ "route", "reject_page", "DIR/busy.html", "busy.html",
		"\"busy.html\" is no absolute path; begin with /" },
	{ "route", "reject_header", "Access-Control-Allow-Origin: *", "Retry-After: 1",
		"Retry-After is written by weir itself" },
};

static void
every_row_takes_a_good_value_and_refuses_a_bad_one(void **state)
{
	char ini[2 * PATH_MAX], start[200];

	(void)state;
	write_file("secret", SLICE("sehr geheim, und lang\n"));
	write_file("busy.html", SLICE("<p>Try later.\n"));
	assert_int_equal(chmod("secret", 0600), 0);
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct config *config;

		compose(ini, sizeof ini, rows[i].section, rows[i].key, rows[i].good);
		char *said = said_of(ini, &config);

		assert_row(config != NULL, "%s%s", ini, said);
		config_free(config);
		free(said);
		compose(ini, sizeof ini, rows[i].section, rows[i].key, rows[i].bad);
		said = said_of(ini, &config);
		(void)snprintf(start, sizeof start, "%s: %s%s", rows[i].key,
			rows[i].said == NULL ? "" : rows[i].said, rows[i].said == NULL ? "" : "\n");
		assert_row(config == NULL && strncmp(said, "weir.ini:2: [", 13) == 0 &&
				strstr(said, start) != NULL,
			"%swas told:\n%s", ini, said);
		free(said);
	}
}

static void
no_row_of_the_table_is_left_out(void **state)
{
	const struct config_option_help *help;
	unsigned count = 0;

	(void)state;
	for (; (help = config_option_help(count)) != NULL; count++) {
		bool is_tried = false;

		for (size_t i = 0; i < LENGTH_OF(rows); i++)
			is_tried = is_tried ||
				(strcmp(rows[i].section, help->section) == 0 &&
					strcmp(rows[i].key, help->key) == 0);
		assert_row(is_tried, "[%s] %s has no row in this test", help->section, help->key);
		assert_non_null(help->syntax);
		assert_non_null(help->default_text);
		assert_row(help->help[strlen(help->help) - 1] == '.' ||
				strcmp(help->key, "reject_header") == 0,
			"[%s] %s", help->section, help->key);
		assert_true(!help->repeatable || help->default_text[0] == '\0');
	}
	assert_int_equal(count, LENGTH_OF(rows));
	assert_null(config_option_help(UINT_MAX));
}

/* What help shows as the default is what is applied: given explicitly, it changes nothing. */
static void
a_default_is_what_its_text_says(void **state)
{
	struct config *config =
		loaded("[limit l]\npolicy = 7/1h\n[backend b]\nserver = unix:/run/b\n"
		       "[route r]\nmatch = *\nlimit = l\n");
	const struct config_route *route = config->routes[0];

	(void)state;
	assert_true(config->enforce);
	assert_int_equal(config->listen_count, 0);
	assert_int_equal(config->threads, 1);
	assert_int_equal(config->max_in_flight, 2048);
	assert_int_equal(config->max_connections, 16384);
	assert_int_equal(config->max_head, 256 * 1024);
	assert_int_equal(config->max_params, 1000);
	assert_int_equal(config->head_timeout_us, 10 * US_PER_S);
	assert_int_equal(config->body_timeout_us, 60 * US_PER_S);
	assert_int_equal(config->drain_us, 7 * US_PER_S);
	assert_string_equal(config->spool_directory, "/var/tmp");
	assert_int_equal(config->trusted_proxy_count, 0);
	assert_string_equal(config->timezone, "UTC");
	assert_int_equal(config->override_count, 0);
	assert_null(config->hash_key_file);
	assert_false(config->has_metrics);
	assert_int_equal(config->log_to, LOG_TO_STDERR);
	assert_int_equal(config->log_level, LOG_LEVEL_INFO);
	assert_int_equal(config->log_format, LOG_FORMAT_TEXT);
	assert_null(config->reject_log);
	assert_int_equal(config->memory_size, 16 * 1024 * 1024);
	assert_null(config->memory_state);
	assert_string_equal(config->redis_server.host, "127.0.0.1");
	assert_int_equal(config->redis_server.port, 6379);
	assert_int_equal(config->redis_database, 0);
	assert_int_equal(config->redis_deadline_us, 150 * US_PER_MS);
	assert_string_equal(config->redis_prefix, "weir:");
	assert_null(config->redis_username);
	assert_null(config->redis_password);
	assert_int_equal(config->limits[0]->identity_count, 1);
	assert_int_equal(config->limits[0]->identities[0].parts[0].source, IDENTITY_IP);
	assert_int_equal(config->limits[0]->identities[0].parts[0].prefix_4, 32);
	assert_int_equal(config->limits[0]->identities[0].parts[0].prefix_6, 64);
	assert_int_equal(config->limits[0]->on_missing, ON_MISSING_UNSET);
	assert_true(config->limits[0]->enforce);
	assert_int_equal(config->limits[0]->max_identities, 100000);
	assert_null(config->limits[0]->local_cap);
	assert_int_equal(config->limits[0]->override_count, 0);
	assert_int_equal(config->limits[0]->policies[0].algorithm, POLICY_TOKEN_BUCKET);
	assert_int_equal(config->limits[0]->policies[0].shards, 1);
	assert_false(config->limits[0]->policies[0].shadow);
	assert_int_equal(config->backends[0]->type, BACKEND_FASTCGI);
	assert_int_equal(config->backends[0]->max_in_flight, 256);
	assert_int_equal(config->backends[0]->keep_idle, 0);
	assert_int_equal(config->backends[0]->spool, 64 * 1024 * 1024);
	assert_int_equal(config->backends[0]->listen_count, 0);
	assert_int_equal(config->backends[0]->connect_timeout_us, US_PER_S);
	assert_int_equal(config->backends[0]->idle_timeout_us, 600 * US_PER_S);
	assert_int_equal(route->cost.source, COST_FIXED);
	assert_int_equal(route->cost.fixed, 1);
	assert_int_equal(route->cost.max, 1);
	assert_int_equal(route->store_down, STORE_DOWN_LOCAL);
	assert_int_equal(route->headers, 0);
	assert_int_equal(route->own_headers, OWN_HEADERS_REPLACE);
	assert_int_equal(route->front, ASKING_AUTO);
	assert_int_equal(route->retry_jitter_percent, 0);
	assert_null(route->reject_page.ptr);
	assert_int_equal(route->when_count, 0);
	assert_int_equal(route->host_count, 0);
	assert_int_equal(route->exempt_net_count, 0);
	assert_int_equal(route->reject_header_count, 0);
	config_free(config);
}

/* ---- the values that say more than one thing ---- */

static void
listen_has_a_mode_an_owner_and_a_group(void **state)
{
	struct config *config = loaded("[weir]\nlisten = unix:/run/a mode 666\n"
				       "listen = unix:/run/b group www-data  owner weir mode 0600\n"
				       "listen = unix:/run/c\nlisten = tcp:[::1]:9000\n"
				       "[backend b]\nserver = unix:/run/x\n[route r]\nmatch = *\n");
	const struct config_listen *listens = config->listens;

	(void)state;
	assert_int_equal(config->listen_count, 4);
	assert_int_equal(listens[0].mode, 0666);
	assert_null(listens[0].owner);
	assert_null(listens[0].group);
	assert_int_equal(listens[1].mode, 0600);
	assert_string_equal(listens[1].owner, "weir");
	assert_string_equal(listens[1].group, "www-data");
	assert_int_equal(listens[1].place.line, 3);
	assert_int_equal(listens[2].mode, 0660);
	assert_int_equal(listens[3].address.port, 9000);
	assert_string_equal(listens[3].address.host, "::1");
	config_free(config);
	assert_refused("weir", "listen", "unix:/a mode 0888",
		"\"0888\" is no mode; write it as chmod takes it: 0660");
	assert_refused(
		"weir", "listen", "unix:/a mode 01777", "\"01777\" is no mode from 0001 to 0777");
	assert_refused("weir", "listen", "unix:/a mode 77777777777777777777",
		"\"77777777777777777777\" is no mode; write it as chmod takes it: 0660");
	assert_refused("weir", "listen", "unix:/a mode", "\"mode\" wants a word behind it");
	assert_refused("weir", "listen", "unix:/a mode 0600 mode 0600", "\"mode\" is given twice");
	assert_refused("weir", "listen", "unix:/a gruop www-data",
		"\"gruop\" is no word that can follow here; did you mean \"group\"?");
	assert_refused("weir", "listen", "tcp:127.0.0.1:9000 mode 0600",
		"mode, owner and group are of unix: sockets only");
}

static void
threads_can_follow_the_processors(void **state)
{
	struct config *config = loaded("[weir]\nthreads = auto\n[backend b]\nserver = unix:/run/x\n"
				       "[route r]\nmatch = *\n");

	(void)state;
	assert_true(config->threads >= 1 && config->threads <= 64);
	config_free(config);
}

static void
log_goes_to_one_of_three(void **state)
{
	static const struct {
		const char *value, *file;
		int to;
	} targets[] = {
		{ "stderr", NULL, LOG_TO_STDERR },
		{ "syslog", NULL, LOG_TO_SYSLOG },
		{ "file:/var/log/weir.log", "/var/log/weir.log", LOG_TO_FILE },
	};
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(targets); i++) {
		compose(ini, sizeof ini, "weir", "log", targets[i].value);
		struct config *config = loaded(ini);

		assert_int_equal(config->log_to, targets[i].to);
		assert_true((config->log_file == NULL) == (targets[i].file == NULL));
		if (targets[i].file != NULL)
			assert_string_equal(config->log_file, targets[i].file);
		config_free(config);
	}
	assert_refused(
		"weir", "log", "file:weir.log", "\"weir.log\" is no absolute path; begin with /");
}

static void
patterns_have_methods_a_kind_and_a_case(void **state)
{
	static const struct {
		const char *value, *methods, *text;
		enum pattern_kind kind;
		bool nocase;
	} patterns[] = {
		{ "*", NULL, "*", PATTERN_GLOB, false },
		{ "/", NULL, "/", PATTERN_BELOW, false },
		{ "/a/b", NULL, "/a/b", PATTERN_BELOW, false },
		{ "/a/", NULL, "/a/", PATTERN_BELOW, false },
		{ "/a.b/...c/.d", NULL, "/a.b/...c/.d", PATTERN_BELOW, false },
		{ "POST /a", "POST", "/a", PATTERN_BELOW, false },
		{ "POST|PUT\t */x.php   nocase", "POST|PUT", "*/x.php", PATTERN_GLOB, true },
		{ "= /a", NULL, "/a", PATTERN_EXACT, false },
		{ "GET =/a nocase", "GET", "/a", PATTERN_EXACT, true },
		{ "~ ^/a b$", NULL, "^/a b$", PATTERN_REGEX, false },
		{ "M-SEARCH ~^/(?i)x?#\\d+ nocase", "M-SEARCH", "^/(?i)x?#\\d+", PATTERN_REGEX,
			true },
		{ "/nocase", NULL, "/nocase", PATTERN_BELOW, false },
		{ "/100%", NULL, "/100%", PATTERN_BELOW, false },
	};
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(patterns); i++) {
		compose(ini, sizeof ini, "route", "match", patterns[i].value);
		char *said = said_of(ini, NULL);

		assert_row(strstr(said, "match: \"") == NULL, "%s", said);
		free(said);
		struct config *config = loaded(ini);
		const struct config_pattern *pattern = &config->routes[0]->matches[0];

		assert_row(
			pattern->kind == patterns[i].kind && pattern->nocase == patterns[i].nocase,
			"%s", patterns[i].value);
		assert_string_equal(pattern->text, patterns[i].text);
		assert_true((pattern->methods == NULL) == (patterns[i].methods == NULL));
		if (pattern->methods != NULL)
			assert_string_equal(pattern->methods, patterns[i].methods);
		config_free(config);
	}
}

static void
patterns_say_what_is_wrong(void **state)
{
	static const struct {
		const char *value, *said;
	} wrong[] = {
		{ "GET", "no pattern follows the methods; write GET * for all paths" },
		{ "get /a",
			"\"get\" is no method, since those are in capitals, nor a pattern: one "
			"begins "
			"with / or *, or is = /path or ~ expression" },
		{ "GET| /a",
			"\"GET|\" is no list of methods such as GET|POST, nor a pattern: one "
			"begins "
			"with / or *, or is = /path or ~ expression" },
		{ "GET, POST /a",
			"\"GET,\" is no list of methods such as GET|POST, nor a pattern: one "
			"begins "
			"with / or *, or is = /path or ~ expression" },
		{ "GET a",
			"\"a\" is no pattern; one begins with / or *, or is = /path or ~ "
			"expression" },
		{ "= a", "\"a\" does not begin with /" },
		{ "~* ^/api", "without regard to case is written ~ ^/api nocase" },
		{ "GET ~* ^/api", "without regard to case is written ~ ^/api nocase" },
		{ "^~ /api",
			"a path and all below it is written without ^~; the order of routes "
			"decides, and not the kind of pattern" },
		{ "!~ ^/api",
			"there is no \"!\"; let an earlier route take what is not meant, or write "
			"not in front of a condition" },
		{ "/api NOCASE", "\"NOCASE\" at the end is written nocase" },
		{ "~ ^/api NoCase", "\"NoCase\" at the end is written nocase" },
		{ "! /api",
			"\"!\" is no list of methods such as GET|POST, nor a pattern: one begins "
			"with / or *, or is = /path or ~ expression" },
		{ "=", "\"\" does not begin with /" },
		{ "= /a*", "\"= /a*\" is exact, so * would stand for itself; leave out =" },
		{ "~", "no expression follows the ~" },
		{ "/a?b=c", "\"/a?b=c\" has a \"?\", where a path is cut before it is compared" },
		{ "/a#b", "\"/a#b\" has a \"#\", where a path is cut before it is compared" },
		{ "/a%2fb",
			"\"/a%2fb\" has an escape, but paths are decoded before they are compared; "
			"write the character itself" },
		{ "/a//b",
			"\"/a//b\" fits nothing, since //, /. and /.. are resolved before a path "
			"is "
			"compared" },
		{ "//",
			"\"//\" fits nothing, since //, /. and /.. are resolved before a path is "
			"compared" },
		{ "/a/..",
			"\"/a/..\" fits nothing, since //, /. and /.. are resolved before a path "
			"is "
			"compared" },
		{ "*/./x",
			"\"*/./x\" fits nothing, since //, /. and /.. are resolved before a path "
			"is "
			"compared" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++) {
		if (wrong[i].said != NULL)
			assert_refused("route", "match", wrong[i].value, wrong[i].said);
	}
}

static void
routes_say_what_is_wrong(void **state)
{
	static const struct {
		const char *key, *value, *said;
	} wrong[] = {
		{ "limit", "l, l", "\"l\" is named twice" },
		{ "limit", "l,", "an item of the list is empty" },
		{ "limit", "l l", "\"l l\" is no name; a list is separated by commas" },
		{ "cost", "param", "param wants the name of one, such as param key" },
		{ "cost", "param n 100", "\"100\" is no word that can follow here" },
		{ "cost", "param n max", "\"max\" wants a word behind it" },
		{ "cost", "header n nocase",
			"the name of a header fits in any case; leave out nocase" },
		{ "cost", "param n max 0",
			"max \"0\" is no whole number from 1 to 1000000000000000" },
		{ "cost", "header X max 1000000000000001",
			"max \"1000000000000001\" is no whole number from 1 to 1000000000000000" },
		{ "cost", "cookie n",
			"\"cookie n\" is no whole number from 1 to 1000000000000000" },
		{ "headers", "none, x-ratelimit", "none stands alone" },
		{ "headers", "x-ratelimit, x-ratelimit-epoch",
			"x-ratelimit and x-ratelimit-epoch write the same X-RateLimit-Reset, each "
			"in its own way; choose one" },
		{ "headers", "ratelimit-07, x-ratelimit, ratelimit-06",
			"ratelimit, ratelimit-06 and ratelimit-07 write the same RateLimit-Policy, "
			"each in its own way; choose one" },
		{ "headers", "RateLimit",
			"\"RateLimit\" is none of none, x-ratelimit, x-ratelimit-epoch, "
			"ratelimit, ratelimit-06, ratelimit-07; did you mean \"ratelimit\"?" },
		{ "headers", "draft",
			"\"draft\" is none of none, x-ratelimit, x-ratelimit-epoch, ratelimit, "
			"ratelimit-06, ratelimit-07; did you mean \"ratelimit\"?" },
		{ "limit", "none",
			"there is no [limit none]; a route without limits has no such line, or "
			"nothing behind limit =" },
		{ "exempt_ip", "ip ::1",
			"\"ip ::1\": the items of such a list are networks alone; write ::1" },
		{ "headers", "x-ratelimit,", "an item of the list is empty" },
		{ "retry_jitter", "101%",
			"\"101%\" is neither 0 nor a percentage from 0% to 100%" },
		{ "retry_jitter", "%", "\"%\" is neither 0 nor a percentage from 0% to 100%" },
		{ "retry_jitter", "-1%", "\"-1%\" is neither 0 nor a percentage from 0% to 100%" },
		{ "reject_header", "X",
			"\"X\" is no header; write NAME: VALUE, such as "
			"Access-Control-Allow-Origin: *" },
		{ "reject_header", "X Y: z",
			"\"X Y: z\" is no header; write NAME: VALUE, such as "
			"Access-Control-Allow-Origin: *" },
		{ "reject_header", "X:", "the header \"X\" has no value" },
		{ "reject_header", "content-type: text/html",
			"Content-Type is written by weir itself" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("route", wrong[i].key, wrong[i].value, wrong[i].said);
	assert_refused("backend", "server", "unix:/a, unix:/b",
		"\"unix:/a, unix:/b\" has a blank, and an address has none; a second address is a "
		"second line");
}

static void
reject_headers_are_whole_lines(void **state)
{
	struct config *config =
		loaded("[route r]\nmatch = *\nreject_header = X-A:b: c\n"
		       "reject_header = Link:\t</x>; rel=y\n"
		       "headers = x-ratelimit\n[backend b]\nserver = unix:/run/b\n");
	const struct config_route *route = config->routes[0];

	(void)state;
	assert_int_equal(route->reject_header_count, 2);
	assert_string_equal(route->reject_headers[0], "X-A: b: c");
	assert_string_equal(route->reject_headers[1], "Link: </x>; rel=y");
	assert_int_equal(route->headers, HEADERS_X_RATELIMIT);
	config_free(config);
}

static void
costs_headers_and_jitter_are_numbers(void **state)
{
	static const struct {
		const char *cost, *name, *param;
		uint64_t fixed, max;
		enum cost_source source;
	} costs[] = {
		{ "7", NULL, NULL, 7, 7, COST_FIXED },
		{ "param n max 5", "n", NULL, 1, 5, COST_PARAM },
		{ "param Width nocase max 5", "Width nocase", "width", 1, 5, COST_PARAM },
		{ "param filter[n]", "filter[n]", NULL, 1, UINT64_C(1000000000000000), COST_PARAM },
		{ "header X-Cost max 100", "X-Cost", "HTTP_X_COST", 1, 100, COST_HEADER },
	};
	char ini[512];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(costs); i++) {
		(void)snprintf(ini, sizeof ini,
			"[route r]\nmatch = *\ncost = %s\nretry_jitter = 0%%\nown_headers = keep\n"
			"headers = ratelimit-07,x-ratelimit\n[backend b]\nserver = unix:/b\n",
			costs[i].cost);
		struct config *config = loaded(ini);
		const struct config_route *route = config->routes[0];
		const struct config_cost *cost = &route->cost;

		assert_int_equal(cost->source, costs[i].source);
		assert_true(cost->fixed == costs[i].fixed && cost->max == costs[i].max);
		assert_true((cost->name == NULL) == (costs[i].name == NULL) &&
			(cost->param == NULL) == (costs[i].param == NULL));
		if (cost->name != NULL)
			assert_string_equal(cost->name, costs[i].name);
		if (cost->param != NULL)
			assert_string_equal(cost->param, costs[i].param);
		assert_int_equal(route->headers, HEADERS_RATELIMIT_07 | HEADERS_X_RATELIMIT);
		assert_int_equal(route->own_headers, OWN_HEADERS_KEEP);
		assert_int_equal(route->retry_jitter_percent, 0);
		config_free(config);
	}
}

static void
time_zones_are_those_of_the_system(void **state)
{
	static const struct {
		const char *value, *hint;
	} wrong[] = {
		{ "utc", "; did you mean \"UTC\"?" },
		{ "Europe/berlin", "; did you mean \"Europe/Berlin\"?" },
		{ "Europe", "" },
		{ "/etc/localtime", "" },
		{ "../zoneinfo/Europe/Berlin", "" },
		{ "Europe//Berlin", "" },
		{ "zone.tab", "" },
		{ "CEST-2", "" },
	};
	struct config *config = loaded("[weir]\ntimezone = America/Argentina/Buenos_Aires\n"
				       "[route r]\nmatch = *\n[backend b]\nserver = unix:/b\n");
	char start[200];

	(void)state;
	assert_string_equal(config->timezone, "America/Argentina/Buenos_Aires");
	config_free(config);
	for (size_t i = 0; i < LENGTH_OF(wrong); i++) {
		const char *hint = wrong[i].hint;

		(void)snprintf(start, sizeof start,
			"there is no time zone \"%s\" below /usr/share/zoneinfo%s", wrong[i].value,
			hint);
		if (hint[0] != '\0')
			assert_refused("weir", "timezone", wrong[i].value, start);
		else
			assert_refused_so("weir", "timezone", wrong[i].value, start);
	}
}

static void
reject_pages_are_read_at_once(void **state)
{
	static const struct {
		const char *name;
		struct slice content;
		const char *type, *said;
	} pages[] = {
		{ "a.html", { "<p>\xc3\xa4", 5 }, "text/html; charset=utf-8", NULL },
		{ "a.json", { "{}", 2 }, "application/json", NULL },
		{ "a.txt", { "Later.\n", 7 }, "text/plain; charset=utf-8", NULL },
		{ "a.htm", { "x", 1 }, NULL, "its name ends in none of .html, .json and .txt" },
		{ ".txt", { "x", 1 }, "text/plain; charset=utf-8", NULL },
		{ "b.txt", { "", 0 }, NULL, "it is empty" },
		{ "c.txt", { "a\nb\n\xe4\n", 6 }, NULL, "its line 3 is no UTF-8" },
	};
	char path[PATH_MAX], said[2 * PATH_MAX], *large = calloc(1, 65537);

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(pages); i++) {
		char ini[2 * PATH_MAX];

		write_file(pages[i].name, pages[i].content);
		(void)snprintf(path, sizeof path, "DIR/%s", pages[i].name);
		(void)snprintf(said, sizeof said, "%s/%s cannot be sent: %s", load_directory,
			pages[i].name, pages[i].said == NULL ? "" : pages[i].said);
		if (pages[i].said != NULL) {
			assert_refused("route", "reject_page", path, said);
			continue;
		}
		compose(ini, sizeof ini, "route", "reject_page", path);
		struct config *config = loaded(ini);

		assert_slice(config->routes[0]->reject_page, pages[i].content);
		assert_string_equal(config->routes[0]->reject_page_type, pages[i].type);
		config_free(config);
	}
	assert_non_null(large);
	memset(large, 'x', 65537);
	write_file("d.txt", slice_make(large, 65537));
	(void)snprintf(said, sizeof said,
		"%s/d.txt cannot be read by user id %u: it is larger than 65536 bytes",
		load_directory, (unsigned)geteuid());
	assert_refused("route", "reject_page", "DIR/d.txt", said);
	free(large);
}

/* ---- password files ---- */

static void
a_password_is_the_only_line_of_its_file(void **state)
{
	static const struct {
		struct slice content;
		const char *password, *said;
	} files[] = {
		{ { "geheim\n", 7 }, "geheim", NULL },
		{ { "geheim", 6 }, "geheim", NULL },
		{ { " ge ; heim \r\n", 13 }, " ge ; heim ", NULL },
		{ { "", 0 }, NULL, "it is empty" },
		{ { "\n", 1 }, NULL, "it is empty" },
		{ { "a\nb\n", 4 }, NULL, "it has more than one line" },
		{ { "a\0b\n", 4 }, NULL, "it holds a NUL byte" },
	};
	char ini[2 * PATH_MAX], expected[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(files); i++) {
		struct config *config;

		write_file("secret", files[i].content);
		assert_int_equal(chmod("secret", 0600), 0);
		compose(ini, sizeof ini, "redis", "password_file", "DIR/secret");
		char *said = said_of(ini, &config);

		(void)snprintf(expected, sizeof expected,
			"weir.ini:2: [redis] password_file: %s/secret holds no password: %s\n",
			load_directory, files[i].said == NULL ? "" : files[i].said);
		assert_string_equal(said, files[i].said == NULL ? "" : expected);
		if (config != NULL)
			assert_string_equal(config->redis_password, files[i].password);
		config_free(config);
		free(said);
	}
	assert_int_equal(unlink("secret"), 0);
	(void)snprintf(expected, sizeof expected,
		"%s/secret cannot be read by user id %u: No such file or directory", load_directory,
		(unsigned)geteuid());
	assert_refused("redis", "password_file", "DIR/secret", expected);
}

/* A request's path is held against it as it stands. */
static void
a_root_is_a_plain_path(void **state)
{
	static const char *const roots[] = { "/usr//lib", "/usr/./lib", "/usr/../lib", "/usr/..",
		"/usr/.", "//usr" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(roots); i++) {
		char ini[200], said[300];

		(void)snprintf(ini, sizeof ini,
			"[backend b]\ntype = cgi\nroot = %s\n[route r]\nmatch = *\n", roots[i]);
		(void)snprintf(said, sizeof said,
			"weir.ini:3: [backend b] root: \"%s\" has //, . or .. in it; write the "
			"plain path of that directory\n",
			roots[i]);
		assert_said(ini, said);
	}
	assert_said("[backend b]\ntype = cgi\nroot = /usr/..x/.y/\n[route r]\nmatch = *\n", "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_row_takes_a_good_value_and_refuses_a_bad_one),
		cmocka_unit_test(no_row_of_the_table_is_left_out),
		cmocka_unit_test(a_default_is_what_its_text_says),
		cmocka_unit_test(listen_has_a_mode_an_owner_and_a_group),
		cmocka_unit_test(threads_can_follow_the_processors),
		cmocka_unit_test(log_goes_to_one_of_three),
		cmocka_unit_test(patterns_have_methods_a_kind_and_a_case),
		cmocka_unit_test(patterns_say_what_is_wrong),
		cmocka_unit_test(routes_say_what_is_wrong),
		cmocka_unit_test(reject_headers_are_whole_lines),
		cmocka_unit_test(costs_headers_and_jitter_are_numbers),
		cmocka_unit_test(time_zones_are_those_of_the_system),
		cmocka_unit_test(reject_pages_are_read_at_once),
		cmocka_unit_test(a_password_is_the_only_line_of_its_file),
		cmocka_unit_test(a_root_is_a_plain_path),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
