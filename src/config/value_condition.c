/* What a route wants of a request besides its path: the host, and what `when` says. */
#include "list.h"
#include "values.h"

/* Values are compared as they are: what a plain pattern or `*` would mean for a path has no sense
 * here. */
static int
parse_value_pattern(const struct value *value, struct slice text, struct config_pattern *pattern,
	struct err *err)
{
	const char first = text.ptr[0];

	pattern->kind = first == '~'                                ? PATTERN_REGEX
		: first == '=' || slice_find(text, '*') == text.len ? PATTERN_EXACT
								    : PATTERN_GLOB;
	if (first == '=' || first == '~')
		text = slice_trim(slice_skip(text, 1));
	if (text.len == 0)
		return err_set(err,
			first == '~' ? "no expression follows the ~" : "no value follows the =");
	pattern->text = value_copy(value, text, err);
	return pattern->text == NULL ? -1 : 0;
}

static int
parse_rest(const struct value *value, struct slice rest, struct config_when *when, struct err *err)
{
	struct config_pattern *pattern = &when->pattern;

	if (when->source == IDENTITY_IP) {
		if (rest.len == 0)
			return err_set(err,
				"ip wants networks, such as ip 192.0.2.0/24, 2001:db8::/32 or ip "
				"@/path");
		return list_nets(value, rest, &when->nets, &when->net_count, err);
	}
	*pattern = (struct config_pattern){ .place = value->place, .kind = PATTERN_EXACT };
	/* Alone it stands for the name. */
	pattern->nocase = slice_is(rest, SLICE("nocase")) || pattern_cut_nocase(&rest);
	if (rest.len == 0 || slice_is(rest, SLICE("nocase")))
		return 0;
	if (pattern_check_foreign(rest, err) != 0)
		return -1;
	return parse_value_pattern(value, rest, pattern, err);
}

/* What has a key of its own. */
static const struct {
	const char *word, *key;
} elsewhere[] = {
	{ "host", "host = example.org" },
	{ "path", "match = /path" },
	{ "method", "match = POST /path" },
	{ "script", "script = */name.php" },
};

int
value_when(const struct value *value, void *field, struct err *err)
{
	struct config_when *when = field;
	struct config_identity_part source;
	struct slice rest = value->text, word, behind = value->text;

	*when = (struct config_when){ .place = value->place };
	(void)word_next(&behind, &word);
	if (slice_is(word, SLICE("not"))) {
		when->is_not = true;
		rest = behind;
		if (!word_next(&behind, &word))
			return err_set(err, "nothing follows not; write not cookie session");
	}
	for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
		if (slice_is(word, slice_of(elsewhere[i].word)))
			return err_set(err, "%s has a key of its own: %s", elsewhere[i].word,
				elsewhere[i].key);
	}
	if (source_parse(value, &rest, attribute_words, &source, err) != 0)
		return -1;
	when->source = source.source;
	when->name = source.name;
	when->param = source.param;
	return parse_rest(value, rest, when, err);
}

/* ---- hosts ---- */

static bool
is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* A name as a Host field has it, in small letters. */
static int
check_host(struct slice name, struct slice shown, struct err *err)
{
	const bool is_address = name.len > 0 && name.ptr[0] == '[';
	struct ip ip;

	if (is_address && name.ptr[name.len - 1] == ']' && ip_parse(name, &ip) == 0)
		return 0;
	if (!is_address && slice_find(name, ':') != name.len)
		return err_set(err, "\"%.*s\" has a port, which is not compared; leave it out",
			SHOWN(shown));
	if (slice_find(name, '*') != name.len)
		return err_set(err,
			"\"%.*s\": a * stands only in front, as in *.example.org; without any host "
			"the route takes all of them",
			SHOWN(shown));
	bool is_name = name.len > 0 && name.len <= 253 && name.ptr[0] != '.';

	for (size_t i = 0; i < name.len; i++)
		is_name = is_name && is_host_char(name.ptr[i]) &&
			!(name.ptr[i] == '.' && i > 0 && name.ptr[i - 1] == '.');
	if (is_name)
		return 0;
	return err_set(err,
		"\"%.*s\" is no host; write example.org or *.example.org (other letters in their "
		"form xn--...)",
		SHOWN(shown));
}

static int
parse_host(const struct value *value, struct slice item, struct config_host *host, struct err *err)
{
	const struct slice below = SLICE("*.");
	struct slice name = item;

	host->is_below = slice_has_prefix(name, below);
	if (host->is_below)
		name = slice_skip(name, below.len);
	if (name.len > 1 && name.ptr[name.len - 1] == '.')
		name.len--;
	char *copy = value_copy(value, name, err);

	if (copy == NULL)
		return -1;
	for (size_t i = 0; i < name.len; i++)
		copy[i] = copy[i] >= 'A' && copy[i] <= 'Z' ? (char)(copy[i] + 32) : copy[i];
	host->name = copy;
	return check_host(slice_of(copy), item, err);
}

struct hosts {
	const struct value *value;
	struct config_route *route;
};

static int
take_host(void *context, struct slice item, unsigned line, struct err *err)
{
	const struct hosts *taken = context;
	struct config_route *route = taken->route;
	struct config_host *hosts = value_grow(
		taken->value, route->hosts, route->host_count, sizeof route->hosts[0], err);

	(void)line;
	if (hosts == NULL)
		return -1;
	route->hosts = hosts;
	if (parse_host(taken->value, item, &hosts[route->host_count], err) != 0)
		return -1;
	route->host_count++;
	return 0;
}

int
value_host(const struct value *value, void *field, struct err *err)
{
	struct hosts hosts = { value, field };

	return list_line(value, value->text, take_host, &hosts, err);
}
