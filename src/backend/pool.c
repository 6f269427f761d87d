/* Pools: which server is asked, and how many requests are under way. */
#include "backend_private.h"

#include <stdlib.h>

const char *const exchange_result_names[EXCHANGE_RESULTS] = { "complete", "busy", "refused",
	"timeout", "closed", "bad_head", "truncated" };

struct backend_pool *
backend_pool_new(struct loop *loop, struct resolver *resolver, const struct config_backend *config,
	unsigned share, struct err *err)
{
	struct backend_pool *pool =
		calloc(1, sizeof *pool + config->server_count * sizeof pool->servers[0]);
	const struct slice name = slice_of(config->name);

	if (pool != NULL)
		pool->name = strdup(config->name);
	if (pool == NULL || pool->name == NULL) {
		free(pool);
		(void)err_set(err, "no memory for backend %s", config->name);
		return NULL;
	}
	pool->loop = loop;
	pool->resolver = resolver;
	pool->connect_timeout_us = config->connect_timeout_us;
	pool->idle_timeout_us = config->idle_timeout_us;
	pool->max_in_flight = (unsigned)((config->max_in_flight + share - 1) / share);
	pool->in_flight_gauge = counter_find(COUNT_BACKEND_IN_FLIGHT, &name);
	buf_init(&pool->request, EARLY_MAX);
	pool->server_count =
		config->server_count < SERVERS_MAX ? config->server_count : SERVERS_MAX;
	for (unsigned i = 0; i < pool->server_count; i++) {
		pool->servers[i].address = config->servers[i];
		(void)address_text(&config->servers[i], pool->servers[i].name);
	}
	return pool;
}

static void
destroy(struct backend_pool *pool)
{
	buf_release(&pool->request);
	free(pool->name);
	free(pool);
}

void
backend_pool_release(struct backend_pool *pool)
{
	if (pool == NULL)
		return;
	pool->released = true;
	if (pool->in_flight == 0)
		destroy(pool);
}

void
pool_leave(struct backend_pool *pool)
{
	pool->in_flight--;
	counter_add(pool->in_flight_gauge, -1);
	if (pool->released && pool->in_flight == 0)
		destroy(pool);
}

unsigned
pool_index(const struct backend_pool *pool, const struct server *server)
{
	return (unsigned)(server - pool->servers);
}

/* A server that is set aside is better than none: it may be back. */
static bool
is_better(const struct server *a, const struct server *b, int64_t now_us)
{
	const bool a_up = a->down_until_us <= now_us, b_up = b->down_until_us <= now_us;

	if (a_up != b_up)
		return a_up;
	return a->in_flight < b->in_flight;
}

struct server *
pool_choose(struct backend_pool *pool, unsigned long long tried)
{
	const int64_t now = loop_now_us(pool->loop);
	struct server *best = NULL;

	for (unsigned i = 0; i < pool->server_count; i++) {
		if ((tried >> i & 1) == 0 &&
			(best == NULL || is_better(&pool->servers[i], best, now)))
			best = &pool->servers[i];
	}
	return best;
}
