/*
 * From a file to a snapshot, or to sentences about the file: read, build, validate. All three go on
 * behind what they refuse, so that one run tells everything.
 */
#include "build.h"
#include "validate.h"

static struct config *
config_new(const char *file)
{
	struct arena arena;

	/* The configuration lives in the arena that it holds. */
	arena_init(&arena, CONFIG_MEMORY_MAX);
	struct config *config = arena_alloc(&arena, sizeof *config);
	const char *copy = arena_text(&arena, slice_of(file));

	if (config == NULL || copy == NULL) {
		arena_release(&arena);
		return NULL;
	}
	*config = (struct config){ .file = copy, .arena = arena };
	return config;
}

static void
validate(const struct build *build)
{
	validate_process(build);
	validate_redis(build);
	validate_addresses(build);
	validate_exempt(build);
	validate_backends(build);
	validate_limits(build);
	validate_memory(build);
	validate_overrides(build);
	validate_values(build);
	validate_routes(build);
	validate_costs(build);
	validate_hosts(build);
	validate_order(build);
}

struct config *
config_load(const char *file, struct diagnostics *diagnostics)
{
	const unsigned errors_before = diagnostics->errors;
	struct build build = { .config = config_new(file), .diagnostics = diagnostics };

	if (build.config == NULL) {
		diagnostics_add(diagnostics, SEVERITY_ERROR, (struct place){ file, 0 }, NULL,
			"there is no memory to read it");
		return NULL;
	}
	config_read(file, &build.config->arena, diagnostics, &build.list);
	build.config->sections = build.list.first;
	if (config_build(&build) == 0)
		validate(&build);
	if (diagnostics->errors == errors_before) {
		validate_use(&build);
		validate_caps(&build);
		validate_names(&build);
		validate_claims(&build);
		validate_conditions(&build);
		return build.config;
	}
	config_free(build.config);
	return NULL;
}

const struct config_listen *
config_listen_at(const struct config *config, unsigned n, const struct config_backend **backend)
{
	*backend = NULL;
	if (n < config->listen_count)
		return &config->listens[n];
	n -= config->listen_count;
	for (unsigned i = 0; i < config->backend_count; i++) {
		*backend = config->backends[i];
		if (n < (*backend)->listen_count)
			return &(*backend)->listens[n];
		n -= (*backend)->listen_count;
	}
	return NULL;
}

void
config_free(struct config *config)
{
	if (config == NULL)
		return;
	struct arena arena = config->arena;

	arena_release(&arena);
}
