/*
 * The table of options: one row for each key. Parsing, defaults, help, the manual and the search
 * for the nearest known key all come from the rows. A new key is a row, and a value parser if it is
 * of a new kind.
 */
#ifndef WEIR_CONFIG_OPTIONS_H
#define WEIR_CONFIG_OPTIONS_H

#include "weir/config.h"

#include <stddef.h>

enum section_kind {
	SECTION_WEIR,
	SECTION_MEMORY,
	SECTION_REDIS,
	SECTION_LIMIT,
	SECTION_OVERRIDE,
	SECTION_BACKEND,
	SECTION_ROUTE,
	SECTION_KINDS
};

struct section_rule {
	const char *name;
	bool has_names; /* [limit NAME] defines one; [limit] holds the defaults of all */
	size_t object_size; /* of what such a section defines */
};

extern const struct section_rule section_rules[SECTION_KINDS];

struct option;
struct setting;

/* One value to be parsed, and what a parser may need to know. */
struct value {
	const struct option *option;
	struct slice text; /* not empty */
	struct place place;
	const struct setting *setting; /* NULL: it is the default */
	struct config
		*config; /* its arena takes copies; its limits and backends can be referred to */
	struct diagnostics *diagnostics; /* for what is wrong elsewhere; see value_complain */
};

/* Fills the field, or returns -1 and says what would be right; err is left empty if all has been
 * said. */
typedef int value_parse_fn(const struct value *value, void *field, struct err *err);

struct word {
	const char *text; /* NULL ends a list */
	int number; /* WORD_LATER: planned, not supported by this version */
};

enum { WORD_LATER = -1 };

/* Of one request; also what a value that is no number counts for, if no other maximum is given. */
#define COST_MAX UINT64_C(1000000000000000)

struct option {
	struct config_option_help text; /* the default is parsed like any value; a repeatable key
					   has none */
	enum section_kind section;
	value_parse_fn *parse;
	size_t offset; /* of the field in the section's struct; 0 if the parser takes the struct */
	size_t item_size, count_offset; /* of a repeatable key: the field is a pointer to items; 0
					   if the parser takes the struct and appends to it */
	uint64_t min, max; /* of a number, in its unit; of a repeatable key: how often, at most */
	const struct word *words; /* of a word */
	uint64_t usual_max; /* of a duration; 0: any. What is longer is taken, with a warning */
	const char *unusual; /* what it leads to */
};

/* All rows; behind the last one whose key is NULL. */
extern const struct option option_rows[];
extern const unsigned option_count;

/* -1 if there is no such kind. */
int section_kind_of(const char *name);

/* NULL if there is no such key in sections of that kind. */
const struct option *option_find(enum section_kind section, const char *key);

/* What weir.ini(5) of a later version has and this one has not. */
bool option_is_later(const char *section, const char *key);

#endif
