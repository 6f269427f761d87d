/* Networks against networks, in the order of their addresses: then it is enough to look at
 * neighbours. */
#include "nets.h"

#include <stdio.h>
#include <stdlib.h>

const char *
net_text(const struct ip_net *net, char out[NET_TEXT_SIZE])
{
	const size_t len = strlen(ip_text(net->ip, out));

	if (net->bits < (net->ip.family == 4 ? 32 : 128))
		(void)snprintf(out + len, NET_TEXT_SIZE - len, "/%u", net->bits);
	return out;
}

bool
net_holds(const struct ip_net *outer, const struct ip_net *inner)
{
	return outer->bits <= inner->bits && ip_net_has(outer, inner->ip);
}

int
net_compare(const struct ip_net *a, const struct ip_net *b)
{
	if (a->ip.family != b->ip.family)
		return a->ip.family < b->ip.family ? -1 : 1;
	const int order = memcmp(a->ip.bytes, b->ip.bytes, sizeof a->ip.bytes);

	return order != 0 ? order : (int)a->bits - (int)b->bits;
}

static int
compare(const void *left, const void *right)
{
	return net_compare(left, right);
}

static struct ip_net *
sorted(const struct ip_net *nets, size_t count)
{
	struct ip_net *copy = malloc(count * sizeof *copy);

	if (copy == NULL)
		return NULL;
	memcpy(copy, nets, count * sizeof *copy);
	qsort(copy, count, sizeof *copy, compare);
	return copy;
}

/* Of two that have nothing in common the lower one lies before all that is still to come of the
 * other list, so it is done with. */
static bool
find_overlap(const struct ip_net *a, size_t a_count, const struct ip_net *b, size_t b_count,
	struct ip_net *found)
{
	for (size_t i = 0, j = 0; i < a_count && j < b_count;) {
		if (net_holds(&a[i], &b[j]) || net_holds(&b[j], &a[i])) {
			*found = a[i];
			return true;
		}
		if (net_compare(&a[i], &b[j]) < 0)
			i++;
		else
			j++;
	}
	return false;
}

bool
nets_overlap(const struct ip_net *a, size_t a_count, const struct ip_net *b, size_t b_count,
	struct ip_net *found)
{
	if (a_count == 0 || b_count == 0)
		return false;
	struct ip_net *first = sorted(a, a_count), *second = sorted(b, b_count);
	const bool overlap = first != NULL && second != NULL &&
		find_overlap(first, a_count, second, b_count, found);

	free(first);
	free(second);
	return overlap;
}
