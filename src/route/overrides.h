/*
 * Overrides, as they are made ready and looked up, and what identities ask of them. Private to the
 * room.
 *
 * What a limit's overrides compare, such as `header X-API-Key`, is a group: of addresses a map of
 * networks, of all others a part of one table of digests.
 */
#ifndef WEIR_ROUTE_OVERRIDES_H
#define WEIR_ROUTE_OVERRIDES_H

#include "net_map.h"
#include "values.h"
#include "weir/route.h"

/* What is compared, whichever limit does. */
struct attribute {
	enum identity_source source;
	const char *name, *param;
};

/* One limit's values of one attribute. */
struct group {
	unsigned attribute;
	struct net_map nets;
	struct net_map_item *items; /* while it is made */
	size_t item_count, item_max;
};

struct limit_groups {
	const struct config_limit *limit;
	struct group *list;
	unsigned count;
	unsigned first; /* number of the first group among those of all limits */
};

struct entry {
	uint8_t digest[HASH_SHA256_SIZE];
	uint32_t group, override;
};

/* A digest and the number of its group, in words of 32 bits. */
enum { OVERRIDES_WORDS = HASH_SHA256_SIZE / 4 + 1 };

struct overrides {
	struct attribute *attributes;
	struct limit_groups *limits; /* sorted by where they are */
	struct entry *entries;
	uint32_t *slots; /* 0: free; else one more than the index of an entry */
	unsigned attribute_count, limit_count, group_count;
	size_t entry_count;
	size_t slot_mask;
	uint64_t secret[OVERRIDES_WORDS]; /* so that nobody can make values that fall together */
};

/* Whether an override of this limit names the ith of the request's values for this part of an
 * identity. */
bool overrides_name(const struct asker *asker, const struct config_limit *limit,
	const struct config_identity_part *part, const struct readings *readings, unsigned i);

/* ---- for making them ---- */

/* By where the limits are. */
int overrides_compare_limits(const void *left, const void *right);

bool overrides_attribute_is(const struct attribute *attribute, enum identity_source source,
	const char *name, const char *param);

/* NULL: the limit has no overrides. */
struct limit_groups *
overrides_find_limit(const struct overrides *overrides, const struct config_limit *limit);

/* NULL: the limit has none of these. */
struct group *
overrides_find_group(const struct overrides *overrides, const struct limit_groups *groups,
	enum identity_source source, const char *name, const char *param);

/* Its number among the groups of all limits. */
uint32_t overrides_group_number(const struct limit_groups *groups, const struct group *group);

/* The slot of the entry, or the free one where it would be. */
size_t overrides_find_slot(
	const struct overrides *overrides, const uint8_t digest[HASH_SHA256_SIZE], uint32_t group);

#endif
