/*
 * Rejections, one line each: what was asked, by whom, which policy was hit and for how long. A file
 * of their own gets every line (fail2ban counts them); the log gets ten a second, since a flood is
 * a client's doing.
 */
#include "report_private.h"

#include "weir/clock.h"
#include "weir/units.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOGGED_PER_SECOND = 10, FAILURES_PER_SECOND = 5, REJECTION_FIELDS = 12 };

struct report *
report_new(const char *reject_log, enum log_format format, struct err *err)
{
	struct report *report = calloc(1, sizeof *report);

	if (report == NULL) {
		(void)err_set(err, "no memory for the report");
		return NULL;
	}
	report_set_format(report, format);
	report->throttle =
		(struct log_throttle){ .period_us = 1000000, .burst = LOGGED_PER_SECOND };
	report->refusals = report->throttle;
	report->failures = report->throttle;
	report->failures.burst = FAILURES_PER_SECOND;
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

/* ---- what the log was spared ---- */

static uint64_t
take_held(struct report *report, struct log_throttle *throttle, int64_t now_us)
{
	(void)pthread_mutex_lock(&report->lock);
	const uint64_t held = log_throttle_take(throttle, now_us);

	(void)pthread_mutex_unlock(&report->lock);
	return held;
}

static void
tell_kept_back(struct report *report, int64_t now_us)
{
	const uint64_t rejections = take_held(report, &report->throttle, now_us);
	const uint64_t refusals = take_held(report, &report->refusals, now_us);
	const uint64_t failures = take_held(report, &report->failures, now_us);

	if (rejections > 0)
		log_info("More rejections were not logged one by one.", LOG_KEPT_BACK(rejections));
	if (refusals > 0)
		log_info("More refusals were not logged one by one.", LOG_KEPT_BACK(refusals));
	if (failures > 0)
		log_warn("More failures of backends were not logged one by one.",
			LOG_KEPT_BACK(failures));
}

void
report_tell_kept_back(struct report *report)
{
	tell_kept_back(report, clock_monotonic_us());
}

void
report_free(struct report *report)
{
	if (report == NULL)
		return;
	tell_kept_back(report, INT64_MAX);
	log_sink_close(report->sink);
	(void)pthread_mutex_destroy(&report->lock);
	free(report);
}

void
report_set_format(struct report *report, enum log_format format)
{
	atomic_store_explicit(&report->format, (int)format, memory_order_relaxed);
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
may_log(struct report *report, struct log_throttle *throttle, uint64_t *held)
{
	(void)pthread_mutex_lock(&report->lock);
	const bool pass = log_throttle_pass(throttle, clock_monotonic_us(), held);

	(void)pthread_mutex_unlock(&report->lock);
	return pass;
}

bool
report_may_tell_failure(struct report *report, uint64_t *held)
{
	return may_log(report, &report->failures, held);
}

static void
put(struct report *report, const char *message, const struct log_field *fields)
{
	char line[LOG_LINE_MAX];

	if (report->sink == NULL) {
		log_record(LOG_LEVEL_INFO, message, fields);
		return;
	}
	const enum log_format format =
		(enum log_format)atomic_load_explicit(&report->format, memory_order_relaxed);
	const size_t len = log_compose(line, format, LOG_LEVEL_INFO, message, fields);

	log_sink_put(report->sink, LOG_LEVEL_INFO, line, len);
}

/* Whether a line is wanted. */
static bool
is_wanted(struct report *report, uint64_t *held)
{
	*held = 0;
	return report->sink != NULL ||
		(log_is_on(LOG_LEVEL_INFO) && may_log(report, &report->throttle, held));
}

/* ---- a policy, as it is written in the configuration ---- */

enum { POLICY_TEXT_SIZE = 80 };

/* In the greatest unit that needs no fraction: "1m", "1500ms". */
static int
put_window(char *out, size_t size, const struct policy *policy)
{
	static const struct {
		int64_t us;
		const char *unit;
	} units[] = { { US_PER_DAY, "d" }, { 3600 * US_PER_S, "h" }, { 60 * US_PER_S, "m" },
		{ US_PER_S, "s" }, { US_PER_MS, "ms" } };
	size_t i = 0;

	if (policy->algorithm == POLICY_CALENDAR)
		return snprintf(out, size, "%s", policy->period == CALENDAR_DAY ? "day" : "month");
	while (i + 1 < sizeof units / sizeof units[0] && policy->window_us % units[i].us != 0)
		i++;
	return snprintf(
		out, size, "%lld%s", (long long)(policy->window_us / units[i].us), units[i].unit);
}

static const char *
policy_text(const struct outcome *outcome, char out[POLICY_TEXT_SIZE])
{
	static const char *const words[ALGORITHMS] = { [POLICY_TOKEN_BUCKET] = "",
		[POLICY_SLIDING_WINDOW] = " sliding-window",
		[POLICY_SLIDING_LOG] = " sliding-log",
		[POLICY_CALENDAR] = " calendar",
		[POLICY_CONCURRENT] = "" };
	const struct policy *policy = outcome->policy;
	const unsigned long long count = policy->count, burst = policy->burst;
	char window[32];

	if (policy->algorithm == POLICY_CONCURRENT) {
		(void)snprintf(out, POLICY_TEXT_SIZE, "concurrent %llu", burst);
		return out;
	}
	(void)put_window(window, sizeof window, policy);
	const int n = snprintf(
		out, POLICY_TEXT_SIZE, "%llu/%s%s", count, window, words[policy->algorithm]);

	if (outcome->limit->shards > 1)
		(void)snprintf(out + n, POLICY_TEXT_SIZE - (size_t)n, " shards %u",
			outcome->limit->shards);
	else if (policy->algorithm == POLICY_TOKEN_BUCKET && burst != count)
		(void)snprintf(out + n, POLICY_TEXT_SIZE - (size_t)n, " burst %llu", burst);
	return out;
}

/* ---- lines ---- */

/* A wait that would never end has its own word; fail2ban and people need not tell it from 0. */
void
report_rejected(struct report *report, const struct report_rejection *rejection)
{
	char admits[POLICY_TEXT_SIZE];
	uint64_t held;

	if (!is_wanted(report, &held))
		return;
	const struct outcome *outcome = rejection->outcome;
	struct log_field fields[REJECTION_FIELDS + 1] = {
		LOG_SLICE("client", rejection->client),
		LOG_SLICE("route", rejection->route),
		LOG_TEXT("limit", outcome->limit->name),
		LOG_TEXT("policy", outcome->policy->name),
		LOG_TEXT("admits", policy_text(outcome, admits)),
	};
	size_t count = 5;

	if (rejection->override.len > 0)
		fields[count++] = LOG_SLICE("override", rejection->override);
	if (rejection->cost != 1)
		fields[count++] = LOG_INT("cost", rejection->cost);
	fields[count++] = outcome->retry_us < 0 ? LOG_TEXT("reason", "cost exceeds burst")
						: LOG_INT("retry_after", rejection->retry_after_s);
	fields[count++] = LOG_SLICE("method", rejection->method);
	fields[count++] = LOG_SLICE("path", rejection->path);
	fields[count++] = LOG_SLICE("identity", rejection->identity);
	fields[count++] = LOG_KEPT_BACK(held);

	put(report, rejection->is_enforced ? "Rejected." : "Would be rejected.", fields);
}

void
report_blocked(struct report *report, const struct report_block *block)
{
	uint64_t held;

	if (!is_wanted(report, &held))
		return;
	const struct log_field fields[] = {
		LOG_SLICE("client", block->client),
		LOG_SLICE("route", block->route),
		LOG_SLICE("limit", block->limit),
		LOG_SLICE("override", block->override),
		LOG_TEXT("reason", "blocked"),
		LOG_SLICE("method", block->method),
		LOG_SLICE("path", block->path),
		LOG_KEPT_BACK(held),
		{ 0 },
	};

	put(report, block->is_enforced ? "Blocked." : "Would be blocked.", fields);
}

void
report_refused(struct report *report, const struct report_refusal *refusal)
{
	uint64_t held;

	if (!log_is_on(LOG_LEVEL_INFO) || !may_log(report, &report->refusals, &held))
		return;
	struct log_field fields[9] = { LOG_SLICE("client", refusal->client),
		LOG_SLICE("route", refusal->route) };
	size_t count = 2;

	if (refusal->limit.len > 0)
		fields[count++] = LOG_SLICE("limit", refusal->limit);
	fields[count++] = LOG_TEXT("reason", refusal->reason);
	fields[count++] = LOG_INT("status", refusal->status);
	fields[count++] = LOG_SLICE("method", refusal->method);
	fields[count++] = LOG_SLICE("path", refusal->path);
	fields[count++] = LOG_KEPT_BACK(held);

	log_record(LOG_LEVEL_INFO, refusal->is_enforced ? "Refused." : "Would be refused.", fields);
}
