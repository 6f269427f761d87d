/*
 * IP addresses. inet_pton and inet_ntop know how an address is written; here is what stands around
 * it, and the rule that an IPv4 address is IPv4 however it was wrapped.
 */
#include "weir/ip.h"
#include "weir/units.h"

#include <arpa/inet.h>

enum { BITS_4 = 32, BITS_6 = 128, WRAP_SIZE = 12 };

/* The prefixes of IPv6 addresses that are an IPv4 address in their last four bytes. */
static const uint8_t wraps[][WRAP_SIZE] = {
	{ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff }, /* ::ffff:0:0/96 */
	{ 0, 0x64, 0xff, 0x9b }, /* 64:ff9b::/96 */
};

static unsigned
bits_of(struct ip ip)
{
	return ip.family == 4 ? BITS_4 : BITS_6;
}

static struct ip
unwrapped(struct ip ip)
{
	for (size_t i = 0; i < sizeof wraps / sizeof wraps[0]; i++) {
		if (memcmp(ip.bytes, wraps[i], WRAP_SIZE) == 0) {
			struct ip inner = { .family = 4 };

			memcpy(inner.bytes, ip.bytes + WRAP_SIZE, sizeof ip.bytes - WRAP_SIZE);
			return inner;
		}
	}
	return ip;
}

/* Only an address, nothing around it. */
static int
parse_bare(struct slice text, struct ip *out)
{
	char terminated[INET6_ADDRSTRLEN];
	struct ip ip = { .family = slice_find(text, ':') == text.len ? 4 : 6 };

	if (text.len == 0 || text.len >= sizeof terminated ||
		memchr(text.ptr, '\0', text.len) != NULL)
		return -1;
	memcpy(terminated, text.ptr, text.len);
	terminated[text.len] = '\0';
	if (inet_pton(ip.family == 4 ? AF_INET : AF_INET6, terminated, ip.bytes) != 1)
		return -1;
	*out = ip.family == 4 ? ip : unwrapped(ip);
	return 0;
}

/* ZoneID of RFC 6874, the percent sign of `%25eth0` too. */
static bool
is_zone(struct slice text)
{
	static const char taken[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~%";

	for (size_t i = 0; i < text.len; i++) {
		if (memchr(taken, text.ptr[i], sizeof taken - 1) == NULL)
			return false;
	}
	return text.len > 0;
}

/* An IPv6 address, which may have a zone. */
static int
parse_zoned(struct slice text, struct ip *out)
{
	const size_t percent = slice_find(text, '%');

	if (percent == text.len)
		return parse_bare(text, out);
	const struct slice address = slice_first(text, percent);

	if (!is_zone(slice_skip(text, percent + 1)) || slice_find(address, ':') == address.len)
		return -1;
	return parse_bare(address, out);
}

static bool
is_port(struct slice text)
{
	uint64_t port;

	return parse_uint(text, UINT16_MAX, &port) == 0;
}

int
ip_parse(struct slice text, struct ip *out)
{
	const struct slice s = slice_trim(text);
	const size_t colon = slice_find(s, ':');

	if (s.len > 0 && s.ptr[0] == '[') {
		const size_t close = slice_find(s, ']');
		const struct slice behind = slice_skip(s, close < s.len ? close + 1 : close);

		if (close == s.len ||
			(behind.len > 0 &&
				(behind.ptr[0] != ':' || !is_port(slice_skip(behind, 1)))))
			return -1;
		return parse_zoned(slice_make(s.ptr + 1, close - 1), out);
	}
	if (colon == s.len)
		return parse_bare(s, out);
	const struct slice behind = slice_skip(s, colon + 1);

	/* One colon is a port's, more are an IPv6 address without one. */
	if (slice_find(behind, ':') == behind.len)
		return is_port(behind) ? parse_bare(slice_first(s, colon), out) : -1;
	return parse_zoned(s, out);
}

struct ip
ip_masked(struct ip ip, unsigned bits)
{
	for (unsigned i = bits / 8; i < sizeof ip.bytes; i++) {
		const unsigned kept = i == bits / 8 ? bits % 8 : 0;

		ip.bytes[i] &= (uint8_t)(0xff00 >> kept);
	}
	return ip;
}

bool
ip_is(struct ip a, struct ip b)
{
	return a.family == b.family && memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

const char *
ip_text(struct ip ip, char out[IP_TEXT_SIZE])
{
	size_t len = 0;

	/* Cannot fail: the family is known and the room is enough. */
	if (ip.family != 4)
		return inet_ntop(AF_INET6, ip.bytes, out, IP_TEXT_SIZE);
	for (unsigned i = 0; i < 4; i++) {
		char number[UINT_TEXT_SIZE];
		const size_t n = uint_text(ip.bytes[i], number);

		memcpy(out + len, number, n);
		len += n;
		out[len++] = '.';
	}
	out[len - 1] = '\0';
	return out;
}

int
ip_net_parse(struct slice text, struct ip_net *out, struct err *err)
{
	const size_t slash = slice_find(text, '/');
	const struct slice address = slice_first(text, slash);
	char right[IP_TEXT_SIZE];
	uint64_t bits;
	struct ip ip;

	if (parse_bare(address, &ip) != 0)
		return err_set(err,
			"\"%.*s\" is no network; write 192.0.2.0/24, 2001:db8::/32 or an address",
			(int)text.len, text.ptr);
	bits = bits_of(ip);
	/* 64:ff9b::/96 would be all of IPv4, which nobody means who writes it. */
	if (slash < text.len && ip.family == 4 && slice_find(address, ':') < address.len)
		return err_set(err, "\"%.*s\" is an IPv4 network in IPv6 form; write %s/BITS",
			(int)text.len, text.ptr, ip_text(ip, right));
	if (slash < text.len && parse_uint(slice_skip(text, slash + 1), bits_of(ip), &bits) != 0)
		return err_set(err, "\"%.*s\": an IPv%d prefix has 0 to %u bits", (int)text.len,
			text.ptr, ip.family, bits_of(ip));
	const struct ip masked = ip_masked(ip, (unsigned)bits);

	if (!ip_is(ip, masked))
		return err_set(err, "\"%.*s\" has bits set behind its prefix; write %s/%u",
			(int)text.len, text.ptr, ip_text(masked, right), (unsigned)bits);
	*out = (struct ip_net){ masked, (uint8_t)bits };
	return 0;
}

bool
ip_net_has(const struct ip_net *net, struct ip ip)
{
	return ip_is(ip_masked(ip, net->bits), net->ip);
}
