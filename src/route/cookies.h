/* The cookies of a request, in every way in which applications read them. Private to the room. */
#ifndef WEIR_ROUTE_COOKIES_H
#define WEIR_ROUTE_COOKIES_H

#include "weir/slice.h"

/* Where a walk over the parameters of a query, or over cookies, has got to. */
struct pairs {
	struct slice rest;
	struct slice name; /* that is looked for */
	bool nocase;
	bool is_cut; /* also at what only some applications take for the end of a value */
	bool is_exact; /* the last cookie's name was spelled as it is looked for */
};

/* The next cookie that any application may take for the one that is looked for; its value as it
 * stands there. False if there is none any more. */
bool cookie_next(struct pairs *pairs, struct slice *value);

/* Whether decoding may make something else of a value. */
bool cookie_is_coded(struct slice raw);

/* To Perl's CGI::Cookie a plus is a blank, as in a query; to PHP it is none in a cookie. */
enum cookie_plus { COOKIE_PLUS_IS_BLANK, COOKIE_PLUS_STAYS };

/* Escapes and quotes are resolved. What changes is written to `out`, of raw.len bytes. */
struct slice cookie_decode(struct slice raw, enum cookie_plus plus, char *out);

/* The form that all spellings of a value have in common. A blank stands for the plus that it may
 * have been, and at the ends for nothing. */
struct slice cookie_normal(struct slice raw, char *out);

#endif
