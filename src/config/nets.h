/* Networks against networks. Two of them are nested or have nothing in common. */
#ifndef WEIR_CONFIG_NETS_H
#define WEIR_CONFIG_NETS_H

#include "weir/ip.h"

enum { NET_TEXT_SIZE = IP_TEXT_SIZE + 4 };

/* As it is written: an address without the bits that a single one has. Returns `out`. */
const char *net_text(const struct ip_net *net, char out[NET_TEXT_SIZE]);

/* All of `inner` is in `outer`. */
bool net_holds(const struct ip_net *outer, const struct ip_net *inner);

/* By family, address and bits: a network stands in front of those that it holds, and those behind
 * them follow. */
int net_compare(const struct ip_net *a, const struct ip_net *b);

/* The first of `a` that has something in common with one of `b`, both in any order. False also if
 * memory is out. */
bool nets_overlap(const struct ip_net *a, size_t a_count, const struct ip_net *b, size_t b_count,
	struct ip_net *found);

#endif
