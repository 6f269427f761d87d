/* Each function cuts what it is named after off *rest, and is false if that does not stand there.
 */
#include "structured.h"

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool
cut_char(struct slice *rest, char c)
{
	if (rest->len == 0 || rest->ptr[0] != c)
		return false;
	*rest = slice_skip(*rest, 1);
	return true;
}

static void
cut_spaces(struct slice *rest)
{
	while (cut_char(rest, ' '))
		continue;
}

static void
cut_blanks(struct slice *rest)
{
	while (cut_char(rest, ' ') || cut_char(rest, '\t'))
		continue;
}

/* Section 4.2.3.3. */
static bool
cut_key(struct slice *rest, char key[SF_KEY_SIZE])
{
	size_t len = 0;

	if (rest->len == 0 || (!is_lower(rest->ptr[0]) && rest->ptr[0] != '*'))
		return false;
	while (len < rest->len && len < SF_KEY_SIZE - 1 &&
		(is_lower(rest->ptr[len]) || is_digit(rest->ptr[len]) ||
			memchr("_-.*", rest->ptr[len], 4) != NULL)) {
		key[len] = rest->ptr[len];
		len++;
	}
	key[len] = '\0';
	*rest = slice_skip(*rest, len);
	return true;
}

/* Section 4.2.4; decimals are not ours. */
static bool
cut_integer(struct slice *rest, int64_t *number)
{
	const bool is_negative = cut_char(rest, '-');
	unsigned digits = 0;

	*number = 0;
	for (; rest->len > 0 && is_digit(rest->ptr[0]); digits++) {
		if (digits == 15)
			return false;
		*number = *number * 10 + (rest->ptr[0] - '0');
		*rest = slice_skip(*rest, 1);
	}
	if (is_negative)
		*number = -*number;
	return digits > 0 && (rest->len == 0 || rest->ptr[0] != '.');
}

/* Section 4.2.5. */
static bool
cut_string(struct slice *rest, char text[SF_TEXT_SIZE])
{
	size_t len = 0;

	if (!cut_char(rest, '"'))
		return false;
	while (!cut_char(rest, '"')) {
		if (cut_char(rest, '\\') &&
			(rest->len == 0 || (rest->ptr[0] != '"' && rest->ptr[0] != '\\')))
			return false;
		if (rest->len == 0 || rest->ptr[0] < ' ' || rest->ptr[0] > '~' ||
			len == SF_TEXT_SIZE - 1)
			return false;
		text[len++] = rest->ptr[0];
		*rest = slice_skip(*rest, 1);
	}
	text[len] = '\0';
	return true;
}

static bool
cut_value(struct slice *rest, struct sf_value *value)
{
	value->is_text = rest->len > 0 && rest->ptr[0] == '"';
	return value->is_text ? cut_string(rest, value->text) : cut_integer(rest, &value->number);
}

/* Section 4.2.3. */
static bool
cut_item(struct slice *rest, struct sf_member *member)
{
	member->param_count = 0;
	if (!cut_value(rest, &member->value))
		return false;
	while (cut_char(rest, ';')) {
		struct sf_param *param = &member->params[member->param_count];

		cut_spaces(rest);
		if (member->param_count == SF_PARAMS_MAX || !cut_key(rest, param->key) ||
			!cut_char(rest, '=') || !cut_value(rest, &param->value) ||
			sf_param(member, param->key) != NULL)
			return false;
		member->param_count++;
	}
	return true;
}

/* Sections 4.2.1 and 4.2.2. */
static bool
read_members(struct slice rest, struct sf_field *field, bool has_keys)
{
	field->count = 0;
	cut_spaces(&rest);
	do {
		struct sf_member *member = &field->members[field->count];

		cut_blanks(&rest);
		if (field->count == SF_MEMBERS_MAX)
			return false;
		member->key[0] = '\0';
		if (has_keys && (!cut_key(&rest, member->key) || !cut_char(&rest, '=')))
			return false;
		if (!cut_item(&rest, member))
			return false;
		field->count++;
		cut_blanks(&rest);
	} while (cut_char(&rest, ','));
	return rest.len == 0;
}

bool
sf_read_list(struct slice text, struct sf_field *field)
{
	return read_members(text, field, false);
}

bool
sf_read_dictionary(struct slice text, struct sf_field *field)
{
	return read_members(text, field, true);
}

const struct sf_value *
sf_param(const struct sf_member *member, const char *key)
{
	for (unsigned i = 0; i < member->param_count; i++) {
		if (strcmp(member->params[i].key, key) == 0)
			return &member->params[i].value;
	}
	return NULL;
}

const struct sf_member *
sf_member(const struct sf_field *field, const char *key)
{
	for (unsigned i = 0; i < field->count; i++) {
		if (strcmp(field->members[i].key, key) == 0)
			return &field->members[i];
	}
	return NULL;
}
