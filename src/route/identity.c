/*
 * Who is counted. Each kind of part writes itself in a form that no other kind can write: an
 * address as it is, the others with their kind and `=`, hashes with `#`; and neither `=` nor `#`
 * nor `+`, which joins parts, nor braces (which choose a slot in a Redis Cluster) can stand in a
 * value. So a text can be taken apart in one way only, and two identities never meet.
 */
#include "overrides.h"
#include "values.h"

#include <stdio.h>

enum {
	PLAIN_MAX = 64,
	PART_SIZE = 2 * PLAIN_MAX + 32, /* a variable's name and value */
	JOINED_MAX = 128, /* beyond it the whole is hashed; stores are made for keys below 256 */
	JOINED_SIZE = IDENTITY_PARTS_MAX * PART_SIZE
};

/* Counted in place of several values of which nobody can say which one the application reads. */
static const struct slice several = { "", 1 };

struct joined {
	char text[JOINED_SIZE];
	size_t len;
};

static const char *const kinds[] = {
	[IDENTITY_IP] = "ip",
	[IDENTITY_USER] = "user",
	[IDENTITY_HEADER] = "header",
	[IDENTITY_COOKIE] = "cookie",
	[IDENTITY_PARAM] = "param",
	[IDENTITY_ENV] = "env",
	[IDENTITY_HOST] = "host",
	[IDENTITY_PATH] = "path",
	[IDENTITY_BACKEND] = "backend",
	[IDENTITY_ROUTE] = "route",
	[IDENTITY_ALL] = "all",
};

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

/* Keys of APIs come in headers, cookies and queries. A variable may be a header by another name. */
static bool
is_secret(const struct config_identity_part *part)
{
	return part->source == IDENTITY_HEADER || part->source == IDENTITY_COOKIE ||
		part->source == IDENTITY_PARAM ||
		(part->source == IDENTITY_ENV &&
			slice_has_prefix(slice_of(part->name), SLICE("HTTP_")));
}

/* ---- one part ---- */

/* The kind and the name go into the hash, so that a header's value and a user's name never meet. */
static void
write_hashed(const char *kind, const char *name, struct slice value, const uint8_t *hash_key,
	char out[PART_SIZE])
{
	char text[HASH_TEXT_SIZE];
	const struct hash_wide of_value = hash_wide(hash_key, value);
	char all[512];
	const int n =
		snprintf(all, sizeof all, "%s %.400s %s", kind, name, hash_text(of_value, text));

	(void)snprintf(out, PART_SIZE, "%s#%s", kind,
		hash_text(hash_wide(hash_key, slice_make(all, (size_t)n)), text));
}

static void
write_value(const struct config_identity_part *part, struct slice value, const uint8_t *hash_key,
	char out[PART_SIZE])
{
	const char *kind = kinds[part->source];
	const char *name = part->param != NULL ? part->param : part->name;

	if (is_secret(part) || !is_plain(value) || (name != NULL && !is_plain(slice_of(name))))
		write_hashed(kind, name == NULL ? "" : name, value, hash_key, out);
	else
		(void)snprintf(out, PART_SIZE, "%s%s%s=%.*s", kind, name == NULL ? "" : ":",
			name == NULL ? "" : name, (int)value.len, value.ptr);
}

static void
write_ip(const struct config_identity_part *part, struct ip ip, char out[PART_SIZE])
{
	const unsigned bits = ip.family == 4 ? part->prefix_4 : part->prefix_6;

	_Static_assert(PART_SIZE >= IP_TEXT_SIZE + 4, "an address with its bits fits");
	const size_t len = strlen(ip_text(ip_masked(ip, bits), out));

	if (bits < (ip.family == 4 ? 32 : 128))
		(void)snprintf(out + len, PART_SIZE - len, "/%u", bits);
}

/* The one that an override names; empty: none is. */
static struct slice
known_value(const struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part, const struct readings *readings)
{
	unsigned found = 0, count = 0;

	for (unsigned i = 0; i < readings->count; i++) {
		if (!overrides_name(asker, limit, part, readings, i))
			continue;
		found = i;
		count++;
	}
	if (count == 0)
		return (struct slice){ NULL, 0 };
	return count == 1 ? reading_decoded(readings, found) : several;
}

static struct slice
value_sent(const struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part)
{
	struct readings readings;

	readings_of(&readings, asker->view, part->source, part->name, part->param);
	if (part->known)
		return known_value(asker, limit, part, &readings);
	if (readings.count == 0)
		return (struct slice){ NULL, 0 };
	return readings.count == 1 ? reading_decoded(&readings, 0) : several;
}

/* Empty: the request has none. */
static struct slice
value_of(const struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part)
{
	switch (part->source) {
	case IDENTITY_USER:
	case IDENTITY_HEADER:
	case IDENTITY_COOKIE:
	case IDENTITY_PARAM:
	case IDENTITY_ENV:
		return value_sent(asker, limit, part);
	case IDENTITY_HOST:
		return asker->view->host;
	case IDENTITY_PATH:
		return asker->view->path;
	case IDENTITY_BACKEND:
		return slice_of(asker->backend == NULL ? "" : asker->backend->name);
	case IDENTITY_ROUTE:
		return slice_of(asker->route->name);
	case IDENTITY_IP:
	case IDENTITY_ALL:
		break;
	}
	return (struct slice){ NULL, 0 };
}

/* False: this part is not present in the request. */
static bool
write_part(struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part, char out[PART_SIZE])
{
	if (part->source == IDENTITY_ALL) {
		(void)snprintf(out, PART_SIZE, "all");
		return true;
	}
	if (part->source == IDENTITY_IP) {
		if (asker->view->has_ip)
			write_ip(part, asker->view->ip, out);
		else
			(void)snprintf(out, PART_SIZE, "ip=none");
		return true;
	}
	const struct slice value = value_of(asker, limit, part);

	if (value.len == 0)
		return false;
	write_value(part, value, asker->hash_key, out);
	return true;
}

/* ---- all of them ---- */

/* False: a part is missing. */
static bool
write_identity(struct asker *asker, const struct config_limit *limit,
	const struct config_identity *identity, struct joined *out)
{
	out->len = 0;
	for (unsigned i = 0; i < identity->part_count; i++) {
		if (i > 0)
			out->text[out->len++] = '+';
		if (!write_part(asker, limit, &identity->parts[i], out->text + out->len))
			return false;
		out->len += strlen(out->text + out->len);
	}
	if (out->len > JOINED_MAX) {
		char text[HASH_TEXT_SIZE];
		const struct hash_wide hash =
			hash_wide(asker->hash_key, slice_make(out->text, out->len));

		out->len =
			(size_t)snprintf(out->text, sizeof out->text, "#%s", hash_text(hash, text));
	}
	return true;
}

static bool
has_ip_part(const struct config_identity *identity)
{
	for (unsigned i = 0; i < identity->part_count; i++) {
		if (identity->parts[i].source == IDENTITY_IP)
			return true;
	}
	return false;
}

static enum identity_result
missing(enum on_missing on_missing, struct joined *out)
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
	out->len = (size_t)snprintf(out->text, sizeof out->text, "none");
	return IDENTITY_FOUND;
}

/* `LIMIT:IDENTITY` */
static int
put_together(
	const char *limit, const struct joined *identity, struct arena *arena, struct slice *key)
{
	const size_t first = strlen(limit);
	char *name = arena_alloc(arena, first + 1 + identity->len);

	if (name == NULL)
		return -1;
	memcpy(name, limit, first);
	name[first] = ':';
	memcpy(name + first + 1, identity->text, identity->len);
	*key = slice_make(name, first + 1 + identity->len);
	return 0;
}

enum identity_result
identity_key(struct asker *asker, const struct config_limit *limit, struct arena *arena,
	struct slice *key)
{
	enum identity_result result = IDENTITY_SKIP;
	struct joined text;
	bool found = false;

	for (unsigned i = 0; i < limit->identity_count && !found; i++) {
		const struct config_identity *identity = &limit->identities[i];

		found = write_identity(asker, limit, identity, &text);
		if (found)
			result = !asker->view->has_ip && has_ip_part(identity) ? IDENTITY_NO_ADDRESS
									       : IDENTITY_FOUND;
	}
	if (!found)
		result = missing(limit->on_missing, &text);
	if (result == IDENTITY_SKIP || result == IDENTITY_REJECT)
		return result;
	return put_together(limit->name, &text, arena, key) == 0 ? result : IDENTITY_NO_MEMORY;
}
