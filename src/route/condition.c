/*
 * Conditions. A value that is repeated fits if any of them does, since a client that could hide one
 * behind another would choose its route. All of them together may cost what one may.
 */
#include "condition.h"

#include "values.h"

int
condition_init(struct condition *condition, const struct config_when *config, struct err *err)
{
	*condition = (struct condition){ .config = config };
	if (config->source == IDENTITY_IP) {
		if (net_map_of(&condition->nets, config->nets, config->net_count) != 0)
			return err_set(err, "no memory for the networks");
		return 0;
	}
	return config->pattern.text == NULL
		? 0
		: pattern_init(&condition->pattern, &config->pattern, err);
}

void
condition_release(struct condition *condition)
{
	pattern_release(&condition->pattern);
	net_map_release(&condition->nets);
}

static enum pattern_result
check_values(const struct condition *condition, const struct view *view)
{
	const struct config_when *config = condition->config;
	unsigned steps = PATTERN_STEPS_MAX;
	struct values values;
	struct slice value;

	values_init(
		&values, view, config->source, config->name, config->param, config->pattern.nocase);
	while (values_next(&values, &value)) {
		if (config->pattern.text == NULL)
			return PATTERN_FITS;
		const enum pattern_result result =
			pattern_match_value(&condition->pattern, value, &steps);

		if (result != PATTERN_DIFFERS)
			return result;
	}
	return PATTERN_DIFFERS;
}

enum pattern_result
condition_check(const struct condition *condition, const struct view *view)
{
	enum pattern_result result;

	if (condition->config->source != IDENTITY_IP)
		result = check_values(condition, view);
	else
		result = view->has_ip && net_map_find(&condition->nets, view->ip) != NET_MAP_NONE
			? PATTERN_FITS
			: PATTERN_DIFFERS;
	if (result == PATTERN_LIMIT || !condition->config->is_not)
		return result;
	return result == PATTERN_FITS ? PATTERN_DIFFERS : PATTERN_FITS;
}
