/* Who is counted: the names of buckets. */
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

/* The limit that these lines make; its name is `l`. */
static const struct config_limit *
limit_of(const char *lines)
{
	char sections[512];

	(void)snprintf(sections, sizeof sections,
		"[limit l]\n%s\npolicy = 5/1m\n[route r]\nmatch = /r\nlimit = l\n", lines);
	config_free(config);
	config = configured(sections);
	return config->limits[0];
}

static enum identity_result
key_with(const struct config_limit *limit, const uint8_t *hash_key, const char *const *env,
	struct slice *key)
{
	struct view view;

	*key = (struct slice){ NULL, 0 };
	assert_int_equal(view_of(&view, env, &arena), 0);
	struct asker asker;

	asker_init(&asker, &view, NULL, NULL, hash_key);
	return identity_key(&asker, limit, &arena, key);
}

#define key_of(limit, key, ...)                                                                    \
	key_with(limit, NULL, (const char *const[]){ __VA_ARGS__, NULL }, key)

/* The bucket of a request with these parameters. */
static void
assert_bucket(const struct config_limit *limit, const char *const *env, const char *expected)
{
	struct slice key;

	assert_int_equal(key_with(limit, NULL, env, &key), IDENTITY_FOUND);
	assert_slice(key, slice_of(expected));
}

#define assert_key(limit, expected, ...)                                                           \
	assert_bucket(limit, (const char *const[]){ __VA_ARGS__, NULL }, expected)

/* ---- addresses ---- */

static void
an_address_is_itself_and_a_v6_one_its_network(void **state)
{
	const struct config_limit *limit = limit_of("");

	(void)state;
	assert_key(limit, "l:192.0.2.1", "REMOTE_ADDR=192.0.2.1");
	assert_key(limit, "l:2001:db8:1:2::/64", "REMOTE_ADDR=2001:db8:1:2:3:4:5:6");
	assert_key(limit, "l:2001:db8:1:2::/64", "REMOTE_ADDR=[2001:DB8:1:2::1]:443");
	assert_key(limit, "l:2001:db8:1:3::/64", "REMOTE_ADDR=2001:db8:1:3::1");
}

static void
a_mapped_address_is_the_v4_one(void **state)
{
	const struct config_limit *limit = limit_of("");

	(void)state;
	assert_key(limit, "l:192.0.2.1", "REMOTE_ADDR=::ffff:192.0.2.1");
	assert_key(limit, "l:192.0.2.1", "REMOTE_ADDR=::ffff:c000:0201");
	assert_key(limit, "l:192.0.2.1", "REMOTE_ADDR=64:ff9b::192.0.2.1");
	assert_key(limit, "l:192.0.2.2", "REMOTE_ADDR=64:ff9b::192.0.2.2");
	assert_key(limit, "l:2001:db8:1234:5678::/64", "REMOTE_ADDR=2001:db8:1234:5678::1.2.3.4");
}

/* A client that writes the name otherwise has no second bucket. */
static void
a_parameter_is_counted_in_any_case_if_that_is_said(void **state)
{
	const struct config_limit *limit = limit_of("identity = param LayerS nocase, ip\n");
	struct slice keys[4], one, other;

	(void)state;
	assert_int_equal(key_of(limit, &keys[0], "QUERY_STRING=layers=a"), IDENTITY_FOUND);
	assert_int_equal(key_of(limit, &keys[1], "QUERY_STRING=x=1&LAYERS=a"), IDENTITY_FOUND);
	assert_int_equal(key_of(limit, &keys[2], "QUERY_STRING=Layers=a&lAYERS=a"), IDENTITY_FOUND);
	for (unsigned i = 1; i < 3; i++)
		assert_slice(keys[i], keys[0]);
	assert_true(slice_has_prefix(keys[0], SLICE("l:param#")));
	assert_int_equal(key_of(limit, &keys[3], "QUERY_STRING=layers=b"), IDENTITY_FOUND);
	assert_false(slice_is(keys[3], keys[0]));
	/* Who can be read as either is one of all such. */
	assert_int_equal(key_of(limit, &one, "QUERY_STRING=layers=a&LAYERS=b"), IDENTITY_FOUND);
	assert_int_equal(key_of(limit, &other, "QUERY_STRING=Layers=c&LAYERS=d"), IDENTITY_FOUND);
	assert_slice(one, other);
	assert_key(limit, "l:192.0.2.1", "QUERY_STRING=layer=a", "REMOTE_ADDR=192.0.2.1");
	assert_key(limit_of("identity = param layers, ip\n"), "l:192.0.2.1",
		"QUERY_STRING=LAYERS=a", "REMOTE_ADDR=192.0.2.1");
}

static void
a_client_that_walks_its_network_has_one_bucket(void **state)
{
	const struct config_limit *limit = limit_of("");
	char param[64];

	(void)state;
	for (unsigned i = 0; i < 65536; i += 17) {
		(void)snprintf(
			param, sizeof param, "REMOTE_ADDR=2001:db8:1:2:%x:%x:0:%x", i, i / 3, i);
		assert_key(limit, "l:2001:db8:1:2::/64", param);
		arena_release(&arena);
		arena_init(&arena, ARENA_MAX);
	}
}

static void
prefixes_may_be_given(void **state)
{
	const struct config_limit *limit = limit_of("identity = ip/24/48");

	(void)state;
	assert_key(limit, "l:192.0.2.0/24", "REMOTE_ADDR=192.0.2.77");
	assert_key(limit, "l:2001:db8:1::/48", "REMOTE_ADDR=2001:db8:1:2::3");
	limit = limit_of("identity = ip/32/128");
	assert_key(limit, "l:192.0.2.77", "REMOTE_ADDR=192.0.2.77");
	assert_key(limit, "l:2001:db8:1:2::3", "REMOTE_ADDR=2001:db8:1:2::3");
}

static void
who_has_no_address_shares_one_bucket_that_no_address_has(void **state)
{
	static const char *const none[] = { "REMOTE_ADDR=", "REMOTE_ADDR=unix:", "REMOTE_ADDR=none",
		"OTHER=", "REMOTE_ADDR=999.1.1.1" };
	const struct config_limit *limit = limit_of("");
	struct slice key;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(none); i++) {
		assert_int_equal(key_of(limit, &key, none[i]), IDENTITY_NO_ADDRESS);
		assert_slice(key, SLICE("l:ip=none"));
	}
}

/* A victim's address in a header is no address. */
static void
what_a_client_writes_is_no_address(void **state)
{
	const struct config_limit *limit = limit_of("");

	(void)state;
	assert_key(limit, "l:192.0.2.7", "REMOTE_ADDR=192.0.2.7",
		"HTTP_X_FORWARDED_FOR=198.51.100.66", "HTTP_FORWARDED=for=198.51.100.66",
		"HTTP_X_REAL_IP=198.51.100.66", "HTTP_CLIENT_IP=198.51.100.66",
		"HTTP_REMOTE_ADDR=198.51.100.66");
}

/* ---- users ---- */

static void
a_user_has_a_bucket_wherever_it_comes_from(void **state)
{
	const struct config_limit *limit = limit_of("identity = user, ip");

	(void)state;
	assert_key(limit, "l:user=alice", "REMOTE_USER=alice", "AUTH_TYPE=Basic",
		"REMOTE_ADDR=192.0.2.1");
	assert_key(limit, "l:user=alice", "REMOTE_USER=alice", "AUTH_TYPE=Basic",
		"REMOTE_ADDR=192.0.2.2");
	assert_key(
		limit, "l:user=al-i.c_e~@x:y/z", "REMOTE_USER=al-i.c_e~@x:y/z", "AUTH_TYPE=Digest");
	assert_key(limit, "l:192.0.2.1", "REMOTE_ADDR=192.0.2.1");
	/* A claim is not. */
	assert_key(limit, "l:192.0.2.1", "REMOTE_USER=alice", "REMOTE_ADDR=192.0.2.1");
}

static void
all_is_one_bucket(void **state)
{
	const struct config_limit *limit = limit_of("identity = all");

	(void)state;
	assert_key(limit, "l:all", "REMOTE_ADDR=192.0.2.1");
	assert_key(limit, "l:all", "OTHER=");
}

/* ---- headers ---- */

static bool
is_in(struct slice key, const char *text)
{
	return memmem(key.ptr, key.len, text, strlen(text)) != NULL;
}

static void
a_header_is_counted_and_never_told(void **state)
{
	static const char *const secrets[] = { "s3cret", "Bearer abcdef0123456789", "192.0.2.1",
		"all", "none", "user=alice", "a", "l:all" };
	const struct config_limit *limit =
		limit_of("identity = header Authorization, header X-API-Key, ip");
	struct slice keys[2 * LENGTH_OF(secrets)];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(secrets); i++) {
		for (size_t j = 0; j < 2; j++) {
			char param[128];

			(void)snprintf(param, sizeof param, "%s=%s",
				j == 0 ? "HTTP_AUTHORIZATION" : "HTTP_X_API_KEY", secrets[i]);
			struct slice *key = &keys[2 * i + j];

			assert_int_equal(key_of(limit, key, param), IDENTITY_FOUND);
			assert_true(slice_has_prefix(*key, SLICE("l:header#")));
			if (strlen(secrets[i]) > 1)
				assert_false(is_in(slice_skip(*key, 2), secrets[i]));
			for (size_t k = 0; k < 2 * i + j; k++)
				assert_false(slice_is(keys[k], *key));
		}
	}
	/* An empty one is none. */
	assert_key(limit, "l:192.0.2.1", "HTTP_AUTHORIZATION=", "REMOTE_ADDR=192.0.2.1");
}

static void
with_a_key_of_its_own_nobody_else_can_try_values(void **state)
{
	static const uint8_t one[HASH_KEY_SIZE] = { 1 }, two[HASH_KEY_SIZE] = { 2 };
	static const char *const env[] = { "HTTP_X_API_KEY=s3cret", NULL };
	const struct config_limit *limit = limit_of("identity = header X-API-Key, ip");
	struct slice bare, first, second, again;

	(void)state;
	assert_int_equal(key_with(limit, NULL, env, &bare), IDENTITY_FOUND);
	assert_int_equal(key_with(limit, one, env, &first), IDENTITY_FOUND);
	assert_int_equal(key_with(limit, two, env, &second), IDENTITY_FOUND);
	assert_int_equal(key_with(limit, one, env, &again), IDENTITY_FOUND);
	assert_false(slice_is(bare, first) || slice_is(bare, second) || slice_is(first, second));
	assert_slice(again, first);
}

static void
the_first_that_is_present_counts(void **state)
{
	const struct config_limit *limit = limit_of("identity = header X-A, user, header X-B, ip");
	struct slice a, b, a_and_b;

	(void)state;
	assert_int_equal(key_of(limit, &a, "HTTP_X_A=1", "REMOTE_ADDR=192.0.2.1"), IDENTITY_FOUND);
	assert_int_equal(key_of(limit, &b, "HTTP_X_B=1", "REMOTE_ADDR=192.0.2.1"), IDENTITY_FOUND);
	assert_int_equal(key_of(limit, &a_and_b, "HTTP_X_B=1", "HTTP_X_A=1"), IDENTITY_FOUND);
	assert_slice(a_and_b, a);
	assert_false(slice_is(a, b));
	assert_key(limit, "l:user=u", "REMOTE_USER=u", "AUTH_TYPE=Basic", "HTTP_X_B=1");
}

/* ---- missing ---- */

static void
what_is_missing_is_as_the_limit_says(void **state)
{
	static const struct {
		const char *lines;
		enum identity_result result;
		const char *key;
	} rows[] = {
		{ "identity = header X-API-Key\non_missing = skip", IDENTITY_SKIP, NULL },
		{ "identity = header X-API-Key\non_missing = reject", IDENTITY_REJECT, NULL },
		{ "identity = header X-API-Key\non_missing = share", IDENTITY_FOUND, "l:none" },
		{ "identity = user\non_missing = share", IDENTITY_FOUND, "l:none" },
		{ "identity = user, header X\non_missing = reject", IDENTITY_REJECT, NULL },
	};
	struct slice key;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct config_limit *limit = limit_of(rows[i].lines);

		assert_int_equal(
			key_of(limit, &key, "REMOTE_ADDR=192.0.2.1", "REMOTE_USER=claimed"),
			rows[i].result);
		if (rows[i].key != NULL)
			assert_slice(key, slice_of(rows[i].key));
		else
			assert_null(key.ptr);
	}
}

/* ---- no two meet ---- */

/* Values that have made two users one elsewhere: separators, other kinds' words, long ones that
 * begin alike, bytes of every kind. */
static size_t
hostile_value(uint64_t *random, char out[400])
{
	static const char *const parts[] = { "a", "b", ":", "=", "#", "/", "user",
		"user=", "header#", "ip=", "none", "all", "192.0.2.1", "l:", "{", "}", "\r\n", " ",
		"\xff", "\x01", "%00", "'", "\"",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" };
	size_t len = 0;

	for (size_t n = 1 + random_below(random, 5); n > 0; n--) {
		const char *part = parts[random_below(random, LENGTH_OF(parts))];

		memcpy(out + len, part, strlen(part));
		len += strlen(part);
	}
	out[len] = '\0';
	return len;
}

struct named {
	char who[420]; /* kind and value: who it really is */
	char key[128];
};

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->key, ((const struct named *)b)->key);
}

static void
no_two_identities_share_a_bucket_whatever_they_are_called(void **state)
{
	enum { MANY = 20000 };
	static const struct {
		const char *param, *also;
	} kinds[] = { { "REMOTE_USER", "AUTH_TYPE=Basic" }, { "HTTP_X_A", "OTHER=" },
		{ "HTTP_X_B", "OTHER=" }, { "REMOTE_ADDR", "OTHER=" } };
	const struct config_limit *limit =
		limit_of("identity = header X-A, user, header X-B, ip/32/128");
	struct named *named = calloc(MANY, sizeof *named);
	uint64_t random = 77;
	size_t count = 0;

	(void)state;
	assert_non_null(named);
	while (count < MANY) {
		const size_t kind = random_below(&random, LENGTH_OF(kinds));
		char value[400], param[420];
		struct slice key;

		if (kind == 3)
			(void)snprintf(value, sizeof value, "10.0.%u.%u",
				(unsigned)random_below(&random, 8),
				(unsigned)random_below(&random, 256));
		else
			(void)hostile_value(&random, value);
		(void)snprintf(param, sizeof param, "%s=%s", kinds[kind].param, value);
		arena_release(&arena);
		arena_init(&arena, ARENA_MAX);
		assert_int_equal(key_of(limit, &key, param, kinds[kind].also), IDENTITY_FOUND);
		assert_in_range(key.len, 1, sizeof named[0].key - 1);
		for (size_t i = 0; i < key.len; i++)
			assert_true(key.ptr[i] > ' ' && key.ptr[i] < 0x7f && key.ptr[i] != '{' &&
				key.ptr[i] != '}');
		(void)snprintf(named[count].who, sizeof named[count].who, "%s", param);
		(void)snprintf(
			named[count].key, sizeof named[count].key, "%.*s", (int)key.len, key.ptr);
		count++;
	}
	qsort(named, count, sizeof *named, compare_keys);
	for (size_t i = 1; i < count; i++) {
		const bool same_key = strcmp(named[i - 1].key, named[i].key) == 0;

		assert_row(!same_key || strcmp(named[i - 1].who, named[i].who) == 0,
			"\"%s\" and \"%s\" share \"%s\"", named[i - 1].who, named[i].who,
			named[i].key);
	}
	free(named);
}

static void
limits_do_not_share_a_bucket(void **state)
{
	struct slice a, b;

	(void)state;
	config_free(config);
	config = configured("[limit a]\nidentity = all\npolicy = 5/1m\n"
			    "[limit a.b]\nidentity = all\npolicy = 5/1m\n"
			    "[route r]\nmatch = /r\nlimit = a, a.b\n");
	assert_int_equal(key_of(config->limits[0], &a, "OTHER="), IDENTITY_FOUND);
	assert_int_equal(key_of(config->limits[1], &b, "OTHER="), IDENTITY_FOUND);
	assert_slice(a, SLICE("a:all"));
	assert_slice(b, SLICE("a.b:all"));
}

/* ---- memory ---- */

static void
without_memory_there_is_no_key(void **state)
{
	const struct config_limit *limit = limit_of("identity = all");
	struct arena small;
	struct view view;
	struct slice key;

	(void)state;
	arena_init(&small, 8);
	assert_int_equal(
		view_of(&view, (const char *const[]){ "REMOTE_ADDR=192.0.2.1", NULL }, &arena), 0);
	struct asker asker;

	asker_init(&asker, &view, NULL, NULL, NULL);
	assert_int_equal(identity_key(&asker, limit, &small, &key), IDENTITY_NO_MEMORY);
	arena_release(&small);
}

#define identity_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		identity_test(an_address_is_itself_and_a_v6_one_its_network),
		identity_test(a_mapped_address_is_the_v4_one),
		identity_test(a_parameter_is_counted_in_any_case_if_that_is_said),
		identity_test(a_client_that_walks_its_network_has_one_bucket),
		identity_test(prefixes_may_be_given),
		identity_test(who_has_no_address_shares_one_bucket_that_no_address_has),
		identity_test(what_a_client_writes_is_no_address),
		identity_test(a_user_has_a_bucket_wherever_it_comes_from),
		identity_test(all_is_one_bucket),
		identity_test(a_header_is_counted_and_never_told),
		identity_test(with_a_key_of_its_own_nobody_else_can_try_values),
		identity_test(the_first_that_is_present_counts),
		identity_test(what_is_missing_is_as_the_limit_says),
		identity_test(no_two_identities_share_a_bucket_whatever_they_are_called),
		identity_test(limits_do_not_share_a_bucket),
		identity_test(without_memory_there_is_no_key),
	};

	return cmocka_run_group_tests_name("route/identity", tests, NULL, NULL);
}
