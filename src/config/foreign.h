/* Words of other programs, for people who come from there. */
#ifndef WEIR_CONFIG_FOREIGN_H
#define WEIR_CONFIG_FOREIGN_H

#include "options.h"

/* The one of `words` that is meant by a word that is none of them; NULL: none is known. */
const char *foreign_word(const struct word *words, struct slice text);

/* What is written here instead of a key that this section has not: "policy = 10/1s"; NULL: nothing
 * is known. */
const char *foreign_key(const char *section, const char *key);

enum { FOREIGN_RATE_SIZE = 64 };

/*
 * A rate in other words as it is written here: "3/1m" of "3r/m", "3 / 1m", "3/minute" or "3 per
 * minute", and of "3/m" too, at the beginning of a text. False if the text does not begin so.
 */
bool foreign_rate(struct slice text, char out[FOREIGN_RATE_SIZE]);

#endif
