/*
 * ask SOCKET WHAT COUNT IDENTITIES: decisions by Redis alone, to be weighed from outside (INFO cpu,
 * INFO memory). All are sent over one connection, DEPTH commands at a time, whatever is asked:
 *
 *     weir SHAPE     the commands that the store sends, for a limit of this shape
 *     article SHAPE  the published script, called once for each policy
 *
 * WHAT is like `weir:one`. Identities take turns, and no shape is so small that it would reject.
 */
#include "../../src/redis/redis_private.h"

#include "../lib/limits.h"
#include "weir/clock.h"
#include "weir/hash.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEPTH = 48, POLICIES = 3, SCRIPT_MAX = 8192 };

struct shape {
	const char *name, *policies[POLICIES + 1];
	struct {
		unsigned rate, capacity; /* as the article's script has them: a second, tokens. It
					    knows whole rates alone; what is kept is as large */
	} article[POLICIES];
};

static const struct shape shapes[] = {
	{ "one", { "100/1s", NULL }, { { 100, 100 } } },
	{ "burst", { "10/1s burst 60", NULL }, { { 10, 60 } } },
	{ "named", { "10/1s burst 60 name api", NULL }, { { 10, 60 } } },
	{ "5m20", { "5/1m burst 20", NULL }, { { 1, 20 } } },
	{ "100m200", { "100/1m burst 200", NULL }, { { 2, 200 } } },
	{ "1000d", { "1000/1d", NULL }, { { 1, 1000 } } },
	{ "300x5m", { "300/5m", NULL }, { { 1, 300 } } },
	{ "5x7s13", { "5/7s burst 13", NULL }, { { 1, 13 } } },
	{ "three", { "10/1s burst 60", "1000/1m", "10000/1h", NULL },
		{ { 10, 60 }, { 16, 1000 }, { 3, 10000 } } },
};

static redisContext *connection;

static void
take_replies(unsigned count)
{
	for (; count > 0; count--) {
		redisReply *reply;

		if (redisGetReply(connection, (void **)&reply) != REDIS_OK)
			errx(1, "%s", connection->errstr);
		if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
			reply->element[0]->integer != 1)
			errx(1, "not admitted: %s", reply->str != NULL ? reply->str : "rejected");
		freeReplyObject(reply);
	}
}

/* Loads a script; its SHA-1 for EVALSHA. */
static void
load(const char *text, size_t len, char sha[41])
{
	redisReply *reply = redisCommand(connection, "SCRIPT LOAD %b", text, len);

	if (reply == NULL || reply->type != REDIS_REPLY_STRING)
		errx(1, "SCRIPT LOAD failed");
	(void)snprintf(sha, 41, "%s", reply->str);
	freeReplyObject(reply);
}

/* ---- the article's ---- */

static unsigned
ask_article(const struct shape *shape, unsigned identity)
{
	static char sha[41];
	unsigned calls = 0;

	if (sha[0] == '\0') {
		char text[SCRIPT_MAX];
		const char *path = getenv("ARTICLE");
		FILE *file = fopen(path == NULL ? "article.lua" : path, "r");

		if (file == NULL)
			err(1, "article.lua");
		load(text, fread(text, 1, sizeof text, file), sha);
		(void)fclose(file);
	}
	for (; calls < POLICIES && shape->article[calls].rate != 0; calls++) {
		char key[64];

		(void)snprintf(key, sizeof key, "rl:ip:10.%u.%u.%u%s%s", identity >> 16 & 255,
			identity >> 8 & 255, identity & 255, calls == 0 ? "" : ":",
			calls == 0           ? ""
				: calls == 1 ? "1m"
					     : "1h");
		(void)redisAppendCommand(connection, "EVALSHA %s 1 %s %u %u %lld 1", sha, key,
			shape->article[calls].rate, shape->article[calls].capacity,
			(long long)clock_wall_us() * 1000);
	}
	return calls;
}

/* ---- weir's ---- */

static unsigned
ask_weir(const struct shape *shape, unsigned identity)
{
	static struct made_limit made;
	static struct redis redis = { .settings.prefix = "weir:", .has_offset = true };
	static bool is_loaded;
	static struct args args;
	char key[64], sha[41];
	struct check check = { .count = 1, .cost = 1 };

	if (!is_loaded) {
		made_limit_init(&made, "page", shape->policies);
		memset(&args, 0, sizeof args);
		args_add_script(&args, SCRIPT_DECIDE, true);
		load(args.at[1], args.len[1], sha);
		is_loaded = true;
	}
	(void)snprintf(key, sizeof key, "page:10.%u.%u.%u", identity >> 16 & 255,
		identity >> 8 & 255, identity & 255);
	check.items[0] = (struct check_item){ .limit = &made.limit, .key = slice_of(key) };
	check.deadline_us = clock_wall_us() + 10 * US_PER_S;
	args.count = 0;
	args.keys = 0;
	args_add_script(&args, script_of(&check), false);
	args_add_check(&args, &redis, &check);
	(void)redisAppendCommandArgv(connection, args.count, (const char **)args.at, args.len);
	return 1;
}

int
main(int argc, char **argv)
{
	struct err err;

	if (argc != 5 || hash_start(&err) != 0)
		errx(2, "usage: ask SOCKET weir:SHAPE|article:SHAPE COUNT IDENTITIES");
	const bool is_weir = strncmp(argv[2], "weir:", 5) == 0;
	const char *name = strchr(argv[2], ':');
	const struct shape *shape = NULL;

	for (size_t i = 0; name != NULL && i < sizeof shapes / sizeof shapes[0]; i++) {
		if (strcmp(shapes[i].name, name + 1) == 0)
			shape = &shapes[i];
	}
	if (shape == NULL)
		errx(2, "%s: no such shape", argv[2]);
	connection = redisConnectUnix(argv[1]);
	if (connection == NULL || connection->err != 0)
		errx(1, "%s: no connection", argv[1]);
	const unsigned long count = strtoul(argv[3], NULL, 10),
			    identities = strtoul(argv[4], NULL, 10);
	unsigned waiting = 0;

	for (unsigned long i = 0; i < count; i++) {
		const unsigned identity = (unsigned)(i % identities);

		waiting += is_weir ? ask_weir(shape, identity) : ask_article(shape, identity);
		if (waiting >= DEPTH) {
			take_replies(waiting);
			waiting = 0;
		}
	}
	take_replies(waiting);
	redisFree(connection);
	return 0;
}
