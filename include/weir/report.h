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

/* The form of the file's lines from now on. From any thread. */
void report_set_format(struct report *report, enum log_format format);

struct report_rejection {
	struct slice client; /* the address, or what REMOTE_ADDR said */
	struct slice route;
	struct slice method, path;
	struct slice identity; /* the bucket's name; secrets in it are hashed */
	struct slice override; /* whose policies are in force; empty: the limit's own are */
	uint64_t cost; /* of the request */
	const struct outcome *outcome;
	int64_t retry_after_s;
	bool is_enforced;
};

/* From any thread. */
void report_rejected(struct report *report, const struct report_rejection *rejection);

/* By an override that says `block`: nobody was counted. */
struct report_block {
	struct slice client, route, limit, override;
	struct slice method, path;
	bool is_enforced;
};

void report_blocked(struct report *report, const struct report_block *block);

/*
 * Not decided by any policy: the store is away and store_down = reject, nobody is named and
 * on_missing = reject, max_in_flight is reached. Into the log in any case, ten a second at the
 * most: nobody shall be banned for what is not the client's doing.
 */
struct report_refusal {
	struct slice client, route;
	struct slice limit; /* empty: of no limit's doing */
	const char *reason; /* as in the configuration: "store_down = reject" */
	unsigned status;
	struct slice method, path;
	bool is_enforced;
};

void report_refused(struct report *report, const struct report_refusal *refusal);

/* Whether the log takes a line on what a backend did to a request: five a second at the most. *held
 * is for LOG_KEPT_BACK. */
bool report_may_tell_failure(struct report *report, uint64_t *held);

/* Tells how many lines were kept back that no later line has told of, if their second is over: to
 * be called once a second. report_free tells the rest. */
void report_tell_kept_back(struct report *report);

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
