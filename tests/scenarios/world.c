/*
 * A stand-in for the gate, small enough to see that it does what the gate does: the route, its
 * exceptions and identities, one check, and the answer's status and fields. What the gate does
 * besides (rejection cache, local_cap, max_identities, shards by chance) has tests of its own.
 */
#include "world.h"

#include "../lib/redis_server.h"
#include "weir/headers.h"

#include <time.h>

enum { WORLD_MAX = 64 * 1024 * 1024, FIELDS_MAX = 4096 };

void
world_open(struct world *world, const char *directory, const struct redis_server *server)
{
	struct err err;

	memset(world, 0, sizeof *world);
	world->directory = directory;
	arena_init(&world->arena, WORLD_MAX);
	assert_int_equal(hash_start(&err), 0);
	if (server == NULL) {
		world->memory = memory_open_private(MEMORY_SIZE_MIN, &err);
		assert_non_null(world->memory);
		world->store = memory_store(world->memory);
		return;
	}
	world->direct = redis_server_connect(server);
	client_open(&world->client, &(const struct redis_settings){ .server = server->address });
	client_wait_until_ready(&world->client);
	redis_ok(world->direct, "FLUSHALL");
	world->store = redis_store(world->client.redis);
}

void
world_close(struct world *world)
{
	if (world->memory != NULL) {
		memory_close(world->memory);
	} else {
		client_close(&world->client);
		redisFree(world->direct);
	}
	for (unsigned i = 0; i < world->snapshot_count; i++)
		snapshot_release(world->snapshots[i]);
	arena_release(&world->arena);
}

static void
set_first_error(const struct diagnostics *diagnostics, struct err *err)
{
	for (size_t i = 0; i < diagnostics->count; i++) {
		const struct diagnostic *said = &diagnostics->list[i];
		const char *slash =
			said->place.file == NULL ? NULL : strrchr(said->place.file, '/');

		if (said->severity != SEVERITY_ERROR)
			continue;
		(void)err_set(err, "%s:%u: %s%s%s", slash == NULL ? "" : slash + 1,
			said->place.line, said->where, said->where[0] == '\0' ? "" : ": ",
			said->text);
		return;
	}
}

int
world_use(struct world *world, const char *file, struct err *err)
{
	struct diagnostics diagnostics;

	if (world->snapshot_count == CONFIGURATIONS_MAX)
		return err_set(err, "more than %d configurations", CONFIGURATIONS_MAX);
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = snapshot_load(file, &diagnostics);

	if (snapshot == NULL)
		set_first_error(&diagnostics, err);
	diagnostics_release(&diagnostics);
	if (snapshot == NULL)
		return -1;
	world->snapshots[world->snapshot_count++] = snapshot;
	assert_int_equal(setenv("TZ", snapshot->config->timezone, 1), 0);
	tzset();
	return 0;
}

static const struct snapshot *
current(const struct world *world)
{
	return world->snapshots[world->snapshot_count - 1];
}

/* ---- who is counted ---- */

/* A request on its way. */
struct passage {
	struct world *world;
	const struct question *question;
	struct answer *answer;
	struct view view;
	struct asker asker;
	const struct snapshot_route *route;
};

static bool
refuse(struct passage *passage, unsigned status)
{
	passage->answer->status = status;
	return false;
}

static bool
block(struct passage *passage, const struct config_override *override)
{
	if (passage->answer->enforced && override->limit->enforce)
		return refuse(passage, 403);
	passage->answer->would_reject = true;
	return true;
}

static void
add_item(struct passage *passage, const struct limit *limit, struct slice key)
{
	struct world *world = passage->world;
	struct check *check = &passage->answer->check;
	const int wanted = passage->question->shard;

	if (limit->shards > 1) {
		key = shards_key(&world->arena, key,
			(wanted == SHARD_BY_TURNS ? world->turn++ : (unsigned)wanted) %
				limit->shards);
		assert_non_null(key.ptr);
	}
	if (limit->has_leases && check->lease == 0)
		check->lease = ++world->leases;
	check->items[check->count++] =
		(struct check_item){ .limit = limit, .key = key, .shadow = !limit->enforce };
}

/* False: the request was answered. */
static bool
add_limit(struct passage *passage, const struct limit *limit)
{
	const struct snapshot *snapshot = current(passage->world);
	const struct config_limit *config =
		snapshot->config->limits[(size_t)(limit - snapshot->limits)];
	const int found =
		config->override_count == 0 ? -1 : overrides_find(&passage->asker, config);
	const struct config_override *override =
		found < 0 ? NULL : snapshot->config->overrides[found];
	struct slice key;

	if (override != NULL && override->exempt)
		return true;
	if (override != NULL && override->block)
		return block(passage, override);
	switch (identity_key(&passage->asker, config, &passage->world->arena, &key)) {
	case IDENTITY_FOUND:
	case IDENTITY_NO_ADDRESS:
		break;
	case IDENTITY_SKIP:
		return true;
	case IDENTITY_REJECT:
		return refuse(passage, 403);
	case IDENTITY_NO_MEMORY:
		fail_msg("a scenario needs more than %d bytes", WORLD_MAX);
	}
	add_item(passage, override != NULL ? snapshot->plans[found] : limit, key);
	return true;
}

static bool
identify(struct passage *passage)
{
	const struct snapshot *snapshot = current(passage->world);

	if (route_exempts(snapshot->routes, (unsigned)(passage->route - snapshot->route_list),
		    &passage->view))
		return true;
	asker_init(
		&passage->asker, &passage->view, passage->route->config, snapshot->overrides, NULL);
	for (unsigned i = 0; i < passage->route->limit_count; i++) {
		if (!add_limit(passage, passage->route->limits[i]))
			return false;
	}
	return true;
}

/* ---- deciding ---- */

/* Redis's own clock goes on while the scenario's stands still, and must not take keys away. */
static void
keep_keys(struct world *world, const struct check *check)
{
	for (unsigned i = 0; i < check->count; i++)
		(void)redis_number(world->direct, "PERSIST %s%.*s", world->client.settings.prefix,
			(int)check->items[i].key.len, check->items[i].key.ptr);
}

struct waiting {
	struct check check;
	bool is_done;
	struct world *world;
	struct decision decision;
};

static void
on_done(struct check *check, const struct decision *decision)
{
	struct waiting *waiting =
		(struct waiting *)((uintptr_t)check - offsetof(struct waiting, check));

	waiting->is_done = true;
	waiting->decision = *decision;
	if (waiting->world->memory == NULL)
		loop_stop(waiting->world->client.loop);
}

static int
decide_check(struct world *world, struct answer *answer, struct err *err)
{
	struct waiting waiting = { .check = answer->check, .world = world };

	waiting.check.done = on_done;
	waiting.check.deadline_us = clock_monotonic_us() + PATIENT_US;
	store_decide(world->store, &waiting.check);
	if (world->memory == NULL) {
		run_loop_until(world->client.loop, waiting.is_done);
		keep_keys(world, &answer->check);
	}
	assert_true(waiting.is_done);
	answer->decision = waiting.decision;
	answer->has_decision = true;
	if (answer->decision.verdict == VERDICT_UNAVAILABLE)
		return err_set(err, "the store did not decide: %s",
			unavailable_names[answer->decision.why]);
	return 0;
}

static void
put_fields(struct passage *passage, bool is_rejected)
{
	struct answer *answer = passage->answer;
	unsigned dialects = passage->route->config->headers;
	struct buf out;

	if (is_rejected && dialects == 0)
		dialects = HEADERS_X_RATELIMIT;
	buf_init(&out, FIELDS_MAX);
	assert_int_equal(headers_put(&out, dialects, &answer->decision, answer->retry_after_s), 0);
	const char *copy = arena_text(&passage->world->arena, buf_slice(&out));

	assert_non_null(copy);
	answer->fields = slice_of(copy);
	buf_release(&out);
}

static void
settle(struct passage *passage)
{
	struct answer *answer = passage->answer;
	const bool is_rejected = answer->decision.verdict == VERDICT_REJECTED;

	answer->status = is_rejected && answer->enforced ? 429 : 200;
	if (is_rejected && answer->enforced)
		answer->retry_after_s = decision_retry_after_s(&answer->decision);
	for (unsigned i = 0; i < answer->decision.count; i++) {
		const struct outcome *outcome = &answer->decision.outcomes[i];

		answer->would_reject |= outcome->violated && (outcome->shadow || !answer->enforced);
	}
	if (answer->enforced)
		put_fields(passage, is_rejected);
}

int
world_ask(struct world *world, const struct question *question, struct answer *answer,
	struct err *err)
{
	struct passage passage = { .world = world, .question = question, .answer = answer };
	const struct snapshot *snapshot = current(world);
	struct err refused;

	memset(answer, 0, sizeof *answer);
	answer->status = 200;
	answer->enforced = snapshot->config->enforce;
	if (view_init(&passage.view, snapshot->routes, question->env, &world->arena, &refused) !=
		0) {
		answer->status = 400;
		return 0;
	}
	const int route = routes_match(snapshot->routes, &passage.view);

	if (route < 0) {
		answer->status = 400;
		return 0;
	}
	passage.route = &snapshot->route_list[route];
	answer->check.now_us = question->now_us;
	answer->check.cost = cost_of(&passage.route->config->cost, &passage.view);
	if (!identify(&passage) || answer->check.count == 0)
		return 0;
	if (decide_check(world, answer, err) != 0)
		return -1;
	settle(&passage);
	return 0;
}

void
world_end(struct world *world, const struct check *check)
{
	for (unsigned i = 0; i < check->count; i++) {
		if (!check->items[i].limit->has_leases)
			continue;
		store_release(world->store, &check->items[i], check->lease);
	}
}
