/*
 * The breaker of a server as it is used: by whom, in which database and under which prefix. Another
 * process of the host that uses it otherwise may fail, or not, for reasons of its own. A master
 * that sentinels know is the same server wherever a failover puts it.
 *
 * That of a whole cluster only tells how its servers are to one process, by their own breakers.
 * Some of these are the process's alone, and a process may know servers that another does not; so
 * there is no one state that they could share.
 */
#include "weir/redis.h"

#include "weir/hash.h"

#include <string.h>

enum { PARTS = 6 };

/* The set: in whatever order they are written. */
static struct hash_wide
hash_set(const struct address *addresses, unsigned count)
{
	struct hash_wide all = { { 0 } };
	char text[ADDRESS_TEXT_SIZE];

	for (unsigned i = 0; i < count; i++) {
		const struct hash_wide one =
			hash_wide(NULL, slice_of(address_text(&addresses[i], text)));

		for (size_t j = 0; j < sizeof all.bytes; j++)
			all.bytes[j] ^= one.bytes[j];
	}
	return all;
}

static struct slice
text_of(const char *text)
{
	return text == NULL ? SLICE("") : slice_of(text);
}

static struct slice
name_of(const struct redis_settings *settings, char room[ADDRESS_TEXT_SIZE])
{
	if (settings->cluster.count > 0)
		return SLICE("cluster");
	if (settings->sentinels.count > 0)
		return text_of(settings->sentinels.master);
	return slice_of(address_text(&settings->server, room));
}

/* Each part's hash, so that no two lists of parts are the same text and the password is in none. */
struct breaker *
redis_breaker(const struct redis_settings *settings, const struct breaker_areas *areas)
{
	const bool is_cluster = settings->cluster.count > 0;
	const struct hash_wide others = is_cluster
		? hash_set(settings->cluster.addresses, settings->cluster.count)
		: hash_set(settings->sentinels.addresses, settings->sentinels.count);
	char room[ADDRESS_TEXT_SIZE];
	const struct slice parts[PARTS] = {
		name_of(settings, room),
		slice_make(others.bytes, sizeof others.bytes),
		text_of(settings->username),
		text_of(settings->password),
		slice_of(settings->prefix),
		slice_make(&settings->database, sizeof settings->database),
	};
	struct hash_wide hashes[PARTS];
	struct breaker_areas at = *areas;

	if (is_cluster)
		at.host = NULL;
	for (size_t i = 0; i < PARTS; i++)
		hashes[i] = hash_wide(NULL, parts[i]);
	return breaker_attach(&at, slice_make(hashes, sizeof hashes));
}
