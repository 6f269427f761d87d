/*
 * The way to a server: the addresses of its name, one after the other, with TLS where its address
 * says so.
 *
 * One that refuses costs nothing; one that swallows what is sent to it costs all the time that
 * there is, and behind one that takes connections there may be nobody. So each connection may begin
 * with another one.
 */
#include "redis_private.h"

#include "weir/socket.h"

#include <errno.h>
#include <string.h>

int
way_begin(struct way *way, const struct address *server)
{
	struct resolved at;

	way->tried = 0;
	if (socket_address(server, &at.address, &at.len) != 0)
		return -1;
	way_set(way, &at, 1);
	return 0;
}

void
way_set(struct way *way, const struct resolved *addresses, unsigned count)
{
	memcpy(way->addresses, addresses, count * sizeof addresses[0]);
	way->count = count;
}

bool
way_has_more(const struct way *way)
{
	return way->tried < way->count;
}

const struct resolved *
way_current(const struct way *way)
{
	return &way->addresses[(way->first + way->tried - 1) % way->count];
}

void
way_turn(struct way *way)
{
	way->first++;
}

static struct stream *
dial(struct loop *loop, const struct redis_settings *settings, const struct address *server,
	const struct resolved *at, const struct stream_handler *handler, void *context, int *error)
{
	const char *name = settings->tls_name != NULL ? settings->tls_name : server->host;
	struct stream *stream = stream_connect(
		loop, (const struct sockaddr *)&at->address, at->len, handler, context, error);

	if (stream == NULL || server->kind != ADDRESS_TLS)
		return stream;
	if (stream_start_tls(stream, settings->tls, name) == 0)
		return stream;
	stream_close(stream);
	*error = ENOMEM;
	return NULL;
}

struct stream *
redis_dial(struct loop *loop, const struct redis_settings *settings, const struct address *server,
	struct way *way, const struct stream_handler *handler, void *context, int *error)
{
	struct stream *stream = NULL;

	*error = 0;
	while (stream == NULL && way_has_more(way)) {
		way->tried++;
		stream = dial(loop, settings, server, way_current(way), handler, context, error);
	}
	return stream;
}
