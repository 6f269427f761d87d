/* The head of an HTTP request, as far as a server of a few pages needs it. Private to the room. */
#ifndef WEIR_LOOP_HTTP_REQUEST_H
#define WEIR_LOOP_HTTP_REQUEST_H

#include "weir/err.h"
#include "weir/slice.h"

struct http_request {
	bool is_head, is_1_0;
	bool keep; /* the client wants the connection for more */
	struct slice path; /* as it came, without its query; in the head */
};

/* Where the head ends, with the empty line behind it; 0: it is not whole. */
size_t http_head_len(struct slice input);

/* The status to refuse it with, or 0: it is sound, and has no body. */
unsigned http_parse(struct slice head, struct http_request *out) WEIR_MUST_CHECK;

#endif
