/* Who is counted, by every source there is and by several at once. */
#include "routing.h"

static struct arena arena;
static struct config *config;

static int
setup(void **state)
{
	struct err err;

	arena_init(&arena, ARENA_MAX);
	config = NULL;
	return hash_start(&err) != 0 ? -1 : load_setup(state);
}

static int
teardown(void **state)
{
	config_free(config);
	arena_release(&arena);
	return load_teardown(state);
}

/* A limit `l` by this identity, on a route `shop` with a backend `php`. */
static const struct config_limit *
limit_by(const char *identity)
{
	char sections[512];

	(void)snprintf(sections, sizeof sections,
		"[limit l]\nidentity = %s\non_missing = share\npolicy = 5/1m\n"
		"[backend php]\nserver = unix:/run/php.sock\n"
		"[route shop]\nmatch = /r\nlimit = l\nbackend = php\n"
		"[route other]\nmatch = /o\nbackend = php\n[route]\nbackend = rest\n",
		identity);
	config_free(config);
	config = NULL;
	config = configured(sections);
	return config->limits[0];
}

static enum identity_result
key_with(const struct config_limit *limit, const uint8_t *hash_key, const char *const *env,
	struct slice *key)
{
	struct asker asker;
	struct view view;

	arena_release(&arena);
	arena_init(&arena, ARENA_MAX);
	assert_int_equal(view_of(&view, env, &arena), 0);
	asker_init(&asker, &view, config->routes[0], NULL, hash_key);
	return identity_key(&asker, limit, &arena, key);
}

struct row {
	const char *identity, *env[4];
	const char *key; /* as far as a `#`; NULL: missing */
};

static void
assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *const env[] = { rows[i].env[0], rows[i].env[1], rows[i].env[2],
			rows[i].env[3], NULL };
		const char *expected = rows[i].key == NULL ? "l:none" : rows[i].key;
		struct slice key;

		const enum identity_result result =
			key_with(limit_by(rows[i].identity), NULL, env, &key);
		const size_t len = strlen(expected);
		const bool is_hashed = expected[len - 1] == '#';

		assert_true(result == IDENTITY_FOUND || result == IDENTITY_NO_ADDRESS);
		assert_row(
			slice_is(slice_first(key, is_hashed ? len : key.len), slice_of(expected)) &&
				(!is_hashed || key.len == len + HASH_TEXT_SIZE - 1),
			"%s, %s: \"%.*s\"", rows[i].identity, rows[i].env[0], (int)key.len,
			key.ptr);
	}
}

/* ---- every source ---- */

static void
each_source_writes_itself(void **state)
{
	static const struct row rows[] = {
		{ "env SSL_CLIENT_CN", { "SSL_CLIENT_CN=alice" }, "l:env:SSL_CLIENT_CN=alice" },
		{ "env SSL_CLIENT_DN", { "SSL_CLIENT_DN=CN=a" }, "l:env#" },
		{ "env SSL_CLIENT_CN", { "SSL_CLIENT_CN=" }, NULL },
		{ "env SSL_CLIENT_CN", { "OTHER=" }, NULL },
		{ "env HTTP_X_TOKEN", { "HTTP_X_TOKEN=abc" }, "l:env#" }, /* secret */
		{ "cookie session", { "HTTP_COOKIE=a=1; session=abc" }, "l:cookie#" },
		{ "cookie session", { "HTTP_COOKIE=session=" }, NULL },
		{ "cookie session", { "HTTP_COOKIE=Session=1" }, NULL },
		{ "param key", { "QUERY_STRING=key=abc" }, "l:param#" },
		{ "param key", { "QUERY_STRING=key" }, NULL },
		{ "param key", { "QUERY_STRING=" }, NULL },
		{ "header X-Key", { "HTTP_X_KEY=abc" }, "l:header#" },
		{ "host", { "HTTP_HOST=Example.ORG.:8080" }, "l:host=example.org" },
		{ "host", { "HTTP_HOST=[2001:DB8::1]:80" }, "l:host#" },
		{ "host", { "HTTP_HOST=a{b}" }, "l:host#" },
		{ "host", { "HTTP_HOST=" }, NULL },
		{ "host", { "HTTP_HOST=:80" }, NULL },
		{ "path", { "REQUEST_URI=//a/../b%63?x=1" }, "l:path=/bc" },
		{ "path", { "REQUEST_URI=/a+b" }, "l:path#" },
		{ "path", { "REQUEST_URI=/a%7bb%7d" }, "l:path#" },
		{ "path", { "REQUEST_URI=*" }, "l:path#" },
		{ "path", { "OTHER=" }, "l:path=/" },
		{ "backend", { "OTHER=" }, "l:backend=php" },
		{ "route", { "OTHER=" }, "l:route=shop" },
		{ "all", { "OTHER=" }, "l:all" },
		{ "user", { "REMOTE_USER=a+b", "AUTH_TYPE=Basic" }, "l:user#" },
		{ "user", { "REMOTE_USER=a=b", "AUTH_TYPE=Basic" }, "l:user#" },
		{ "user", { "REMOTE_USER=a b", "AUTH_TYPE=Basic" }, "l:user#" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
parts_are_joined_and_all_of_them_must_be_there(void **state)
{
	static const struct row rows[] = {
		{ "ip+path", { "REMOTE_ADDR=192.0.2.1", "REQUEST_URI=/a" }, "l:192.0.2.1+path=/a" },
		{ "path+ip", { "REMOTE_ADDR=192.0.2.1", "REQUEST_URI=/a" }, "l:path=/a+192.0.2.1" },
		{ "ip/24/48+path", { "REMOTE_ADDR=192.0.2.1", "REQUEST_URI=/a" },
			"l:192.0.2.0/24+path=/a" },
		{ "backend+ip", { "REMOTE_ADDR=2001:db8::1" }, "l:backend=php+2001:db8::/64" },
		{ "backend+ip", { "REMOTE_ADDR=unix:" }, "l:backend=php+ip=none" },
		{ "user+ip", { "REMOTE_ADDR=192.0.2.1", "REMOTE_USER=a", "AUTH_TYPE=x" },
			"l:user=a+192.0.2.1" },
		{ "user+ip", { "REMOTE_ADDR=192.0.2.1" }, NULL },
		{ "ip+user", { "REMOTE_ADDR=192.0.2.1" }, NULL },
		{ "user+ip, ip", { "REMOTE_ADDR=192.0.2.1" }, "l:192.0.2.1" },
		{ "route+host+path", { "HTTP_HOST=a.test", "REQUEST_URI=/x" },
			"l:route=shop+host=a.test+path=/x" },
		{ "ip+header X", { "REMOTE_ADDR=192.0.2.1", "HTTP_X=1" }, "l:192.0.2.1+header#" },
		{ "env A+env B", { "A=1", "B=2" }, "l:env:A=1+env:B=2" },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
without_an_address_it_is_said(void **state)
{
	static const char *const none[] = { "REMOTE_ADDR=", "REMOTE_USER=a", "AUTH_TYPE=x", NULL };
	struct slice key;

	(void)state;
	assert_int_equal(key_with(limit_by("path+ip"), NULL, none, &key), IDENTITY_NO_ADDRESS);
	assert_int_equal(key_with(limit_by("user, ip"), NULL, none, &key), IDENTITY_FOUND);
	assert_int_equal(key_with(limit_by("ip+cookie c, user"), NULL, none, &key), IDENTITY_FOUND);
	assert_slice(key, SLICE("l:user=a"));
	assert_int_equal(
		key_with(limit_by("ip+cookie c, ip"), NULL, none, &key), IDENTITY_NO_ADDRESS);
}

/* A cookie's first value; a parameter's if all are the same. See route.h. */
static void
of_a_repeated_value_one_counts(void **state)
{
	static const struct {
		const char *identity, *several, *one;
	} rows[] = {
		{ "param k", "QUERY_STRING=k=2&k=2", "QUERY_STRING=k=2" },
		{ "param k", "QUERY_STRING=k=&k=%32&K=3", "QUERY_STRING=k=2" },
		{ "param k", "QUERY_STRING=k=1&k=2", "QUERY_STRING=k=3&k=4" },
		{ "param k", "QUERY_STRING=k=1&k=2", "QUERY_STRING=k=2&k=1&k=7" },
		{ "cookie k", "HTTP_COOKIE=k=1; k=2", "HTTP_COOKIE=k=1" },
		{ "cookie k", "HTTP_COOKIE=a=k; k=1;k=2", "HTTP_COOKIE=k=1;x" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct config_limit *limit = limit_by(rows[i].identity);
		const char *const several[] = { rows[i].several, NULL };
		const char *const one[] = { rows[i].one, NULL };
		char first[64];
		struct slice key;

		assert_int_equal(key_with(limit, NULL, several, &key), IDENTITY_FOUND);
		(void)snprintf(first, sizeof first, "%.*s", (int)key.len, key.ptr);
		assert_int_equal(key_with(limit, NULL, one, &key), IDENTITY_FOUND);
		assert_slice(key, slice_of(first));
	}
}

/* ---- secrets ---- */

static void
secrets_do_not_stand_in_a_key(void **state)
{
	static const uint8_t one[HASH_KEY_SIZE] = { 1 };
	static const char *const identities[] = { "header X-Key", "cookie key", "param key",
		"env HTTP_X_KEY", "ip+header X-Key", "param key+cookie key" };
	static const char *const env[] = { "HTTP_X_KEY=s3cretvalue", "HTTP_COOKIE=key=s3cretvalue",
		"QUERY_STRING=key=s3cretvalue", "REMOTE_ADDR=192.0.2.1", NULL };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(identities); i++) {
		const struct config_limit *limit = limit_by(identities[i]);
		char bare[256];
		struct slice key;

		assert_int_equal(key_with(limit, NULL, env, &key), IDENTITY_FOUND);
		assert_null(memmem(key.ptr, key.len, "s3cret", 6));
		(void)snprintf(bare, sizeof bare, "%.*s", (int)key.len, key.ptr);
		assert_int_equal(key_with(limit, one, env, &key), IDENTITY_FOUND);
		assert_false(slice_is(key, slice_of(bare)));
	}
}

/* ---- lengths ---- */

static void
a_long_identity_is_hashed_as_a_whole(void **state)
{
	const struct config_limit *limit = limit_by("env A+env B+env C");
	char params[3][80];
	struct slice key;
	struct hash_wide seen[40];
	unsigned count = 0;

	(void)state;
	for (unsigned len = 1; len <= 40; len++) {
		for (unsigned i = 0; i < 3; i++)
			(void)snprintf(params[i], sizeof params[i], "%c=%.*s", "ABC"[i], (int)len,
				"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
		assert_int_equal(
			key_with(limit, NULL,
				(const char *const[]){ params[0], params[1], params[2], NULL },
				&key),
			IDENTITY_FOUND);
		/* Three times `env:A=` and the value, and what joins them. */
		if (3 * (6 + len) + 2 <= 128)
			assert_int_equal(key.len, 2 + 3 * (6 + len) + 2);
		else
			assert_true(slice_has_prefix(key, SLICE("l:#")) &&
				key.len == 3 + HASH_TEXT_SIZE - 1);
		seen[count] = hash_wide(NULL, key);
		for (unsigned i = 0; i < count; i++)
			assert_memory_not_equal(&seen[i], &seen[count], sizeof seen[0]);
		count++;
	}
}

/* Of a value of any length every byte counts. */
static void
no_value_is_cut(void **state)
{
	enum { LEN = 200000 };
	static const char *const identities[] = { "header X", "user", "env X_LONG", "param k",
		"cookie k", "path", "host" };
	char *text = malloc(LEN + 64);

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < LENGTH_OF(identities); i++) {
		static const char *const prefixes[] = { "HTTP_X=", "REMOTE_USER=", "X_LONG=",
			"QUERY_STRING=k=", "HTTP_COOKIE=k=", "REQUEST_URI=/", "HTTP_HOST=" };
		const struct config_limit *limit = limit_by(identities[i]);
		const size_t first = strlen(prefixes[i]);
		struct hash_wide hashes[3];

		for (unsigned which = 0; which < 3; which++) {
			struct slice key;

			memcpy(text, prefixes[i], first);
			memset(text + first, 'a', LEN);
			text[first + LEN] = '\0';
			if (which > 0)
				text[first + (which == 1 ? LEN - 1 : LEN / 2)] = 'b';
			assert_int_equal(
				key_with(limit, NULL,
					(const char *const[]){ text, "AUTH_TYPE=x", NULL }, &key),
				IDENTITY_FOUND);
			assert_in_range(key.len, 24, 40);
			hashes[which] = hash_wide(NULL, key);
		}
		assert_memory_not_equal(&hashes[0], &hashes[1], sizeof hashes[0]);
		assert_memory_not_equal(&hashes[0], &hashes[2], sizeof hashes[0]);
		assert_memory_not_equal(&hashes[1], &hashes[2], sizeof hashes[0]);
	}
	free(text);
}

/* ---- no two tuples meet ---- */

enum { TUPLES = 30000, VALUES = 4 };

struct tuple {
	char who[700]; /* the values, each with its length: who it really is */
	char key[256];
};

/* Pieces that have made two tuples one elsewhere. */
static void
hostile_value(uint64_t *random, char *out)
{
	static const char *const pieces[] = { "a", "b", "+", "=", "#", ":", "/", "{", "}",
		"+env:B=", "+user=", "env:B=b", "a+env:B=b", "192.0.2.1", "ip=none", "none", "all",
		"\xff", "\x01", "\r\n", " ", "|", "%2b", "\\", "\xc3\xa4", "header#",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };

	out[0] = '\0';
	for (size_t n = 1 + random_below(random, 3); n > 0; n--)
		(void)strcat(out, pieces[random_below(random, LENGTH_OF(pieces))]);
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct tuple *)a)->key, ((const struct tuple *)b)->key);
}

static void
make_tuple(const struct config_limit *limit, uint64_t *random, struct tuple *tuple)
{
	static const char *const names[VALUES] = { "A=", "B=", "REMOTE_USER=", "HTTP_H=" };
	const unsigned present = (unsigned)random_below(random, 1 << VALUES);
	char params[VALUES][256];
	const char *env[VALUES + 2];
	struct slice key;
	size_t len = 0, count = 0;

	for (size_t i = 0; i < VALUES; i++) {
		char value[200];

		hostile_value(random, value);
		if (!(present & 1U << i))
			continue;
		(void)snprintf(params[i], sizeof params[i], "%s%s", names[i], value);
		env[count++] = params[i];
	}
	env[count++] = "AUTH_TYPE=x";
	env[count] = NULL;
	const bool a = present & 1, b = present & 2, user = present & 4, header = present & 8;
	/* What counts of them: see the identities below. */
	const unsigned counts = a && b && user ? 7
		: a && b                       ? 3
		: b && user                    ? 6
		: a && header                  ? 9
		: b && header                  ? 10
		: a                            ? 1
		: b                            ? 2
		: user                         ? 4
		: header                       ? 8
					       : 0;

	tuple->who[0] = '\0';
	for (size_t i = 0; i < VALUES; i++) {
		if (counts & 1U << i)
			len += (size_t)snprintf(tuple->who + len, sizeof tuple->who - len,
				"%zu %zu %s;", i, strlen(params[i]), params[i]);
	}
	assert_int_equal(key_with(limit, NULL, env, &key), IDENTITY_FOUND);
	assert_in_range(key.len, 1, 2 + 128);
	for (size_t i = 0; i < key.len; i++)
		assert_true(key.ptr[i] > ' ' && key.ptr[i] < 0x7f && key.ptr[i] != '{' &&
			key.ptr[i] != '}');
	(void)snprintf(tuple->key, sizeof tuple->key, "%.*s", (int)key.len, key.ptr);
}

static void
equal_keys_are_of_equal_tuples_only(void **state)
{
	const struct config_limit *limit = limit_by(
		"env A+env B+user, env A+env B, env B+user, env A+header H, env B+header H, "
		"env A, env B, user, header H");
	struct tuple *tuples = calloc(TUPLES, sizeof *tuples);
	uint64_t random = 4711;
	unsigned same = 0;

	(void)state;
	assert_non_null(tuples);
	for (size_t i = 0; i < TUPLES; i++)
		make_tuple(limit, &random, &tuples[i]);
	qsort(tuples, TUPLES, sizeof *tuples, compare_keys);
	for (size_t i = 1; i < TUPLES; i++) {
		const bool same_key = strcmp(tuples[i - 1].key, tuples[i].key) == 0;
		const bool same_who = strcmp(tuples[i - 1].who, tuples[i].who) == 0;

		assert_row(!same_key || same_who, "\"%s\" and \"%s\" share \"%s\"",
			tuples[i - 1].who, tuples[i].who, tuples[i].key);
		same += same_key;
	}
	/* It has met itself, else nothing was tried. */
	assert_in_range(same, 100, TUPLES - 1000);
	free(tuples);
}

/* The same who must have one key. */
static int
compare_who(const void *a, const void *b)
{
	return strcmp(((const struct tuple *)a)->who, ((const struct tuple *)b)->who);
}

static void
equal_tuples_have_one_key(void **state)
{
	enum { SOME = 10000 };
	const struct config_limit *limit = limit_by(
		"env A+env B+user, env A+env B, env B+user, env A+header H, env B+header H, "
		"env A, env B, user, header H");
	struct tuple *tuples = calloc(SOME, sizeof *tuples);
	uint64_t random = 815;
	unsigned same = 0;

	(void)state;
	assert_non_null(tuples);
	for (size_t i = 0; i < SOME; i++)
		make_tuple(limit, &random, &tuples[i]);
	qsort(tuples, SOME, sizeof *tuples, compare_who);
	for (size_t i = 1; i < SOME; i++) {
		if (strcmp(tuples[i - 1].who, tuples[i].who) != 0)
			continue;
		same++;
		assert_string_equal(tuples[i - 1].key, tuples[i].key);
	}
	assert_in_range(same, 100, SOME);
	free(tuples);
}

#define composite_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		composite_test(each_source_writes_itself),
		composite_test(parts_are_joined_and_all_of_them_must_be_there),
		composite_test(without_an_address_it_is_said),
		composite_test(of_a_repeated_value_one_counts),
		composite_test(secrets_do_not_stand_in_a_key),
		composite_test(a_long_identity_is_hashed_as_a_whole),
		composite_test(no_value_is_cut),
		composite_test(equal_keys_are_of_equal_tuples_only),
		composite_test(equal_tuples_have_one_key),
	};

	return cmocka_run_group_tests_name("route/composites", tests, NULL, NULL);
}
