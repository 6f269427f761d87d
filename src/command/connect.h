/* `weir check --connect`: what the Redis of a configuration says. Private to the room. */
#ifndef WEIR_COMMAND_CONNECT_H
#define WEIR_COMMAND_CONNECT_H

#include "surroundings.h"

#include "weir/inquiry.h"
#include "weir/snapshot.h"

/*
 * Connects to each server that [redis] names, as `serve` would, and asks it. What would keep limits
 * from being counted there is an error; what may do so one day is a warning. What is worth knowing
 * and no fault goes to standard output.
 */
void connect_check(const struct snapshot *snapshot, struct diagnostics *diagnostics);

/* ---- what its files share ---- */

/* A server that was asked. */
struct connect_view {
	struct surroundings look;
	enum inquiry_kind kind;
	const char *key; /* of [redis], that names it */
	bool may_be_away; /* others know the same */
	const struct redis_settings *settings;
	char name[ADDRESS_TEXT_SIZE];
};

/* Where the key of [redis] stands, "ADDRESS: text". */
void connect_say(const struct connect_view *view, enum severity severity, const char *key,
	const char *format, ...) WEIR_PRINTF(4, 5);

/* connect_words.c: what stands against using it. False: nothing more can be said of it. */
bool connect_words(const struct connect_view *view, const struct inquiry_report *report);

/* connect_rights.c: what the user may not do, and what he must. */
bool connect_is_denied(const char *refusal);
void connect_words_of_rights(const struct connect_view *view, const struct inquiry_report *report);

/* connect_state.c: memory, clock, time; and what the server is. */
void connect_words_of_state(const struct connect_view *view, const struct inquiry_report *report);

#endif
