/*
 * From words to numbers: the objects are made, limits and backends before the routes that name
 * them. Each row takes its value from the section, else from the defaults of its kind, else
 * from its own default text, all three by the same parser.
 *
 * What is refused is left out, and its section is marked as broken, so that the checks of the whole
 * do not complain of what is missing only for that reason.
 */
#include "build.h"
#include "sections.h"

static const char too_large[] = "the configuration would take more than 64 MiB of memory";

static int
parse(const struct build *build, const struct option *option, const char *text, struct place place,
	void *field, struct err *err)
{
	const struct value value = {
		.option = option, .text = slice_of(text), .place = place, .config = build->config
	};

	return option->parse(&value, field, err);
}

static int
parse_setting(struct build *build, struct setting *setting, void *field)
{
	struct err err;

	if (parse(build, setting->option, setting->value, setting->place, field, &err) == 0)
		return 0;
	complain_setting(build, setting, "%s", err.text);
	setting->option = NULL;
	return -1;
}

static struct setting *
next_of(struct setting *setting, const struct option *option)
{
	while (setting != NULL && setting->option != option)
		setting = setting->next;
	return setting;
}

/* The section whose settings of this row count. */
static struct section *
source_of(const struct build *build, struct section *section, const struct option *option)
{
	struct section *unnamed = build->unnamed[option->section];

	if (section != NULL && next_of(section->settings, option) != NULL)
		return section;
	return unnamed != NULL && next_of(unnamed->settings, option) != NULL ? unnamed : NULL;
}

static int
fill_default(struct build *build, const struct option *option, void *field)
{
	const struct place nowhere = { build->config->file, 0 };
	struct err err;

	if (option->text.default_text[0] == '\0' ||
		parse(build, option, option->text.default_text, nowhere, field, &err) == 0)
		return 0;
	complain_whole(build, "%s", err.text);
	return -1;
}

static int
fill_one(struct build *build, const struct option *option, struct setting *setting, void *object)
{
	const char *default_text = option->text.default_text;
	void *field = (char *)object + option->offset;

	if (setting == NULL)
		return fill_default(build, option, field);
	if (setting->value[0] != '\0')
		return parse_setting(build, setting, field);
	if (default_text[0] == '\0')
		return 0;
	complain_setting(build, setting, "has no value; the default, which needs no line, is %s",
		default_text);
	setting->option = NULL;
	return -1;
}

/* A list of which every line is empty is an empty list, so that a section can do without what the
 * defaults of its kind have. */
static int
fill_list(struct build *build, const struct option *option, struct setting *first, void *object)
{
	unsigned *count = (unsigned *)(void *)((char *)object + option->count_offset);
	size_t max = 0;
	int result = 0;

	for (struct setting *s = first; s != NULL; s = next_of(s->next, option))
		max += s->value[0] != '\0';
	if (max == 0)
		return 0;
	if (max > option->max) {
		complain_setting(build, first, "is given %zu times; %llu is the most", max,
			(unsigned long long)option->max);
		return -1;
	}
	char *items = arena_alloc(&build->config->arena, max * option->item_size);

	if (items == NULL) {
		complain_setting(build, first, "%s", too_large);
		return -1;
	}
	memset(items, 0, max * option->item_size);
	memcpy((char *)object + option->offset, &items, sizeof items);
	for (struct setting *s = first, *next; s != NULL; s = next) {
		next = next_of(s->next, option);
		if (s->value[0] == '\0')
			continue;
		if (parse_setting(build, s, items + *count * option->item_size) == 0)
			++*count;
		else
			result = -1;
	}
	return result;
}

static void
fill(struct build *build, enum section_kind kind, struct section *section, void *object)
{
	for (const struct option *option = option_rows; option->text.key != NULL; option++) {
		if (option->section != kind)
			continue;
		struct section *source = source_of(build, section, option);
		struct setting *first = source == NULL ? NULL : next_of(source->settings, option);
		const int result = option->text.repeatable ? fill_list(build, option, first, object)
							   : fill_one(build, option, first, object);

		if (result != 0 && source != NULL)
			source->is_broken = true;
		if (result != 0 && section != NULL)
			section->is_broken = true;
	}
}

/* ---- objects ---- */

static void *
allocate(struct build *build, size_t size)
{
	void *piece = arena_alloc(&build->config->arena, size);

	if (piece == NULL)
		complain_whole(build, "%s", too_large);
	else
		memset(piece, 0, size);
	return piece;
}

static void *
make(struct build *build, struct section *section)
{
	const enum section_kind kind = (enum section_kind)section->rule;

	section->object = allocate(build, section_rules[kind].object_size);
	if (section->object != NULL)
		fill(build, kind, section, section->object);
	return section->object;
}

/* Defaults and doubles make no object, but what is wrong with them is to be said. The defaults come
 * before those that inherit them, so that it is said once and there. Returns how many objects there
 * will be. */
static size_t
make_others(struct build *build, enum section_kind kind)
{
	size_t count = 0;

	for (struct section *s = build->list.first; s != NULL; s = s->next) {
		if (s->rule == (int)kind && (s->is_double || s == build->unnamed[kind]))
			(void)make(build, s);
	}
	for (const struct section *s = section_first(build, kind); s != NULL; s = section_next(s))
		count++;
	return count;
}

static int
make_limits(struct build *build)
{
	struct config *config = build->config;
	const size_t count = make_others(build, SECTION_LIMIT);

	config->limits = allocate(build, count * sizeof config->limits[0]);
	if (config->limits == NULL)
		return -1;
	for (struct section *s = section_first(build, SECTION_LIMIT); s != NULL;
		s = section_next(s)) {
		struct config_limit *limit = make(build, s);

		if (limit == NULL)
			return -1;
		limit->place = s->place;
		limit->name = s->name;
		config->limits[config->limit_count++] = limit;
	}
	return 0;
}

static int
make_backends(struct build *build)
{
	struct config *config = build->config;
	const size_t count = make_others(build, SECTION_BACKEND);

	config->backends = allocate(build, count * sizeof config->backends[0]);
	if (config->backends == NULL)
		return -1;
	for (struct section *s = section_first(build, SECTION_BACKEND); s != NULL;
		s = section_next(s)) {
		struct config_backend *backend = make(build, s);

		if (backend == NULL)
			return -1;
		backend->place = s->place;
		backend->name = s->name;
		config->backends[config->backend_count++] = backend;
	}
	return 0;
}

static int
make_routes(struct build *build)
{
	struct config *config = build->config;
	const size_t count = make_others(build, SECTION_ROUTE);

	config->routes = allocate(build, count * sizeof config->routes[0]);
	if (config->routes == NULL)
		return -1;
	for (struct section *s = section_first(build, SECTION_ROUTE); s != NULL;
		s = section_next(s)) {
		struct config_route *route = make(build, s);

		if (route == NULL)
			return -1;
		route->place = s->place;
		route->name = s->name;
		if (route->backend == NULL && config->backend_count == 1)
			route->backend = config->backends[0];
		config->routes[config->route_count++] = route;
	}
	return 0;
}

int
config_build(struct build *build)
{
	struct config *config = build->config;
	const struct section *redis;

	sections_find_rules(build);
	fill(build, SECTION_WEIR, build->unnamed[SECTION_WEIR], config);
	fill(build, SECTION_MEMORY, build->unnamed[SECTION_MEMORY], config);
	fill(build, SECTION_REDIS, build->unnamed[SECTION_REDIS], config);
	redis = build->unnamed[SECTION_REDIS];
	config->has_redis = redis != NULL;
	if (redis != NULL)
		config->redis_place = redis->place;
	if (make_limits(build) != 0 || make_backends(build) != 0 || make_routes(build) != 0)
		return -1;
	return 0;
}
