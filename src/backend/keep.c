/*
 * Connections that are kept between two requests. Of each server there is a list, the one used last
 * first, so that those that are not needed grow old and go.
 *
 * A kept connection occupies a process of the application (a child of php-fpm serves nothing else
 * meanwhile), which another request may be waiting for. So none is kept while a request on a
 * connection of its own has not heard from the server; and as long as there are kept ones, requests
 * take them first. What no gateway can see, the requests of others, waits as long as a kept
 * connection may be idle, and that is short.
 */
#include "backend_private.h"

#include <assert.h>
#include <stdlib.h>

struct kept {
	struct kept *next, **at;
	struct server *server;
	struct stream *stream;
};

static void
leave(struct kept *kept)
{
	*kept->at = kept->next;
	if (kept->next != NULL)
		kept->next->at = kept->at;
	kept->server->pool->kept--;
	free(kept);
}

static void
drop(struct kept *kept)
{
	stream_close(kept->stream);
	leave(kept);
}

/* ---- what happens to one: whatever it is, it is the end ---- */

static void
on_input(void *context, struct slice data)
{
	(void)data;
	drop(context);
}

static void
on_end(void *context)
{
	drop(context);
}

static void
on_failed(void *context, int error)
{
	(void)error;
	drop(context);
}

static const struct stream_handler kept_handler = {
	.input = on_input, .eof = on_end, .drained = on_end, .failed = on_failed, .expired = on_end
};

/* ---- keeping ---- */

void
keep_put(struct server *server, struct stream *stream)
{
	struct backend_pool *pool = server->pool;
	struct kept *kept = NULL;

	if (pool->kept < pool->keep_max && server->unheard == 0)
		kept = malloc(sizeof *kept);
	if (kept == NULL) {
		stream_close(stream);
		return;
	}
	*kept = (struct kept){
		.next = server->kept, .at = &server->kept, .server = server, .stream = stream
	};
	if (kept->next != NULL)
		kept->next->at = &kept->next;
	server->kept = kept;
	pool->kept++;
	stream_hand_over(stream, &kept_handler, kept);
	stream_set_deadline(stream, loop_now_us(pool->loop) + pool->keep_us);
	stream_resume(stream);
}

struct stream *
keep_take(struct server *server)
{
	while (server->kept != NULL) {
		struct kept *kept = server->kept;
		struct stream *stream = kept->stream;

		/* It may have ended in this very turn. */
		if (stream_is_quiet(stream)) {
			leave(kept);
			return stream;
		}
		drop(kept);
	}
	return NULL;
}

void
keep_none(struct backend_pool *pool)
{
	pool->keep_max = 0;
	for (unsigned i = 0; i < pool->server_count; i++) {
		while (pool->servers[i].kept != NULL)
			drop(pool->servers[i].kept);
	}
	assert(pool->kept == 0);
}

/* ---- who waits for the server ---- */

void
keep_expect(struct exchange *exchange)
{
	exchange->is_unheard = true;
	exchange->server->unheard++;
}

void
keep_heard(struct exchange *exchange)
{
	if (!exchange->is_unheard)
		return;
	exchange->is_unheard = false;
	exchange->server->unheard--;
}
