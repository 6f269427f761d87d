/*
 * The configuration: INI files -> one immutable, validated snapshot. What the file says, in numbers
 * and units, with the place of each thing; nothing is compiled, resolved or opened here. The
 * language is described in weir.ini(5); its keys are the rows of src/config/options.c.
 */
#ifndef WEIR_CONFIG_H
#define WEIR_CONFIG_H

#include "weir/address.h"
#include "weir/arena.h"
#include "weir/diagnostics.h"
#include "weir/hash.h"
#include "weir/ip.h"
#include "weir/log.h"
#include "weir/units.h"

#include <sys/types.h>

struct section;

/* ---- limits ---- */

/* Where a value of a request is found. */
enum identity_source {
	IDENTITY_IP, /* the client's address; there always is one, if only "none" */
	IDENTITY_USER, /* REMOTE_USER, only together with AUTH_TYPE */
	IDENTITY_HEADER,
	IDENTITY_COOKIE,
	IDENTITY_PARAM, /* of the query, percent-decoded */
	IDENTITY_ENV, /* a FastCGI parameter */
	IDENTITY_HOST, /* HTTP_HOST without port and final dot, in small letters; may be missing */
	IDENTITY_PATH, /* of the URL, in its normal form */
	IDENTITY_BACKEND, /* its name */
	IDENTITY_ROUTE, /* its name */
	IDENTITY_ALL /* one for everybody */
};

struct config_identity_part {
	enum identity_source source;
	const char *name; /* of a header, cookie, parameter or variable, as written, for people;
			     else NULL */
	const char *param; /* of a header or variable, as FastCGI names it: HTTP_X_API_KEY; of a
			      parameter in any case (nocase), in small letters; else NULL */
	unsigned prefix_4, prefix_6; /* of an IP: bits that count, 1 to 32 and 1 to 128; 32 and 64
					if not given */
	bool known; /* present only if an override of this limit names its value */
};

enum { IDENTITY_PARTS_MAX = 8 };

/* Present if all of its parts are. */
struct config_identity {
	struct config_identity_part *parts;
	unsigned part_count; /* 1 to IDENTITY_PARTS_MAX; all stands alone */
};

enum on_missing { ON_MISSING_UNSET, ON_MISSING_SKIP, ON_MISSING_REJECT, ON_MISSING_SHARE };

enum policy_algorithm {
	POLICY_TOKEN_BUCKET,
	POLICY_SLIDING_WINDOW, /* two counters */
	POLICY_SLIDING_LOG, /* exact */
	POLICY_CALENDAR, /* a quota that begins anew with each day or month of config.timezone */
	POLICY_CONCURRENT /* requests at a time; each is one, whatever its cost */
};

/* A log and leases are kept one by one. */
enum { POLICY_LOG_MAX = 1000, POLICY_CONCURRENT_MAX = 1000, POLICY_SHARDS_MAX = 64 };

enum calendar_period { CALENDAR_DAY, CALENDAR_MONTH };

struct config_policy {
	struct place place;
	const char *name; /* the window if none was given: "1s", "day", "month", "concurrent" */
	enum policy_algorithm algorithm;
	struct rate rate; /* calendar: the window is 1 or 31 days, for comparing; concurrent:
			     only count, window_us is 0 */
	uint64_t burst; /* the most that is admitted at once: of a token bucket 1 to 10^15, of the
			   others rate.count */
	unsigned shards; /* 1 to POLICY_SHARDS_MAX, and never more than rate.count and burst; 1 for
			    all but token buckets */
	enum calendar_period period; /* of calendar */
	int64_t lease_us; /* of concurrent: 1 s to 30 days; else 0 */
	bool shadow; /* decided, counted and logged, and never rejects */
};

struct config_override;

struct config_limit {
	struct place place;
	const char *name;
	struct config_identity *identities; /* the first that is present counts */
	unsigned identity_count;
	enum on_missing on_missing;
	struct config_policy *policies;
	unsigned policy_count; /* at least 1 */
	const struct config_policy *local_cap; /* a token bucket in this process, asked before the
						  store; NULL: none */
	uint64_t max_identities; /* 1 to 10^9; what is beyond shares one bucket */
	bool enforce;
	const struct config_override **overrides; /* of this limit, in the order of the files: the
						     first that fits a request counts */
	unsigned override_count;
};

/* ---- exceptions from limits ---- */

/* A value that an override names: compared byte for byte with the request's. */
struct config_value {
	const char *text; /* not terminated; if is_sha256, the 32 bytes of the value's SHA-256 */
	uint32_t len; /* 1 to 4096; 32 if is_sha256 */
	bool is_sha256;
};

/* Fits a request if its value is one of the list. Empty if its file was. */
struct config_for {
	struct place place; /* of the line of the configuration, or the file that the list stands
			       in; its line is 0 then */
	enum identity_source source; /* ip, user, header, cookie, param or env */
	const char *name, *param; /* as of struct config_identity_part */
	struct config_value *values; /* none for ip */
	struct ip_net *nets; /* of ip */
	uint32_t value_count, net_count; /* at most 10^6 */
	uint32_t *lines; /* of each value or network, in place.file; NULL: all in place.line */
};

/* Applies to a request of its limit that any of its `fors` fits. */
struct config_override {
	struct place place;
	const char *name;
	const struct config_limit *limit;
	struct config_for *fors;
	unsigned for_count; /* at least 1 */
	struct config_policy *policies; /* each instead of the limit's one of the same name */
	unsigned policy_count; /* 0 with exempt or block */
	bool exempt; /* not counted */
	bool block; /* answered 403 */
};

/* ---- backends ---- */

enum { CONFIG_SERVERS_MAX = 64, CONFIG_LISTENS_MAX = 256 /* all together */ };

struct config_listen {
	struct place place;
	struct address address;
	int mode; /* of a unix socket, e.g. 0660 */
	const char *owner; /* NULL: as the process */
	const char
		*group; /* NULL: the web group chosen when weir was built, if the system has it */
};

enum backend_type { BACKEND_FASTCGI, BACKEND_CGI, BACKEND_SCGI, BACKEND_NONE };

struct config_backend {
	struct place place;
	const char *name;
	enum backend_type type;
	struct config_listen *listens; /* requests that arrive there are its own */
	unsigned listen_count;
	struct address *servers;
	unsigned server_count; /* 1 to CONFIG_SERVERS_MAX; 0 if type is none or cgi */
	/* Of type cgi: one of both, the other one is NULL. Absolute paths; the root without a slash
	 * at its end. */
	const char *program, *root;
	const char **env; /* "NAME=VALUE" */
	unsigned env_count;
	uint64_t max_in_flight;
	int64_t connect_timeout_us, idle_timeout_us;
	uint64_t keep_idle; /* connections; 0 unless type is fastcgi */
	uint64_t spool; /* bytes; 0: a body of unknown length is not taken */
};

/* ---- routes ---- */

enum pattern_kind {
	PATTERN_BELOW, /* the path itself and all below it; a pattern that ends in "/" fits what is
			  below, and itself */
	PATTERN_EXACT, /* = /path */
	PATTERN_GLOB, /* has `*`; fits the path and all below it likewise */
	PATTERN_REGEX, /* ~ PCRE2, anchored nowhere */
};

struct config_pattern {
	struct place place;
	const char *methods; /* "GET|POST", where GET takes HEAD with it; NULL: any */
	enum pattern_kind kind;
	const char *text; /* without `=` or `~` */
	bool nocase;
};

/* A name that a client calls us by. */
struct config_host {
	const char *name; /* in small letters, without port and final dot */
	bool is_below; /* fits all names that end in .NAME, and not NAME itself */
};

/* What must hold of a request besides its path. A name that is repeated (a parameter of the query)
 * fits if any of its values does. */
struct config_when {
	struct place place;
	bool is_not; /* holds if the rest does not, also for a request without the value */
	enum identity_source source; /* header, cookie, param, env, ip or user */
	const char *name, *param; /* as of struct config_identity_part; the case of a cookie's or
				     parameter's name matters unless pattern.nocase */
	struct config_pattern pattern; /* EXACT or GLOB, which the whole value must fit, or REGEX,
					  anchored nowhere; its text is NULL if it is enough that
					  there is a value */
	struct ip_net *nets; /* of ip: any of them */
	unsigned net_count;
};

enum cost_source { COST_FIXED, COST_PARAM, COST_HEADER };

/*
 * How many requests one request counts for. Of a parameter or header: 1 if it is not there; a whole
 * number counts as itself, but as 1 at the least and as max at the most; anything else counts as
 * max, since the application may read a large number in it.
 */
struct config_cost {
	enum cost_source source;
	uint64_t fixed; /* 1 to 10^15; of a parameter or header 1 */
	const char *name, *param; /* as of struct config_identity_part */
	uint64_t max; /* 1 to 10^15 */
};

enum own_headers { OWN_HEADERS_REPLACE, OWN_HEADERS_KEEP };

/* A web server that only asks, and what it makes of the answer; AUTO: the request says. */
enum asking_front {
	ASKING_AUTO,
	ASKING_LIGHTTPD,
	ASKING_MOD_FCGID,
	ASKING_MOD_AUTHNZ,
	ASKING_NGINX
};

enum store_down { STORE_DOWN_LOCAL, STORE_DOWN_ADMIT, STORE_DOWN_REJECT };

/* Bits of config_route.headers. One of the first two at the most, and one of the others. */
enum header_dialect {
	HEADERS_X_RATELIMIT = 1, /* X-RateLimit-Reset in seconds from now */
	HEADERS_X_RATELIMIT_EPOCH = 2, /* ... since 1970 */
	HEADERS_RATELIMIT = 4, /* the newest draft of draft-ietf-httpapi-ratelimit-headers */
	HEADERS_RATELIMIT_06 = 8,
	HEADERS_RATELIMIT_07 = 16,
};

struct config_route {
	struct place place;
	const char *name;
	struct config_pattern *matches, *scripts; /* any of them */
	unsigned match_count, script_count;
	struct config_when *whens; /* and all of them */
	unsigned when_count;
	struct config_host *hosts; /* and any of them; none: whatever the host */
	unsigned host_count;
	struct ip_net *exempt_nets; /* clients that no limit of the route counts */
	unsigned exempt_net_count;
	const struct config_limit **limits; /* all of them */
	unsigned limit_count;
	const struct config_backend *backend; /* NULL: the one whose `listen` the request came to */
	struct config_cost cost;
	enum store_down store_down;
	unsigned headers; /* header_dialect bits */
	enum own_headers own_headers;
	enum asking_front front;
	unsigned retry_jitter_percent; /* 0 to 100: added to Retry-After at the most */
	const char **reject_headers; /* whole "Name: value" lines without line end, sound */
	unsigned reject_header_count;
	struct slice reject_page; /* body of the answer to a rejected request, at most 64 KiB; ptr
				     NULL: weir's own */
	const char *reject_page_type; /* its Content-Type */
};

/* A file that a list names with `@`, as it was read. */
struct config_list_file {
	const struct config_list_file *next;
	const char *name;
	uint32_t items;
	struct hash_wide content;
	bool is_blank; /* it has neither items nor comments */
	bool is_ended; /* its last line has a line end; true if there is no line */
};

/* ---- the process ---- */

struct config {
	const char *file; /* the main file */

	/* [weir] */
	bool enforce;
	struct config_listen *listens;
	unsigned listen_count;
	uint64_t threads; /* 1 to 64 */
	uint64_t max_in_flight, max_connections;
	uint64_t max_head; /* bytes */
	uint64_t max_params;
	int64_t head_timeout_us, body_timeout_us, drain_us;
	const char *spool_directory; /* an absolute path */
	struct ip_net *trusted_proxies; /* in front of the web server, whose X-Forwarded-For is
					   believed */
	unsigned trusted_proxy_count;
	const char *timezone; /* of calendar quotas: a name of the system's tz database */
	const char *hash_key_file; /* NULL: none */
	bool has_metrics;
	struct address metrics;
	enum { LOG_TO_STDERR, LOG_TO_SYSLOG, LOG_TO_FILE } log_to;
	const char *log_file;
	enum log_level log_level;
	enum log_format log_format;
	const char *reject_log; /* a path; NULL: in the log */

	/* [memory] */
	uint64_t memory_size; /* bytes */
	const char *memory_state; /* a path; NULL: not given, a default is looked for */

	/* [redis] */
	bool has_redis;
	struct place redis_place;
	struct address redis_server; /* not to be asked if there are sentinels or a cluster */
	struct address *redis_sentinels; /* all of one kind */
	unsigned redis_sentinel_count;
	const char *redis_master; /* the name that the sentinels know it by; NULL: no sentinels */
	const char *redis_sentinel_username, *redis_sentinel_password; /* NULL: none */
	const char *redis_tls_ca, *redis_tls_cert, *redis_tls_key; /* paths of PEM files, or NULL */
	const char *redis_tls_name; /* what certificates must name; NULL: the host of the address */
	struct address *redis_cluster; /* some of its servers, all of one kind */
	unsigned redis_cluster_count; /* 0: it is none */
	const char *redis_username,
		*redis_password; /* the password is what stands in password_file; NULL: none */
	uint64_t redis_database;
	int64_t redis_deadline_us;
	const char *redis_prefix;

	struct config_limit **limits;
	unsigned limit_count;
	struct config_override **overrides; /* of all limits, in the order of the files */
	unsigned override_count;
	struct config_backend **backends;
	unsigned backend_count;
	struct config_route **routes; /* in the order that they are tried */
	unsigned route_count;

	const struct section *sections; /* as they were read, for config_compare */
	const struct config_list_file *list_files; /* a file may be here several times */
	struct arena arena; /* holds all of it */
};

/*
 * Reads and validates `file` and what it includes. Everything wrong goes to `diagnostics`. Returns
 * the configuration only if there was no error (warnings do not matter); the caller frees it.
 * `file` is copied.
 */
struct config *config_load(const char *file, struct diagnostics *diagnostics) WEIR_MUST_CHECK;
void config_free(struct config *config);

/* The nth place to listen at: those of [weir], then those of the backends. NULL behind the last.
 * *backend: whose it is, or NULL. */
const struct config_listen *
config_listen_at(const struct config *config, unsigned n, const struct config_backend **backend);

/* One limit in words, for `weir check`: who is counted, and what each policy admits. One line; a
 * limit of several policies has one more for each, indented, and so has each of its overrides. */
void config_limit_words(const struct config *config, const struct config_limit *limit, FILE *out);

/* One route in words, on a line: what it takes, its limits, its backend, and what happens to it
 * while Redis is away. */
void config_route_words(const struct config *config, const struct config_route *route, FILE *out);

/* Where the nth value of the key stands, in the section [kind name] or in the defaults of its kind;
 * else the section, else the main file. The name may be "". */
struct place config_place(const struct config *config, const char *kind, const char *name,
	const char *key, unsigned nth);

/* ---- what two configurations differ in, as they are written ---- */

enum config_change_kind {
	CONFIG_KEY_CHANGED,
	CONFIG_SECTION_ADDED,
	CONFIG_SECTION_REMOVED,
	CONFIG_ORDER_CHANGED, /* of all sections of the kind */
	CONFIG_ITEMS_CHANGED, /* of the file `name`, which a list names in both */
};

struct config_change {
	enum config_change_kind what;
	const char *kind, *name; /* of the section: [kind name]; the name may be "" */
	const char *key; /* of CONFIG_KEY_CHANGED */
	const char *before, *after; /* its values or defaults; NULL: there are none, or several */
	bool needs_restart;
	uint32_t items_before, items_after; /* of CONFIG_ITEMS_CHANGED */
};

typedef void config_change_fn(void *context, const struct config_change *change);

/* Valid during the call. Of the files that keys name only those of lists are compared. */
void config_compare(const struct config *before, const struct config *after, config_change_fn *each,
	void *context);

/*
 * Whether all files of lists are whole that were so before, as far as that can be told: one is not
 * that had items and has nothing any more, not even a comment, or whose last line had an end and
 * has none any more. So looks what a full disk cut, or somebody is writing just now. -1: there is
 * an error in the diagnostics for each.
 */
int config_check_lists(const struct config *before, const struct config *after,
	struct diagnostics *diagnostics) WEIR_MUST_CHECK;

/* The table of options, for the manual, completions and the test that keeps them in step. */
struct config_option_help {
	const char *section, *key;
	const char *syntax; /* "RATE [burst N]" */
	const char *default_text; /* "" if there is none */
	const char *help;
	bool repeatable, needs_restart;
};

/* NULL behind the last. */
const struct config_option_help *config_option_help(unsigned index);

#endif
