/* What a route says besides its patterns: limits, backend, cost, headers. */
#include "nearest.h"
#include "values.h"

static struct config_limit *
limit_find(const struct config *config, struct slice name)
{
	for (unsigned i = 0; i < config->limit_count; i++) {
		if (slice_is(name, slice_of(config->limits[i]->name)))
			return config->limits[i];
	}
	return NULL;
}

static int
err_no_limit(const struct config *config, struct slice name, struct err *err)
{
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE];

	nearest_init(&nearest, name);
	for (unsigned i = 0; i < config->limit_count; i++)
		nearest_offer(&nearest, config->limits[i]->name);
	return err_set(
		err, "there is no [limit %.*s]%s", SHOWN(name), nearest_hint(&nearest, hint));
}

int
value_limits(const struct value *value, void *field, struct err *err)
{
	struct config_route *route = field;
	struct slice rest = value->text, name;
	unsigned max = 1;

	for (size_t i = 0; i < rest.len; i++)
		max += rest.ptr[i] == ',';
	route->limit_count = 0;
	route->limits = value_alloc(value, max * sizeof route->limits[0], err);
	if (route->limits == NULL)
		return -1;
	while (slice_split(&rest, ',', &name)) {
		const struct config_limit *limit = limit_find(value->config, name);

		if (name.len == 0)
			return err_set(err, "an item of the list is empty");
		if (slice_find(name, ' ') != name.len || slice_find(name, '\t') != name.len)
			return err_set(err, "\"%.*s\" is no name; a list is separated by commas",
				SHOWN(name));
		if (limit == NULL)
			return err_no_limit(value->config, name, err);
		for (unsigned i = 0; i < route->limit_count; i++) {
			if (route->limits[i] == limit)
				return err_set(err, "\"%s\" is named twice", limit->name);
		}
		route->limits[route->limit_count++] = limit;
	}
	return 0;
}

int
value_backend(const struct value *value, void *field, struct err *err)
{
	const struct config *config = value->config;
	struct nearest nearest;
	char hint[NEAREST_HINT_SIZE];

	nearest_init(&nearest, value->text);
	for (unsigned i = 0; i < config->backend_count; i++) {
		if (slice_is(value->text, slice_of(config->backends[i]->name))) {
			*(const struct config_backend **)field = config->backends[i];
			return 0;
		}
		nearest_offer(&nearest, config->backends[i]->name);
	}
	return err_set(err, "there is no [backend %.*s]%s", SHOWN(value->text),
		nearest_hint(&nearest, hint));
}

int
value_cost(const struct value *value, void *field, struct err *err)
{
	struct slice rest = value->text, word;

	(void)word_next(&rest, &word);
	if (slice_is(word, SLICE("param")) || slice_is(word, SLICE("header")))
		return err_set(err,
			"a cost by %.*s is not supported by this version; write a number",
			SHOWN(word));
	return value_uint(value, field, err);
}

int
value_headers(const struct value *value, void *field, struct err *err)
{
	enum { NONE = 0, BOTH = HEADERS_X_RATELIMIT | HEADERS_X_RATELIMIT_EPOCH };
	static const struct word words[] = {
		{ "none", NONE },
		{ "x-ratelimit", HEADERS_X_RATELIMIT },
		{ "x-ratelimit-epoch", HEADERS_X_RATELIMIT_EPOCH },
		{ "ratelimit", WORD_LATER },
		{ "ratelimit-06", WORD_LATER },
		{ "ratelimit-07", WORD_LATER },
		{ NULL, 0 },
	};
	struct slice rest = value->text, part;
	unsigned bits = 0, count = 0;
	bool has_none = false;

	for (; slice_split(&rest, ',', &part); count++) {
		const int number = word_find(words, part, err);

		if (number == WORD_LATER)
			return word_later(err, part);
		if (number < 0)
			return -1;
		has_none = has_none || number == NONE;
		bits |= (unsigned)number;
	}
	if (has_none && count > 1)
		return err_set(err, "none stands alone");
	if (bits == BOTH)
		return err_set(err,
			"x-ratelimit and x-ratelimit-epoch write the same "
			"X-RateLimit-Reset, in different units; choose one");
	*(unsigned *)field = bits;
	return 0;
}

/* What weir writes itself into an answer to a rejected request. */
static const char *const own_headers[] = { "Status", "Retry-After", "Content-Type",
	"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive" };

int
value_reject_header(const struct value *value, void *field, struct err *err)
{
	const size_t colon = slice_find(value->text, ':');
	const struct slice name = slice_first(value->text, colon);
	const struct slice text =
		slice_trim(slice_skip(value->text, colon < value->text.len ? colon + 1 : colon));

	if (colon == value->text.len || !word_is_token(name))
		return err_set(err,
			"\"%.*s\" is no header; write NAME: VALUE, such as "
			"Access-Control-Allow-Origin: *",
			SHOWN(value->text));
	for (size_t i = 0; i < sizeof own_headers / sizeof own_headers[0]; i++) {
		if (slice_is_nocase(name, slice_of(own_headers[i])))
			return err_set(err, "%s is written by weir itself", own_headers[i]);
	}
	if (text.len == 0)
		return err_set(err, "the header \"%.*s\" has no value", SHOWN(name));
	/* The reader has let no control character but the tab through. */
	char *line = value_alloc(value, name.len + 2 + text.len + 1, err);

	if (line == NULL)
		return -1;
	memcpy(line, name.ptr, name.len);
	memcpy(line + name.len, ": ", 2);
	memcpy(line + name.len + 2, text.ptr, text.len);
	line[name.len + 2 + text.len] = '\0';
	*(const char **)field = line;
	return 0;
}
