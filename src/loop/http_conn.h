/* The connections of the HTTP server. Private to the room. */
#ifndef WEIR_LOOP_HTTP_CONN_H
#define WEIR_LOOP_HTTP_CONN_H

#include "weir/http_server.h"
#include "weir/listener.h"
#include "weir/stream.h"

enum http_state { HTTP_READING, HTTP_ANSWERING, HTTP_LINGERING };

struct http_conn {
	struct http_server *server;
	struct http_conn *next, **at;
	struct stream *stream;
	enum http_state state;
	struct buf head;
	struct buf body; /* what is not yet queued of an answer */
	bool keep;
	bool ended; /* the client sends no more */
};

struct http_server {
	struct loop *loop;
	int fd;
	struct listener *listener;
	struct http_conn *first, **end;
	unsigned count;
	bool paused;
	http_fn *fn;
	void *context;
};

/* ---- http_server.c: how many there are ---- */

/* Puts it behind all others of its server's list. */
void http_server_append(struct http_conn *conn);
void http_server_remove(struct http_conn *conn);

/* After a connection's state has changed, or it has gone: whether there is room for another. */
void http_server_look(struct http_server *server);

/* ---- http_conn.c: what one does ---- */

/* Takes the descriptor. Without memory it is closed. */
void http_conn_open(struct http_server *server, int fd);

/* Closes, frees, and takes it out of the list. */
void http_conn_close(struct http_conn *conn);

/* Nothing of an answer is left to be sent. */
bool http_conn_is_idle(const struct http_conn *conn);

#endif
