/*
 * What can be found in the table, and what this version has not got yet: somebody who writes a key
 * of a later manual is told so, rather than that the key is unknown.
 */
#include "options.h"

const struct section_rule section_rules[SECTION_KINDS] = {
	[SECTION_WEIR] = { "weir", false, 0 },
	[SECTION_MEMORY] = { "memory", false, 0 },
	[SECTION_REDIS] = { "redis", false, 0 },
	[SECTION_LIMIT] = { "limit", true, sizeof(struct config_limit) },
	[SECTION_OVERRIDE] = { "override", true, sizeof(struct config_override) },
	[SECTION_BACKEND] = { "backend", true, sizeof(struct config_backend) },
	[SECTION_ROUTE] = { "route", true, sizeof(struct config_route) },
};

/* A row moves to the table when its version comes. */
static const struct {
	const char *section, *key;
} later[] = {
	{ "route", "handler" },
	{ "route", "allow_ip" },
};

int
section_kind_of(const char *name)
{
	for (int kind = 0; kind < SECTION_KINDS; kind++) {
		if (strcmp(section_rules[kind].name, name) == 0)
			return kind;
	}
	return -1;
}

const struct option *
option_find(enum section_kind section, const char *key)
{
	for (const struct option *option = option_rows; option->text.key != NULL; option++) {
		if (option->section == section && strcmp(option->text.key, key) == 0)
			return option;
	}
	return NULL;
}

bool
option_is_later(const char *section, const char *key)
{
	for (size_t i = 0; i < sizeof later / sizeof later[0]; i++) {
		if (strcmp(later[i].section, section) == 0 && strcmp(later[i].key, key) == 0)
			return true;
	}
	return false;
}

const struct config_option_help *
config_option_help(unsigned index)
{
	return index < option_count ? &option_rows[index].text : NULL;
}
