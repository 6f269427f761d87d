/* What a route wants besides its path: conditions, hosts, clients that are exempt. */
#include "routing.h"
#include "weir/clock.h"

static struct arena arena;

static int
setup(void **state)
{
	arena_init(&arena, 4 * ARENA_MAX);
	return load_setup(state);
}

static int
teardown(void **state)
{
	arena_release(&arena);
	return load_teardown(state);
}

static struct view
seen(const char *const *env)
{
	struct view view;

	arena_release(&arena);
	arena_init(&arena, 4 * ARENA_MAX);
	assert_int_equal(view_of(&view, env, &arena), 0);
	return view;
}

/* The route that these lines make is the first; the second takes the rest. */
static int
route_by(const char *lines, const char *const *env)
{
	char sections[1024];

	(void)snprintf(sections, sizeof sections, "[route first]\nmatch = *\n%s\n", lines);
	struct config *config = configured(sections);
	struct routes *routes = routes_of(config);
	const struct view view = seen(env);
	const int route = routes_match(routes, &view);

	routes_free(routes);
	config_free(config);
	return route;
}

struct row {
	const char *when, *env[3];
	bool holds;
};

/* Each the other way round with `not`. */
static void
assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *const env[] = { "REQUEST_URI=/", rows[i].env[0], rows[i].env[1],
			rows[i].env[2], NULL };
		char line[256];

		(void)snprintf(line, sizeof line, "when = %s", rows[i].when);
		assert_row(route_by(line, env) == (rows[i].holds ? 0 : 1), "%s: %s", line,
			rows[i].env[0]);
		(void)snprintf(line, sizeof line, "when = not %s", rows[i].when);
		assert_row(route_by(line, env) == (rows[i].holds ? 1 : 0), "%s: %s", line,
			rows[i].env[0]);
	}
}

/* ---- sources ---- */

static void
a_header_fits_as_a_whole(void **state)
{
	static const struct row rows[] = {
		{ "header X-A", { "HTTP_X_A=1" }, true },
		{ "header x-a", { "HTTP_X_A=1" }, true },
		{ "header X-A", { "HTTP_X_A=" }, false },
		{ "header X-A", { "HTTP_X_AB=1", "X_A=1", "HTTP_X_=A=1" }, false },
		{ "header X-A yes", { "HTTP_X_A=yes" }, true },
		{ "header X-A yes", { "HTTP_X_A=Yes" }, false },
		{ "header X-A yes nocase", { "HTTP_X_A=Yes" }, true },
		{ "header X-A yes", { "HTTP_X_A=yes " }, false },
		{ "header X-A yes", { "HTTP_X_A=yess" }, false },
		{ "header X-A yes", { "HTTP_X_A=yes/x" }, false },
		{ "header X-A = yes", { "HTTP_X_A=yes" }, true },
		{ "header X-A = y*s", { "HTTP_X_A=y*s" }, true },
		{ "header X-A = y*s", { "HTTP_X_A=yes" }, false },
		{ "header X-A y*s", { "HTTP_X_A=yes" }, true },
		{ "header X-A y*s", { "HTTP_X_A=yesterdays" }, true },
		{ "header X-A y*s", { "HTTP_X_A=ys" }, true },
		{ "header X-A y*s", { "HTTP_X_A=yes/x" }, false },
		{ "header X-A y*s", { "HTTP_X_A=xyes" }, false },
		{ "header X-A y*s", { "HTTP_X_A=yest" }, false },
		{ "header X-A *bot*", { "HTTP_X_A=a bot/1" }, true },
		{ "header X-A *bot*", { "HTTP_X_A=bot" }, true },
		{ "header X-A *bot*", { "HTTP_X_A=Bot" }, false },
		{ "header X-A *bot* nocase", { "HTTP_X_A=GoogleBot/2" }, true },
		{ "header X-A */", { "HTTP_X_A=a/b" }, false },
		{ "header X-A ~ o[tu]", { "HTTP_X_A=about it" }, true },
		{ "header X-A ~ ^o[tu]", { "HTTP_X_A=about it" }, false },
		{ "header User-Agent ~ (bot|crawl) nocase", { "HTTP_USER_AGENT=ABOT" }, true },
		{ "header Content-Type text/x", { "CONTENT_TYPE=text/x" }, true },
		{ "header Content-Type text/x", { "HTTP_CONTENT_TYPE=text/x" }, false },
		/* lighttpd may send two. */
		{ "header X-A 1", { "HTTP_X_A=1", "HTTP_X_A=2" }, true },
		{ "header X-A 2", { "HTTP_X_A=1", "HTTP_X_A=2" }, true },
		{ "header X-A 3", { "HTTP_X_A=1", "HTTP_X_A=2" }, false },
		{ "header X-A", { "HTTP_X_A=1", "HTTP_X_A=" }, true },
		{ "header X-A ~ ^$", { "HTTP_X_A=" }, false },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
variables_and_users_are_the_servers(void **state)
{
	static const struct row rows[] = {
		{ "env HTTPS on", { "HTTPS=on" }, true },
		{ "env HTTPS on", { "HTTP_HTTPS=on" }, false },
		{ "env HTTPS", { "HTTPS=" }, false },
		{ "env HTTPS", { "https=on" }, false },
		{ "user", { "REMOTE_USER=alice", "AUTH_TYPE=Basic" }, true },
		{ "user", { "REMOTE_USER=alice" }, false },
		{ "user alice", { "REMOTE_USER=alice", "AUTH_TYPE=Basic" }, true },
		{ "user alice", { "REMOTE_USER=bob", "AUTH_TYPE=Basic" }, false },
		{ "user a*", { "REMOTE_USER=alice", "AUTH_TYPE=Basic" }, true },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
a_cookie_is_found_among_others(void **state)
{
	static const struct row rows[] = {
		{ "cookie s", { "HTTP_COOKIE=s=1" }, true },
		{ "cookie s", { "HTTP_COOKIE=a=1; s=2; b=3" }, true },
		{ "cookie s", { "HTTP_COOKIE=a=1;s=2" }, true },
		{ "cookie s", { "HTTP_COOKIE=a=1;  \ts=2 " }, true },
		{ "cookie s", { "HTTP_COOKIE=s=" }, true },
		{ "cookie s", { "HTTP_COOKIE=s" }, true },
		{ "cookie s", { "HTTP_COOKIE=ss=1; as=1" }, false },
		{ "cookie s", { "HTTP_COOKIE=S=1" }, false },
		{ "cookie s nocase", { "HTTP_COOKIE=S=1" }, true },
		{ "cookie s", { "HTTP_COOKIE=a=s=1" }, false },
		{ "cookie s", { "HTTP_COOKIE=" }, false },
		{ "cookie s", { "HTTP_COOKIE=;;=;" }, false },
		{ "cookie s", { "HTTP_COOKIES=s=1" }, false },
		{ "cookie s 1", { "HTTP_COOKIE=s=1" }, true },
		{ "cookie s 1", { "HTTP_COOKIE=s=\"1\"" }, true }, /* as http.cookies reads it */
		{ "cookie s \"1\"", { "HTTP_COOKIE=s=\"1\"" }, true }, /* as PHP does */
		{ "cookie s 1", { "HTTP_COOKIE=s=0; s=1" }, true }, /* any of them */
		{ "cookie s 0", { "HTTP_COOKIE=s=0; s=1" }, true },
		{ "cookie s a=b", { "HTTP_COOKIE=s=a=b" }, true },
		{ "cookie s ~ ^[0-9]+$", { "HTTP_COOKIE=s=12" }, true },
		{ "cookie s ~ ^[0-9]+$", { "HTTP_COOKIE=s=12x" }, false },
		{ "cookie s ~ ^$", { "HTTP_COOKIE=s=" }, true },
		{ "cookie s %41", { "HTTP_COOKIE=s=%41" }, true },
		{ "cookie s A", { "HTTP_COOKIE=s=%41" }, true },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
a_parameter_fits_however_it_is_spelled(void **state)
{
	static const struct row rows[] = {
		{ "param q", { "QUERY_STRING=q=1" }, true },
		{ "param q", { "QUERY_STRING=q" }, true },
		{ "param q", { "QUERY_STRING=q=" }, true },
		{ "param q", { "QUERY_STRING=qq=1&Q=1" }, false },
		{ "param q", { "QUERY_STRING=" }, false },
		{ "param q", { "QUERY_STRING=a&b=q&%71=1" }, true },
		{ "param REQUEST GetMap nocase", { "QUERY_STRING=request=getmap" }, true },
		{ "param REQUEST GetMap nocase", { "QUERY_STRING=REQUEST=Get%4dap" }, true },
		{ "param REQUEST GetMap nocase", { "QUERY_STRING=r%45quest=GETMAP" }, true },
		{ "param REQUEST GetMap nocase", { "QUERY_STRING=request=getmaps" }, false },
		{ "param REQUEST GetMap", { "QUERY_STRING=request=GetMap" }, false },
		/* Any of them, in any place. */
		{ "param r x", { "QUERY_STRING=r=x&r=y&r=z" }, true },
		{ "param r y", { "QUERY_STRING=r=x&r=y&r=z" }, true },
		{ "param r z", { "QUERY_STRING=r=x&r=y&r=z" }, true },
		{ "param r w", { "QUERY_STRING=r=x&r=y&r=z" }, false },
		{ "param w ~ ^[0-9]{4,}$", { "QUERY_STRING=w=1&w=%31000" }, true },
		{ "param w ~ ^[0-9]{4,}$", { "QUERY_STRING=w=100&w=999" }, false },
		{ "param q a*", { "QUERY_STRING=q=+a" }, false },
		{ "param q ~ ^\\sa", { "QUERY_STRING=q=+a" }, true },
		{ "param q %zz", { "QUERY_STRING=q=%zz" }, true },
		{ "param q ~ ^\\xff\\x00$", { "QUERY_STRING=q=%ff%00" }, true },
		{ "param q", { "REQUEST_URI=/a?q=1#f" }, true },
		{ "param q", { "REQUEST_URI=/a#?q=1" }, false },
		/* The application reads the query that the server gives it. */
		{ "param q", { "REQUEST_URI=/a?x=1", "QUERY_STRING=q=1" }, true },
		{ "param q", { "REQUEST_URI=/a?q=1", "QUERY_STRING=x=1" }, false },
		{ "param q", { "REQUEST_URI=/a?q=1", "QUERY_STRING=" }, true },
		{ "param q", { "QUERY_STRING=q=1", "QUERY_STRING=" }, true },
		{ "param q", { "QUERY_STRING=x=1", "QUERY_STRING=q=1" }, true },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

static void
networks_hold_clients(void **state)
{
	static const struct row rows[] = {
		{ "ip 192.0.2.0/24, 2001:db8::/32", { "REMOTE_ADDR=192.0.2.9" }, true },
		{ "ip 192.0.2.0/24, 2001:db8::/32", { "REMOTE_ADDR=::ffff:192.0.2.9" }, true },
		{ "ip 192.0.2.0/24, 2001:db8::/32", { "REMOTE_ADDR=2001:db8:1::" }, true },
		{ "ip 192.0.2.0/24, 2001:db8::/32", { "REMOTE_ADDR=192.0.3.0" }, false },
		{ "ip 192.0.2.0/24, 2001:db8::/32", { "REMOTE_ADDR=2001:db9::" }, false },
		{ "ip 192.0.2.0/24", { "REMOTE_ADDR=unix:" }, false },
		{ "ip ::/1, 0.0.0.0/1", { "REMOTE_ADDR=unix:" }, false },
		{ "ip 192.0.2.0/24", { "HTTP_X_FORWARDED_FOR=192.0.2.1" }, false },
	};

	(void)state;
	assert_rows(rows, LENGTH_OF(rows));
}

/* ---- together ---- */

static void
all_of_them_must_hold(void **state)
{
	static const char lines[] = "when = header X-A\nwhen = not cookie s\nwhen = param n 1";
	static const struct {
		const char *env[4];
		int route;
	} rows[] = {
		{ { "HTTP_X_A=1", "QUERY_STRING=n=1" }, 0 },
		{ { "HTTP_X_A=1", "QUERY_STRING=n=1", "HTTP_COOKIE=s=1" }, 1 },
		{ { "HTTP_X_A=1", "QUERY_STRING=n=2" }, 1 },
		{ { "HTTP_X_A=", "QUERY_STRING=n=1" }, 1 },
		{ { "OTHER=" }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(route_by(lines, rows[i].env) == rows[i].route, "row %zu", i);
	/* And the path, and the host. */
	assert_int_equal(route_by("when = header X-A\nhost = a.test",
				 (const char *const[]){ "HTTP_X_A=1", "HTTP_HOST=a.test", NULL }),
		0);
	assert_int_equal(route_by("when = header X-A\nhost = a.test",
				 (const char *const[]){ "HTTP_X_A=1", "HTTP_HOST=b.test", NULL }),
		1);
}

static void
a_host_fits_in_all_its_spellings(void **state)
{
	static const struct {
		const char *hosts, *host;
		bool fits;
	} rows[] = {
		{ "example.org", "HTTP_HOST=example.org", true },
		{ "example.org", "HTTP_HOST=EXAMPLE.org", true },
		{ "example.org", "HTTP_HOST=example.org.", true },
		{ "example.org", "HTTP_HOST=example.org:8080", true },
		{ "example.org", "HTTP_HOST=example.org.:8080", true },
		{ "example.org", "HTTP_HOST=example.org:", true },
		{ "example.org", "HTTP_HOST= example.org ", true },
		{ "example.org", "HTTP_HOST=www.example.org", false },
		{ "example.org", "HTTP_HOST=example.orgs", false },
		{ "example.org", "HTTP_HOST=", false },
		{ "example.org", "SERVER_NAME=example.org", true },
		{ "example.org", "REQUEST_URI=http://example.org:80/", true },
		{ "example.org", "HTTP_HOST=example.org:80x", false },
		{ "*.example.org", "HTTP_HOST=www.example.org:80", true },
		{ "*.example.org", "HTTP_HOST=a.b.Example.Org.", true },
		{ "*.example.org", "HTTP_HOST=example.org", false },
		{ "*.example.org", "HTTP_HOST=.example.org", false },
		{ "*.example.org", "HTTP_HOST=xexample.org", false },
		{ "a.test, *.b.test", "HTTP_HOST=x.b.test", true },
		{ "a.test, *.b.test", "HTTP_HOST=a.test", true },
		{ "a.test, *.b.test", "HTTP_HOST=x.a.test", false },
		{ "[2001:db8::1]", "HTTP_HOST=[2001:DB8::1]:443", true },
		{ "[2001:db8::1]", "HTTP_HOST=[2001:db8::1]", true },
		{ "[2001:db8::1]", "HTTP_HOST=[2001:db8::2]", false },
		{ "192.0.2.1", "HTTP_HOST=192.0.2.1:80", true },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char line[128];

		(void)snprintf(line, sizeof line, "host = %s", rows[i].hosts);
		assert_row(route_by(line, (const char *const[]){ rows[i].host, NULL }) ==
				(rows[i].fits ? 0 : 1),
			"%s: %s", line, rows[i].host);
	}
}

static void
exempt_clients_are_those_of_their_route(void **state)
{
	struct config *config =
		configured("[weir]\ntrusted_proxies = 10.0.0.1\n"
			   "[route one]\nmatch = /a\nexempt_ip = 192.0.2.0/28, 2001:db8::7, ::/16\n"
			   "[route two]\nmatch = /b\nexempt_ip = 198.51.100.1\n");
	struct routes *routes = routes_of(config);
	static const struct {
		const char *ip, *forwarded;
		bool exempt[3];
	} rows[] = {
		{ "REMOTE_ADDR=192.0.2.15", "OTHER=", { true, false, false } },
		{ "REMOTE_ADDR=192.0.2.16", "OTHER=", { false, false, false } },
		{ "REMOTE_ADDR=64:ff9b::192.0.2.1", "OTHER=", { true, false, false } },
		{ "REMOTE_ADDR=2001:db8::7", "OTHER=", { true, false, false } },
		{ "REMOTE_ADDR=198.51.100.1", "OTHER=", { false, true, false } },
		{ "REMOTE_ADDR=unix:", "OTHER=", { false, false, false } },
		/* The client as it was decided. */
		{ "REMOTE_ADDR=10.0.0.1", "HTTP_X_FORWARDED_FOR=192.0.2.1",
			{ true, false, false } },
		{ "REMOTE_ADDR=10.0.0.2", "HTTP_X_FORWARDED_FOR=192.0.2.1",
			{ false, false, false } },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const char *const env[] = { rows[i].ip, rows[i].forwarded, NULL };
		struct err err;
		struct view view;

		assert_int_equal(
			view_init(&view, routes, (char *const *)(uintptr_t)env, &arena, &err), 0);
		for (unsigned j = 0; j < 3; j++)
			assert_row(route_exempts(routes, j, &view) == rows[i].exempt[j],
				"%s, route %u", rows[i].ip, j);
	}
	routes_free(routes);
	config_free(config);
}

/* ---- what clients can do to them ---- */

/* NAME, then the text so many times. */
static char *
repeated(const char *name, const char *text, size_t count)
{
	const size_t first = strlen(name), one = strlen(text);
	char *all = malloc(first + count * one + 1);

	assert_non_null(all);
	memcpy(all, name, first);
	for (size_t i = 0; i < count; i++)
		memcpy(all + first + i * one, text, one);
	all[first + count * one] = '\0';
	return all;
}

/* NAME, then `text` so many times, then `last`. */
static int
route_of_many(const char *line, const char *name, const char *text, size_t count, const char *last)
{
	char *most = repeated(name, text, count), *all = NULL;

	assert_true(asprintf(&all, "%s%s", most, last) > 0);
	const int64_t start_us = clock_monotonic_us();
	const int route = route_by(line, (const char *const[]){ all, NULL });

	assert_in_range(clock_monotonic_us() - start_us, 0, 2 * US_PER_S);
	free(most);
	free(all);
	return route;
}

static void
thousands_of_values_hide_none(void **state)
{
	(void)state;
	assert_int_equal(
		route_of_many("when = param q 1", "QUERY_STRING=", "q=0&", 20000, "q=1"), 0);
	assert_int_equal(
		route_of_many("when = param q 1", "QUERY_STRING=", "q=%30&", 20000, "q=%31"), 0);
	assert_int_equal(
		route_of_many("when = param q 1", "QUERY_STRING=", "q=0&", 20000, "q=2"), 1);
	assert_int_equal(
		route_of_many("when = cookie q 1", "HTTP_COOKIE=", "q=0; ", 20000, "q=1"), 0);
	assert_int_equal(route_of_many("when = param q", "QUERY_STRING=", "&", 200000, "q"), 0);
	assert_int_equal(route_of_many("when = cookie q", "HTTP_COOKIE=", ";", 200000, "q"), 0);
	assert_int_equal(route_of_many("when = header X a*b", "HTTP_X=", "a", 200000, "b"), 0);
	assert_int_equal(route_of_many("when = header X a*bc", "HTTP_X=", "ab", 2000, "b"), 1);
}

/* All values of a condition cost together what one may. */
static void
an_expression_beyond_its_limit_fits_not_and_differs_not(void **state)
{
	static const struct {
		const char *line, *name, *text, *last;
		size_t count;
	} rows[] = {
		{ "when = header X ~ ^(a|aa)+$", "HTTP_X=", "a", "x", 2000 },
		{ "when = not header X ~ ^(a|aa)+$", "HTTP_X=", "a", "x", 2000 },
		{ "when = param q ~ ^(a|aa)+$", "QUERY_STRING=q=", "a", "x", 2000 },
		{ "when = cookie q ~ ^(a|aa)+$", "HTTP_COOKIE=q=", "a", "x", 2000 },
		/* Each alone is well within it. */
		{ "when = param q ~ ^(a|aa)+$", "QUERY_STRING=", "q=aaaaaaaaaax&", "q=1", 4000 },
		/* Steps that begin anew with each character. */
		{ "when = header X ~ x.*y$", "HTTP_X=", "xy", "x", 4000 },
		{ "when = header X ~ [a-z]+[0-9]", "HTTP_X=", "a", "", 16000 },
		/* Longer than any server of the field lets through. */
		{ "when = header X ~ b", "HTTP_X=", "a", "", 20000 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const int route = route_of_many(
			rows[i].line, rows[i].name, rows[i].text, rows[i].count, rows[i].last);

		assert_row(route == -2, "%s: %d", rows[i].line, route);
	}
	/* Conditions are asked in their order, and none that does not matter any more. */
	assert_int_equal(route_of_many("when = header Y\nwhen = header X ~ ^(a|aa)+$",
				 "HTTP_X=", "a", 2000, "x"),
		1);
	assert_int_equal(route_of_many("host = a.test\nwhen = header X ~ ^(a|aa)+$", "HTTP_X=", "a",
				 2000, "x"),
		1);
}

/* What people write is far from the limit. */
static void
honest_requests_stay_far_below_the_limit(void **state)
{
	(void)state;
	assert_int_equal(
		route_of_many("when = header User-Agent ~ (bot|crawl|spider|slurp|gpt) nocase",
			"HTTP_USER_AGENT=", "Mozilla/5.0 (X11; Linux x86_64) ", 40, "robot"),
		0);
	assert_int_equal(
		route_of_many("when = header User-Agent ~ (bot|crawl|spider|slurp|gpt) nocase",
			"HTTP_USER_AGENT=", "Mozilla/5.0 (X11; Linux x86_64) ", 40, "Firefox"),
		1);
	assert_int_equal(route_of_many("when = param id ~ ^[0-9]{4,}$", "QUERY_STRING=", "id=12&",
				 1000, "id=1000"),
		0);
	assert_int_equal(route_of_many("when = header X ~ ^/cgit/.*/(commit|diff|blame)(/|$)",
				 "HTTP_X=/cgit/", "directory/", 100, "tree/x"),
		1);
	assert_int_equal(route_of_many("when = header X ~ ^/cgit/.*/(commit|diff|blame)(/|$)",
				 "HTTP_X=/cgit/", "directory/", 100, "commit/x"),
		0);
}

static void
a_wrong_expression_is_told_with_its_place(void **state)
{
	struct config_when when = { .place = { "weir.ini", 9 },
		.source = IDENTITY_HEADER,
		.name = "X",
		.param = "HTTP_X",
		.pattern = { .kind = PATTERN_REGEX, .text = "a(b" } };
	struct config_route route = { .name = "r", .whens = &when, .when_count = 1 };
	struct config_route *list[] = { &route };
	const struct config config = { .routes = list, .route_count = 1 };
	struct diagnostics diagnostics;

	(void)state;
	diagnostics_init(&diagnostics);
	assert_null(routes_new(&config, &diagnostics));
	assert_int_equal(diagnostics.errors, 1);
	assert_int_equal(diagnostics.list[0].place.line, 9);
	assert_string_equal(diagnostics.list[0].where, "[route r] when");
	diagnostics_release(&diagnostics);
}

#define condition_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		condition_test(a_header_fits_as_a_whole),
		condition_test(variables_and_users_are_the_servers),
		condition_test(a_cookie_is_found_among_others),
		condition_test(a_parameter_fits_however_it_is_spelled),
		condition_test(networks_hold_clients),
		condition_test(all_of_them_must_hold),
		condition_test(a_host_fits_in_all_its_spellings),
		condition_test(exempt_clients_are_those_of_their_route),
		condition_test(thousands_of_values_hide_none),
		condition_test(an_expression_beyond_its_limit_fits_not_and_differs_not),
		condition_test(honest_requests_stay_far_below_the_limit),
		condition_test(a_wrong_expression_is_told_with_its_place),
	};

	return cmocka_run_group_tests_name("route/conditions", tests, NULL, NULL);
}
