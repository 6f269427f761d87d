/*
 * What applications read in a query and in cookies, by those who read them: PHP, Perl's CGI.pm and
 * CGI::Cookie, Python's urllib and http.cookies. Whatever spelling one of them takes for a name or
 * a value, weir sees too: it costs what it says, conditions fit, and it is counted as the plain
 * spelling is, or in the bucket of those that nobody can tell. Texts are put together at random out
 * of the pieces that some reader gives a meaning.
 */
#include "../lib/directory.h"
#include "routing.h"

#include <sys/wait.h>
#include <unistd.h>

enum { TEXTS = 3000, TEXT_SIZE = 128, PIECES_MAX = 9 };

static char texts[TEXTS][TEXT_SIZE];
static struct directory directory;
static struct arena arena;
static struct config *config;
static struct routes *routes;
static struct overrides *overrides;

/* Each counts by a name of its own, but the last. */
static const char sections[] =
	"[limit p]\nidentity = param n\non_missing = skip\npolicy = 5/1m\n"
	"[limit c]\nidentity = cookie n\non_missing = skip\npolicy = 5/1m\n"
	"[limit known]\nidentity = param n known, ip\npolicy = 5/1m\n"
	"[override five]\nlimit = known\nfor = param n 5\nblock = yes\n"
	"[route p5]\nmatch = /p\nwhen = param n 5\nlimit = p\ncost = param n max 1000\n"
	"[route p]\nmatch = /p\nwhen = param n\nlimit = known\n"
	"[route c5]\nmatch = /c\nwhen = cookie n 5\nlimit = c\n"
	"[route c]\nmatch = /c\nwhen = cookie n\nlimit = c\n";

enum { LIMIT_PARAM, LIMIT_COOKIE, LIMIT_KNOWN };
enum { ROUTE_PARAM_5, ROUTE_PARAM, ROUTE_COOKIE_5, ROUTE_COOKIE };

static int
setup(void **state)
{
	struct err err;

	directory_make(&directory);
	arena_init(&arena, ARENA_MAX);
	if (hash_start(&err) != 0 || load_setup(state) != 0)
		return -1;
	config = configured(sections);
	routes = routes_of(config);
	overrides = overrides_new(config);
	return overrides == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	overrides_free(overrides);
	routes_free(routes);
	config_free(config);
	arena_release(&arena);
	directory_remove(&directory);
	return load_teardown(state);
}

static void
make_texts(const char *const *pieces, unsigned count)
{
	srand(7);
	for (unsigned i = 0; i < TEXTS; i++) {
		const unsigned n = 2 + (unsigned)rand() % (PIECES_MAX - 1);

		texts[i][0] = '\0';
		for (unsigned j = 0; j < n; j++)
			(void)strcat(texts[i], pieces[(unsigned)rand() % count]);
	}
}

/*
 * Runs a program that reads the texts, a line each, and says for each what is `n` in it: `-` for
 * nothing, or `+` and the value in hexadecimal. For free(); NULL if this system has no such
 * program.
 */
static char *
readings_by(const char *program, const char *script)
{
	FILE *file = fopen(directory_path(&directory, "texts").text, "w");
	char command[256];

	assert_non_null(file);
	for (unsigned i = 0; i < TEXTS; i++)
		(void)fprintf(file, "%s\n", texts[i]);
	assert_int_equal(fclose(file), 0);
	directory_write(&directory, "script", slice_of(script));
	(void)snprintf(command, sizeof command, "cd %s && %s script <texts >said 2>errors",
		directory.path, program);
	const int status = system(command);

	if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
		print_message("%s cannot be asked\n", program);
		return NULL;
	}
	return directory_read(&directory, "said");
}

static struct view
view_with(const char *param, const char *path)
{
	char *const env[] = { arena_printf(&arena, "REQUEST_URI=%s", path),
		arena_printf(&arena, "%s", param), arena_printf(&arena, "REMOTE_ADDR=192.0.2.1"),
		NULL };
	char **kept = arena_alloc(&arena, sizeof env);
	struct view view;

	assert_non_null(kept);
	memcpy(kept, env, sizeof env);
	assert_int_equal(view_of(&view, (const char *const *)kept, &arena), 0);
	return view;
}

/* An empty value is not counted. One that has an escape's %, a quote or what separates values in it
 * is another value to somebody else. */
static bool
has_no_plain_spelling(const char *hex)
{
	static const char *const others[] = { "25", "22", "3b", "2c", "20" };

	for (size_t i = 0; hex[i] != '\n'; i += 2) {
		for (size_t j = 0; j < LENGTH_OF(others); j++) {
			if (strncmp(hex + i, others[j], 2) == 0)
				return true;
		}
	}
	return hex[0] == '\n';
}

static struct slice
bucket_of(const struct view *view, unsigned limit)
{
	struct asker asker;
	struct slice key = { NULL, 0 };

	asker_init(&asker, view, config->routes[0], overrides, NULL);
	assert_true(
		identity_key(&asker, config->limits[limit], &arena, &key) != IDENTITY_NO_MEMORY);
	return key;
}

/* In the plain spelling: every byte as an escape. */
static struct view
view_of_value(const char *variable, const char *hex, const char *path)
{
	char *text = arena_printf(&arena, "%s=n=", variable);
	size_t len = strlen(text);
	char *whole = arena_alloc(&arena, len + strlen(hex) * 2 + 1);

	memcpy(whole, text, len + 1);
	for (size_t i = 0; hex[i] != '\0' && hex[i] != '\n'; i += 2)
		len += (size_t)sprintf(whole + len, "%%%.2s", hex + i);
	return view_with(whole, path);
}

static void
check_param(const char *reader, const char *text, const char *hex)
{
	const struct view view = view_with(arena_printf(&arena, "QUERY_STRING=%s", text), "/p");
	const struct view plain = view_of_value("QUERY_STRING", hex, "/p");
	const struct view unclear = view_with("QUERY_STRING=n=a&n=b", "/p");
	const bool is_5 = strncmp(hex, "35\n", 3) == 0;
	const struct config_cost *cost = &config->routes[ROUTE_PARAM_5]->cost;
	const int route = routes_match(routes, &view);
	const struct slice bucket = bucket_of(&view, LIMIT_PARAM);
	struct asker asker;

	assert_row(route == ROUTE_PARAM_5 || (route == ROUTE_PARAM && !is_5),
		"%s reads n in \"%s\", and route %d fits", reader, text, route);
	assert_row(hex[0] == '\n' || cost_of(cost, &view) >= (is_5 ? 5 : 1),
		"%s reads a larger number in \"%s\"", reader, text);
	assert_row(has_no_plain_spelling(hex) || slice_is(bucket, bucket_of(&plain, LIMIT_PARAM)) ||
			slice_is(bucket, bucket_of(&unclear, LIMIT_PARAM)),
		"%s reads n in \"%s\", which is counted as %.*s", reader, text, (int)bucket.len,
		bucket.ptr);
	asker_init(&asker, &view, config->routes[0], overrides, NULL);
	assert_row(!is_5 || overrides_find(&asker, config->limits[LIMIT_KNOWN]) == 0,
		"%s reads 5 in \"%s\", and it is not blocked", reader, text);
}

static void
check_cookie(const char *reader, const char *text, const char *hex)
{
	const struct view view = view_with(arena_printf(&arena, "HTTP_COOKIE=%s", text), "/c");
	const struct view plain = view_of_value("HTTP_COOKIE", hex, "/c");
	const struct view unclear = view_with("HTTP_COOKIE=%6e=a; n=b", "/c");
	const bool is_5 = strncmp(hex, "35\n", 3) == 0;
	const int route = routes_match(routes, &view);
	const struct slice bucket = bucket_of(&view, LIMIT_COOKIE);

	assert_row(route == ROUTE_COOKIE_5 || (route == ROUTE_COOKIE && !is_5),
		"%s reads n in \"%s\", and route %d fits", reader, text, route);
	assert_row(has_no_plain_spelling(hex) ||
			slice_is(bucket, bucket_of(&plain, LIMIT_COOKIE)) ||
			slice_is(bucket, bucket_of(&unclear, LIMIT_COOKIE)),
		"%s reads n in \"%s\", which is counted as %.*s", reader, text, (int)bucket.len,
		bucket.ptr);
}

/* Returns how many texts had an n. */
static unsigned
check_all(const char *reader, char *said,
	void check(const char *reader, const char *text, const char *hex))
{
	char *line = said;
	unsigned found = 0;

	for (unsigned i = 0; i < TEXTS; i++) {
		assert_row(line[0] == '+' || line[0] == '-', "%s said nothing of \"%s\"", reader,
			texts[i]);
		if (line[0] == '+') {
			arena_release(&arena);
			arena_init(&arena, ARENA_MAX);
			check(reader, texts[i], line + 1);
			found++;
		}
		line = strchr(line, '\n') + 1;
	}
	free(said);
	return found;
}

struct reader {
	const char *program, *script;
};

static void
ask_all(const struct reader *readers, unsigned count,
	void check(const char *reader, const char *text, const char *hex))
{
	unsigned asked = 0;

	for (unsigned i = 0; i < count; i++) {
		char *said = readings_by(readers[i].program, readers[i].script);

		if (said == NULL)
			continue;
		const unsigned found = check_all(readers[i].program, said, check);

		print_message("%s reads an n in %u of %d\n", readers[i].program, found, TEXTS);
		assert_in_range(found, 100, TEXTS);
		asked++;
	}
	if (asked == 0)
		skip();
}

#define SAID_BY_PERL "print defined $v ? '+' . unpack('H*', $v) : '-', \"\\n\";\n}\n"

static void
no_spelling_of_a_parameter_is_overlooked(void **state)
{
	static const char *const pieces[] = { "n", "n", "n=", "n=5", "n=5", "%6e", "%20", "+", "[",
		"]", "[]", "%5B", "%5d", "%00", ".", "_", "&", "&", ";", "=", "=", "5", "%35", "x",
		"%u006e", "%u0035", "N", "%", "n[a]=", "[x]=5", "%26", "%3B" };
	static const struct reader readers[] = {
		{ "php -n",
			"<?php while (($q = fgets(STDIN)) !== false) {\n"
			"parse_str(rtrim($q, \"\\n\"), $o);\n"
			"$v = $o['n'] ?? null;\n"
			"while (is_array($v)) $v = end($v);\n"
			"echo $v === null ? '-' : '+' . bin2hex($v), \"\\n\"; }" },
		{ "perl -MCGI",
			"while (my $q = <STDIN>) { chomp $q;\n"
			"%ENV = (REQUEST_METHOD => 'GET', QUERY_STRING => $q);\n"
			"CGI::initialize_globals();\n"
			"my $v = CGI->new->param('n');\n" SAID_BY_PERL },
		{ "python3",
			"import sys, urllib.parse\n"
			"for q in sys.stdin:\n"
			"    d = dict(urllib.parse.parse_qsl(q.rstrip('\\n'), True,\n"
			"        encoding='latin-1'))\n"
			"    v = d.get('n')\n"
			"    print('-' if v is None else '+' + v.encode('latin-1').hex())\n" },
		/* The first instead of the last. */
		{ "python3 -B",
			"import sys, urllib.parse\n"
			"for q in sys.stdin:\n"
			"    d = urllib.parse.parse_qs(q.rstrip('\\n'), True, encoding='latin-1')\n"
			"    v = d.get('n')\n"
			"    print('-' if v is None else '+' + v[0].encode('latin-1').hex())\n" },
	};

	(void)state;
	make_texts(pieces, LENGTH_OF(pieces));
	ask_all(readers, LENGTH_OF(readers), check_param);
}

static void
no_spelling_of_a_cookie_is_overlooked(void **state)
{
	static const char *const pieces[] = { "n=5", "n=5", "n", "n=", "%6e", "=", "5", "%35",
		"\"5\"", "\"\\065\"", "\"\\5\"", ";", "; ", ";", ",", " ", "x", "a=1", "%u006e",
		"%u0035", "+", "%20", "%" };
	static const struct reader readers[] = {
		{ "perl -MCGI::Cookie",
			"while (my $c = <STDIN>) { chomp $c;\n"
			"my %h = CGI::Cookie->parse($c);\n"
			"my $v = $h{'n'} ? $h{'n'}->value : undef;\n" SAID_BY_PERL },
		{ "python3",
			"import sys, http.cookies\n"
			"for c in sys.stdin:\n"
			"    try: v = http.cookies.SimpleCookie(c.rstrip('\\n')).get('n')\n"
			"    except http.cookies.CookieError: v = None\n"
			"    if v is not None and c.replace(' ', '').count('n=') > 1: v = None\n"
			"    print('-' if v is None else '+' + "
			"v.value.encode('latin-1').hex())\n" },
	};

	(void)state;
	make_texts(pieces, LENGTH_OF(pieces));
	ask_all(readers, LENGTH_OF(readers), check_cookie);
}

/* As PHP 8.2 fills $_COOKIE, which only a server can ask it for. */
static void
cookies_are_read_as_php_does(void **state)
{
	static const struct {
		const char *cookies, *hex;
	} rows[] = {
		{ "n=5", "35\n" },
		{ "n=%35", "35\n" },
		{ "a=1; n[]=5", "35\n" },
		{ "n[x]=5", "35\n" },
		{ "n=K;n[]=5", "35\n" },
		{ "n=a+b", "612b62\n" },
		{ "n=a%2bb+", "612b622b\n" },
		{ "n=5;n=6", "35\n" },
		{ "n", "\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		arena_release(&arena);
		arena_init(&arena, ARENA_MAX);
		check_cookie("PHP", rows[i].cookies, rows[i].hex);
	}
}

/* A client may send very many. */
static void
a_blocked_value_cannot_be_hidden_among_many(void **state)
{
	char *query = malloc(100000), *to = query;

	(void)state;
	assert_non_null(query);
	to += sprintf(to, "n=5");
	for (unsigned i = 0; i < 5000; i++)
		to += sprintf(to, "&n=%u", 10 + i);
	check_param("the first reader", query, "35\n");
	to = query;
	for (unsigned i = 0; i < 5000; i++)
		to += sprintf(to, "n=%u&", 10 + i);
	(void)sprintf(to, "n=5");
	check_param("the last reader", query, "35\n");
	free(query);
}

#define spelling_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		spelling_test(no_spelling_of_a_parameter_is_overlooked),
		spelling_test(no_spelling_of_a_cookie_is_overlooked),
		spelling_test(cookies_are_read_as_php_does),
		spelling_test(a_blocked_value_cannot_be_hidden_among_many),
	};

	return cmocka_run_group_tests_name("route/spellings", tests, NULL, NULL);
}
