/*
 * weir identity: what somebody is called where he is counted, in the log and in Redis, and which
 * override is his. Who it is, is said in the words of the configuration; out of them becomes a
 * request (identity_words.c), and that is looked at as the gate looks at one.
 */
#include "command.h"
#include "identity.h"

#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/redis.h"
#include "weir/snapshot.h"

#include <stdio.h>

enum { ARENA_MAX = 1024 * 1024 };

#define USE "takes a limit and who is meant, such as: api header X-API-Key VALUE ip 192.0.2.1"

/* -1: there is none. */
static int
find_limit(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->limit_count; i++) {
		if (strcmp(config->limits[i]->name, name) == 0)
			return (int)i;
	}
	return -1;
}

static bool
has_limit(const struct config_route *route, const struct config_limit *limit)
{
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (route->limits[i] == limit)
			return true;
	}
	return false;
}

/* The one that is named, or the first that has the limit; NULL: there is none. */
static const struct config_route *
find_route(const struct config *config, const struct config_limit *limit, const char *name)
{
	for (unsigned i = 0; i < config->route_count; i++) {
		const struct config_route *route = config->routes[i];

		if (name == NULL ? has_limit(route, limit) : strcmp(route->name, name) == 0)
			return route;
	}
	return NULL;
}

static void
print_key(const struct config *config, struct slice name)
{
	char room[REDIS_KEY_MAX];
	const struct slice key =
		redis_key(config->redis_prefix, config->redis_cluster_count > 0, name, room);

	(void)printf("key=%.*s\n", (int)key.len, key.ptr);
}

static void
print_bucket(const struct snapshot *snapshot, const struct limit *limit, struct slice name,
	struct arena *arena)
{
	(void)printf("identity=%.*s\n", (int)name.len, name.ptr);
	if (!snapshot->config->has_redis)
		return;
	if (limit->shards == 1)
		print_key(snapshot->config, name);
	for (unsigned i = 0; limit->shards > 1 && i < limit->shards; i++) {
		const struct slice shard = shards_key(arena, name, i);

		if (shard.ptr != NULL)
			print_key(snapshot->config, shard);
	}
}

static int
print_identity(const struct snapshot *snapshot, unsigned at, struct asker *asker,
	struct question *question)
{
	const struct config_limit *config = snapshot->config->limits[at];
	const int found = config->override_count == 0 ? -1 : overrides_find(asker, config);
	const struct config_override *override =
		found < 0 ? NULL : snapshot->config->overrides[found];
	const bool is_counted = override == NULL || (!override->exempt && !override->block);
	struct slice name;

	if (override != NULL)
		(void)printf("override=%s%s\n", override->name,
			override->exempt          ? "\nexempt=yes"
				: override->block ? "\nblock=yes"
						  : "");
	if (!is_counted)
		return EXIT_OK;
	switch (identity_key(asker, config, &question->arena, &name)) {
	case IDENTITY_NO_ADDRESS:
		return usage_error(
			"identity", "limit %s counts addresses: add ip ADDRESS", config->name);
	case IDENTITY_FOUND:
		print_bucket(snapshot,
			override == NULL ? &snapshot->limits[at] : snapshot->plans[found], name,
			&question->arena);
		break;
	case IDENTITY_SKIP:
		(void)printf("on_missing=skip\n");
		break;
	case IDENTITY_REJECT:
		(void)printf("on_missing=reject\n");
		break;
	case IDENTITY_NO_MEMORY:
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

static int
answer(const struct snapshot *snapshot, const char *limit, struct question *question)
{
	const int at = find_limit(snapshot->config, limit);
	struct asker asker;
	struct view view;
	struct err err;

	if (at < 0)
		return usage_error("identity", "there is no [limit %s]", limit);
	const struct config_route *route =
		find_route(snapshot->config, snapshot->config->limits[at], question->route);

	if (route == NULL)
		return usage_error("identity",
			question->route == NULL ? "no route has limit %s"
						: "there is no [route %s]",
			question->route == NULL ? limit : question->route);
	if (view_init(&view, snapshot->routes, question->env, &question->arena, &err) != 0)
		return usage_error("identity", "%s", err.text);
	asker_init(&asker, &view, route, snapshot->overrides,
		snapshot->has_hash_key ? snapshot->hash_key : NULL);
	return print_identity(snapshot, (unsigned)at, &asker, question);
}

static int
load_and_answer(const char *file, const char *limit, struct question *question)
{
	struct diagnostics diagnostics;
	int status = EXIT_FAILED;

	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(file, &diagnostics);

	if (snapshot == NULL)
		diagnostics_print(&diagnostics, stderr);
	else
		status = answer(snapshot, limit, question);
	snapshot_release(snapshot);
	diagnostics_release(&diagnostics);
	return status;
}

int
command_identity(int argc, char **argv)
{
	struct question question = { .count = 0 };
	const char *file = DEFAULT_CONFIG;
	struct err err;
	int at = 1;

	if (argc > 2 && strcmp(argv[1], "--config") == 0) {
		file = argv[2];
		at = 3;
	} else if (argc > 1 && strncmp(argv[1], "--config=", 9) == 0) {
		file = argv[1] + 9;
		at = 2;
	}
	if (argc - at < 1 || argv[at][0] == '-')
		return usage_error("identity", USE);
	if (hash_start(&err) != 0 || counter_thread_start(&err) != 0) {
		(void)fprintf(stderr, "weir identity: %s\n", err.text);
		return EXIT_FAILED;
	}
	arena_init(&question.arena, ARENA_MAX);
	const char *wrong = NULL;
	int status;

	if (question_read(&question, argc - at - 1, argv + at + 1, &wrong) == 0)
		status = load_and_answer(file, argv[at], &question);
	else if (wrong == NULL)
		status = usage_error("identity", USE);
	else
		status = usage_error("identity", "%s has no sound value", wrong);
	arena_release(&question.arena);
	return status;
}
