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
 * The script's path as weir sees it. From SCRIPT_FILENAME Apache's `proxy:fcgi://host[:port]/` or
 * `proxy:balancer://name/` is removed, and a `?query`; what remains begins with one slash. Other
 * values are returned as they are. A view into `filename`.
 */
struct slice url_script_filename(struct slice filename);

/*
 * The value of the first parameter `name` in a query (application/x-www-form-urlencoded). The
 * parameters' names are decoded to compare them, as the application will do; the value is not
 * decoded, and empty if there is no `=`. False if the parameter is not there.
 */
bool url_query_find(struct slice query, struct slice name, struct slice *value);

#endif
