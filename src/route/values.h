/* What a request has for a source of values: `header X`, `cookie X`, `param X`, `env X`, `user`.
 * Private to the room. */
#ifndef WEIR_ROUTE_VALUES_H
#define WEIR_ROUTE_VALUES_H

#include "cookies.h"
#include "weir/config.h"
#include "weir/view.h"

/* In which a cookie's value comes next. */
enum cookie_form { FORM_RAW, FORM_DECODED, FORM_WITH_PLUS };

/* A walk over all values of one source, in every way in which an application may read them. One
 * that had to be decoded lies in the view's scratch, and is valid until the next one is. */
struct values {
	const struct view *view;
	enum identity_source source;
	struct pairs pairs;
	enum cookie_form form;
	struct slice raw; /* the cookie that is not through all forms yet */
	char *const *entry; /* of the environment */
	bool user_is_told;
};

/* `name` and `param` as of struct config_identity_part; `nocase`: of a cookie's or parameter's
 * name, whatever the part says. */
void values_init(struct values *values, const struct view *view, enum identity_source source,
	const char *name, const char *param, bool nocase);

/* False if there is none any more. Empty headers and variables are left out, cookies and parameters
 * are not. The same value may come twice. */
bool values_next(struct values *values, struct slice *value);

/* ---- the one that is counted ---- */

enum { READINGS_MAX = 8 };

/*
 * The values that a request may be counted by; none is empty. As a rule there is one. There are
 * more if it depends on the application which one it reads: a parameter that is repeated with
 * another value, a cookie that also came under another spelling of its name. Of more than
 * READINGS_MAX the first ones are here, and the last.
 */
struct readings {
	const struct view *view;
	enum identity_source source;
	struct slice list[READINGS_MAX]; /* as they came */
	unsigned count;
};

void readings_of(struct readings *readings, const struct view *view, enum identity_source source,
	const char *name, const char *param);

/* The value in the one form that all spellings of it have; perhaps in the view's scratch. */
struct slice reading_decoded(const struct readings *readings, unsigned i);

#endif
