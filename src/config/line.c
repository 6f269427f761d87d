/*
 * Lines, strictly. inih would take `:` for `=`, cut a value at ` ;` whatever follows, keep ` # two`
 * as part of a value and drop what stands behind `]`; each of these is a mistake that somebody made
 * and that would have been applied silently. A comment line may hold anything but NUL.
 */
#include "line.h"

enum { NAME_MAX_LEN = 64, SHOWN_MAX = 100 };

/* For "%.*s": bytes, without so many that the sentence is lost in them. */
#define SHOWN(s) (int)((s).len < SHOWN_MAX ? (s).len : SHOWN_MAX), (s).ptr

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool
is_word_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_';
}

static size_t
word_len(struct slice s)
{
	size_t n = 0;

	while (n < s.len && is_word_char(s.ptr[n]))
		n++;
	return n;
}

int
config_name_check(struct slice name, struct err *err)
{
	if (name.len == 0 || name.len > NAME_MAX_LEN)
		return err_set(err, "a name has 1 to %d characters", NAME_MAX_LEN);
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.ptr[i];

		if (!is_word_char(c) && c != '-' && c != '.')
			return err_set(err,
				"\"%.*s\" is no name; a name is one word of letters, digits, "
				"\"-\", \"_\" and \".\"",
				SHOWN(name));
	}
	return 0;
}

/* Bytes that look like a blank or a quote on the screen, and come from a web page or a word
 * processor. */
static const struct {
	struct slice bytes;
	const char *name;
} lookalikes[] = {
	{ { "\xc2\xa0", 2 }, "a no-break space" },
	{ { "\xe2\x80\x8b", 3 }, "a zero-width space" },
	{ { "\xe2\x80\x98", 3 }, "a typographic quote" },
	{ { "\xe2\x80\x99", 3 }, "a typographic quote" },
	{ { "\xe2\x80\x9c", 3 }, "a typographic quote" },
	{ { "\xe2\x80\x9d", 3 }, "a typographic quote" },
	{ { "\xef\xbb\xbf", 3 }, "a byte order mark" },
};

size_t
utf8_len(struct slice s)
{
	const unsigned char *b = (const unsigned char *)s.ptr;
	size_t len = b[0] < 0x80 ? 1 : b[0] < 0xc2 ? 0 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;

	if (len == 0 || b[0] > 0xf4 || len > s.len)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	}
	const bool is_long_form = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xf0 && b[1] < 0x90);
	const bool is_no_character = (b[0] == 0xed && b[1] > 0x9f) || (b[0] == 0xf4 && b[1] > 0x8f);

	return is_long_form || is_no_character ? 0 : len;
}

static int
check_bytes(struct slice s, struct err *err)
{
	while (s.len > 0) {
		const unsigned char c = (unsigned char)s.ptr[0];
		const size_t len = utf8_len(s);

		if ((c < ' ' && c != '\t') || c == 0x7f)
			return err_set(err, "the line holds a control character (0x%02x)", c);
		if (len == 0)
			return err_set(
				err, "the byte 0x%02x is no UTF-8; save the file in UTF-8", c);
		for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++) {
			if (slice_has_prefix(s, lookalikes[i].bytes))
				return err_set(err,
					"the line holds %s, perhaps pasted from a web page; write "
					"plain blanks and no quotes",
					lookalikes[i].name);
		}
		s = slice_skip(s, len);
	}
	return 0;
}

/* Takes a comment off the end. */
static int
cut_comment(struct slice *s, struct err *err)
{
	for (size_t i = 1; i < s->len; i++) {
		if (s->ptr[i] != ';' || !is_blank(s->ptr[i - 1]))
			continue;
		const bool is_comment = i + 1 == s->len || is_blank(s->ptr[i + 1]);

		*s = slice_trim(slice_first(*s, i));
		if (is_comment)
			return 0;
		return err_set(err,
			"\" ;\" begins a comment and wants a blank behind it; a value cannot hold "
			"\" ;\" (a regular expression can say [ ];)");
	}
	return 0;
}

static int
check_hash(struct slice s, struct err *err)
{
	for (size_t i = 1; i < s.len; i++) {
		if (s.ptr[i] == '#' && is_blank(s.ptr[i - 1]))
			return err_set(err,
				"a comment behind a value begins with \" ; \", not with \" #\" (a "
				"regular expression can say [ ]#)");
	}
	return 0;
}

/* [section name], as well as it can be told; the closing bracket may be missing. */
static void
split_section(struct slice s, struct line *line)
{
	const struct slice inside = slice_trim(slice_skip(slice_first(s, slice_find(s, ']')), 1));
	size_t blank = 0;

	while (blank < inside.len && !is_blank(inside.ptr[blank]))
		blank++;
	line->kind = LINE_SECTION;
	line->section = slice_first(inside, blank);
	line->name = slice_trim(slice_skip(inside, blank));
}

static int
check_section(struct slice s, const struct line *line, struct err *err)
{
	const size_t close = slice_find(s, ']');

	if (close == s.len)
		return err_set(err, "the section does not close; write %.*s]", SHOWN(s));
	const struct slice behind = slice_trim(slice_skip(s, close + 1));

	if (line->section.len == 0)
		return err_set(err, "a section has a kind, and most have a name: [limit page]");
	if (behind.len > 0)
		return err_set(err,
			"\"%.*s\" stands behind the section; a section has a line of its own, and "
			"a comment behind it begins with \" ; \"",
			SHOWN(behind));
	return line->name.len == 0 ? 0 : config_name_check(line->name, err);
}

static int
explain_no_equal_sign(struct slice s, struct err *err)
{
	const struct slice word = slice_first(s, word_len(s));
	struct slice rest = slice_trim(slice_skip(s, word.len));

	if (slice_has_prefix(s, SLICE("unix:")) || slice_has_prefix(s, SLICE("tcp:")) ||
		slice_has_prefix(s, SLICE("tls:")))
		return err_set(err,
			"an address stands here without a key; did you mean \"server = %.*s\"?",
			SHOWN(s));
	if (rest.len > 0 && rest.ptr[0] == ':')
		rest = slice_trim(slice_skip(rest, 1));
	if (word.len == 0)
		return err_set(err,
			"there is no \"=\" in this line; a line is \"key = value\", \"[section]\" "
			"or a comment");
	if (rest.len == 0)
		return err_set(err, "there is no \"=\" in this line; did you mean \"%.*s = ...\"?",
			SHOWN(word));
	return err_set(err, "there is no \"=\" in this line; did you mean \"%.*s = %.*s\"?",
		SHOWN(word), SHOWN(rest));
}

static int
check_value(struct slice value, struct err *err)
{
	if (value.len == 0)
		return 0;
	const char c = value.ptr[0];

	if (c == '"' || c == '\'')
		return err_set(err,
			"there is no quoting: quotes would be part of the value; leave them out");
	if (c == '#' || c == ';')
		return err_set(
			err, "\"=%c\" is not the beginning of a comment; write \"= ; comment\"", c);
	return 0;
}

static int
parse_setting(struct slice s, size_t max, struct line *line, struct err *err)
{
	const size_t equal = slice_find(s, '='), colon = slice_find(s, ':');
	const struct slice key = slice_trim(slice_first(s, equal));

	line->setting = s;
	if (equal == s.len)
		return explain_no_equal_sign(s, err);
	if (colon < equal)
		return err_set(err,
			"a \":\" stands in front of the \"=\"; a setting is \"%.*s = ...\"",
			SHOWN(slice_trim(slice_first(s, colon))));
	if (key.len == 0)
		return err_set(err, "there is no key in front of the \"=\"");
	if (check_hash(s, err) != 0 || check_value(slice_trim(slice_skip(s, equal + 1)), err) != 0)
		return -1;
	if (s.len > max)
		return err_set(err,
			"the line has %zu bytes without its comment, and no more than %zu are "
			"read; a key that may be repeated takes the rest on a line of its own",
			s.len, max);
	return 0;
}

int
config_line_parse(struct slice text, size_t max, struct line *line, struct err *err)
{
	struct slice s = slice_trim(text);

	*line = (struct line){ .kind = LINE_EMPTY };
	if (slice_find(text, '\0') != text.len)
		return err_set(err, "the line holds a NUL byte; is this a text file?");
	if (s.len == 0 || s.ptr[0] == ';' || s.ptr[0] == '#')
		return 0;
	line->kind = LINE_SETTING;
	const bool is_clean = cut_comment(&s, err) == 0 && check_bytes(s, err) == 0;

	if (s.ptr[0] == '[')
		split_section(s, line);
	if (!is_clean)
		return -1;
	return line->kind == LINE_SECTION ? check_section(s, line, err)
					  : parse_setting(s, max, line, err);
}
