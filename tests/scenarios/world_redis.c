/*
 * The Redis of a scenario. Keys expire by the scenario's clock: what Redis was told of a key's life
 * is read as soon as it has been told, the key is made to stay, and it is taken away when that much
 * time has passed in the scenario.
 */
#include "world.h"

#include "weir/clock.h"

#include <stdio.h>

static long long
ask_of_key(const struct world *world, const char *command, const char *key)
{
	redisReply *reply = redisCommand(world->direct, "%s %b", command, key, strlen(key));

	assert_non_null(reply);
	assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
	const long long number = reply->integer;

	freeReplyObject(reply);
	return number;
}

static struct expiry *
expiry_of(struct world *world, const char *key)
{
	for (unsigned i = 0; i < world->expiry_count; i++) {
		if (strcmp(world->expiries[i].key, key) == 0)
			return &world->expiries[i];
	}
	assert_true(world->expiry_count < EXPIRIES_MAX);
	struct expiry *expiry = &world->expiries[world->expiry_count++];

	(void)snprintf(expiry->key, sizeof expiry->key, "%s", key);
	return expiry;
}

/* A key without expiry is one that was not written: it has kept what was remembered of it. */
void
world_note_keys(struct world *world, const struct seen *seen)
{
	char key[EXPIRY_KEY_MAX];

	if (world->direct == NULL)
		return;
	for (unsigned i = 0; i < seen->key_count; i++) {
		(void)snprintf(key, sizeof key, REDIS_PREFIX "%s", seen->keys[i]);
		const long long ms = ask_of_key(world, "PTTL", key);

		if (ms < 0)
			continue;
		(void)ask_of_key(world, "PERSIST", key);
		expiry_of(world, key)->at_us = clock_wall_us() + ms * US_PER_MS;
	}
}

void
world_expire(struct world *world, int64_t now_us)
{
	unsigned kept = 0;

	if (world->direct == NULL)
		return;
	for (unsigned i = 0; i < world->expiry_count; i++) {
		if (world->expiries[i].at_us <= now_us)
			(void)ask_of_key(world, "DEL", world->expiries[i].key);
		else
			world->expiries[kept++] = world->expiries[i];
	}
	world->expiry_count = kept;
}

long long
world_keys(struct world *world, int64_t now_us)
{
	world_expire(world, now_us);
	redisReply *reply = redisCommand(world->direct, "KEYS " REDIS_PREFIX "*:*");

	assert_non_null(reply);
	assert_int_equal(reply->type, REDIS_REPLY_ARRAY);
	const long long count = (long long)reply->elements;

	freeReplyObject(reply);
	return count;
}

void
world_empty(struct world *world)
{
	redis_ok(world->direct, "FLUSHALL");
	world->expiry_count = 0;
}

void
world_lose_redis(struct world *world)
{
	redisFree(world->direct);
	world->direct = NULL;
	redis_server_kill(world->server);
}
