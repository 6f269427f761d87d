/* The value parsers, one for each kind of value. What they fill is said by the row of the table. */
#ifndef WEIR_CONFIG_VALUES_H
#define WEIR_CONFIG_VALUES_H

#include "options.h"

/* values.c: bool, uint64_t, uint64_t in bytes, int64_t in microseconds, an enum, paths and texts.
 */
value_parse_fn value_bool, value_uint, value_size, value_duration, value_word, value_path,
	value_threads, value_log, value_username, value_prefix;

/* value_file.c: the password, struct config_route, the name of a time zone. */
value_parse_fn value_password_file, value_reject_page, value_timezone;

/* value_address.c: struct address, struct config_listen, struct config. */
value_parse_fn value_address, value_listen, value_metrics;

/* value_redis.c: struct address, struct config, and texts. */
value_parse_fn value_redis_server, value_sentinel, value_cluster, value_master, value_tls_name;

/* value_program.c: a directory, and a variable of an environment. */
value_parse_fn value_root, value_env;

/* value_identity.c: struct config_limit. */
value_parse_fn value_identity;

/* value_policy.c: struct config_policy, and a pointer to one. */
value_parse_fn value_policy, value_local_cap;

/* value_override.c: struct config_override. */
value_parse_fn value_for;

/* value_condition.c: struct config_when, struct config_route. */
value_parse_fn value_when, value_host;

/* value_route.c: struct config and struct config_route for lists of networks; the limit, struct
 * config_route, the backend, struct config_cost, the dialect bits, percents, one header. */
value_parse_fn value_trusted_proxies, value_exempt_ip, value_limit, value_limits, value_backend,
	value_cost, value_headers, value_jitter, value_reject_header;

/* value_pattern.c: struct config_pattern. */
value_parse_fn value_pattern;

/* ---- what the parsers share (value_text.c) ---- */

/* For "%.*s". */
#define SHOWN(s) (int)(s).len, (s).ptr

/* Cuts the first word off the front; words are separated by blanks. False if there is none. */
bool word_next(struct slice *rest, struct slice *word);

/* The number of the word, WORD_LATER among them; -2 and a reason if it is none of them. */
int word_find(const struct word *words, struct slice text, struct err *err);

/* "... is not supported by this version". Returns -1. */
int word_later(struct err *err, struct slice what);

/* A copy in the configuration's arena; NULL and a reason if it is full. */
char *value_copy(const struct value *value, struct slice text, struct err *err);
void *value_alloc(const struct value *value, size_t size, struct err *err);

/*
 * Room for one more item behind `count` ones, which may have moved: all that were there before are
 * in what is returned. NULL and a reason if there is none.
 */
void *
value_grow(const struct value *value, void *items, unsigned count, size_t size, struct err *err);

/* Says what is wrong at a place in another file; see value_parse_fn. (complain.c) */
void value_complain(const struct value *value, enum severity severity, struct place place,
	const char *format, ...) WEIR_PRINTF(4, 5);

/* An address of any kind, with what is usual elsewhere refused in words. (value_address.c) */
int address_read(struct slice text, struct address *address, struct err *err) WEIR_MUST_CHECK;

/* Takes what names nothing out of an absolute path: "//" and "/./". (values.c) */
void path_tidy(char *path);

bool word_is_token(struct slice text); /* RFC 9110 section 5.6.2 */

/* Takes a last word `nocase` off. (value_pattern.c) */
bool pattern_cut_nocase(struct slice *text);

/* Refuses what nginx writes in front of a pattern, and another spelling of `nocase` behind it.
 * (value_pattern.c) */
int pattern_check_foreign(struct slice text, struct err *err) WEIR_MUST_CHECK;

/* ---- where a value is found (value_source.c) ---- */

/* The words for all sources, and for those that a request has by itself. */
extern const struct word identity_words[], attribute_words[];

/* Cuts `header X-API-Key` off the front: fills source, name and param. */
int source_parse(const struct value *value, struct slice *rest, const struct word *words,
	struct config_identity_part *part, struct err *err) WEIR_MUST_CHECK;

/* Takes `nocase` off the front: the parameter is meant in any case. Refuses it where a name is none
 * of a parameter. */
int source_parse_nocase(const struct value *value, struct slice *rest,
	struct config_identity_part *part, struct err *err) WEIR_MUST_CHECK;

/* The part is found there. `name` and `param` are as of a part. */
bool source_is(const struct config_identity_part *part, enum identity_source source,
	const char *name, const char *param);

bool for_is_same_source(const struct config_for *a, const struct config_for *b);

enum { SOURCE_TEXT_SIZE = 80 };

/* As it is written: "header X-API-Key", "user". Returns `out`. */
const char *source_text(enum identity_source source, const char *name, char out[SOURCE_TEXT_SIZE]);

/* (value_identity.c) */
bool identity_is(const struct config_identity *a, const struct config_identity *b);

/* Every request has it. */
bool identity_is_always_present(const struct config_identity *identity);

/* ---- rates (value_rate.c) ---- */

/* Refuses a rate at the beginning of the text in words of other programs, such as 3r/m or 3 / 1m,
 * and says how it is written here. */
int rate_check_foreign(struct slice text, struct err *err) WEIR_MUST_CHECK;

int rate_parse(struct slice text, struct rate *rate, struct err *err) WEIR_MUST_CHECK;

/* COUNT/day or COUNT/month, into the rate and the period. */
int rate_parse_calendar(
	struct slice text, struct config_policy *policy, struct err *err) WEIR_MUST_CHECK;

/* ---- words behind a value ---- */

/* A word that follows a value, as in `mode 0660 group www-data`. */
struct trailer {
	const char *name; /* NULL ends a list */
	bool has_argument;
	bool is_given;
	struct slice argument;
};

/* Takes the words in `rest`, each once and in any order. */
int trailers_parse(struct slice rest, struct trailer *trailers, struct err *err) WEIR_MUST_CHECK;

#endif
