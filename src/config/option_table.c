/*
 * The rows, in the order of the manual. `help` is a sentence for the manual and for the comments of
 * the sample; what a value must look like is its syntax. Limits of numbers are wide: they keep out
 * what cannot be meant, not what is unusual.
 */
#include "options.h"
#include "values.h"

static const struct word log_levels[] = {
	{ "error", LOG_LEVEL_ERROR },
	{ "warning", LOG_LEVEL_WARN },
	{ "info", LOG_LEVEL_INFO },
	{ "debug", LOG_LEVEL_DEBUG },
	{ NULL, 0 },
};

static const struct word log_formats[] = {
	{ "text", LOG_FORMAT_TEXT },
	{ "json", LOG_FORMAT_JSON },
	{ NULL, 0 },
};

static const struct word on_missing_words[] = {
	{ "skip", ON_MISSING_SKIP },
	{ "reject", ON_MISSING_REJECT },
	{ "share", ON_MISSING_SHARE },
	{ NULL, 0 },
};

static const struct word backend_types[] = {
	{ "fastcgi", BACKEND_FASTCGI },
	{ "cgi", BACKEND_CGI },
	{ "scgi", BACKEND_SCGI },
	{ "none", BACKEND_NONE },
	{ NULL, 0 },
};

static const struct word own_headers_words[] = {
	{ "replace", OWN_HEADERS_REPLACE },
	{ "keep", OWN_HEADERS_KEEP },
	{ NULL, 0 },
};

static const struct word asking_fronts[] = {
	{ "auto", ASKING_AUTO },
	{ "lighttpd", ASKING_LIGHTTPD },
	{ "mod_fcgid", ASKING_MOD_FCGID },
	{ "mod_authnz", ASKING_MOD_AUTHNZ },
	{ "nginx", ASKING_NGINX },
	{ NULL, 0 },
};

static const struct word store_down_words[] = {
	{ "local", STORE_DOWN_LOCAL },
	{ "admit", STORE_DOWN_ADMIT },
	{ "reject", STORE_DOWN_REJECT },
	{ NULL, 0 },
};

#define MIB (UINT64_C(1024) * 1024)
#define GIB (1024 * MIB)
#define MS ((uint64_t)US_PER_MS)
#define MINUTE (60 * (uint64_t)US_PER_S)
#define DAY ((uint64_t)US_PER_DAY)

/* Where a row's value goes: into one member of the section's struct, into a list that grows by one
 * for each line, or wherever the parser puts it, line by line if it APPENDS. */
#define MEMBER(kind, type, name, member, parser)                                                   \
	IN(kind), .text.key = name, .offset = offsetof(struct type, member), .parse = parser
#define LIST(kind, type, name, list, count, parser)                                                \
	IN(kind), .text.key = name, .text.repeatable = true,                                       \
		  .offset = offsetof(struct type, list),                                           \
		  .count_offset = offsetof(struct type, count),                                    \
		  .item_size = sizeof *((struct type *)NULL)->list, .parse = parser
#define WHOLE(kind, name, parser) IN(kind), .text.key = name, .parse = parser
#define APPENDS(kind, name, parser)                                                                \
	IN(kind), .text.key = name, .text.repeatable = true, .parse = parser
#define RESTART .text.needs_restart = true
#define UNUSUAL(more_than, leads_to) .usual_max = more_than, .unusual = leads_to
#define SAYS(how, unless_given, what)                                                              \
	.text.syntax = how, .text.default_text = unless_given, .text.help = what

#define IN(kind) .section = SECTION_##kind, .text.section = NAME_##kind
#define NAME_WEIR "weir"
#define NAME_MEMORY "memory"
#define NAME_REDIS "redis"
#define NAME_LIMIT "limit"
#define NAME_OVERRIDE "override"
#define NAME_BACKEND "backend"
#define NAME_ROUTE "route"

#define WEIR(key, member, parser) MEMBER(WEIR, config, key, member, parser)
#define MEMORY(key, member, parser) MEMBER(MEMORY, config, key, member, parser)
#define REDIS(key, member, parser) MEMBER(REDIS, config, key, member, parser)
#define LIMIT(key, member, parser) MEMBER(LIMIT, config_limit, key, member, parser)
#define OVERRIDE(key, member, parser) MEMBER(OVERRIDE, config_override, key, member, parser)
#define BACKEND(key, member, parser) MEMBER(BACKEND, config_backend, key, member, parser)
#define ROUTE(key, member, parser) MEMBER(ROUTE, config_route, key, member, parser)

/* clang-format off */
const struct option option_rows[] = {
	{ WEIR("enforce", enforce, value_bool),
		SAYS("yes | no", "yes",
			"no: every limit decides, counts and logs, and lets pass.") },
	{ LIST(WEIR, config, "listen", listens, listen_count, value_listen), .max = 64, RESTART,
		SAYS("ADDRESS [mode 0660] [owner USER] [group GROUP]", "",
			"Where the web server connects, such as unix:" WEIR_RUNDIR
			"/weir.sock; its group is " WEIR_WEB_GROUP " if none is given. Not "
			"used when systemd, lighttpd or mod_fcgid hands its socket over.") },
	{ WEIR("threads", threads, value_threads), .max = 64, RESTART,
		SAYS("N | auto", "1",
			"Event loops; one serves thousands of requests. auto: one for each "
			"processor, 64 at the most.") },
	{ WHOLE(WEIR, "trusted_proxies", value_trusted_proxies),
		SAYS("NETWORK, @/PATH, ...", "",
			"Proxies in front of the web server, whose X-Forwarded-For is "
			"believed. Empty if the web server sets REMOTE_ADDR itself "
			"(mod_remoteip, realip, mod_extforward).") },
	{ WEIR("timezone", timezone, value_timezone), RESTART,
		SAYS("ZONE", "UTC",
			"Of calendar quotas: when a day and a month begin, such as "
			"Europe/Berlin.") },
	{ WEIR("max_in_flight", max_in_flight, value_uint), .min = 1, .max = 1000000,
		SAYS("N", "2048",
			"Requests at once; what is beyond gets 503 with Retry-After.") },
	{ WEIR("max_connections", max_connections, value_uint), .min = 1, .max = 1000000,
		SAYS("N", "16384",
			"Connections of web servers at once; beyond it the longest idle one is "
			"closed, or new ones wait.") },
	{ WEIR("max_head", max_head, value_size), .min = 4096, .max = MIB,
		SAYS("SIZE", "256k",
			"All FastCGI parameters of a request together; what is beyond gets "
			"431.") },
	{ WEIR("max_params", max_params, value_uint), .min = 16, .max = 100000,
		SAYS("N", "1000",
			"FastCGI parameters of a request; what is beyond gets 431.") },
	{ WEIR("head_timeout", head_timeout_us, value_duration), .min = MS, .max = 60 * MINUTE,
		UNUSUAL(MINUTE, "a web server sends the parameters at once, and one that does not "
			"keeps a connection so long"),
		SAYS("DURATION", "10s",
			"For the parameters of a request to arrive.") },
	{ WEIR("body_timeout", body_timeout_us, value_duration), .min = MS, .max = DAY,
		SAYS("DURATION", "60s",
			"Silence inside the body of a request.") },
	{ WEIR("drain", drain_us, value_duration), .min = MS, .max = 60 * MINUTE,
		UNUSUAL(85 * (uint64_t)US_PER_S, "systemd ends a service 90 s after it was told "
			"to stop; set TimeoutStopSec of weir.service to more than this"),
		SAYS("DURATION", "7s",
			"For requests to end when weir is stopped; then they are cut.") },
	{ WEIR("spool_directory", spool_directory, value_path),
		SAYS("PATH", "/var/tmp",
			"Where bodies are stored whose length is not known (spool of a backend), "
			"in files without a name.") },
	{ WEIR("hash_key_file", hash_key_file, value_path),
		SAYS("PATH", "",
			"A secret for the hashes of identities, the same on all hosts: who "
			"can read Redis cannot try out API keys.") },
	{ WHOLE(WEIR, "metrics", value_metrics), RESTART,
		SAYS("ADDRESS", "",
			"Where /metrics and /healthz are served, such as "
			"tcp:127.0.0.1:9180 or unix:" WEIR_RUNDIR "/status.sock.") },
	{ WHOLE(WEIR, "log", value_log), RESTART,
		SAYS("stderr | syslog | file:PATH", "stderr",
			"Where the log goes.") },
	{ WEIR("log_level", log_level, value_word), .words = log_levels,
		SAYS("error | warning | info | debug", "info",
			"The least important line that is logged.") },
	{ WEIR("log_format", log_format, value_word), .words = log_formats,
		SAYS("text | json", "text",
			"How a line is written.") },
	{ WEIR("reject_log", reject_log, value_path), RESTART,
		SAYS("PATH", "",
			"A file of its own for rejected requests, as fail2ban reads it. "
			"Without it they are in the log.") },

	{ MEMORY("size", memory_size, value_size), .min = MIB, .max = 64 * GIB, RESTART,
		SAYS("SIZE", "16m",
			"Of the table of counters on this host: all there is without "
			"[redis], the stand-in while Redis is away. A file that is there "
			"keeps its size.") },
	{ MEMORY("state", memory_state, value_path), RESTART,
		SAYS("PATH", "",
			"The file of that table, shared by all weir processes that name the "
			"same one. Without it a place below " WEIR_RUNDIR " is looked for, "
			"which a reboot empties.") },

	{ REDIS("server", redis_server, value_redis_server),
		SAYS("ADDRESS", "tcp:127.0.0.1:6379",
			"tcp:HOST:PORT, unix:PATH or tls:HOST:PORT. The section alone, even "
			"empty, makes all hosts that name the same Redis share their "
			"counters.") },
	{ WHOLE(REDIS, "sentinel", value_sentinel),
		SAYS("ADDRESS, ...", "",
			"Instead of server: the sentinels that know where the master is, all "
			"with tcp: or all with tls:, as the master has it then.") },
	{ REDIS("master", redis_master, value_master),
		SAYS("NAME", "",
			"Of the master, as the sentinels know it.") },
	{ REDIS("sentinel_username", redis_sentinel_username, value_username),
		SAYS("NAME", "",
			"Of an ACL of the sentinels; needs sentinel_password_file.") },
	{ REDIS("sentinel_password_file", redis_sentinel_password, value_password_file),
		SAYS("PATH", "",
			"A file with the sentinels' password on its only line.") },
	{ WHOLE(REDIS, "cluster", value_cluster),
		SAYS("ADDRESS, ...", "",
			"Instead of server: any few servers of a Redis Cluster, all with "
			"tcp: or all with tls:, as the others are reached then.") },
	{ REDIS("username", redis_username, value_username),
		SAYS("NAME", "",
			"Of a Redis ACL; needs password_file.") },
	{ REDIS("password_file", redis_password, value_password_file),
		SAYS("PATH", "",
			"A file with the password on its only line.") },
	{ REDIS("database", redis_database, value_uint), .max = INT32_MAX,
		SAYS("N", "0",
			"SELECT is sent only if it is not 0.") },
	{ REDIS("deadline", redis_deadline_us, value_duration), .min = MS, .max = MINUTE,
		UNUSUAL((uint64_t)US_PER_S, "while Redis does not answer, requests wait so long "
			"before store_down decides; Redis takes about 1 ms, and 150ms is usual"),
		SAYS("DURATION", "150ms",
			"Of a whole decision: resolving, connecting, login, script, retry. "
			"Past it, store_down decides.") },
	{ REDIS("prefix", redis_prefix, value_prefix),
		SAYS("TEXT", "weir:",
			"What the keys in Redis begin with.") },
	{ REDIS("tls_ca", redis_tls_ca, value_path),
		SAYS("PATH", "",
			"With tls: addresses, the certificates of the CAs that are trusted, "
			"in PEM; without it, those that the system trusts.") },
	{ REDIS("tls_cert", redis_tls_cert, value_path),
		SAYS("PATH", "",
			"A client certificate in PEM, if the server wants one; needs "
			"tls_key.") },
	{ REDIS("tls_key", redis_tls_key, value_path),
		SAYS("PATH", "",
			"Its key in PEM, without a passphrase.") },
	{ REDIS("tls_name", redis_tls_name, value_tls_name),
		SAYS("NAME", "",
			"What the server's certificate must be for, if that is not the host "
			"of the address.") },

	{ WHOLE(LIMIT, "identity", value_identity),
		SAYS("SOURCE[+SOURCE], ...", "ip",
			"Who is counted: the first of the list that the request has. ip "
			"(IPv6 by /64; ip/24/48: bits that count), user, header NAME, "
			"cookie NAME, param NAME [nocase], env NAME, host, path, backend, route, "
			"all. + joins; known behind it: only values that an override "
			"names.") },
	{ LIMIT("on_missing", on_missing, value_word), .words = on_missing_words,
		SAYS("skip | reject | share", "",
			"For a request that has none of the identities: not limited, "
			"rejected, or all such requests share one bucket. To be said unless "
			"the list ends in what is always there, such as ip.") },
	{ LIST(LIMIT, config_limit, "policy", policies, policy_count, value_policy), .max = 16,
		SAYS("COUNT/WINDOW [burst N] [ALGORITHM] [shards N] [name NAME] [shadow] | "
			"concurrent N [lease 10m] [name NAME] [shadow]", "",
			"How much is admitted, such as 10/1s burst 60: 60 at once, then 10 "
			"a second. All policies of a limit must admit. Algorithms: "
			"token-bucket, sliding-window, sliding-log, calendar (/day or "
			"/month). concurrent: requests at a time.") },
	{ LIMIT("enforce", enforce, value_bool),
		SAYS("yes | no", "yes",
			"no: this limit decides, counts and logs, and lets pass.") },
	{ LIMIT("max_identities", max_identities, value_uint), .min = 1, .max = 1000000000,
		SAYS("N", "100000",
			"Identities that this gateway lets the store remember; those beyond "
			"share one bucket, which is logged.") },
	{ LIMIT("local_cap", local_cap, value_local_cap),
		SAYS("COUNT/WINDOW [burst N]", "",
			"A bucket in each process that is asked before the store, such as "
			"200/1s burst 400.") },

	{ OVERRIDE("limit", limit, value_limit),
		SAYS("NAME", "",
			"The limit that this is an exception from.") },
	{ APPENDS(OVERRIDE, "for", value_for), .max = 1000,
		SAYS("ip NETWORK, ... | user NAME, ... | header NAME VALUE, ... | SOURCE @/PATH", "",
			"Whom it is for: requests with one of these values, also of "
			"cookie, param and env. @ names a file of values, one a line; "
			"sha256:HEX stands for a value that is not to be shown.") },
	{ LIST(OVERRIDE, config_override, "policy", policies, policy_count, value_policy), .max = 16,
		SAYS("as in [limit]", "",
			"Instead of the limit's policy of the same name; the others stay.") },
	{ OVERRIDE("exempt", exempt, value_bool),
		SAYS("yes | no", "no",
			"yes: they are not counted by this limit.") },
	{ OVERRIDE("block", block, value_bool),
		SAYS("yes | no", "no",
			"yes: they are answered 403.") },

	{ BACKEND("type", type, value_word), .words = backend_types,
		SAYS("fastcgi | scgi | cgi | none", "fastcgi",
			"What the application speaks. cgi: a program is started for each "
			"request. none: the web server only asks and serves the request itself "
			"(authorizer, auth_request).") },
	{ LIST(BACKEND, config_backend, "listen", listens, listen_count, value_listen), .max = 64, RESTART,
		SAYS("ADDRESS [mode 0660] [owner USER] [group GROUP]", "",
			"As in [weir]: what arrives here goes to this backend, unless its route "
			"names another one.") },
	{ LIST(BACKEND, config_backend, "server", servers, server_count, value_address), .max = CONFIG_SERVERS_MAX,
		SAYS("ADDRESS", "",
			"Where admitted requests go. Of several, the least busy; one that "
			"fails is set aside and comes back.") },
	{ BACKEND("program", program, value_path),
		SAYS("/PATH", "",
			"Of type cgi: the program that is started for each request.") },
	{ BACKEND("root", root, value_root),
		SAYS("/PATH", "",
			"Of type cgi: any program below this directory that SCRIPT_FILENAME "
			"names, or DOCUMENT_ROOT with SCRIPT_NAME.") },
	{ LIST(BACKEND, config_backend, "env", env, env_count, value_env), .max = 100,
		SAYS("NAME=VALUE", "",
			"Of type cgi: a variable of the program's environment; it goes before "
			"one of the request.") },
	{ BACKEND("max_in_flight", max_in_flight, value_uint), .min = 1, .max = 1000000,
		SAYS("N", "256",
			"Requests at once; what is beyond gets 503. More than the "
			"application's processes: the others wait in its socket.") },
	{ BACKEND("connect_timeout", connect_timeout_us, value_duration), .min = MS,
		.max = 10 * MINUTE,
		UNUSUAL(MINUTE, "while a server does not take connections, requests wait so long "
			"before the next is tried"),
		SAYS("DURATION", "1s",
			"For a server to take the connection.") },
	{ BACKEND("idle_timeout", idle_timeout_us, value_duration), .min = MS, .max = 30 * DAY,
		SAYS("DURATION", "10m",
			"Silence from the application.") },
	{ BACKEND("keep_idle", keep_idle, value_uint), .min = 0, .max = 10000,
		SAYS("N", "0",
			"Of type fastcgi: connections that are kept for the next request, for 3 "
			"seconds. Each occupies a child of php-fpm meanwhile: fewer than its "
			"children, by all gateways together.") },
	{ BACKEND("spool", spool, value_size), .min = 0, .max = 1024 * GIB,
		SAYS("SIZE", "64m",
			"The largest body that is taken without its length (an upload in chunks): "
			"it is stored first, since applications read no body of unknown length. "
			"What is beyond gets 413; 0: all such bodies get 411.") },

	{ LIST(ROUTE, config_route, "match", matches, match_count, value_pattern), .max = 1000,
		SAYS("[METHOD|METHOD] PATTERN [nocase]", "",
			"By the URL's path. /path fits itself and all below it, = /path "
			"only itself, * any characters, ~ a regular expression.") },
	{ LIST(ROUTE, config_route, "script", scripts, script_count, value_pattern), .max = 1000,
		SAYS("[METHOD|METHOD] PATTERN [nocase]", "",
			"By the script that the web server chose, whatever the URL was. "
			"Prefer it for PHP and CGI.") },
	{ LIST(ROUTE, config_route, "when", whens, when_count, value_when), .max = 100,
		SAYS("[not] SOURCE [PATTERN] [nocase]", "",
			"What else must hold, all of it: header NAME, cookie NAME, param "
			"NAME, env NAME, user, each with a value or without, or ip NETWORK, "
			"... A client writes headers: use them to add limits.") },
	{ APPENDS(ROUTE, "host", value_host), .max = 1000,
		SAYS("HOST, ...", "",
			"The host that the client names, such as example.org or "
			"*.example.org. It may choose a limit, never a backend.") },
	{ WHOLE(ROUTE, "exempt_ip", value_exempt_ip),
		SAYS("NETWORK, @/PATH, ...", "",
			"Clients that are not counted at all, such as health checks.") },
	{ WHOLE(ROUTE, "limit", value_limits),
		SAYS("NAME, ...", "",
			"All of them must admit; a rejected request spends nothing on any.") },
	{ ROUTE("backend", backend, value_backend),
		SAYS("NAME", "",
			"Where admitted requests go. May be left out if there is only one "
			"backend.") },
	{ ROUTE("cost", cost, value_cost), .min = 1, .max = COST_MAX,
		SAYS("N | param NAME [nocase] [max N] | header NAME [max N]", "1",
			"How many requests one request counts for: a number, or what a "
			"parameter of the query or a header says, 1 at the least.") },
	{ ROUTE("store_down", store_down, value_word), .words = store_down_words,
		SAYS("local | admit | reject", "local",
			"While Redis is away: this host counts alone, lets pass, or answers "
			"503.") },
	{ ROUTE("headers", headers, value_headers),
		SAYS("none | DIALECT, ...", "none",
			"Rate-limit headers on every answer: x-ratelimit, "
			"x-ratelimit-epoch, ratelimit, ratelimit-06, ratelimit-07. A cache "
			"would show one visitor's to all. A 429 always has Retry-After and, "
			"if none is named, x-ratelimit.") },
	{ ROUTE("own_headers", own_headers, value_word), .words = own_headers_words,
		SAYS("replace | keep", "replace",
			"Rate-limit headers of the application's own: replaced by those of "
			"the route, or kept instead of them.") },
	{ ROUTE("front", front, value_word), .words = asking_fronts,
		SAYS("auto | lighttpd | mod_fcgid | mod_authnz | nginx", "auto",
			"Which web server it is that only asks, since each makes something else "
			"of a 429. auto: as its requests say.") },
	{ ROUTE("retry_jitter", retry_jitter_percent, value_jitter),
		SAYS("0 | N%", "0",
			"Spreads Retry-After, so that clients do not come back all at once: "
			"up to so much later, never earlier.") },
	{ WHOLE(ROUTE, "reject_page", value_reject_page),
		SAYS("PATH", "",
			"A file, read at start and reload, that is sent to rejected "
			"requests: .html, .json or .txt, 64k at the most.") },
	{ LIST(ROUTE, config_route, "reject_header", reject_headers, reject_header_count,
		value_reject_header), .max = 32,
		SAYS("NAME: VALUE", "",
			"Put on answers to rejected requests, such as "
			"Access-Control-Allow-Origin: *") },
	{ .text.key = NULL },
};

const unsigned option_count = sizeof option_rows / sizeof option_rows[0] - 1;

/* clang-format on */
