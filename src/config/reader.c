/*
 * Files. inih splits a line into key and value; everything else is done here and in line.c, since
 * inih 55 tells no line numbers, cuts long lines, joins indented ones and drops empty sections. It
 * is given one clean `key = value` at a time by a reader function of ours, and calls back before it
 * asks for the next: so the line that we are in is the line that it speaks of.
 *
 * `include` may stand wherever a section may begin, and it ends the section before it: the files
 * are read at that place, and what follows begins with a section again. The files that are being
 * read are a chain on the stack, from the innermost outward.
 */
#include "reader.h"
#include "files.h"
#include "line.h"

#include <ini.h>
#include <stdlib.h>

enum { FILE_SIZE_MAX = 8 * 1024 * 1024, INCLUDE_DEPTH_MAX = 8, SECTIONS_MAX = 10000 };

const char config_too_large[] = "the configuration would take more than 256 MiB of memory";

struct reader {
	struct arena *arena;
	struct diagnostics *diagnostics;
	struct section_list *list;
};

struct file {
	struct reader *reader;
	const struct file *includer;
	unsigned depth;
	const char *name;
	struct file_content content;
	struct slice rest; /* of the content, not read yet */
	unsigned line; /* the one that was read last */
	struct section *section; /* that is open; NULL: none */
	bool is_skipping; /* the section has no kind: its settings belong nowhere */
	bool told_line_ends;
	unsigned include_line; /* the include that ended a section; 0: none did */
};

static void read_file(struct reader *reader, const char *name, const struct file *includer);

static struct place
here(const struct file *file)
{
	return (struct place){ file->name, file->line };
}

/* Said at the include for a file that cannot be read; the main file has only itself. */
static void
report_file(struct reader *reader, const char *name, const struct file *includer,
	const char *problem, const char *reason)
{
	reader->list->is_broken = true;
	if (includer == NULL)
		diagnostics_add(reader->diagnostics, SEVERITY_ERROR, (struct place){ name, 0 },
			NULL, "%s%s", problem, reason);
	else
		diagnostics_add(reader->diagnostics, SEVERITY_ERROR, here(includer), "include",
			"%s %s%s", name, problem, reason);
}

static void
report_line(struct file *file, const char *text)
{
	if (file->section != NULL)
		file->section->is_broken = true;
	else
		file->reader->list->is_broken = true;
	diagnostics_add(file->reader->diagnostics, SEVERITY_ERROR, here(file), NULL, "%s", text);
}

static void
report_line_ends(struct file *file)
{
	struct err err;

	(void)err_set(&err, "lines end with CR LF; convert the file with: sed -i 's/\\r$//' %s",
		file->name);
	report_line(file, err.text);
}

/* There is no sense in going on. */
static void
give_up(struct file *file, const char *reason)
{
	report_line(file, reason);
	file->rest = slice_make(NULL, 0);
}

static void
open_section(struct file *file, const struct line *line)
{
	struct arena *arena = file->reader->arena;
	struct section_list *list = file->reader->list;
	struct section *section = arena_alloc(arena, sizeof *section);
	const char *kind = arena_text(arena, line->section);
	const char *name = arena_text(arena, line->name);

	file->include_line = 0;
	file->section = NULL;
	file->is_skipping = line->section.len == 0;
	if (file->is_skipping)
		return;
	if (section == NULL || kind == NULL || name == NULL) {
		give_up(file, config_too_large);
		return;
	}
	if (list->count == SECTIONS_MAX) {
		give_up(file, "there are more than 10000 sections");
		return;
	}
	list->count++;
	*section = (struct section){ .place = here(file), .kind = kind, .name = name, .rule = -1 };
	section->settings_end = &section->settings;
	*list->end = section;
	list->end = &section->next;
	file->section = section;
}

/* The next physical line without its end. A line end of DOS is told once a file. */
static struct slice
next_line(struct file *file)
{
	const size_t end = slice_find(file->rest, '\n');
	struct slice line = slice_first(file->rest, end);

	file->rest = slice_skip(file->rest, end < file->rest.len ? end + 1 : end);
	file->line++;
	if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
		line.len--;
		if (!file->told_line_ends)
			report_line_ends(file);
		file->told_line_ends = true;
	}
	if (file->line == 1 && slice_has_prefix(line, SLICE("\xef\xbb\xbf"))) {
		line = slice_skip(line, 3);
		report_line(file,
			"the file begins with a byte order mark; save it as UTF-8 "
			"without BOM");
	}
	return line;
}

/* inih's reader function: the next setting, NULL at the end. Everything else is dealt with here. */
static char *
next_setting(char *out, int size, void *context)
{
	struct file *file = context;
	/* One for the terminator and one for a line end, without which an inih that was built to
	 * take lines of any length would ask for the rest. */
	const size_t max = (size_t)size - 2;

	while (file->rest.len > 0) {
		const struct slice text = next_line(file);
		struct line line;
		struct err err;
		const int result = config_line_parse(text, max, &line, &err);

		if (line.kind == LINE_SECTION)
			open_section(file, &line);
		if (result != 0)
			report_line(file, err.text);
		if (result == 0 && line.kind == LINE_SETTING) {
			memcpy(out, line.setting.ptr, line.setting.len);
			out[line.setting.len] = '\n';
			out[line.setting.len + 1] = '\0';
			return out;
		}
	}
	return NULL;
}

static void
add_setting(struct file *file, const char *key, const char *value)
{
	struct arena *arena = file->reader->arena;
	struct section *section = file->section;
	struct setting *setting = arena_alloc(arena, sizeof *setting);
	const char *own_key = arena_text(arena, slice_of(key));
	const char *own_value = arena_text(arena, slice_of(value));

	if (setting == NULL || own_key == NULL || own_value == NULL) {
		give_up(file, config_too_large);
		return;
	}
	*setting = (struct setting){
		.section = section, .place = here(file), .key = own_key, .value = own_value
	};
	*section->settings_end = setting;
	section->settings_end = &setting->next;
}

static void
include_one(void *context, const char *name)
{
	struct file *file = context;

	read_file(file->reader, name, file);
}

static void
include(struct file *file, const char *pattern)
{
	struct err err;

	if (file->section != NULL || file->is_skipping)
		file->include_line = file->line;
	file->section = NULL;
	file->is_skipping = false;
	if (pattern[0] == '\0')
		report_line(file, "include names no file; write include = conf.d/*.ini");
	else if (config_files_match(
			 file->name, pattern, file->reader->arena, include_one, file, &err) != 0)
		report_line(file, err.text);
}

static int
take_setting(void *context, const char *section, const char *key, const char *value)
{
	struct file *file = context;
	char text[160];

	(void)section;
	if (strcmp(key, "include") == 0) {
		include(file, value);
	} else if (file->section != NULL) {
		add_setting(file, key, value);
	} else if (file->include_line > 0) {
		(void)snprintf(text, sizeof text,
			"this stands in no section, since the include in line %u ended the one "
			"before it; begin with [section] again",
			file->include_line);
		report_line(file, text);
	} else if (!file->is_skipping) {
		report_line(file, "this stands in no section; begin with one, such as [weir]");
	}
	return 1;
}

static bool
is_open(const struct file *file)
{
	for (const struct file *outer = file->includer; outer != NULL; outer = outer->includer) {
		if (outer->content.status.st_dev == file->content.status.st_dev &&
			outer->content.status.st_ino == file->content.status.st_ino)
			return true;
	}
	return false;
}

static void
read_file(struct reader *reader, const char *name, const struct file *includer)
{
	struct file file = { .reader = reader,
		.includer = includer,
		.depth = includer == NULL ? 0 : includer->depth + 1,
		.name = arena_text(reader->arena, slice_of(name)) };
	struct err err;

	if (file.name == NULL) {
		report_file(reader, name, includer, "cannot be read: ", config_too_large);
		return;
	}
	if (config_file_load(name, FILE_SIZE_MAX, &file.content, &err) != 0) {
		report_file(reader, name, includer, "cannot be read: ", err.text);
		return;
	}
	file.rest = slice_make(file.content.bytes, file.content.len);
	if (is_open(&file))
		report_file(reader, name, includer, "would include itself", "");
	else if (file.depth > INCLUDE_DEPTH_MAX)
		report_file(reader, name, includer, "is included more than 8 files deep", "");
	else if (ini_parse_stream(next_setting, &file, take_setting, &file) != 0)
		report_file(reader, name, includer, "cannot be read: ", "inih refuses it");
	free(file.content.bytes);
}

void
config_read(const char *file, struct arena *arena, struct diagnostics *diagnostics,
	struct section_list *list)
{
	struct reader reader = { .arena = arena, .diagnostics = diagnostics, .list = list };

	*list = (struct section_list){ .end = &list->first };
	read_file(&reader, file, NULL);
}
