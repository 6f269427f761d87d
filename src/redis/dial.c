/* One socket's way to a server, with TLS where its address says so. */
#include "redis_private.h"

#include <errno.h>

struct stream *
redis_dial(struct loop *loop, const struct redis_settings *settings, const struct address *server,
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
