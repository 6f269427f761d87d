/*
 * The normal form of a request's path, which patterns are held against: what the web server itself
 * resolved the request target to, so that no spelling of a path escapes its limit (RFC 3986
 * section 6.2.2).
 */
#ifndef WEIR_URL_PATH_H
#define WEIR_URL_PATH_H

#include "weir/err.h"
#include "weir/slice.h"

/*
 * From a raw request target (REQUEST_URI): scheme and authority removed, cut at the first `?` or
 * `#`, percent-decoded once (%2F too), then runs of slashes folded and `.` and `..` segments
 * resolved; `..` at the root stays there. A trailing slash is kept: "/a/" and "/a/." give "/a/". An
 * empty path gives "/". "*" (OPTIONS) stays "*".
 *
 * Writes at most target.len + 1 bytes to `out`, without a terminator, and stores the length. -1: a
 * bad escape, an escaped or raw NUL, or a path that does not begin with a slash; err says which.
 */
int url_path_normal(struct slice target, char *out, size_t *len, struct err *err) WEIR_MUST_CHECK;

/* The query of a raw request target, without `?` and without a fragment; empty if there is none. */
struct slice url_query(struct slice target);

/*
 * The next value of a parameter in a query (application/x-www-form-urlencoded), of which *rest is
 * what is left to look at. The parameters' names are decoded to compare them, as the application
 * will do; the value is not decoded, and empty if there is no `=`. False if there is none any more.
 */
bool url_query_next(struct slice *rest, struct slice name, bool nocase, struct slice *value);

/* Decodes a value of a query to at most value.len bytes, and returns how many they are. A bad
 * escape stands for itself, as in PHP. */
size_t url_query_decode(struct slice value, char *out);

#endif
