/* The configuration under construction: what was read and what has been made of it so far. */
#ifndef WEIR_CONFIG_BUILD_H
#define WEIR_CONFIG_BUILD_H

#include "options.h"
#include "reader.h"

struct build {
	struct config *config;
	struct diagnostics *diagnostics;
	struct section_list list;
	struct section
		*unnamed[SECTION_KINDS]; /* [weir], or the defaults of all limits; NULL: none */
};

/* Sections -> config: values parsed, defaults applied, names resolved. -1: the memory is used up,
 * and the configuration is not whole enough to be checked. */
int config_build(struct build *build) WEIR_MUST_CHECK;

/* Fills an object of the kind from a section and the defaults; `section` may be NULL. (fill.c) */
void
section_fill(struct build *build, enum section_kind kind, struct section *section, void *object);

/*
 * Says what is wrong with a key of a section, at the place of the setting that counts; `item` is
 * the place of one of several, or NULL for the first. Without such a setting, at the section.
 */
void complain(const struct build *build, enum severity severity, const struct section *section,
	const char *key, const struct place *item, const char *format, ...) WEIR_PRINTF(6, 7);

/* The same at another place, such as a line of a file that the setting names. */
void complain_at(const struct build *build, enum severity severity, const struct section *section,
	const char *key, struct place place, const char *format, ...) WEIR_PRINTF(6, 7);

/* An error of one setting, whether it has a row in the table or not. */
void complain_setting(const struct build *build, const struct setting *setting, const char *format,
	...) WEIR_PRINTF(3, 4);

/* What is wrong with the configuration as a whole. */
void complain_whole(const struct build *build, const char *format, ...) WEIR_PRINTF(2, 3);

enum { PLACE_TEXT_SIZE = 160 };

/* "weir.ini:12", for a sentence that names a second place. Returns `out`. */
const char *complain_place(struct place place, char out[PLACE_TEXT_SIZE]);

#endif
