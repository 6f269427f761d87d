/* Sentences about the configuration, each put where the administrator has to change something. */
#include "build.h"
#include "sections.h"
#include "values.h"

#include <stdarg.h>

enum { TEXT_SIZE = 1024, WHERE_SIZE = 256 };

const char *
complain_place(struct place place, char out[PLACE_TEXT_SIZE])
{
	const size_t len = strlen(place.file);
	/* The end of a long path tells more than its beginning. */
	const size_t from = len > PLACE_TEXT_SIZE - 20 ? len - (PLACE_TEXT_SIZE - 20) : 0;

	(void)snprintf(out, PLACE_TEXT_SIZE, "%s%s:%u", from > 0 ? "..." : "", place.file + from,
		place.line);
	return out;
}

static void
say(struct diagnostics *diagnostics, enum severity severity, struct place place,
	const struct section *section, const char *key, const char *text)
{
	char where[WHERE_SIZE];

	(void)snprintf(where, sizeof where, "[%s%s%s]%s%s", section->kind,
		section->name[0] == '\0' ? "" : " ", section->name, key[0] == '\0' ? "" : " ", key);
	diagnostics_add(diagnostics, severity, place, where, "%s", text);
}

/* A part of what was refused may be looked at too. */
static const struct setting *
find_setting(const struct build *build, const struct section *section, const char *key,
	const struct place *item)
{
	const struct setting *setting = section_setting_at(section, key, item);

	if (setting == NULL)
		setting = section_refused_at(section, key, item);
	if (setting == NULL && section->rule >= 0)
		setting = section_setting_at(build->unnamed[section->rule], key, item);
	if (setting == NULL && section->rule >= 0)
		setting = section_refused_at(build->unnamed[section->rule], key, item);
	return setting;
}

void
complain(const struct build *build, enum severity severity, const struct section *section,
	const char *key, const struct place *item, const char *format, ...)
{
	const struct setting *setting = find_setting(build, section, key, item);
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (setting != NULL)
		say(build->diagnostics, severity, setting->place, setting->section, key, text);
	else
		say(build->diagnostics, severity, section->place, section, key, text);
}

void
complain_at(const struct build *build, enum severity severity, const struct section *section,
	const char *key, struct place place, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	say(build->diagnostics, severity, place, section, key, text);
}

void
complain_setting(const struct build *build, const struct setting *setting, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	say(build->diagnostics, SEVERITY_ERROR, setting->place, setting->section, setting->key,
		text);
}

void
complain_whole(const struct build *build, const char *format, ...)
{
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	diagnostics_add(build->diagnostics, SEVERITY_ERROR,
		(struct place){ build->config->file, 0 }, NULL, "%s", text);
}

void
value_complain(const struct value *value, enum severity severity, struct place place,
	const char *format, ...)
{
	const struct setting *setting = value->setting;
	char text[TEXT_SIZE];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	say(value->diagnostics, severity, place, setting->section, setting->key, text);
}
