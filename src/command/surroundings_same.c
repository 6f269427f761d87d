/*
 * Paths that are one place. Each is known by its directory, as the file system knows it, and its
 * name in there; so "/var/run/weir.sock" is "/run/weir.sock". If both are there already, it is seen
 * also where the last part is a link.
 */
#include "surroundings.h"

#include "process.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 512, SPOTS_MAX = CONFIG_LISTENS_MAX + 8 };

struct spot {
	struct named_key key;
	const char *path;
	bool is_log;
};

static bool
is_same_file(const char *a, const char *b)
{
	struct stat st_a, st_b;

	return stat(a, &st_a) == 0 && stat(b, &st_b) == 0 && st_a.st_dev == st_b.st_dev &&
		st_a.st_ino == st_b.st_ino;
}

static bool
is_same_place(const char *a, const char *b)
{
	const char *name_a = strrchr(a, '/'), *name_b = strrchr(b, '/');
	char directory_a[PATH_SIZE], directory_b[PATH_SIZE];

	if (is_same_file(a, b))
		return true;
	if (name_a == NULL || name_b == NULL || strcmp(name_a, name_b) != 0)
		return false;
	(void)snprintf(directory_a, sizeof directory_a, "%.*s/", (int)(name_a - a), a);
	(void)snprintf(directory_b, sizeof directory_b, "%.*s/", (int)(name_b - b), b);
	return is_same_file(directory_a, directory_b);
}

static void
say_same(const struct surroundings *look, const struct spot *spot, const struct spot *other)
{
	if (spot->is_log && other->is_log)
		surroundings_say(look, SEVERITY_WARNING, &spot->key,
			"is the same file as [%s] %s, so each has the lines of both; give each its "
			"own",
			other->key.kind, other->key.key);
	else
		surroundings_say(look, SEVERITY_ERROR, &spot->key,
			"is the same place as [%s] %s; give each its own", other->key.kind,
			other->key.key);
}

/* What weir makes. Returns how many they are. */
static unsigned
collect(const struct config *config, char room[STATE_PATH_SIZE], struct spot spots[SPOTS_MAX])
{
	const struct config_backend *backend;
	const struct config_listen *listen;
	unsigned count = 0;

	if (config->log_to == LOG_TO_FILE)
		spots[count++] = (struct spot){ { "weir", "", "log", 0 }, config->log_file, true };
	if (config->reject_log != NULL)
		spots[count++] =
			(struct spot){ { "weir", "", "reject_log", 0 }, config->reject_log, true };
	spots[count++] = (struct spot){ { "memory", "", "state", 0 },
		process_state_path(config, room), false };
	for (unsigned i = 0; (listen = config_listen_at(config, i, &backend)) != NULL; i++) {
		if (listen->address.kind == ADDRESS_UNIX)
			spots[count++] =
				(struct spot){ surroundings_listen_key(config, listen, backend),
					listen->address.host, false };
	}
	if (config->has_metrics && config->metrics.kind == ADDRESS_UNIX)
		spots[count++] =
			(struct spot){ { "weir", "", "metrics", 0 }, config->metrics.host, false };
	return count;
}

/* One that weir connects to and is its own. */
static void
check_server(const struct surroundings *look, const struct spot *spots, unsigned count,
	const struct named_key *key, const struct address *server)
{
	for (unsigned i = 0; i < count; i++) {
		if (server->kind != ADDRESS_UNIX || !is_same_place(server->host, spots[i].path))
			continue;
		surroundings_say(look, SEVERITY_ERROR, key,
			"is the same place as [%s] %s of weir itself", spots[i].key.kind,
			spots[i].key.key);
		return;
	}
}

void
surroundings_check_same(const struct surroundings *look)
{
	const struct config *config = look->config;
	struct spot spots[SPOTS_MAX];
	char room[STATE_PATH_SIZE];
	const unsigned count = collect(config, room, spots);

	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < i; j++) {
			if (is_same_place(spots[i].path, spots[j].path))
				say_same(look, &spots[i], &spots[j]);
		}
	}
	for (unsigned i = 0; i < config->backend_count; i++) {
		const struct config_backend *backend = config->backends[i];

		for (unsigned j = 0; j < backend->server_count; j++)
			check_server(look, spots, count,
				&(const struct named_key){ "backend", backend->name, "server", j },
				&backend->servers[j]);
	}
	if (config->has_redis && config->redis_sentinel_count == 0 &&
		config->redis_cluster_count == 0)
		check_server(look, spots, count,
			&(const struct named_key){ "redis", "", "server", 0 },
			&config->redis_server);
}
