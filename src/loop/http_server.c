/*
 * HTTP for a few local clients. libevent's server is not used: it has no bound on its connections,
 * and when descriptors run out it neither rests nor tells.
 *
 * The connections stand in one list, the longest idle first: when there are as many as there may
 * be, it goes for a new one; when all are being answered, new ones wait at the socket.
 */
#include "http_conn.h"

#include <stdlib.h>
#include <unistd.h>

enum { ACCEPT_BATCH = 16 };

void
http_server_append(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	conn->next = NULL;
	conn->at = server->end;
	*server->end = conn;
	server->end = &conn->next;
	server->count++;
}

void
http_server_remove(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	*conn->at = conn->next;
	if (conn->next != NULL)
		conn->next->at = conn->at;
	else
		server->end = conn->at;
	server->count--;
}

/* NULL: all are being answered. */
static struct http_conn *
longest_idle(const struct http_server *server)
{
	struct http_conn *conn = server->first;

	while (conn != NULL && !http_conn_is_idle(conn))
		conn = conn->next;
	return conn;
}

void
http_server_look(struct http_server *server)
{
	const bool full = server->count >= HTTP_CONNECTIONS_MAX && longest_idle(server) == NULL;

	if (full == server->paused)
		return;
	server->paused = full;
	if (full)
		listener_pause(server->listener);
	else
		listener_resume(server->listener);
}

static void
on_accept(void *context, int fd)
{
	struct http_server *server = context;

	if (server->count >= HTTP_CONNECTIONS_MAX && longest_idle(server) != NULL)
		http_conn_close(longest_idle(server));
	http_conn_open(server, fd);
}

struct http_server *
http_server_new(struct loop *loop, int fd, http_fn *fn, void *context, struct err *err)
{
	struct http_server *server = calloc(1, sizeof *server);

	if (server != NULL)
		server->listener = listener_new(loop, fd, ACCEPT_BATCH, on_accept, server);
	if (server == NULL || server->listener == NULL) {
		(void)err_set(err, "no memory for the metrics server");
		(void)close(fd);
		free(server);
		return NULL;
	}
	server->loop = loop;
	server->fd = fd;
	server->end = &server->first;
	server->fn = fn;
	server->context = context;
	return server;
}

void
http_server_free(struct http_server *server)
{
	if (server == NULL)
		return;
	while (server->first != NULL)
		http_conn_close(server->first);
	listener_free(server->listener);
	(void)close(server->fd);
	free(server);
}
