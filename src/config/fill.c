/*
 * From words to numbers. Each row takes its value from the section, else from the defaults of its
 * kind, else from its own default text, all three by the same parser.
 *
 * What is refused is left out, and its section is marked as broken, so that the checks of the whole
 * do not complain of what is missing only for that reason.
 */
#include "build.h"
#include "sections.h"

/* `setting` is NULL for a default. */
static int
parse(const struct build *build, const struct option *option, const char *text,
	const struct setting *setting, void *field, struct err *err)
{
	const struct value value = { .option = option,
		.text = slice_of(text),
		.place =
			setting == NULL ? (struct place){ build->config->file, 0 } : setting->place,
		.setting = setting,
		.config = build->config,
		.diagnostics = build->diagnostics };

	return option->parse(&value, field, err);
}

static int
parse_setting(struct build *build, struct setting *setting, void *field)
{
	struct err err = { "" };

	if (parse(build, setting->option, setting->value, setting, field, &err) == 0)
		return 0;
	if (err.text[0] != '\0')
		complain_setting(build, setting, "%s", err.text);
	setting->option = NULL;
	return -1;
}

static struct setting *
next_of(struct setting *setting, const struct option *option)
{
	while (setting != NULL && setting->option != option)
		setting = setting->next;
	return setting;
}

/* The section whose settings of this row count. */
static struct section *
source_of(const struct build *build, struct section *section, const struct option *option)
{
	struct section *unnamed = build->unnamed[option->section];

	if (section != NULL && next_of(section->settings, option) != NULL)
		return section;
	return unnamed != NULL && next_of(unnamed->settings, option) != NULL ? unnamed : NULL;
}

static int
fill_default(struct build *build, const struct option *option, void *field)
{
	struct err err;

	if (option->text.default_text[0] == '\0' ||
		parse(build, option, option->text.default_text, NULL, field, &err) == 0)
		return 0;
	complain_whole(build, "%s", err.text);
	return -1;
}

static int
fill_one(struct build *build, const struct option *option, struct setting *setting, void *object)
{
	const char *default_text = option->text.default_text;
	void *field = (char *)object + option->offset;

	if (setting == NULL)
		return fill_default(build, option, field);
	if (setting->value[0] != '\0')
		return parse_setting(build, setting, field);
	if (default_text[0] == '\0')
		return 0;
	complain_setting(build, setting, "has no value; the default, which needs no line, is %s",
		default_text);
	setting->option = NULL;
	return -1;
}

/* Room for `max` items; NULL if there is none. */
static char *
make_items(struct build *build, const struct option *option, struct setting *first, size_t max,
	void *object)
{
	char *items = arena_alloc(&build->config->arena, max * option->item_size);

	if (items == NULL) {
		complain_setting(build, first, "%s", config_too_large);
		return NULL;
	}
	memset(items, 0, max * option->item_size);
	memcpy((char *)object + option->offset, &items, sizeof items);
	return items;
}

/* Each line that has a value: into the next item, or wherever its parser appends it. */
static int
fill_items(struct build *build, const struct option *option, struct setting *first, char *items,
	void *object)
{
	unsigned *count = (unsigned *)(void *)((char *)object + option->count_offset);
	int result = 0;

	for (struct setting *s = first, *next; s != NULL; s = next) {
		next = next_of(s->next, option);
		if (s->value[0] == '\0')
			continue;
		if (parse_setting(build, s,
			    items == NULL ? object : items + *count * option->item_size) != 0)
			result = -1;
		else if (items != NULL)
			++*count;
	}
	return result;
}

/* A list of which every line is empty is an empty list, so that a section can do without what the
 * defaults of its kind have. */
static int
fill_list(struct build *build, const struct option *option, struct setting *first, void *object)
{
	char *items = NULL;
	size_t max = 0;

	for (struct setting *s = first; s != NULL; s = next_of(s->next, option))
		max += s->value[0] != '\0';
	if (max == 0)
		return 0;
	if (max > option->max) {
		complain_setting(build, first, "is given %zu times; %llu is the most", max,
			(unsigned long long)option->max);
		return -1;
	}
	if (option->item_size > 0) {
		items = make_items(build, option, first, max, object);
		if (items == NULL)
			return -1;
	}
	return fill_items(build, option, first, items, object);
}

void
section_fill(struct build *build, enum section_kind kind, struct section *section, void *object)
{
	for (const struct option *option = option_rows; option->text.key != NULL; option++) {
		if (option->section != kind)
			continue;
		struct section *source = source_of(build, section, option);
		struct setting *first = source == NULL ? NULL : next_of(source->settings, option);
		const int result = option->text.repeatable ? fill_list(build, option, first, object)
							   : fill_one(build, option, first, object);

		if (result != 0 && source != NULL)
			source->is_broken = true;
		if (result != 0 && section != NULL)
			section->is_broken = true;
	}
}
