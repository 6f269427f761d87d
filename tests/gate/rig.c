/* The gate lives on the loop's thread; the rig reaches it by calls. */
#include "rig.h"

#include "weir/counter.h"
#include "weir/hash.h"
#include "weir/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int
rig_start(void)
{
	struct err err;

	return hash_start(&err) != 0 || front_start(&err) != 0 || counter_thread_start(&err) != 0
		? -1
		: 0;
}

static void
keep_line(void *context, enum log_level level, const char *line, size_t len)
{
	struct rig *rig = context;

	(void)level;
	(void)pthread_mutex_lock(&rig->lock);
	if (len + 2 <= sizeof rig->log - rig->log_len) {
		memcpy(rig->log + rig->log_len, line, len);
		rig->log[rig->log_len + len] = '\n';
		rig->log_len += len + 1;
		rig->log[rig->log_len] = '\0';
	}
	(void)pthread_mutex_unlock(&rig->lock);
}

unsigned
rig_logged(struct rig *rig, const char *text)
{
	unsigned count = 0;

	(void)pthread_mutex_lock(&rig->lock);
	for (const char *line = rig->log; *line != '\0'; line = strchr(line, '\n') + 1) {
		const size_t len = (size_t)(strchr(line, '\n') - line);

		count += memmem(line, len, text, strlen(text)) != NULL ? 1 : 0;
	}
	(void)pthread_mutex_unlock(&rig->lock);
	return count;
}

/* ---- configurations ---- */

static struct snapshot *
load(struct rig *rig, const char *ini)
{
	struct diagnostics diagnostics;
	struct buf text;

	bytes_init(&text);
	for (const char *at = ini; *at != '\0';) {
		const char *dir = strstr(at, "DIR");
		const size_t len = dir == NULL ? strlen(at) : (size_t)(dir - at);

		bytes_add(&text, slice_make(at, len));
		if (dir != NULL)
			bytes_add(&text, slice_of(rig->directory.path));
		at += dir == NULL ? len : len + 3;
	}
	directory_write(&rig->directory, "weir.ini", buf_slice(&text));
	buf_release(&text);
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot =
		snapshot_load(directory_path(&rig->directory, "weir.ini").text, &diagnostics);

	if (snapshot == NULL)
		diagnostics_print(&diagnostics, stderr);
	diagnostics_release(&diagnostics);
	assert_non_null(snapshot);
	return snapshot;
}

struct order {
	struct rig *rig;
	struct snapshot *snapshot;
	int result;
};

static void
open_gate(void *context)
{
	struct order *order = context;
	struct rig *rig = order->rig;
	struct err err;

	rig->gate = gate_new(rig->thread.loop, &rig->shared, order->snapshot, &err);
	order->result = rig->gate == NULL ? -1 : gate_listen(rig->gate, rig->listening, NULL, &err);
}

void
rig_open(struct rig *rig, const char *ini)
{
	struct order order = { .rig = rig };
	struct err err;
	const bool by_mod_fcgid = rig->by_mod_fcgid;
	const unsigned threads = rig->threads == 0 ? 1 : rig->threads;

	memset(rig, 0, sizeof *rig);
	(void)pthread_mutex_init(&rig->lock, NULL);
	log_set_sink(keep_line, rig);
	log_configure(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	directory_make(&rig->directory);
	rig->listening = unix_listen(directory_path(&rig->directory, "weir.sock").text, 1000);
	(void)fcntl(rig->listening, F_SETFL, O_NONBLOCK);
	rig->memory = memory_open_private(MEMORY_SIZE_MIN, &err);
	rig->report = report_new(NULL, LOG_FORMAT_TEXT, &err);
	rig->commons = gate_commons_new(&err);
	assert_true(rig->memory != NULL && rig->report != NULL && rig->commons != NULL);
	rig->shared = (struct gate_shared){ .memory = rig->memory,
		.report = rig->report,
		.commons = rig->commons,
		.threads = threads,
		.by_mod_fcgid = by_mod_fcgid };
	order.snapshot = load(rig, ini);
	loop_thread_start(&rig->thread);
	loop_thread_call(&rig->thread, open_gate, &order);
	snapshot_release(order.snapshot);
	assert_int_equal(order.result, 0);
}

static void
use(void *context)
{
	struct order *order = context;
	struct err err;

	order->result = gate_use(order->rig->gate, order->snapshot, &err);
}

void
rig_reload(struct rig *rig, const char *ini)
{
	struct order order = { .rig = rig, .snapshot = load(rig, ini) };

	loop_thread_call(&rig->thread, use, &order);
	snapshot_release(order.snapshot);
	assert_int_equal(order.result, 0);
}

/* ---- the end ---- */

static void
on_empty(void *context)
{
	struct rig *rig = context;

	(void)pthread_mutex_lock(&rig->lock);
	rig->empty++;
	(void)pthread_mutex_unlock(&rig->lock);
}

static void
stop(void *context)
{
	struct rig *rig = context;

	gate_stop(rig->gate, FRONT_REST_LEFT, on_empty, rig);
}

void
rig_stop(struct rig *rig)
{
	loop_thread_call(&rig->thread, stop, rig);
}

static void
cut(void *context)
{
	struct rig *rig = context;

	rig->cut += gate_cut(rig->gate);
}

void
rig_cut(struct rig *rig)
{
	loop_thread_call(&rig->thread, cut, rig);
}

static void
close_gate(void *context)
{
	struct rig *rig = context;

	rig->cut += gate_cut(rig->gate);
	gate_free(rig->gate);
}

void
rig_close(struct rig *rig)
{
	loop_thread_call(&rig->thread, close_gate, rig);
	loop_thread_stop(&rig->thread);
	(void)close(rig->listening);
	gate_commons_free(rig->commons);
	report_free(rig->report);
	memory_close(rig->memory);
	log_set_sink(NULL, NULL);
	directory_remove(&rig->directory);
	(void)pthread_mutex_destroy(&rig->lock);
	rig->by_mod_fcgid = false;
	assert_int_equal(rig_in_flight(), 0);
	assert_int_equal(rig_at_backend(), 0);
	assert_int_equal(rig_connections(), 0);
}

/* ---- requests ---- */

int
rig_connect(const struct rig *rig)
{
	return unix_connect(directory_path(&rig->directory, "weir.sock").text);
}

struct fake_app *
rig_app(const struct rig *rig, const char *name, app_script *script)
{
	return fake_app_start(
		unix_listen(directory_path(&rig->directory, name).text, 1000), script, NULL);
}

void
rig_ask(struct rig *rig, struct answer *answer, const char *method, const char *uri,
	const char *const *more)
{
	const char *params[64] = { "REQUEST_METHOD", method, "REQUEST_URI", uri };
	const int fd = rig_connect(rig);
	bool has_address = false;
	size_t count = 4;

	while (more != NULL && more[0] != NULL && count < 58) {
		has_address = has_address || strcmp(more[0], "REMOTE_ADDR") == 0;
		params[count++] = *more++;
		params[count++] = *more++;
	}
	if (!has_address) {
		params[count++] = "REMOTE_ADDR";
		params[count++] = "192.0.2.1";
	}
	answer_to(answer, fd, &(const struct request_spec){ .params = params });
	(void)close(fd);
}

unsigned
rig_status(struct rig *rig, const char *method, const char *uri, const char *const *more)
{
	struct answer answer;

	rig_ask(rig, &answer, method, uri, more);
	const unsigned status = answer_is_whole(&answer) ? answer_status(&answer) : 0;

	answer_release(&answer);
	return status;
}

/* ---- counters ---- */

static int64_t
sum_of(enum counter_family family, const char *first, const char *second)
{
	const struct slice values[] = { slice_of(first), slice_of(second) };

	return counter_sum(counter_find(family, values));
}

int64_t
rig_outcome(const char *route, const char *outcome)
{
	return sum_of(COUNT_REQUESTS, route, outcome);
}

int64_t
rig_decisions(const char *limit, const char *result)
{
	return sum_of(COUNT_DECISIONS, limit, result);
}

int64_t
rig_rejections(const char *limit, const char *policy, const char *result)
{
	const struct slice values[] = { slice_of(limit), slice_of(policy), slice_of(result) };

	return counter_sum(counter_find(COUNT_POLICY_REJECTIONS, values));
}

int64_t
rig_backend_failures(const char *backend, const char *reason)
{
	return sum_of(COUNT_BACKEND_FAILURES, backend, reason);
}

int64_t
rig_in_flight(void)
{
	return counter_sum(COUNT_REQUESTS_IN_FLIGHT);
}

int64_t
rig_at_backend(void)
{
	return sum_of(COUNT_BACKEND_IN_FLIGHT, "app", NULL);
}

int64_t
rig_connections(void)
{
	return counter_sum(COUNT_CONNECTIONS);
}
