/*
 * A request as routes and identities see it: what matters of the parameters that the web server
 * sent (RFC 3875 section 4), with the path in its normal form. Made from FastCGI parameters, or
 * from a line of an access log.
 *
 * The client's address is REMOTE_ADDR unless that is one of trusted_proxies. Then X-Forwarded-For
 * is walked from its right end, as long as the addresses are of trusted proxies: the first other
 * one is the client's. What is no address ends the walk at the last one that was: it is the proxy's
 * own word then, and never the client's. So does an address behind the first VIEW_HOPS_MAX.
 */
#ifndef WEIR_VIEW_H
#define WEIR_VIEW_H

#include "weir/arena.h"
#include "weir/err.h"
#include "weir/ip.h"
#include "weir/slice.h"

enum { VIEW_HOPS_MAX = 100 };

struct routes;

struct view {
	char *const *env; /* "NAME=value", NULL behind the last */
	struct slice method; /* empty if not given */
	struct slice target; /* REQUEST_URI as it came */
	struct slice path; /* its normal form (url_path.h) */
	struct slice query; /* QUERY_STRING, or the target's if that is empty; raw */
	struct slice script; /* SCRIPT_NAME, folded; the path where the web server chose no script
				(authorizers) */
	struct slice host; /* an absolute target's, HTTP_HOST or SERVER_NAME, without port and final
			    * dot, in small letters; may be empty
			    */
	struct slice cookies; /* HTTP_COOKIE */
	struct slice user; /* REMOTE_USER if AUTH_TYPE says that it was authenticated, else empty */
	bool user_is_claimed; /* REMOTE_USER came without AUTH_TYPE */
	bool has_ip;
	struct ip ip; /* the client's */
	bool has_forwarded; /* X-Forwarded-For is there, believed or not */
	bool forwarded_is_forged; /* a trusted proxy's came twice (lighttpd makes a second one of
				     X_Forwarded_For): neither is believed, REMOTE_ADDR counts */
	bool proxy_names_nobody; /* the client is a trusted proxy itself: its X-Forwarded-For is not
				    there, is forged, or ends in no address */
	struct slice accept;
	char *scratch; /* room to decode a value of the query or a cookie, one at a time */
};

/*
 * Where a name is repeated the last counts, as for the application. `routes` knows the trusted
 * proxies; NULL: there are none. -1: the path has no normal form, and so no route could be right;
 * err says why. What is made lives in the arena, the rest in env.
 */
int view_init(struct view *view, const struct routes *routes, char *const *env, struct arena *arena,
	struct err *err) WEIR_MUST_CHECK;

/* A parameter's value; ptr NULL if it is not there. */
struct slice view_param(const struct view *view, const char *name);

#endif
