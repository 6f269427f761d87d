/*
 * A reader of structured fields (RFC 9651 section 4.2), as strict as the standard, for lists and
 * dictionaries of integers and strings with such parameters. Other types are refused: no field of
 * ours has them.
 */
#ifndef WEIR_TESTS_LIMIT_STRUCTURED_H
#define WEIR_TESTS_LIMIT_STRUCTURED_H

#include "weir/slice.h"

#include <stdint.h>

enum { SF_MEMBERS_MAX = 32, SF_PARAMS_MAX = 8, SF_KEY_SIZE = 32, SF_TEXT_SIZE = 300 };

struct sf_value {
	bool is_text;
	int64_t number;
	char text[SF_TEXT_SIZE]; /* without quotes and escapes */
};

struct sf_param {
	char key[SF_KEY_SIZE];
	struct sf_value value;
};

struct sf_member {
	char key[SF_KEY_SIZE]; /* of a dictionary */
	struct sf_value value;
	struct sf_param params[SF_PARAMS_MAX];
	unsigned param_count;
};

struct sf_field {
	struct sf_member members[SF_MEMBERS_MAX];
	unsigned count;
};

/* False: the text is none. An item is a list of one. */
bool sf_read_list(struct slice text, struct sf_field *field);
bool sf_read_dictionary(struct slice text, struct sf_field *field);

/* NULL: there is none. */
const struct sf_value *sf_param(const struct sf_member *member, const char *key);
const struct sf_member *sf_member(const struct sf_field *field, const char *key);

#endif
