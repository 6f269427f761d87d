/*
 * What the answers of several servers mean together: a sentinel that is away is none too many if
 * another names the master, and so is a server of a cluster unless it is the only one that has its
 * slots. Nothing is asked here any more.
 */
#include "connect.h"

#include <stdio.h>

static void
say(const struct connect *connect, enum severity severity, const char *key, const char *text)
{
	surroundings_say(&connect->look, severity, &(const struct named_key){ "redis", "", key, 0 },
		"%s", text);
}

static bool
has_answered(const struct asked *asked)
{
	return asked->report != NULL && asked->report->end == INQUIRY_ANSWERED;
}

/* ---- sentinels ---- */

static const struct address *
named_master(const struct asked *sentinel)
{
	const bool names = sentinel->view.kind == INQUIRY_SENTINEL && has_answered(sentinel) &&
		sentinel->report->server_count > 0;

	return names ? &sentinel->report->servers[0].address : NULL;
}

static unsigned
votes_for(const struct connect *connect, const struct address *master)
{
	unsigned votes = 0;

	for (unsigned i = 0; i < connect->count; i++) {
		const struct address *named = named_master(&connect->list[i]);

		votes += named != NULL && address_is(named, master);
	}
	return votes;
}

/* Whom most of them name; NULL: nobody. */
static const struct address *
find_master(const struct connect *connect)
{
	const struct address *found = NULL;

	for (unsigned i = 0; i < connect->count; i++) {
		const struct address *named = named_master(&connect->list[i]);

		if (named != NULL &&
			(found == NULL || votes_for(connect, named) > votes_for(connect, found)))
			found = named;
	}
	return found;
}

/* Which is all that is said of a master that the others do not name. */
static void
say_other_masters(const struct connect *connect, const struct address *master)
{
	char names[2][ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < connect->count; i++) {
		const struct asked *asked = &connect->list[i];
		const struct address *named = named_master(asked);

		if (named != NULL && !address_is(named, master))
			connect_say(&asked->view, SEVERITY_WARNING, "sentinel",
				"it names %s as the master, and others name %s; if no failover is "
				"under way, they do not know each other",
				address_text(named, names[0]), address_text(master, names[1]));
	}
}

/* The master, or one of its replicas. */
static bool
is_of_master(const struct asked *asked, const struct address *master)
{
	const struct asked *known = asked->view.kind == INQUIRY_REPLICA ? asked->by : asked;

	return asked->view.kind == INQUIRY_SENTINEL || address_is(&known->settings.server, master);
}

static void
say_sentinels(struct connect *connect)
{
	const unsigned errors = connect->look.diagnostics->errors;
	const struct address *master = find_master(connect);

	for (unsigned i = 0; i < connect->count; i++) {
		struct asked *asked = &connect->list[i];

		asked->view.may_be_away = asked->view.kind != INQUIRY_MASTER_OF_SENTINELS;
		if (asked->report != NULL && (master == NULL || is_of_master(asked, master)))
			connect_words(&asked->view, asked->report, &connect->said);
	}
	if (master != NULL)
		say_other_masters(connect, master);
	else if (connect->look.diagnostics->errors == errors)
		say(connect, SEVERITY_ERROR, "sentinel", "none of them names the master");
}

/* ---- a cluster ---- */

static bool
has_told_slots(const struct asked *asked)
{
	return has_answered(asked) && asked->report->was_asked[INQUIRY_SLOTS] &&
		asked->report->refusals[INQUIRY_SLOTS][0] == '\0';
}

/* By whoever says most. */
static unsigned
slots_of(const struct connect *connect, const struct address *server)
{
	unsigned slots = 0;

	for (unsigned i = 0; i < connect->count; i++) {
		const struct inquiry_report *report = connect->list[i].report;

		for (unsigned j = 0; report != NULL && j < report->server_count; j++) {
			const struct inquiry_server *named = &report->servers[j];

			if (named->slots > slots && address_is(&named->address, server))
				slots = named->slots;
		}
	}
	return slots;
}

/* By what each master says: one that has lost a slot knows it before the others do. What those
 * without slots say counts only if there is no master. */
static bool
is_served(const struct connect *connect, unsigned slot)
{
	bool has_master = false, is_known = false;

	for (unsigned i = 0; i < connect->count; i++) {
		const struct asked *asked = &connect->list[i];

		if (!has_told_slots(asked))
			continue;
		if (asked->view.slots > 0 && !asked->report->is_served[slot])
			return false;
		has_master = has_master || asked->view.slots > 0;
		is_known = is_known || asked->report->is_served[slot];
	}
	return has_master || is_known;
}

static void
say_slots(const struct connect *connect)
{
	unsigned missing = 0, first = 0;
	char text[256];

	for (unsigned slot = INQUIRY_ALL_SLOTS; slot-- > 0;) {
		if (is_served(connect, slot))
			continue;
		missing++;
		first = slot;
	}
	if (missing == 0)
		return;
	(void)snprintf(text, sizeof text,
		"%u of the %d slots have no server that is known, slot %u the first of them; who "
		"is counted there is decided by store_down. `redis-cli --cluster check` tells more",
		missing, INQUIRY_ALL_SLOTS, first);
	say(connect, SEVERITY_ERROR, "cluster", text);
}

static void
say_cluster(struct connect *connect)
{
	const unsigned errors = connect->look.diagnostics->errors;
	bool is_told = false;

	for (unsigned i = 0; i < connect->count; i++) {
		struct asked *asked = &connect->list[i];

		asked->view.slots = slots_of(connect, &asked->settings.server);
		asked->view.may_be_away = asked->view.slots == 0;
		is_told = is_told || has_told_slots(asked);
		if (asked->report != NULL)
			connect_words(&asked->view, asked->report, &connect->said);
	}
	if (is_told)
		say_slots(connect);
	else if (connect->look.diagnostics->errors == errors)
		say(connect, SEVERITY_ERROR, "cluster",
			"none of them tells which servers have the keys");
}

/* ---- all ---- */

void
connect_together(struct connect *connect)
{
	const struct config *config = connect->snapshot->config;

	if (config->redis_cluster_count > 0)
		say_cluster(connect);
	else if (config->redis_sentinel_count > 0)
		say_sentinels(connect);
	else if (connect->list[0].report != NULL)
		connect_words(&connect->list[0].view, connect->list[0].report, &connect->said);
	if (connect->has_more)
		say(connect, SEVERITY_WARNING,
			config->redis_cluster_count > 0 ? "cluster" : "sentinel",
			"they tell of more servers than are asked here; the rest was not looked "
			"at");
}
