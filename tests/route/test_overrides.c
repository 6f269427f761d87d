/* Exceptions: which one a request falls under. */
#include "overriding.h"

/* ---- whom they are for ---- */

static void
each_source_has_its_values(void **state)
{
	(void)state;
	use("ip",
		"[override user]\nlimit = l\nfor = user alice, bob\npolicy = 6/1m name 1m\n"
		"[override header]\nlimit = l\nfor = header X-API-Key k1, k2\nexempt = yes\n"
		"[override cookie]\nlimit = l\nfor = cookie plan gold\nexempt = yes\n"
		"[override param]\nlimit = l\nfor = param key p1\nexempt = yes\n"
		"[override env]\nlimit = l\nfor = env SSL_CLIENT_S_DN CN=x\nexempt = yes\n"
		"[override ip]\nlimit = l\nfor = ip 192.0.2.0/24, 2001:db8::/32, ::/16\nexempt = "
		"yes\n");
	assert_found("user", "REMOTE_USER=alice", "AUTH_TYPE=Basic");
	assert_found("user", "REMOTE_USER=bob", "AUTH_TYPE=Basic");
	assert_found("", "REMOTE_USER=alice");
	assert_found("", "REMOTE_USER=Alice", "AUTH_TYPE=Basic");
	assert_found("", "REMOTE_USER=alic", "AUTH_TYPE=Basic");
	assert_found("", "REMOTE_USER=k1", "AUTH_TYPE=Basic");
	assert_found("header", "HTTP_X_API_KEY=k1");
	assert_found("header", "HTTP_X_API_KEY=k2");
	assert_found("", "HTTP_X_API_KEY=k1 ");
	assert_found("", "HTTP_X_API_KEY=alice");
	assert_found("", "HTTP_X_API_KEY=");
	assert_found("", "X_API_KEY=k1");
	assert_found("cookie", "HTTP_COOKIE=a=b; plan=gold");
	assert_found("", "HTTP_COOKIE=PLAN=gold");
	/* The one of the most exact path comes first. */
	assert_found("cookie", "HTTP_COOKIE=plan=gold; plan=none");
	assert_found("", "HTTP_COOKIE=plan=none; plan=gold");
	assert_found("param", "QUERY_STRING=key=p1");
	assert_found("param", "QUERY_STRING=k%65y=%70%31");
	/* One application takes the first, another the last. */
	assert_found("param", "QUERY_STRING=key=x&key=p1");
	assert_found("param", "QUERY_STRING=key=p1&key=x");
	assert_found("", "QUERY_STRING=key=p1x&key=x");
	assert_found("env", "SSL_CLIENT_S_DN=CN=x");
	assert_found("ip", "REMOTE_ADDR=192.0.2.77");
	assert_found("ip", "REMOTE_ADDR=::ffff:192.0.2.77");
	assert_found("ip", "REMOTE_ADDR=2001:db8:ffff::1");
	assert_found("", "REMOTE_ADDR=192.0.3.1");
	assert_found("", "REMOTE_ADDR=unix:");
	assert_found("", "OTHER=");
}

/* Also those that let nobody around them: another case of the name, and both at a time. */
static void
a_parameter_may_be_meant_in_any_case(void **state)
{
	(void)state;
	use("param KEY nocase, ip",
		"[override any]\nlimit = l\nfor = param Key nocase p1, nocase\nblock = yes\n"
		"[override cased]\nlimit = l\nfor = param key p2, p1\nexempt = yes\n"
		"[override value]\nlimit = l\nfor = param mode nocase\nexempt = yes\n");
	assert_found("any", "QUERY_STRING=key=p1");
	assert_found("any", "QUERY_STRING=KEY=p1");
	assert_found("any", "QUERY_STRING=kEY=nocase");
	assert_found("any", "QUERY_STRING=key=x&KEY=p1");
	assert_found("cased", "QUERY_STRING=key=p2");
	assert_found("", "QUERY_STRING=KEY=p2");
	assert_found("value", "QUERY_STRING=mode=nocase");
	assert_found("", "QUERY_STRING=MODE=nocase");
}

static void
any_attribute_does_and_the_first_in_the_files_counts(void **state)
{
	(void)state;
	use("ip",
		"[override one]\nlimit = l\nfor = header A a1\nfor = ip 192.0.2.1\nexempt = yes\n"
		"[override two]\nlimit = l\nfor = ip 192.0.2.0/24\nfor = header B b2\n"
		"exempt = yes\n"
		"[override three]\nlimit = l\nfor = ip 192.0.2.0/28, 198.51.100.0/24\n"
		"for = header A a3\nexempt = yes\n");
	assert_found("one", "HTTP_A=a1");
	assert_found("one", "REMOTE_ADDR=192.0.2.1");
	assert_found("two", "REMOTE_ADDR=192.0.2.2");
	assert_found("two", "REMOTE_ADDR=192.0.2.200");
	assert_found("three", "REMOTE_ADDR=198.51.100.2");
	assert_found("three", "HTTP_A=a3");
	assert_found("two", "HTTP_A=a3", "HTTP_B=b2");
	assert_found("one", "HTTP_A=a1", "HTTP_B=b2", "REMOTE_ADDR=198.51.100.2");
	assert_found("two", "HTTP_A=a3", "REMOTE_ADDR=192.0.2.2");
	assert_found("three", "HTTP_A=a3", "REMOTE_ADDR=10.0.0.1");
}

static void
an_override_is_of_its_limit(void **state)
{
	static const char *const env[] = { "HTTP_A=x", NULL };
	static const char *const both[] = { "HTTP_A=x", "REMOTE_ADDR=192.0.2.1", NULL };

	(void)state;
	use("ip",
		"[override of_m]\nlimit = m\nfor = header A x\nexempt = yes\n"
		"[override of_l]\nlimit = l\nfor = header A x, y\nblock = yes\n"
		"[override ip_m]\nlimit = m\nfor = ip 192.0.2.1\nexempt = yes\n");
	assert_string_equal(found_for(env, 0), "of_l");
	assert_string_equal(found_for(env, 1), "of_m");
	assert_string_equal(found_for(both, 1), "of_m");
	assert_string_equal(
		found_for((const char *const[]){ "REMOTE_ADDR=192.0.2.1", NULL }, 1), "ip_m");
	assert_string_equal(
		found_for((const char *const[]){ "REMOTE_ADDR=192.0.2.1", NULL }, 0), "");
	assert_string_equal(found_for((const char *const[]){ "HTTP_A=y", NULL }, 1), "");
}

static void
without_overrides_none_is_found(void **state)
{
	struct asker asker;

	(void)state;
	use("ip", "");
	assert_found("", "REMOTE_ADDR=192.0.2.1");
	asker = asking((const char *const[]){ "REMOTE_ADDR=192.0.2.1", NULL });
	asker.overrides = NULL;
	assert_int_equal(overrides_find(&asker, config->limits[0]), -1);
	overrides_free(NULL);
}

/* printf %s VALUE | sha256sum */
static void
a_hash_stands_for_its_value(void **state)
{
	(void)state;
	use("ip",
		"[override hashed]\nlimit = l\nfor = header K sha256:"
		"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n" /* secret */
		"for = user sha256:"
		"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\n" /* abc */
		"exempt = yes\n"
		"[override plain]\nlimit = l\nfor = header K other, "
		"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\n"
		"exempt = yes\n");
	assert_found("hashed", "HTTP_K=secret");
	assert_found("hashed", "REMOTE_USER=abc", "AUTH_TYPE=Basic");
	assert_found("plain", "HTTP_K=other");
	/* Who reads the file has no key. */
	assert_found(
		"plain", "HTTP_K=2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
	assert_found("",
		"HTTP_K=sha256:"
		"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
	assert_found("", "HTTP_K=abc");
}

/* The same value in both forms, in two files. */
static void
of_a_value_and_its_hash_the_first_counts(void **state)
{
	static const char hash[] = "\x2b\xb8\x0d\x53\x7b\x1d\xa3\xe3\x8b\xd3\x03\x61\xaa\x85"
				   "\x56\x86\xbd\xe0\xea\xcd\x71\x62\xfe\xf6\xa2\x5f\xe9\x7b"
				   "\xf5\x27\xa2\x5b";
	struct config_value values[] = { { "secret", 6, false }, { hash, 32, true } };

	(void)state;
	for (unsigned first = 0; first < 2; first++) {
		use("ip",
			"[override one]\nlimit = l\nfor = header K x\nexempt = yes\n"
			"[override two]\nlimit = l\nfor = header K y\nexempt = yes\n");
		config->overrides[0]->fors[0].values = &values[first];
		config->overrides[1]->fors[0].values = &values[1 - first];
		overrides_free(overrides);
		overrides = overrides_new(config);
		assert_non_null(overrides);
		assert_found("one", "HTTP_K=secret");
		assert_found("", "HTTP_K=x");
	}
}

static void
values_of_any_length_are_whole(void **state)
{
	char sections[9000], param[9000], value[4097];

	(void)state;
	memset(value, 'v', sizeof value - 1);
	value[sizeof value - 1] = '\0';
	write_file("keys", slice_of(value));
	(void)snprintf(sections, sizeof sections,
		"[override long]\nlimit = l\nfor = header K @%s/keys\nexempt = yes\n",
		load_directory);
	use("ip", sections);
	(void)snprintf(param, sizeof param, "HTTP_K=%s", value);
	assert_found("long", param);
	(void)snprintf(param, sizeof param, "HTTP_K=%sv", value);
	assert_found("", param);
	param[strlen(param) - 2] = '\0';
	assert_found("", param);
}

/* ---- known ---- */

static void
known_values_are_those_that_an_override_names(void **state)
{
	static const struct {
		const char *env[2], *key;
	} rows[] = {
		{ { "HTTP_KEY=k1" }, NULL },
		{ { "HTTP_KEY=k2" }, NULL },
		{ { "HTTP_KEY=blocked" }, NULL },
		{ { "HTTP_KEY=k3" }, "l:192.0.2.1" },
		{ { "HTTP_KEY=other" }, "l:192.0.2.1" }, /* of another limit, or source */
		{ { "HTTP_KEY=alice" }, "l:192.0.2.1" },
		{ { "OTHER=k1" }, "l:192.0.2.1" },
		{ { "REMOTE_USER=alice", "AUTH_TYPE=Basic" }, "l:user=alice" },
		{ { "REMOTE_USER=bob", "AUTH_TYPE=Basic" }, "l:192.0.2.1" },
	};

	(void)state;
	use("header Key known, user known, ip",
		"[override plan]\nlimit = l\nfor = header key k1, k2\npolicy = 9/1m name 1m\n"
		"[override bad]\nlimit = l\nfor = header KEY blocked\nblock = yes\n"
		"[override users]\nlimit = l\nfor = user alice\nexempt = yes\n"
		"[override others]\nlimit = m\nfor = header Key other\nexempt = yes\n");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct asker asker = asking((const char *const[]){
			"REMOTE_ADDR=192.0.2.1", rows[i].env[0], rows[i].env[1], NULL });
		struct slice key;

		assert_int_equal(
			identity_key(&asker, config->limits[0], &arena, &key), IDENTITY_FOUND);
		if (rows[i].key != NULL)
			assert_slice(key, slice_of(rows[i].key));
		else
			assert_row(slice_has_prefix(key, SLICE("l:header#")), "%s", rows[i].env[0]);
	}
}

static void
without_overrides_nothing_is_known(void **state)
{
	struct slice key;

	(void)state;
	use("header Key known, ip", "");
	struct asker asker =
		asking((const char *const[]){ "REMOTE_ADDR=192.0.2.1", "HTTP_KEY=k1", NULL });

	assert_int_equal(identity_key(&asker, config->limits[0], &arena, &key), IDENTITY_FOUND);
	assert_slice(key, SLICE("l:192.0.2.1"));
	asker.overrides = NULL;
	assert_int_equal(identity_key(&asker, config->limits[0], &arena, &key), IDENTITY_FOUND);
	assert_slice(key, SLICE("l:192.0.2.1"));
}

/* More sources than digests are kept of. */
static void
many_sources_are_all_looked_up(void **state)
{
	enum { SOURCES = 3 * ASKER_DIGESTS_MAX };
	char sections[4096], params[SOURCES][32];
	const char *env[SOURCES + 1] = { NULL };
	size_t len = 0;

	(void)state;
	for (unsigned i = 0; i < SOURCES; i++) {
		len += (size_t)snprintf(sections + len, sizeof sections - len,
			"[override o%u]\nlimit = l\nfor = header H%u v\nexempt = yes\n", i, i);
		(void)snprintf(params[i], sizeof params[i], "HTTP_H%u=v", i);
	}
	use("ip", sections);
	for (unsigned first = 0; first < SOURCES; first++) {
		char name[16];

		for (unsigned i = 0; i < SOURCES; i++) {
			if (i < first)
				params[i][strlen(params[i]) - 1] = 'w';
			env[i] = params[i];
		}
		(void)snprintf(name, sizeof name, "o%u", first);
		assert_string_equal(found_for(env, 0), name);
	}
}

/* ---- against a list that is gone through ---- */

static const char *const letters[] = { "a", "b", "c", "aa", "ab", "1", "%41", "A" };

static bool
fits_slowly(const struct config_for *list, const struct view *view)
{
	for (uint32_t i = 0; i < list->net_count; i++) {
		if (view->has_ip && ip_net_has(&list->nets[i], view->ip))
			return true;
	}
	for (uint32_t i = 0; i < list->value_count; i++) {
		const struct slice value =
			list->source == IDENTITY_USER ? view->user : view_param(view, list->param);
		const struct slice named = slice_make(list->values[i].text, list->values[i].len);

		if (value.len > 0 && slice_is(value, named))
			return true;
	}
	return false;
}

static int
find_slowly(const struct view *view, const struct config_limit *limit)
{
	for (unsigned i = 0; i < config->override_count; i++) {
		const struct config_override *override = config->overrides[i];

		for (unsigned j = 0; j < override->for_count; j++) {
			if (override->limit == limit && fits_slowly(&override->fors[j], view))
				return (int)i;
		}
	}
	return -1;
}

enum { NETS = 24, CHOICES = NETS > LENGTH_OF(letters) ? NETS : LENGTH_OF(letters) };

/* Whom an override is for; nothing twice for one source and limit, which is refused. */
static size_t
put_for(uint64_t *random, bool taken[4][CHOICES], char *out, size_t size)
{
	static const char *const sources[] = { "user", "header A", "header B" };
	const size_t source = random_below(random, LENGTH_OF(sources) + 1);
	const bool is_net = source == LENGTH_OF(sources);
	const size_t value = random_below(random, is_net ? NETS : LENGTH_OF(letters));

	if (taken[source][value])
		return 0;
	taken[source][value] = true;
	if (is_net)
		return (size_t)snprintf(
			out, size, "for = ip 10.%zu.0.0/%zu\n", value % 4 * 64, 10 + value / 4);
	return (size_t)snprintf(out, size, "for = %s %s\n", sources[source], letters[value]);
}

static void
any_overrides_are_found_as_a_list_would(void **state)
{
	uint64_t random = 5;
	unsigned found = 0;

	(void)state;
	for (unsigned round = 0; round < 60; round++) {
		bool taken[2][4][CHOICES] = { { { false } } };
		char sections[8192];
		size_t len = 0;

		for (unsigned i = 0; i < 12; i++) {
			const size_t limit = random_below(&random, 2);

			len += (size_t)snprintf(sections + len, sizeof sections - len,
				"[override o%u]\nlimit = %c\nexempt = yes\nfor = header C c%u\n", i,
				limit == 0 ? 'l' : 'm', i);
			for (size_t n = 1 + random_below(&random, 3); n > 0; n--)
				len += put_for(&random, taken[limit], sections + len,
					sizeof sections - len);
		}
		/* What lies in another one's network is worth a warning and no more. */
		use("ip", sections);
		for (unsigned i = 0; i < 200; i++) {
			char params[4][64];

			(void)snprintf(params[0], sizeof params[0], "REMOTE_USER=%s",
				letters[random_below(&random, LENGTH_OF(letters))]);
			(void)snprintf(params[1], sizeof params[1], "HTTP_A=%s",
				letters[random_below(&random, LENGTH_OF(letters))]);
			(void)snprintf(params[2], sizeof params[2], "HTTP_%c=%s", i % 2 ? 'B' : 'X',
				letters[random_below(&random, 4)]);
			(void)snprintf(params[3], sizeof params[3], "REMOTE_ADDR=10.%u.0.1",
				(unsigned)random_below(&random, 256));
			struct asker asker = asking((const char *const[]){ params[0],
				i % 3 ? "AUTH_TYPE=" : "AUTH_TYPE=Basic", params[1], params[2],
				params[3], NULL });

			for (unsigned limit = 0; limit < 2; limit++) {
				const int first = overrides_find(&asker, config->limits[limit]);

				assert_int_equal(
					first, find_slowly(asker.view, config->limits[limit]));
				found += first >= 0;
			}
		}
	}
	assert_in_range(found, 2000, 23000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		override_test(each_source_has_its_values),
		override_test(a_parameter_may_be_meant_in_any_case),
		override_test(any_attribute_does_and_the_first_in_the_files_counts),
		override_test(an_override_is_of_its_limit),
		override_test(without_overrides_none_is_found),
		override_test(a_hash_stands_for_its_value),
		override_test(of_a_value_and_its_hash_the_first_counts),
		override_test(values_of_any_length_are_whole),
		override_test(known_values_are_those_that_an_override_names),
		override_test(without_overrides_nothing_is_known),
		override_test(many_sources_are_all_looked_up),
		override_test(any_overrides_are_found_as_a_list_would),
	};

	return cmocka_run_group_tests_name("route/overrides", tests, NULL, NULL);
}
