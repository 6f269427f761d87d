/*
 * Whether the user is let in, and what he may not do. Each command that is denied is told in the
 * server's words, and then what would be right: the least that limits need, which is what was
 * asked.
 */
#include "connect.h"

#include <stdio.h>

enum { LINE_SIZE = 512 };

/* ---- the login ---- */

/* Of several that take each other's place: what each must have by itself. */
static const char *
own_of(const struct connect_view *view)
{
	switch (view->kind) {
	case INQUIRY_MASTER_OF_SENTINELS:
	case INQUIRY_REPLICA:
	case INQUIRY_NODE:
		return "; Redis does not replicate users and passwords, so each server must have "
		       "them, replicas too";
	case INQUIRY_SENTINEL:
		return "; each sentinel has users and passwords of its own";
	case INQUIRY_ALONE:
	case INQUIRY_CANDIDATE:
		break;
	}
	return "";
}

static bool
wants_login(const struct inquiry_report *report)
{
	for (unsigned i = 0; i < INQUIRY_QUESTIONS; i++) {
		if (strncmp(report->refusals[i], "NOAUTH", 6) == 0)
			return true;
	}
	return false;
}

bool
connect_may_log_in(const struct connect_view *view, const struct inquiry_report *report)
{
	const bool is_sentinel = view->kind == INQUIRY_SENTINEL;
	const char *key = is_sentinel ? "sentinel_password_file" : "password_file";
	const char *refusal = report->refusals[INQUIRY_AUTH];

	if (strstr(refusal, "without any password") != NULL ||
		strstr(refusal, "no password is set") != NULL) {
		connect_say(view, SEVERITY_ERROR, key,
			"the login is not taken: %s; it has no password: remove %s%s", refusal, key,
			own_of(view));
		return false;
	}
	if (refusal[0] != '\0') {
		connect_say(view, SEVERITY_ERROR, key,
			"the login is not taken: %s; %susername and %s must be those of the %s%s",
			refusal, is_sentinel ? "sentinel_" : "", key,
			is_sentinel ? "sentinels" : "server", own_of(view));
		return false;
	}
	if (wants_login(report)) {
		connect_say(view, SEVERITY_ERROR, key,
			"it wants a login (NOAUTH); write %s, and %susername for a user of an "
			"ACL%s",
			key, is_sentinel ? "sentinel_" : "", own_of(view));
		return false;
	}
	refusal = report->refusals[INQUIRY_SELECT];
	if (refusal[0] != '\0' && !connect_is_denied(refusal)) {
		const char *remedy = redis_remedy(refusal);

		connect_say(view, SEVERITY_ERROR, "database", "it cannot be selected: %s%s%s",
			refusal, remedy == NULL ? "" : "; ", remedy == NULL ? "" : remedy);
		return false;
	}
	return true;
}

/* ---- rights ---- */

/* Also from within a script, where Redis 6 puts other words in front, 7.0 and 7.2 have words of
 * their own. */
bool
connect_is_denied(const char *refusal)
{
	return strstr(refusal, "NOPERM") != NULL || strstr(refusal, "ACL failure") != NULL ||
		strstr(refusal, "can't run this command") != NULL;
}

static bool
is_script(enum inquiry_question question)
{
	return question == INQUIRY_EVAL || question == INQUIRY_EVALSHA ||
		question == INQUIRY_ENGINE;
}

/* What happened to a command within a script has been told of the command; and both scripts are
 * called by one. */
static bool
is_told_already(const struct inquiry_report *report, enum inquiry_question question)
{
	static const enum inquiry_question within[] = { INQUIRY_TIME, INQUIRY_SET, INQUIRY_GET,
		INQUIRY_DEL };

	if (question == INQUIRY_ENGINE && connect_is_denied(report->refusals[INQUIRY_EVAL]))
		return true;
	if (!is_script(question) || strstr(report->refusals[question], "script") == NULL)
		return false;
	for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
		if (connect_is_denied(report->refusals[within[i]]))
			return true;
	}
	return false;
}

/* Appends as snprintf does; what does not fit is cut. */
static void
append(char line[LINE_SIZE], const char *blank, const char *text)
{
	const size_t len = strlen(line);

	(void)snprintf(line + len, LINE_SIZE - len, "%s%s", blank, text);
}

static const char *
user_of(const struct connect_view *view)
{
	return view->settings->username == NULL ? "default" : view->settings->username;
}

/* The line that gives the user these rights and no others. */
static void
right_line(
	const struct connect_view *view, const struct inquiry_report *report, char line[LINE_SIZE])
{
	line[0] = '\0';
	append(line, "ACL SETUSER ", user_of(view));
	if (view->kind != INQUIRY_SENTINEL) {
		append(line, " ~", view->settings->prefix);
		append(line, "", "*");
	}
	append(line, " ", "-@all");
	for (unsigned i = 0; i < INQUIRY_MEMORY; i++) {
		const char *rule = inquiry_commands[i].rule;

		if (report->was_asked[i] && rule != NULL && i != INQUIRY_ENGINE)
			append(line, " ", rule);
	}
}

void
connect_words_of_rights(const struct connect_view *view, const struct inquiry_report *report)
{
	const char *key = view->kind == INQUIRY_SENTINEL ? "sentinel_username" : "username";
	char line[LINE_SIZE];
	bool is_told = false;

	right_line(view, report, line);
	for (unsigned i = 0; i < INQUIRY_MEMORY; i++) {
		const char *refusal = report->refusals[i];

		if (!connect_is_denied(refusal) || inquiry_commands[i].rule == NULL ||
			is_told_already(report, (enum inquiry_question)i))
			continue;
		connect_say(view, SEVERITY_ERROR, key, "the user %s may not call %s: %s%s%s%s",
			user_of(view), inquiry_commands[i].name, refusal,
			is_told ? "" : own_of(view),
			is_told ? "" : "; these rights are needed, and no others:\n",
			is_told ? "" : line);
		is_told = true;
	}
}
