/* What operators see: the metrics page, and the log of rejections. */
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include "weir/buf.h"
#include "weir/decision.h"
#include "weir/err.h"
#include "weir/log_sink.h"

struct report;

/* `reject_log`: a file of its own for rejections, or NULL: they go to the log, ten a second at the
 * most. */
struct report *
report_new(const char *reject_log, enum log_format format, struct err *err) WEIR_MUST_CHECK;
void report_free(struct report *report);

struct report_rejection {
	struct slice client; /* the address, or what REMOTE_ADDR said */
	struct slice route;
	struct slice method, path;
	struct slice identity; /* the bucket's name; secrets in it are hashed */
	const struct outcome *outcome;
	int64_t retry_after_s;
	bool is_enforced;
};

/* From any thread. */
void report_rejected(struct report *report, const struct report_rejection *rejection);

/* Lines that the file of rejections did not take, since the last call. */
uint64_t report_take_dropped(struct report *report);

/* A gauge that is read when the page is made. From the main thread, before serving. */
typedef int64_t report_gauge_fn(void *context);
int report_add_gauge(struct report *report, const char *name, const char *help,
	report_gauge_fn *read, void *context) WEIR_MUST_CHECK;

/* The page in Prometheus' text format 0.0.4. -1: it does not fit. */
int report_metrics(struct report *report, struct buf *out) WEIR_MUST_CHECK;

#define REPORT_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

#endif
