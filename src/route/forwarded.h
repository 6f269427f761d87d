/* Who is behind the proxies. Private to the room. */
#ifndef WEIR_ROUTE_FORWARDED_H
#define WEIR_ROUTE_FORWARDED_H

#include "net_map.h"

/* The client's address by an X-Forwarded-For field that came from `peer`, as view.h says. */
struct ip forwarded_client(const struct net_map *trusted, struct ip peer, struct slice field);

#endif
