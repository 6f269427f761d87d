/* url_path.h: request targets. */
#include "../unit.h"
#include "weir/url_path.h"

#include <stdio.h>

/* The normal form in memory that is just large enough; false if the target is refused. */
static bool
normal(struct slice target, char *out, size_t *len)
{
	const struct slice copy = exact_copy(target);
	char *exact = malloc(target.len + 1);
	struct err err = { "" };

	assert_non_null(exact);
	const int result = url_path_normal(copy, exact, len, &err);

	if (result == 0)
		memcpy(out, exact, *len);
	assert_true((err.text[0] == '\0') == (result == 0));
	exact_free(copy);
	free(exact);
	return result == 0;
}

static void
every_spelling_of_a_path_is_one_path(void **state)
{
	static const char *const rows[][2] = {
		{ "", "/" },
		{ "/", "/" },
		{ "//", "/" },
		{ "?a=b", "/" },
		{ "#x", "/" },
		{ "*", "*" },
		{ "/login", "/login" },
		{ "//login", "/login" },
		{ "/./login", "/login" },
		{ "/x/../login", "/login" },
		{ "/x//..//login", "/login" },
		{ "/%6cogin", "/login" },
		{ "/log%69n", "/login" },
		{ "/log%69n?x=%zz", "/login" },
		{ "/login#x", "/login" },
		{ "/login#x?y", "/login" },
		{ "/login?x#y", "/login" },
		{ "/login/", "/login/" },
		{ "/login/.", "/login/" },
		{ "/login//", "/login/" },
		{ "/login/x/..", "/login/" },
		{ "/login/..", "/" },
		{ "/LOGIN", "/LOGIN" },
		{ "/%256cogin", "/%6cogin" },
		{ "/wp-login.php%2fx", "/wp-login.php/x" },
		{ "/wp-login.php%2Fx", "/wp-login.php/x" },
		{ "/x%2f..%2fwp-login.php", "/wp-login.php" },
		{ "/x/%2e%2e/wp-login.php", "/wp-login.php" },
		{ "/x/%2e./wp-login.php", "/wp-login.php" },
		{ "/x/.%2E/wp-login.php", "/wp-login.php" },
		{ "/%2e/%2e%2e/a", "/a" },
		{ "/a%3fb", "/a?b" },
		{ "/a%23b", "/a#b" },
		{ "/a%20b+c", "/a b+c" },
		{ "/..", "/" },
		{ "/../", "/" },
		{ "/../../../a", "/a" },
		{ "/a/b/../../../../c", "/c" },
		{ "/a/b/../..", "/" },
		{ "/aa/bb/../cc", "/aa/cc" },
		{ "/...", "/..." },
		{ "/..a", "/..a" },
		{ "/a..", "/a.." },
		{ "/.a/", "/.a/" },
		{ "/a./b", "/a./b" },
		{ "/.../..", "/" },
		{ "/a;b/..;/c", "/a;b/..;/c" },
		{ "/\xc3\xa9%c3%a9", "/\xc3\xa9\xc3\xa9" },
		{ "http://other.test/wp-login.php?q=1", "/wp-login.php" },
		{ "HTTP://other.test//wp-login.php", "/wp-login.php" },
		{ "http://user@host:80/../a", "/a" },
		{ "http://[::1]:80/a", "/a" },
		{ "http://host", "/" },
		{ "http://host?q", "/" },
		{ "http://host/", "/" },
		{ "http:///a", "/a" },
		{ "h2+x-1.y://host/a", "/a" },
		{ "/http://host/a", "/http:/host/a" },
		{ "//host/a", "/host/a" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char out[100];
		size_t len;

		assert_row(normal(slice_of(rows[i][0]), out, &len), "%s is refused", rows[i][0]);
		assert_row(slice_is(slice_make(out, len), slice_of(rows[i][1])), "%s gives %.*s",
			rows[i][0], (int)len, out);
	}
}

static void
a_decoded_path_is_folded_where_it_stands(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "/", "/" },
		{ "//", "/" },
		{ "/a/b.php", "/a/b.php" },
		{ "//a///b.php", "/a/b.php" },
		{ "/./a/./b.php", "/a/b.php" },
		{ "/a/.", "/a/" },
		{ "/a/.b/..c/...", "/a/.b/..c/..." },
		{ "/%2e%2e/a%zz", "/%2e%2e/a%zz" },
		{ "a//b", "a/b" },
		{ "*", "*" },
		{ "..", NULL },
		{ "/..", NULL },
		{ "/a.php/../b.php", NULL },
		{ "/a.php//..", NULL },
		{ "../a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice copy = exact_copy(slice_of(rows[i][0]));
		char *const at = (char *)(uintptr_t)copy.ptr;
		size_t len = 0;
		const int result = url_path_fold(copy, at, &len);

		assert_row((result == 0) == (rows[i][1] != NULL), "%s", rows[i][0]);
		if (result == 0)
			assert_slice(slice_make(at, len), slice_of(rows[i][1]));
		exact_free(copy);
	}
}

static void
what_is_no_path_is_refused(void **state)
{
	static const struct slice rows[] = {
		{ "a", 1 },
		{ "login", 5 },
		{ "./login", 7 },
		{ "%2flogin", 8 },
		{ "host:443", 8 },
		{ "http:", 5 },
		{ "http:/host/a", 12 },
		{ "1http://host/a", 14 },
		{ "ht_tp://host/a", 14 },
		{ "://host/a", 9 },
		{ "**", 2 },
		{ "*?a", 3 },
		{ "/%", 2 },
		{ "/%4", 3 },
		{ "/%4g", 4 },
		{ "/%g4", 4 },
		{ "/%%41", 5 },
		{ "/% 41", 5 },
		{ "/%u0041", 7 },
		{ "/a%", 3 },
		{ "/%2?5", 5 },
		{ "/%00", 4 },
		{ "/a%00b", 6 },
		{ "/a\0b", 4 },
		{ "\0", 1 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char out[100];
		size_t len;

		assert_row(!normal(rows[i], out, &len), "%.*s", (int)rows[i].len, rows[i].ptr);
	}
}

static void
every_escape_is_its_byte(void **state)
{
	(void)state;
	for (unsigned c = 1; c < 256; c++) {
		for (unsigned upper = 0; upper <= 1; upper++) {
			char target[16], out[16];
			const char expected[] = { '/', 'a', (char)c, 'a' };
			size_t len;

			(void)snprintf(target, sizeof target, upper ? "/a%%%02Xa" : "/a%%%02xa", c);
			assert_row(normal(slice_of(target), out, &len), "%s", target);
			assert_slice(slice_make(out, len), slice_make(expected, sizeof expected));
		}
	}
}

static void
escape_has_two_hexadecimal_digits(void **state)
{
	static const char digits[] = "0123456789abcdefABCDEF";

	(void)state;
	for (unsigned c = 1; c < 256; c++) {
		const bool is_digit = memchr(digits, (int)c, sizeof digits - 1) != NULL;
		const char first[] = { '/', '%', (char)c, '4' };
		const char second[] = { '/', '%', '4', (char)c };
		char out[8];
		size_t len;

		assert_row(normal(slice_make(first, sizeof first), out, &len) == is_digit,
			"first digit %u", c);
		assert_row(normal(slice_make(second, sizeof second), out, &len) == is_digit,
			"second digit %u", c);
	}
}

/* Escapes what `path` has, so that it is read as written. */
static struct slice
escaped(struct slice path, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < path.len; i++)
		len += (size_t)sprintf(
			out + len, path.ptr[i] == '/' ? "/" : "%%%02x", (unsigned char)path.ptr[i]);
	return slice_make(out, len);
}

/* An empty segment at the end is the trailing slash, and none. */
static bool
has_segment(struct slice path, struct slice segment)
{
	while (path.len > 1) {
		path = slice_skip(path, 1);
		const struct slice part = slice_first(path, slice_find(path, '/'));

		if (slice_is(part, segment))
			return true;
		path = slice_skip(path, part.len);
	}
	return false;
}

/* Whatever is taken is normal: nothing is left to fold or resolve, and doing it again changes
 * nothing. */
static void
check_is_normal(void *context, struct slice target)
{
	char out[1100], again[1100], target_again[3300];
	size_t len, len_again;

	(void)context;
	if (!normal(target, out, &len) || (len == 1 && out[0] == '*'))
		return;
	const struct slice path = slice_make(out, len);

	assert_true(len >= 1 && len <= target.len + 1 && out[0] == '/');
	assert_null(memchr(out, '\0', len));
	assert_false(has_segment(path, SLICE("")));
	assert_false(has_segment(path, SLICE(".")));
	assert_false(has_segment(path, SLICE("..")));
	assert_true(normal(escaped(path, target_again), again, &len_again));
	assert_slice(slice_make(again, len_again), path);
}

static void
any_mutation_of_a_target_is_normal_or_refused(void **state)
{
	static const char *const sound[] = { "http://a:1/b//c/../%2e%2E/d%2f./e?f=%zz#g",
		"/../a/./b/..//%61", "*", "" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), check_is_normal, NULL);
}

static void
random_paths_are_normal_or_refused(void **state)
{
	static const char *const parts[] = { "/", "/", ".", "..", "a", "%2f", "%2e", "%", "?", "#",
		"x:", "*", "%00", "%61" };
	uint64_t random = 9;

	(void)state;
	for (unsigned round = 0; round < 50000; round++) {
		char target[64] = "/";
		size_t len = round % 4 != 0;

		for (size_t n = random_below(&random, 14); n > 0; n--) {
			const char *part = parts[random_below(&random, LENGTH_OF(parts))];

			memcpy(target + len, part, strlen(part));
			len += strlen(part);
		}
		check_is_normal(NULL, slice_make(target, len));
	}
}

/* The same rules, written as a list of segments. */
static size_t
resolved_by_segments(struct slice path, char *out)
{
	struct slice rest = slice_skip(path, 1), part, kept[64];
	size_t count = 0, len = 0;
	bool is_open = true;

	while (slice_split(&rest, '/', &part)) {
		is_open = slice_is(part, SLICE("")) || slice_is(part, SLICE(".")) ||
			slice_is(part, SLICE(".."));
		if (!is_open)
			kept[count++] = part;
		else if (part.len == 2 && count > 0)
			count--;
	}
	for (size_t i = 0; i < count; i++) {
		out[len++] = '/';
		memcpy(out + len, kept[i].ptr, kept[i].len);
		len += kept[i].len;
	}
	if (is_open)
		out[len++] = '/';
	return len;
}

static void
dots_climb_as_in_a_list_of_segments(void **state)
{
	uint64_t random = 10;

	(void)state;
	for (unsigned round = 0; round < 50000; round++) {
		char target[24] = "/", out[24], expected[64];
		const size_t len = 1 + random_below(&random, sizeof target - 1);
		size_t out_len;

		for (size_t i = 1; i < len; i++)
			target[i] = "//..ab"[random_below(&random, 6)];
		assert_true(normal(slice_make(target, len), out, &out_len));
		assert_slice(slice_make(out, out_len),
			slice_make(
				expected, resolved_by_segments(slice_make(target, len), expected)));
	}
}

static void
query_is_between_the_mark_and_the_fragment(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "/a", "" },
		{ "/a?", "" },
		{ "/a?b=c", "b=c" },
		{ "/a?b?c", "b?c" },
		{ "/a?b#c", "b" },
		{ "/a#b?c", "" },
		{ "/a%3fb?c", "c" },
		{ "http://host?a", "a" },
		{ "?", "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_slice(url_query(slice_of(rows[i][0])), slice_of(rows[i][1]));
}

static void
parameter_is_found_under_any_spelling_of_its_name(void **state)
{
	static const struct {
		const char *query, *name, *value; /* value NULL: not there */
	} rows[] = {
		{ "", "n", NULL },
		{ "n", "n", "" },
		{ "n=", "n", "" },
		{ "n=1", "n", "1" },
		{ "n=1&n=2", "n", "1" },
		{ "a=n&n=1", "n", "1" },
		{ "a&b=2&&n=1&", "n", "1" },
		{ "nn=1", "n", NULL },
		{ "n=1", "nn", NULL },
		{ "N=1", "n", NULL },
		{ "%6e=1000", "n", "1000" },
		{ "%6E=1%30", "n", "1%30" },
		{ "a+b=1", "a b", "1" },
		{ "a%20b=1", "a b", "1" },
		{ "a%2bb=1", "a+b", "1" },
		{ "a%=1", "a%", "1" },
		{ "a%zz=1", "a%zz", "1" },
		{ "a%4=1", "a%4", "1" },
		{ "n=a=b", "n", "a=b" },
		{ "=1", "", "1" },
		{ "%20+n=1", "n", "1" },
		{ "n[]=1", "n", "1" },
		{ "n[a][b]=1", "n", "1" },
		{ "n%5b%5d=1", "n", "1" },
		{ "[n]=1", "n", "1" },
		{ "n%00=1", "n", "1" },
		{ "n%00[x=1", "n", "1" },
		{ "%00n=1", "n", NULL },
		{ "n+=1", "n", NULL },
		{ "n+x=1", "n", NULL },
		{ "n.=1", "n_", "1" },
		{ "n[=1", "n_", "1" },
		{ "a.b=1", "a_b", "1" },
		{ "a_b=1", "a.b", "1" },
		{ "a[b=1", "a_b", "1" },
		{ "a-b=1", "a_b", NULL },
		{ "f[x]=1", "f[x]", "1" },
		{ "%u006E=1", "n", "1" },
		{ "%u006=1", "n", NULL },
		{ "%u016e=1", "n", NULL },
		{ "&", "", NULL },
		{ "%3dn=1", "n", NULL },
		{ "x%26n=1", "n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice query = exact_copy(slice_of(rows[i].query));
		struct slice rest = query, value;
		const bool found = url_query_next(
			&rest, URL_QUERY_AMPERSANDS, slice_of(rows[i].name), false, &value);

		assert_row(found == (rows[i].value != NULL), "%s", rows[i].query);
		if (found)
			assert_slice(value, slice_of(rows[i].value));
		exact_free(query);
	}
}

/* All that a parameter has, in a line each. */
static void
every_value_of_a_repeated_parameter_is_found_and_decoded(void **state)
{
	static const struct {
		const char *query, *name;
		bool nocase;
		const char *values;
	} rows[] = {
		{ "n=1&n=2&m=3&n=4", "n", false, "1|2|4|" },
		{ "n&n=&n=x", "n", false, "||x|" },
		{ "n=1&N=2", "n", false, "1|" },
		{ "n=1&N=2", "n", true, "1|2|" },
		{ "%4e=1&%6e=2&n%20=3", "N", true, "1|2|" },
		{ "n=%41%62+c%2Bd", "n", false, "Ab c+d|" },
		{ "n=%zz&n=%4&n=%&n=100%25", "n", false, "%zz|%4|%|100%|" },
		{ "n=%25%34%31", "n", false, "%41|" },
		{ "n=a=b;c", "n", false, "a=b;c|" },
		{ "REQUEST=Get%4dap", "request", true, "GetMap|" },
		{ "", "n", true, "" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct slice rest = slice_of(rows[i].query), value;
		char all[128];
		size_t len = 0;

		while (url_query_next(&rest, URL_QUERY_AMPERSANDS, slice_of(rows[i].name),
			rows[i].nocase, &value)) {
			assert_true(len + value.len < sizeof all);
			len += url_query_decode(value, all + len);
			all[len++] = '|';
		}
		assert_slice(slice_make(all, len), slice_of(rows[i].values));
	}
}

static void
look_for_parameters(void *context, struct slice query)
{
	static const struct slice names[] = { { "n", 1 }, { "", 0 }, { "a b%", 4 } };

	(void)context;
	for (size_t i = 0; i < LENGTH_OF(names); i++) {
		struct slice rest = query, value;
		char *decoded = malloc(query.len + 1);

		assert_non_null(decoded);
		while (url_query_next(&rest,
			i % 2 == 0 ? URL_QUERY_AMPERSANDS : URL_QUERY_SEMICOLONS, names[i],
			i % 2 == 0, &value)) {
			assert_true(value.ptr >= query.ptr &&
				value.ptr + value.len <= query.ptr + query.len);
			assert_in_range(url_query_decode(value, decoded), 0, value.len);
		}
		assert_int_equal(rest.len, 0);
		free(decoded);
	}
	assert_true(url_query(query).len <= query.len);
}

static void
any_mutation_of_a_query_or_file_name_is_survived(void **state)
{
	static const char *const sound[] = { "a%20b%25=1&n=%31&&=", "%", "a=b?c#d",
		"proxy:fcgi://localhost:9000//srv/x.php?a", "proxy:balancer://b/x" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), look_for_parameters, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_of_a_path_is_one_path),
		cmocka_unit_test(a_decoded_path_is_folded_where_it_stands),
		cmocka_unit_test(what_is_no_path_is_refused),
		cmocka_unit_test(every_escape_is_its_byte),
		cmocka_unit_test(escape_has_two_hexadecimal_digits),
		cmocka_unit_test(any_mutation_of_a_target_is_normal_or_refused),
		cmocka_unit_test(random_paths_are_normal_or_refused),
		cmocka_unit_test(dots_climb_as_in_a_list_of_segments),
		cmocka_unit_test(query_is_between_the_mark_and_the_fragment),
		cmocka_unit_test(parameter_is_found_under_any_spelling_of_its_name),
		cmocka_unit_test(every_value_of_a_repeated_parameter_is_found_and_decoded),
		cmocka_unit_test(any_mutation_of_a_query_or_file_name_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
