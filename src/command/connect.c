/*
 * Whom `weir check --connect` asks: the server; or the sentinels, and the master that they name; or
 * those servers of a cluster that the file names, and the masters that they tell of. One after the
 * other; each in its own time (inquiry.h).
 */
#include "connect.h"

#include <stdarg.h>
#include <stdio.h>

struct connect {
	struct surroundings look;
	const struct snapshot *snapshot;
	struct loop *loop;
	struct resolver *resolver;
	struct inquiry_report report; /* the last */
};

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

static void
on_report(void *context, const struct inquiry_report *report)
{
	struct connect *connect = context;

	connect->report = *report;
	loop_stop(connect->loop);
}

/* Asks and says. False: it is of no use, which is no error of one that may be away. */
static bool
ask(struct connect *connect, const struct address *server, enum inquiry_kind kind, const char *key,
	bool may_be_away)
{
	const struct redis_settings settings = settings_of(connect, server, kind);
	struct connect_view view = { .look = connect->look,
		.kind = kind,
		.key = key,
		.may_be_away = may_be_away,
		.settings = &settings };
	struct inquiry *inquiry = inquiry_start(
		connect->loop, connect->resolver, &settings, kind, on_report, connect);

	(void)address_text(server, view.name);
	if (inquiry == NULL) {
		connect_say(&view, SEVERITY_ERROR, key, "no memory to ask it");
		return false;
	}
	loop_run(connect->loop);
	inquiry_free(inquiry);
	return connect_words(&view, &connect->report);
}

/* ---- sentinels ---- */

struct named_masters {
	struct address first;
	unsigned count; /* of sentinels that name one */
};

static void
take_word(struct connect *connect, struct named_masters *masters, const struct address *sentinel)
{
	const struct address *master = &connect->report.masters[0];
	char names[2][ADDRESS_TEXT_SIZE], own[ADDRESS_TEXT_SIZE];

	if (masters->count++ == 0) {
		masters->first = *master;
		return;
	}
	if (address_is(&masters->first, master))
		return;
	surroundings_say(&connect->look, SEVERITY_WARNING,
		&(const struct named_key){ "redis", "", "sentinel", 0 },
		"%s names %s as the master, and others name %s; if no failover is under way, they "
		"do not know each other",
		address_text(sentinel, own), address_text(master, names[0]),
		address_text(&masters->first, names[1]));
}

static void
ask_sentinels(struct connect *connect)
{
	const struct config *config = connect->snapshot->config;
	struct named_masters masters = { .count = 0 };

	for (unsigned i = 0; i < config->redis_sentinel_count; i++) {
		const struct address *sentinel = &config->redis_sentinels[i];

		if (ask(connect, sentinel, INQUIRY_SENTINEL, "sentinel", true) &&
			connect->report.master_count > 0)
			take_word(connect, &masters, sentinel);
	}
	if (masters.count > 0)
		(void)ask(connect, &masters.first, INQUIRY_MASTER_OF_SENTINELS, "master", false);
	else
		surroundings_say(&connect->look, SEVERITY_ERROR,
			&(const struct named_key){ "redis", "", "sentinel", 0 },
			"none of them names the master");
}

/* ---- a cluster ---- */

struct servers {
	struct address list[INQUIRY_MASTERS_MAX];
	unsigned count;
};

static bool
has_server(const struct servers *servers, const struct address *server)
{
	for (unsigned i = 0; i < servers->count; i++) {
		if (address_is(&servers->list[i], server))
			return true;
	}
	return false;
}

static void
add_server(struct servers *servers, const struct address *server)
{
	if (servers->count < INQUIRY_MASTERS_MAX && !has_server(servers, server))
		servers->list[servers->count++] = *server;
}

static void
ask_node(struct connect *connect, const struct address *server, bool may_be_away,
	struct servers *answered, struct servers *masters)
{
	(void)ask(connect, server, INQUIRY_NODE, "cluster", may_be_away);
	if (connect->report.end != INQUIRY_ANSWERED)
		return;
	add_server(answered, server);
	for (unsigned i = 0; i < connect->report.master_count; i++)
		add_server(masters, &connect->report.masters[i]);
}

/* A server that the file names may be away as long as another one knows the rest; a master may not.
 */
static void
ask_cluster(struct connect *connect)
{
	const struct config *config = connect->snapshot->config;
	struct servers answered = { .count = 0 }, masters = { .count = 0 };

	for (unsigned i = 0; i < config->redis_cluster_count; i++)
		ask_node(connect, &config->redis_cluster[i], true, &answered, &masters);
	if (masters.count == 0)
		surroundings_say(&connect->look, SEVERITY_ERROR,
			&(const struct named_key){ "redis", "", "cluster", 0 },
			"none of them tells which servers have the keys");
	for (unsigned i = 0; i < masters.count; i++) {
		if (!has_server(&answered, &masters.list[i]))
			ask_node(connect, &masters.list[i], false, &answered, &masters);
	}
}

/* ---- all ---- */

static void
ask_all(struct connect *connect)
{
	const struct config *config = connect->snapshot->config;

	if (config->redis_cluster_count > 0)
		ask_cluster(connect);
	else if (config->redis_sentinel_count > 0)
		ask_sentinels(connect);
	else
		(void)ask(connect, &config->redis_server, INQUIRY_ALONE, "server", false);
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
	connect.loop = loop_new(&err);
	connect.resolver = connect.loop == NULL ? NULL : resolver_new(connect.loop, &err);
	if (connect.resolver != NULL)
		ask_all(&connect);
	else
		surroundings_say(&connect.look, SEVERITY_ERROR,
			&(const struct named_key){ "redis", "", "server", 0 },
			"it cannot be asked: %s", err.text);
	resolver_free(connect.resolver);
	loop_free(connect.loop);
}
