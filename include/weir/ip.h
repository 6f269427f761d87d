/*
 * IP addresses, decided on their bits and not on how they are written: 192.0.2.1, ::ffff:192.0.2.1
 * (RFC 4291 section 2.5.5.2) and 64:ff9b::192.0.2.1 (NAT64, RFC 6052 section 2.1) are one address,
 * an IPv4 one.
 */
#ifndef WEIR_IP_H
#define WEIR_IP_H

#include "weir/err.h"
#include "weir/slice.h"

#include <stdint.h>

struct ip {
	uint8_t family; /* 4 or 6 */
	uint8_t bytes[16]; /* network order; 4 or 16 of them, the rest 0 */
};

/*
 * Takes what web servers and proxies write: an address; with a port (192.0.2.1:80,
 * [2001:db8::1]:443); in brackets; with a zone (fe80::1%eth0), which is dropped; blanks around it.
 * -1 for everything else, host names and "unix:" among it.
 */
int ip_parse(struct slice text, struct ip *out) WEIR_MUST_CHECK;

/* The first `bits` bits, the others 0. More bits than the family has leave the address as it is. */
struct ip ip_masked(struct ip ip, unsigned bits);

bool ip_is(struct ip a, struct ip b);

enum { IP_TEXT_SIZE = 46 };

/* The canonical text (RFC 5952 for IPv6). Returns `out`. */
const char *ip_text(struct ip ip, char out[IP_TEXT_SIZE]);

struct ip_net {
	struct ip ip; /* masked */
	uint8_t bits;
};

/* ADDRESS or ADDRESS/BITS. err says what is wrong: bits beyond the family's, set bits behind the
 * prefix, or an IPv4 network in IPv6 form. */
int ip_net_parse(struct slice text, struct ip_net *out, struct err *err) WEIR_MUST_CHECK;

bool ip_net_has(const struct ip_net *net, struct ip ip);

#endif
