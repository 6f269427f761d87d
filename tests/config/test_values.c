/* Values, kind by kind; and every row of the table of options with a good and a bad one. */
#include "load.h"

/* ---- every row ---- */

static const struct {
	const char *section, *key, *good, *bad;
	const char *said; /* of the bad one; NULL: it is base that says it */
} rows[] = {
	{ "weir", "enforce", "no", "on", "\"on\" is none of yes, no; did you mean \"no\"?" },
	{ "weir", "listen", "unix:/run/weir/a.sock mode 0600 owner weir group adm", "/run/a.sock",
		NULL },
	{ "weir", "threads", "64", "65", "\"65\" is neither a number from 1 to 64 nor auto" },
	{ "weir", "max_in_flight", "1", "0", "\"0\" is no whole number from 1 to 1000000" },
	{ "weir", "max_connections", "1000000", "1000001",
		"\"1000001\" is no whole number from 1 to 1000000" },
	{ "weir", "max_head", "4k", "2m", "\"2m\" is no size from 4k to 1m" },
	{ "weir", "max_params", "16", "15", "\"15\" is no whole number from 16 to 100000" },
	{ "weir", "head_timeout", "1ms", "2h", "\"2h\" is no duration from 1 ms to 1 h" },
	{ "weir", "body_timeout", "1d", "10", NULL },
	{ "weir", "drain", "30s", "0s", NULL },
	{ "weir", "hash_key_file", "secret", "hash.key",
		"\"hash.key\" is no absolute path; begin with /" },
	{ "weir", "metrics", "unix:/run/weir/status.sock", "9180", NULL },
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
	{ "redis", "server", "unix:/run/redis/redis-server.sock", "tls:redis:6379",
		"tls: is not supported by this version; write tcp:HOST:PORT or unix:/PATH" },
	{ "redis", "username", "weir\npassword_file = secret", "we ir",
		"\"we ir\" is more than one word" },
	{ "redis", "password_file", "secret", "none",
		"\"none\" is no absolute path; begin with /" },
	{ "redis", "database", "2147483647", "-1",
		"\"-1\" is no whole number from 0 to 2147483647" },
	{ "redis", "deadline", "1ms", "2m", "\"2m\" is no duration from 1 ms to 1 min" },
	{ "redis", "prefix", "w",
		"{weir}:", "braces in \"{weir}:\" would put all keys on one node of a cluster" },
	{ "limit", "identity", "user, ip/24/48", "adress",
		"\"adress\" is none of ip, user, header, all" },
	{ "limit", "on_missing", "share", "shared",
		"\"shared\" is none of skip, reject, share; did you mean \"share\"?" },
	{ "limit", "policy", "3/s burst 10 token-bucket name short", "3", NULL },
	{ "limit", "enforce", "no", "No", "\"No\" is none of yes, no; did you mean \"no\"?" },
	{ "backend", "type", "fastcgi", "fcgi", "\"fcgi\" is none of fastcgi, none" },
	{ "backend", "server", "tcp:[::1]:9000", "tcp:::1:9000", NULL },
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
	{ "route", "cost", "2", "0", "\"0\" is no whole number from 1 to 1000000000000000" },
	{ "route", "store_down", "admit", "open", "\"open\" is none of local, admit, reject" },
	{ "route", "headers", "x-ratelimit-epoch", "x-rate-limit",
		"\"x-rate-limit\" is none of none, x-ratelimit, x-ratelimit-epoch; did you mean "
		"\"x-ratelimit\"?" },
	{ "route", "reject_header", "Access-Control-Allow-Origin: *", "Retry-After: 1",
		"Retry-After is written by weir itself" },
};

/* A configuration in which that line stands in line 2, and where nothing else is wrong. "secret"
 * stands for a file that holds one. */
static void
compose(char *out, size_t size, const char *section, const char *key, const char *value)
{
	const bool is_limit = strcmp(section, "limit") == 0,
		   is_route = strcmp(section, "route") == 0;
	const bool is_backend = strcmp(section, "backend") == 0;
	char secret[PATH_MAX + 32], username[PATH_MAX + 64];

	(void)snprintf(secret, sizeof secret, "%s/secret", load_directory);
	if (strcmp(value, "secret") == 0)
		value = secret;
	if (strstr(value, "\npassword_file = secret") != NULL) {
		(void)snprintf(username, sizeof username, "weir\npassword_file = %s", secret);
		value = username;
	}
	(void)snprintf(out, size, "[%s%s]\n%s = %s\n%s%s%s%s", section,
		is_limit             ? " l"
			: is_route   ? " r"
			: is_backend ? " b"
				     : "",
		key, value,
		is_limit           ? "policy = 5/1m\n"
			: is_route ? "match = *\n"
				   : "",
		is_backend ? "server = unix:/run/b\n" : "[backend b]\nserver = unix:/run/b\n",
		is_limit ? "" : "[limit l]\npolicy = 5/1m\n",
		is_route ? "" : "[route r]\nmatch = *\nlimit = l\n");
}

static void
every_row_takes_a_good_value_and_refuses_a_bad_one(void **state)
{
	char ini[2 * PATH_MAX], start[200];

	(void)state;
	write_file("secret", SLICE("geheim\n"));
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
	assert_int_equal(config->limits[0]->identities[0].source, IDENTITY_IP);
	assert_int_equal(config->limits[0]->identities[0].prefix_4, 32);
	assert_int_equal(config->limits[0]->identities[0].prefix_6, 64);
	assert_int_equal(config->limits[0]->on_missing, ON_MISSING_UNSET);
	assert_true(config->limits[0]->enforce);
	assert_int_equal(config->backends[0]->type, BACKEND_FASTCGI);
	assert_int_equal(config->backends[0]->max_in_flight, 256);
	assert_int_equal(config->backends[0]->connect_timeout_us, US_PER_S);
	assert_int_equal(config->backends[0]->idle_timeout_us, 600 * US_PER_S);
	assert_int_equal(route->cost, 1);
	assert_int_equal(route->store_down, STORE_DOWN_LOCAL);
	assert_int_equal(route->headers, 0);
	assert_int_equal(route->reject_header_count, 0);
	config_free(config);
}

/* ---- the values that say more than one thing ---- */

static void
assert_refused(const char *section, const char *key, const char *value, const char *reason)
{
	char ini[2 * PATH_MAX], expected[512];

	compose(ini, sizeof ini, section, key, value);
	char *said = said_of(ini, NULL);

	(void)snprintf(expected, sizeof expected, "%s: %s\n", key, reason);
	assert_row(strncmp(said, "weir.ini:2: [", 13) == 0 && strstr(said, expected) != NULL,
		"%swas told:\n%sand not:\n%s", ini, said, expected);
	free(said);
}

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
policies_have_a_rate_a_burst_and_a_name(void **state)
{
	struct config *config =
		loaded("[limit l]\npolicy = 10/s burst 60\npolicy = 100/10m\n"
		       "policy = 7/1h name hourly token-bucket burst 1000000\n"
		       "[backend b]\nserver = unix:/run/x\n[route r]\nmatch = *\nlimit = l\n");
	const struct config_policy *policies = config->limits[0]->policies;

	(void)state;
	assert_int_equal(config->limits[0]->policy_count, 3);
	assert_string_equal(policies[0].name, "1s");
	assert_int_equal(policies[0].burst, 60);
	assert_int_equal(policies[0].rate.count, 10);
	assert_int_equal(policies[0].rate.window_us, US_PER_S);
	assert_int_equal(policies[0].place.line, 2);
	assert_string_equal(policies[1].name, "10m");
	assert_int_equal(policies[1].burst, 100);
	assert_string_equal(policies[2].name, "hourly");
	assert_true(policies[2].burst == 1000000);
	config_free(config);
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
		{ "10/1s burst 5 burst 5", "\"burst\" is given twice" },
		{ "10/1s brust 5",
			"\"brust\" is no word that can follow here; did you mean \"burst\"?" },
		{ "10/1s name a/b",
			"\"a/b\" is no name; a name is one word of letters, digits, \"-\", \"_\" "
			"and "
			"\".\"" },
		{ "10/1s, 50/1d", "a second policy is a second line, without a comma" },
		{ "10/min", "the window \"min\" is written 10/m" },
		{ "10/hour", "the window \"hour\" is written 10/h" },
		{ "1000/day",
			"the calendar window \"/day\" is not supported by this version; write "
			"1000/1d for a bucket that refills evenly" },
		{ "1000/month",
			"the calendar window \"/month\" is not supported by this version; write "
			"1000/30d for a bucket that refills evenly" },
		{ "1000/day calendar", "\"calendar\" is not supported by this version" },
		{ "10/1s sliding-window", "\"sliding-window\" is not supported by this version" },
		{ "10/1s sliding-log", "\"sliding-log\" is not supported by this version" },
		{ "10/1s shards 4", "\"shards\" is not supported by this version" },
		{ "10/1s shadow", "\"shadow\" is not supported by this version" },
		{ "concurrent 2 lease 10m", "\"concurrent\" is not supported by this version" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("limit", "policy", wrong[i].value, wrong[i].said);
}

static void
identities_are_a_list(void **state)
{
	struct config *config =
		loaded("[limit l]\npolicy = 5/1m\n"
		       "identity = header X-Api-Key_2 ,\theader content-type,user , ip/24/48\n"
		       "[backend b]\nserver = unix:/run/x\n[route r]\nmatch = *\nlimit = l\n");
	const struct config_limit *limit = config->limits[0];

	(void)state;
	assert_int_equal(limit->identity_count, 4);
	assert_int_equal(limit->identities[0].source, IDENTITY_HEADER);
	assert_string_equal(limit->identities[0].name, "X-Api-Key_2");
	assert_string_equal(limit->identities[0].param, "HTTP_X_API_KEY_2");
	assert_string_equal(limit->identities[1].param, "CONTENT_TYPE");
	assert_int_equal(limit->identities[2].source, IDENTITY_USER);
	assert_null(limit->identities[2].name);
	assert_int_equal(limit->identities[3].prefix_4, 24);
	assert_int_equal(limit->identities[3].prefix_6, 48);
	config_free(config);
}

static void
identities_say_what_is_wrong(void **state)
{
	static const char bits[] =
		"wants the bits for IPv4, 1 to 32, and for IPv6, 1 to 128, such as "
		"ip/24/48";
	static const char *const wrong_bits[] = { "ip/", "ip/24", "ip/24/", "ip//48", "ip/33/64",
		"ip/24/129", "ip/0/64", "ip/24/48/2", "ip/a/b" };
	static const struct {
		const char *value, *said;
	} wrong[] = {
		{ "ip, user",
			"\"user\" is never asked for, since what stands before it is always "
			"there" },
		{ "user,, ip", "an item of the list is empty" },
		{ "user,", "an item of the list is empty" },
		{ "header", "header wants the name of one, such as header X-API-Key" },
		{ "header X:Y", "header wants the name of one, such as header X-API-Key" },
		{ "header X-API-Key known, ip", "\"known\" is not supported by this version" },
		{ "header X-API-Key ip",
			"\"ip\" follows the header's name; a list is separated by commas" },
		{ "user ip", "\"ip\" follows \"user\"; a list is separated by commas" },
		{ "cookie sid, ip", "\"cookie\" is not supported by this version" },
		{ "host", "\"host\" is not supported by this version" },
		{ "ip+path",
			"\"ip+path\": joining identities by + is not supported by this version" },
		{ "usr", "\"usr\" is none of ip, user, header, all; did you mean \"user\"?" },
	};
	char said[200];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(wrong); i++)
		assert_refused("limit", "identity", wrong[i].value, wrong[i].said);
	for (size_t i = 0; i < LENGTH_OF(wrong_bits); i++) {
		(void)snprintf(said, sizeof said, "\"%s\" %s", wrong_bits[i], bits);
		assert_refused("limit", "identity", wrong_bits[i], said);
	}
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
		{ "cost", "param n max 100",
			"a cost by param is not supported by this version; write a number" },
		{ "headers", "none, x-ratelimit", "none stands alone" },
		{ "headers", "x-ratelimit, x-ratelimit-epoch",
			"x-ratelimit and x-ratelimit-epoch write the same X-RateLimit-Reset, in "
			"different units; choose one" },
		{ "headers", "ratelimit", "\"ratelimit\" is not supported by this version" },
		{ "headers", "x-ratelimit,",
			"\"\" is none of none, x-ratelimit, x-ratelimit-epoch" },
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
	assert_refused("backend", "type", "cgi", "\"cgi\" is not supported by this version");
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
		compose(ini, sizeof ini, "redis", "password_file", "secret");
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
	assert_refused("redis", "password_file", "secret", expected);
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
		cmocka_unit_test(policies_have_a_rate_a_burst_and_a_name),
		cmocka_unit_test(policies_say_what_is_wrong),
		cmocka_unit_test(identities_are_a_list),
		cmocka_unit_test(identities_say_what_is_wrong),
		cmocka_unit_test(patterns_have_methods_a_kind_and_a_case),
		cmocka_unit_test(patterns_say_what_is_wrong),
		cmocka_unit_test(routes_say_what_is_wrong),
		cmocka_unit_test(reject_headers_are_whole_lines),
		cmocka_unit_test(a_password_is_the_only_line_of_its_file),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
