/*
 * Commands as they are sent: AUTH, SELECT and the scripts.
 *
 * A check is asked for as long as somebody waits for it, so its command is made anew each time that
 * it is sent. A lease is given back by somebody who is gone when the command is sent, perhaps a
 * second time because the script was not there; so its arguments are kept.
 */
#include "redis_private.h"

#include "weir/units.h"

static void
args_init(struct args *args)
{
	args->count = 0;
	args->keys = 0;
}

static long long
format(char **command, struct args *args)
{
	return redisFormatCommandArgv(command, args->count, args->at, args->len);
}

static int
keep(struct call *call, struct args *args)
{
	const long long len = format(&call->arguments, args);

	if (len < 0) {
		call->arguments = NULL;
		return -1;
	}
	call->arguments_len = (size_t)len;
	call->argument_count = (unsigned)args->count;
	return 0;
}

int
command_keep_lease(struct redis *redis, struct call *call, const struct check_item *item,
	uint64_t lease, bool renew)
{
	struct args args;

	args_init(&args);
	args_add_lease(&args, redis, item, lease, renew);
	return keep(call, &args);
}

int
command_keep_give_back(struct redis *redis, struct call *call, const struct check_item *item,
	const struct outcome *spent, int64_t taken_us, uint64_t cost)
{
	struct args args;

	args_init(&args);
	args_add_give_back(&args, redis, item, spent, taken_us, cost);
	return keep(call, &args);
}

/* What was kept is an array, and so is the name of the script; they become one of both. */
static int
send_kept(struct redis *redis, struct call *call)
{
	char count[UINT_TEXT_SIZE], *script;
	struct args args;
	const struct slice kept = slice_make(call->arguments, call->arguments_len);

	args_init(&args);
	args_add_script(&args, call->script, call->is_whole);
	const size_t digits = uint_text((uint64_t)args.count + call->argument_count, count);
	const long long len = format(&script, &args);

	if (len < 0)
		return -1;
	const struct slice name = slice_make(script, (size_t)len);

	stream_write(redis->stream, SLICE("*"));
	stream_write(redis->stream, slice_make(count, digits));
	stream_write(redis->stream, slice_skip(name, slice_find(name, '\r')));
	stream_write(redis->stream, slice_skip(kept, slice_find(kept, '\n') + 1));
	redisFreeCommand(script);
	call_weigh(call, (size_t)len + kept.len);
	return 0;
}

static void
add_command(struct args *args, struct redis *redis, const struct call *call)
{
	switch (call->kind) {
	case CALL_AUTH:
		args_add_text(args, "AUTH");
		if (redis->settings.username != NULL)
			args_add_text(args, redis->settings.username);
		args_add_text(args, redis->settings.password);
		break;
	case CALL_SELECT:
		args_add_text(args, "SELECT");
		args_add_number(args, (int64_t)redis->settings.database);
		break;
	case CALL_ROLE:
		args_add_text(args, "ROLE");
		break;
	case CALL_HELLO:
		args_add_text(args, "HELLO");
		break;
	case CALL_PROBE:
		args_add_script(args, call->script, call->is_whole);
		if (call->is_bare)
			args_add_bare_probe(args);
		else
			args_add_probe(args, redis);
		break;
	case CALL_SLOTS:
		args_add_text(args, "CLUSTER");
		args_add_text(args, "SLOTS");
		break;
	case CALL_ASKING:
		args_add_text(args, "ASKING");
		break;
	case CALL_CHECK:
		args_add_script(args, call->script, call->is_whole);
		args_add_check(args, redis, call->check);
		break;
	case CALL_RELEASE:
	case CALL_RENEWAL:
	case CALL_GIVE_BACK:
		break;
	}
}

int
command_send(struct redis *redis, struct call *call)
{
	struct args args;
	char *command;

	if (call->arguments != NULL)
		return send_kept(redis, call);
	args_init(&args);
	add_command(&args, redis, call);
	const long long len = format(&command, &args);

	if (len < 0)
		return -1;
	stream_write(redis->stream, slice_make(command, (size_t)len));
	redisFreeCommand(command);
	call_weigh(call, (size_t)len);
	return 0;
}
