/* Takes from the environment what routes and identities ask for, in one pass. */
#include "weir/view.h"

#include "forwarded.h"
#include "routes.h"
#include "weir/url_path.h"

/* What is asked of every request. Sorted by nothing: the first letter sorts out most of an
 * environment. */
enum wanted {
	METHOD,
	TARGET,
	QUERY,
	SCRIPT,
	INFO,
	USER,
	AUTH,
	ADDRESS,
	ACCEPT,
	HOST,
	SERVER,
	COOKIE,
	FORWARDED,
	WANTED
};

static const struct slice wanted_names[WANTED] = {
	[METHOD] = { "REQUEST_METHOD", 14 },
	[TARGET] = { "REQUEST_URI", 11 },
	[QUERY] = { "QUERY_STRING", 12 },
	[SCRIPT] = { "SCRIPT_NAME", 11 },
	[INFO] = { "PATH_INFO", 9 },
	[USER] = { "REMOTE_USER", 11 },
	[AUTH] = { "AUTH_TYPE", 9 },
	[ADDRESS] = { "REMOTE_ADDR", 11 },
	[ACCEPT] = { "HTTP_ACCEPT", 11 },
	[HOST] = { "HTTP_HOST", 9 },
	[SERVER] = { "SERVER_NAME", 11 },
	[COOKIE] = { "HTTP_COOKIE", 11 },
	[FORWARDED] = { "HTTP_X_FORWARDED_FOR", 20 },
};

struct found {
	struct slice values[WANTED];
	unsigned forwarded; /* how many there are */
};

/* The value if `entry` is NAME=value for this name; else ptr is NULL. */
static struct slice
value_of(const char *entry, struct slice name)
{
	if (strncmp(entry, name.ptr, name.len) != 0 || entry[name.len] != '=')
		return (struct slice){ NULL, 0 };
	return slice_of(entry + name.len + 1);
}

struct slice
view_param(const struct view *view, const char *name)
{
	struct slice found = { NULL, 0 };

	for (char *const *entry = view->env; *entry != NULL; entry++) {
		const struct slice value = value_of(*entry, slice_of(name));

		if (value.ptr != NULL)
			found = value;
	}
	return found;
}

static void
take(const char *entry, struct found *found)
{
	for (unsigned i = 0; i < WANTED; i++) {
		if (entry[0] != wanted_names[i].ptr[0])
			continue;
		const struct slice value = value_of(entry, wanted_names[i]);

		if (value.ptr == NULL)
			continue;
		found->forwarded += i == FORWARDED;
		/* nginx sends these two once more, empty, where a location overrides them. */
		if (value.len > 0 || (i != HOST && i != QUERY))
			found->values[i] = value;
		return;
	}
}

/* One that the web server has decoded, folded. */
static int
fold(struct slice *path, const char *name, struct arena *arena, struct err *err)
{
	char *folded = arena_alloc(arena, path->len + 1);
	size_t len;

	if (folded == NULL)
		return err_set(err, "no memory for %s", name);
	if (url_path_fold(*path, folded, &len) != 0)
		return err_set(err, "%s has a .. segment", name);
	*path = slice_make(folded, len);
	return 0;
}

/* By these the file system finds one script however many slashes they have. */
static int
take_script(struct view *view, struct found *found, struct arena *arena, struct err *err)
{
	if (fold(&found->values[SCRIPT], "SCRIPT_NAME", arena, err) != 0 ||
		fold(&found->values[INFO], "PATH_INFO", arena, err) != 0)
		return -1;
	view->script = found->values[SCRIPT];
	return 0;
}

/* Without REQUEST_URI (which is no CGI variable) the web server has resolved the path already. */
static int
take_resolved_path(
	struct view *view, const struct found *found, struct arena *arena, struct err *err)
{
	const struct slice script = found->values[SCRIPT], info = found->values[INFO];
	const char *text = arena_printf(
		arena, "%.*s%.*s", (int)script.len, script.ptr, (int)info.len, info.ptr);

	if (text == NULL)
		return err_set(err, "no memory for the path");
	view->path = text[0] == '/' ? slice_of(text) : SLICE("/");
	view->target = view->path;
	return 0;
}

static int
take_path(struct view *view, const struct found *found, struct arena *arena, struct err *err)
{
	if (view->target.len == 0)
		return take_resolved_path(view, found, arena, err);
	char *path = arena_alloc(arena, view->target.len + 1);

	if (path == NULL)
		return err_set(err, "no memory for the path");
	size_t len;

	if (url_path_normal(view->target, path, &len, err) != 0)
		return -1;
	view->path = slice_make(path, len);
	return 0;
}

/* The application reads QUERY_STRING; lighttpd's handler of 404s gets an empty one, and the query
 * in REQUEST_URI only. */
static int
take_query(
	struct view *view, const struct slice values[WANTED], struct arena *arena, struct err *err)
{
	view->query = values[QUERY].len > 0 ? values[QUERY] : url_query(values[TARGET]);
	const size_t len =
		view->query.len > view->cookies.len ? view->query.len : view->cookies.len;

	view->scratch = arena_alloc(arena, len + 1);
	return view->scratch == NULL ? err_set(err, "no memory for the query") : 0;
}

/* Where the port begins, if there is one; what is in brackets has colons of its own. */
static size_t
host_len(struct slice host)
{
	const size_t close = host.len > 0 && host.ptr[0] == '[' ? slice_find(host, ']') : 0;
	const struct slice behind = slice_skip(host, close);
	const size_t colon = close + slice_find(behind, ':');

	for (size_t i = colon + 1; i < host.len; i++) {
		if (host.ptr[i] < '0' || host.ptr[i] > '9')
			return host.len;
	}
	return colon;
}

/* As web servers choose the site: a target in absolute form has the last word, and who names no
 * host at all gets the first site. */
static struct slice
host_of(const struct slice values[WANTED])
{
	const struct slice host = url_host(values[TARGET]);

	if (host.len > 0)
		return host;
	return values[HOST].len > 0 ? values[HOST] : values[SERVER];
}

static int
take_host(struct view *view, struct slice host, struct arena *arena, struct err *err)
{
	host = slice_trim(host);
	host.len = host_len(host);
	if (host.len > 0 && host.ptr[host.len - 1] == '.')
		host.len--;
	char *small = arena_alloc(arena, host.len + 1);

	if (small == NULL)
		return err_set(err, "no memory for the host");
	for (size_t i = 0; i < host.len; i++) {
		const char c = host.ptr[i];

		small[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	view->host = slice_make(small, host.len);
	return 0;
}

/* nginx passes on as REMOTE_USER what any client claims; only AUTH_TYPE says that it was checked.
 */
static void
take_user(struct view *view, struct slice user, struct slice auth_type)
{
	if (auth_type.len > 0)
		view->user = user;
	else
		view->user_is_claimed = user.len > 0;
}

static void
take_ip(struct view *view, const struct found *found, const struct net_map *trusted)
{
	view->has_ip = ip_parse(found->values[ADDRESS], &view->ip) == 0;
	view->has_forwarded = found->forwarded > 0;
	if (!view->has_ip || trusted == NULL || net_map_find(trusted, view->ip) == NET_MAP_NONE)
		return;
	const struct ip peer = view->ip;

	view->forwarded_is_forged = found->forwarded > 1;
	if (found->forwarded == 1)
		view->ip = forwarded_client(trusted, peer, found->values[FORWARDED]);
	view->proxy_names_nobody = ip_is(view->ip, peer);
}

int
view_init(struct view *view, const struct routes *routes, char *const *env, struct arena *arena,
	struct err *err)
{
	struct found found = { .forwarded = 0 };
	const struct slice *values = found.values;

	for (char *const *entry = env; *entry != NULL; entry++)
		take(*entry, &found);
	*view = (struct view){ .env = env,
		.method = values[METHOD],
		.target = values[TARGET],
		.cookies = values[COOKIE],
		.accept = values[ACCEPT] };
	if (take_script(view, &found, arena, err) != 0 ||
		take_path(view, &found, arena, err) != 0 ||
		take_query(view, values, arena, err) != 0 ||
		take_host(view, host_of(values), arena, err) != 0)
		return -1;
	if (view->script.len == 0)
		view->script = view->path;
	take_user(view, values[USER], values[AUTH]);
	take_ip(view, &found, routes == NULL ? NULL : routes_trusted(routes));
	return 0;
}
