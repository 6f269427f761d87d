/* Pools: which server is asked, and how many requests are under way. */
#include "backend_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { END_WAIT_US = 5000000, HEAD_WAIT_US = 2000000, KEEP_US = 3000000 };

const char *const exchange_result_names[EXCHANGE_RESULTS] = { "complete", "busy", "refused",
	"timeout", "closed", "bad_head", "truncated", "short", "surplus", "untaken", "not_found",
	"forbidden", "too_large" };

static const struct framing *
framing_of(enum backend_type type)
{
	switch (type) {
	case BACKEND_FASTCGI:
		return &framing_fastcgi;
	case BACKEND_SCGI:
		return &framing_scgi;
	case BACKEND_CGI:
		return &framing_cgi;
	case BACKEND_NONE:
		break;
	}
	return NULL;
}

struct backend_pool *
backend_pool_new(struct loop *loop, struct resolver *resolver, const struct config_backend *config,
	unsigned share, counter_cell in_flight, struct err *err)
{
	struct backend_pool *pool =
		calloc(1, sizeof *pool + (config->server_count + 1) * sizeof pool->servers[0]);

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
	pool->end_wait_us =
		END_WAIT_US < config->idle_timeout_us ? END_WAIT_US : config->idle_timeout_us;
	pool->head_wait_us =
		HEAD_WAIT_US < config->idle_timeout_us ? HEAD_WAIT_US : config->idle_timeout_us;
	pool->max_in_flight = (unsigned)((config->max_in_flight + share - 1) / share);
	pool->in_flight_gauge = in_flight;
	pool->framing = framing_of(config->type);
	if (config->type == BACKEND_FASTCGI)
		pool->keep_max = (unsigned)((config->keep_idle + share - 1) / share);
	pool->keep_us = KEEP_US < config->idle_timeout_us ? KEEP_US : config->idle_timeout_us;
	pool->killed_log = (struct log_throttle){ .period_us = 60 * US_PER_S, .burst = 1 };
	buf_init(&pool->request, EARLY_MAX);
	pool->config = config;
	pool->server_count = config->server_count;
	for (unsigned i = 0; i < pool->server_count; i++) {
		pool->servers[i].pool = pool;
		pool->servers[i].address = config->servers[i];
		(void)address_text(&config->servers[i], pool->servers[i].name);
	}
	/* What is said of a program's answer is said of its place. */
	if (config->type == BACKEND_CGI)
		(void)snprintf(pool->servers[0].name, sizeof pool->servers[0].name, "%s",
			config->program != NULL ? config->program : config->root);
	return pool;
}

void
backend_pool_begin_with(struct backend_pool *pool, unsigned nth)
{
	pool->turn = nth;
}

const char *
backend_pool_name(const struct backend_pool *pool)
{
	return pool->name;
}

static void
server_take_over(struct server *server, struct server *before)
{
	server->down_until_us = before->down_until_us;
	server->failing_since_us = before->failing_since_us;
	server->told_us = before->told_us;
	server->is_told = before->is_told;
	before->is_told = false;
}

void
backend_pool_take_over(struct backend_pool *pool, struct backend_pool *before)
{
	for (unsigned i = 0; i < pool->server_count; i++) {
		for (unsigned j = 0; j < before->server_count; j++) {
			if (address_is(&pool->servers[i].address, &before->servers[j].address))
				server_take_over(&pool->servers[i], &before->servers[j]);
		}
	}
}

static void
destroy_unused(struct backend_pool *pool)
{
	if (!pool->released || pool->in_flight > 0 || pool->left_behind > 0)
		return;
	buf_release(&pool->request);
	free(pool->name);
	free(pool);
}

void
backend_pool_retire(struct backend_pool *pool)
{
	if (pool != NULL)
		keep_none(pool);
}

void
backend_pool_release(struct backend_pool *pool)
{
	if (pool == NULL)
		return;
	keep_none(pool);
	pool->released = true;
	destroy_unused(pool);
}

void
pool_leave(struct backend_pool *pool)
{
	pool->in_flight--;
	counter_add(pool->in_flight_gauge, -1);
	destroy_unused(pool);
}

void
pool_count_left(struct backend_pool *pool)
{
	pool->left_behind++;
}

void
pool_forget_left(struct backend_pool *pool)
{
	pool->left_behind--;
	destroy_unused(pool);
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
		const unsigned at = (pool->turn + i) % pool->server_count;

		if ((tried >> at & 1) == 0 &&
			(best == NULL || is_better(&pool->servers[at], best, now)))
			best = &pool->servers[at];
	}
	return best;
}
