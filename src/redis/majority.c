/*
 * Whom to follow when the sentinel that named the master is gone. Each of the others may be the one
 * that is behind, so none is believed by itself: all are asked with every watch, and where most of
 * those that answer agree, that is the master. It is the one in use, as a rule, and one of them is
 * watched from then on.
 *
 *     sought --most name the one in use--> one of them is watched
 *       '--most name the same other one, MAJORITY_TIMES in a row, and it says so itself--> moved
 *
 * The other one is asked for its role over a connection of its own, since the connection in use is
 * well: it is not given up for a server that is away or a replica. Where sentinels disagree and
 * none of it has a majority, all stays as it is. A server that they name in several ways counts as
 * several.
 */
#include "sentinel_private.h"

#include <string.h>

enum { MAJORITY_TIMES = 3 };

/* The next answers are the first ones. */
static void
begin_anew(struct majority *majority)
{
	inquiry_free(majority->inquiry);
	majority->inquiry = NULL;
	majority->times = 0;
	majority->has_role = false;
}

void
majority_seek(struct sentinel *sentinel)
{
	sentinel->majority.is_sought = true;
}

void
majority_stop(struct sentinel *sentinel)
{
	begin_anew(&sentinel->majority);
	sentinel->majority.is_sought = false;
}

/* ---- what they say ---- */

static bool
has_answered(const struct sentinel_link *link)
{
	return link->has_answer && !link->is_asked;
}

static unsigned
count_of(const struct sentinel *sentinel, const struct address *named)
{
	unsigned count = 0;

	for (unsigned i = 0; i < sentinel->settings->sentinels.count; i++) {
		const struct sentinel_link *link = &sentinel->links[i];

		count += has_answered(link) && (named == NULL || address_is(&link->answer, named));
	}
	return count;
}

/* One of those who name what most name; NULL: there is no majority. */
static struct sentinel_link *
most_named(struct sentinel *sentinel)
{
	const unsigned all = count_of(sentinel, NULL);

	for (unsigned i = 0; i < sentinel->settings->sentinels.count; i++) {
		struct sentinel_link *link = &sentinel->links[i];

		if (has_answered(link) && 2 * count_of(sentinel, &link->answer) > all)
			return link;
	}
	return NULL;
}

/* ---- what the other one says ---- */

static void
on_role(void *context, const struct inquiry_report *report)
{
	struct majority *majority = context;

	majority->has_role = true;
	majority->is_master = strcmp(report->role, "master") == 0;
}

/* Without memory it is tried again. */
static void
ask_for_role(struct sentinel *sentinel)
{
	struct majority *majority = &sentinel->majority;
	struct redis_settings settings = *sentinel->settings;

	settings.server = majority->other;
	majority->inquiry =
		inquiry_start(sentinel->loop, sentinel->resolver, &settings, INQUIRY_CANDIDATE,
			inquiry_end_us(sentinel->loop, settings.deadline_us), on_role, majority);
}

/* Whether it is to be followed by now. */
static bool
is_agreed(struct sentinel *sentinel, const struct address *named)
{
	struct majority *majority = &sentinel->majority;

	if (majority->times > 0 && !address_is(&majority->other, named))
		begin_anew(majority);
	majority->other = *named;
	majority->times++;
	if (majority->has_role && !majority->is_master)
		begin_anew(majority);
	else if (majority->inquiry == NULL)
		ask_for_role(sentinel);
	return majority->times >= MAJORITY_TIMES && majority->has_role;
}

/* ---- the watch ---- */

static void
ask_all(struct sentinel *sentinel)
{
	for (unsigned i = 0; i < sentinel->settings->sentinels.count; i++) {
		struct sentinel_link *link = &sentinel->links[i];

		/* It has had all the time since the last question. */
		if (link->is_asked)
			link_close(link);
		link_ask(link);
	}
}

void
majority_look(struct sentinel *sentinel)
{
	struct sentinel_link *link = most_named(sentinel);

	if (link != NULL && address_is(&link->answer, &sentinel->found)) {
		sentinel_settle(link);
		return;
	}
	if (link == NULL) {
		begin_anew(&sentinel->majority);
	} else if (is_agreed(sentinel, &link->answer)) {
		sentinel_follow(link);
		return;
	}
	ask_all(sentinel);
}
