/*
 * Whom `weir check --connect` asks: the server; or the sentinels, the masters that they name, and
 * the replicas that these name; or those servers of a cluster that the file names, and all that
 * they tell of. All at the same time, and whoever is heard of as soon as that is; the whole is over
 * at one end (inquiry.h).
 *
 * What they say is told when all have answered, in the order in which they were found: what one of
 * them lacks may be no fault by what another says (connect_together.c).
 */
#include "connect.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void
connect_say(const struct connect_view *view, enum severity severity, const char *key,
	const char *format, ...)
{
	const struct named_key named = { "redis", "", key, 0 };
	char text[1024];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof text, format, args);
	va_end(args);
	surroundings_say(&view->look, severity, &named, "%s: %s", view->name, text);
}

static struct redis_settings
settings_of(const struct connect *connect, const struct address *server, enum inquiry_kind kind)
{
	const struct config *config = connect->snapshot->config;
	const bool is_sentinel = kind == INQUIRY_SENTINEL;

	return (struct redis_settings){
		.server = *server,
		.sentinels = { .master = config->redis_master },
		.tls = connect->snapshot->tls,
		.tls_name = config->redis_tls_name,
		.username = is_sentinel ? config->redis_sentinel_username : config->redis_username,
		.password = is_sentinel ? config->redis_sentinel_password : config->redis_password,
		.database = is_sentinel ? 0 : config->redis_database,
		.prefix = config->redis_prefix,
		.deadline_us = config->redis_deadline_us,
	};
}

/* ---- asking ---- */

static bool
is_asked_already(
	const struct connect *connect, const struct address *server, enum inquiry_kind kind)
{
	for (unsigned i = 0; i < connect->count; i++) {
		const struct asked *asked = &connect->list[i];

		if (asked->view.kind == kind && address_is(&asked->settings.server, server))
			return true;
	}
	return false;
}

static void on_report(void *context, const struct inquiry_report *report);

/* `by` tells of it; NULL: the file. */
static void
ask(struct connect *connect, const struct address *server, enum inquiry_kind kind, const char *key,
	const struct asked *by)
{
	if (is_asked_already(connect, server, kind))
		return;
	if (connect->count == CONNECT_ASKED_MAX) {
		connect->has_more = true;
		return;
	}
	struct asked *asked = &connect->list[connect->count++];

	asked->connect = connect;
	asked->by = by;
	asked->settings = settings_of(connect, server, kind);
	asked->view = (struct connect_view){
		.look = connect->look, .kind = kind, .key = key, .settings = &asked->settings
	};
	(void)address_text(server, asked->view.name);
	asked->inquiry = inquiry_start(connect->loop, connect->resolver, &asked->settings, kind,
		connect->end_us, on_report, asked);
	if (asked->inquiry == NULL)
		connect_say(&asked->view, SEVERITY_ERROR, key, "no memory to ask it");
	else
		connect->open++;
}

/* Asks those that it names. */
static void
ask_further(struct asked *asked)
{
	static const struct {
		enum inquiry_kind kind;
		const char *key;
		bool leads_on;
	} next[] = {
		[INQUIRY_ALONE] = { INQUIRY_ALONE, NULL, false },
		[INQUIRY_MASTER_OF_SENTINELS] = { INQUIRY_REPLICA, "master", true },
		[INQUIRY_REPLICA] = { INQUIRY_REPLICA, NULL, false },
		[INQUIRY_NODE] = { INQUIRY_NODE, "cluster", true },
		[INQUIRY_SENTINEL] = { INQUIRY_MASTER_OF_SENTINELS, "master", true },
	};
	const struct inquiry_report *report = asked->report;
	struct connect *connect = asked->connect;
	const enum inquiry_kind kind = asked->view.kind;

	if (!next[kind].leads_on)
		return;
	for (unsigned i = 0; i < report->server_count; i++)
		ask(connect, &report->servers[i].address, next[kind].kind, next[kind].key, asked);
	connect->has_more = connect->has_more || report->names_more;
}

static void
on_report(void *context, const struct inquiry_report *report)
{
	struct asked *asked = context;
	struct connect *connect = asked->connect;

	asked->report = report;
	if (report->end == INQUIRY_ANSWERED)
		ask_further(asked);
	if (--connect->open == 0)
		loop_stop(connect->loop);
}

static void
ask_all(struct connect *connect)
{
	const struct config *config = connect->snapshot->config;

	connect->end_us = inquiry_end_us(connect->loop, config->redis_deadline_us);
	for (unsigned i = 0; i < config->redis_cluster_count; i++)
		ask(connect, &config->redis_cluster[i], INQUIRY_NODE, "cluster", NULL);
	for (unsigned i = 0; i < config->redis_sentinel_count; i++)
		ask(connect, &config->redis_sentinels[i], INQUIRY_SENTINEL, "sentinel", NULL);
	if (config->redis_cluster_count == 0 && config->redis_sentinel_count == 0)
		ask(connect, &config->redis_server, INQUIRY_ALONE, "server", NULL);
	if (connect->open > 0)
		loop_run(connect->loop);
}

/* ---- the whole ---- */

static int
start(struct connect *connect, struct err *err)
{
	connect->list = calloc(CONNECT_ASKED_MAX, sizeof *connect->list);
	if (connect->list == NULL)
		return err_set(err, "no memory");
	connect->loop = loop_new(err);
	connect->resolver = connect->loop == NULL ? NULL : resolver_new(connect->loop, err);
	return connect->resolver == NULL ? -1 : 0;
}

static void
stop(struct connect *connect)
{
	for (unsigned i = 0; i < connect->count; i++)
		inquiry_free(connect->list[i].inquiry);
	resolver_free(connect->resolver);
	loop_free(connect->loop);
	free(connect->list);
}

void
connect_check(const struct snapshot *snapshot, struct diagnostics *diagnostics)
{
	struct connect connect = { .look = { snapshot->config, diagnostics },
		.snapshot = snapshot };
	struct err err;

	if (!snapshot->config->has_redis) {
		(void)printf("there is no [redis] to connect to: this host counts alone\n");
		return;
	}
	if (start(&connect, &err) == 0) {
		ask_all(&connect);
		connect_together(&connect);
	} else {
		surroundings_say(&connect.look, SEVERITY_ERROR,
			&(const struct named_key){ "redis", "", "server", 0 },
			"it cannot be asked: %s", err.text);
	}
	stop(&connect);
}
