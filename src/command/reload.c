/* A reload: the file is read and, if it is sound, handed to the workers, the log and the report. */
#include "changes.h"
#include "notify.h"
#include "process.h"
#include "serve.h"

#include "weir/clock.h"
#include "weir/log.h"

#include <stdio.h>

int
serve_attach_breaker(struct serve *serve, struct err *err)
{
	breaker_free(serve->breaker);
	serve->breaker = NULL;
	if (!serve->current->config->has_redis)
		return 0;
	serve->breaker = gate_breaker(serve->current, serve->memory, err);
	return serve->breaker == NULL ? -1 : 0;
}

static void
use(struct serve *serve, struct snapshot *snapshot)
{
	struct err err;

	changes_warn(serve->first->config, snapshot->config, &serve->sockets);
	snapshot_release(serve->current);
	serve->current = snapshot;
	log_configure(snapshot->config->log_level, snapshot->config->log_format);
	report_set_format(serve->report, snapshot->config->log_format);
	for (unsigned i = 0; i < serve->worker_count; i++)
		worker_use(serve->workers[i], snapshot);
	if (serve_attach_breaker(serve, &err) != 0)
		log_error("The breaker's state cannot be shown.", LOG_TEXT("reason", err.text));
}

static void
notify_reloading(void)
{
	char text[96];

	(void)snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%lld",
		(long long)clock_monotonic_us());
	notify(text);
}

/* NULL: it is wrong, or a list of it is not whole. */
static struct snapshot *
load_again(const struct serve *serve, struct diagnostics *diagnostics)
{
	struct snapshot *snapshot = snapshot_load(serve->file, diagnostics);

	if (snapshot == NULL ||
		config_check_lists(serve->current->config, snapshot->config, diagnostics) == 0)
		return snapshot;
	snapshot_release(snapshot);
	return NULL;
}

void
serve_reload(struct serve *serve)
{
	struct diagnostics diagnostics;
	char changed[CHANGES_TEXT_SIZE];

	notify_reloading();
	diagnostics_init(&diagnostics);
	struct snapshot *snapshot = load_again(serve, &diagnostics);

	process_log_diagnostics(&diagnostics);
	diagnostics_release(&diagnostics);
	counter_add(serve->reloads[snapshot != NULL ? 1 : 0], 1);
	if (snapshot != NULL) {
		(void)changes_text(serve->current->config, snapshot->config, changed);
		use(serve, snapshot);
		log_info("The configuration was read anew.", LOG_TEXT("file", serve->file),
			LOG_TEXT("changed", changed));
	} else {
		log_error("The configuration is wrong; the old one stays in use.",
			LOG_TEXT("file", serve->file));
	}
	notify("READY=1");
}
