/* Where things stand, for those who find out later that something is wrong with them. */
#include "reader.h"

#include "weir/config.h"

static const struct setting *
find_setting(const struct section *section, const char *key, unsigned nth)
{
	for (const struct setting *s = section->settings; s != NULL; s = s->next) {
		if (s->option != NULL && strcmp(s->key, key) == 0 && s->value[0] != '\0' &&
			nth-- == 0)
			return s;
	}
	return NULL;
}

static const struct section *
find_section(const struct config *config, const char *kind, const char *name)
{
	const struct section *section = config->sections;

	while (section != NULL &&
		(strcmp(section->kind, kind) != 0 || strcmp(section->name, name) != 0))
		section = section->next;
	return section;
}

struct place
config_place(const struct config *config, const char *kind, const char *name, const char *key,
	unsigned nth)
{
	const struct section *section = find_section(config, kind, name);
	const struct section *defaults = find_section(config, kind, "");
	const struct setting *setting = section == NULL ? NULL : find_setting(section, key, nth);

	if (setting == NULL && defaults != NULL)
		setting = find_setting(defaults, key, nth);
	if (setting != NULL)
		return setting->place;
	return section != NULL ? section->place : (struct place){ config->file, 0 };
}
