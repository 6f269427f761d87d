/*
 * Lists of any key: each item that is wrong is told, at its line, and what is said of an item that
 * is right has the line too.
 */
#include "compose.h"

static unsigned
count_of(const char *said, const char *text)
{
	unsigned count = 0;

	for (const char *at = said; (at = strstr(at, text)) != NULL; at += strlen(text))
		count++;
	return count;
}

/* Two items that are wrong, one that is right in between, and what tells of each of the two. */
static void
every_wrong_item_is_told(void **state)
{
	static const struct {
		const char *section, *key, *value, *first, *second;
	} rows[] = {
		{ "weir", "trusted_proxies", "bogus, 192.0.2.1, bogus2", "\"bogus\"",
			"\"bogus2\"" },
		{ "route", "exempt_ip", "bogus, 192.0.2.1, bogus2", "\"bogus\"", "\"bogus2\"" },
		{ "route", "when", "ip bogus, 192.0.2.1, 1.2.3.4/33", "\"bogus\"",
			"\"1.2.3.4/33\"" },
		{ "override", "for", "ip bogus, 192.0.2.1, bogus2", "\"bogus\"", "\"bogus2\"" },
		{ "override", "for", "user a b, c, d e", "\"a b\"", "\"d e\"" },
		{ "override", "for", "user a b, @/none/such, d e", "\"a b\"", "\"d e\"" },
		{ "override", "for", "user @/none/a, c, @/none/b", "/none/a cannot",
			"/none/b cannot" },
		{ "route", "exempt_ip", "@/none/a, 192.0.2.1, bogus", "/none/a cannot",
			"\"bogus\"" },
		{ "route", "limit", "one, l, two", "[limit one]", "[limit two]" },
		{ "route", "host", "a..b, example.org, *", "\"a..b\"", "\"*\"" },
		{ "route", "headers", "bogus, x-ratelimit, else", "\"bogus\"", "\"else\"" },
		{ "limit", "identity", "bogus, user, ip/0/0", "\"bogus\"", "\"ip/0/0\"" },
		{ "redis", "sentinel", "tcp:x, tcp:h:1, unix:/x", "\"x\"", "\"unix:/x\"" },
		{ "redis", "cluster", "tcp:x, tcp:h:1, unix:/x", "\"x\"", "\"unix:/x\"" },
	};
	char ini[2 * PATH_MAX], place[100];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		compose(ini, sizeof ini, rows[i].section, rows[i].key, rows[i].value);
		char *said = said_of(ini, NULL);

		(void)snprintf(place, sizeof place, "weir.ini:2: [");
		assert_row(
			count_of(said, "\n") >= 2 && count_of(said, place) == count_of(said, "\n"),
			"of %s, not all at line 2:\n%s", rows[i].value, said);
		assert_row(
			strstr(said, rows[i].first) != NULL && strstr(said, rows[i].second) != NULL,
			"of %s was said only:\n%s", rows[i].value, said);
		free(said);
	}
}

static void
a_warning_of_one_item_has_the_line_of_another_that_is_refused(void **state)
{
	static const struct {
		const char *ini, *said;
	} rows[] = {
		{ "[weir]\nmax_params = 500\ntrusted_proxies = 10.0.0.0/8, bogus, bogus2\n",
			"weir.ini:3: [weir] trusted_proxies: \"bogus\" is no network; write "
			"192.0.2.0/24, 2001:db8::/32 or an address\n"
			"weir.ini:3: [weir] trusted_proxies: \"bogus2\" is no network; write "
			"192.0.2.0/24, 2001:db8::/32 or an address\n"
			"weir.ini:3: [weir] trusted_proxies: warning: 10.0.0.0/8 is wide: each "
			"host in it can claim to be any client; name the proxies one by one\n" },
		{ "[limit a]\npolicy = 5/1m\n[route a]\nmatch = /a\nlimit = a\n"
		  "exempt_ip = 10.0.0.0/8, bogus\n",
			"weir.ini:6: [route a] exempt_ip: \"bogus\" is no network; write "
			"192.0.2.0/24, 2001:db8::/32 or an address\n"
			"weir.ini:6: [route a] exempt_ip: warning: 10.0.0.0/8 holds all of the "
			"private network 10.0.0.0/8: whoever is in it, or is seen by the address "
			"of a proxy in it, is not counted; name single addresses\n" },
		{ "[limit a]\npolicy = 5/1m\nidentity = bogus, all\n",
			"weir.ini:3: [limit a] identity: \"bogus\" is none of ip, user, header, "
			"cookie, param, env, host, path, backend, route, all\n"
			"weir.ini:3: [limit a] identity: warning: all: one bucket for all clients, "
			"so one of them can use up everybody's\n" },
		/* what the defaults of the kind say is not looked at any more */
		{ "[limit]\nidentity = bogus, all\n[limit a]\npolicy = 5/1m\n",
			"weir.ini:2: [limit] identity: \"bogus\" is none of ip, user, header, "
			"cookie, param, env, host, path, backend, route, all\n" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char *whole = NULL;

		assert_true(asprintf(&whole,
				    "%s\n[backend rest]\nserver = unix:/run/rest.sock\n[route "
				    "rest]\nmatch = *\n",
				    rows[i].ini) > 0);
		char *said = said_of(whole, NULL);
		const char *at = rows[i].said;

		/* In one line's order errors and warnings may stand as they were found. */
		for (size_t len; *at != '\0'; at += len) {
			char line[512];

			len = strcspn(at, "\n") + 1;
			(void)snprintf(line, sizeof line, "%.*s", (int)len, at);
			assert_row(strstr(said, line) != NULL, "%s\nnot said:\n%s\nbut:\n%s", whole,
				line, said);
		}
		assert_int_equal(count_of(said, "\n"), count_of(rows[i].said, "\n"));
		free(said);
		free(whole);
	}
}

/* The comment of weir.ini is none in such a file: of a value it would be a part, unseen. */
static void
a_semicolon_in_a_file_is_told(void **state)
{
#define SEMICOLON                                                                                  \
	": [override o] for: warning: \";\" begins no comment in such a file, so what is behind "  \
	"it belongs to the value; write #\n"
	char ini[2 * PATH_MAX], said[4 * PATH_MAX];

	(void)state;
	write_file("keys", SLICE("a;b\nkey # x ; y\nkey-1 ; customer\n;key\n\tx\t;y\nlast\n"));
	assert_int_equal(chmod("keys", 0600), 0);
	compose(ini, sizeof ini, "override", "for", "user @DIR/keys");
	(void)snprintf(said, sizeof said,
		"%s/keys:3" SEMICOLON "%s/keys:4" SEMICOLON "%s/keys:5" SEMICOLON, load_directory,
		load_directory, load_directory);
	char *told = said_of(ini, NULL), *at = strstr(told, load_directory);

	assert_row(at != NULL && strncmp(at, said, strlen(said)) == 0, "%s", told);
	assert_null(strstr(told, "customer"));
	free(told);
	write_file("nets", SLICE("192.0.2.0/24 ; office\n"));
	compose(ini, sizeof ini, "override", "for", "ip @DIR/nets");
	told = said_of(ini, NULL);
	assert_row(strstr(told, "nets:1: [override o] for: \"192.0.2.0/24 ; office\"") != NULL &&
			strstr(told, "; a comment begins with # in such a file\n") != NULL,
		"%s", told);
	free(told);
}

static void
many_semicolons_are_counted(void **state)
{
	FILE *file = fopen("keys", "w");
	char ini[2 * PATH_MAX];

	(void)state;
	assert_non_null(file);
	for (unsigned i = 0; i < 50000; i++)
		(void)fprintf(file, "key-%u ; x\n", i);
	assert_int_equal(fclose(file), 0);
	compose(ini, sizeof ini, "override", "for", "user @DIR/keys");
	char *said = said_of(ini, NULL);

	assert_int_equal(count_of(said, "begins no comment"), 10);
	assert_row(strstr(said, "keys:50000: [override o] for: warning: 49990 more lines have a") !=
			NULL,
		"%s", said);
	free(said);
}

static void
a_file_without_items_names_nobody(void **state)
{
	static const struct {
		const char *section, *key, *value;
	} rows[] = {
		{ "override", "for", "user @DIR/none" },
		{ "override", "for", "ip 192.0.2.1, @DIR/none" },
		{ "route", "exempt_ip", "@DIR/none" },
		{ "route", "when", "ip @DIR/none" },
		{ "weir", "trusted_proxies", "192.0.2.1, @DIR/none" },
	};
	static const char *const empty[] = { "", "\n", "# nobody\n \n" };
	char ini[2 * PATH_MAX];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows) * LENGTH_OF(empty); i++) {
		const size_t row = i / LENGTH_OF(empty);

		write_file("none", slice_of(empty[i % LENGTH_OF(empty)]));
		compose(ini, sizeof ini, rows[row].section, rows[row].key, rows[row].value);
		char *said = said_of(ini, NULL);

		assert_row(strstr(said, "/none holds no item, so it names nobody\n") != NULL,
			"%s\n%s", ini, said);
		free(said);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_wrong_item_is_told),
		cmocka_unit_test(a_warning_of_one_item_has_the_line_of_another_that_is_refused),
		cmocka_unit_test(a_semicolon_in_a_file_is_told),
		cmocka_unit_test(many_semicolons_are_counted),
		cmocka_unit_test(a_file_without_items_names_nobody),
	};

	return cmocka_run_group_tests(tests, load_setup, load_teardown);
}
