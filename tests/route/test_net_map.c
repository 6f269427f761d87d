/* Maps of networks, held against a list that is gone through. */
#include "../../src/route/net_map.h"
#include "../unit.h"

#include <stdio.h>

enum { MANY = 300 };

static struct ip_net
net_of(const char *text)
{
	struct ip_net net = { .bits = 0 };
	struct err err;

	assert_row(ip_net_parse(slice_of(text), &net, &err) == 0, "%s: %s", text, err.text);
	return net;
}

static struct ip
ip_of(const char *text)
{
	struct ip ip = { 0 };

	assert_row(ip_parse(slice_of(text), &ip) == 0, "%s", text);
	return ip;
}

static int64_t
find_slowly(const struct net_map_item *items, size_t count, struct ip ip)
{
	int64_t found = NET_MAP_NONE;

	for (size_t i = 0; i < count; i++) {
		if (ip_net_has(&items[i].net, ip) &&
			(found == NET_MAP_NONE || items[i].value < found))
			found = items[i].value;
	}
	return found;
}

static void
the_smallest_value_counts_however_networks_lie(void **state)
{
	static const struct {
		const char *net;
		uint32_t value;
	} nets[] = { { "10.0.0.0/8", 5 }, { "10.1.0.0/16", 3 }, { "10.1.2.0/24", 7 },
		{ "10.1.2.3", 1 }, { "10.1.3.0/24", 2 }, { "0.0.0.0/1", 9 },
		{ "255.255.255.255", 4 }, { "10.1.2.3", 0 }, { "::/0", 8 }, { "2001:db8::/32", 6 },
		{ "2001:db8::/48", 9 }, { "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 3 },
		{ "2001:db8:1:2:8000::/65", 2 } };
	static const struct {
		const char *ip;
		int64_t value;
	} rows[] = { { "10.1.2.3", 0 }, { "10.1.2.2", 3 }, { "10.1.2.4", 3 }, { "10.1.3.255", 2 },
		{ "10.1.4.0", 3 }, { "10.2.0.0", 5 }, { "10.255.255.255", 5 }, { "11.0.0.0", 9 },
		{ "127.255.255.255", 9 }, { "128.0.0.0", -1 }, { "255.255.255.254", -1 },
		{ "255.255.255.255", 4 }, { "0.0.0.0", 9 }, { "::", 8 }, { "2001:db8::1", 6 },
		{ "2001:db9::", 8 }, { "2001:db8:1:2:7fff::", 6 }, { "2001:db8:1:2:8000::", 2 },
		{ "2001:db8:1:2:ffff:ffff:ffff:ffff", 2 }, { "2001:db8:1:3::", 6 },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 8 },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 3 }, { "::ffff:10.1.2.3", 0 },
		{ "64:ff9b::a01:203", 0 } };
	struct net_map_item items[LENGTH_OF(nets)];
	struct net_map map;

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(nets); i++)
		items[i] = (struct net_map_item){ net_of(nets[i].net), nets[i].value };
	assert_int_equal(net_map_init(&map, items, LENGTH_OF(items)), 0);
	for (size_t i = 0; i < LENGTH_OF(rows); i++)
		assert_row(net_map_find(&map, ip_of(rows[i].ip)) == rows[i].value, "%s: %lld",
			rows[i].ip, (long long)net_map_find(&map, ip_of(rows[i].ip)));
	net_map_release(&map);
}

static void
no_network_holds_nothing(void **state)
{
	struct net_map map, zeroed = { NULL, 0, 0 };

	(void)state;
	assert_int_equal(net_map_of(&map, NULL, 0), 0);
	assert_int_equal(net_map_find(&map, ip_of("192.0.2.1")), NET_MAP_NONE);
	assert_int_equal(net_map_find(&zeroed, ip_of("::1")), NET_MAP_NONE);
	net_map_release(&map);
	net_map_release(&zeroed);
}

/* Of each family all networks that hold the first address, and the last. */
static void
networks_of_every_length_lie_in_one_another(void **state)
{
	for (unsigned ones = 0; ones < 2; ones++) {
		struct net_map_item items[162];
		struct net_map map;
		size_t count = 0;

		(void)state;
		for (unsigned family = 4; family <= 6; family += 2) {
			for (unsigned bits = 0; bits <= (family == 4 ? 32U : 128U); bits++) {
				struct ip ip = { .family = (uint8_t)family };

				memset(ip.bytes, ones ? 0xff : 0, family == 4 ? 4 : 16);
				items[count].net =
					(struct ip_net){ ip_masked(ip, bits), (uint8_t)bits };
				items[count++].value = 1000 - bits;
			}
		}
		struct net_map_item copy[162];

		memcpy(copy, items, sizeof items);
		assert_int_equal(net_map_init(&map, items, count), 0);
		for (unsigned bit = 0; bit < 160; bit++) {
			struct ip ip = { .family = bit < 32 ? 4 : 6 };
			const unsigned at = bit < 32 ? bit : bit - 32;

			memset(ip.bytes, ones ? 0xff : 0, bit < 32 ? 4 : 16);
			ip.bytes[at / 8] ^= (uint8_t)(0x80 >> at % 8);
			assert_int_equal(net_map_find(&map, ip), 1000 - at);
			assert_int_equal(net_map_find(&map, ip), find_slowly(copy, count, ip));
		}
		net_map_release(&map);
	}
}

/* Few bits differ, so that networks touch, hold and repeat one another. */
static struct ip
random_ip(uint64_t *random)
{
	struct ip ip = { .family = random_below(random, 2) ? 4 : 6 };
	const size_t size = ip.family == 4 ? 4 : 16;

	for (size_t i = 0; i < size; i++) {
		static const uint8_t bytes[] = { 0, 0xff, 0x7f, 0x80, 1 };

		ip.bytes[i] = i < 2 ? bytes[random_below(random, 2)]
				    : bytes[random_below(random, LENGTH_OF(bytes))];
	}
	return ip;
}

static void
any_map_says_what_its_list_says(void **state)
{
	uint64_t random = 11;
	unsigned found = 0;

	(void)state;
	for (unsigned round = 0; round < 300; round++) {
		struct net_map_item items[MANY], sorted[MANY];
		const size_t count = 1 + random_below(&random, MANY);
		struct net_map map;

		for (size_t i = 0; i < count; i++) {
			const struct ip ip = random_ip(&random);
			const unsigned bits =
				(unsigned)random_below(&random, ip.family == 4 ? 33 : 129);

			items[i].net = (struct ip_net){ ip_masked(ip, bits), (uint8_t)bits };
			items[i].value = (uint32_t)random_below(&random, 50);
		}
		memcpy(sorted, items, sizeof items);
		assert_int_equal(net_map_init(&map, sorted, count), 0);
		for (unsigned i = 0; i < 500; i++) {
			const struct ip ip = random_ip(&random);
			const int64_t value = find_slowly(items, count, ip);

			found += value != NET_MAP_NONE;
			assert_int_equal(net_map_find(&map, ip), value);
		}
		net_map_release(&map);
	}
	assert_in_range(found, 10000, 149000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smallest_value_counts_however_networks_lie),
		cmocka_unit_test(no_network_holds_nothing),
		cmocka_unit_test(networks_of_every_length_lie_in_one_another),
		cmocka_unit_test(any_map_says_what_its_list_says),
	};

	return cmocka_run_group_tests_name("route/net_map", tests, NULL, NULL);
}
