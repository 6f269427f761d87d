/*
 * X-Forwarded-For: each proxy adds, at the right end, the address that it was asked from. So an
 * address is as good as the proxy that wrote it, which is the one to the right of it; the left end
 * is whatever the client wrote.
 */
#include "forwarded.h"

#include "weir/view.h"

/* Cuts the last element off *rest. RFC 9110 section 5.6.1.2 wants empty ones ignored. */
static bool
cut_last(struct slice *rest, struct slice *element)
{
	do {
		size_t start = rest->len;

		if (rest->len == 0)
			return false;
		while (start > 0 && rest->ptr[start - 1] != ',')
			start--;
		*element = slice_trim(slice_skip(*rest, start));
		rest->len = start == 0 ? 0 : start - 1;
	} while (element->len == 0);
	return true;
}

struct ip
forwarded_client(const struct net_map *trusted, struct ip peer, struct slice field)
{
	struct slice rest = field, element;

	for (unsigned hops = 0; hops < VIEW_HOPS_MAX; hops++) {
		struct ip ip;

		if (net_map_find(trusted, peer) == NET_MAP_NONE || !cut_last(&rest, &element) ||
			ip_parse(element, &ip) != 0)
			break;
		peer = ip;
	}
	return peer;
}
