/* Takes from the environment what routes and identities ask for, in one pass. */
#include "weir/view.h"

#include "weir/url_path.h"

/* What is asked of every request. Sorted by nothing: the first letter sorts out most of an
 * environment. */
enum wanted { METHOD, TARGET, SCRIPT, USER, AUTH, ADDRESS, ACCEPT, WANTED };

static const struct slice wanted_names[WANTED] = {
	[METHOD] = { "REQUEST_METHOD", 14 },
	[TARGET] = { "REQUEST_URI", 11 },
	[SCRIPT] = { "SCRIPT_NAME", 11 },
	[USER] = { "REMOTE_USER", 11 },
	[AUTH] = { "AUTH_TYPE", 9 },
	[ADDRESS] = { "REMOTE_ADDR", 11 },
	[ACCEPT] = { "HTTP_ACCEPT", 11 },
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
take(const char *entry, struct slice found[WANTED])
{
	for (unsigned i = 0; i < WANTED; i++) {
		if (entry[0] != wanted_names[i].ptr[0])
			continue;
		const struct slice value = value_of(entry, wanted_names[i]);

		if (value.ptr != NULL) {
			found[i] = value;
			return;
		}
	}
}

/* Without REQUEST_URI (which is no CGI variable) the web server has resolved the path already. */
static int
take_resolved_path(struct view *view, struct arena *arena, struct err *err)
{
	const struct slice script = view_param(view, "SCRIPT_NAME"),
			   info = view_param(view, "PATH_INFO");
	const char *text = arena_printf(arena, "%.*s%.*s", (int)script.len,
		script.len == 0 ? "" : script.ptr, (int)info.len, info.len == 0 ? "" : info.ptr);

	if (text == NULL)
		return err_set(err, "no memory for the path");
	view->path = text[0] == '/' ? slice_of(text) : SLICE("/");
	view->target = view->path;
	return 0;
}

static int
take_path(struct view *view, struct arena *arena, struct err *err)
{
	if (view->target.len == 0)
		return take_resolved_path(view, arena, err);
	char *path = arena_alloc(arena, view->target.len + 1);

	if (path == NULL)
		return err_set(err, "no memory for the path");
	size_t len;

	if (url_path_normal(view->target, path, &len, err) != 0)
		return -1;
	view->path = slice_make(path, len);
	return 0;
}

int
view_init(struct view *view, char *const *env, struct arena *arena, struct err *err)
{
	struct slice found[WANTED] = { { NULL, 0 } };

	for (char *const *entry = env; *entry != NULL; entry++)
		take(*entry, found);
	*view = (struct view){ .env = env,
		.method = found[METHOD],
		.target = found[TARGET],
		.script = found[SCRIPT],
		.accept = found[ACCEPT] };
	if (take_path(view, arena, err) != 0)
		return -1;
	if (view->script.len == 0)
		view->script = view->path;
	/* nginx passes on as REMOTE_USER what any client claims; only AUTH_TYPE says that it was
	 * checked. */
	if (found[AUTH].len > 0)
		view->user = found[USER];
	else
		view->user_is_claimed = found[USER].len > 0;
	view->has_ip = ip_parse(found[ADDRESS], &view->ip) == 0;
	return 0;
}
