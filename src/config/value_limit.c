/* Policies and identities. */
#include "line.h"
#include "values.h"

#include <stdio.h>

enum { PREFIX_4_MAX = 32, PREFIX_6_MAX = 128, PREFIX_6_DEFAULT = 64, HEADER_NAME_MAX = 64 };

#define BURST_MAX UINT64_C(1000000000000000)

/* How people write windows elsewhere. */
static const struct {
	const char *written;
	const char *right; /* NULL: calendar windows, which come later */
} window_words[] = {
	{ "day", NULL },
	{ "month", NULL },
	{ "sec", "s" },
	{ "second", "s" },
	{ "min", "m" },
	{ "minute", "m" },
	{ "hour", "h" },
	{ "days", "d" },
	{ "week", "7d" },
};

static int
parse_policy_rate(struct slice text, struct rate *rate, struct err *err)
{
	const size_t slash = slice_find(text, '/');
	const struct slice count = slice_first(text, slash);
	const struct slice window = slice_skip(text, slash < text.len ? slash + 1 : slash);

	for (size_t i = 0; i < sizeof window_words / sizeof window_words[0]; i++) {
		if (!slice_is(window, slice_of(window_words[i].written)))
			continue;
		if (window_words[i].right != NULL)
			return err_set(err, "the window \"%.*s\" is written %.*s/%s", SHOWN(window),
				SHOWN(count), window_words[i].right);
		return err_set(err,
			"the calendar window \"/%.*s\" is not supported by this version; write "
			"%.*s/%s for a bucket that refills evenly",
			SHOWN(window), SHOWN(count), i == 0 ? "1d" : "30d");
	}
	return parse_rate(text, rate, err);
}

int
value_policy(const struct value *value, void *field, struct err *err)
{
	enum { BURST, NAME, ALGORITHM };
	struct config_policy *policy = field;
	struct trailer trailers[] = {
		[BURST] = { "burst", .has_argument = true },
		[NAME] = { "name", .has_argument = true },
		[ALGORITHM] = { "token-bucket", .has_argument = false },
		{ "sliding-window", .is_later = true },
		{ "sliding-log", .is_later = true },
		{ "calendar", .is_later = true },
		{ "shards", .is_later = true },
		{ "shadow", .is_later = true },
		{ NULL, .is_later = false },
	};
	struct slice rest = value->text, rate;

	if (slice_find(rest, ',') != rest.len)
		return err_set(err, "a second policy is a second line, without a comma");
	*policy = (struct config_policy){ .place = value->place, .algorithm = POLICY_TOKEN_BUCKET };
	(void)word_next(&rest, &rate);
	if (slice_is(rate, SLICE("concurrent")))
		return word_later(err, rate);
	/* The words first: of `1000/day calendar` the word tells more than the window does. */
	if (trailers_parse(rest, trailers, err) != 0 ||
		parse_policy_rate(rate, &policy->rate, err) != 0)
		return -1;
	policy->burst = policy->rate.count;
	if (trailers[BURST].is_given &&
		(parse_uint(trailers[BURST].argument, BURST_MAX, &policy->burst) != 0 ||
			policy->burst == 0))
		return err_set(err, "the burst \"%.*s\" is no whole number from 1 to %llu",
			SHOWN(trailers[BURST].argument), (unsigned long long)BURST_MAX);
	const struct slice name =
		trailers[NAME].is_given ? trailers[NAME].argument : slice_of(policy->rate.window);

	if (config_name_check(name, err) != 0)
		return -1;
	policy->name = value_copy(value, name, err);
	return policy->name == NULL ? -1 : 0;
}

/* ip, or ip/BITS/BITS for IPv4 and IPv6. */
static int
parse_ip(struct slice text, struct config_identity *identity, struct err *err)
{
	struct slice rest = text, part;
	uint64_t bits[2] = { PREFIX_4_MAX, PREFIX_6_DEFAULT };

	(void)slice_split(&rest, '/', &part);
	for (size_t i = 0; rest.ptr != NULL; i++) {
		const uint64_t max = i == 0 ? PREFIX_4_MAX : PREFIX_6_MAX;

		(void)slice_split(&rest, '/', &part);
		if (i > 1 || (i == 0 && rest.ptr == NULL) || parse_uint(part, max, &bits[i]) != 0 ||
			bits[i] == 0)
			return err_set(err,
				"\"%.*s\" wants the bits for IPv4, 1 to 32, and for IPv6, 1 to "
				"128, "
				"such as ip/24/48",
				SHOWN(text));
	}
	identity->source = IDENTITY_IP;
	identity->prefix_4 = (unsigned)bits[0];
	identity->prefix_6 = (unsigned)bits[1];
	return 0;
}

/* As FastCGI names it (RFC 3875 section 4.1.18): these two have no HTTP_ in front. */
static bool
has_own_parameter(struct slice name)
{
	return slice_is_nocase(name, SLICE("Content-Type")) ||
		slice_is_nocase(name, SLICE("Content-Length"));
}

static int
parse_header(const struct value *value, struct slice rest, struct config_identity *identity,
	struct err *err)
{
	struct slice name, more;
	const char *prefix;

	if (!word_next(&rest, &name) || !word_is_token(name) || name.len > HEADER_NAME_MAX)
		return err_set(err, "header wants the name of one, such as header X-API-Key");
	if (word_next(&rest, &more))
		return slice_is(more, SLICE("known"))
			? word_later(err, more)
			: err_set(err,
				  "\"%.*s\" follows the header's name; a "
				  "list is separated by commas",
				  SHOWN(more));
	prefix = has_own_parameter(name) ? "" : "HTTP_";
	const size_t prefix_len = strlen(prefix);
	char *param = value_alloc(value, prefix_len + name.len + 1, err);

	identity->source = IDENTITY_HEADER;
	identity->name = value_copy(value, name, err);
	if (param == NULL || identity->name == NULL)
		return -1;
	identity->param = param;
	memcpy(param, prefix, prefix_len + 1);
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.ptr[i];

		param[prefix_len + i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
	}
	param[prefix_len + name.len] = '\0';
	return 0;
}

/* The sources by their first word; what only a later version has is -1. */
static const struct word sources[] = {
	{ "ip", IDENTITY_IP },
	{ "user", IDENTITY_USER },
	{ "header", IDENTITY_HEADER },
	{ "all", IDENTITY_ALL },
	{ "cookie", WORD_LATER },
	{ "param", WORD_LATER },
	{ "env", WORD_LATER },
	{ "host", WORD_LATER },
	{ "path", WORD_LATER },
	{ "backend", WORD_LATER },
	{ "route", WORD_LATER },
	{ NULL, 0 },
};

static int
parse_one_identity(const struct value *value, struct slice text, struct config_identity *identity,
	struct err *err)
{
	struct slice rest = text, word;

	*identity = (struct config_identity){ 0 };
	if (!word_next(&rest, &word))
		return err_set(err, "an item of the list is empty");
	if (slice_is(word, SLICE("header")))
		return parse_header(value, rest, identity, err);
	if (slice_find(text, '+') != text.len)
		return err_set(err,
			"\"%.*s\": joining identities by + is not supported by this "
			"version",
			SHOWN(text));
	if (slice_has_prefix(word, SLICE("ip/")))
		word = slice_first(word, 2);
	const int source = word_find(sources, word, err);

	if (source == WORD_LATER)
		return word_later(err, word);
	if (source < 0)
		return -1;
	if (rest.len > 0)
		return err_set(err, "\"%.*s\" follows \"%.*s\"; a list is separated by commas",
			SHOWN(rest), SHOWN(word));
	if (source == IDENTITY_IP)
		return parse_ip(text, identity, err);
	identity->source = (enum identity_source)source;
	return 0;
}

static bool
is_always_present(const struct config_identity *identity)
{
	return identity->source == IDENTITY_IP || identity->source == IDENTITY_ALL;
}

int
value_identity(const struct value *value, void *field, struct err *err)
{
	struct config_limit *limit = field;
	struct slice rest = value->text, part;
	unsigned max = 1;

	for (size_t i = 0; i < rest.len; i++)
		max += rest.ptr[i] == ',';
	limit->identity_count = 0;
	limit->identities = value_alloc(value, max * sizeof limit->identities[0], err);
	if (limit->identities == NULL)
		return -1;
	while (slice_split(&rest, ',', &part)) {
		const unsigned n = limit->identity_count;

		if (n > 0 && is_always_present(&limit->identities[n - 1]))
			return err_set(err,
				"\"%.*s\" is never asked for, since what stands before it is "
				"always "
				"there",
				SHOWN(part));
		if (parse_one_identity(value, part, &limit->identities[n], err) != 0)
			return -1;
		limit->identity_count++;
	}
	return 0;
}
