/* Hashes by libsodium; see hash.h for which and why. */
#include "weir/hash.h"

#include <sodium.h>

int
hash_start(struct err *err)
{
	if (sodium_init() < 0)
		return err_set(err, "the system's random number generator cannot be used");
	return 0;
}

void
hash_random(void *out, size_t len)
{
	randombytes_buf(out, len);
}

struct hash_wide
hash_wide(const uint8_t *key, struct slice data)
{
	struct hash_wide hash;

	(void)crypto_generichash(hash.bytes, sizeof hash.bytes, (const unsigned char *)data.ptr,
		data.len, key, key == NULL ? 0 : HASH_KEY_SIZE);
	return hash;
}

const char *
hash_text(struct hash_wide hash, char out[HASH_TEXT_SIZE])
{
	return sodium_bin2base64(out, HASH_TEXT_SIZE, hash.bytes, sizeof hash.bytes,
		sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

void
hash_sha256(struct slice data, uint8_t out[HASH_SHA256_SIZE])
{
	_Static_assert(HASH_SHA256_SIZE == crypto_hash_sha256_BYTES, "a SHA-256 is 32 bytes");
	(void)crypto_hash_sha256(out, (const unsigned char *)data.ptr, data.len);
}

uint32_t
hash_tag(struct slice data)
{
	const struct hash_wide hash = hash_wide(NULL, data);

	return (uint32_t)hash.bytes[0] << 24 | (uint32_t)hash.bytes[1] << 16 |
		(uint32_t)hash.bytes[2] << 8 | hash.bytes[3];
}
