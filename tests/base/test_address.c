/* address.h: where peers listen, as text. */
#include "../unit.h"
#include "weir/address.h"

#include <stdio.h>

static void
addresses_are_taken_apart(void **state)
{
	static const struct {
		const char *text;
		enum address_kind kind;
		const char *host;
		unsigned port;
	} rows[] = {
		{ "unix:/run/weir/weir.sock", ADDRESS_UNIX, "/run/weir/weir.sock", 0 },
		{ "unix:/a:b", ADDRESS_UNIX, "/a:b", 0 },
		{ "tcp:127.0.0.1:9000", ADDRESS_TCP, "127.0.0.1", 9000 },
		{ "tcp:php.example.org:1", ADDRESS_TCP, "php.example.org", 1 },
		{ "tcp:[::1]:65535", ADDRESS_TCP, "::1", 65535 },
		{ "tls:redis.example.org:6380", ADDRESS_TLS, "redis.example.org", 6380 },
		{ "tls:[2001:db8::1]:6380", ADDRESS_TLS, "2001:db8::1", 6380 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct address address;
		struct err err;
		char text[ADDRESS_TEXT_SIZE];

		assert_row(address_parse(slice_of(rows[i].text), &address, &err) == 0, "%s: %s",
			rows[i].text, err.text);
		assert_int_equal(address.kind, rows[i].kind);
		assert_string_equal(address.host, rows[i].host);
		assert_int_equal(address.port, rows[i].port);
		assert_string_equal(address_text(&address, text), rows[i].text);
	}
}

static void
wrong_addresses_are_refused_with_what_would_be_right(void **state)
{
	static const struct {
		struct slice text;
		const char *says;
	} rows[] = {
		{ { "", 0 }, "write unix:/path or tcp:host:port" },
		{ { "/run/x.sock", 11 }, "unix:/path" },
		{ { "127.0.0.1:9000", 14 }, "tcp:host:port" },
		{ { "udp:127.0.0.1:9000", 18 }, "tcp:host:port" },
		{ { "TCP:127.0.0.1:9000", 18 }, "tcp:host:port" },
		{ { "unix:", 5 }, "absolute" },
		{ { "unix:run/x.sock", 15 }, "absolute path; write unix:/directory/run/x.sock" },
		{ { "unix:/a\0b", 9 }, "NUL" },
		{ { "tcp:", 4 }, "port" },
		{ { "tcp:host", 8 }, "port" },
		{ { "tcp:host:", 9 }, "port" },
		{ { "tcp:host:0", 10 }, "port" },
		{ { "tcp:host:65536", 14 }, "port" },
		{ { "tcp:host:http", 13 }, "port" },
		{ { "tcp:host:-1", 11 }, "port" },
		{ { "tcp::9000", 9 }, "host is missing" },
		{ { "tcp:[]:9000", 11 }, "host is missing" },
		{ { "tcp:::1:9000", 12 }, "[::1]" },
		{ { "tcp:[::1:9000", 13 }, "brackets" },
		{ { "tcp:[::1]", 9 }, "port" },
		{ { "tcp:a\0b:9000", 12 }, "NUL" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct address address = { .port = 42 };
		struct err err = { "" };
		const struct slice text = exact_copy(rows[i].text);

		assert_row(address_parse(text, &address, &err) != 0, "%s", rows[i].text.ptr);
		assert_row(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
		assert_int_equal(address.port, 42);
		exact_free(text);
	}
}

static void
host_lengths_are_kept_to_the_byte(void **state)
{
	static const struct {
		const char *before, *behind;
		size_t longest;
	} rows[] = {
		{ "unix:/", "", 106 },
		{ "tcp:", ":1", 255 },
		{ "tls:[", "]:65535", 255 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		for (size_t over = 0; over <= 1; over++) {
			char host[300], text[400], back[ADDRESS_TEXT_SIZE];
			struct address address;
			struct err err;

			memset(host, ':', sizeof host);
			if (rows[i].before[strlen(rows[i].before) - 1] != '[')
				memset(host, 'h', sizeof host);
			host[rows[i].longest + over] = '\0';
			(void)snprintf(
				text, sizeof text, "%s%s%s", rows[i].before, host, rows[i].behind);
			const int result = address_parse(slice_of(text), &address, &err);

			assert_row((result == 0) == (over == 0), "%s", text);
			if (over == 0)
				assert_string_equal(address_text(&address, back), text);
			else
				assert_non_null(strstr(err.text, "longer than"));
		}
	}
}

static void
every_port_survives_text(void **state)
{
	(void)state;
	for (unsigned port = 1; port <= UINT16_MAX; port += port < 300 ? 1 : 251) {
		const struct address address = { ADDRESS_TCP, "h", (uint16_t)port };
		struct address back;
		struct err err;
		char text[ADDRESS_TEXT_SIZE];

		assert_int_equal(
			address_parse(slice_of(address_text(&address, text)), &back, &err), 0);
		assert_true(address_is(&address, &back));
	}
}

static void
parse_and_write_back(void *context, struct slice text)
{
	struct address address, again;
	struct err err;
	char back[ADDRESS_TEXT_SIZE];

	(void)context;
	if (address_parse(text, &address, &err) != 0)
		return;
	assert_int_equal(address_parse(slice_of(address_text(&address, back)), &again, &err), 0);
	assert_row(address_is(&address, &again), "%.*s", (int)text.len, text.ptr);
}

static void
what_any_mutation_gives_survives_text(void **state)
{
	static const char *const sound[] = { "unix:/run/weir.sock", "tcp:127.0.0.1:9000",
		"tls:[2001:db8::1]:443" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), parse_and_write_back, NULL);
}

static void
addresses_differ_in_kind_host_or_port(void **state)
{
	const struct address a = { ADDRESS_TCP, "host", 1 };
	const struct address others[] = { { ADDRESS_TLS, "host", 1 }, { ADDRESS_TCP, "hosts", 1 },
		{ ADDRESS_TCP, "host", 2 } };
	/* What stands behind the terminator does not count. */
	struct address same = { ADDRESS_TCP, "hostess", 1 };

	(void)state;
	same.host[4] = '\0';
	assert_true(address_is(&a, &same));
	for (size_t i = 0; i < LENGTH_OF(others); i++)
		assert_false(address_is(&a, &others[i]));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_apart),
		cmocka_unit_test(wrong_addresses_are_refused_with_what_would_be_right),
		cmocka_unit_test(host_lengths_are_kept_to_the_byte),
		cmocka_unit_test(every_port_survives_text),
		cmocka_unit_test(what_any_mutation_gives_survives_text),
		cmocka_unit_test(addresses_differ_in_kind_host_or_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
