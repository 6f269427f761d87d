/* What a route says besides what it takes: limits, backend, cost, headers, exempt clients. */
#include "list.h"
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
value_limit(const struct value *value, void *field, struct err *err)
{
	const struct config_limit *limit = limit_find(value->config, value->text);

	if (slice_find(value->text, ',') != value->text.len)
		return err_set(err,
			"an override is of one limit; write another [override] for a second one");
	if (limit == NULL)
		return err_no_limit(value->config, value->text, err);
	*(const struct config_limit **)field = limit;
	return 0;
}

struct limits {
	const struct config *config;
	struct config_route *route;
};

static bool
means_none(struct slice name)
{
	return slice_is_nocase(name, SLICE("none")) || slice_is_nocase(name, SLICE("no")) ||
		slice_is_nocase(name, SLICE("off")) || slice_is(name, SLICE("-"));
}

static int
take_limit(void *context, struct slice name, unsigned line, struct err *err)
{
	const struct limits *limits = context;
	const struct config_limit *limit = limit_find(limits->config, name);
	struct config_route *route = limits->route;

	(void)line;
	if (slice_find(name, ' ') != name.len || slice_find(name, '\t') != name.len)
		return err_set(
			err, "\"%.*s\" is no name; a list is separated by commas", SHOWN(name));
	if (limit == NULL && means_none(name))
		return err_set(err,
			"there is no [limit %.*s]; a route without limits has no such line, or "
			"nothing behind limit =",
			SHOWN(name));
	if (limit == NULL)
		return err_no_limit(limits->config, name, err);
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (route->limits[i] == limit)
			return err_set(err, "\"%s\" is named twice", limit->name);
	}
	route->limits[route->limit_count++] = limit;
	return 0;
}

int
value_limits(const struct value *value, void *field, struct err *err)
{
	struct config_route *route = field;
	struct limits limits = { value->config, route };
	unsigned max = 1;

	for (size_t i = 0; i < value->text.len; i++)
		max += value->text.ptr[i] == ',';
	route->limit_count = 0;
	route->limits = value_alloc(value, max * sizeof route->limits[0], err);
	if (route->limits == NULL)
		return -1;
	return list_line(value, value->text, take_limit, &limits, err);
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

/* `max N` behind the name of a parameter or header. */
static int
parse_cost_max(struct slice rest, uint64_t max, struct config_cost *cost, struct err *err)
{
	struct trailer trailers[] = {
		{ "max", .has_argument = true },
		{ NULL, .has_argument = false },
	};

	if (trailers_parse(rest, trailers, err) != 0)
		return -1;
	cost->max = max;
	if (trailers[0].is_given &&
		(parse_uint(trailers[0].argument, max, &cost->max) != 0 || cost->max == 0))
		return err_set(err, "max \"%.*s\" is no whole number from 1 to %llu",
			SHOWN(trailers[0].argument), (unsigned long long)max);
	return 0;
}

int
value_cost(const struct value *value, void *field, struct err *err)
{
	static const struct word sources[] = {
		{ "param", IDENTITY_PARAM },
		{ "header", IDENTITY_HEADER },
		{ NULL, 0 },
	};
	struct config_cost *cost = field;
	struct config_identity_part source;
	struct slice rest = value->text, word;

	*cost = (struct config_cost){ .source = COST_FIXED, .fixed = 1 };
	(void)word_next(&rest, &word);
	if (!slice_is(word, SLICE("param")) && !slice_is(word, SLICE("header"))) {
		if (value_uint(value, &cost->fixed, err) != 0)
			return -1;
		cost->max = cost->fixed;
		return 0;
	}
	rest = value->text;
	if (source_parse(value, &rest, sources, &source, err) != 0 ||
		source_parse_nocase(value, &rest, &source, err) != 0)
		return -1;
	cost->source = source.source == IDENTITY_PARAM ? COST_PARAM : COST_HEADER;
	cost->name = source.name;
	cost->param = source.param;
	return parse_cost_max(rest, value->option->max, cost, err);
}

/* Dialects that write a field of the same name, each in its own way. */
static const struct {
	unsigned bits;
	const char *names, *field;
} rivals[] = {
	{ HEADERS_X_RATELIMIT | HEADERS_X_RATELIMIT_EPOCH, "x-ratelimit and x-ratelimit-epoch",
		"X-RateLimit-Reset" },
	{ HEADERS_RATELIMIT | HEADERS_RATELIMIT_06 | HEADERS_RATELIMIT_07,
		"ratelimit, ratelimit-06 and ratelimit-07", "RateLimit-Policy" },
};

static int
check_rivals(unsigned bits, struct err *err)
{
	for (size_t i = 0; i < sizeof rivals / sizeof rivals[0]; i++) {
		const unsigned chosen = bits & rivals[i].bits;

		if ((chosen & (chosen - 1)) != 0)
			return err_set(err, "%s write the same %s, each in its own way; choose one",
				rivals[i].names, rivals[i].field);
	}
	return 0;
}

struct dialects {
	unsigned bits, count;
	bool has_none;
};

static int
take_dialect(void *context, struct slice item, unsigned line, struct err *err)
{
	enum { NONE = 0 };
	static const struct word words[] = {
		{ "none", NONE },
		{ "x-ratelimit", HEADERS_X_RATELIMIT },
		{ "x-ratelimit-epoch", HEADERS_X_RATELIMIT_EPOCH },
		{ "ratelimit", HEADERS_RATELIMIT },
		{ "ratelimit-06", HEADERS_RATELIMIT_06 },
		{ "ratelimit-07", HEADERS_RATELIMIT_07 },
		{ NULL, 0 },
	};
	struct dialects *dialects = context;
	const int number = word_find(words, item, err);

	(void)line;
	if (number < 0)
		return -1;
	dialects->count++;
	dialects->has_none = dialects->has_none || number == NONE;
	dialects->bits |= (unsigned)number;
	return 0;
}

int
value_headers(const struct value *value, void *field, struct err *err)
{
	struct dialects dialects = { 0, 0, false };

	if (list_line(value, value->text, take_dialect, &dialects, err) != 0)
		return -1;
	if (dialects.has_none && dialects.count > 1)
		return err_set(err, "none stands alone");
	*(unsigned *)field = dialects.bits;
	return check_rivals(dialects.bits, err);
}

int
value_jitter(const struct value *value, void *field, struct err *err)
{
	const struct slice text = value->text;
	const bool is_percent = text.len > 1 && text.ptr[text.len - 1] == '%';
	uint64_t n;

	if (parse_uint(slice_first(text, text.len - is_percent), 100, &n) != 0 ||
		(!is_percent && n > 0))
		return err_set(err, "\"%.*s\" is neither 0 nor a percentage from 0%% to 100%%",
			SHOWN(text));
	*(unsigned *)field = (unsigned)n;
	return 0;
}

int
value_exempt_ip(const struct value *value, void *field, struct err *err)
{
	struct config_route *route = field;

	return list_nets(value, value->text, &route->exempt_nets, &route->exempt_net_count, err);
}

int
value_trusted_proxies(const struct value *value, void *field, struct err *err)
{
	struct config *config = field;

	return list_nets(
		value, value->text, &config->trusted_proxies, &config->trusted_proxy_count, err);
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
