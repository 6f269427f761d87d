/* What a request has for a source of values: `header X`, `cookie X`, `param X`, `env X`, `user`.
 * Private to the room. */
#ifndef WEIR_ROUTE_VALUES_H
#define WEIR_ROUTE_VALUES_H

#include "weir/config.h"
#include "weir/view.h"

/* A walk over all values of one source. A parameter of the query is decoded into the view's
 * scratch, and valid until the next one is. */
struct values {
	const struct view *view;
	enum identity_source source;
	struct slice name;
	bool nocase; /* of a cookie's or parameter's name */
	struct slice rest; /* of the query or the cookies */
	char *const *entry; /* of the environment */
	bool user_is_told;
};

/* `name` and `param` as of struct config_identity_part. */
void values_init(struct values *values, const struct view *view, enum identity_source source,
	const char *name, const char *param, bool nocase);

/* False if there is none any more. Empty headers and variables are left out, cookies and parameters
 * are not. */
bool values_next(struct values *values, struct slice *value);

/* The one value that identities and overrides count; not empty, or false. */
bool value_counted(const struct view *view, enum identity_source source, const char *name,
	const char *param, struct slice *value);

#endif
