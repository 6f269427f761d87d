/*
 * Overrides are made ready. The files are gone through in their order, and what is in the table
 * already stays: so it holds the first override of each value. A map of networks has the first of
 * each stretch of addresses.
 */
#include "overrides.h"

#include <stdlib.h>

static void
put_value(struct overrides *overrides, const struct config_value *value, uint32_t group,
	uint32_t override)
{
	struct entry *entry = &overrides->entries[overrides->entry_count];

	if (value->is_sha256)
		memcpy(entry->digest, value->text, sizeof entry->digest);
	else
		hash_sha256(slice_make(value->text, value->len), entry->digest);
	const size_t at = overrides_find_slot(overrides, entry->digest, group);

	if (overrides->slots[at] != 0)
		return;
	entry->group = group;
	entry->override = override;
	overrides->slots[at] = (uint32_t)++overrides->entry_count;
}

static unsigned
add_attribute(struct overrides *overrides, const struct config_for *list)
{
	for (unsigned i = 0; i < overrides->attribute_count; i++) {
		if (overrides_attribute_is(
			    &overrides->attributes[i], list->source, list->name, list->param))
			return i;
	}
	overrides->attributes[overrides->attribute_count] =
		(struct attribute){ list->source, list->name, list->param };
	return overrides->attribute_count++;
}

static int
add_groups(struct overrides *overrides, struct limit_groups *groups)
{
	const struct config_limit *limit = groups->limit;
	size_t max = 0;

	for (unsigned i = 0; i < limit->override_count; i++)
		max += limit->overrides[i]->for_count;
	groups->list = calloc(max == 0 ? 1 : max, sizeof groups->list[0]);
	if (groups->list == NULL)
		return -1;
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			const struct config_for *list = &override->fors[j];
			struct group *group = overrides_find_group(
				overrides, groups, list->source, list->name, list->param);

			if (group == NULL) {
				group = &groups->list[groups->count++];
				group->attribute = add_attribute(overrides, list);
			}
			group->item_max += list->net_count;
		}
	}
	groups->first = overrides->group_count;
	overrides->group_count += groups->count;
	return 0;
}

static int
add_limits(struct overrides *overrides, const struct config *config)
{
	for (unsigned i = 0; i < config->limit_count; i++) {
		if (config->limits[i]->override_count > 0)
			overrides->limits[overrides->limit_count++].limit = config->limits[i];
	}
	qsort(overrides->limits, overrides->limit_count, sizeof overrides->limits[0],
		overrides_compare_limits);
	for (unsigned i = 0; i < overrides->limit_count; i++) {
		if (add_groups(overrides, &overrides->limits[i]) != 0)
			return -1;
	}
	return 0;
}

static int
put_nets(struct group *group, const struct config_for *list, uint32_t override)
{
	if (group->items == NULL && group->item_max > 0)
		group->items = calloc(group->item_max, sizeof group->items[0]);
	if (group->items == NULL && group->item_max > 0)
		return -1;
	for (uint32_t i = 0; i < list->net_count; i++)
		group->items[group->item_count++] =
			(struct net_map_item){ list->nets[i], override };
	return 0;
}

static int
put_override(struct overrides *overrides, const struct config_override *override, uint32_t number)
{
	const struct limit_groups *groups = overrides_find_limit(overrides, override->limit);

	for (unsigned i = 0; groups != NULL && i < override->for_count; i++) {
		const struct config_for *list = &override->fors[i];
		struct group *group = overrides_find_group(
			overrides, groups, list->source, list->name, list->param);

		if (put_nets(group, list, number) != 0)
			return -1;
		for (uint32_t j = 0; j < list->value_count; j++)
			put_value(overrides, &list->values[j],
				overrides_group_number(groups, group), number);
	}
	return 0;
}

static int
close_maps(struct overrides *overrides)
{
	int result = 0;

	for (unsigned i = 0; i < overrides->limit_count; i++) {
		for (unsigned j = 0; j < overrides->limits[i].count; j++) {
			struct group *group = &overrides->limits[i].list[j];

			if (net_map_init(&group->nets, group->items, group->item_count) != 0)
				result = -1;
			free(group->items);
			group->items = NULL;
		}
	}
	return result;
}

static int
allocate(struct overrides *overrides, const struct config *config)
{
	size_t fors = 0, values = 0, slots = 2;

	for (unsigned i = 0; i < config->override_count; i++) {
		fors += config->overrides[i]->for_count;
		for (unsigned j = 0; j < config->overrides[i]->for_count; j++)
			values += config->overrides[i]->fors[j].value_count;
	}
	while (slots < 2 * values)
		slots *= 2;
	/* One more of each, since malloc(0) may give NULL, and put_value writes before it looks. */
	overrides->attributes = calloc(fors + 1, sizeof overrides->attributes[0]);
	overrides->limits = calloc(config->limit_count + 1, sizeof overrides->limits[0]);
	overrides->entries = calloc(values + 1, sizeof overrides->entries[0]);
	overrides->slots = calloc(slots, sizeof overrides->slots[0]);
	overrides->slot_mask = slots - 1;
	hash_random(overrides->secret, sizeof overrides->secret);
	return overrides->attributes != NULL && overrides->limits != NULL &&
			overrides->entries != NULL && overrides->slots != NULL
		? 0
		: -1;
}

struct overrides *
overrides_new(const struct config *config)
{
	struct overrides *overrides = calloc(1, sizeof *overrides);

	if (overrides == NULL)
		return NULL;
	int result = allocate(overrides, config);

	if (result == 0)
		result = add_limits(overrides, config);
	for (unsigned i = 0; i < config->override_count && result == 0; i++)
		result = put_override(overrides, config->overrides[i], i);
	if (close_maps(overrides) == 0 && result == 0)
		return overrides;
	overrides_free(overrides);
	return NULL;
}

void
overrides_free(struct overrides *overrides)
{
	if (overrides == NULL)
		return;
	for (unsigned i = 0; i < overrides->limit_count; i++) {
		for (unsigned j = 0; j < overrides->limits[i].count; j++)
			net_map_release(&overrides->limits[i].list[j].nets);
		free(overrides->limits[i].list);
	}
	free(overrides->attributes);
	free(overrides->limits);
	free(overrides->entries);
	free(overrides->slots);
	free(overrides);
}
