/* nets.h against what is slow and obvious. */
#include "../unit.h"
#include "../../src/config/nets.h"

#include <stdio.h>

static struct ip_net
net_of(const char *text)
{
	struct ip_net net;
	struct err err;

	assert_int_equal(ip_net_parse(slice_of(text), &net, &err), 0);
	return net;
}

/* In a small space, so that they meet. */
static struct ip_net
random_net(uint64_t *random)
{
	struct ip_net net = { .ip = { .family = random_below(random, 3) == 0 ? 6 : 4 } };

	net.ip.bytes[0] = 10;
	net.ip.bytes[1] = (uint8_t)(random_below(random, 4) << 4);
	net.ip.bytes[2] = (uint8_t)random_below(random, 256);
	net.bits = (uint8_t)random_below(random, 25);
	net.ip = ip_masked(net.ip, net.bits);
	return net;
}

static bool
has_common(const struct ip_net *net, const struct ip_net *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ip_net_has(&list[i], net->ip) || ip_net_has(net, list[i].ip))
			return true;
	}
	return false;
}

static void
an_overlap_is_found_if_there_is_one(void **state)
{
	uint64_t random = 3;
	unsigned overlaps = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct ip_net a[6], b[6], found;
		const size_t a_count = random_below(&random, 7), b_count = random_below(&random, 7);
		bool expected = false;

		for (size_t i = 0; i < LENGTH_OF(a); i++) {
			a[i] = random_net(&random);
			b[i] = random_net(&random);
		}
		for (size_t i = 0; i < a_count; i++)
			expected = expected || has_common(&a[i], b, b_count);
		assert_int_equal(nets_overlap(a, a_count, b, b_count, &found), expected);
		if (expected)
			assert_true(has_common(&found, b, b_count));
		overlaps += expected;
	}
	assert_in_range(overlaps, 2000, 18000);
}

static void
those_that_are_held_stand_behind(void **state)
{
	uint64_t random = 5;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		const struct ip_net a = random_net(&random), b = random_net(&random);

		assert_true((net_compare(&a, &b) < 0) == (net_compare(&b, &a) > 0));
		if (net_holds(&a, &b))
			assert_true(net_compare(&a, &b) <= 0);
		if (net_compare(&a, &b) == 0)
			assert_true(net_holds(&a, &b) && net_holds(&b, &a));
	}
}

static void
a_network_is_written_as_it_is_read(void **state)
{
	static const char *const texts[] = { "192.0.2.1", "0.0.0.0/0", "10.0.0.0/8", "2001:db8::1",
		"::/0", "2001:db8::/127" };
	char text[NET_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < LENGTH_OF(texts); i++) {
		const struct ip_net net = net_of(texts[i]);

		assert_string_equal(net_text(&net, text), texts[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_overlap_is_found_if_there_is_one),
		cmocka_unit_test(those_that_are_held_stand_behind),
		cmocka_unit_test(a_network_is_written_as_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
