/*
 * How much is under way, and its bounds: of each server, and of all servers of a cluster together.
 * A cluster's servers are named by its servers, so there are as many as they like to say, and what
 * bounds one of them would not bound them all. What is kept is kept.c's.
 */
#include "cluster_private.h"

void
store_count_reply(struct redis *redis, size_t bytes)
{
	struct load *load = redis->load;

	if (load != NULL)
		load->reply_bytes = load->reply_bytes - redis->reply_bytes + bytes;
	redis->reply_bytes = bytes;
}

/* Counted by ourselves: the reader keeps what it has read of an array as objects. Of a cluster's
 * servers that all tell and tell, each is one too many from then on. */
bool
store_hears_too_much(const struct redis *redis, size_t max)
{
	const struct load *load = redis->load;

	if (redis->reply_bytes > max)
		return true;
	return redis->reply_bytes > 0 && load != NULL && load->reply_bytes > CLUSTER_REPLIES_MAX;
}

static bool
has_cluster_room(const struct load *load)
{
	return load->calls - load->kept < CLUSTER_CALLS_MAX && load->bytes < CLUSTER_BYTES_MAX;
}

/* Also those that nobody waits for any more: they still hold memory. */
bool
store_has_room(const struct redis *redis)
{
	if (redis->load != NULL && !has_cluster_room(redis->load))
		return false;
	return redis->waiting.count + redis->sent.count < CHECKS_MAX &&
		(redis->stream == NULL || stream_queued(redis->stream) < QUEUED_MAX);
}
