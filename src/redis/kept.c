/*
 * Places of concurrent policies that cannot be given back now, since the connection is away or the
 * breaker is open. They are kept until they can, or until their leases are over. A lease that is
 * given back twice is given back once, so one whose answer was lost with its connection is kept as
 * well.
 *
 * When the connection is ready they are sent a few at a time, the next one with each answer, so
 * that the checks behind them still come in time. What the server refuses for the moment comes back
 * here and is tried again after a pause.
 *
 * A connection that we have closed may have checks on their way that the server still decides, in
 * between what we send over the next one. It does so by their deadlines and not later; so what is
 * kept waits for these, and no place is given back before it is taken.
 */
#include "cluster_private.h"

enum { AT_A_TIME = 16, PAUSE_US = 100000 };

static size_t
size_of(const struct call *call)
{
	return sizeof *call + call->arguments_len;
}

/* Also among those of the whole cluster. */
static void
count(const struct call *call, int by)
{
	struct load *load = call->redis->load;

	if (load == NULL)
		return;
	load->kept += (unsigned)by;
	load->kept_bytes += (size_t)by * size_of(call);
}

static struct call *
take_first(struct kept *kept)
{
	struct call *call = call_pop(&kept->calls);

	if (call == NULL)
		return NULL;
	count(call, -1);
	kept->bytes -= size_of(call);
	return call;
}

static void
leave(struct call *call)
{
	call_left(call);
	call_free(call);
}

/* The first was kept for the longest time, so as a rule its lease is the first to end. */
static void
drop_over(struct redis *redis)
{
	struct kept *kept = &redis->kept;
	const int64_t now = loop_now_us(redis->loop);

	while (kept->calls.first != NULL && kept->calls.first->ends_us <= now)
		leave(take_first(kept));
}

static bool
is_usable(struct redis *redis)
{
	return redis->state == REDIS_READY && !breaker_is_open(redis->breaker);
}

static bool
has_room(const struct redis *redis, const struct call *call)
{
	const struct load *load = redis->load;
	const unsigned calls = load != NULL ? load->kept : redis->kept.calls.count;
	const size_t bytes = load != NULL ? load->kept_bytes : redis->kept.bytes;

	return calls < KEPT_MAX && bytes + size_of(call) <= KEPT_BYTES_MAX;
}

void
kept_put(struct redis *redis, struct call *call)
{
	struct kept *kept = &redis->kept;
	const int64_t now = loop_now_us(redis->loop), soon = now + PAUSE_US;

	kept_answered(redis, call);
	call->redis = redis;
	call->is_whole = false;
	while (!has_room(redis, call))
		leave(take_first(redis->node == NULL
				? kept
				: &nodes_first_kept(redis->node->cluster)->kept));
	kept->bytes += size_of(call);
	count(call, 1);
	call_push(&kept->calls, call);
	if (redis->state == REDIS_READY && kept->not_before_us < soon)
		kept->not_before_us = soon;
	if (!timer_is_set(kept->timer))
		timer_set(kept->timer, soon);
}

void
kept_send(struct redis *redis)
{
	struct kept *kept = &redis->kept;

	drop_over(redis);
	if (!is_usable(redis) || loop_now_us(redis->loop) < kept->not_before_us)
		return;
	/* What cannot be sent is put back at the end. */
	for (unsigned left = kept->calls.count; left > 0; left--) {
		if (kept->under_way >= AT_A_TIME || !store_has_room(redis))
			return;
		struct call *call = take_first(kept);

		call->was_kept = true;
		kept->under_way++;
		connection_send(redis, call);
	}
}

void
kept_answered(struct redis *redis, struct call *call)
{
	if (call->was_kept)
		redis->kept.under_way--;
	call->was_kept = false;
}

void
kept_wait_for_checks(struct redis *redis)
{
	for (const struct call *call = redis->sent.first; call != NULL; call = call->next) {
		const int64_t decided_us = call->sent_us + redis->settings.deadline_us;

		if (call->kind == CALL_CHECK && redis->kept.not_before_us < decided_us)
			redis->kept.not_before_us = decided_us;
	}
}

void
kept_take_all(struct redis *redis, struct call_list *calls)
{
	struct call *call;

	call_list_init(calls);
	while ((call = take_first(&redis->kept)) != NULL)
		call_push(calls, call);
}

/* Also when another process has closed the breaker, and when nobody asks for anything else. */
static void
on_time(void *context)
{
	struct redis *redis = context;

	drop_over(redis);
	if (redis->kept.calls.count == 0)
		return;
	timer_set(redis->kept.timer, loop_now_us(redis->loop) + PAUSE_US);
	if (!store_may_ask(redis))
		return;
	if (redis->state == REDIS_DOWN)
		connection_start(redis);
	else
		kept_send(redis);
}

void
kept_leave(struct redis *redis)
{
	const unsigned count = redis->kept.calls.count;

	if (count == 0)
		return;
	log_warn("Leases could not be given back to Redis: the places that they hold stay taken "
		 "until they end.",
		LOG_TEXT("server", redis->name), LOG_INT("leases", count));
	while (redis->kept.calls.count > 0)
		leave(take_first(&redis->kept));
}

int
kept_init(struct redis *redis)
{
	call_list_init(&redis->kept.calls);
	redis->kept.timer = timer_new(redis->loop, on_time, redis);
	return redis->kept.timer == NULL ? -1 : 0;
}

void
kept_release(struct redis *redis)
{
	struct call *call;

	while ((call = take_first(&redis->kept)) != NULL)
		call_free(call);
	timer_free(redis->kept.timer);
}
