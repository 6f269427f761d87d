/*
 * What a request counts for. The number is the client's word: it never makes a request cheaper than
 * one, and what is no number is taken for the dearest that there is.
 */
#include "values.h"
#include "weir/route.h"

/* Behind a semicolon stands another parameter to some applications, and no number to the others. */
static uint64_t
cost_of_text(struct slice text, uint64_t max)
{
	uint64_t n;

	text = slice_first(text, slice_find(text, ';'));
	return parse_uint(text, max, &n) == 0 ? n : max;
}

/* The application may read any of those that are repeated. */
static uint64_t
greatest(const struct config_cost *cost, enum identity_source source, const struct view *view)
{
	struct values values;
	struct slice value;
	uint64_t found = 1;

	values_init(&values, view, source, cost->name, cost->param, false);
	while (values_next(&values, &value)) {
		const uint64_t one = cost_of_text(value, cost->max);

		found = one > found ? one : found;
	}
	return found;
}

uint64_t
cost_of(const struct config_cost *cost, const struct view *view)
{
	switch (cost->source) {
	case COST_FIXED:
		break;
	case COST_PARAM:
		return greatest(cost, IDENTITY_PARAM, view);
	case COST_HEADER:
		return greatest(cost, IDENTITY_HEADER, view);
	}
	return cost->fixed;
}
