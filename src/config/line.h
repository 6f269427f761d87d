/* One physical line of an INI file: what kind it is, and everything that can be wrong with it
 * before anybody knows what its words mean. */
#ifndef WEIR_CONFIG_LINE_H
#define WEIR_CONFIG_LINE_H

#include "weir/err.h"
#include "weir/slice.h"

enum line_kind { LINE_EMPTY, LINE_SECTION, LINE_SETTING };

struct line {
	enum line_kind kind;
	struct slice section, name; /* of a section: [section name]; the name is empty if there is
				       none */
	struct slice setting; /* `key = value`, without indentation and comment */
};

/*
 * `text` has no line end. A setting has `max` bytes at the most. -1: the line is refused, err says
 * what would be right, and *line is what was probably meant, so that the lines behind it are judged
 * fairly: they belong to the section of a section line even if that is faulty.
 */
int config_line_parse(
	struct slice text, size_t max, struct line *line, struct err *err) WEIR_MUST_CHECK;

/* 1 to 64 letters, digits, `-`, `_` and `.`: what a section or a policy can be called. */
int config_name_check(struct slice name, struct err *err) WEIR_MUST_CHECK;

/* The length of the character at the front, or 0 if the bytes are no UTF-8 (RFC 3629); the text is
 * not empty. */
size_t utf8_len(struct slice text);

#endif
