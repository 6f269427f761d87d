/*
 * Commands: AUTH, SELECT and the script. lua/decide.lua says what its arguments mean.
 */
#include "redis_private.h"

#include "lua_scripts.h"
#include "weir/units.h"

enum {
	ARGS_MAX = 6 + 3 * CHECK_LIMITS_MAX + 3 * CHECK_POLICIES_MAX,
	KEY_MAX = 512,
	TEXT_SIZE = 24,
};

/* Arguments and the room that numbers and keys are written into. */
struct args {
	int count;
	const char *at[ARGS_MAX];
	size_t len[ARGS_MAX];
	char numbers[ARGS_MAX][TEXT_SIZE];
	char keys[CHECK_LIMITS_MAX][KEY_MAX];
};

static void
add(struct args *args, const char *text, size_t len)
{
	args->at[args->count] = text;
	args->len[args->count] = len;
	args->count++;
}

static void
add_text(struct args *args, const char *text)
{
	add(args, text, strlen(text));
}

static void
add_number(struct args *args, int64_t n)
{
	char *text = args->numbers[args->count];

	text[0] = '-';
	if (n < 0)
		add(args, text, 1 + uint_text((uint64_t)-n, text + 1));
	else
		add(args, text + 1, uint_text((uint64_t)n, text + 1));
}

/* Prefix, limit name and identity are bounded where they are made, far below KEY_MAX. */
static void
add_key(struct args *args, unsigned i, const char *prefix, struct slice name)
{
	char *key = args->keys[i];
	const struct slice first = slice_first(slice_of(prefix), KEY_MAX / 2);
	const struct slice second = slice_first(name, KEY_MAX / 2);

	memcpy(key, first.ptr, first.len);
	memcpy(key + first.len, second.ptr, second.len);
	add(args, key, first.len + second.len);
}

static void
add_script(struct args *args, bool whole, unsigned keys)
{
	if (whole) {
		add_text(args, "EVAL");
		add(args, lua_decide.text, lua_decide.len);
	} else {
		add_text(args, "EVALSHA");
		add(args, lua_decide.sha1, sizeof lua_decide.sha1 - 1);
	}
	add_number(args, keys);
}

/* What the request costs, in the policy's time; more than any bucket holds if it costs more than a
 * burst. */
static int64_t
need_of(const struct policy *policy, uint64_t cost)
{
	return cost <= policy->burst ? (int64_t)cost * policy->interval_us
				     : policy->capacity_us + 1;
}

static void
add_item(struct args *args, const struct check *check, const struct check_item *item)
{
	const struct limit *limit = item->limit;
	const int64_t count = limit->policy_count;

	if (check->count != 1 || count != 1 || item->shadow)
		add_number(args, item->shadow ? -count : count);
	add_text(args, limit->signature);
	for (unsigned i = 0; i < limit->policy_count; i++) {
		add_number(args, need_of(&limit->policies[i], check->cost));
		add_number(args, limit->policies[i].capacity_us);
	}
}

/* When it expires, on Redis's clock; the clock itself, negative, if the check brings its own. */
static int64_t
expires_of(const struct redis *redis, const struct check *check)
{
	if (check->now_us != 0)
		return -check->now_us;
	return redis->has_offset ? check->deadline_us + redis->offset_us : 0;
}

static void
add_check(struct args *args, const struct redis *redis, const struct call *call)
{
	const struct check *check = call->check;

	add_script(args, call->is_whole, check->count);
	for (unsigned i = 0; i < check->count; i++)
		add_key(args, i, redis->settings.prefix, check->items[i].key);
	add_number(args, expires_of(redis, check));
	for (unsigned i = 0; i < check->count; i++)
		add_item(args, check, &check->items[i]);
}

/* A check on a key of its own that does all that a client's does: it reads, writes and sets an
 * expiry. */
static void
add_probe(struct args *args, const struct redis *redis, const struct call *call)
{
	add_script(args, call->is_whole, 1);
	add_key(args, 0, redis->settings.prefix, SLICE("probe"));
	add_number(args, 0);
	add_text(args, "1");
	add_number(args, 1);
	add_number(args, US_PER_S);
}

int
command_send(struct redis *redis, const struct call *call)
{
	struct args args;
	char *command;

	args.count = 0;
	switch (call->kind) {
	case CALL_AUTH:
		add_text(&args, "AUTH");
		if (redis->settings.username != NULL)
			add_text(&args, redis->settings.username);
		add_text(&args, redis->settings.password);
		break;
	case CALL_SELECT:
		add_text(&args, "SELECT");
		add_number(&args, (int64_t)redis->settings.database);
		break;
	case CALL_PROBE:
		add_probe(&args, redis, call);
		break;
	case CALL_CHECK:
		add_check(&args, redis, call);
		break;
	}
	const long long len = redisFormatCommandArgv(&command, args.count, args.at, args.len);

	if (len < 0)
		return -1;
	stream_write(redis->stream, slice_make(command, (size_t)len));
	redisFreeCommand(command);
	return 0;
}
