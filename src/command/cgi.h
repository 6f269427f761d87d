/* weir as a CGI program (RFC 3875): one request, and the end. Private to the room. */
#ifndef WEIR_COMMAND_CGI_H
#define WEIR_COMMAND_CGI_H

#include "weir/err.h"
#include "weir/loop.h"

#include <stdbool.h>

/* Whether a web server has started us for one request: its environment says so. That sockets were
 * inherited matters more (sockets.h). */
bool cgi_is_asked(void);

/*
 * Whether the arguments are no operator's: what a web server makes of a query without "=" (RFC 3875
 * section 4.4), which is the client's, or the path of the script, which lighttpd puts there.
 */
bool cgi_arguments_are_foreign(int argc, char **argv);

/* What is answered when there is nobody to answer; on standard output. */
void cgi_answer_error(unsigned status, const char *reason);

struct cgi;

/* In `loop`, once: the answer has been written, or nobody takes it. */
typedef void cgi_done_fn(void *context);

/* Begins the conversation. *fd is the gateway's end of it, and the caller's. */
struct cgi *cgi_start(struct loop *loop, cgi_done_fn *done, void *context, int *fd,
	struct err *err) WEIR_MUST_CHECK;

bool cgi_is_over(const struct cgi *cgi);

/* When it is over. True if the answer was whole. */
bool cgi_end(struct cgi *cgi);

#endif
