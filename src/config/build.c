/*
 * The objects are made, limits and backends before the overrides and routes that name them.
 */
#include "build.h"
#include "sections.h"

static void *
allocate(struct build *build, size_t size)
{
	void *piece = arena_alloc(&build->config->arena, size);

	if (piece == NULL)
		complain_whole(build, "%s", config_too_large);
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
		section_fill(build, kind, section, section->object);
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
make_overrides(struct build *build)
{
	struct config *config = build->config;
	const size_t count = make_others(build, SECTION_OVERRIDE);

	config->overrides = allocate(build, count * sizeof config->overrides[0]);
	if (config->overrides == NULL)
		return -1;
	for (struct section *s = section_first(build, SECTION_OVERRIDE); s != NULL;
		s = section_next(s)) {
		struct config_override *override = make(build, s);

		if (override == NULL)
			return -1;
		override->place = s->place;
		override->name = s->name;
		config->overrides[config->override_count++] = override;
	}
	return 0;
}

/* Each limit gets its overrides, in their order. */
static int
hand_out_overrides(struct build *build)
{
	struct config *config = build->config;

	for (unsigned i = 0; i < config->limit_count; i++) {
		struct config_limit *limit = config->limits[i];
		size_t count = 0;

		for (unsigned j = 0; j < config->override_count; j++)
			count += config->overrides[j]->limit == limit;
		limit->overrides = allocate(build, count * sizeof limit->overrides[0]);
		if (limit->overrides == NULL)
			return -1;
		for (unsigned j = 0; j < config->override_count; j++) {
			if (config->overrides[j]->limit == limit)
				limit->overrides[limit->override_count++] = config->overrides[j];
		}
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
	section_fill(build, SECTION_WEIR, build->unnamed[SECTION_WEIR], config);
	section_fill(build, SECTION_MEMORY, build->unnamed[SECTION_MEMORY], config);
	section_fill(build, SECTION_REDIS, build->unnamed[SECTION_REDIS], config);
	redis = build->unnamed[SECTION_REDIS];
	config->has_redis = redis != NULL;
	if (redis != NULL)
		config->redis_place = redis->place;
	if (make_limits(build) != 0 || make_overrides(build) != 0 ||
		hand_out_overrides(build) != 0 || make_backends(build) != 0 ||
		make_routes(build) != 0)
		return -1;
	return 0;
}
