/*
 * Which of many networks hold an address: one binary search, however many there are and however
 * they lie in one another. Private to the room.
 */
#ifndef WEIR_ROUTE_NET_MAP_H
#define WEIR_ROUTE_NET_MAP_H

#include "weir/ip.h"

struct net_map_edge;

/* Zeroed, it is empty. Immutable once it is made. */
struct net_map {
	struct net_map_edge *edges; /* those of IPv4 first */
	size_t count_4, count_6;
};

struct net_map_item {
	struct ip_net net;
	uint32_t value;
};

enum { NET_MAP_NONE = -1 };

/* Sorts `items`. -1: memory is out. */
int net_map_init(struct net_map *map, struct net_map_item *items, size_t count) WEIR_MUST_CHECK;

/* A map of networks that all have the value 0. */
int net_map_of(struct net_map *map, const struct ip_net *nets, size_t count) WEIR_MUST_CHECK;

void net_map_release(struct net_map *map);

/* The smallest value of the networks that hold the address; NET_MAP_NONE: none does. */
int64_t net_map_find(const struct net_map *map, struct ip ip);

#endif
