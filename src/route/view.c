/* Takes from the environment what routes and identities ask for, in one pass. */
#include "weir/view.h"

#include "weir/url_path.h"

static const struct {
	struct slice name;
	size_t offset;
} wanted[] = {
	{ { "REQUEST_METHOD", 14 }, offsetof(struct view, method) },
	{ { "REQUEST_URI", 11 }, offsetof(struct view, target) },
	{ { "SCRIPT_NAME", 11 }, offsetof(struct view, script) },
	{ { "REMOTE_USER", 11 }, offsetof(struct view, user) },
	{ { "HTTP_ACCEPT", 11 }, offsetof(struct view, accept) },
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
take(struct view *view, const char *entry)
{
	for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
		const struct slice value = value_of(entry, wanted[i].name);

		if (value.ptr != NULL) {
			memcpy((char *)view + wanted[i].offset, &value, sizeof value);
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
	*view = (struct view){ .env = env };
	for (char *const *entry = env; *entry != NULL; entry++)
		take(view, *entry);
	if (take_path(view, arena, err) != 0)
		return -1;
	if (view->script.len == 0)
		view->script = view->path;
	/* nginx passes on as REMOTE_USER what any client claims; only AUTH_TYPE says that it was
	 * checked. */
	if (view->user.len > 0 && view_param(view, "AUTH_TYPE").len == 0) {
		view->user = (struct slice){ NULL, 0 };
		view->user_is_claimed = true;
	}
	view->has_ip = ip_parse(view_param(view, "REMOTE_ADDR"), &view->ip) == 0;
	return 0;
}
