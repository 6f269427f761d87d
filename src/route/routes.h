/* What routes know that others of the room ask for. Private to the room. */
#ifndef WEIR_ROUTE_ROUTES_H
#define WEIR_ROUTE_ROUTES_H

#include "net_map.h"
#include "weir/route.h"

/* The proxies whose X-Forwarded-For is believed. */
const struct net_map *routes_trusted(const struct routes *routes);

#endif
