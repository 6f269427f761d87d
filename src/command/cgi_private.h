/* Between cgi.c and cgi_pump.c. */
#ifndef WEIR_COMMAND_CGI_PRIVATE_H
#define WEIR_COMMAND_CGI_PRIVATE_H

#include "weir/fcgi.h"
#include "weir/units.h"

/* The kernel gives no program a larger environment than a quarter of the stack. */
enum { CGI_REQUEST_ID = 1, CGI_REQUEST_MAX = 16 * 1024 * 1024 };

/* BEGIN_REQUEST and PARAMS of it. -1: a variable is too long for a record, or no memory. */
int cgi_put_request(struct buf *out, char *const *environment) WEIR_MUST_CHECK;

/* How much of standard input is the body; UINT64_MAX: all of it. */
uint64_t cgi_body_length(void);

#endif
