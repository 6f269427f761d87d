/* view.h: what matters of a request's parameters. */
#include "routing.h"

static struct arena arena;
static struct view view;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena, ARENA_MAX);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

#define view_with(...) view_of(&view, (const char *const[]){ __VA_ARGS__, NULL }, &arena)

/* ---- the path ---- */

static void
the_path_is_normal_and_the_target_as_it_came(void **state)
{
	static const struct {
		const char *uri, *path;
	} rows[] = {
		{ "REQUEST_URI=/", "/" },
		{ "REQUEST_URI=/a/b?x=/../c", "/a/b" },
		/* One page, in the spellings that have led around limits. */
		{ "REQUEST_URI=/login", "/login" },
		{ "REQUEST_URI=//login", "/login" },
		{ "REQUEST_URI=/./login", "/login" },
		{ "REQUEST_URI=/x/../login", "/login" },
		{ "REQUEST_URI=/%6cogin", "/login" },
		{ "REQUEST_URI=/log%69n", "/login" },
		{ "REQUEST_URI=/x%2f..%2flogin", "/login" },
		{ "REQUEST_URI=/login#x", "/login" },
		{ "REQUEST_URI=http://other.test/login?q=1", "/login" },
		{ "REQUEST_URI=/login%2fx", "/login/x" },
		{ "REQUEST_URI=/%256cogin", "/%6cogin" }, /* decoded once */
		{ "REQUEST_URI=/LOGIN", "/LOGIN" },
		{ "REQUEST_URI=/login/", "/login/" },
		{ "REQUEST_URI=*", "*" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(view_with("REQUEST_METHOD=GET", rows[i].uri), 0);
		assert_slice(view.path, slice_of(rows[i].path));
		assert_slice(view.target, slice_of(rows[i].uri + strlen("REQUEST_URI=")));
	}
}

static void
a_path_without_normal_form_is_no_request(void **state)
{
	(void)state;
	assert_int_equal(view_with("REQUEST_URI=/a%00"), -1);
	assert_int_equal(view_with("REQUEST_URI=/a%2"), -1);
	assert_int_equal(view_with("REQUEST_URI=/a%zz"), -1);
	assert_int_equal(view_with("REQUEST_URI=login"), -1);
}

/* REQUEST_URI is no variable of CGI. */
static void
without_a_target_the_path_is_what_the_server_made_of_it(void **state)
{
	static const struct {
		const char *script, *info, *path;
	} rows[] = {
		{ "SCRIPT_NAME=/cgit.cgi", "PATH_INFO=/repo/log", "/cgit.cgi/repo/log" },
		{ "SCRIPT_NAME=", "PATH_INFO=/repo", "/repo" },
		{ "SCRIPT_NAME=/cgit.cgi", "OTHER=", "/cgit.cgi" },
		{ "OTHER=", "OTHER=", "/" },
		{ "SCRIPT_NAME=/a%20b", "REQUEST_URI=", "/a%20b" }, /* decoded already */
		{ "SCRIPT_NAME=//a/./b", "PATH_INFO=/.//c//d", "/a/b/c/d" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(view_with(rows[i].script, rows[i].info), 0);
		assert_slice(view.path, slice_of(rows[i].path));
		assert_slice(view.target, view.path);
	}
}

static void
the_script_is_the_servers_or_else_the_path(void **state)
{
	(void)state;
	assert_int_equal(view_with("REQUEST_URI=/wp-login.php/x", "SCRIPT_NAME=/wp-login.php"), 0);
	assert_slice(view.script, SLICE("/wp-login.php"));
	/* As HAProxy passes it on. Nothing is decoded: it has been. */
	assert_int_equal(view_with("REQUEST_URI=//x", "SCRIPT_NAME=//wp/./x//%2e%2e.php"), 0);
	assert_slice(view.script, SLICE("/wp/x/%2e%2e.php"));
	/* What runs then is anybody's guess. */
	assert_int_equal(view_with("REQUEST_URI=/x", "SCRIPT_NAME=/a.php/../b.php"), -1);
	assert_int_equal(view_with("REQUEST_URI=/x", "SCRIPT_NAME=/a.php", "PATH_INFO=/../x"), -1);
	assert_int_equal(view_with("SCRIPT_NAME=/a.php", "PATH_INFO=/.."), -1);
	/* An authorizer is asked about a URL. */
	assert_int_equal(view_with("REQUEST_URI=/a//b", "SCRIPT_NAME="), 0);
	assert_slice(view.script, SLICE("/a/b"));
	assert_int_equal(view_with("REQUEST_URI=/a//b"), 0);
	assert_slice(view.script, SLICE("/a/b"));
}

/* ---- parameters ---- */

static void
of_a_repeated_name_the_last_counts(void **state)
{
	(void)state;
	assert_int_equal(view_with("REQUEST_METHOD=GET", "REQUEST_URI=/a", "REMOTE_ADDR=192.0.2.1",
				 "REQUEST_URI=/b", "REQUEST_METHOD=POST", "REMOTE_ADDR=192.0.2.2",
				 "HTTP_X=1", "HTTP_X=2"),
		0);
	assert_slice(view.method, SLICE("POST"));
	assert_slice(view.path, SLICE("/b"));
	assert_slice(view_param(&view, "HTTP_X"), SLICE("2"));
	char text[IP_TEXT_SIZE];

	assert_string_equal(ip_text(view.ip, text), "192.0.2.2");
}

static void
names_are_whole_and_values_may_be_anything(void **state)
{
	(void)state;
	assert_int_equal(view_with("REQUEST_METHODS=PUT", "REQUEST_METHO=PUT", "request_method=PUT",
				 "REQUEST_URI=/", "X==a=b", "EMPTY="),
		0);
	assert_int_equal(view.method.len, 0);
	assert_slice(view_param(&view, "X"), SLICE("=a=b"));
	assert_int_equal(view_param(&view, "EMPTY").len, 0);
	assert_non_null(view_param(&view, "EMPTY").ptr);
	assert_null(view_param(&view, "NOT_THERE").ptr);
	assert_null(view_param(&view, "EMPT").ptr);
	assert_null(view_param(&view, "").ptr);
}

static void
nothing_at_all_is_a_request_for_the_root(void **state)
{
	(void)state;
	assert_int_equal(view_of(&view, (const char *const[]){ NULL }, &arena), 0);
	assert_slice(view.path, SLICE("/"));
	assert_int_equal(view.method.len, 0);
	assert_false(view.has_ip);
	assert_int_equal(view.user.len, 0);
	assert_false(view.user_is_claimed);
}

static void
the_host_has_one_spelling(void **state)
{
	static const char *const rows[][2] = {
		{ "HTTP_HOST=example.org", "example.org" },
		{ "HTTP_HOST=Example.ORG", "example.org" },
		{ "HTTP_HOST=example.org.", "example.org" },
		{ "HTTP_HOST=example.org:8080", "example.org" },
		{ "HTTP_HOST=example.org.:8080", "example.org" },
		{ "HTTP_HOST=example.org:", "example.org" },
		{ "HTTP_HOST=\texample.org ", "example.org" },
		{ "HTTP_HOST=[2001:DB8::1]", "[2001:db8::1]" },
		{ "HTTP_HOST=[2001:DB8::1]:443", "[2001:db8::1]" },
		{ "HTTP_HOST=192.0.2.1:80", "192.0.2.1" },
		{ "HTTP_HOST=", "" },
		{ "HTTP_HOST=.", "" },
		{ "HTTP_HOST=:80", "" },
		{ "OTHER=example.org", "" },
		/* What is no host is told from all others all the same. */
		{ "HTTP_HOST=a:b", "a:b" },
		{ "HTTP_HOST=a:80:90", "a:80:90" },
		{ "HTTP_HOST=[::1", "[::1" },
		{ "HTTP_HOST=[", "[" },
		{ "HTTP_HOST=\xc3\x84\xff", "\xc3\x84\xff" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(view_with(rows[i][0]), 0);
		assert_slice(view.host, slice_of(rows[i][1]));
	}
	/* nginx sends it again, empty, where a location has parameters of its own. */
	/* Apache serves what the URL names, and its first site to who names nothing. */
	assert_int_equal(view_with("REQUEST_URI=http://u@A.test:80/x", "HTTP_HOST=b.test",
				 "SERVER_NAME=c.test"),
		0);
	assert_slice(view.host, SLICE("a.test"));
	assert_slice(view.path, SLICE("/x"));
	assert_int_equal(view_with("REQUEST_URI=http://", "HTTP_HOST=b.test"), 0);
	assert_slice(view.host, SLICE("b.test"));
	assert_int_equal(view_with("REQUEST_URI=/http://a.test/", "HTTP_HOST=b.test"), 0);
	assert_slice(view.host, SLICE("b.test"));
	assert_int_equal(view_with("REQUEST_URI=/x", "SERVER_NAME=c.test"), 0);
	assert_slice(view.host, SLICE("c.test"));
	assert_int_equal(view_with("HTTP_HOST=a.test", "HTTP_HOST="), 0);
	assert_slice(view.host, SLICE("a.test"));
	assert_int_equal(view_with("HTTP_HOST=a.test", "HTTP_HOST=b.test"), 0);
	assert_slice(view.host, SLICE("b.test"));
}

static void
the_query_is_what_the_application_reads(void **state)
{
	static const struct {
		const char *env[2], *query;
	} rows[] = {
		{ { "QUERY_STRING=a=1", "REQUEST_URI=/x?b=2" }, "a=1" },
		{ { "QUERY_STRING=", "REQUEST_URI=/x?b=2#c" }, "b=2" },
		{ { "OTHER=", "REQUEST_URI=/x?b=2" }, "b=2" },
		{ { "QUERY_STRING=a=1", "QUERY_STRING=" }, "a=1" },
		{ { "QUERY_STRING=a=1", "OTHER=" }, "a=1" },
		/* A path that was decoded has none. */
		{ { "SCRIPT_NAME=/a?b", "OTHER=" }, "" },
		{ { "OTHER=", "OTHER=" }, "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(view_with(rows[i].env[0], rows[i].env[1]), 0);
		assert_slice(view.query, slice_of(rows[i].query));
	}
}

/* ---- the user ---- */

/* nginx passes on what any client claims. */
static void
a_user_is_believed_only_with_an_auth_type(void **state)
{
	(void)state;
	assert_int_equal(view_with("REMOTE_USER=alice", "AUTH_TYPE=Basic"), 0);
	assert_slice(view.user, SLICE("alice"));
	assert_false(view.user_is_claimed);
	assert_int_equal(view_with("REMOTE_USER=forged"), 0);
	assert_int_equal(view.user.len, 0);
	assert_true(view.user_is_claimed);
	assert_int_equal(view_with("REMOTE_USER=forged", "AUTH_TYPE="), 0);
	assert_int_equal(view.user.len, 0);
	assert_true(view.user_is_claimed);
	/* What a client may send is a header, and no parameter of the server's. */
	assert_int_equal(view_with("REMOTE_USER=forged", "HTTP_AUTH_TYPE=Basic"), 0);
	assert_true(view.user_is_claimed);
	assert_int_equal(view_with("REMOTE_USER=", "AUTH_TYPE="), 0);
	assert_false(view.user_is_claimed);
}

/* ---- the address ---- */

static void
an_address_is_the_same_however_it_is_written(void **state)
{
	static const struct {
		const char *param, *ip;
	} rows[] = {
		{ "REMOTE_ADDR=192.0.2.1", "192.0.2.1" },
		{ "REMOTE_ADDR=::ffff:192.0.2.1", "192.0.2.1" },
		{ "REMOTE_ADDR=::ffff:c000:201", "192.0.2.1" },
		{ "REMOTE_ADDR=64:ff9b::192.0.2.1", "192.0.2.1" },
		{ "REMOTE_ADDR=192.0.2.1:4711", "192.0.2.1" },
		{ "REMOTE_ADDR=2001:DB8:0:0::1", "2001:db8::1" },
		{ "REMOTE_ADDR=[2001:db8::1]:443", "2001:db8::1" },
		{ "REMOTE_ADDR=fe80::1%eth0", "fe80::1" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char text[IP_TEXT_SIZE];

		assert_int_equal(view_with(rows[i].param), 0);
		assert_row(view.has_ip, "%s", rows[i].param);
		assert_string_equal(ip_text(view.ip, text), rows[i].ip);
	}
}

static void
what_is_no_address_is_none(void **state)
{
	static const char *const rows[] = { "REMOTE_ADDR=", "REMOTE_ADDR=unix:",
		"REMOTE_ADDR=localhost", "REMOTE_ADDR=1.2.3", "REMOTE_ADDR=1.2.3.4.5",
		"REMOTE_ADDR=::1::", "HTTP_REMOTE_ADDR=192.0.2.1",
		"HTTP_X_FORWARDED_FOR=192.0.2.1" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		assert_int_equal(view_with(rows[i]), 0);
		assert_row(!view.has_ip, "%s", rows[i]);
	}
}

/* ---- memory ---- */

static void
what_is_beyond_the_arena_is_no_request(void **state)
{
	static char target[5000];
	struct arena small;

	(void)state;
	memset(target, 'a', sizeof target - 1);
	memcpy(target, "REQUEST_URI=/", 13);
	arena_init(&small, 4000);
	assert_int_equal(view_of(&view, (const char *const[]){ target, NULL }, &small), -1);
	memcpy(target, "SCRIPT_NAME=/", 13);
	assert_int_equal(view_of(&view, (const char *const[]){ target, NULL }, &small), -1);
	memcpy(target, "QUERY_STRING=", 13);
	assert_int_equal(view_of(&view, (const char *const[]){ target, NULL }, &small), -1);
	memcpy(target, "X=/HTTP_HOST=", 13);
	assert_int_equal(view_of(&view, (const char *const[]){ target + 3, NULL }, &small), -1);
	memcpy(target, "HTTP_COOKIE==", 13);
	assert_int_equal(view_of(&view, (const char *const[]){ target, NULL }, &small), -1);
	memcpy(target, "HTTP_ACCEPT==", 13);
	assert_int_equal(view_of(&view, (const char *const[]){ target, NULL }, &small), 0);
	arena_release(&small);
}

#define view_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		view_test(the_path_is_normal_and_the_target_as_it_came),
		view_test(a_path_without_normal_form_is_no_request),
		view_test(without_a_target_the_path_is_what_the_server_made_of_it),
		view_test(the_script_is_the_servers_or_else_the_path),
		view_test(of_a_repeated_name_the_last_counts),
		view_test(names_are_whole_and_values_may_be_anything),
		view_test(nothing_at_all_is_a_request_for_the_root),
		view_test(the_host_has_one_spelling),
		view_test(the_query_is_what_the_application_reads),
		view_test(a_user_is_believed_only_with_an_auth_type),
		view_test(an_address_is_the_same_however_it_is_written),
		view_test(what_is_no_address_is_none),
		view_test(what_is_beyond_the_arena_is_no_request),
	};

	return cmocka_run_group_tests_name("route/view", tests, NULL, NULL);
}
