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
	if (attribute->source != source || (attribute->name == NULL) != (name == NULL))
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

static uint64_t
mixed(const uint8_t digest[HASH_SHA256_SIZE], uint32_t group)
{
	uint64_t bits;

	memcpy(&bits, digest, sizeof bits);
	return bits ^ group * UINT64_C(0x9e3779b97f4a7c15);
}

/* The slot of the entry, or the free one where it would be. */
size_t
overrides_find_slot(
	const struct overrides *overrides, const uint8_t digest[HASH_SHA256_SIZE], uint32_t group)
{
	size_t at = (size_t)mixed(digest, group) & overrides->slot_mask;

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
	asker->overrides = overrides;
	asker->hash_key = hash_key;
	asker->digest_count = 0;
}

/* False: the request has no such value. */
static bool
digest_of(struct asker *asker, unsigned number, uint8_t out[HASH_SHA256_SIZE])
{
	const struct attribute *attribute = &asker->overrides->attributes[number];
	struct slice value;

	for (unsigned i = 0; i < asker->digest_count; i++) {
		if (asker->digests[i].attribute == number) {
			memcpy(out, asker->digests[i].bytes, HASH_SHA256_SIZE);
			return true;
		}
	}
	if (!value_counted(
		    asker->view, attribute->source, attribute->name, attribute->param, &value))
		return false;
	hash_sha256(value, out);
	if (asker->digest_count < ASKER_DIGESTS_MAX) {
		asker->digests[asker->digest_count].attribute = number;
		memcpy(asker->digests[asker->digest_count++].bytes, out, HASH_SHA256_SIZE);
	}
	return true;
}

static int64_t
find_in_group(struct asker *asker, const struct limit_groups *groups, const struct group *group)
{
	const struct overrides *overrides = asker->overrides;
	uint8_t digest[HASH_SHA256_SIZE];

	if (overrides->attributes[group->attribute].source == IDENTITY_IP)
		return asker->view->has_ip ? net_map_find(&group->nets, asker->view->ip)
					   : NOT_FOUND;
	if (!digest_of(asker, group->attribute, digest))
		return NOT_FOUND;
	return find_entry(overrides, digest, overrides_group_number(groups, group));
}

int
overrides_find(struct asker *asker, const struct config_limit *limit)
{
	const struct limit_groups *groups =
		asker->overrides == NULL ? NULL : overrides_find_limit(asker->overrides, limit);
	int64_t first = NOT_FOUND;

	for (unsigned i = 0; groups != NULL && i < groups->count; i++) {
		const int64_t found = find_in_group(asker, groups, &groups->list[i]);

		if (found != NOT_FOUND && (first == NOT_FOUND || found < first))
			first = found;
	}
	return (int)first;
}

bool
overrides_name(struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part)
{
	const struct limit_groups *groups =
		asker->overrides == NULL ? NULL : overrides_find_limit(asker->overrides, limit);
	const struct group *group = groups == NULL ? NULL
						   : overrides_find_group(asker->overrides, groups,
							     part->source, part->name, part->param);

	return group != NULL && find_in_group(asker, groups, group) != NOT_FOUND;
}
