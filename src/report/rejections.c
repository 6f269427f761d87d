/*
 * Rejections, one line each: what was asked, by whom, which policy was hit and for how long. A file
 * of their own gets every line (fail2ban counts them); the log gets ten a second, since a flood is
 * a client's doing.
 */
#include "report_private.h"

#include "weir/clock.h"

#include <stdlib.h>

enum { LOGGED_PER_SECOND = 10 };

struct report *
report_new(const char *reject_log, enum log_format format, struct err *err)
{
	struct report *report = calloc(1, sizeof *report);

	if (report == NULL) {
		(void)err_set(err, "no memory for the report");
		return NULL;
	}
	report->format = format;
	report->throttle =
		(struct log_throttle){ .period_us = 1000000, .burst = LOGGED_PER_SECOND };
	(void)pthread_mutex_init(&report->lock, NULL);
	if (reject_log != NULL) {
		report->sink = log_sink_open(LOG_SINK_FILE, reject_log, err);
		if (report->sink == NULL) {
			report_free(report);
			return NULL;
		}
	}
	return report;
}

void
report_free(struct report *report)
{
	if (report == NULL)
		return;
	log_sink_close(report->sink);
	(void)pthread_mutex_destroy(&report->lock);
	free(report);
}

int
report_add_gauge(struct report *report, const char *name, const char *help, report_gauge_fn *read,
	void *context)
{
	if (report->gauge_count == GAUGES_MAX)
		return -1;
	report->gauges[report->gauge_count++] = (struct report_gauge){ name, help, read, context };
	return 0;
}

uint64_t
report_take_dropped(struct report *report)
{
	return report->sink == NULL ? 0 : log_sink_take_dropped(report->sink);
}

static bool
may_log(struct report *report, uint64_t *held)
{
	(void)pthread_mutex_lock(&report->lock);
	const bool pass = log_throttle_pass(&report->throttle, clock_monotonic_us(), held);

	(void)pthread_mutex_unlock(&report->lock);
	return pass;
}

void
report_rejected(struct report *report, const struct report_rejection *rejection)
{
	uint64_t held = 0;

	if (report->sink == NULL && (!log_is_on(LOG_LEVEL_INFO) || !may_log(report, &held)))
		return;
	const char *message = rejection->is_enforced ? "Rejected." : "Would be rejected.";
	const struct log_field fields[] = {
		LOG_SLICE("client", rejection->client),
		LOG_SLICE("route", rejection->route),
		LOG_TEXT("limit", rejection->outcome->limit->name),
		LOG_TEXT("policy", rejection->outcome->policy->name),
		LOG_INT("retry_after", rejection->retry_after_s),
		LOG_SLICE("method", rejection->method),
		LOG_SLICE("path", rejection->path),
		LOG_SLICE("identity", rejection->identity),
		held > 0 ? LOG_INT("kept_back", held) : (struct log_field){ 0 },
		{ 0 },
	};
	char line[LOG_LINE_MAX];

	if (report->sink == NULL) {
		log_record(LOG_LEVEL_INFO, message, fields);
		return;
	}
	const size_t len = log_compose(line, report->format, LOG_LEVEL_INFO, message, fields);

	log_sink_put(report->sink, LOG_LEVEL_INFO, line, len);
}
