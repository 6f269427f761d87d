/* The parts of `weir serve`, and how they are given another configuration. Private to the room. */
#ifndef WEIR_COMMAND_SERVE_H
#define WEIR_COMMAND_SERVE_H

#include "cgi.h"
#include "pages.h"
#include "sockets.h"
#include "worker.h"

#include "weir/breaker.h"

enum { WORKERS_MAX = 64 };

struct serve {
	const char *file;
	struct loop *loop;
	struct snapshot *first; /* what needs a restart to change is as it says */
	struct snapshot *current;
	struct sockets sockets;
	struct log_sink *log;
	struct memory *memory;
	struct report *report;
	struct breaker *breaker; /* to be looked at only; NULL without [redis] */
	struct pages *pages; /* NULL without metrics */
	struct gate_commons *commons;
	struct gate_shared shared;
	struct worker *workers[WORKERS_MAX];
	unsigned worker_count, empty_count;
	struct timer *tick, *drain;
	enum memory_file memory_file; /* as it was told last */
	bool draining;
	struct cgi *cgi; /* NULL: we are no CGI program, or it has not begun */
	bool is_cgi;
	counter_cell reloads[2]; /* refused, done */
};

/* Looks at the breaker of the Redis that is used from now on. */
int serve_attach_breaker(struct serve *serve, struct err *err) WEIR_MUST_CHECK;

bool serve_breaker_is_open(const struct serve *serve);

/* What is looked at only when somebody asks for the metrics. */
int serve_add_gauges(struct serve *serve, struct err *err) WEIR_MUST_CHECK;

/* Reads the configuration anew; a wrong one changes nothing. */
void serve_reload(struct serve *serve);

/* ---- memory_file.c ---- */

/* From now on the process ends with a sentence where the memory's file has been cut. Once. */
void serve_handle_bus_errors(const struct serve *serve);

/* Tells what has become of the file. */
void serve_look_at_memory(struct serve *serve);

#endif
