/*
 * Overrides are looked up. Values are known by their SHA-256, since some are given so. That makes
 * those that stand in the clear, those that do not and all lengths alike, and no peer can choose
 * values that fall together in the table. A value is hashed once a request, however many limits ask
 * for it.
 */
#include "overrides.h"

#include "values.h"

#include <stdlib.h>

enum { NOT_FOUND = -1 };

/* ---- limits, attributes and groups ---- */

int
overrides_compare_limits(const void *left, const void *right)
{
	const uintptr_t a = (uintptr_t)((const struct limit_groups *)left)->limit;
	const uintptr_t b = (uintptr_t)((const struct limit_groups *)right)->limit;

	return a < b ? -1 : a > b;
}

struct limit_groups *
overrides_find_limit(const struct overrides *overrides, const struct config_limit *limit)
{
	const struct limit_groups wanted = { .limit = limit };

	return bsearch(&wanted, overrides->limits, overrides->limit_count,
		sizeof overrides->limits[0], overrides_compare_limits);
}

bool
overrides_attribute_is(const struct attribute *attribute, enum identity_source source,
	const char *name, const char *param)
{
	if (attribute->source != source || (attribute->name == NULL) != (name == NULL) ||
		(attribute->param == NULL) != (param == NULL))
		return false;
	/* The names of headers differ only as FastCGI sees them. */
	return name == NULL ||
		strcmp(attribute->param == NULL ? attribute->name : attribute->param,
			param == NULL ? name : param) == 0;
}

struct group *
overrides_find_group(const struct overrides *overrides, const struct limit_groups *groups,
	enum identity_source source, const char *name, const char *param)
{
	for (unsigned i = 0; i < groups->count; i++) {
		if (overrides_attribute_is(
			    &overrides->attributes[groups->list[i].attribute], source, name, param))
			return &groups->list[i];
	}
	return NULL;
}

uint32_t
overrides_group_number(const struct limit_groups *groups, const struct group *group)
{
	return groups->first + (unsigned)(group - groups->list);
}

/* ---- the table ---- */

/* A sum of products with secret numbers: of two digests that differ in any word nobody can know
 * whether they meet, though digests themselves can be written into a file to meet in their first
 * bytes. */
static uint64_t
mixed(const struct overrides *overrides, const uint8_t digest[HASH_SHA256_SIZE], uint32_t group)
{
	uint32_t words[OVERRIDES_WORDS] = { group };
	uint64_t sum = 0;

	memcpy(words + 1, digest, HASH_SHA256_SIZE);
	for (unsigned i = 0; i < OVERRIDES_WORDS; i++)
		sum += overrides->secret[i] * words[i];
	return sum >> 32;
}

/* The slot of the entry, or the free one where it would be. */
size_t
overrides_find_slot(
	const struct overrides *overrides, const uint8_t digest[HASH_SHA256_SIZE], uint32_t group)
{
	size_t at = (size_t)mixed(overrides, digest, group) & overrides->slot_mask;

	while (overrides->slots[at] != 0) {
		const struct entry *entry = &overrides->entries[overrides->slots[at] - 1];

		if (entry->group == group && memcmp(entry->digest, digest, HASH_SHA256_SIZE) == 0)
			break;
		at = (at + 1) & overrides->slot_mask;
	}
	return at;
}

static int64_t
find_entry(
	const struct overrides *overrides, const uint8_t digest[HASH_SHA256_SIZE], uint32_t group)
{
	const uint32_t entry = overrides->slots[overrides_find_slot(overrides, digest, group)];

	return entry == 0 ? NOT_FOUND : (int64_t)overrides->entries[entry - 1].override;
}

/* ---- asking ---- */

void
asker_init(struct asker *asker, const struct view *view, const struct config_route *route,
	const struct overrides *overrides, const uint8_t *hash_key)
{
	asker->view = view;
	asker->route = route;
	asker->backend = route == NULL ? NULL : route->backend;
	asker->overrides = overrides;
	asker->hash_key = hash_key;
	asker->digest_count = 0;
}

/* NULL: it is not kept. */
static const uint8_t *
find_digest(const struct asker *asker, unsigned attribute)
{
	for (unsigned i = 0; i < asker->digest_count; i++) {
		if (asker->digests[i].attribute == attribute)
			return asker->digests[i].bytes;
	}
	return NULL;
}

static void
keep_digest(struct asker *asker, unsigned attribute, const uint8_t digest[HASH_SHA256_SIZE])
{
	if (asker->digest_count == ASKER_DIGESTS_MAX)
		return;
	asker->digests[asker->digest_count].attribute = attribute;
	memcpy(asker->digests[asker->digest_count++].bytes, digest, HASH_SHA256_SIZE);
}

/* The entry of this value; `number` is the group's. */
static int64_t
find_value(const struct overrides *overrides, struct slice value, uint32_t number)
{
	uint8_t digest[HASH_SHA256_SIZE];

	hash_sha256(value, digest);
	return find_entry(overrides, digest, number);
}

/* A cookie may be named as it stands in the header, too. */
static int64_t
find_reading(const struct overrides *overrides, const struct readings *readings, unsigned i,
	uint32_t number)
{
	const struct slice raw = readings->list[i], value = reading_decoded(readings, i);
	const int64_t found = find_value(overrides, value, number);

	if (found != NOT_FOUND || readings->source != IDENTITY_COOKIE || slice_is(raw, value))
		return found;
	return find_value(overrides, raw, number);
}

/* The earlier one of two overrides. */
static int64_t
earlier(int64_t a, int64_t b)
{
	if (a == NOT_FOUND || b == NOT_FOUND)
		return a == NOT_FOUND ? b : a;
	return a < b ? a : b;
}

/* Nobody leads around his override by sending a second value that is read elsewhere. */
static int64_t
find_any_reading(struct asker *asker, const struct attribute *attribute, uint32_t number)
{
	const unsigned at = (unsigned)(attribute - asker->overrides->attributes);
	struct readings readings;
	int64_t first = NOT_FOUND;

	readings_of(&readings, asker->view, attribute->source, attribute->name, attribute->param);
	if (readings.count == 1 && attribute->source != IDENTITY_COOKIE) {
		uint8_t digest[HASH_SHA256_SIZE];

		hash_sha256(reading_decoded(&readings, 0), digest);
		keep_digest(asker, at, digest);
		return find_entry(asker->overrides, digest, number);
	}
	for (unsigned i = 0; i < readings.count; i++)
		first = earlier(first, find_reading(asker->overrides, &readings, i, number));
	return first;
}

static int64_t
find_in_group(struct asker *asker, const struct limit_groups *groups, const struct group *group)
{
	const struct overrides *overrides = asker->overrides;
	const struct attribute *attribute = &overrides->attributes[group->attribute];
	const uint32_t number = overrides_group_number(groups, group);
	const uint8_t *digest = find_digest(asker, group->attribute);

	if (attribute->source == IDENTITY_IP)
		return asker->view->has_ip ? net_map_find(&group->nets, asker->view->ip)
					   : NOT_FOUND;
	if (digest != NULL)
		return find_entry(overrides, digest, number);
	return find_any_reading(asker, attribute, number);
}

int
overrides_find(struct asker *asker, const struct config_limit *limit)
{
	const struct limit_groups *groups =
		asker->overrides == NULL ? NULL : overrides_find_limit(asker->overrides, limit);
	int64_t first = NOT_FOUND;

	for (unsigned i = 0; groups != NULL && i < groups->count; i++)
		first = earlier(first, find_in_group(asker, groups, &groups->list[i]));
	return (int)first;
}

bool
overrides_name(const struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part, const struct readings *readings, unsigned i)
{
	const struct limit_groups *groups =
		asker->overrides == NULL ? NULL : overrides_find_limit(asker->overrides, limit);
	const struct group *group = groups == NULL ? NULL
						   : overrides_find_group(asker->overrides, groups,
							     part->source, part->name, part->param);

	return group != NULL &&
		find_reading(asker->overrides, readings, i,
			overrides_group_number(groups, group)) != NOT_FOUND;
}
