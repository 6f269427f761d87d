/*
 * What was read meets the table: sections find their kind, settings their row. Sections without a
 * name become one for each kind, wherever they stand; a second section of one name and a second
 * value of a key that has only one are refused, and the first counts.
 */
#include "build.h"
#include "foreign.h"
#include "nearest.h"
#include "sections.h"

static bool
place_is(const struct place *a, const struct place *b)
{
	return a->line == b->line && strcmp(a->file, b->file) == 0;
}

static const struct setting *
find_setting(
	const struct section *section, const char *key, const struct place *item, bool is_refused)
{
	if (section == NULL)
		return NULL;
	for (const struct setting *s = section->settings; s != NULL; s = s->next) {
		if ((s->option == NULL) == is_refused && strcmp(s->key, key) == 0 &&
			(item == NULL || place_is(&s->place, item)))
			return s;
	}
	return NULL;
}

const struct setting *
section_setting_at(const struct section *section, const char *key, const struct place *item)
{
	return find_setting(section, key, item, false);
}

const struct setting *
section_refused_at(const struct section *section, const char *key, const struct place *item)
{
	return find_setting(section, key, item, true);
}

const struct setting *
section_own_setting(const struct section *section, const char *key)
{
	return section_setting_at(section, key, NULL);
}

static void
report_unknown_section(const struct build *build, const struct section *section)
{
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE];

	nearest_init(&nearest, slice_of(section->kind));
	for (int kind = 0; kind < SECTION_KINDS; kind++)
		nearest_offer(&nearest, section_rules[kind].name);
	complain(build, SEVERITY_ERROR, section, "", NULL, "there is no section of this kind%s",
		nearest_hint(&nearest, hint));
}

/* What is called otherwise here. */
static bool
report_foreign_key(const struct build *build, const struct setting *setting)
{
	const char *ours = foreign_key(setting->section->kind, setting->key);
	char rate[FOREIGN_RATE_SIZE];

	if (ours == NULL)
		return false;
	if (strncmp(ours, "policy", 6) == 0 && foreign_rate(slice_of(setting->value), rate))
		complain_setting(build, setting, "[%s] has no such key; write policy = %s",
			setting->section->kind, rate);
	else
		complain_setting(build, setting, "[%s] has no such key; write %s",
			setting->section->kind, ours);
	return true;
}

static void
report_unknown_key(const struct build *build, const struct setting *setting)
{
	const struct section *section = setting->section;
	const struct option *elsewhere = NULL;
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE];

	if (option_is_later(section->kind, setting->key)) {
		complain_setting(build, setting, "this key is not supported by this version");
		return;
	}
	if (report_foreign_key(build, setting))
		return;
	nearest_init(&nearest, slice_of(setting->key));
	for (const struct option *option = option_rows; option->text.key != NULL; option++) {
		if (strcmp(option->text.section, section->kind) == 0)
			nearest_offer(&nearest, option->text.key);
		else if (elsewhere == NULL && strcmp(option->text.key, setting->key) == 0)
			elsewhere = option;
	}
	if (elsewhere != NULL && nearest.best == NULL)
		complain_setting(build, setting, "[%s] has no such key; it belongs into [%s]",
			section->kind, elsewhere->text.section);
	else
		complain_setting(build, setting, "[%s] has no such key%s", section->kind,
			nearest_hint(&nearest, hint));
}

/* Each setting gets its row; one that cannot have it stays without and is not looked at again. */
static void
find_options(const struct build *build, struct section *section)
{
	char place[PLACE_TEXT_SIZE];

	for (struct setting *setting = section->settings; setting != NULL;
		setting = setting->next) {
		const struct option *option =
			option_find((enum section_kind)section->rule, setting->key);
		const struct setting *first = option == NULL || option->text.repeatable
			? NULL
			: section_own_setting(section, setting->key);

		if (option != NULL && first == NULL) {
			setting->option = option;
			continue;
		}
		section->is_broken = true;
		if (first == NULL)
			report_unknown_key(build, setting);
		else
			complain_setting(build, setting, "is given twice; the first is at %s",
				complain_place(first->place, place));
	}
}

/* Puts the settings of a section without a name behind those of the first of its kind. */
static void
merge(struct section *first, struct section *section)
{
	first->is_broken = first->is_broken || section->is_broken;
	if (section->settings == NULL)
		return;
	*first->settings_end = section->settings;
	first->settings_end = section->settings_end;
	section->settings = NULL;
	section->settings_end = &section->settings;
}

static void
find_double(const struct build *build, struct section *section)
{
	char place[PLACE_TEXT_SIZE];

	for (const struct section *other = build->list.first; other != section;
		other = other->next) {
		if (other->rule != section->rule || strcmp(other->name, section->name) != 0)
			continue;
		section->is_double = true;
		complain(build, SEVERITY_ERROR, section, "", NULL,
			"is defined twice; the first is at %s",
			complain_place(other->place, place));
		return;
	}
}

static void
find_rule(struct build *build, struct section *section)
{
	section->rule = section_kind_of(section->kind);
	if (section->rule < 0) {
		build->list.is_broken = true;
		report_unknown_section(build, section);
		return;
	}
	struct section **unnamed = &build->unnamed[section->rule];

	if (!section_rules[section->rule].has_names && section->name[0] != '\0') {
		complain(build, SEVERITY_ERROR, section, "", NULL, "has no name; write [%s]",
			section->kind);
		section->name = "";
	}
	if (section->name[0] != '\0')
		find_double(build, section);
	else if (*unnamed == NULL)
		*unnamed = section;
	else
		merge(*unnamed, section);
}

void
sections_find_rules(struct build *build)
{
	for (struct section *section = build->list.first; section != NULL; section = section->next)
		find_rule(build, section);
	for (struct section *section = build->list.first; section != NULL;
		section = section->next) {
		if (section->rule >= 0)
			find_options(build, section);
	}
}

static struct section *
next_named(struct section *section, int rule)
{
	while (section != NULL &&
		(section->rule != rule || section->name[0] == '\0' || section->is_double))
		section = section->next;
	return section;
}

struct section *
section_first(const struct build *build, enum section_kind kind)
{
	return next_named(build->list.first, (int)kind);
}

struct section *
section_next(const struct section *section)
{
	return next_named(section->next, section->rule);
}

bool
section_is_doubtful(const struct build *build, const struct section *section)
{
	const struct section *unnamed = build->unnamed[section->rule];

	return section->is_broken || (unnamed != NULL && unnamed->is_broken);
}

bool
section_kind_is_doubtful(const struct build *build, enum section_kind kind)
{
	for (const struct section *s = build->list.first; s != NULL; s = s->next) {
		if (s->rule == (int)kind && (s->is_broken || s->is_double))
			return true;
	}
	return build->list.is_broken;
}
