/*
 * Networks either lie in one another or have nothing in common. So a walk along the addresses, with
 * a stack of the networks that are open, cuts them into stretches of one answer each: what is kept
 * is where each stretch begins, and what is the answer there. There are at most two for each
 * network.
 *
 * Addresses of both families are numbers of 128 bits here, those of IPv4 in the highest 32.
 */
#include "net_map.h"

#include <stdlib.h>

struct number {
	uint64_t high, low;
};

struct net_map_edge {
	struct number from;
	int64_t value;
};

struct open_net {
	struct number last;
	int64_t value; /* the smallest of this one and those around it */
};

/* One for each prefix length. */
enum { DEPTH_MAX = 129 };

struct walk {
	struct net_map_edge *edges;
	size_t count;
	struct open_net stack[DEPTH_MAX];
	unsigned depth;
};

static struct number
number_of(struct ip ip)
{
	struct number n = { 0, 0 };

	for (size_t i = 0; i < 8; i++) {
		n.high = n.high << 8 | ip.bytes[i];
		n.low = n.low << 8 | ip.bytes[8 + i];
	}
	return n;
}

static int
number_compare(struct number a, struct number b)
{
	if (a.high != b.high)
		return a.high < b.high ? -1 : 1;
	return a.low < b.low ? -1 : a.low > b.low;
}

static struct number
number_last(struct ip_net net)
{
	struct number n = number_of(net.ip);

	if (net.bits < 64)
		n.high |= UINT64_MAX >> net.bits;
	if (net.bits < 128)
		n.low |= UINT64_MAX >> (net.bits > 64 ? net.bits - 64 : 0);
	return n;
}

static int
compare_nets(const struct ip_net *a, const struct ip_net *b)
{
	if (a->ip.family != b->ip.family)
		return a->ip.family - b->ip.family;
	const int order = memcmp(a->ip.bytes, b->ip.bytes, sizeof a->ip.bytes);

	return order != 0 ? order : a->bits - b->bits;
}

/* By family, then where they begin, the wider one first; of one network the smallest value. */
static int
compare_items(const void *left, const void *right)
{
	const struct net_map_item *a = left, *b = right;
	const int order = compare_nets(&a->net, &b->net);

	if (order != 0)
		return order;
	return a->value < b->value ? -1 : a->value > b->value;
}

static int64_t
value_here(const struct walk *walk)
{
	return walk->depth == 0 ? NET_MAP_NONE : walk->stack[walk->depth - 1].value;
}

static void
put_edge(struct walk *walk, struct number from)
{
	const int64_t value = value_here(walk);
	struct net_map_edge *last = walk->count == 0 ? NULL : &walk->edges[walk->count - 1];

	if (last != NULL && number_compare(last->from, from) == 0)
		last->value = value;
	else if ((last == NULL ? NET_MAP_NONE : last->value) != value)
		walk->edges[walk->count++] = (struct net_map_edge){ from, value };
}

/* Closes what ends before `next`; NULL: everything. */
static void
close_nets(struct walk *walk, const struct number *next)
{
	while (walk->depth > 0) {
		const struct number last = walk->stack[walk->depth - 1].last;
		const struct number behind = { last.high + (last.low == UINT64_MAX), last.low + 1 };

		if (next != NULL && number_compare(*next, last) <= 0)
			return;
		walk->depth--;
		/* Behind the last address there is nothing. */
		if (behind.high != 0 || behind.low != 0)
			put_edge(walk, behind);
	}
}

static size_t
cut_up(struct net_map_edge *edges, const struct net_map_item *items, size_t count)
{
	struct walk walk = { .edges = edges };

	for (size_t i = 0; i < count; i++) {
		const struct number from = number_of(items[i].net.ip);

		if (i > 0 && compare_nets(&items[i - 1].net, &items[i].net) == 0)
			continue;
		close_nets(&walk, &from);
		const int64_t around = value_here(&walk), value = items[i].value;

		walk.stack[walk.depth++] = (struct open_net){ number_last(items[i].net),
			around == NET_MAP_NONE || value < around ? value : around };
		put_edge(&walk, from);
	}
	close_nets(&walk, NULL);
	return walk.count;
}

int
net_map_init(struct net_map *map, struct net_map_item *items, size_t count)
{
	size_t count_4 = 0;

	*map = (struct net_map){ NULL, 0, 0 };
	if (count == 0)
		return 0;
	map->edges = calloc(2 * count, sizeof map->edges[0]);
	if (map->edges == NULL)
		return -1;
	qsort(items, count, sizeof items[0], compare_items);
	while (count_4 < count && items[count_4].net.ip.family == 4)
		count_4++;
	map->count_4 = cut_up(map->edges, items, count_4);
	map->count_6 = cut_up(map->edges + map->count_4, items + count_4, count - count_4);
	return 0;
}

int
net_map_of(struct net_map *map, const struct ip_net *nets, size_t count)
{
	struct net_map_item *items = calloc(count == 0 ? 1 : count, sizeof *items);

	*map = (struct net_map){ NULL, 0, 0 };
	if (items == NULL)
		return -1;
	for (size_t i = 0; i < count; i++)
		items[i].net = nets[i];
	const int result = net_map_init(map, items, count);

	free(items);
	return result;
}

void
net_map_release(struct net_map *map)
{
	free(map->edges);
	*map = (struct net_map){ NULL, 0, 0 };
}

int64_t
net_map_find(const struct net_map *map, struct ip ip)
{
	const struct net_map_edge *edges = map->edges;
	size_t from = ip.family == 4 ? 0 : map->count_4;
	size_t to = from + (ip.family == 4 ? map->count_4 : map->count_6);
	const size_t first = from;
	const struct number n = number_of(ip);

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (number_compare(edges[middle].from, n) <= 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from == first ? NET_MAP_NONE : edges[from - 1].value;
}
