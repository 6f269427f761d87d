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

/*
 * Of a path that the web server has decoded (SCRIPT_NAME, PATH_INFO): runs of slashes folded and
 * `.` segments removed, as HAProxy, and nginx with merge_slashes off, leave them. -1: it has a `..`
 * segment. Most web servers have resolved those. What the application makes of one cannot be known:
 * the file system climbs, while PHP runs /a.php of /a.php/../b.php.
 *
 * Writes at most path.len bytes to `out`, which may be path.ptr, and stores the length.
 */
int url_path_fold(struct slice path, char *out, size_t *len) WEIR_MUST_CHECK;

/* Host and port of a raw request target in absolute form (RFC 9112, section 3.2.2), without user
 * information; empty for any other. */
struct slice url_host(struct slice target);

/* The query of a raw request target, without `?` and without a fragment; empty if there is none. */
struct slice url_query(struct slice target);

/* Some applications (Perl's CGI.pm, older ones in Python and Ruby) also take a `;` for the end of a
 * parameter. */
enum url_query_separators { URL_QUERY_AMPERSANDS, URL_QUERY_SEMICOLONS };

/*
 * The next value of a parameter in a query (application/x-www-form-urlencoded), of which *rest is
 * what is left to look at. A parameter has the name if any usual application may take it for that:
 * names are decoded (CGI.pm reads %u006e, too), PHP passes over blanks in front, ends a name at a
 * NUL, takes `n[]` and `n[x]` for `n`, and `.`, a blank and `[` inside for `_`; Rack also takes
 * `[n]` and `n]` for `n`. The value is not decoded, and empty if there is no `=`. False if there is
 * none any more.
 */
bool url_query_next(struct slice *rest, enum url_query_separators separators, struct slice name,
	bool nocase, struct slice *value);

/* Whether the raw name may be taken for this one, as said above. */
bool url_query_is_named(struct slice raw, struct slice name, bool nocase);

/* Decodes a value of a query to at most value.len bytes, and returns how many they are. A bad
 * escape stands for itself, as in PHP; %u0041 is decoded as in CGI.pm. */
size_t url_query_decode(struct slice value, char *out);

#endif
