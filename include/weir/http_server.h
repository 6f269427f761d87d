/*
 * A small HTTP server for metrics and status: GET and HEAD, of requests without a body. For
 * operators on loopback or a unix socket, never for clients; but whoever may connect must not be
 * able to keep weir from serving. So there are HTTP_CONNECTIONS_MAX connections at the most, the
 * longest idle one goes for a new one, and none is silent or slow for more than ten seconds.
 */
#ifndef WEIR_HTTP_SERVER_H
#define WEIR_HTTP_SERVER_H

#include "weir/buf.h"
#include "weir/err.h"
#include "weir/loop.h"

struct http_server;

enum { HTTP_CONNECTIONS_MAX = 64 };

struct http_answer {
	int status;
	const char *content_type;
	struct buf body; /* with its maximum set; released by the server */
};

/* Fills the answer for GET or HEAD of a path (without its query). Status is 404 if it is left
 * alone. */
typedef void http_fn(void *context, const char *path, struct http_answer *answer);

/* Serves on a listening descriptor, which it takes. */
struct http_server *http_server_new(
	struct loop *loop, int fd, http_fn *fn, void *context, struct err *err) WEIR_MUST_CHECK;
void http_server_free(struct http_server *server);

#endif
