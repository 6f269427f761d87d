/* Who is counted: a list of identities, each of which may be several parts joined by +. */
#include "list.h"
#include "values.h"

enum { PREFIX_4_MAX = 32, PREFIX_6_MAX = 128, PREFIX_6_DEFAULT = 64 };

/* One prefix alone would have to be guessed: a number beyond 32 is of IPv6, and the other family
 * stays as it is without. */
static int
err_one_prefix(struct slice text, struct slice bits, unsigned family, struct err *err)
{
	uint64_t n;
	const bool is_6 = family == 6 || (family == 0 && parse_uint(bits, PREFIX_4_MAX, &n) != 0);

	if (parse_uint(bits, is_6 ? PREFIX_6_MAX : PREFIX_4_MAX, &n) != 0 || n == 0)
		bits = is_6 ? SLICE("48") : SLICE("24");
	if (is_6)
		return err_set(err,
			"\"%.*s\" wants the bits for IPv4 and for IPv6; write ip/%d/%.*s for IPv6 "
			"alone, an IPv4 address being all of its %d bits",
			SHOWN(text), PREFIX_4_MAX, SHOWN(bits), PREFIX_4_MAX);
	return err_set(err,
		"\"%.*s\" wants the bits for IPv4 and for IPv6; write ip/%.*s/%d, %d being those "
		"of IPv6 if nothing is said",
		SHOWN(text), SHOWN(bits), PREFIX_6_DEFAULT, PREFIX_6_DEFAULT);
}

/* The bits behind ip: /BITS/BITS for IPv4 and IPv6, or nothing. */
static int
parse_prefixes(struct slice text, struct config_identity_part *part, struct err *err)
{
	struct slice rest = text, bits_text;
	uint64_t bits[2] = { PREFIX_4_MAX, PREFIX_6_DEFAULT };

	(void)slice_split(&rest, '/', &bits_text);
	for (size_t i = 0; rest.ptr != NULL; i++) {
		const uint64_t max = i == 0 ? PREFIX_4_MAX : PREFIX_6_MAX;

		(void)slice_split(&rest, '/', &bits_text);
		if (i == 0 && rest.ptr == NULL &&
			parse_uint(bits_text, PREFIX_6_MAX, &bits[0]) == 0 && bits[0] > 0)
			return err_one_prefix(text, bits_text, 0, err);
		if (i > 1 || (i == 0 && rest.ptr == NULL) ||
			parse_uint(bits_text, max, &bits[i]) != 0 || bits[i] == 0)
			return err_set(err,
				"\"%.*s\" wants the bits for IPv4, 1 to 32, and for IPv6, 1 to "
				"128, such as ip/24/48",
				SHOWN(text));
	}
	part->prefix_4 = (unsigned)bits[0];
	part->prefix_6 = (unsigned)bits[1];
	return 0;
}

/* Whose values an override can list, so that one is known or not. */
static bool
can_be_known(enum identity_source source)
{
	switch (source) {
	case IDENTITY_USER:
	case IDENTITY_HEADER:
	case IDENTITY_COOKIE:
	case IDENTITY_PARAM:
	case IDENTITY_ENV:
		return true;
	case IDENTITY_IP:
	case IDENTITY_HOST:
	case IDENTITY_PATH:
	case IDENTITY_BACKEND:
	case IDENTITY_ROUTE:
	case IDENTITY_ALL:
		break;
	}
	return false;
}

static int
parse_known(
	struct slice rest, struct slice text, struct config_identity_part *part, struct err *err)
{
	struct slice word;

	if (!word_next(&rest, &word))
		return 0;
	const bool is_known = slice_is(word, SLICE("known"));

	if (!is_known || word_next(&rest, &word)) {
		const struct slice before =
			slice_trim(slice_first(text, (size_t)(word.ptr - text.ptr)));

		return err_set(err,
			"\"%.*s\" follows \"%.*s\"; a list is separated by commas, and + joins "
			"what is counted together",
			SHOWN(word), SHOWN(before));
	}
	if (!can_be_known(part->source))
		return err_set(err,
			"known goes with header, cookie, param, env and user: an override lists "
			"their values");
	part->known = true;
	return 0;
}

/* Of one family alone. */
static const struct {
	const char *name;
	unsigned family;
} families[] = { { "ipv4/", 4 }, { "ip4/", 4 }, { "ipv6/", 6 }, { "ip6/", 6 } };

static int
parse_part(const struct value *value, struct slice text, struct config_identity_part *part,
	struct err *err)
{
	struct slice rest = text, word;

	(void)word_next(&rest, &word);
	if (slice_has_prefix(word, SLICE("ip/"))) {
		*part = (struct config_identity_part){ .source = IDENTITY_IP };
		if (parse_prefixes(word, part, err) != 0)
			return -1;
		return parse_known(rest, text, part, err);
	}
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		const struct slice name = slice_of(families[i].name);

		if (slice_has_prefix(word, name))
			return err_one_prefix(
				word, slice_skip(word, name.len), families[i].family, err);
	}
	rest = text;
	if (source_parse(value, &rest, identity_words, part, err) != 0)
		return -1;
	if (part->source == IDENTITY_IP) {
		part->prefix_4 = PREFIX_4_MAX;
		part->prefix_6 = PREFIX_6_DEFAULT;
	}
	if (source_parse_nocase(value, &rest, part, err) != 0)
		return -1;
	return parse_known(rest, text, part, err);
}

static bool
is_same_part(const struct config_identity_part *a, const struct config_identity_part *b)
{
	return source_is(a, b->source, b->name, b->param) && a->known == b->known &&
		a->prefix_4 == b->prefix_4 && a->prefix_6 == b->prefix_6;
}

/* What a part adds to those before it. */
static int
check_joined(const struct config_identity *identity, const struct config_identity_part *part,
	struct slice text, struct err *err)
{
	for (unsigned i = 0; i < identity->part_count; i++) {
		const struct config_identity_part *other = &identity->parts[i];

		if (other->source == IDENTITY_ALL || part->source == IDENTITY_ALL)
			return err_set(err, "all tells nobody apart, so it is not joined by +");
		if (source_is(other, part->source, part->name, part->param))
			return err_set(err, "\"%.*s\" is joined with itself", SHOWN(text));
	}
	return 0;
}

static size_t
count_items(struct slice text, char separator)
{
	size_t count = 1;

	for (size_t i = 0; i < text.len; i++)
		count += text.ptr[i] == separator;
	return count;
}

static int
parse_identity(const struct value *value, struct slice text, struct config_identity *identity,
	struct err *err)
{
	const size_t max = count_items(text, '+');
	struct slice rest = text, part;

	*identity = (struct config_identity){ 0 };
	if (max > IDENTITY_PARTS_MAX)
		return err_set(
			err, "\"%.*s\" joins more than %d parts", SHOWN(text), IDENTITY_PARTS_MAX);
	identity->parts = value_alloc(value, max * sizeof identity->parts[0], err);
	if (identity->parts == NULL)
		return -1;
	while (slice_split(&rest, '+', &part)) {
		struct config_identity_part *new = &identity->parts[identity->part_count];

		if (part.len == 0)
			return err_set(err, "\"%.*s\" joins nothing by one +", SHOWN(text));
		if (parse_part(value, part, new, err) != 0 ||
			check_joined(identity, new, part, err) != 0)
			return -1;
		identity->part_count++;
	}
	return 0;
}

bool
identity_is_always_present(const struct config_identity *identity)
{
	for (unsigned i = 0; i < identity->part_count; i++) {
		switch (identity->parts[i].source) {
		case IDENTITY_IP:
		case IDENTITY_PATH:
		case IDENTITY_BACKEND:
		case IDENTITY_ROUTE:
		case IDENTITY_ALL:
			break;
		case IDENTITY_USER:
		case IDENTITY_HEADER:
		case IDENTITY_COOKIE:
		case IDENTITY_PARAM:
		case IDENTITY_ENV:
		case IDENTITY_HOST:
			return false;
		}
	}
	return true;
}

bool
identity_is(const struct config_identity *a, const struct config_identity *b)
{
	if (a->part_count != b->part_count)
		return false;
	for (unsigned i = 0; i < a->part_count; i++) {
		if (!is_same_part(&a->parts[i], &b->parts[i]))
			return false;
	}
	return true;
}

/* Whether the newest of the list is ever asked for. */
static int
check_asked_for(const struct config_limit *limit, const struct config_identity *identity,
	struct slice text, struct err *err)
{
	for (unsigned i = 0; i < limit->identity_count; i++) {
		if (identity_is_always_present(&limit->identities[i]))
			return err_set(err,
				"\"%.*s\" is never asked for, since what stands before it is "
				"always there",
				SHOWN(text));
		if (identity_is(&limit->identities[i], identity))
			return err_set(err, "\"%.*s\" is named twice", SHOWN(text));
	}
	return 0;
}

struct identities {
	const struct value *value;
	struct config_limit *limit;
};

static int
take_identity(void *context, struct slice text, unsigned line, struct err *err)
{
	const struct identities *taken = context;
	struct config_limit *limit = taken->limit;
	struct config_identity *new = &limit->identities[limit->identity_count];

	(void)line;
	if (parse_identity(taken->value, text, new, err) != 0 ||
		check_asked_for(limit, new, text, err) != 0)
		return -1;
	limit->identity_count++;
	return 0;
}

int
value_identity(const struct value *value, void *field, struct err *err)
{
	struct config_limit *limit = field;
	struct identities identities = { value, limit };
	const size_t count = count_items(value->text, ',');

	limit->identity_count = 0;
	limit->identities = value_alloc(value, count * sizeof limit->identities[0], err);
	if (limit->identities == NULL)
		return -1;
	return list_line(value, value->text, take_identity, &identities, err);
}
