/*
 * A snapshot at work: the connection to Redis, the pools of its backends. A reload makes a new
 * plant; the old one goes with its last request, so no request is lost and none sees two
 * configurations.
 */
#include "gate_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As long as leases last, if nobody says otherwise. */
#define REST_US (600 * US_PER_S)
#define LOOK_US (100 * US_PER_MS)

static struct redis_settings
redis_settings(const struct snapshot *snapshot)
{
	const struct config *config = snapshot->config;

	return (struct redis_settings){
		.server = config->redis_server,
		.sentinels = {
			.addresses = config->redis_sentinels,
			.count = config->redis_sentinel_count,
			.master = config->redis_master,
			.username = config->redis_sentinel_username,
			.password = config->redis_sentinel_password,
		},
		.cluster = {
			.addresses = config->redis_cluster,
			.count = config->redis_cluster_count,
		},
		.tls = snapshot->tls,
		.tls_name = config->redis_tls_name,
		.username = config->redis_username,
		.password = config->redis_password,
		.database = config->redis_database,
		.prefix = config->redis_prefix,
		.deadline_us = config->redis_deadline_us,
		.counters = &snapshot->redis,
	};
}

static struct breaker_areas
breaker_areas(struct memory *memory)
{
	return (struct breaker_areas){ .host = memory_area(memory),
		.process = memory_process_area(memory),
		.size = MEMORY_AREA_SIZE };
}

struct breaker *
gate_breaker(const struct snapshot *snapshot, struct memory *memory, struct err *err)
{
	const struct redis_settings settings = redis_settings(snapshot);
	const struct breaker_areas areas = breaker_areas(memory);
	struct breaker *breaker = redis_breaker(&settings, &areas);

	if (breaker == NULL)
		(void)err_set(err, "no memory for the breaker");
	return breaker;
}

static int
open_cluster(struct plant *plant, const struct redis_settings *settings, struct err *err)
{
	struct gate *gate = plant->gate;
	const struct breaker_areas areas = breaker_areas(gate->shared.memory);

	plant->cluster =
		cluster_new(gate->loop, gate->resolver, settings, &areas, plant->breaker, err);
	if (plant->cluster == NULL)
		return -1;
	plant->store = cluster_store(plant->cluster);
	return 0;
}

static int
open_store(struct plant *plant, struct err *err)
{
	struct gate *gate = plant->gate;

	plant->store = memory_store(gate->shared.memory);
	if (!plant->snapshot->config->has_redis)
		return 0;
	const struct redis_settings settings = redis_settings(plant->snapshot);

	plant->breaker = gate_breaker(plant->snapshot, gate->shared.memory, err);
	if (plant->breaker == NULL)
		return -1;
	if (settings.cluster.count > 0)
		return open_cluster(plant, &settings, err);
	plant->redis = redis_new(gate->loop, gate->resolver, &settings, plant->breaker, err);
	if (plant->redis == NULL)
		return -1;
	plant->store = redis_store(plant->redis);
	return 0;
}

/* What keeps work from Redis. */
static int
open_bounds(struct plant *plant, struct err *err)
{
	const struct snapshot *snapshot = plant->snapshot;
	const struct config *config = snapshot->config;
	struct gate *gate = plant->gate;

	plant->generation = ++gate->generations;
	if (snapshot->has_caps) {
		plant->caps = commons_caps(gate->shared.commons, err);
		if (plant->caps == NULL)
			return -1;
	}
	if (!config->has_redis)
		return 0;
	if (gate->rejections == NULL)
		gate->rejections = rejections_new();
	plant->identities = calloc(config->limit_count + 1, sizeof plant->identities[0]);
	if (gate->rejections == NULL || plant->identities == NULL)
		return err_set(err, "no memory for what is known of Redis");
	for (unsigned i = 0; i < config->limit_count; i++) {
		plant->identities[i] = commons_identities(
			gate->shared.commons, config->limits[i]->name, snapshot->identities[i]);
		if (plant->identities[i] == NULL)
			return err_set(err, "no memory for what is known of Redis");
	}
	return 0;
}

/* An outage goes on over a reload, and its end is told by who comes after. */
static void
take_over(struct backend_pool *pool, const struct plant *before)
{
	if (pool == NULL || before == NULL)
		return;
	for (unsigned i = 0; i < before->snapshot->config->backend_count; i++) {
		struct backend_pool *other = before->pools[i];

		if (other != NULL && strcmp(backend_pool_name(other), backend_pool_name(pool)) == 0)
			backend_pool_take_over(pool, other);
	}
}

static int
open_pools(struct plant *plant, struct err *err)
{
	const struct config *config = plant->snapshot->config;
	struct gate *gate = plant->gate;

	plant->pools = calloc(config->backend_count + 1, sizeof plant->pools[0]);
	plant->uploads = calloc(config->backend_count + 1, sizeof plant->uploads[0]);
	if (plant->pools == NULL || plant->uploads == NULL)
		return err_set(err, "no memory for the backends");
	for (unsigned i = 0; i < config->backend_count; i++) {
		if (config->backends[i]->type == BACKEND_NONE)
			continue;
		plant->pools[i] = backend_pool_new(gate->loop, gate->resolver, config->backends[i],
			gate->shared.threads, plant->snapshot->backends_in_flight[i], err);
		if (plant->pools[i] == NULL)
			return -1;
		/* Of processes that serve one request each, not every one begins with the first. */
		backend_pool_begin_with(plant->pools[i], (unsigned)getpid());
	}
	for (unsigned i = 0; i < config->backend_count; i++)
		take_over(plant->pools[i], gate->plant);
	return 0;
}

void
plant_free(struct plant *plant)
{
	struct plant **at = &plant->gate->plants;

	while (*at != plant)
		at = &(*at)->next;
	*at = plant->next;
	loop_undefer(plant->gate->loop, &plant->end);
	timer_free(plant->rest);
	for (unsigned i = 0; plant->pools != NULL && i < plant->snapshot->config->backend_count;
		i++)
		backend_pool_release(plant->pools[i]);
	free(plant->pools);
	free(plant->uploads);
	free(plant->identities);
	redis_free(plant->redis);
	cluster_free(plant->cluster);
	breaker_free(plant->breaker);
	snapshot_release(plant->snapshot);
	free(plant);
}

static void
end(void *context)
{
	struct plant *plant = context;
	const int64_t now = loop_now_us(plant->gate->loop);

	if (plant->rest_until_us == 0)
		plant->rest_until_us = now + REST_US;
	if (store_kept(plant->store) > 0 && now < plant->rest_until_us)
		timer_set(plant->rest, now + LOOK_US);
	else
		plant_free(plant);
}

struct plant *
plant_new(struct gate *gate, struct snapshot *snapshot, struct err *err)
{
	struct plant *plant = calloc(1, sizeof *plant);

	if (plant != NULL)
		plant->rest = timer_new(gate->loop, end, plant);
	if (plant == NULL || plant->rest == NULL) {
		free(plant);
		(void)err_set(err, "no memory for the configuration");
		return NULL;
	}
	plant->gate = gate;
	plant->next = gate->plants;
	gate->plants = plant;
	plant->end.run = end;
	plant->end.context = plant;
	plant->snapshot = snapshot;
	plant->users = 1;
	snapshot_hold(snapshot);
	if (open_store(plant, err) != 0 || open_bounds(plant, err) != 0 ||
		open_pools(plant, err) != 0) {
		plant_free(plant);
		return NULL;
	}
	return plant;
}

void
plant_retire(struct plant *plant)
{
	for (unsigned i = 0; i < plant->snapshot->config->backend_count; i++)
		backend_pool_retire(plant->pools[i]);
}

void
plant_hold(struct plant *plant)
{
	plant->users++;
}

void
plant_release(struct plant *plant)
{
	if (--plant->users == 0)
		loop_defer(plant->gate->loop, &plant->end);
}
