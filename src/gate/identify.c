/*
 * Which limits apply to a request, and who is counted by each: exceptions first, then identities,
 * then the shard of a hot one.
 */
#include "gate_private.h"

#include "weir/log.h"

static unsigned
random_below(unsigned count)
{
	uint32_t number;

	hash_random(&number, sizeof number);
	return number % count;
}

/*
 * A limit lets the request not pass, and is not enforced. If that is the limit's own matter, the
 * others go on as if it were not there; else they count what they would if all were enforced, which
 * is nothing, and the request is passed on. False: it was.
 */
static bool
go_on(struct gate_request *request, const struct limit *limit, enum gate_outcome would)
{
	if (!limit->enforce) {
		request_would(request, would);
		return true;
	}
	request_pass(request, would);
	return false;
}

/* False: the request is settled. */
static bool
block(struct gate_request *request, const struct limit *limit,
	const struct config_override *override)
{
	const bool is_enforced = request->plant->snapshot->config->enforce && limit->enforce;

	counter_add(limit->results[is_enforced ? LIMIT_BLOCKED : LIMIT_WOULD_BLOCK], 1);
	settle_block(request, override, is_enforced);
	if (!is_enforced)
		return go_on(request, limit, OUTCOME_WOULD_BLOCK);
	request->outcome = OUTCOME_BLOCKED;
	answer_error(request, 403, "This request is blocked.", 0);
	return false;
}

/* Nobody is named whom the limit could count. False: the request is settled. */
static bool
refuse_unidentified(struct gate_request *request, const struct limit *limit)
{
	const bool is_enforced = request->plant->snapshot->config->enforce && limit->enforce;

	counter_add(limit->results[is_enforced ? LIMIT_REFUSED : LIMIT_WOULD_REFUSE], 1);
	settle_refused(request, "on_missing = reject", 403, limit, is_enforced);
	if (!is_enforced)
		return go_on(request, limit, OUTCOME_WOULD_REFUSE);
	request->outcome = OUTCOME_UNIDENTIFIED;
	answer_error(request, 403, "This request does not say who it comes from.", 0);
	return false;
}

static bool
no_memory(struct gate_request *request)
{
	request->outcome = OUTCOME_BUSY;
	settle_refused(request, "no memory", 503, NULL, true);
	answer_error(request, 503, GATE_BUSY_DETAIL, GATE_BUSY_RETRY_S);
	return false;
}

/* The item's key, without its shard. The result is that of identity_key, where no more is to be
 * done for SKIP and REJECT. */
static enum identity_result
find_identity(struct gate_request *request, struct asker *asker, const struct config_limit *limit,
	struct slice *key)
{
	struct gate *gate = request->gate;
	const enum identity_result result =
		identity_key(asker, limit, front_arena(request->front), key);

	if (result == IDENTITY_NO_ADDRESS) {
		counter_add(COUNT_ADDRESS_MISSING, 1);
		gate_log_once_a_minute(gate, &gate->address_log,
			"A request came without a usable REMOTE_ADDR; all such requests share one "
			"bucket. Does the web "
			"server send it?");
	}
	return result;
}

static bool
add_item(struct gate_request *request, unsigned index, const struct limit *limit, struct slice key)
{
	struct check_item *item = &request->check.items[request->check.count];
	struct gate_item *ours = &request->items[request->check.count];

	*ours = (struct gate_item){ .limit = index, .identity = key };
	*item = (struct check_item){ .limit = limit, .key = key, .shadow = !limit->enforce };
	if (limit->shards > 1) {
		item->key =
			shards_key(front_arena(request->front), key, random_below(limit->shards));
		if (item->key.ptr == NULL)
			return no_memory(request);
	}
	if (limit->has_leases && request->check.lease == 0)
		request->check.lease = lease_draw();
	request->check.count++;
	return true;
}

/* True: the check has the limit's bucket, or the limit does not apply. False: the request is
 * settled. */
static bool
add_limit(struct gate_request *request, struct asker *asker, const struct limit *limit)
{
	const struct snapshot *snapshot = request->plant->snapshot;
	const unsigned index = (unsigned)(limit - snapshot->limits);
	const struct config_limit *config = snapshot->config->limits[index];
	const int override = config->override_count == 0 ? -1 : overrides_find(asker, config);
	struct slice key;

	if (override >= 0 && snapshot->config->overrides[override]->exempt)
		return true;
	if (override >= 0 && snapshot->config->overrides[override]->block)
		return block(request, limit, snapshot->config->overrides[override]);
	switch (find_identity(request, asker, config, &key)) {
	case IDENTITY_FOUND:
	case IDENTITY_NO_ADDRESS:
		break;
	case IDENTITY_SKIP:
		return true;
	case IDENTITY_REJECT:
		return refuse_unidentified(request, limit);
	case IDENTITY_NO_MEMORY:
		return no_memory(request);
	}
	if (!add_item(request, index, override >= 0 ? snapshot->plans[override] : limit, key))
		return false;
	if (override >= 0)
		request->items[request->check.count - 1].override =
			snapshot->config->overrides[override]->name;
	return true;
}

bool
identify(struct gate_request *request)
{
	const struct snapshot *snapshot = request->plant->snapshot;
	const struct snapshot_route *route = request->route;
	struct asker asker;

	if (route_exempts(
		    snapshot->routes, (unsigned)(route - snapshot->route_list), &request->view))
		return true;
	asker_init(&asker, &request->view, route->config, snapshot->overrides,
		snapshot->has_hash_key ? snapshot->hash_key : NULL);
	asker.backend = snapshot->config->backends[request->backend];
	for (unsigned i = 0; i < route->limit_count; i++) {
		if (!add_limit(request, &asker, route->limits[i]))
			return false;
	}
	request->check.cost = cost_of(&route->config->cost, &request->view);
	return true;
}
