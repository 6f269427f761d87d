/*
 * Patterns: [METHOD|METHOD] PATTERN [nocase]. A plain pattern is held against the normal form of a
 * path, so one that has another form could never fit and is refused. Regular expressions are taken
 * as they are; route compiles them.
 */
#include "values.h"

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* nginx's ~* and ^~; and a last word that is nocase but for its case. */
int
pattern_check_foreign(struct slice text, struct err *err)
{
	const struct slice all_but_case = SLICE("nocase");

	if (slice_has_prefix(text, SLICE("~*")))
		return err_set(err, "without regard to case is written ~ %.*s nocase",
			SHOWN(slice_trim(slice_skip(text, 2))));
	if (slice_has_prefix(text, SLICE("^~")))
		return err_set(err,
			"a path and all below it is written without ^~; the order of routes "
			"decides, and not the kind of pattern");
	if (slice_has_prefix(text, SLICE("!~")) || slice_has_prefix(text, SLICE("!=")))
		return err_set(err,
			"there is no \"!\"; let an earlier route take what is not meant, or write "
			"not in front of a condition");
	if (text.len <= all_but_case.len)
		return 0;
	const size_t before = text.len - all_but_case.len;
	const struct slice end = slice_skip(text, before);

	if (is_blank(text.ptr[before - 1]) && slice_is_nocase(end, all_but_case))
		return err_set(err, "\"%.*s\" at the end is written nocase", SHOWN(end));
	return 0;
}

static bool
begins_pattern(struct slice word)
{
	return word.len > 0 && strchr("/*=~", word.ptr[0]) != NULL;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int
check_methods(struct slice methods, struct slice whole, struct err *err)
{
	struct slice rest = methods, method;

	while (slice_split(&rest, '|', &method)) {
		bool is_lower = false;

		for (size_t i = 0; i < method.len; i++)
			is_lower = is_lower || (method.ptr[i] >= 'a' && method.ptr[i] <= 'z');
		if (!word_is_token(method) || !is_letter(method.ptr[0]))
			return err_set(err,
				"\"%.*s\" is no list of methods such as GET|POST, nor a pattern: "
				"one "
				"begins with / or *, or is = /path or ~ expression",
				SHOWN(methods));
		if (is_lower)
			return err_set(err,
				"\"%.*s\" is no method, since those are in capitals, nor a "
				"pattern: one "
				"begins with / or *, or is = /path or ~ expression",
				SHOWN(method));
	}
	if (whole.len == 0)
		return err_set(err, "no pattern follows the methods; write %.*s * for all paths",
			SHOWN(methods));
	return 0;
}

bool
pattern_cut_nocase(struct slice *text)
{
	const struct slice word = SLICE("nocase");

	if (text->len <= word.len)
		return false;
	const size_t before = text->len - word.len;

	if (!slice_is(slice_skip(*text, before), word) || !is_blank(text->ptr[before - 1]))
		return false;
	*text = slice_trim(slice_first(*text, before));
	return true;
}

static bool
is_hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

static int
check_bytes(struct slice text, struct err *err)
{
	for (size_t i = 0; i < text.len; i++) {
		const char c = text.ptr[i];

		if (is_blank(c))
			return err_set(err,
				"\"%.*s\" has a blank; a second pattern is a second line, and a "
				"blank "
				"in a path is written with * or as ~ expression",
				SHOWN(text));
		if (c == '?' || c == '#')
			return err_set(err,
				"\"%.*s\" has a \"%c\", where a path is cut before it is compared",
				SHOWN(text), c);
		if (c == '%' && text.len - i > 2 && is_hex(text.ptr[i + 1]) &&
			is_hex(text.ptr[i + 2]))
			return err_set(err,
				"\"%.*s\" has an escape, but paths are decoded before they are "
				"compared; write the character itself",
				SHOWN(text));
	}
	return 0;
}

/* Paths are compared with "//", "/./" and "/../" resolved. */
static int
check_segments(struct slice text, struct err *err)
{
	struct slice rest = slice_skip(text, slice_find(text, '/')), part;

	if (rest.len == 0)
		return 0;
	rest = slice_skip(rest, 1);
	while (slice_split(&rest, '/', &part)) {
		const bool is_last = rest.ptr == NULL;

		if ((part.len == 0 && !is_last) || slice_is(part, SLICE(".")) ||
			slice_is(part, SLICE("..")))
			return err_set(err,
				"\"%.*s\" fits nothing, since //, /. and /.. are resolved before a "
				"path is compared",
				SHOWN(text));
	}
	return 0;
}

static int
check_plain(struct slice text, struct err *err)
{
	if (text.len == 0 || (text.ptr[0] != '/' && text.ptr[0] != '*'))
		return err_set(err, "\"%.*s\" does not begin with /", SHOWN(text));
	return check_bytes(text, err) != 0 || check_segments(text, err) != 0 ? -1 : 0;
}

static int
parse_exact(struct slice text, struct config_pattern *pattern, struct err *err)
{
	pattern->kind = PATTERN_EXACT;
	if (check_plain(text, err) != 0)
		return -1;
	if (slice_find(text, '*') != text.len)
		return err_set(err, "\"= %.*s\" is exact, so * would stand for itself; leave out =",
			SHOWN(text));
	return 0;
}

static int
parse_kind(struct slice *text, struct config_pattern *pattern, struct err *err)
{
	const char first = text->ptr[0];

	if (first == '=' || first == '~')
		*text = slice_trim(slice_skip(*text, 1));
	if (first == '=')
		return parse_exact(*text, pattern, err);
	if (first != '~') {
		pattern->kind = slice_find(*text, '*') != text->len ? PATTERN_GLOB : PATTERN_BELOW;
		return check_plain(*text, err);
	}
	pattern->kind = PATTERN_REGEX;
	return text->len > 0 ? 0 : err_set(err, "no expression follows the ~");
}

int
value_pattern(const struct value *value, void *field, struct err *err)
{
	struct config_pattern *pattern = field;
	struct slice rest = value->text, text = value->text, methods;

	*pattern = (struct config_pattern){ .place = value->place };
	pattern->nocase = pattern_cut_nocase(&text);
	rest = text;
	if (pattern_check_foreign(text, err) != 0)
		return -1;
	if (!begins_pattern(text)) {
		(void)word_next(&rest, &methods);
		if (check_methods(methods, rest, err) != 0)
			return -1;
		if (!begins_pattern(rest))
			return err_set(err,
				"\"%.*s\" is no pattern; one begins with / or *, or is = /path or "
				"~ "
				"expression",
				SHOWN(rest));
		pattern->methods = value_copy(value, methods, err);
		if (pattern->methods == NULL)
			return -1;
		text = rest;
		if (pattern_check_foreign(text, err) != 0)
			return -1;
	}
	if (parse_kind(&text, pattern, err) != 0)
		return -1;
	pattern->text = value_copy(value, text, err);
	return pattern->text == NULL ? -1 : 0;
}
