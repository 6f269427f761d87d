/*
 * What is wrong with a configuration: all of it, each with its place, so that one run of `weir
 * check` is enough. Filled by config, and by the rooms above that compile what the configuration
 * says. Everything in it is a copy: it outlives the configuration that it speaks of.
 */
#ifndef WEIR_DIAGNOSTICS_H
#define WEIR_DIAGNOSTICS_H

#include "weir/arena.h"
#include "weir/err.h"

#include <stdio.h>

struct place {
	const char *file; /* owned by the configuration; NULL: no file, such as the command line */
	unsigned line; /* from 1; 0: the file as a whole */
};

enum severity { SEVERITY_ERROR, SEVERITY_WARNING };

struct diagnostic {
	enum severity severity;
	struct place place;
	const char *where; /* "[route login] limit"; "" if there is none */
	const char *text; /* what is wrong; what would be right */
};

/* A file that is no configuration at all has a fault on each line; what is beyond this many is
 * counted and not listed. */
enum { DIAGNOSTICS_MAX = 1000 };

struct diagnostics {
	struct diagnostic *list; /* in the order found */
	size_t count; /* of the list */
	unsigned errors, warnings; /* all of them, whether listed or not */
	struct arena arena; /* holds the texts */
};

void diagnostics_init(struct diagnostics *diagnostics);
void diagnostics_release(struct diagnostics *diagnostics);

/*
 * `where` may be NULL. The text is bounded (1 KiB); bytes that are not printable are escaped, but
 * for line ends in the text: lines behind the first are an example to be copied. What has been said
 * already, at the same place in the same words, is not said again. Cannot fail: without memory it
 * still counts.
 */
void diagnostics_add(struct diagnostics *diagnostics, enum severity severity, struct place place,
	const char *where, const char *format, ...) WEIR_PRINTF(5, 6);

/*
 * One line each, `FILE:LINE: [section name] key: text`, warnings with "warning: " in front of the
 * text, further lines of a text indented. In order of file and line.
 */
void diagnostics_print(const struct diagnostics *diagnostics, FILE *out);

#endif
