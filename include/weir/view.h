/*
 * A request as routes and identities see it: what matters of the parameters that the web server
 * sent (RFC 3875 section 4), with the path in its normal form. Made from FastCGI parameters, or
 * from a line of an access log.
 */
#ifndef WEIR_VIEW_H
#define WEIR_VIEW_H

#include "weir/arena.h"
#include "weir/err.h"
#include "weir/ip.h"
#include "weir/slice.h"

struct view {
	char *const *env; /* "NAME=value", NULL behind the last */
	struct slice method; /* empty if not given */
	struct slice target; /* REQUEST_URI as it came */
	struct slice path; /* its normal form (url_path.h) */
	struct slice script; /* SCRIPT_NAME; the path where the web server chose no script
				(authorizers) */
	struct slice user; /* REMOTE_USER if AUTH_TYPE says that it was authenticated, else empty */
	bool user_is_claimed; /* REMOTE_USER came without AUTH_TYPE */
	bool has_ip;
	struct ip ip; /* the client's */
	struct slice accept;
};

/*
 * Where a name is repeated the last counts, as for the application. -1: the path has no normal
 * form, and so no route could be right; err says why. What is made lives in the arena, the rest in
 * env.
 */
int view_init(
	struct view *view, char *const *env, struct arena *arena, struct err *err) WEIR_MUST_CHECK;

/* A parameter's value; ptr NULL if it is not there. */
struct slice view_param(const struct view *view, const char *name);

#endif
