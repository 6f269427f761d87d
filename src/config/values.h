/* The value parsers, one for each kind of value. What they fill is said by the row of the table. */
#ifndef WEIR_CONFIG_VALUES_H
#define WEIR_CONFIG_VALUES_H

#include "options.h"

/* values.c: bool, uint64_t, uint64_t in bytes, int64_t in microseconds, an enum, paths and texts.
 */
value_parse_fn value_bool, value_uint, value_size, value_duration, value_word, value_path,
	value_threads, value_log, value_username, value_password_file, value_prefix;

/* value_address.c: struct address, struct config_listen, struct config. */
value_parse_fn value_address, value_listen, value_metrics;

/* value_limit.c: struct config_limit, struct config_policy. */
value_parse_fn value_identity, value_policy;

/* value_route.c: struct config_route, the backend, the cost, the dialect bits, one header. */
value_parse_fn value_limits, value_backend, value_cost, value_headers, value_reject_header;

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

bool word_is_token(struct slice text); /* RFC 9110 section 5.6.2 */

/* A word that follows a value, as in `mode 0660 group www-data`. */
struct trailer {
	const char *name; /* NULL ends a list */
	bool has_argument, is_later;
	bool is_given;
	struct slice argument;
};

/* Takes the words in `rest`, each once and in any order. */
int trailers_parse(struct slice rest, struct trailer *trailers, struct err *err) WEIR_MUST_CHECK;

#endif
