/*
 * The arguments of the scripts. lua/decide.lua and lua/engine.lua say what they mean.
 */
#include "cluster_private.h"

#include "lua_scripts.h"
#include "weir/clock.h"
#include "weir/units.h"

void
args_add(struct args *args, const char *text, size_t len)
{
	args->at[args->count] = text;
	args->len[args->count] = len;
	args->count++;
}

void
args_add_text(struct args *args, const char *text)
{
	args_add(args, text, strlen(text));
}

void
args_add_number(struct args *args, int64_t n)
{
	char *text = args->numbers[args->count];

	text[0] = '-';
	if (n < 0)
		args_add(args, text, 1 + uint_text((uint64_t)-n, text + 1));
	else
		args_add(args, text + 1, uint_text((uint64_t)n, text + 1));
}

static size_t
append(char *out, size_t at, struct slice text)
{
	memcpy(out + at, text.ptr, text.len);
	return at + text.len;
}

/* Prefix, limit name and identity are bounded where they are made, far below the room. */
struct slice
redis_key(const char *prefix, bool is_in_cluster, struct slice name, char out[REDIS_KEY_MAX])
{
	const struct slice whole = slice_first(name, REDIS_KEY_MAX / 2 - 2);
	const size_t colon = slice_find(whole, ':');
	size_t len = append(out, 0, slice_first(slice_of(prefix), REDIS_KEY_MAX / 2));

	if (!is_in_cluster || colon == whole.len)
		return slice_make(out, append(out, len, whole));
	len = append(out, len, slice_first(whole, colon + 1));
	out[len++] = '{';
	len = append(out, len, slice_skip(whole, colon + 1));
	out[len++] = '}';
	return slice_make(out, len);
}

static void
add_key(struct args *args, const struct redis *redis, struct slice name)
{
	const struct slice key = redis_key(
		redis->settings.prefix, redis->node != NULL, name, args->key_room[args->keys++]);

	args_add(args, key.ptr, key.len);
}

void
args_add_script(struct args *args, enum script script, bool whole)
{
	static const struct lua_script *const scripts[SCRIPTS] = {
		[SCRIPT_DECIDE] = &lua_decide,
		[SCRIPT_ENGINE] = &lua_engine,
		[SCRIPT_GIVE_BACK] = &lua_give_back,
	};

	args_add_text(args, whole ? "EVAL" : "EVALSHA");
	if (whole)
		args_add(args, scripts[script]->text, scripts[script]->len);
	else
		args_add(args, scripts[script]->sha1, sizeof scripts[script]->sha1 - 1);
}

enum script
script_of(const struct check *check)
{
	if (check->lease == LEASE_PEEK)
		return SCRIPT_GIVE_BACK;
	if (check->lease == LEASE_LOOK)
		return SCRIPT_ENGINE;
	for (unsigned i = 0; i < check->count; i++) {
		if (!check->items[i].limit->is_plain || check->items[i].overflow.len > 0)
			return SCRIPT_ENGINE;
	}
	return SCRIPT_DECIDE;
}

/* When it expires, on Redis's clock; the clock itself, negative, if the check brings its own. */
static int64_t
expires_of(const struct redis *redis, const struct check *check)
{
	if (check->now_us != 0)
		return -check->now_us;
	return redis->has_offset ? check->deadline_us + redis->offset_us : 0;
}

/* ---- lua/decide.lua ---- */

/* What the request costs, in the policy's time; more than any bucket holds if it costs more than a
 * burst. */
static int64_t
need_of(const struct policy *policy, uint64_t cost)
{
	return cost <= policy->burst ? (int64_t)cost * policy->interval_us
				     : policy->capacity_us + 1;
}

static void
add_plain_item(struct args *args, const struct check *check, const struct check_item *item)
{
	const struct limit *limit = item->limit;
	const int64_t count = limit->policy_count;

	if (check->count != 1 || count != 1 || item->shadow)
		args_add_number(args, item->shadow ? -count : count);
	args_add_text(args, limit->signature);
	for (unsigned i = 0; i < limit->policy_count; i++) {
		args_add_number(args, need_of(&limit->policies[i], check->cost));
		args_add_number(args, limit->policies[i].capacity_us);
	}
}

static void
add_plain_check(struct args *args, const struct redis *redis, const struct check *check)
{
	args_add_number(args, check->count);
	for (unsigned i = 0; i < check->count; i++)
		add_key(args, redis, check->items[i].key);
	args_add_number(args, expires_of(redis, check));
	for (unsigned i = 0; i < check->count; i++)
		add_plain_item(args, check, &check->items[i]);
}

/* A check on a key of its own that does all that a client's does: it reads, writes and sets an
 * expiry. */
void
args_add_probe(struct args *args, const struct redis *redis)
{
	char name[PROBE_NAME_SIZE];

	args_add_number(args, 1);
	add_key(args, redis,
		redis->node == NULL ? SLICE("probe") : node_probe_name(redis->node, name));
	args_add_number(args, 0);
	args_add_text(args, "1");
	args_add_number(args, 1);
	args_add_number(args, US_PER_S);
}

/* Any server of a cluster takes it, whatever keys it has, and tells its clock. */
void
args_add_bare_probe(struct args *args)
{
	args_add_number(args, 0);
	args_add_number(args, 0);
}

/* ---- lua/engine.lua ---- */

static void
add_period_ends(struct args *args, struct redis *redis, enum calendar_period period, int64_t now_us)
{
	int64_t *ends = redis->period_ends[period].at;

	if (now_us < ends[0] || now_us >= ends[1])
		calendar_ends(period, now_us, ends);
	for (unsigned i = 0; i < 3; i++)
		args_add_number(args, ends[i]);
}

static void
add_policy(struct args *args, struct redis *redis, const struct policy *policy, int64_t now_us)
{
	args_add_text(args, algorithms[policy->algorithm]->name);
	args_add_number(args, policy->shadow ? -(int64_t)policy->burst : (int64_t)policy->burst);
	args_add_number(args, policy->interval_us);
	if (policy->algorithm == POLICY_CALENDAR)
		add_period_ends(args, redis, policy->period, now_us);
}

/* The periods of the calendar are those of our clock. */
static void
add_item(struct args *args, struct redis *redis, const struct check_item *item, int64_t now_us)
{
	const struct limit *limit = item->limit;
	const int64_t count = limit->policy_count;

	args_add_number(args, item->shadow ? -count : count);
	args_add_number(args, item->overflow.len == 0);
	args_add_text(args, limit->signature);
	for (unsigned i = 0; i < limit->policy_count; i++)
		add_policy(args, redis, &limit->policies[i], now_us);
}

static void
add_item_keys(struct args *args, const struct redis *redis, const struct check_item *item)
{
	add_key(args, redis, item->key);
	if (item->overflow.len > 0)
		add_key(args, redis, item->overflow);
}

static unsigned
keys_of(const struct check_item *items, unsigned count)
{
	unsigned keys = count;

	for (unsigned i = 0; i < count; i++)
		keys += items[i].overflow.len > 0;
	return keys;
}

/* ---- lua/give_back.lua ---- */

/* The second is in the slot of the first, and no bucket's: nobody is called so. */
static void
add_give_back_keys(struct args *args, const struct redis *redis, struct slice name)
{
	args_add_number(args, 2);
	add_key(args, redis, name);
	char *second = args->key_room[args->keys++];
	const size_t last = (size_t)args->count - 1;
	const size_t len = append(second, 0, slice_make(args->at[last], args->len[last]));

	args_add(args, second, append(second, len, SLICE("#")));
}

/* The policies that may reject all admit, so what else the limit has was spent. */
static bool
admits(const struct limit *limit, const struct outcome *outcomes)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (outcomes[i].violated && !limit->policies[i].shadow)
			return false;
	}
	return true;
}

void
args_add_give_back(struct args *args, const struct redis *redis, const struct check_item *item,
	const struct outcome *spent, int64_t taken_us, uint64_t cost)
{
	const struct limit *limit = item->limit;
	const bool all = admits(limit, spent);

	add_give_back_keys(args, redis, item->key);
	args_add_number(args, 0);
	args_add_number(args, taken_us);
	args_add_number(args, (int64_t)(cost < INT64_MAX ? cost : INT64_MAX));
	args_add_number(args, limit->policy_count);
	args_add_text(args, limit->signature);
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];
		const bool is_spent = !spent[i].violated && (all || policy->shadow);

		args_add_text(args, algorithms[policy->algorithm]->name);
		args_add_number(args, is_spent ? taken_us + spent[i].reset_us : 0);
	}
}

static void
add_peek(struct args *args, const struct redis *redis, const struct check *check)
{
	/* One key, or a slot that is being moved would answer for neither of two. */
	args_add_number(args, 1);
	add_key(args, redis, check->items[0].key);
	for (unsigned i = 0; i < 3; i++)
		args_add_number(args, 0); /* of no request */
	args_add_number(args, 0);
	args_add_text(args, "");
}

/* ---- whichever ---- */

static void
add_engine_check(struct args *args, struct redis *redis, const struct check *check)
{
	const int64_t now_us = check->now_us != 0 ? check->now_us : clock_wall_us();

	args_add_number(args, keys_of(check->items, check->count));
	for (unsigned i = 0; i < check->count; i++)
		add_item_keys(args, redis, &check->items[i]);
	args_add_number(args, expires_of(redis, check));
	args_add_number(args, (int64_t)(check->cost < INT64_MAX ? check->cost : INT64_MAX));
	args_add_number(args, (int64_t)check->lease);
	for (unsigned i = 0; i < check->count; i++)
		add_item(args, redis, &check->items[i], now_us);
}

void
args_add_check(struct args *args, struct redis *redis, const struct check *check)
{
	switch (script_of(check)) {
	case SCRIPT_DECIDE:
		add_plain_check(args, redis, check);
		break;
	case SCRIPT_ENGINE:
		add_engine_check(args, redis, check);
		break;
	case SCRIPT_GIVE_BACK:
		add_peek(args, redis, check);
		break;
	case SCRIPTS:
		break;
	}
}

void
args_add_lease(struct args *args, struct redis *redis, const struct check_item *item,
	uint64_t lease, bool renew)
{
	args_add_number(args, keys_of(item, 1));
	add_item_keys(args, redis, item);
	args_add_number(args, 0);
	args_add_number(args, renew ? -1 : 0);
	args_add_number(args, (int64_t)lease);
	add_item(args, redis, item, clock_wall_us());
}
