/* libevent's HTTP server with the few bounds that it needs. */
#include "weir/http_server.h"

#include "loop_private.h"

#include <event2/buffer.h>
#include <event2/http.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 * 1024 * 1024, HEADERS_MAX = 8192, BODY_MAX = 4096, TIMEOUT_S = 10 };

struct http_server {
	struct evhttp *http;
	http_fn *fn;
	void *context;
};

static void
send_answer(struct evhttp_request *request, const struct http_answer *answer)
{
	/* libevent would send a body behind HEAD too, which the client takes for the next answer.
	 */
	const bool is_head = evhttp_request_get_command(request) == EVHTTP_REQ_HEAD;
	const struct slice bytes = buf_slice(&answer->body);
	struct evbuffer *body = evbuffer_new();
	char length[24];

	(void)snprintf(length, sizeof length, "%zu", bytes.len);
	if (body == NULL || (!is_head && evbuffer_add(body, bytes.ptr, bytes.len) != 0)) {
		evhttp_send_error(request, HTTP_INTERNAL, NULL);
	} else {
		struct evkeyvalq *headers = evhttp_request_get_output_headers(request);

		(void)evhttp_add_header(headers, "Content-Type", answer->content_type);
		(void)evhttp_add_header(headers, "Content-Length", length);
		(void)evhttp_add_header(headers, "Cache-Control", "no-store");
		evhttp_send_reply(request, answer->status, NULL, body);
	}
	if (body != NULL)
		evbuffer_free(body);
}

static void
on_request(struct evhttp_request *request, void *context)
{
	const struct http_server *server = context;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(request);
	const char *path = uri == NULL ? NULL : evhttp_uri_get_path(uri);
	struct http_answer answer = { .status = HTTP_NOTFOUND,
		.content_type = "text/plain; charset=utf-8" };

	buf_init(&answer.body, ANSWER_MAX);
	server->fn(server->context, path == NULL || path[0] == '\0' ? "/" : path, &answer);
	if (answer.status == HTTP_NOTFOUND && answer.body.len == 0 &&
		buf_printf(&answer.body, "not found\n") != 0)
		answer.status = HTTP_INTERNAL;
	send_answer(request, &answer);
	buf_release(&answer.body);
}

struct http_server *
http_server_new(struct loop *loop, int fd, http_fn *fn, void *context, struct err *err)
{
	struct http_server *server = calloc(1, sizeof *server);

	if (server != NULL)
		server->http = evhttp_new(loop_base(loop));
	if (server == NULL || server->http == NULL) {
		(void)err_set(err, "no memory for the metrics server");
		(void)close(fd);
		free(server);
		return NULL;
	}
	server->fn = fn;
	server->context = context;
	evhttp_set_allowed_methods(server->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(server->http, HEADERS_MAX);
	evhttp_set_max_body_size(server->http, BODY_MAX);
	evhttp_set_timeout(server->http, TIMEOUT_S);
	evhttp_set_gencb(server->http, on_request, server);
	if (evhttp_accept_socket(server->http, fd) != 0) {
		(void)err_set(err, "the metrics server cannot listen");
		(void)close(fd);
		http_server_free(server);
		return NULL;
	}
	return server;
}

void
http_server_free(struct http_server *server)
{
	if (server == NULL)
		return;
	evhttp_free(server->http);
	free(server);
}
