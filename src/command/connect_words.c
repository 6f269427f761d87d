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

/* What waits for a person, though it may pass by itself. */
static const char *
remedy_of(const char *why)
{
	if (strncmp(why, "CLUSTERDOWN", 11) == 0)
		return "slots have no server; cluster-require-full-coverage no lets the others go "
		       "on";
	if (strncmp(why, "NOREPLICAS", 10) == 0)
		return "it has fewer replicas than its min-replicas-to-write";
	return redis_remedy(why);
}

/* The reason, and what may cure it. */
static void
say_why(const struct connect_view *view, enum severity severity, const char *key, const char *what,
	const char *why)
{
	const char *remedy = remedy_of(why);

	connect_say(view, severity, key, "%s%s%s%s%s", what, what[0] == '\0' ? "" : ": ", why,
		remedy == NULL ? "" : "; ", remedy == NULL ? "" : remedy);
}

/* What is lost with it. */
static void
say_away(const struct connect_view *view, const char *key, const char *what)
{
	const char *remedy = redis_remedy(what);
	const char *more = remedy == NULL ? "" : remedy;
	const char *then = remedy == NULL ? "" : "; ";

	if (view->slots > 0)
		connect_say(view, SEVERITY_ERROR, key,
			"%s%s%s; it has %u of the cluster's %d slots, and nobody else has them",
			what, then, more, view->slots, INQUIRY_ALL_SLOTS);
	else if (view->kind == INQUIRY_REPLICA)
		connect_say(view, SEVERITY_WARNING, key,
			"%s%s%s; it is a replica that the master names, and may be the master "
			"after a failover",
			what, then, more);
	else
		connect_say(view, severity_of(view), key, "%s%s%s", what, then, more);
}

static void
say_unreached(const struct connect_view *view, const struct inquiry_report *report)
{
	const struct address *server = &view->settings->server;
	char text[INQUIRY_TEXT_SIZE + 100];
	struct err err;

	if (report->error == ECONNREFUSED) {
		(void)snprintf(text, sizeof text,
			"nobody listens there: %s; start the server, or correct the address",
			report->reason);
	} else if (server->kind == ADDRESS_UNIX && report->error == EACCES) {
		(void)err_set_open(&err, server->host, EACCES);
		(void)snprintf(text, sizeof text, "it cannot be connected to: %.300s", err.text);
	} else {
		(void)snprintf(text, sizeof text, "it cannot be connected to: %s", report->reason);
	}
	say_away(view, view->key, text);
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
			? "it is no sentinel but a server of a Redis Cluster; write cluster = "
			  "ADDRESS in place of sentinel and master"
			: "it is a server of a Redis Cluster, which has only some of the "
			  "keys; write cluster = ADDRESS in place of server";
	case INQUIRY_MODE_ALONE:
		if (view->kind == INQUIRY_NODE)
			return "it is of no cluster (cluster-enabled no); write server = ADDRESS "
			       "in place of cluster";
		return is_sentinel
			? "it is no sentinel but a server; name the sentinels, whose port is 26379 "
			  "as a rule, or write server = ADDRESS in place of sentinel and master"
			: NULL;
	}
	return NULL;
}

static bool
has_its_mode(const struct connect_view *view, const struct inquiry_report *report)
{
	const char *wrong = wrong_mode(view, report);

	if (wrong != NULL)
		connect_say(view, SEVERITY_ERROR, view->key, "%s", wrong);
	return wrong == NULL;
}

static bool
is_recent(const struct connect_view *view, const struct inquiry_report *report)
{
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
	return true;
}

static bool
is_replica(const struct inquiry_report *report)
{
	return strcmp(report->role, "slave") == 0 || strcmp(report->role, "replica") == 0;
}

/* It is loading, or waits for its master, which passes. */
static bool
is_busy(const char *refusal)
{
	return strncmp(refusal, "LOADING", 7) == 0 || strncmp(refusal, "MASTERDOWN", 10) == 0;
}

static bool
has_its_role(const struct connect_view *view, const struct inquiry_report *report)
{
	const bool is_alone = view->kind == INQUIRY_ALONE;
	const bool is_written_to =
		report->was_asked[INQUIRY_SET] && report->refusals[INQUIRY_SET][0] == '\0';

	if (!is_alone && view->kind != INQUIRY_MASTER_OF_SENTINELS)
		return true;
	if (!is_alone && !is_replica(report) && report->role[0] != '\0' &&
		strcmp(report->role, "master") != 0) {
		connect_say(view, SEVERITY_ERROR, view->key,
			"it is no master but \"%s\"; the sentinels must name Redis itself",
			report->role);
		return false;
	}
	if (!is_replica(report))
		return true;
	connect_say(view, SEVERITY_ERROR, view->key, "it is a replica, %s; %s",
		is_written_to ? "which can be written to (replica-read-only no) and forgets what "
				"is counted when it takes its master's data anew"
			      : "which counts nothing",
		is_alone ? "name the master, or the sentinels that know it"
			 : "the sentinels name an old master, or a failover is under way");
	return false;
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
		/* What it says and cannot mean is told in our words. */
		(void)snprintf(what, sizeof what, "%s%s",
			strncmp(refusal, "its answer", 10) == 0 ? "" : "it refuses ",
			strncmp(refusal, "its answer", 10) == 0 ? "" : inquiry_commands[i].name);
		say_why(view, is_busy(refusal) ? severity_of(view) : SEVERITY_ERROR, view->key,
			what, refusal);
		return false;
	}
	return true;
}

static bool
knows_master(const struct connect_view *view, const struct inquiry_report *report)
{
	if (view->kind != INQUIRY_SENTINEL || report->server_count > 0 ||
		report->refusals[INQUIRY_NAME_OF_MASTER][0] != '\0')
		return true;
	connect_say(view, SEVERITY_ERROR, "master",
		"it knows no master \"%s\"; `sentinel monitor` in its configuration has the name",
		view->settings->sentinels.master);
	return false;
}

static bool
is_there(const struct connect_view *view, const struct inquiry_report *report)
{
	char text[INQUIRY_TEXT_SIZE + 100];

	switch (report->end) {
	case INQUIRY_UNKNOWN:
		(void)snprintf(
			text, sizeof text, "the name cannot be resolved: %s", report->reason);
		say_away(view, view->key, text);
		return false;
	case INQUIRY_UNREACHED:
		say_unreached(view, report);
		return false;
	case INQUIRY_LOST:
		(void)snprintf(text, sizeof text, "it does not answer as a Redis does: %s",
			report->reason);
		say_away(view, view->key, text);
		return false;
	case INQUIRY_ANSWERED:
		break;
	}
	return true;
}

void
connect_words(const struct connect_view *view, const struct inquiry_report *report,
	struct connect_said *said)
{
	/* One that is not what it is taken for has another login too. */
	if (!is_there(view, report) || !has_its_mode(view, report) ||
		!connect_may_log_in(view, report))
		return;
	if (view->kind != INQUIRY_SENTINEL &&
		(!is_recent(view, report) || !has_its_role(view, report)))
		return;
	if (!does_what_is_asked(view, report) || !knows_master(view, report))
		return;
	connect_words_of_rights(view, report);
	connect_words_of_state(view, report, said);
}
