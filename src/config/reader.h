/* INI files -> a flat list of sections with their settings, in the order of reading, each with its
 * place. What the words mean is not known here. */
#ifndef WEIR_CONFIG_READER_H
#define WEIR_CONFIG_READER_H

#include "weir/arena.h"
#include "weir/diagnostics.h"

struct section;
struct option;

/* All that a configuration takes, the files of values that it names included. */
enum { CONFIG_MEMORY_MAX = 256 * 1024 * 1024 };

extern const char config_too_large[];

struct setting {
	struct setting *next; /* of the same section */
	struct section *section;
	struct place place;
	const char *key, *value; /* without blanks at the ends; a value may be "" */
	const struct option *option; /* found by build; NULL: not known, or not to be looked at */
};

struct section {
	struct section *next;
	struct place place;
	const char *kind, *name; /* [kind name]; "" if there is no name */
	struct setting *settings, **settings_end;
	bool is_broken; /* something in it was refused: what is missing may have been meant */
	bool is_double; /* found by build: another section has this name */
	int rule; /* found by build: enum section_kind, or -1 */
	void *object; /* made by build: the struct config_limit of a limit, and so on */
};

struct section_list {
	struct section *first, **end;
	unsigned count;
	bool is_broken; /* a fault outside any section, or a file that could not be read */
};

/*
 * Reads `file` and what it includes into *list; everything lives in the arena. What is wrong goes
 * to diagnostics, and reading goes on behind it.
 */
void config_read(const char *file, struct arena *arena, struct diagnostics *diagnostics,
	struct section_list *list);

#endif
