/* What an inquiry's report means for limits: whether the server can be reached, lets us in, and is
 * what it is taken for. */
#include "connect.h"

#include <errno.h>
#include <stdio.h>

/* In a cluster a state is put back with SET ... KEEPTTL. */
enum { OLDEST_MAJOR = 5, OLDEST_MAJOR_OF_NODES = 6 };

static enum severity
severity_of(const struct connect_view *view)
{
	return view->may_be_away ? SEVERITY_WARNING : SEVERITY_ERROR;
}

/* The reason, and what may cure it. */
static void
say_why(const struct connect_view *view, enum severity severity, const char *key, const char *what,
	const char *why)
{
	const char *remedy = redis_remedy(why);

	connect_say(view, severity, key, "%s: %s%s%s", what, why, remedy == NULL ? "" : "; ",
		remedy == NULL ? "" : remedy);
}

static void
say_unreached(const struct connect_view *view, const struct inquiry_report *report)
{
	const struct address *server = &view->settings->server;
	const enum severity severity = severity_of(view);
	struct err err;

	if (server->kind == ADDRESS_UNIX && report->error == EACCES) {
		(void)err_set_open(&err, server->host, EACCES);
		connect_say(view, severity, view->key, "it cannot be connected to: %s", err.text);
	} else if (report->error == ECONNREFUSED) {
		connect_say(view, severity, view->key,
			"nobody listens there: %s; start the server, or correct the address",
			report->reason);
	} else {
		say_why(view, severity, view->key, "it cannot be connected to", report->reason);
	}
}

/* ---- the login ---- */

static bool
wants_login(const struct inquiry_report *report)
{
	for (unsigned i = 0; i < INQUIRY_QUESTIONS; i++) {
		if (strncmp(report->refusals[i], "NOAUTH", 6) == 0)
			return true;
	}
	return false;
}

static bool
may_log_in(const struct connect_view *view, const struct inquiry_report *report)
{
	const bool is_sentinel = view->kind == INQUIRY_SENTINEL;
	const char *key = is_sentinel ? "sentinel_password_file" : "password_file";
	const char *refusal = report->refusals[INQUIRY_AUTH];

	if (refusal[0] != '\0') {
		connect_say(view, SEVERITY_ERROR, key,
			"the login is not taken: %s; %susername and %s must be those of the %s",
			refusal, is_sentinel ? "sentinel_" : "", key,
			is_sentinel ? "sentinels" : "server");
		return false;
	}
	if (wants_login(report)) {
		connect_say(view, SEVERITY_ERROR, key,
			"it wants a login (NOAUTH); write %s, and %susername for a user of an ACL",
			key, is_sentinel ? "sentinel_" : "");
		return false;
	}
	refusal = report->refusals[INQUIRY_SELECT];
	if (refusal[0] != '\0' && !connect_is_denied(refusal)) {
		say_why(view, SEVERITY_ERROR, "database", "it cannot be selected", refusal);
		return false;
	}
	return true;
}

/* ---- what it is ---- */

/* NULL: as it is to be. */
static const char *
wrong_mode(const struct connect_view *view, const struct inquiry_report *report)
{
	const bool is_sentinel = view->kind == INQUIRY_SENTINEL;

	switch (report->mode) {
	case INQUIRY_MODE_UNTOLD:
		return NULL;
	case INQUIRY_MODE_SENTINEL:
		return is_sentinel ? NULL
				   : "it is a sentinel; write sentinel = ADDRESS and master = NAME";
	case INQUIRY_MODE_CLUSTER:
		if (view->kind == INQUIRY_NODE)
			return NULL;
		return is_sentinel
			? "it is no sentinel but a server of a Redis Cluster"
			: "it is a server of a Redis Cluster, which has only some of the "
			  "keys; write cluster = ADDRESS in place of server";
	case INQUIRY_MODE_ALONE:
		if (view->kind == INQUIRY_NODE)
			return "it is of no cluster (cluster-enabled no); write server = ADDRESS "
			       "in place of cluster";
		return is_sentinel ? "it is no sentinel but a server; write server = ADDRESS"
				   : NULL;
	}
	return NULL;
}

static bool
is_replica(const struct inquiry_report *report)
{
	return strcmp(report->role, "slave") == 0 || strcmp(report->role, "replica") == 0;
}

static bool
is_what_it_should_be(const struct connect_view *view, const struct inquiry_report *report)
{
	const char *wrong = wrong_mode(view, report);

	if (wrong != NULL) {
		connect_say(view, SEVERITY_ERROR, view->key, "%s", wrong);
		return false;
	}
	if (view->kind == INQUIRY_SENTINEL)
		return true;
	if (view->kind == INQUIRY_NODE && report->major != 0 &&
		report->major < OLDEST_MAJOR_OF_NODES) {
		connect_say(view, SEVERITY_ERROR, view->key,
			"Redis %s is too old for a cluster of weir's, which needs 6.0: it knows no "
			"KEEPTTL",
			report->version);
		return false;
	}
	if (report->major != 0 && report->major < OLDEST_MAJOR) {
		connect_say(view, SEVERITY_ERROR, view->key,
			"Redis %s is too old: before 5.0 a script cannot write once it has read "
			"the clock",
			report->version);
		return false;
	}
	if (view->kind != INQUIRY_NODE && is_replica(report)) {
		connect_say(view, SEVERITY_ERROR, view->key,
			"it is a replica, which counts nothing; %s",
			view->kind == INQUIRY_ALONE
				? "name the master, or the sentinels that know it"
				: "the sentinels name an old master, or a failover is under way");
		return false;
	}
	return true;
}

/* What it refuses for another reason than rights: it is full, loads, cannot save. */
static bool
does_what_is_asked(const struct connect_view *view, const struct inquiry_report *report)
{
	for (unsigned i = INQUIRY_NAME_OF_MASTER; i < INQUIRY_MEMORY; i++) {
		const char *refusal = report->refusals[i];
		char what[64];

		if (refusal[0] == '\0' || connect_is_denied(refusal) ||
			strncmp(refusal, "NOSCRIPT", 8) == 0)
			continue;
		(void)snprintf(what, sizeof what, "it refuses %s", inquiry_commands[i].name);
		say_why(view, SEVERITY_ERROR, view->key, what, refusal);
		return false;
	}
	return true;
}

static bool
knows_master(const struct connect_view *view, const struct inquiry_report *report)
{
	if (view->kind != INQUIRY_SENTINEL || report->master_count > 0 ||
		report->refusals[INQUIRY_NAME_OF_MASTER][0] != '\0')
		return true;
	connect_say(view, SEVERITY_ERROR, "master",
		"it knows no master \"%s\"; `sentinel monitor` in its configuration has the name",
		view->settings->sentinels.master);
	return false;
}

bool
connect_words(const struct connect_view *view, const struct inquiry_report *report)
{
	switch (report->end) {
	case INQUIRY_UNKNOWN:
		connect_say(view, severity_of(view), view->key, "the name cannot be resolved: %s",
			report->reason);
		return false;
	case INQUIRY_UNREACHED:
		say_unreached(view, report);
		return false;
	case INQUIRY_LOST:
		say_why(view, severity_of(view), view->key, "it does not answer as a Redis does",
			report->reason);
		return false;
	case INQUIRY_ANSWERED:
		break;
	}
	if (!may_log_in(view, report) || !is_what_it_should_be(view, report) ||
		!does_what_is_asked(view, report) || !knows_master(view, report))
		return false;
	connect_words_of_rights(view, report);
	connect_words_of_state(view, report);
	return true;
}
