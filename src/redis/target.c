/*
 * The breaker of a server as it is used: by whom, in which database and under which prefix. Another
 * process of the host that uses it otherwise may fail, or not, for reasons of its own.
 */
#include "weir/redis.h"

#include "weir/hash.h"

#include <string.h>

enum { PARTS = 5 };

/* Each part's hash, so that no two lists of parts are the same text and the password is in none. */
struct breaker *
redis_breaker(const struct redis_settings *settings, const struct breaker_areas *areas)
{
	char server[ADDRESS_TEXT_SIZE];
	const struct slice parts[PARTS] = {
		slice_of(address_text(&settings->server, server)),
		settings->username == NULL ? SLICE("") : slice_of(settings->username),
		settings->password == NULL ? SLICE("") : slice_of(settings->password),
		slice_of(settings->prefix),
		slice_make(&settings->database, sizeof settings->database),
	};
	struct hash_wide hashes[PARTS];

	for (size_t i = 0; i < PARTS; i++)
		hashes[i] = hash_wide(NULL, parts[i]);
	return breaker_attach(areas, slice_make(hashes, sizeof hashes));
}
