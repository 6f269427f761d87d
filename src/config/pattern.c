/*
 * Patterns against patterns, and conditions against conditions. The inner one's text is held
 * against the outer one as if it were a path, its `*` being a byte like any other: only a `*` of
 * the outer one can take it, and that takes whatever it may stand for. Since a pattern also fits
 * what is below the path, it is enough that the outer one fits the inner text or one of the paths
 * above it.
 */
#include "pattern.h"

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* `*` in the pattern stands for any bytes, also for none. On a mismatch the last `*` takes one byte
 * more. */
static bool
glob_fits(struct slice pattern, struct slice text, bool nocase)
{
	size_t p = 0, t = 0, star = pattern.len, taken = 0;

	while (t < text.len) {
		if (p < pattern.len && pattern.ptr[p] == '*') {
			star = p++;
			taken = t;
		} else if (p < pattern.len &&
			(pattern.ptr[p] == text.ptr[t] ||
				(nocase && lower(pattern.ptr[p]) == lower(text.ptr[t])))) {
			p++;
			t++;
		} else if (star < pattern.len) {
			p = star + 1;
			t = ++taken;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.ptr[p] == '*')
		p++;
	return p == pattern.len;
}

/* Fits the text itself or a path above it. A pattern that ends in a slash fits what begins with
 * it. */
static bool
fits_at_or_above(const struct config_pattern *pattern, struct slice text)
{
	const struct slice own = slice_of(pattern->text);
	const bool is_directory = own.len > 0 && own.ptr[own.len - 1] == '/';

	if (glob_fits(own, text, pattern->nocase))
		return true;
	for (size_t i = 0; i < text.len; i++) {
		if (text.ptr[i] == '/' &&
			glob_fits(
				own, slice_first(text, is_directory ? i + 1 : i), pattern->nocase))
			return true;
	}
	return false;
}

static bool
has_method(const char *methods, struct slice wanted)
{
	/* GET takes HEAD with it. */
	const bool is_head = slice_is(wanted, SLICE("HEAD"));
	struct slice rest = slice_of(methods), method;

	while (slice_split(&rest, '|', &method)) {
		if (slice_is(method, wanted) || (is_head && slice_is(method, SLICE("GET"))))
			return true;
	}
	return false;
}

static bool
methods_cover(const char *outer, const char *inner)
{
	struct slice rest, method;

	if (outer == NULL)
		return true;
	if (inner == NULL)
		return false;
	rest = slice_of(inner);
	while (slice_split(&rest, '|', &method)) {
		if (!has_method(outer, method))
			return false;
	}
	return true;
}

bool
config_pattern_is_any_path(const struct config_pattern *pattern)
{
	return pattern->kind == PATTERN_GLOB && strspn(pattern->text, "*") == strlen(pattern->text);
}

static bool
has_letter(const char *text)
{
	return strpbrk(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") != NULL;
}

bool
config_pattern_covers(const struct config_pattern *outer, const struct config_pattern *inner)
{
	const bool is_same = outer->kind == inner->kind && strcmp(outer->text, inner->text) == 0;

	if (!methods_cover(outer->methods, inner->methods))
		return false;
	if (config_pattern_is_any_path(outer))
		return true;
	if (inner->nocase && !outer->nocase && has_letter(outer->text))
		return false;
	switch (outer->kind) {
	case PATTERN_REGEX:
		return is_same;
	case PATTERN_EXACT:
		return inner->kind == PATTERN_EXACT && strlen(outer->text) == strlen(inner->text) &&
			glob_fits(slice_of(outer->text), slice_of(inner->text), outer->nocase);
	case PATTERN_BELOW:
	case PATTERN_GLOB:
		return inner->kind != PATTERN_REGEX &&
			fits_at_or_above(outer, slice_of(inner->text));
	}
	return false;
}

/* ---- conditions ---- */

static bool
is_same_text(const char *a, const char *b)
{
	return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static bool
is_same_when(const struct config_when *a, const struct config_when *b)
{
	if (a->is_not != b->is_not || a->source != b->source || !is_same_text(a->name, b->name) ||
		a->net_count != b->net_count)
		return false;
	for (unsigned i = 0; i < a->net_count; i++) {
		if (a->nets[i].bits != b->nets[i].bits || !ip_is(a->nets[i].ip, b->nets[i].ip))
			return false;
	}
	return a->pattern.kind == b->pattern.kind && a->pattern.nocase == b->pattern.nocase &&
		is_same_text(a->pattern.text, b->pattern.text);
}

static bool
has_when(const struct config_route *route, const struct config_when *when)
{
	for (unsigned i = 0; i < route->when_count; i++) {
		if (is_same_when(&route->whens[i], when))
			return true;
	}
	return false;
}

static bool
host_covers(const struct config_host *outer, const struct config_host *inner)
{
	const size_t len = strlen(outer->name), inner_len = strlen(inner->name);

	if (strcmp(outer->name, inner->name) == 0)
		return outer->is_below == inner->is_below;
	return outer->is_below && inner_len > len && inner->name[inner_len - len - 1] == '.' &&
		strcmp(inner->name + inner_len - len, outer->name) == 0;
}

static bool
has_host(const struct config_route *route, const struct config_host *host)
{
	for (unsigned i = 0; i < route->host_count; i++) {
		if (host_covers(&route->hosts[i], host))
			return true;
	}
	return route->host_count == 0;
}

bool
config_conditions_cover(const struct config_route *outer, const struct config_route *inner)
{
	if (outer->host_count > 0 && inner->host_count == 0)
		return false;
	for (unsigned i = 0; i < outer->when_count; i++) {
		if (!has_when(inner, &outer->whens[i]))
			return false;
	}
	for (unsigned i = 0; i < inner->host_count; i++) {
		if (!has_host(outer, &inner->hosts[i]))
			return false;
	}
	return true;
}
