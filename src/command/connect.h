/* `weir check --connect`: what the Redis of a configuration says. Private to the room. */
#ifndef WEIR_COMMAND_CONNECT_H
#define WEIR_COMMAND_CONNECT_H

#include "surroundings.h"

#include "weir/inquiry.h"
#include "weir/snapshot.h"

/*
 * Connects to each server that [redis] names, as `serve` would, and to those that they tell of, and
 * asks all of them at the same time. What would keep limits
 * from being counted there is an error; what may do so one day is a warning. What is worth knowing
 * and no fault goes to standard output.
 */
void connect_check(const struct snapshot *snapshot, struct diagnostics *diagnostics);

/* ---- what its files share ---- */

enum { CONNECT_ASKED_MAX = INQUIRY_SERVERS_MAX + 32 };

/* A server that was asked, for those who speak of it. */
struct connect_view {
	struct surroundings look;
	enum inquiry_kind kind;
	const char *key; /* of [redis], that names it */
	bool may_be_away; /* others know the same */
	unsigned slots; /* of a cluster, that it has as their master */
	const struct redis_settings *settings;
	char name[ADDRESS_TEXT_SIZE];
};

/* What is said once, of the first that it is true of. */
struct connect_said {
	bool no_info;
};

struct asked {
	struct connect *connect;
	const struct asked *by; /* who tells of it; NULL: the file */
	struct connect_view view;
	struct redis_settings settings;
	struct inquiry *inquiry;
	const struct inquiry_report *report; /* NULL: it could not be asked */
};

struct connect {
	struct surroundings look;
	const struct snapshot *snapshot;
	struct loop *loop;
	struct resolver *resolver;
	int64_t end_us;
	struct asked *list; /* CONNECT_ASKED_MAX */
	unsigned count;
	unsigned open; /* that have not answered yet */
	bool has_more; /* than may be asked */
	struct connect_said said;
};

/* connect_together.c: says all that is to be said, when all have answered. */
void connect_together(struct connect *connect);

/* Where the key of [redis] stands, "ADDRESS: text". */
void connect_say(const struct connect_view *view, enum severity severity, const char *key,
	const char *format, ...) WEIR_PRINTF(4, 5);

/* connect_words.c: what stands against using it. */
void connect_words(const struct connect_view *view, const struct inquiry_report *report,
	struct connect_said *said);

/* connect_rights.c: whether the user is let in; what he may not do, and what he must. */
bool connect_may_log_in(const struct connect_view *view, const struct inquiry_report *report);
bool connect_is_denied(const char *refusal);
void connect_words_of_rights(const struct connect_view *view, const struct inquiry_report *report);

/* connect_state.c: memory, clock, time; and what the server is. */
void connect_words_of_state(const struct connect_view *view, const struct inquiry_report *report,
	struct connect_said *said);

#endif
