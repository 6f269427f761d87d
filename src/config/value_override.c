/*
 * Overrides: whom they are for. Values come by the hundred thousand from files, so they are kept
 * side by side, without a piece of memory of its own for each; and since many of them are secrets,
 * no sentence shows one.
 */
#include "list.h"
#include "values.h"

#include <stdint.h>

enum { SHA256_SIZE = 32 };

/* What has been taken of one piece of a list. */
struct taken {
	struct config_for *list;
	char *text; /* where the next value's bytes go */
	bool is_from_file, has_plain;
};

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	const char small = (char)(c | 0x20);

	return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

static int
put_sha256(struct slice hex, char *out, struct err *err)
{
	bool is_hash = hex.len == 2 * SHA256_SIZE;

	for (size_t i = 0; is_hash && i < SHA256_SIZE; i++) {
		const int high = hex_digit(hex.ptr[2 * i]), low = hex_digit(hex.ptr[2 * i + 1]);

		is_hash = high >= 0 && low >= 0;
		out[i] = (char)(16 * high + low);
	}
	if (is_hash)
		return 0;
	return err_set(err,
		"sha256: wants 64 hexadecimal digits; they are made by: printf %%s VALUE | "
		"sha256sum");
}

/* `header X a, header X b`: of which the second would be a value that nobody has. */
static bool
repeats_source(const struct config_for *list, struct slice item)
{
	char text[SOURCE_TEXT_SIZE];
	const struct slice source = slice_of(source_text(list->source, list->name, text));

	return item.len > source.len && slice_has_prefix(item, source) &&
		item.ptr[source.len] == ' ';
}

static int
take_value(void *context, struct slice item, unsigned line, struct err *err)
{
	const struct slice prefix = SLICE("sha256:");
	struct taken *taken = context;
	struct config_for *list = taken->list;
	struct config_value *value = &list->values[list->value_count];
	char text[SOURCE_TEXT_SIZE];

	if (!taken->is_from_file && repeats_source(list, item))
		return err_set(err,
			"%s stands once, in front of the list; leave it out behind a comma",
			source_text(list->source, list->name, text));
	value->text = taken->text;
	value->is_sha256 = slice_has_prefix(item, prefix);
	if (value->is_sha256) {
		value->len = SHA256_SIZE;
		if (put_sha256(slice_skip(item, prefix.len), taken->text, err) != 0)
			return -1;
	} else {
		value->len = (uint32_t)item.len;
		memcpy(taken->text, item.ptr, item.len);
		taken->has_plain = true;
	}
	/* A name is one word but for files, where a line ends it: of `user alice bob` it is more
	 * likely that a comma is missing. */
	if (list->source == IDENTITY_USER && !taken->is_from_file && !value->is_sha256 &&
		slice_find(item, ' ') != item.len)
		return err_set(err,
			"\"%.*s\" has a blank; a list is separated by commas, and a name with a "
			"blank can stand in a file",
			SHOWN(item));
	taken->text += value->len;
	if (list->lines != NULL)
		list->lines[list->value_count] = line;
	list->value_count++;
	return 0;
}

static int
take_net(void *context, struct slice item, unsigned line, struct err *err)
{
	struct taken *taken = context;
	struct config_for *list = taken->list;

	if (list_net(item, &list->nets[list->net_count], err) != 0)
		return -1;
	if (list->lines != NULL)
		list->lines[list->net_count] = line;
	list->net_count++;
	return 0;
}

/* Room for as many items as there can be. */
static int
make_room(const struct value *value, const struct list_piece *piece, struct taken *taken,
	struct err *err)
{
	struct config_for *list = taken->list;

	if (list->source == IDENTITY_IP) {
		list->nets = value_alloc(value, piece->count * sizeof list->nets[0], err);
		if (list->nets == NULL)
			return -1;
	} else {
		list->values = value_alloc(value, piece->count * sizeof list->values[0], err);
		/* A hash in hexadecimal is longer than its bytes. */
		taken->text = value_alloc(value, piece->rest.len + 1, err);
		if (list->values == NULL || taken->text == NULL)
			return -1;
	}
	if (piece->file == NULL)
		return 0;
	list->place = (struct place){ piece->file, 0 };
	list->lines = value_alloc(value, piece->count * sizeof list->lines[0], err);
	return list->lines == NULL ? -1 : 0;
}

static int
take_piece(const struct value *value, struct list_piece *piece,
	const struct config_identity_part *source, struct config_override *override,
	struct err *err)
{
	struct config_for *fors = value_grow(
		value, override->fors, override->for_count, sizeof override->fors[0], err);

	if (fors == NULL)
		return -1;
	override->fors = fors;
	struct taken taken = { .list = &fors[override->for_count],
		.is_from_file = piece->file != NULL };

	*taken.list = (struct config_for){ .place = value->place,
		.source = source->source,
		.name = source->name,
		.param = source->param };
	if (make_room(value, piece, &taken, err) != 0 ||
		list_each(value, piece, source->source == IDENTITY_IP ? take_net : take_value,
			&taken, err) != 0)
		return -1;
	list_check_file(value, piece, taken.has_plain && source->source != IDENTITY_USER,
		taken.list->value_count + taken.list->net_count);
	override->for_count++;
	return 0;
}

/* Alone, or as a whole item, it is a value. */
static int
take_nocase(const struct value *value, struct slice *rest, struct config_identity_part *source,
	struct err *err)
{
	struct slice behind = *rest, word;

	if (source->source != IDENTITY_PARAM || !word_next(&behind, &word) || behind.len == 0)
		return 0;
	return source_parse_nocase(value, rest, source, err);
}

int
value_for(const struct value *value, void *field, struct err *err)
{
	struct config_override *override = field;
	struct config_identity_part source;
	struct slice rest = value->text;
	struct list list;

	if (source_parse(value, &rest, attribute_words, &source, err) != 0 ||
		take_nocase(value, &rest, &source, err) != 0)
		return -1;
	if (rest.len == 0)
		return err_set(err,
			source.source == IDENTITY_IP
				? "ip wants networks, such as ip 192.0.2.0/24, 2001:db8::/32 or ip "
				  "@/path"
				: "the values are missing, such as VALUE, VALUE or @/path");
	int result = list_open(&list, value, rest, err);

	if (list.is_broken)
		result = -1;
	for (unsigned i = 0; i < list.count && err->text[0] == '\0'; i++) {
		if (!list.pieces[i].is_refused &&
			take_piece(value, &list.pieces[i], &source, override, err) != 0)
			result = -1;
	}
	list_close(&list);
	return result;
}
