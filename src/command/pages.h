/* /metrics and /healthz over HTTP, on the main thread. Private to the room. */
#ifndef WEIR_COMMAND_PAGES_H
#define WEIR_COMMAND_PAGES_H

#include "weir/address.h"
#include "weir/loop.h"
#include "weir/report.h"

struct pages;

enum health { HEALTH_OK, HEALTH_DEGRADED, HEALTH_STOPPING };
typedef enum health health_fn(void *context);

/* The pointers must last. */
struct pages_settings {
	struct loop *loop;
	const struct address *address;
	struct report *report;
	bool is_spawned; /* one of several processes that a web server starts: the first has the
			    address */
	health_fn *health;
	void *context;
};

/* NULL: no memory. An address that cannot be had is told in the log and tried again: it must not
 * keep weir from serving. */
struct pages *pages_open(const struct pages_settings *settings, struct err *err) WEIR_MUST_CHECK;

/* Removes the file of its unix socket. NULL is let pass. */
void pages_close(struct pages *pages);

#endif
