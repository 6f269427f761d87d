/*
 * Values that two overrides of a limit name: the second would never be asked, and whoever wrote
 * both lists did not mean it. There may be a million of them, so they go through a table of hashes,
 * which lives no longer than the check of one source. A value and its SHA-256 are the same value:
 * if a hash stands among the values of a source, all of them are compared by theirs.
 */
#include "nets.h"
#include "sections.h"
#include "validate.h"
#include "values.h"

#include "weir/hash.h"

#include <stdlib.h>

/* How many are complained of in a limit. */
enum { SAID_MAX = 10 };

struct cell {
	const struct config_override *override; /* NULL: empty */
	const struct config_for *list;
	uint32_t at;
	uint32_t hash;
};

/* The values of one source, in the order in which they are read. */
struct table {
	const struct build *build;
	const struct config_for *source; /* whose source and name are those of all */
	struct cell *cells;
	size_t mask;
	bool by_sha256;
	unsigned said;
};

struct place
config_for_place(const struct config_for *list, uint32_t n)
{
	struct place place = list->place;

	if (list->lines != NULL)
		place.line = list->lines[n];
	return place;
}

const struct section *
config_override_section(const struct build *build, const struct config_override *override)
{
	const struct section *section = section_first(build, SECTION_OVERRIDE);

	while (section->object != override)
		section = section_next(section);
	return section;
}

/* FNV-1a: the values are those of the administrator, who has no reason to make them collide. */
static uint32_t
hash_of(struct slice value)
{
	uint32_t hash = 2166136261U;

	for (size_t i = 0; i < value.len; i++)
		hash = (hash ^ (unsigned char)value.ptr[i]) * 16777619U;
	return hash ^ hash >> 15;
}

/* What the value is compared by. */
static struct slice
key_of(const struct table *table, const struct config_for *list, uint32_t at,
	uint8_t sha256[HASH_SHA256_SIZE])
{
	const struct config_value *value = &list->values[at];
	const struct slice text = slice_make(value->text, value->len);

	if (!table->by_sha256 || value->is_sha256)
		return text;
	hash_sha256(text, sha256);
	return slice_make(sha256, HASH_SHA256_SIZE);
}

static void
report(struct table *table, const struct config_override *override, const struct config_for *list,
	uint32_t at, const struct cell *first)
{
	char place[PLACE_TEXT_SIZE];

	if (table->said++ >= SAID_MAX)
		return;
	complain_at(table->build, SEVERITY_ERROR, config_override_section(table->build, override),
		"for", config_for_place(list, at),
		"names a value that override %s names already, at %s; leave out one of them",
		first->override->name,
		complain_place(config_for_place(first->list, first->at), place));
}

static void
put(struct table *table, const struct config_override *override, const struct config_for *list,
	uint32_t at)
{
	uint8_t mine[HASH_SHA256_SIZE], other[HASH_SHA256_SIZE];
	const struct slice key = key_of(table, list, at, mine);
	const uint32_t hash = hash_of(key);
	struct cell *cell = &table->cells[hash & table->mask];

	for (; cell->override != NULL;
		cell = &table->cells[(size_t)(cell - table->cells + 1) & table->mask]) {
		if (cell->hash != hash ||
			!slice_is(key_of(table, cell->list, cell->at, other), key))
			continue;
		if (cell->override != override)
			report(table, override, list, at, cell);
		return;
	}
	*cell = (struct cell){ override, list, at, hash };
}

typedef void
list_fn(struct table *table, const struct config_override *override, const struct config_for *list);

static void
each_list(struct table *table, const struct config_limit *limit, list_fn *fn)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			if (for_is_same_source(table->source, &override->fors[j]))
				fn(table, override, &override->fors[j]);
		}
	}
}

static void
count_list(
	struct table *table, const struct config_override *override, const struct config_for *list)
{
	(void) override;
	table->mask += list->value_count;
	for (uint32_t i = 0; i < list->value_count && !table->by_sha256; i++)
		table->by_sha256 = list->values[i].is_sha256;
}

static void
put_list(struct table *table, const struct config_override *override, const struct config_for *list)
{
	for (uint32_t i = 0; i < list->value_count; i++)
		put(table, override, list, i);
}

static void
check_source(const struct build *build, const struct config_limit *limit,
	const struct config_for *source)
{
	struct table table = { .build = build, .source = source };
	size_t size = 16;

	each_list(&table, limit, count_list);
	while (size < 2 * table.mask)
		size *= 2;
	table.mask = size - 1;
	table.cells = calloc(size, sizeof table.cells[0]);
	if (table.cells == NULL) {
		complain_whole(build, "there is no memory to compare the values of overrides");
		return;
	}
	each_list(&table, limit, put_list);
	free(table.cells);
	if (table.said > SAID_MAX)
		complain_at(build, SEVERITY_ERROR,
			config_override_section(build, limit->overrides[0]), "for",
			limit->overrides[0]->place,
			"%u more values are named by two overrides of "
			"limit %s",
			table.said - SAID_MAX, limit->name);
}

/* No list before this one has its source. */
static bool
is_first(const struct config_limit *limit, const struct config_for *list)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			if (&override->fors[j] == list)
				return true;
			if (for_is_same_source(&override->fors[j], list))
				return false;
		}
	}
	return true;
}

static void
check_limit(const struct build *build, const struct config_limit *limit)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		const struct config_override *override = limit->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			const struct config_for *list = &override->fors[j];

			if (list->source != IDENTITY_IP && is_first(limit, list))
				check_source(build, limit, list);
		}
	}
	validate_nets(build, limit);
}

void
validate_values(const struct build *build)
{
	for (unsigned i = 0; i < build->config->limit_count; i++)
		check_limit(build, build->config->limits[i]);
}
