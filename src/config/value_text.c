/* What the value parsers share: words, the words that follow a value, copies. */
#include "foreign.h"
#include "nearest.h"
#include "reader.h"
#include "values.h"

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool
word_next(struct slice *rest, struct slice *word)
{
	*rest = slice_trim(*rest);
	size_t n = 0;

	while (n < rest->len && !is_blank(rest->ptr[n]))
		n++;
	*word = slice_first(*rest, n);
	*rest = slice_trim(slice_skip(*rest, n));
	return n > 0;
}

int
word_later(struct err *err, struct slice what)
{
	return err_set(err, "\"%.*s\" is not supported by this version", SHOWN(what));
}

int
word_find(const struct word *words, struct slice text, struct err *err)
{
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE], list[160] = "";
	const char *known = NULL;
	size_t len = 0;

	nearest_init(&nearest, text);
	for (const struct word *word = words; word->text != NULL; word++) {
		if (slice_is(text, slice_of(word->text)))
			return word->number;
		if (word->number == WORD_LATER)
			continue;
		nearest_offer(&nearest, word->text);
		if (slice_is_nocase(text, slice_of(word->text)))
			known = word->text;
		if (len < sizeof list)
			len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
				len == 0 ? "" : ", ", word->text);
	}
	if (known == NULL)
		known = foreign_word(words, text);
	nearest.best = known != NULL ? known : nearest.best;
	(void)err_set(
		err, "\"%.*s\" is none of %s%s", SHOWN(text), list, nearest_hint(&nearest, hint));
	return -2;
}

void *
value_alloc(const struct value *value, size_t size, struct err *err)
{
	void *piece = arena_alloc(&value->config->arena, size);

	if (piece == NULL)
		(void)err_set(err, "%s", config_too_large);
	return piece;
}

void *
value_grow(const struct value *value, void *items, unsigned count, size_t size, struct err *err)
{
	/* Memory cannot be given back, so it is taken when the count is a power of two. */
	if ((count & (count - 1)) != 0)
		return items;
	const size_t room = count == 0 ? 1 : 2 * (size_t)count;
	char *grown = value_alloc(value, room * size, err);

	if (grown == NULL)
		return NULL;
	if (count > 0)
		memcpy(grown, items, count * size);
	return grown;
}

char *
value_copy(const struct value *value, struct slice text, struct err *err)
{
	char *copy = value_alloc(value, text.len + 1, err);

	if (copy == NULL)
		return NULL;
	if (text.len > 0)
		memcpy(copy, text.ptr, text.len);
	copy[text.len] = '\0';
	return copy;
}

bool
word_is_token(struct slice text)
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < text.len; i++) {
		const char c = text.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			(c == '\0' || strchr(marks, c) == NULL))
			return false;
	}
	return text.len > 0;
}

/* burst=20, burst:20 */
static int
err_joined(const struct trailer *trailer, struct slice name, struct err *err)
{
	const struct slice argument = slice_skip(name, strlen(trailer->name) + 1);

	if (argument.len == 0)
		return err_set(err, "\"%.*s\" is written %s", SHOWN(name), trailer->name);
	return err_set(
		err, "\"%.*s\" is written %s %.*s", SHOWN(name), trailer->name, SHOWN(argument));
}

/* Words of nginx's limit_req. */
static bool
is_delay(struct slice name)
{
	return slice_is(name, SLICE("nodelay")) || slice_is(name, SLICE("delay")) ||
		slice_has_prefix(name, SLICE("delay="));
}

static struct trailer *
trailer_find(struct trailer *trailers, struct slice name, struct err *err)
{
	const size_t equal = slice_find(name, '='), colon = slice_find(name, ':');
	const struct slice joined = slice_first(name, equal < colon ? equal : colon);
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE];

	nearest_init(&nearest, name);
	for (struct trailer *trailer = trailers; trailer->name != NULL; trailer++) {
		if (slice_is(name, slice_of(trailer->name)))
			return trailer;
		if (joined.len < name.len && slice_is_nocase(joined, slice_of(trailer->name))) {
			(void)err_joined(trailer, name, err);
			return NULL;
		}
		nearest_offer(&nearest, trailer->name);
	}
	if (is_delay(name)) {
		(void)err_set(err,
			"\"%.*s\": weir never delays, it admits or rejects; leave it out",
			SHOWN(name));
		return NULL;
	}
	(void)err_set(err, "\"%.*s\" is no word that can follow here%s", SHOWN(name),
		nearest_hint(&nearest, hint));
	return NULL;
}

int
trailers_parse(struct slice rest, struct trailer *trailers, struct err *err)
{
	struct slice word;

	while (word_next(&rest, &word)) {
		struct trailer *trailer = trailer_find(trailers, word, err);

		if (trailer == NULL)
			return -1;
		if (trailer->is_given)
			return err_set(err, "\"%s\" is given twice", trailer->name);
		trailer->is_given = true;
		if (trailer->has_argument && !word_next(&rest, &trailer->argument))
			return err_set(err, "\"%s\" wants a word behind it", trailer->name);
	}
	return 0;
}
