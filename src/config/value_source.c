/*
 * Where a value of a request is found: `header X-API-Key`, `cookie session`, `user`. Identities,
 * conditions, overrides and costs name their sources in the same words.
 */
#include "foreign.h"
#include "values.h"

#include <stdio.h>

enum { NAME_MAX_LEN = 64 };

const struct word identity_words[] = {
	{ "ip", IDENTITY_IP },
	{ "user", IDENTITY_USER },
	{ "header", IDENTITY_HEADER },
	{ "cookie", IDENTITY_COOKIE },
	{ "param", IDENTITY_PARAM },
	{ "env", IDENTITY_ENV },
	{ "host", IDENTITY_HOST },
	{ "path", IDENTITY_PATH },
	{ "backend", IDENTITY_BACKEND },
	{ "route", IDENTITY_ROUTE },
	{ "all", IDENTITY_ALL },
	{ NULL, 0 },
};

const struct word attribute_words[] = {
	{ "ip", IDENTITY_IP },
	{ "user", IDENTITY_USER },
	{ "header", IDENTITY_HEADER },
	{ "cookie", IDENTITY_COOKIE },
	{ "param", IDENTITY_PARAM },
	{ "env", IDENTITY_ENV },
	{ NULL, 0 },
};

/* Of a parameter of the query, decoded; what it cannot hold could not be told from what follows. */
static bool
is_parameter(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (strchr("=&#", text.ptr[i]) != NULL)
			return false;
	}
	return text.len > 0;
}

static bool
is_variable(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		const char c = text.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
			c != '_')
			return false;
	}
	return text.len > 0;
}

typedef bool name_is_fn(struct slice name);

/* The sources that have a name, as far as `is` is set. */
static const struct {
	name_is_fn *is;
	const char *example;
} named[] = {
	[IDENTITY_HEADER] = { word_is_token, "header X-API-Key" },
	[IDENTITY_COOKIE] = { word_is_token, "cookie session" },
	[IDENTITY_PARAM] = { is_parameter, "param key" },
	[IDENTITY_ENV] = { is_variable, "env SSL_CLIENT_S_DN" },
	[IDENTITY_ALL] = { NULL, NULL },
};

/* These two have no HTTP_ in front (RFC 3875 section 4.1.18). */
static bool
has_own_variable(struct slice header)
{
	return slice_is_nocase(header, SLICE("Content-Type")) ||
		slice_is_nocase(header, SLICE("Content-Length"));
}

static const char *
variable_of(const struct value *value, struct slice header, struct err *err)
{
	const char *prefix = has_own_variable(header) ? "" : "HTTP_";
	const size_t len = strlen(prefix);
	char *out = value_alloc(value, len + header.len + 1, err);

	if (out == NULL)
		return NULL;
	memcpy(out, prefix, len + 1);
	for (size_t i = 0; i < header.len; i++) {
		const char c = header.ptr[i];

		out[len + i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
	}
	out[len + header.len] = '\0';
	return out;
}

/* The name as a client sends it: X-API-Key, also of HTTP_X_API_KEY and of X_API_Key. */
static void
check_header(const struct value *value, struct slice name)
{
	const struct slice prefix = SLICE("HTTP_");
	const bool is_variable_name =
		name.len > prefix.len && slice_is_nocase(slice_first(name, prefix.len), prefix);
	char right[NAME_MAX_LEN + 1];

	if (value->setting == NULL || slice_find(name, '_') == name.len)
		return;
	const struct slice plain = is_variable_name ? slice_skip(name, prefix.len) : name;

	for (size_t i = 0; i < plain.len; i++)
		right[i] = plain.ptr[i] == '_' ? '-' : plain.ptr[i];
	if (is_variable_name)
		value_complain(value, SEVERITY_WARNING, value->place,
			"%.*s is the variable of a header, and no client sends a header of that "
			"name; write header %.*s",
			SHOWN(name), (int)plain.len, right);
	else
		value_complain(value, SEVERITY_WARNING, value->place,
			"header %.*s: web servers drop a header whose name has an underscore, or "
			"take it for the one with -; write header %.*s",
			SHOWN(name), (int)plain.len, right);
}

/* No source has a "-" in its name, and many a header has. */
static bool
is_like_header(const struct word *words, struct slice word)
{
	return foreign_word(words, word) == NULL && word_is_token(word) && word.ptr[0] != '-' &&
		slice_find(word, '-') < word.len;
}

/* Says more of a word that is no source, where it can be told what was meant. */
static void
explain_source(const struct word *words, struct slice word, struct err *err)
{
	const bool is_identity = words == identity_words;
	struct ip_net net;
	struct err unused;

	if (word.len > 1 && word.ptr[word.len - 1] == ',')
		word.len--;
	if (ip_net_parse(word, &net, &unused) == 0)
		(void)(is_identity ? err_set(err,
					     "\"%.*s\" is an address; write ip, and name "
					     "addresses in an [override] of this limit",
					     SHOWN(word))
				   : err_set(err, "\"%.*s\" is an address; write ip %.*s",
					     SHOWN(word), SHOWN(word)));
	else if (is_like_header(words, word))
		(void)err_set(err,
			"\"%.*s\" says not where it is found; did you mean \"header %.*s\"?",
			SHOWN(word), SHOWN(word));
}

int
source_parse(const struct value *value, struct slice *rest, const struct word *words,
	struct config_identity_part *part, struct err *err)
{
	struct slice word, name = { NULL, 0 };

	*part = (struct config_identity_part){ 0 };
	(void)word_next(rest, &word);
	const int source = word_find(words, word, err);

	if (source < 0) {
		explain_source(words, word, err);
		return -1;
	}
	part->source = (enum identity_source)source;
	if (named[source].is == NULL)
		return 0;
	if (!word_next(rest, &name) || !named[source].is(name) || name.len > NAME_MAX_LEN)
		return err_set(err, "%.*s wants the name of one, such as %s", SHOWN(word),
			named[source].example);
	part->name = value_copy(value, name, err);
	if (part->name == NULL)
		return -1;
	if (part->source == IDENTITY_HEADER)
		check_header(value, name);
	if (part->source == IDENTITY_ENV)
		part->param = part->name;
	else if (part->source == IDENTITY_HEADER)
		part->param = variable_of(value, name, err);
	return part->source == IDENTITY_HEADER && part->param == NULL ? -1 : 0;
}

/* Applications of GIS read a query so, in which WIDTH and width are one. */
static int
set_nocase(const struct value *value, struct config_identity_part *part, struct err *err)
{
	const struct slice name = slice_of(part->name);
	char *param = value_alloc(value, name.len + 1, err);
	char *shown = value_alloc(value, name.len + sizeof " nocase", err);

	if (param == NULL || shown == NULL)
		return -1;
	for (size_t i = 0; i <= name.len; i++) {
		const char c = name.ptr[i];

		param[i] = c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
	}
	(void)snprintf(shown, name.len + sizeof " nocase", "%s nocase", part->name);
	part->param = param;
	part->name = shown;
	return 0;
}

int
source_parse_nocase(const struct value *value, struct slice *rest,
	struct config_identity_part *part, struct err *err)
{
	struct slice behind = *rest, word;

	if (!word_next(&behind, &word) || !slice_is(word, SLICE("nocase")))
		return 0;
	if (part->source != IDENTITY_PARAM)
		return err_set(err,
			part->source == IDENTITY_HEADER
				? "the name of a header fits in any case; leave out nocase"
				: "nocase goes with param alone");
	*rest = behind;
	return set_nocase(value, part, err);
}

bool
source_is(const struct config_identity_part *a, enum identity_source source, const char *name,
	const char *param)
{
	if (a->source != source || (a->name == NULL) != (name == NULL) ||
		(a->param == NULL) != (param == NULL))
		return false;
	/* The names of headers differ only as FastCGI sees them. */
	return name == NULL ||
		strcmp(param == NULL ? a->name : a->param, param == NULL ? name : param) == 0;
}

bool
for_is_same_source(const struct config_for *a, const struct config_for *b)
{
	const struct config_identity_part part = {
		.source = a->source, .name = a->name, .param = a->param
	};

	return source_is(&part, b->source, b->name, b->param);
}

const char *
source_text(enum identity_source source, const char *name, char out[SOURCE_TEXT_SIZE])
{
	const struct word *word = identity_words;

	while (word->number != (int)source)
		word++;
	(void)snprintf(out, SOURCE_TEXT_SIZE, "%s%s%s", word->text, name == NULL ? "" : " ",
		name == NULL ? "" : name);
	return out;
}
