/*
 * What two configurations differ in, as they are written: sections and keys, and not what is made
 * of them. A key that is not there stands for its default. Of the files that keys name those of
 * lists are compared, and pages, passwords and certificates are not.
 */
#include "options.h"
#include "reader.h"

struct comparison {
	config_change_fn *each;
	void *context;
};

static bool
is_same_section(const struct section *a, const struct section *b)
{
	return strcmp(a->kind, b->kind) == 0 && strcmp(a->name, b->name) == 0;
}

/* The section of the same kind and name. Most stand in the same order, so the search begins behind
 * the one that was found last, *hint, and goes around. */
static const struct section *
find(const struct section *first, const struct section **hint, const struct section *wanted)
{
	const struct section *start = *hint == NULL ? first : *hint;
	const struct section *s = start;

	while (s != NULL) {
		const struct section *next = s->next == NULL ? first : s->next;

		if (is_same_section(s, wanted)) {
			*hint = next;
			return s;
		}
		s = next == start ? NULL : next;
	}
	return NULL;
}

/* The parts of a section without a name are one, which stands where the first of them does. */
static bool
is_part_of_another(const struct section *first, const struct section *section)
{
	if (section->name[0] != '\0')
		return false;
	while (!is_same_section(first, section))
		first = first->next;
	return first != section;
}

/* ---- keys ---- */

static const struct setting *
next_of_key(const struct setting *setting, const char *key)
{
	while (setting != NULL && strcmp(setting->key, key) != 0)
		setting = setting->next;
	return setting;
}

static const struct setting *
settings_of(const struct section *section)
{
	return section == NULL ? NULL : section->settings;
}

/* Whether each value of the key is the same, and in the same order; if only the one side has the
 * key, whether that is its default. */
static bool
is_same_key(const struct section *before, const struct section *after, const struct option *option)
{
	const char *key = option->text.key;
	const struct setting *a = next_of_key(settings_of(before), key);
	const struct setting *b = next_of_key(settings_of(after), key);

	if (!option->text.repeatable)
		return strcmp(a == NULL ? option->text.default_text : a->value,
			       b == NULL ? option->text.default_text : b->value) == 0;
	while (a != NULL && b != NULL && strcmp(a->value, b->value) == 0) {
		a = next_of_key(a->next, key);
		b = next_of_key(b->next, key);
	}
	return a == NULL && b == NULL;
}

/* NULL if it is not the only one. */
static const char *
only_value(const struct section *section, const struct option *option)
{
	const struct setting *setting = next_of_key(settings_of(section), option->text.key);

	if (setting == NULL)
		return option->text.repeatable ? NULL : option->text.default_text;
	return next_of_key(setting->next, option->text.key) == NULL ? setting->value : NULL;
}

static void
compare_keys(const struct comparison *comparison, const struct section *before,
	const struct section *after)
{
	const struct section *any = after != NULL ? after : before;

	for (unsigned i = 0; i < option_count; i++) {
		const struct option *option = &option_rows[i];

		if (strcmp(option->text.section, any->kind) != 0 ||
			is_same_key(before, after, option))
			continue;
		comparison->each(comparison->context,
			&(const struct config_change){
				.what = CONFIG_KEY_CHANGED,
				.kind = any->kind,
				.name = any->name,
				.key = option->text.key,
				.before = only_value(before, option),
				.after = only_value(after, option),
				.needs_restart = option->text.needs_restart,
			});
	}
}

/* ---- sections ---- */

static void
tell(const struct comparison *comparison, enum config_change_kind what,
	const struct section *section)
{
	comparison->each(comparison->context,
		&(const struct config_change){
			.what = what, .kind = section->kind, .name = section->name });
}

/* A section that defines nothing by being there is only what its keys are. */
static bool
is_only_keys(const struct section *section)
{
	return section->name[0] == '\0' && strcmp(section->kind, "redis") != 0;
}

static void
compare_sections(const struct comparison *comparison, const struct section *before,
	const struct section *after)
{
	const struct section *hint = NULL;

	for (const struct section *s = after; s != NULL; s = s->next) {
		const struct section *old = find(before, &hint, s);

		if (is_part_of_another(after, s))
			continue;
		if (old != NULL || is_only_keys(s))
			compare_keys(comparison, old, s);
		else
			tell(comparison, CONFIG_SECTION_ADDED, s);
	}
	hint = NULL;
	for (const struct section *s = before; s != NULL; s = s->next) {
		if (is_part_of_another(before, s) || find(after, &hint, s) != NULL)
			continue;
		if (is_only_keys(s))
			compare_keys(comparison, s, NULL);
		else
			tell(comparison, CONFIG_SECTION_REMOVED, s);
	}
}

/* The next that is of the kind and in both. */
static const struct section *
next_common(const struct section *section, const char *kind, const struct section *others,
	const struct section **hint)
{
	while (section != NULL &&
		(strcmp(section->kind, kind) != 0 || section->name[0] == '\0' ||
			find(others, hint, section) == NULL))
		section = section->next;
	return section;
}

/* Routes are tried, and overrides looked at, in their order. */
static void
compare_order(const struct comparison *comparison, const char *kind, const struct section *before,
	const struct section *after)
{
	const struct section *old_hint = NULL, *new_hint = NULL;
	const struct section *old = next_common(before, kind, after, &new_hint);
	const struct section *new = next_common(after, kind, before, &old_hint);

	while (old != NULL && new != NULL && is_same_section(old, new)) {
		old = next_common(old->next, kind, after, &new_hint);
		new = next_common(new->next, kind, before, &old_hint);
	}
	if (new != NULL)
		comparison->each(comparison->context,
			&(const struct config_change){
				.what = CONFIG_ORDER_CHANGED, .kind = kind, .name = "" });
}

/* ---- files of lists ---- */

static const struct config_list_file *
find_file(const struct config_list_file *first, const char *name)
{
	while (first != NULL && strcmp(first->name, name) != 0)
		first = first->next;
	return first;
}

/* What became of it; NULL if it is not named any more, or has been looked at. */
static const struct config_list_file *
find_again(const struct config *before, const struct config_list_file *file,
	const struct config *after)
{
	if (find_file(before->list_files, file->name) != file)
		return NULL;
	return find_file(after->list_files, file->name);
}

static void
compare_files(const struct comparison *comparison, const struct config *before,
	const struct config *after)
{
	for (const struct config_list_file *old = before->list_files; old != NULL;
		old = old->next) {
		const struct config_list_file *new = find_again(before, old, after);

		if (new == NULL || memcmp(&old->content, &new->content, sizeof old->content) == 0)
			continue;
		comparison->each(comparison->context,
			&(const struct config_change){ .what = CONFIG_ITEMS_CHANGED,
				.kind = "",
				.name = old->name,
				.items_before = old->items,
				.items_after = new->items });
	}
}

int
config_check_lists(
	const struct config *before, const struct config *after, struct diagnostics *diagnostics)
{
	int result = 0;

	for (const struct config_list_file *old = before->list_files; old != NULL;
		old = old->next) {
		const struct config_list_file *new = find_again(before, old, after);

		if (new == NULL ||
			((!new->is_blank || old->items == 0) && (new->is_ended || !old->is_ended)))
			continue;
		result = -1;
		if (new->is_blank)
			diagnostics_add(diagnostics, SEVERITY_ERROR, (struct place){ new->name, 0 },
				NULL,
				"the file is empty now, and had %u items; if nobody is meant any "
				"more, write a line \"# nobody\" into it",
				(unsigned)old->items);
		else
			diagnostics_add(diagnostics, SEVERITY_ERROR, (struct place){ new->name, 0 },
				NULL,
				"the last line has no line end any more: the file was cut (it had "
				"%u items, and has %u), or is being written; if it is whole, end "
				"its last line",
				(unsigned)old->items, (unsigned)new->items);
	}
	return result;
}

void
config_compare(const struct config *before, const struct config *after, config_change_fn *each,
	void *context)
{
	const struct comparison comparison = { each, context };

	compare_sections(&comparison, before->sections, after->sections);
	compare_order(&comparison, section_rules[SECTION_OVERRIDE].name, before->sections,
		after->sections);
	compare_order(
		&comparison, section_rules[SECTION_ROUTE].name, before->sections, after->sections);
	compare_files(&comparison, before, after);
}
