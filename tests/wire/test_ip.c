/* ip.h: addresses, decided on their bits. */
#include "../unit.h"
#include "weir/ip.h"

#include <stdio.h>

static struct ip
ip_of(const char *text)
{
	const struct slice exact = exact_copy(slice_of(text));
	struct ip ip = { 0 };

	assert_row(ip_parse(exact, &ip) == 0, "%s is refused", text);
	exact_free(exact);
	return ip;
}

static void
addresses_are_taken_as_servers_and_proxies_write_them(void **state)
{
	static const char *const rows[][2] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "255.255.255.255", "255.255.255.255" },
		{ " 192.0.2.1\t", "192.0.2.1" },
		{ "192.0.2.1:80", "192.0.2.1" },
		{ "192.0.2.1:0", "192.0.2.1" },
		{ "192.0.2.1:65535", "192.0.2.1" },
		{ "::", "::" },
		{ "::1", "::1" },
		{ "2001:db8::1", "2001:db8::1" },
		{ "2001:DB8:0:0:0:0:0:1", "2001:db8::1" },
		{ "2001:0db8:0000:0000:0000:0000:0000:0001", "2001:db8::1" },
		{ "[2001:db8::1]", "2001:db8::1" },
		{ "[2001:db8::1]:443", "2001:db8::1" },
		{ " [2001:db8::1]:443 ", "2001:db8::1" },
		{ "[192.0.2.1]:80", "192.0.2.1" },
		{ "fe80::1%eth0", "fe80::1" },
		{ "fe80::1%25eth0", "fe80::1" },
		{ "[fe80::1%eth0.5]:80", "fe80::1" },
		{ "2001:db8:1:2:3:4:5:6", "2001:db8:1:2:3:4:5:6" },
		{ "2001:db8::1:0:0:1", "2001:db8::1:0:0:1" },
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		{ "1:0:0:2:0:0:0:3", "1:0:0:2::3" },
		{ "1:0:0:2:3:0:0:4", "1::2:3:0:0:4" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		char text[IP_TEXT_SIZE];

		assert_row(strcmp(ip_text(ip_of(rows[i][0]), text), rows[i][1]) == 0, "%s gives %s",
			rows[i][0], text);
	}
}

static void
what_is_no_address_is_refused(void **state)
{
	static const struct slice rows[] = {
		{ "", 0 },
		{ " ", 1 },
		{ "unix:", 5 },
		{ "unix:/run/x", 11 },
		{ "unknown", 7 },
		{ "localhost", 9 },
		{ "example.org:80", 14 },
		{ "1", 1 },
		{ "1.2.3", 5 },
		{ "1.2.3.4.5", 9 },
		{ "1.2.3.256", 9 },
		{ "1.2.3.-4", 8 },
		{ "01.2.3.4", 8 },
		{ "1.2.3.04", 8 },
		{ "0x7f.0.0.1", 10 },
		{ "2130706433", 10 },
		{ "1.2.3.4 5", 9 },
		{ "1. 2.3.4", 8 },
		{ "1.2.3.4/32", 10 },
		{ "1.2.3.4,5.6.7.8", 15 },
		{ "1.2.3.4:", 8 },
		{ "1.2.3.4:65536", 13 },
		{ "1.2.3.4:-1", 10 },
		{ "1.2.3.4:http", 12 },
		{ "1.2.3.4:80:80", 13 },
		{ "1.2.3.4%eth0", 12 },
		{ "1.2.3.4\0", 8 },
		{ "1.2.3.4\0x", 9 },
		{ "1.2.3.4\n", 8 },
		{ "::\0", 3 },
		{ ":", 1 },
		{ ":::", 3 },
		{ "1::2::3", 7 },
		{ "12345::", 7 },
		{ "1:2:3:4:5:6:7", 13 },
		{ "1:2:3:4:5:6:7:8:9", 17 },
		{ "::g", 3 },
		{ "::1.2.3", 7 },
		{ "::1.2.3.256", 11 },
		{ "fe80::1%", 8 },
		{ "fe80::1%e 0", 11 },
		{ "fe80::1%e\0", 10 },
		{ "%eth0", 5 },
		{ "[", 1 },
		{ "]", 1 },
		{ "[]", 2 },
		{ "[]:80", 5 },
		{ "[::1", 4 },
		{ "::1]", 4 },
		{ "[::1]80", 7 },
		{ "[::1]:", 6 },
		{ "[::1]:65536", 11 },
		{ "[::1]:80x", 9 },
		{ "[[::1]]", 7 },
		{ "[::1:80", 7 },
		{ "[1.2.3.4%eth0]", 14 },
		{ "[1.2.3.4:80]", 12 },
		{ "2001:0db8:0000:0000:0000:0000:0000:0001:80", 42 },
		{ "0000:0000:0000:0000:0000:ffff:192.168.100.1000", 46 },
		{ "00000000000000000000000000000000000000000000000000::1", 53 },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice exact = exact_copy(rows[i]);
		struct ip ip = { .family = 42 };

		assert_row(ip_parse(exact, &ip) != 0, "%.*s", (int)rows[i].len, rows[i].ptr);
		assert_int_equal(ip.family, 42);
		exact_free(exact);
	}
}

static void
wrapped_ipv4_address_is_the_ipv4_address(void **state)
{
	static const char *const same[] = { "192.0.2.1", "::ffff:192.0.2.1", "::FFFF:c000:201",
		"0:0:0:0:0:ffff:c000:0201", "0000:0000:0000:0000:0000:ffff:192.0.2.1",
		"[::ffff:192.0.2.1]:80", "64:ff9b::192.0.2.1", "64:ff9b::c000:201",
		"0064:ff9b:0:0:0:0:c000:201" };
	static const char *const others[] = { "2001:db8:1234:5678::192.0.2.1", "::192.0.2.1",
		"::fffe:192.0.2.1", "1::ffff:192.0.2.1", "64:ff9b:1::192.0.2.1",
		"64:ff9a::192.0.2.1", "64:ff9b::1:c000:201", "::ffff:0:192.0.2.1" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(same); i++)
		assert_row(ip_is(ip_of(same[i]), ip_of(same[0])), "%s", same[i]);
	for (size_t i = 0; i < LENGTH_OF(others); i++) {
		assert_row(ip_of(others[i]).family == 6, "%s", others[i]);
		assert_false(ip_is(ip_of(others[i]), ip_of(same[0])));
	}
}

static struct ip
random_ip(uint64_t *random)
{
	struct ip ip = { .family = random_below(random, 2) == 0 ? 4 : 6 };

	for (size_t i = 0; i < (ip.family == 4 ? 4 : 16); i++)
		ip.bytes[i] = random_below(random, 2) == 0 ? 0 : (uint8_t)random_next(random);
	/* So that it is none that is unwrapped. */
	ip.bytes[0] |= ip.family == 6 ? 0x20 : 0;
	return ip;
}

static void
random_addresses_survive_text(void **state)
{
	uint64_t random = 11;

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		const struct ip ip = random_ip(&random);
		char text[IP_TEXT_SIZE], around[80];

		assert_true(ip_is(ip_of(ip_text(ip, text)), ip));
		(void)snprintf(around, sizeof around, " [%s]:%u", text, round % 65536);
		assert_true(ip_is(ip_of(around), ip));
	}
}

static bool
bit_of(struct ip ip, unsigned bit)
{
	return (ip.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void
mask_keeps_the_first_bits_and_no_others(void **state)
{
	uint64_t random = 12;

	(void)state;
	for (unsigned bits = 0; bits <= 130; bits++) {
		for (unsigned round = 0; round < 20; round++) {
			const struct ip ip = random_ip(&random);
			const struct ip masked = ip_masked(ip, bits);

			assert_int_equal(masked.family, ip.family);
			for (unsigned bit = 0; bit < 128; bit++)
				assert_int_equal(
					bit_of(masked, bit), bit < bits && bit_of(ip, bit));
		}
	}
	const struct ip ip = ip_of("192.0.2.255");

	assert_true(ip_is(ip_masked(ip, 33), ip));
	assert_true(ip_is(ip_masked(ip, UINT32_MAX), ip));
}

/* The identity of an IPv6 client: who moves within a /64 is one. */
static void
one_64_is_one_bucket(void **state)
{
	const struct ip bucket = ip_masked(ip_of("2001:db8:1:2::1"), 64);

	(void)state;
	for (unsigned host = 0; host < 65536; host += 13) {
		char text[IP_TEXT_SIZE];

		(void)snprintf(text, sizeof text, "2001:DB8:1:2:%x::%x", host, host);
		assert_true(ip_is(ip_masked(ip_of(text), 64), bucket));
	}
	assert_false(ip_is(ip_masked(ip_of("2001:db8:1:3::1"), 64), bucket));
	assert_false(ip_is(
		ip_masked(ip_of("::ffff:1.2.3.4"), 32), ip_masked(ip_of("::ffff:1.2.3.5"), 32)));
}

static void
networks_hold_what_is_between_their_borders(void **state)
{
	static const struct {
		const char *net;
		const char *in[3], *out[3];
	} rows[] = {
		{ "192.0.2.0/24", { "192.0.2.0", "192.0.2.255", "::ffff:192.0.2.7" },
			{ "192.0.1.255", "192.0.3.0", "2001:db8::" } },
		{ "192.0.2.128/25", { "192.0.2.128", "192.0.2.255", "192.0.2.200" },
			{ "192.0.2.127", "192.0.3.128", "0.0.0.0" } },
		{ "192.0.2.1", { "192.0.2.1", "64:ff9b::192.0.2.1", "::ffff:192.0.2.1" },
			{ "192.0.2.0", "192.0.2.2", "::1" } },
		{ "192.0.2.1/32", { "192.0.2.1", "192.0.2.1", "192.0.2.1:80" },
			{ "192.0.2.0", "192.0.2.2", "::1" } },
		{ "::ffff:192.0.2.1", { "192.0.2.1", "192.0.2.1", "192.0.2.1" },
			{ "192.0.2.0", "192.0.2.2", "::1" } },
		{ "0.0.0.0/0", { "0.0.0.0", "255.255.255.255", "127.0.0.1" },
			{ "::", "::1", "2001:db8::" } },
		{ "2001:db8::/32", { "2001:db8::", "2001:db8:ffff::", "2001:db8::1%eth0" },
			{ "2001:db7:ffff::", "2001:db9::", "192.0.2.1" } },
		{ "2001:db8::/33", { "2001:db8::", "2001:db8:7fff::", "2001:db8::1" },
			{ "2001:db8:8000::", "2001:db9::", "192.0.2.1" } },
		{ "2001:db8::1/128", { "2001:db8::1", "2001:db8::1", "2001:db8::1" },
			{ "2001:db8::", "2001:db8::2", "192.0.2.1" } },
		{ "::/0", { "::", "2001:db8::", "ffff::" },
			{ "0.0.0.0", "192.0.2.1", "::ffff:1.2.3.4" } },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		struct ip_net net;
		struct err err;

		assert_row(ip_net_parse(slice_of(rows[i].net), &net, &err) == 0, "%s", err.text);
		for (size_t j = 0; j < 3; j++) {
			assert_row(ip_net_has(&net, ip_of(rows[i].in[j])), "%s in %s",
				rows[i].in[j], rows[i].net);
			assert_row(!ip_net_has(&net, ip_of(rows[i].out[j])), "%s out of %s",
				rows[i].out[j], rows[i].net);
		}
	}
}

static void
wrong_networks_are_refused_with_what_would_be_right(void **state)
{
	static const struct {
		struct slice text;
		const char *says;
	} rows[] = {
		{ { "", 0 }, "no network" },
		{ { "/", 1 }, "no network" },
		{ { "/24", 3 }, "no network" },
		{ { "example.org", 11 }, "no network" },
		{ { "192.0.2/24", 10 }, "no network" },
		{ { "192.0.2.0:80/24", 15 }, "no network" },
		{ { "[2001:db8::]/32", 15 }, "no network" },
		{ { "fe80::%eth0/64", 14 }, "no network" },
		{ { " 192.0.2.0/24", 13 }, "no network" },
		{ { "192.0.2.0\0/24", 13 }, "no network" },
		{ { "192.0.2.0/", 10 }, "0 to 32 bits" },
		{ { "192.0.2.0/33", 12 }, "0 to 32 bits" },
		{ { "192.0.2.0/-1", 12 }, "0 to 32 bits" },
		{ { "192.0.2.0/24/24", 15 }, "0 to 32 bits" },
		{ { "192.0.2.0/255.255.255.0", 23 }, "0 to 32 bits" },
		{ { "192.0.2.0/4294967320", 20 }, "0 to 32 bits" },
		{ { "2001:db8::/129", 14 }, "0 to 128 bits" },
		{ { "192.0.2.1/24", 12 }, "write 192.0.2.0/24" },
		{ { "192.0.2.128/24", 14 }, "write 192.0.2.0/24" },
		{ { "128.0.0.0/0", 11 }, "write 0.0.0.0/0" },
		{ { "2001:db8::1/64", 14 }, "write 2001:db8::/64" },
		{ { "::ffff:192.0.2.0/120", 20 }, "write 192.0.2.0/BITS" },
		{ { "::ffff:0.0.0.0/96", 17 }, "IPv4 network in IPv6 form" },
		{ { "64:ff9b::/96", 12 }, "IPv4 network in IPv6 form" },
	};

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(rows); i++) {
		const struct slice exact = exact_copy(rows[i].text);
		struct ip_net net = { .bits = 42 };
		struct err err = { "" };

		assert_row(ip_net_parse(exact, &net, &err) != 0, "%s", rows[i].text.ptr);
		assert_row(strstr(err.text, rows[i].says) != NULL, "%s", err.text);
		assert_int_equal(net.bits, 42);
		exact_free(exact);
	}
}

static void
every_prefix_holds_its_first_and_last_address(void **state)
{
	uint64_t random = 13;

	(void)state;
	for (unsigned bits = 1; bits <= 128; bits++) {
		for (unsigned round = 0; round < 10; round++) {
			struct ip first = random_ip(&random), last;
			const unsigned all = first.family == 4 ? 32 : 128;
			char text[IP_TEXT_SIZE], with_bits[IP_TEXT_SIZE + 4];
			struct ip_net net;
			struct err err;

			if (bits > all)
				continue;
			first = last = ip_masked(first, bits);
			for (unsigned bit = bits; bit < all; bit++)
				last.bytes[bit / 8] |= (uint8_t)(1 << (7 - bit % 8));
			(void)snprintf(
				with_bits, sizeof with_bits, "%s/%u", ip_text(first, text), bits);
			assert_row(
				ip_net_parse(slice_of(with_bits), &net, &err) == 0, "%s", err.text);
			assert_true(ip_net_has(&net, first) && ip_net_has(&net, last));
			/* With the last bit of the prefix turned it is another network's. */
			last.bytes[(bits - 1) / 8] ^= (uint8_t)(1 << (7 - (bits - 1) % 8));
			assert_false(ip_net_has(&net, last));
		}
	}
}

static void
parse_both(void *context, struct slice text)
{
	struct ip ip, again;
	struct ip_net net;
	struct err err;
	char out[IP_TEXT_SIZE];

	(void)context;
	if (ip_parse(text, &ip) == 0) {
		assert_true(ip.family == 4 || ip.family == 6);
		assert_int_equal(ip_parse(slice_of(ip_text(ip, out)), &again), 0);
		assert_true(ip_is(ip, again));
	}
	if (ip_net_parse(text, &net, &err) == 0)
		assert_true(ip_is(net.ip, ip_masked(net.ip, net.bits)));
}

static void
any_mutation_is_an_address_or_refused(void **state)
{
	static const char *const sound[] = { "192.0.2.1:80", "[2001:db8::1%eth0]:443",
		"0000:0000:0000:0000:0000:ffff:192.168.100.100", "192.0.2.0/24", "64:ff9b::1.2.3.4",
		"2001:db8::/32" };

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(sound); i++)
		each_mutation(slice_of(sound[i]), parse_both, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_taken_as_servers_and_proxies_write_them),
		cmocka_unit_test(what_is_no_address_is_refused),
		cmocka_unit_test(wrapped_ipv4_address_is_the_ipv4_address),
		cmocka_unit_test(random_addresses_survive_text),
		cmocka_unit_test(mask_keeps_the_first_bits_and_no_others),
		cmocka_unit_test(one_64_is_one_bucket),
		cmocka_unit_test(networks_hold_what_is_between_their_borders),
		cmocka_unit_test(wrong_networks_are_refused_with_what_would_be_right),
		cmocka_unit_test(every_prefix_holds_its_first_and_last_address),
		cmocka_unit_test(any_mutation_is_an_address_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
