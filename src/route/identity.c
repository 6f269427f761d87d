/*
 * Who is counted. Each kind of identity writes itself in a form that no other kind can write: an
 * address as it is, the others with their kind and `=`, hashes with `#`; and neither `=` nor `#`
 * nor braces (which choose a slot in a Redis Cluster) can stand in a value.
 */
#include "weir/hash.h"
#include "weir/route.h"

#include <stdio.h>

enum { PLAIN_MAX = 64, IDENTITY_TEXT_SIZE = PLAIN_MAX + 32 };

static bool
is_plain(struct slice value)
{
	const struct slice marks = SLICE("._~@/:-");

	if (value.len == 0 || value.len > PLAIN_MAX)
		return false;
	for (size_t i = 0; i < value.len; i++) {
		const char c = value.ptr[i];

		if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') &&
			slice_find(marks, c) == marks.len)
			return false;
	}
	return true;
}

/* The kind and the name go into the hash, so that a header's value and a user's name never meet. */
static void
write_hashed(const char *kind, const char *name, struct slice value, const uint8_t *hash_key,
	char out[IDENTITY_TEXT_SIZE])
{
	char text[HASH_TEXT_SIZE];
	const struct hash_wide of_value = hash_wide(hash_key, value);
	char all[512];
	const int n =
		snprintf(all, sizeof all, "%s %.400s %s", kind, name, hash_text(of_value, text));

	(void)snprintf(out, IDENTITY_TEXT_SIZE, "%s#%s", kind,
		hash_text(hash_wide(hash_key, slice_make(all, (size_t)n)), text));
}

static void
write_ip(const struct config_identity_part *identity, struct ip ip, char out[IDENTITY_TEXT_SIZE])
{
	const unsigned bits = ip.family == 4 ? identity->prefix_4 : identity->prefix_6;

	_Static_assert(IDENTITY_TEXT_SIZE >= IP_TEXT_SIZE + 4, "an address with its bits fits");
	const size_t len = strlen(ip_text(ip_masked(ip, bits), out));

	if (bits < (ip.family == 4 ? 32 : 128))
		(void)snprintf(out + len, IDENTITY_TEXT_SIZE - len, "/%u", bits);
}

/* False: this identity is not present in the request. */
static bool
write_identity(const struct config_identity_part *identity, const struct view *view,
	const uint8_t *hash_key, char out[IDENTITY_TEXT_SIZE])
{
	struct slice value;

	switch (identity->source) {
	case IDENTITY_IP:
		if (view->has_ip)
			write_ip(identity, view->ip, out);
		else
			(void)snprintf(out, IDENTITY_TEXT_SIZE, "ip=none");
		return true;
	case IDENTITY_USER:
		if (view->user.len == 0)
			return false;
		if (is_plain(view->user))
			(void)snprintf(out, IDENTITY_TEXT_SIZE, "user=%.*s", (int)view->user.len,
				view->user.ptr);
		else
			write_hashed("user", "", view->user, hash_key, out);
		return true;
	case IDENTITY_HEADER:
		value = view_param(view, identity->param);
		if (value.len == 0)
			return false;
		write_hashed("header", identity->param, value, hash_key, out);
		return true;
	case IDENTITY_ALL:
		(void)snprintf(out, IDENTITY_TEXT_SIZE, "all");
		return true;
	case IDENTITY_COOKIE:
	case IDENTITY_PARAM:
	case IDENTITY_ENV:
	case IDENTITY_HOST:
	case IDENTITY_PATH:
	case IDENTITY_BACKEND:
	case IDENTITY_ROUTE:
		break;
	}
	return false;
}

static enum identity_result
missing(enum on_missing on_missing, char out[IDENTITY_TEXT_SIZE])
{
	switch (on_missing) {
	case ON_MISSING_SKIP:
		return IDENTITY_SKIP;
	case ON_MISSING_REJECT:
		return IDENTITY_REJECT;
	case ON_MISSING_UNSET: /* the list ends in something that is always there, so this is never
				  asked */
	case ON_MISSING_SHARE:
		break;
	}
	(void)snprintf(out, IDENTITY_TEXT_SIZE, "none");
	return IDENTITY_FOUND;
}

/* `LIMIT:IDENTITY` */
static int
put_together(const char *limit, const char *identity, struct arena *arena, struct slice *key)
{
	const size_t first = strlen(limit), second = strlen(identity);
	char *name = arena_alloc(arena, first + 1 + second);

	if (name == NULL)
		return -1;
	memcpy(name, limit, first);
	name[first] = ':';
	memcpy(name + first + 1, identity, second);
	*key = slice_make(name, first + 1 + second);
	return 0;
}

enum identity_result
identity_key(const struct config_limit *limit, const struct view *view, const uint8_t *hash_key,
	struct arena *arena, struct slice *key)
{
	char text[IDENTITY_TEXT_SIZE];
	enum identity_result result = IDENTITY_SKIP;
	bool found = false;

	for (unsigned i = 0; i < limit->identity_count && !found; i++) {
		found = write_identity(&limit->identities[i].parts[0], view, hash_key, text);
		if (found)
			result =
				limit->identities[i].parts[0].source == IDENTITY_IP && !view->has_ip
				? IDENTITY_NO_ADDRESS
				: IDENTITY_FOUND;
	}
	if (!found)
		result = missing(limit->on_missing, text);
	if (result == IDENTITY_SKIP || result == IDENTITY_REJECT)
		return result;
	return put_together(limit->name, text, arena, key) == 0 ? result : IDENTITY_NO_MEMORY;
}
