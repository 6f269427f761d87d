/* Sections and settings, with what the table says of them. */
#ifndef WEIR_CONFIG_SECTIONS_H
#define WEIR_CONFIG_SECTIONS_H

#include "build.h"

/* Fills build->unnamed, and rule, is_double and option of what was read. Once, before the rest. */
void sections_find_rules(struct build *build);

/* The named sections of a kind, in the order of the files, without doubles: the first, and the next
 * after one. NULL at the end. */
struct section *section_first(const struct build *build, enum section_kind kind);
struct section *section_next(const struct section *section);

/* The first setting of this key that stands in the section itself and was not refused; or NULL. */
const struct setting *section_own_setting(const struct section *section, const char *key);

/* The same, at that place; NULL: the first. */
const struct setting *
section_setting_at(const struct section *section, const char *key, const struct place *place);

/* The same among those that were refused. */
const struct setting *
section_refused_at(const struct section *section, const char *key, const struct place *place);

/* Something in the section, or in the defaults of its kind, was refused: what seems to be missing
 * may have been meant there. */
bool section_is_doubtful(const struct build *build, const struct section *section);

/* Something in a section of that kind, or outside of any, was refused, or one is defined twice. */
bool section_kind_is_doubtful(const struct build *build, enum section_kind kind);

#endif
