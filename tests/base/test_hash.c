/* hash.h: which bytes stand for a text, on every host and in every version. */
#include "../unit.h"
#include "weir/hash.h"

static uint8_t key[HASH_KEY_SIZE];

static int
start(void **state)
{
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof key; i++)
		key[i] = (uint8_t)i;
	return hash_start(&err);
}

static void
assert_bytes(struct hash_wide hash, const char *hex)
{
	for (size_t i = 0; i < HASH_WIDE_SIZE; i++) {
		const char digits[] = { hex[2 * i], hex[2 * i + 1], '\0' };

		assert_int_equal(hash.bytes[i], strtoul(digits, NULL, 16));
	}
}

/* Stored state is read with them: made with another implementation (Python's hashlib). */
static void
hashes_are_blake2b_of_128_bits(void **state)
{
	(void)state;
	assert_bytes(hash_wide(NULL, SLICE("")), "cae66941d9efbd404e4d88758ea67670");
	assert_bytes(hash_wide(NULL, slice_of(NULL)), "cae66941d9efbd404e4d88758ea67670");
	assert_bytes(hash_wide(NULL, SLICE("abc")), "cf4ab791c62b8d2b2109c90275287816");
	assert_bytes(hash_wide(key, SLICE("abc")), "1a64be47e4729d951c302ee543f97cf3");
}

static void
texts_of_hashes_are_base64url(void **state)
{
	char text[HASH_TEXT_SIZE];
	struct hash_wide hash;

	(void)state;
	assert_string_equal(
		hash_text(hash_wide(NULL, SLICE("abc")), text), "z0q3kcYrjSshCckCdSh4Fg");
	memset(hash.bytes, 0xff, sizeof hash.bytes);
	assert_string_equal(hash_text(hash, text), "_____________________w");
}

static void
tag_is_the_first_bytes_of_the_hash(void **state)
{
	(void)state;
	assert_int_equal(hash_tag(SLICE("abc")), 0xcf4ab791);
	assert_int_equal(hash_tag(SLICE("")), 0xcae66941);
}

static void
every_byte_of_key_and_data_counts(void **state)
{
	char data[300];

	(void)state;
	memset(data, 'd', sizeof data);
	const struct hash_wide whole = hash_wide(key, slice_make(data, sizeof data));

	for (size_t i = 0; i < sizeof data; i++) {
		data[i] ^= 1;
		const struct hash_wide other = hash_wide(key, slice_make(data, sizeof data));

		assert_memory_not_equal(whole.bytes, other.bytes, HASH_WIDE_SIZE);
		data[i] ^= 1;
	}
	for (size_t i = 0; i < sizeof key; i++) {
		key[i] ^= 1;
		const struct hash_wide other = hash_wide(key, slice_make(data, sizeof data));

		assert_memory_not_equal(whole.bytes, other.bytes, HASH_WIDE_SIZE);
		key[i] ^= 1;
	}
}

static void
random_bytes_are_filled_to_the_last(void **state)
{
	unsigned char seen[40] = { 0 };

	(void)state;
	/* A byte is 0 sixteen times in a row once in 2^128 runs. */
	for (unsigned round = 0; round < 16; round++) {
		unsigned char bytes[sizeof seen];

		hash_random(bytes, sizeof bytes);
		for (size_t i = 0; i < sizeof seen; i++)
			seen[i] |= bytes[i];
	}
	for (size_t i = 0; i < sizeof seen; i++)
		assert_int_not_equal(seen[i], 0);
}

/* As sha256sum(1) has it, whose output administrators write into files. */
static void
sha256_is_that_of_the_standard(void **state)
{
	static const struct {
		const char *text;
		uint8_t first, last;
	} rows[] = { { "", 0xe3, 0x55 }, { "abc", 0xba, 0xad } };
	uint8_t out[HASH_SHA256_SIZE];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		hash_sha256(slice_of(rows[i].text), out);
		assert_int_equal(out[0], rows[i].first);
		assert_int_equal(out[HASH_SHA256_SIZE - 1], rows[i].last);
	}
	hash_sha256(slice_of(NULL), out);
	assert_int_equal(out[0], rows[0].first);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hashes_are_blake2b_of_128_bits),
		cmocka_unit_test(texts_of_hashes_are_base64url),
		cmocka_unit_test(tag_is_the_first_bytes_of_the_hash),
		cmocka_unit_test(sha256_is_that_of_the_standard),
		cmocka_unit_test(every_byte_of_key_and_data_counts),
		cmocka_unit_test(random_bytes_are_filled_to_the_last),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
