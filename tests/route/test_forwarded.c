/* The client's address behind proxies. */
#include "routing.h"

static struct arena arena;
static struct config *config;
static struct routes *routes;

static int
setup(void **state)
{
	arena_init(&arena, ARENA_MAX);
	config = NULL;
	routes = NULL;
	return load_setup(state);
}

static int
teardown(void **state)
{
	routes_free(routes);
	config_free(config);
	arena_release(&arena);
	return load_teardown(state);
}

static void
trust(const char *nets)
{
	char sections[512];

	(void)snprintf(sections, sizeof sections, "[weir]\ntrusted_proxies = %s\n", nets);
	routes_free(routes);
	config_free(config);
	config = configured(sections);
	routes = routes_of(config);
}

static struct view
seen(const char *const *env)
{
	struct err err = { "" };
	struct view view;

	arena_release(&arena);
	arena_init(&arena, ARENA_MAX);
	assert_int_equal(view_init(&view, routes, (char *const *)(uintptr_t)env, &arena, &err), 0);
	return view;
}

/* "" for none. */
static const char *
client_of(const char *peer, const char *forwarded, char out[IP_TEXT_SIZE])
{
	static char params[2][200000];

	(void)snprintf(params[0], sizeof params[0], "REMOTE_ADDR=%s", peer);
	(void)snprintf(params[1], sizeof params[1], "HTTP_X_FORWARDED_FOR=%s",
		forwarded == NULL ? "" : forwarded);
	const struct view view = seen(
		(const char *const[]){ params[0], forwarded == NULL ? "OTHER=" : params[1], NULL });

	assert_true(view.has_forwarded == (forwarded != NULL));
	assert_false(view.forwarded_is_forged);
	out[0] = '\0';
	return view.has_ip ? ip_text(view.ip, out) : out;
}

struct row {
	const char *peer, *forwarded, *client;
};

static void
assert_clients(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char text[IP_TEXT_SIZE];

		assert_row(strcmp(client_of(rows[i].peer, rows[i].forwarded, text),
				   rows[i].client) == 0,
			"%s, \"%s\": %s and not %s", rows[i].peer,
			rows[i].forwarded == NULL ? "(none)" : rows[i].forwarded, text,
			rows[i].client);
	}
}

static void
the_list_is_walked_from_its_right_end(void **state)
{
	static const struct row rows[] = {
		{ "10.0.0.1", "192.0.2.1", "192.0.2.1" },
		/* What the client wrote itself is left of it. */
		{ "10.0.0.1", "203.0.113.9, 192.0.2.1", "192.0.2.1" },
		{ "10.0.0.1", "random, 192.0.2.1", "192.0.2.1" },
		{ "10.0.0.1", "10.0.0.2, 192.0.2.1", "192.0.2.1" },
		/* Proxies behind proxies. */
		{ "10.0.0.1", "192.0.2.1, 10.0.0.2", "192.0.2.1" },
		{ "10.0.0.1", "203.0.113.9,192.0.2.1,10.0.0.2,2001:db8:f::1", "192.0.2.1" },
		{ "2001:db8:f::1", "2001:db8:1::1", "2001:db8:1::1" },
		/* All of them are. */
		{ "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3" },
		{ "10.0.0.1", "10.0.0.2", "10.0.0.2" },
		{ "10.0.0.1", NULL, "10.0.0.1" },
		{ "10.0.0.1", "", "10.0.0.1" },
	};

	(void)state;
	trust("10.0.0.0/24, 2001:db8:f::/48");
	assert_clients(rows, LENGTH_OF(rows));
}

static void
only_a_trusted_proxy_is_believed(void **state)
{
	static const struct row rows[] = {
		{ "192.0.2.7", "198.51.100.66", "192.0.2.7" },
		{ "192.0.2.7", "198.51.100.66, 192.0.2.7", "192.0.2.7" },
		{ "192.0.2.7", "10.0.0.1", "192.0.2.7" },
		{ "10.0.1.1", "198.51.100.66", "10.0.1.1" },
		{ "2001:db8:1::1", "198.51.100.66", "2001:db8:1::1" },
		{ "", "192.0.2.1", "" },
		{ "unix:", "192.0.2.1", "" },
	};
	static const struct row untrusting[] = {
		{ "127.0.0.1", "192.0.2.1", "127.0.0.1" },
		{ "10.0.0.1", "192.0.2.1, 10.0.0.1", "10.0.0.1" },
	};

	(void)state;
	trust("10.0.0.0/24, 2001:db8:f::/48");
	assert_clients(rows, LENGTH_OF(rows));
	trust("");
	assert_clients(untrusting, LENGTH_OF(untrusting));
	routes_free(routes);
	routes = NULL;
	assert_clients(untrusting, LENGTH_OF(untrusting));
}

static void
addresses_are_taken_as_proxies_write_them(void **state)
{
	static const struct row rows[] = {
		{ "10.0.0.1", "192.0.2.1:4711", "192.0.2.1" },
		{ "10.0.0.1", "[2001:db8::1]:4711", "2001:db8::1" },
		{ "10.0.0.1", "[2001:DB8:0::1]", "2001:db8::1" },
		{ "10.0.0.1", "fe80::1%eth0", "fe80::1" },
		{ "10.0.0.1", "::ffff:192.0.2.1", "192.0.2.1" },
		{ "10.0.0.1", "64:ff9b::192.0.2.1", "192.0.2.1" },
		{ "10.0.0.1", "\t192.0.2.1  ", "192.0.2.1" },
		{ "10.0.0.1", "192.0.2.1 , 10.0.0.2 ", "192.0.2.1" },
		/* An address is a proxy's however it is written. */
		{ "::ffff:10.0.0.1", "192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1" },
		{ "10.0.0.1:80", "192.0.2.1, 64:ff9b::10.0.0.2, [::ffff:a00:3]:1", "192.0.2.1" },
		/* Empty elements are none (RFC 9110 section 5.6.1.2). */
		{ "10.0.0.1", "192.0.2.1,", "192.0.2.1" },
		{ "10.0.0.1", "192.0.2.1,, ,10.0.0.2,", "192.0.2.1" },
		{ "10.0.0.1", " , ,,", "10.0.0.1" },
	};

	(void)state;
	trust("10.0.0.0/24");
	assert_clients(rows, LENGTH_OF(rows));
}

/* The last good address is a proxy's, and the bucket that is shared behind it is what an attacker
 * gets who breaks the list. */
static void
what_is_no_address_ends_the_walk(void **state)
{
	static const char *const none[] = {
		"unknown", "_hidden", "192.0.2", "192.0.2.1.1", "192.0.2.1:", "192.0.2.1:99999",
		"[2001:db8::1", "2001:db8::1]", "\"192.0.2.1\"", "for=192.0.2.1",
		"192.0.2.1 198.51.100.1", "192.0.2.1;", "\xff\xfe", "1", "%", "192.0.2.1%eth0",
		"0x7f.1", "example.org",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	};

	(void)state;
	trust("10.0.0.0/24");
	for (size_t i = 0; i < LENGTH_OF(none); i++) {
		char list[256], text[IP_TEXT_SIZE];

		assert_row(strcmp(client_of("10.0.0.1", none[i], text), "10.0.0.1") == 0, "%s: %s",
			none[i], text);
		(void)snprintf(list, sizeof list, "198.51.100.9, %s, 10.0.0.2", none[i]);
		assert_row(strcmp(client_of("10.0.0.1", list, text), "10.0.0.2") == 0, "%s: %s",
			list, text);
		/* To the left of the client it matters to nobody. */
		(void)snprintf(list, sizeof list, "%s, 192.0.2.1, 10.0.0.2", none[i]);
		assert_row(strcmp(client_of("10.0.0.1", list, text), "192.0.2.1") == 0, "%s: %s",
			list, text);
	}
}

/* lighttpd makes a second HTTP_X_FORWARDED_FOR of a client's X_Forwarded_For. */
static void
a_repeated_field_is_forged(void **state)
{
	static const char *const orders[][2] = {
		{ "HTTP_X_FORWARDED_FOR=192.0.2.1", "HTTP_X_FORWARDED_FOR=6.6.6.6" },
		{ "HTTP_X_FORWARDED_FOR=6.6.6.6", "HTTP_X_FORWARDED_FOR=192.0.2.1" },
		{ "HTTP_X_FORWARDED_FOR=192.0.2.1", "HTTP_X_FORWARDED_FOR=192.0.2.1" },
		{ "HTTP_X_FORWARDED_FOR=192.0.2.1", "HTTP_X_FORWARDED_FOR=" },
		{ "HTTP_X_FORWARDED_FOR=", "HTTP_X_FORWARDED_FOR=6.6.6.6" },
	};

	(void)state;
	trust("10.0.0.0/24");
	for (size_t i = 0; i < LENGTH_OF(orders); i++) {
		char text[IP_TEXT_SIZE];
		struct view view = seen((const char *const[]){
			orders[i][0], "REMOTE_ADDR=10.0.0.1", orders[i][1], NULL });

		assert_true(view.forwarded_is_forged && view.has_forwarded && view.has_ip);
		assert_string_equal(ip_text(view.ip, text), "10.0.0.1");
		/* Nobody believed it anyway. */
		view = seen((const char *const[]){
			orders[i][0], orders[i][1], "REMOTE_ADDR=192.0.2.9", NULL });
		assert_false(view.forwarded_is_forged);
		assert_string_equal(ip_text(view.ip, text), "192.0.2.9");
	}
	const struct view view = seen((const char *const[]){ "HTTP_X_FORWARDED=6.6.6.6",
		"HTTP_X_FORWARDED_FOR=192.0.2.1", "HTTP_X_FORWARDED_FOR_=6.6.6.6",
		"HTTP_FORWARDED=for=6.6.6.6", "REMOTE_ADDR=10.0.0.1", NULL });
	char text[IP_TEXT_SIZE];

	assert_false(view.forwarded_is_forged);
	assert_string_equal(ip_text(view.ip, text), "192.0.2.1");
}

/* All its clients are counted as one then, which nobody wants who has put up a proxy. */
static void
a_proxy_that_names_nobody_is_noticed(void **state)
{
	static const struct {
		const char *peer, *forwarded[2];
		bool is_noticed;
	} rows[] = {
		{ "10.0.0.1", { "X=", "X=" }, true },
		{ "10.0.0.1", { "HTTP_X_FORWARDED_FOR=", "X=" }, true },
		{ "10.0.0.1", { "HTTP_X_FORWARDED_FOR=unknown", "X=" }, true },
		{ "10.0.0.1", { "HTTP_X_FORWARDED_FOR=192.0.2.1, unknown", "X=" }, true },
		{ "10.0.0.1",
			{ "HTTP_X_FORWARDED_FOR=192.0.2.1", "HTTP_X_FORWARDED_FOR=192.0.2.1" },
			true },
		{ "10.0.0.1", { "HTTP_X_FORWARDED_FOR=192.0.2.1", "X=" }, false },
		/* Another proxy may well be a client. */
		{ "10.0.0.1", { "HTTP_X_FORWARDED_FOR=10.0.0.2", "X=" }, false },
		/* Whom nobody trusts need not name anybody. */
		{ "192.0.2.9", { "X=", "X=" }, false },
		{ "192.0.2.9", { "HTTP_X_FORWARDED_FOR=unknown", "X=" }, false },
		{ "unix:", { "X=", "X=" }, false },
	};

	(void)state;
	trust("10.0.0.0/24");
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char peer[60];

		(void)snprintf(peer, sizeof peer, "REMOTE_ADDR=%s", rows[i].peer);
		const struct view view = seen((const char *const[]){
			peer, rows[i].forwarded[0], rows[i].forwarded[1], NULL });

		assert_row(view.proxy_names_nobody == rows[i].is_noticed, "row %zu", i);
	}
}

/* ---- long lists ---- */

static char long_list[180000];

static void
repeat(const char *element, unsigned count, const char *last)
{
	size_t len = 0;

	for (unsigned i = 0; i < count; i++)
		len += (size_t)snprintf(long_list + len, sizeof long_list - len, "%s,", element);
	(void)snprintf(long_list + len, sizeof long_list - len, "%s", last);
	assert_true(strlen(long_list) + 1 < sizeof long_list);
}

static void
a_list_of_any_length_is_walked_as_far_as_proxies_go(void **state)
{
	char text[IP_TEXT_SIZE];

	(void)state;
	trust("10.0.0.0/24");
	repeat("203.0.113.9", 10000, "192.0.2.1");
	assert_string_equal(client_of("10.0.0.1", long_list, text), "192.0.2.1");
	repeat("10.0.0.7", 10000, "192.0.2.1");
	assert_string_equal(client_of("10.0.0.1", long_list, text), "192.0.2.1");
	repeat("", 100000, "192.0.2.1");
	assert_string_equal(client_of("10.0.0.1", long_list, text), "192.0.2.1");
	repeat("", 100000, "");
	assert_string_equal(client_of("10.0.0.1", long_list, text), "10.0.0.1");
}

static void
the_walk_ends_after_so_many_proxies(void **state)
{
	char list[VIEW_HOPS_MAX * 16], text[IP_TEXT_SIZE];

	(void)state;
	trust("10.0.0.0/24");
	for (unsigned proxies = VIEW_HOPS_MAX - 2; proxies <= VIEW_HOPS_MAX + 1; proxies++) {
		size_t len = (size_t)snprintf(list, sizeof list, "192.0.2.1");

		for (unsigned i = 0; i < proxies; i++)
			len += (size_t)snprintf(
				list + len, sizeof list - len, ",10.0.0.%u", proxies - i);
		/* Its own address is one of them. */
		(void)client_of("10.0.0.1", list, text);
		if (proxies < VIEW_HOPS_MAX)
			assert_string_equal(text, "192.0.2.1");
		else
			assert_string_equal(text, "10.0.0.100");
	}
}

#define forwarded_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		forwarded_test(the_list_is_walked_from_its_right_end),
		forwarded_test(only_a_trusted_proxy_is_believed),
		forwarded_test(addresses_are_taken_as_proxies_write_them),
		forwarded_test(what_is_no_address_ends_the_walk),
		forwarded_test(a_repeated_field_is_forged),
		forwarded_test(a_proxy_that_names_nobody_is_noticed),
		forwarded_test(a_list_of_any_length_is_walked_as_far_as_proxies_go),
		forwarded_test(the_walk_ends_after_so_many_proxies),
	};

	return cmocka_run_group_tests_name("route/forwarded", tests, NULL, NULL);
}
