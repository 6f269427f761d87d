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
#include "weir/ip.h"
#include "weir/log.h"
#include "weir/units.h"

#include <sys/types.h>

/* ---- limits ---- */

enum identity_source { IDENTITY_IP, IDENTITY_USER, IDENTITY_HEADER, IDENTITY_ALL };

struct config_identity {
	enum identity_source source;
	const char *name; /* of a header, as written; else NULL */
	const char *param; /* of a header, as FastCGI names it: HTTP_X_API_KEY; else NULL */
	unsigned prefix_4, prefix_6; /* of an IP: bits that count; 32 and 64 if not given */
};

enum on_missing { ON_MISSING_UNSET, ON_MISSING_SKIP, ON_MISSING_REJECT, ON_MISSING_SHARE };

enum policy_algorithm { POLICY_TOKEN_BUCKET };

struct config_policy {
	struct place place;
	const char *name; /* the window ("1s") if none was given */
	enum policy_algorithm algorithm;
	struct rate rate;
	uint64_t burst; /* the whole bucket; 1 to 10^15 */
};

struct config_limit {
	struct place place;
	const char *name;
	struct config_identity *identities; /* the first that is present counts */
	unsigned identity_count;
	enum on_missing on_missing;
	struct config_policy *policies;
	unsigned policy_count; /* at least 1 */
	bool enforce;
};

/* ---- backends ---- */

enum backend_type { BACKEND_FASTCGI, BACKEND_NONE };

struct config_backend {
	struct place place;
	const char *name;
	enum backend_type type;
	struct address *servers;
	unsigned server_count; /* at least 1 unless type is none */
	uint64_t max_in_flight;
	int64_t connect_timeout_us, idle_timeout_us;
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
	const char *methods; /* "GET|POST"; NULL: any */
	enum pattern_kind kind;
	const char *text; /* without `=` or `~` */
	bool nocase;
};

enum store_down { STORE_DOWN_LOCAL, STORE_DOWN_ADMIT, STORE_DOWN_REJECT };

/* Bits of config_route.headers. */
enum header_dialect { HEADERS_X_RATELIMIT = 1, HEADERS_X_RATELIMIT_EPOCH = 2 };

struct config_route {
	struct place place;
	const char *name;
	struct config_pattern *matches, *scripts; /* any of them */
	unsigned match_count, script_count;
	const struct config_limit **limits; /* all of them */
	unsigned limit_count;
	const struct config_backend *backend;
	uint64_t cost; /* 1 to 10^15 */
	enum store_down store_down;
	unsigned headers; /* header_dialect bits */
	const char **reject_headers; /* whole "Name: value" lines without line end, sound */
	unsigned reject_header_count;
};

/* ---- the process ---- */

struct config_listen {
	struct place place;
	struct address address;
	int mode; /* of a unix socket, e.g. 0660 */
	const char *owner; /* NULL: as the process */
	const char
		*group; /* NULL: the web group chosen when weir was built, if the system has it */
};

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
	struct address redis_server;
	const char *redis_username,
		*redis_password; /* the password is what stands in password_file; NULL: none */
	uint64_t redis_database;
	int64_t redis_deadline_us;
	const char *redis_prefix;

	struct config_limit **limits;
	unsigned limit_count;
	struct config_backend **backends;
	unsigned backend_count;
	struct config_route **routes; /* in the order that they are tried */
	unsigned route_count;

	struct arena arena; /* holds all of it */
};

/*
 * Reads and validates `file` and what it includes. Everything wrong goes to `diagnostics`. Returns
 * the configuration only if there was no error (warnings do not matter); the caller frees it.
 * `file` is copied.
 */
struct config *config_load(const char *file, struct diagnostics *diagnostics) WEIR_MUST_CHECK;
void config_free(struct config *config);

/* One limit in words, for `weir check`: who is counted, and what each policy admits. One line; a
 * limit of several policies has one more for each, indented. */
void config_limit_words(const struct config_limit *limit, FILE *out);

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
