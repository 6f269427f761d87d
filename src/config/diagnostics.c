/*
 * The list of what is wrong. It is bounded, since a file of a million lines that is no
 * configuration must not fill the memory of the process that refuses it on a reload. Counting never
 * fails, so that a lack of memory cannot make a bad configuration look sound.
 */
#include "weir/diagnostics.h"

#include <stdarg.h>
#include <stdlib.h>

enum { TEXT_SIZE = 1024, ARENA_MAX = 4 * 1024 * 1024 };

void
diagnostics_init(struct diagnostics *diagnostics)
{
	*diagnostics = (struct diagnostics){ 0 };
	arena_init(&diagnostics->arena, ARENA_MAX);
}

void
diagnostics_release(struct diagnostics *diagnostics)
{
	free(diagnostics->list);
	arena_release(&diagnostics->arena);
	diagnostics_init(diagnostics);
}

static bool
is_plain(unsigned char c, bool keep_line_ends)
{
	return (c >= ' ' && c < 0x7f) || (c == '\n' && keep_line_ends);
}

/* A copy of printable ASCII; NULL when memory is out. */
static const char *
escaped(struct arena *arena, const char *text, bool keep_line_ends)
{
	size_t need = 1, len = 0;

	for (const char *c = text; *c != '\0'; c++)
		need += is_plain((unsigned char)*c, keep_line_ends) ? 1 : 4;
	char *out = arena_alloc(arena, need);

	if (out == NULL)
		return NULL;
	for (const char *c = text; *c != '\0'; c++) {
		if (is_plain((unsigned char)*c, keep_line_ends))
			out[len++] = *c;
		else
			len += (size_t)snprintf(
				out + len, need - len, "\\x%02x", (unsigned char)*c);
	}
	out[len] = '\0';
	return out;
}

static bool
place_is(struct place a, struct place b)
{
	if (a.line != b.line || (a.file == NULL) != (b.file == NULL))
		return false;
	return a.file == NULL || strcmp(a.file, b.file) == 0;
}

static bool
was_said(const struct diagnostics *diagnostics, const struct diagnostic *new)
{
	for (size_t i = 0; i < diagnostics->count; i++) {
		const struct diagnostic *old = &diagnostics->list[i];

		if (place_is(old->place, new->place) && strcmp(old->where, new->where) == 0 &&
			strcmp(old->text, new->text) == 0)
			return true;
	}
	return false;
}

static void
append(struct diagnostics *diagnostics, const struct diagnostic *new)
{
	/* Grown when the count is a power of two: 0, 1, 2, 4 ... */
	if ((diagnostics->count & (diagnostics->count - 1)) == 0) {
		const size_t room = diagnostics->count == 0 ? 1 : 2 * diagnostics->count;
		struct diagnostic *list = realloc(diagnostics->list, room * sizeof *list);

		if (list == NULL)
			return;
		diagnostics->list = list;
	}
	diagnostics->list[diagnostics->count++] = *new;
}

static void
count(struct diagnostics *diagnostics, enum severity severity)
{
	if (severity == SEVERITY_ERROR)
		diagnostics->errors++;
	else
		diagnostics->warnings++;
}

void
diagnostics_add(struct diagnostics *diagnostics, enum severity severity, struct place place,
	const char *where, const char *format, ...)
{
	struct arena *arena = &diagnostics->arena;
	char text[TEXT_SIZE];
	va_list args;

	if (diagnostics->count == DIAGNOSTICS_MAX) {
		count(diagnostics, severity);
		return;
	}
	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	struct diagnostic new = {
		.severity = severity,
		.place = { .line = place.line },
		.where = escaped(arena, where == NULL ? "" : where, false),
		.text = escaped(arena, text, true),
	};
	if (place.file != NULL)
		new.place.file = escaped(arena, place.file, false);
	const bool is_whole = new.where != NULL &&new.text != NULL &&
		(place.file == NULL || new.place.file != NULL);

	if (is_whole && was_said(diagnostics, &new))
		return;
	count(diagnostics, severity);
	if (is_whole)
		append(diagnostics, &new);
}

/* Pointers into one array, so that what is at one place stays in the order found. */
static int
by_place(const void *left, const void *right)
{
	const struct diagnostic *const *left_at = left, *const *right_at = right;
	const struct diagnostic *a = *left_at, *b = *right_at;
	const int files = strcmp(a->place.file == NULL ? "" : a->place.file,
		b->place.file == NULL ? "" : b->place.file);

	if (files != 0)
		return files;
	if (a->place.line != b->place.line)
		return a->place.line < b->place.line ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void
print_one(const struct diagnostic *diagnostic, FILE *out)
{
	if (diagnostic->place.file != NULL && diagnostic->place.line > 0)
		(void)fprintf(out, "%s:%u: ", diagnostic->place.file, diagnostic->place.line);
	else if (diagnostic->place.file != NULL)
		(void)fprintf(out, "%s: ", diagnostic->place.file);
	if (diagnostic->where[0] != '\0')
		(void)fprintf(out, "%s: ", diagnostic->where);
	if (diagnostic->severity == SEVERITY_WARNING)
		(void)fputs("warning: ", out);
	for (const char *c = diagnostic->text; *c != '\0'; c++) {
		(void)fputc(*c, out);
		if (*c == '\n')
			(void)fputs("    ", out);
	}
	(void)fputc('\n', out);
}

void
diagnostics_print(const struct diagnostics *diagnostics, FILE *out)
{
	const size_t listed = diagnostics->count;
	const size_t all = (size_t)diagnostics->errors + diagnostics->warnings;
	const struct diagnostic **sorted = listed == 0 ? NULL : calloc(listed, sizeof *sorted);

	for (size_t i = 0; sorted != NULL && i < listed; i++)
		sorted[i] = &diagnostics->list[i];
	if (sorted != NULL)
		qsort(sorted, listed, sizeof *sorted, by_place);
	for (size_t i = 0; i < listed; i++)
		print_one(sorted != NULL ? sorted[i] : &diagnostics->list[i], out);
	if (all > listed)
		(void)fprintf(out, "... and %zu more\n", all - listed);
	free(sorted);
}
