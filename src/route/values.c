/*
 * Values of a request. Nothing is collected: each question walks over what the web server sent, so
 * that a client that sends thousands of cookies or parameters makes nothing grow.
 */
#include "values.h"

#include "weir/url_path.h"

void
values_init(struct values *values, const struct view *view, enum identity_source source,
	const char *name, const char *param, bool nocase)
{
	*values = (struct values){ .view = view,
		.source = source,
		.name = slice_of(param == NULL ? name : param),
		.nocase = nocase,
		.rest = source == IDENTITY_PARAM ? view->query : view->cookies,
		.entry = view->env };
}

static bool
next_variable(struct values *values, struct slice *value)
{
	const struct slice name = values->name;

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

/* As servers read what browsers send (RFC 6265 section 5.4), quotes and all. */
static bool
next_cookie(struct values *values, struct slice *value)
{
	struct slice pair;

	while (slice_split(&values->rest, ';', &pair)) {
		const size_t equals = slice_find(pair, '=');
		const struct slice name = slice_trim(slice_first(pair, equals));

		if (pair.len == 0 ||
			!(values->nocase ? slice_is_nocase(name, values->name)
					 : slice_is(name, values->name)))
			continue;
		*value = slice_trim(slice_skip(pair, equals < pair.len ? equals + 1 : equals));
		return true;
	}
	return false;
}

static bool
next_parameter(struct values *values, struct slice *value)
{
	if (!url_query_next(&values->rest, values->name, values->nocase, value))
		return false;
	if (slice_find(*value, '%') < value->len || slice_find(*value, '+') < value->len)
		*value = slice_make(
			values->view->scratch, url_query_decode(*value, values->view->scratch));
	return true;
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
		return next_cookie(values, value);
	case IDENTITY_PARAM:
		return next_parameter(values, value);
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

bool
value_counted(const struct view *view, enum identity_source source, const char *name,
	const char *param, struct slice *value)
{
	struct values values;
	struct slice next;

	*value = (struct slice){ NULL, 0 };
	values_init(&values, view, source, name, param, false);
	while (values_next(&values, &next)) {
		*value = next;
		/* A browser sends the cookie of the most exact path first. */
		if (source == IDENTITY_COOKIE)
			break;
	}
	return value->len > 0;
}
