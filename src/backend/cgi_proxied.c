/*
 * SCRIPT_FILENAME as Apache's mod_proxy_fcgi says it: "proxy:fcgi://HOST/srv/www/x.cgi?query". The
 * form is for php-fpm, which knows Apache by it, so it is passed on to FastCGI servers as it is; a
 * program is the file that it means.
 *
 * Whether the path in it is percent-encoded depends on Apache's version and on how it was
 * configured, and cannot be seen: "%61" may be an "a", or the name of a file. SCRIPT_NAME and
 * PATH_INFO, which limits look at, are always decoded. So what agrees with them counts, and nobody
 * runs a program by a spelling that its limits do not know.
 */
#include "cgi_private.h"

#include <string.h>

static const struct slice prefixes[] = { { "proxy:fcgi://", 13 }, { "proxy:balancer://", 17 } };

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A bad escape stands for itself. */
static struct slice
decode(struct slice text, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < text.len; i++) {
		const bool is_escape = text.ptr[i] == '%' && text.len - i > 2 &&
			hex(text.ptr[i + 1]) >= 0 && hex(text.ptr[i + 2]) >= 0;

		out[len++] = is_escape ? (char)(hex(text.ptr[i + 1]) << 4 | hex(text.ptr[i + 2]))
				       : text.ptr[i];
		i += is_escape ? 2 : 0;
	}
	return slice_make(out, len);
}

/* How many bytes at the end of both are the same. */
static size_t
agreement(struct slice path, struct slice end)
{
	size_t same = 0;

	while (same < path.len && same < end.len &&
		path.ptr[path.len - 1 - same] == end.ptr[end.len - 1 - same])
		same++;
	return same;
}

/* With the script's name, or with that and what is behind it: ProxyPass does not take it off. */
static size_t
agreement_with(struct slice path, struct slice name, struct slice info)
{
	const size_t alone = agreement(path, name);
	size_t both = agreement(path, info);

	if (both == info.len)
		both += agreement(slice_first(path, path.len - both), name);
	return both > alone ? both : alone;
}

struct slice
cgi_proxied_path(struct slice filename, struct slice name, struct slice info, char room[PATH_MAX])
{
	size_t i = 0;

	while (i < 2 && !slice_has_prefix(filename, prefixes[i]))
		i++;
	if (i == 2)
		return filename;
	struct slice path = slice_skip(filename, prefixes[i].len);

	path = slice_skip(path, slice_find(path, '/'));
	path = slice_first(path, slice_find(path, '?'));
	/* The one behind the host, and the path's own. */
	while (path.len > 1 && path.ptr[0] == '/' && path.ptr[1] == '/')
		path = slice_skip(path, 1);
	if (path.len >= PATH_MAX)
		return path;
	const struct slice decoded = decode(path, room);

	return agreement_with(decoded, name, info) > agreement_with(path, name, info) ? decoded
										      : path;
}
