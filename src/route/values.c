/*
 * Values of a request. Nothing is collected: each question walks over what the web server sent, so
 * that a client that sends thousands of cookies or parameters makes nothing grow.
 *
 * Applications differ in how they read a query and cookies, and a client that knows how could write
 * a name or a value in a way that its application understands and weir does not. So all ways of the
 * usual ones count: of PHP, of Perl's CGI.pm and CGI::Cookie, of Python's http.cookies, of Ruby's
 * Rack (url_path.h says which those of names are). A condition holds if it does by any reading.
 * Where one value is counted and the readings differ, none is chosen: readings_of tells them all.
 */
#include "values.h"

#include "weir/url_path.h"

void
values_init(struct values *values, const struct view *view, enum identity_source source,
	const char *name, const char *param, bool nocase)
{
	*values = (struct values){ .view = view,
		.source = source,
		.pairs = { .rest = source == IDENTITY_PARAM ? view->query : view->cookies,
			.name = slice_of(param == NULL ? name : param),
			.nocase = nocase || (source == IDENTITY_PARAM && param != NULL) },
		.entry = view->env };
}

static bool
next_variable(struct values *values, struct slice *value)
{
	const struct slice name = values->pairs.name;

	while (*values->entry != NULL) {
		const char *entry = *values->entry++;

		if (strncmp(entry, name.ptr, name.len) != 0 || entry[name.len] != '=')
			continue;
		*value = slice_of(entry + name.len + 1);
		if (value->len > 0)
			return true;
	}
	return false;
}

static struct slice
decoded_parameter(const struct view *view, struct slice raw)
{
	if (slice_find(raw, '%') == raw.len && slice_find(raw, '+') == raw.len)
		return raw;
	return slice_make(view->scratch, url_query_decode(raw, view->scratch));
}

static bool
next_pair(enum identity_source source, struct pairs *pairs, struct slice *value)
{
	if (source == IDENTITY_COOKIE)
		return cookie_next(pairs, value);
	return url_query_next(&pairs->rest,
		pairs->is_cut ? URL_QUERY_SEMICOLONS : URL_QUERY_AMPERSANDS, pairs->name,
		pairs->nocase, value);
}

/* All of them, and then all once more if some applications would cut them elsewhere. */
static bool
next_pair_either_way(struct values *values, struct slice *value)
{
	const bool is_cookie = values->source == IDENTITY_COOKIE;
	const struct slice all = is_cookie ? values->view->cookies : values->view->query;

	if (next_pair(values->source, &values->pairs, value))
		return true;
	if (values->pairs.is_cut || (!is_cookie && slice_find(all, ';') == all.len))
		return false;
	values->pairs.is_cut = true;
	values->pairs.rest = all;
	return next_pair(values->source, &values->pairs, value);
}

/* Each as it is, and decoded either way if that may be something else. */
static bool
next_cookie_value(struct values *values, struct slice *value)
{
	switch (values->form) {
	case FORM_RAW:
		if (!next_pair_either_way(values, value))
			return false;
		values->raw = *value;
		if (cookie_is_coded(*value))
			values->form = FORM_DECODED;
		return true;
	case FORM_DECODED:
		*value = cookie_decode(values->raw, COOKIE_PLUS_IS_BLANK, values->view->scratch);
		values->form = FORM_WITH_PLUS;
		return true;
	case FORM_WITH_PLUS:
		*value = cookie_decode(values->raw, COOKIE_PLUS_STAYS, values->view->scratch);
		values->form = FORM_RAW;
		return true;
	}
	return false;
}

bool
values_next(struct values *values, struct slice *value)
{
	const bool is_first = !values->user_is_told;

	switch (values->source) {
	case IDENTITY_USER:
		values->user_is_told = true;
		*value = values->view->user;
		return is_first && value->len > 0;
	case IDENTITY_HEADER:
	case IDENTITY_ENV:
		return next_variable(values, value);
	case IDENTITY_COOKIE:
		return next_cookie_value(values, value);
	case IDENTITY_PARAM:
		if (!next_pair_either_way(values, value))
			return false;
		*value = decoded_parameter(values->view, *value);
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

/* ---- the one that is counted ---- */

static void
add_reading(struct readings *readings, struct slice value)
{
	for (unsigned i = 0; i < readings->count; i++) {
		if (slice_is(readings->list[i], value))
			return;
	}
	if (readings->count < READINGS_MAX)
		readings->count++;
	readings->list[readings->count - 1] = value;
}

/* A browser sends the cookie of the most exact path first, and others of the same name behind it.
 */
static void
add_pairs(struct readings *readings, struct pairs *pairs)
{
	const bool is_cookie = readings->source == IDENTITY_COOKIE;
	bool has_exact = false;
	struct slice value;

	pairs->is_cut = true;
	while (next_pair(readings->source, pairs, &value)) {
		if (value.len == 0 || (is_cookie && pairs->is_exact && has_exact))
			continue;
		has_exact |= is_cookie && pairs->is_exact;
		add_reading(readings, value);
	}
}

void
readings_of(struct readings *readings, const struct view *view, enum identity_source source,
	const char *name, const char *param)
{
	struct values values;
	struct slice value;

	*readings = (struct readings){ .view = view, .source = source };
	values_init(&values, view, source, name, param, false);
	if (source == IDENTITY_PARAM || source == IDENTITY_COOKIE) {
		add_pairs(readings, &values.pairs);
		return;
	}
	while (values_next(&values, &value)) {
		readings->list[0] = value;
		readings->count = 1;
	}
}

struct slice
reading_decoded(const struct readings *readings, unsigned i)
{
	const struct slice raw = readings->list[i];

	if (readings->source == IDENTITY_COOKIE)
		return cookie_normal(raw, readings->view->scratch);
	return readings->source == IDENTITY_PARAM ? decoded_parameter(readings->view, raw) : raw;
}
