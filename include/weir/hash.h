/*
 * Hashes, all by libsodium: kept, packaged everywhere, and with one interface for what we need.
 *
 *  - hash_wide: BLAKE2b (RFC 7693), 128 bits. For what must never collide: identities that are
 * long, binary or secret, and the memory store's slots. With a key it is a MAC: who reads Redis
 * cannot try out API keys without the secret of `hash_key_file`. BLAKE2b rather than SHA-256, since
 * it takes a key by itself and is about twice as fast on the short inputs that we have.
 *  - hash_sha256: for values that an administrator gives only by their hash, since sha256sum is on
 * every host.
 *  - hash_tag: 32 bits of the unkeyed hash, the same on every host and in every version. For names
 * in stored state.
 */
#ifndef WEIR_HASH_H
#define WEIR_HASH_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

enum { HASH_KEY_SIZE = 32, HASH_WIDE_SIZE = 16, HASH_TEXT_SIZE = 23, HASH_SHA256_SIZE = 32 };

struct hash_wide {
	uint8_t bytes[HASH_WIDE_SIZE];
};

/* Once, before anything else of this header. -1 if the system gives no randomness. */
int hash_start(struct err *err) WEIR_MUST_CHECK;

void hash_random(void *out, size_t len);

/* `key` may be NULL, or HASH_KEY_SIZE bytes. */
struct hash_wide hash_wide(const uint8_t *key, struct slice data);

/* base64url without padding, 22 characters and the terminator. Returns `out`. */
const char *hash_text(struct hash_wide hash, char out[HASH_TEXT_SIZE]);

void hash_sha256(struct slice data, uint8_t out[HASH_SHA256_SIZE]);

uint32_t hash_tag(struct slice data);

#endif
