/*
 * What a reload changes, told from the text of both configurations; and what it does not change,
 * told from the text that weir was started with.
 */
#include "changes.h"

#include "weir/log.h"

#include <stdio.h>
#include <string.h>

/* ---- in few words ---- */

enum { ITEM_SIZE = 400, TAIL_SIZE = 32 };

struct words {
	char *out;
	size_t len;
	unsigned left_out;
};

static int
put_section(char *out, size_t size, const struct config_change *change)
{
	return snprintf(out, size, "[%s%s%s]", change->kind, change->name[0] == '\0' ? "" : " ",
		change->name);
}

static void
put_key(char *out, size_t size, const struct config_change *change)
{
	const char *before = change->before, *after = change->after;
	int n = put_section(out, size, change);

	n += snprintf(out + n, size - (size_t)n, " %s", change->key);
	if (before != NULL && after != NULL)
		n += snprintf(out + n, size - (size_t)n, ": %s -> %s",
			before[0] == '\0' ? "nothing" : before,
			after[0] == '\0' ? "nothing" : after);
	if (change->needs_restart && (size_t)n < size)
		(void)snprintf(out + n, size - (size_t)n, " (with a restart)");
}

static void
on_change(void *context, const struct config_change *change)
{
	struct words *words = context;
	char item[ITEM_SIZE] = "";

	switch (change->what) {
	case CONFIG_KEY_CHANGED:
		put_key(item, sizeof item, change);
		break;
	case CONFIG_SECTION_ADDED:
		item[0] = '+';
		(void)put_section(item + 1, sizeof item - 1, change);
		break;
	case CONFIG_SECTION_REMOVED:
		item[0] = '-';
		(void)put_section(item + 1, sizeof item - 1, change);
		break;
	case CONFIG_ORDER_CHANGED:
		(void)snprintf(item, sizeof item, "order of [%s NAME]", change->kind);
		break;
	case CONFIG_ITEMS_CHANGED:
		if (change->items_before == change->items_after)
			(void)snprintf(item, sizeof item, "other lines in %s (%u items)",
				change->name, (unsigned)change->items_after);
		else
			(void)snprintf(item, sizeof item, "%s: %u -> %u items", change->name,
				(unsigned)change->items_before, (unsigned)change->items_after);
		break;
	}
	const size_t len = strlen(item), room = CHANGES_TEXT_SIZE - TAIL_SIZE - words->len;

	if (words->left_out > 0 || len + 2 > room) {
		words->left_out++;
		return;
	}
	words->len += (size_t)snprintf(
		words->out + words->len, room, "%s%s", words->len > 0 ? "; " : "", item);
}

const char *
changes_text(const struct config *before, const struct config *after, char out[CHANGES_TEXT_SIZE])
{
	struct words words = { .out = out };

	out[0] = '\0';
	config_compare(before, after, on_change, &words);
	if (words.left_out > 0)
		(void)snprintf(out + words.len, TAIL_SIZE, "; and %u more", words.left_out);
	else if (words.len == 0)
		(void)snprintf(out, CHANGES_TEXT_SIZE, "nothing");
	return out;
}

/* ---- what a reload does not change ---- */

static bool
is_key(const struct config_change *change, const char *kind, const char *key)
{
	return strcmp(change->kind, kind) == 0 && strcmp(change->key, key) == 0;
}

static void
warn(void *context, const struct config_change *change)
{
	const struct sockets *sockets = context;
	char key[ITEM_SIZE];

	if (change->what != CONFIG_KEY_CHANGED || !change->needs_restart)
		return;
	const int n = put_section(key, sizeof key, change);

	(void)snprintf(key + n, sizeof key - (size_t)n, " %s", change->key);
	if (is_key(change, "weir", "listen") && sockets->is_inherited)
		log_warn("A changed key has no effect, after a restart neither: the sockets are "
			 "given by who starts weir.",
			LOG_TEXT("key", key), LOG_TEXT("given_by", sockets->given_by));
	else if (is_key(change, "memory", "size"))
		log_warn("A changed key takes effect only with a new file: stop weir, remove the "
			 "memory store's file, start weir.",
			LOG_TEXT("key", key));
	else
		log_warn("A changed key takes effect only with a restart.", LOG_TEXT("key", key));
}

/* Backends of `one` that have a `listen`, and that the other one has not at all. */
static void
warn_of_listens(const struct config *one, const struct config *other)
{
	for (unsigned i = 0; i < one->backend_count; i++) {
		const struct config_backend *backend = one->backends[i];
		bool is_there = backend->listen_count == 0;

		for (unsigned j = 0; j < other->backend_count && !is_there; j++)
			is_there = strcmp(other->backends[j]->name, backend->name) == 0;
		if (!is_there)
			log_warn("The `listen` of a backend that has come or gone takes effect "
				 "only with a restart.",
				LOG_TEXT("backend", backend->name));
	}
}

void
changes_warn(const struct config *first, const struct config *now, const struct sockets *sockets)
{
	warn_of_listens(first, now);
	warn_of_listens(now, first);
	config_compare(first, now, warn, (void *)(uintptr_t)sockets);
}
