/*
 * What operators ask over HTTP. The address is tried at the start, and again while it cannot be
 * had: after a second, and then after twice as long each time, up to a minute. Where the web server
 * starts several of us, the next takes the address over when the first has ended.
 */
#include "pages.h"

#include "weir/clock.h"
#include "weir/http_server.h"
#include "weir/log.h"
#include "weir/socket.h"
#include "weir/units.h"

#include <stdlib.h>
#include <string.h>

#define PAUSE_MIN_US US_PER_S
#define PAUSE_MAX_US (60 * US_PER_S)
#define REMIND_US (600 * US_PER_S)

struct pages {
	struct pages_settings settings;
	struct http_server *server; /* NULL as long as the address cannot be had */
	struct socket_file file;
	struct timer *retry;
	int64_t pause_us;
	int64_t told_us; /* when the log was told last that it cannot be had; 0: never */
	struct err told; /* why */
};

static void
put_health(const struct pages *pages, struct http_answer *answer)
{
	static const struct {
		int status;
		const char *text;
	} healths[] = {
		[HEALTH_OK] = { 200, "ok\n" },
		[HEALTH_DEGRADED] = { 200,
			"degraded: Redis cannot be used, routes do what their store_down says\n" },
		[HEALTH_STOPPING] = { 503, "stopping\n" },
	};
	const enum health health = pages->settings.health(pages->settings.context);
	const char *text = healths[health].text;

	answer->status = healths[health].status;
	if (buf_append(&answer->body, text, strlen(text)) != 0)
		answer->status = 500;
}

static void
on_http(void *context, const char *path, struct http_answer *answer)
{
	const struct pages *pages = context;

	if (strcmp(path, "/healthz") == 0) {
		put_health(pages, answer);
	} else if (strcmp(path, "/metrics") == 0) {
		answer->content_type = REPORT_METRICS_TYPE;
		answer->status =
			report_metrics(pages->settings.report, &answer->body) == 0 ? 200 : 500;
	}
}

/* ---- the address ---- */

static void
tell_failed(struct pages *pages, const struct err *err)
{
	const int64_t now = clock_monotonic_us();
	const bool is_news = strcmp(err->text, pages->told.text) != 0;

	if (pages->told_us != 0 && !is_news && now - pages->told_us < REMIND_US)
		return;
	pages->told_us = now;
	pages->told = *err;
	if (pages->settings.is_spawned)
		log_info("/metrics is not served here; another process of the web server may have "
			 "its address.",
			LOG_TEXT("reason", err->text));
	else
		log_error("/metrics and /healthz cannot be served; trying again, up to once a "
			  "minute.",
			LOG_TEXT("reason", err->text));
}

static int
try(struct pages *pages, struct err *err)
{
	const struct pages_settings *settings = &pages->settings;
	const struct socket_owner owner = { .mode = 0660 };
	const int fd = socket_listen(settings->address, &owner, &pages->file, err);

	if (fd < 0)
		return -1;
	pages->server = http_server_new(settings->loop, fd, on_http, pages, err);
	if (pages->server == NULL) {
		socket_unlink(settings->address, &pages->file);
		return -1;
	}
	return 0;
}

static void
open_or_wait(struct pages *pages)
{
	char text[ADDRESS_TEXT_SIZE];
	struct err err;

	if (try(pages, &err) != 0) {
		tell_failed(pages, &err);
		timer_set(pages->retry, clock_monotonic_us() + pages->pause_us);
		pages->pause_us *= 2;
		if (pages->pause_us > PAUSE_MAX_US)
			pages->pause_us = PAUSE_MAX_US;
		return;
	}
	if (pages->told_us != 0)
		log_info("/metrics and /healthz are served now.",
			LOG_TEXT("metrics", address_text(pages->settings.address, text)));
}

static void
on_retry(void *context)
{
	open_or_wait(context);
}

struct pages *
pages_open(const struct pages_settings *settings, struct err *err)
{
	struct pages *pages = calloc(1, sizeof *pages);

	if (pages != NULL)
		pages->retry = timer_new(settings->loop, on_retry, pages);
	if (pages == NULL || pages->retry == NULL) {
		(void)err_set(err, "no memory for the metrics");
		free(pages);
		return NULL;
	}
	pages->settings = *settings;
	pages->pause_us = PAUSE_MIN_US;
	open_or_wait(pages);
	return pages;
}

void
pages_close(struct pages *pages)
{
	if (pages == NULL)
		return;
	timer_free(pages->retry);
	if (pages->server != NULL)
		socket_unlink(pages->settings.address, &pages->file);
	http_server_free(pages->server);
	free(pages);
}
