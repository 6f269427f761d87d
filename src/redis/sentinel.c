/*
 * Where the master is, as the sentinels say.
 *
 * A round asks one sentinel after another, each a little after the one before or as soon as that
 * has failed, and takes the first answer: a sentinel whose host is gone costs a fraction of the
 * deadline. An answer may be old, while a failover is under way or of a sentinel that is cut off
 * from the others; so the one who connects asks the server for its role, and when it finds no
 * master there, it says so and the next round begins with another sentinel.
 *
 * While the master is used, the sentinel that named it is asked again every second. That notices a
 * failover which the connection does not feel: after one that was ordered, or in which only the
 * sentinels have lost the old master, that one goes on as a master for ten seconds or for good. It
 * notices too that the sentinel itself has gone, and so does more than a subscription to
 * +switch-master, whose silence proves nothing. Only a sentinel that changes its mind is followed:
 * another one that disagrees may be the one that is behind. When the one that named the master is
 * gone, most of the others are (majority.c).
 *
 * It sets no bound of its own on a round; its owner's deadline is.
 */
#include "sentinel_private.h"

#include <stdio.h>
#include <stdlib.h>

enum { WATCH_US = 1000000, PARTS_OF_DEADLINE = 8 };

static void
close_all_but(struct sentinel *sentinel, const struct sentinel_link *kept)
{
	for (unsigned i = 0; i < sentinel->settings->sentinels.count; i++) {
		if (&sentinel->links[i] != kept)
			link_close(&sentinel->links[i]);
	}
}

/* ---- a round ---- */

static void
ask_next(struct sentinel *sentinel)
{
	const unsigned count = sentinel->settings->sentinels.count;

	if (sentinel->asked == count)
		return;
	struct sentinel_link *link =
		&sentinel->links[(sentinel->first + sentinel->asked++) % count];

	timer_set(sentinel->next_timer,
		loop_now_us(sentinel->loop) + sentinel->settings->deadline_us / PARTS_OF_DEADLINE);
	link_ask(link);
}

static void
on_next(void *context)
{
	ask_next(context);
}

void
sentinel_ask(struct sentinel *sentinel)
{
	sentinel_stop(sentinel);
	sentinel->asks = true;
	sentinel->asked = 0;
	sentinel->lost = 0;
	ask_next(sentinel);
}

void
sentinel_stop(struct sentinel *sentinel)
{
	sentinel->asks = false;
	timer_cancel(sentinel->next_timer);
	timer_cancel(sentinel->watch_timer);
	majority_stop(sentinel);
	for (unsigned i = 0; i < sentinel->settings->sentinels.count; i++) {
		if (sentinel->links[i].is_asked)
			link_close(&sentinel->links[i]);
	}
}

void
sentinel_doubt(struct sentinel *sentinel)
{
	sentinel->first = (sentinel->first + 1) % sentinel->settings->sentinels.count;
}

void
sentinel_settle(struct sentinel_link *link)
{
	struct sentinel *sentinel = link->sentinel;

	sentinel->first = (unsigned)(link - sentinel->links);
	sentinel->found = link->answer;
	majority_stop(sentinel);
	close_all_but(sentinel, link);
}

void
sentinel_follow(struct sentinel_link *link)
{
	struct sentinel *sentinel = link->sentinel;
	const struct address answer = link->answer;

	sentinel_settle(link);
	sentinel->handler->moved(sentinel->context, &answer);
}

void
sentinel_answered(struct sentinel_link *link, bool is_news)
{
	struct sentinel *sentinel = link->sentinel;
	const struct address answer = link->answer;

	if (sentinel->asks) {
		sentinel->asks = false;
		timer_cancel(sentinel->next_timer);
		sentinel_settle(link);
		sentinel->handler->found(sentinel->context, &answer);
	} else if (is_news) {
		sentinel_follow(link);
	}
}

/* The one that named the master. */
static void
lose_first(struct sentinel *sentinel)
{
	sentinel_doubt(sentinel);
	majority_seek(sentinel);
}

void
sentinel_failed(struct sentinel_link *link, const char *why)
{
	struct sentinel *sentinel = link->sentinel;
	char name[ADDRESS_TEXT_SIZE];

	if (!sentinel->asks) {
		if (!sentinel->majority.is_sought)
			lose_first(sentinel);
		return;
	}
	(void)snprintf(sentinel->why, sizeof sentinel->why, NO_SENTINEL ", the last one %.80s: %s",
		address_text(link->address, name), why);
	if (++sentinel->lost < sentinel->settings->sentinels.count) {
		if (sentinel->lost == sentinel->asked)
			ask_next(sentinel);
		return;
	}
	sentinel->asks = false;
	timer_cancel(sentinel->next_timer);
	sentinel->handler->failed(sentinel->context, sentinel->why);
}

/* ---- while the master is used ---- */

static void
on_watch(void *context)
{
	struct sentinel *sentinel = context;
	struct sentinel_link *link = &sentinel->links[sentinel->first];

	timer_set(sentinel->watch_timer, loop_now_us(sentinel->loop) + WATCH_US);
	if (!sentinel->majority.is_sought && link->is_asked) {
		/* It has had all the time since the last question. */
		link_close(link);
		lose_first(sentinel);
	}
	if (sentinel->majority.is_sought)
		majority_look(sentinel);
	else
		link_ask(link);
}

void
sentinel_watch(struct sentinel *sentinel)
{
	timer_set(sentinel->watch_timer, loop_now_us(sentinel->loop) + WATCH_US);
}

/* ---- life ---- */

struct sentinel *
sentinel_new(struct loop *loop, struct resolver *resolver, const struct redis_settings *settings,
	const struct sentinel_handler *handler, void *context)
{
	const unsigned count = settings->sentinels.count;
	struct sentinel *sentinel = calloc(1, sizeof *sentinel);

	if (sentinel == NULL)
		return NULL;
	sentinel->loop = loop;
	sentinel->resolver = resolver;
	sentinel->settings = settings;
	sentinel->handler = handler;
	sentinel->context = context;
	sentinel->links = calloc(count, sizeof sentinel->links[0]);
	sentinel->next_timer = timer_new(loop, on_next, sentinel);
	sentinel->watch_timer = timer_new(loop, on_watch, sentinel);
	if (sentinel->links == NULL || sentinel->next_timer == NULL ||
		sentinel->watch_timer == NULL) {
		sentinel_free(sentinel);
		return NULL;
	}
	for (unsigned i = 0; i < count; i++) {
		sentinel->links[i].sentinel = sentinel;
		sentinel->links[i].address = &settings->sentinels.addresses[i];
	}
	return sentinel;
}

void
sentinel_free(struct sentinel *sentinel)
{
	if (sentinel == NULL)
		return;
	majority_stop(sentinel);
	if (sentinel->links != NULL)
		close_all_but(sentinel, NULL);
	timer_free(sentinel->next_timer);
	timer_free(sentinel->watch_timer);
	free(sentinel->links);
	free(sentinel);
}
