/*
 * A route in words: what it takes, which limits it meets and where it goes. A limit that was
 * forgotten, or a route that takes more than it was meant to, shows here and nowhere else.
 */
#include "nets.h"
#include "values.h"
#include "words.h"

/* What is beyond is counted. */
enum { SHOWN_ITEMS = 6 };

/* In front of the nth of a list; false if it is not shown. */
static bool
begin_item(unsigned nth, unsigned count, const char *separator, FILE *out)
{
	if (nth == SHOWN_ITEMS)
		(void)fprintf(out, " and %u more", count - nth);
	if (nth >= SHOWN_ITEMS)
		return false;
	if (nth > 0)
		(void)fputs(separator, out);
	return true;
}

static void
print_text(const struct config_pattern *pattern, FILE *out)
{
	const char *kind = pattern->kind == PATTERN_EXACT ? "= "
		: pattern->kind == PATTERN_REGEX          ? "~ "
							  : "";

	(void)fprintf(out, "%s%s%s%s%s", pattern->methods == NULL ? "" : pattern->methods,
		pattern->methods == NULL ? "" : " ", kind, pattern->text,
		pattern->nocase ? " nocase" : "");
}

static void
print_patterns(const struct config_route *route, FILE *out)
{
	const unsigned count = route->match_count + route->script_count;

	for (unsigned i = 0; i < count; i++) {
		const bool is_script = i >= route->match_count;

		if (!begin_item(i, count, ", ", out))
			return;
		(void)fputs(is_script ? "script " : "", out);
		print_text(is_script ? &route->scripts[i - route->match_count] : &route->matches[i],
			out);
	}
}

static void
print_when(const struct config_when *when, FILE *out)
{
	char text[SOURCE_TEXT_SIZE], net[NET_TEXT_SIZE];

	(void)fprintf(out, "%s%s", when->is_not ? "not " : "",
		source_text(when->source, when->name, text));
	for (unsigned i = 0; i < when->net_count; i++) {
		if (!begin_item(i, when->net_count, ", ", out))
			return;
		(void)fprintf(out, "%s%s", i == 0 ? " " : "", net_text(&when->nets[i], net));
	}
	if (when->source == IDENTITY_IP || when->pattern.text == NULL)
		return;
	(void)fputc(' ', out);
	print_text(&when->pattern, out);
}

static void
print_conditions(const struct config_route *route, FILE *out)
{
	for (unsigned i = 0; i < route->host_count; i++) {
		if (!begin_item(i, route->host_count, ", ", out))
			break;
		(void)fprintf(out, "%s%s%s", i == 0 ? " of host " : "",
			route->hosts[i].is_below ? "*." : "", route->hosts[i].name);
	}
	for (unsigned i = 0; i < route->when_count; i++) {
		(void)fputs(i == 0 ? " when " : "", out);
		if (!begin_item(i, route->when_count, " and ", out))
			break;
		print_when(&route->whens[i], out);
	}
}

static void
print_limits(const struct config_route *route, FILE *out)
{
	if (route->limit_count == 0)
		(void)fputs("no limit", out);
	for (unsigned i = 0; i < route->limit_count; i++)
		(void)fprintf(out, "%s%s",
			i > 0                             ? ", "
				: route->limit_count == 1 ? "limit "
							  : "limits ",
			route->limits[i]->name);
}

static void
print_cost(const struct config_cost *cost, FILE *out)
{
	if (cost->source != COST_FIXED) {
		(void)fprintf(out, "; costs what %s %s says",
			cost->source == COST_PARAM ? "param" : "header", cost->name);
		if (cost->max < COST_MAX)
			(void)fprintf(out, ", %llu at the most", (unsigned long long)cost->max);
		else
			(void)fputs(", and never passes if that is no number", out);
	} else if (cost->fixed != 1)
		(void)fprintf(out, "; costs %llu", (unsigned long long)cost->fixed);
}

/* Who is counted chooses the slot of a Redis Cluster, and each shard is somebody else there. */
static bool
share_a_slot(const struct config_limit *a, const struct config_limit *b)
{
	if (a->identity_count != b->identity_count || a->policies[0].shards > 1 ||
		b->policies[0].shards > 1)
		return false;
	for (unsigned i = 0; i < a->identity_count; i++) {
		if (!identity_is(&a->identities[i], &b->identities[i]))
			return false;
	}
	return true;
}

static void
print_slots(const struct config *config, const struct config_route *route, FILE *out)
{
	if (config->redis_cluster_count == 0)
		return;
	for (unsigned i = 1; i < route->limit_count; i++) {
		const struct config_limit *first = route->limits[0], *other = route->limits[i];

		if (share_a_slot(first, other))
			continue;
		(void)fprintf(out, "; decided slot by slot, since %s and %s %s", first->name,
			other->name,
			first->policies[0].shards > 1 || other->policies[0].shards > 1
				? "have shards"
				: "count by different identities");
		return;
	}
}

static const char *
store_down_text(enum store_down store_down)
{
	switch (store_down) {
	case STORE_DOWN_LOCAL:
		return "this host alone";
	case STORE_DOWN_ADMIT:
		return "passes";
	case STORE_DOWN_REJECT:
		return "answered 503";
	}
	return "";
}

void
config_route_words(const struct config *config, const struct config_route *route, FILE *out)
{
	(void)fprintf(out, "route %s: ", route->name);
	print_patterns(route, out);
	print_conditions(route, out);
	(void)fputs(" -> ", out);
	print_limits(route, out);
	(void)fprintf(out, ", backend %s",
		route->backend == NULL ? "of the listener" : route->backend->name);
	if (route->limit_count > 0) {
		print_cost(&route->cost, out);
		if (route->exempt_net_count > 0)
			(void)fprintf(out, "; %u network%s not counted", route->exempt_net_count,
				route->exempt_net_count == 1 ? "" : "s");
		print_slots(config, route, out);
		if (config->has_redis)
			(void)fprintf(out, "; Redis away: %s", store_down_text(route->store_down));
	}
	(void)fputc('\n', out);
}
