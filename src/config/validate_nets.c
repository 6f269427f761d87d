/*
 * Networks that two overrides of a limit name. In the order of their addresses those that hold a
 * network stand in front of it, so the ones that are open at any moment are a stack, of no more
 * than one for each number of bits.
 */
#include "nets.h"
#include "sections.h"
#include "validate.h"

#include <stdlib.h>

enum { SAID_MAX = 10, DEPTH_MAX = 129 };

struct item {
	struct ip_net net;
	unsigned nth; /* override of the limit */
	const struct config_for *list;
	uint32_t at;
};

static int
compare(const void *left, const void *right)
{
	const struct item *a = left, *b = right;
	const int order = net_compare(&a->net, &b->net);

	return order != 0 ? order : (a->nth > b->nth) - (a->nth < b->nth);
}

static size_t
count_nets(const struct config_limit *limit)
{
	size_t count = 0;

	for (unsigned i = 0; i < limit->override_count; i++) {
		for (unsigned j = 0; j < limit->overrides[i]->for_count; j++) {
			const struct config_for *list = &limit->overrides[i]->fors[j];

			count += list->net_count;
		}
	}
	return count;
}

static void
collect(const struct config_limit *limit, struct item *items)
{
	for (unsigned i = 0; i < limit->override_count; i++) {
		for (unsigned j = 0; j < limit->overrides[i]->for_count; j++) {
			const struct config_for *list = &limit->overrides[i]->fors[j];

			for (uint32_t k = 0; k < list->net_count; k++)
				*items++ = (struct item){ list->nets[k], i, list, k };
		}
	}
}

static void
report(const struct build *build, const struct config_limit *limit, const struct item *outer,
	const struct item *inner)
{
	const struct section *section =
		config_override_section(build, limit->overrides[inner->nth]);
	const struct place place = config_for_place(inner->list, inner->at);
	const char *name = limit->overrides[outer->nth]->name;
	char at[PLACE_TEXT_SIZE], text[NET_TEXT_SIZE], all[NET_TEXT_SIZE];

	(void)complain_place(config_for_place(outer->list, outer->at), at);
	if (outer->net.bits == inner->net.bits)
		complain_at(build, SEVERITY_ERROR, section, "for", place,
			"%s is named by override %s already, at %s; leave out one of them",
			net_text(&inner->net, text), name, at);
	else
		complain_at(build, SEVERITY_WARNING, section, "for", place,
			"%s is never reached, since override %s at %s takes all of %s first; put "
			"it before that one",
			net_text(&inner->net, text), name, at, net_text(&outer->net, all));
}

/* The innermost of those that hold the network and whose override stands before its own; NULL if
 * there is none. */
static const struct item *
taken_by(const struct item *const *open, size_t depth, const struct item *item)
{
	for (size_t i = depth; i > 0; i--) {
		if (open[i - 1]->nth < item->nth)
			return open[i - 1];
	}
	return NULL;
}

static void
sweep(const struct build *build, const struct config_limit *limit, const struct item *items,
	size_t count)
{
	const struct item *open[DEPTH_MAX];
	size_t depth = 0;
	unsigned said = 0;

	for (size_t i = 0; i < count && said < SAID_MAX; i++) {
		const struct item *item = &items[i];

		while (depth > 0 && !net_holds(&open[depth - 1]->net, &item->net))
			depth--;
		const struct item *outer = taken_by(open, depth, item);

		if (outer != NULL) {
			report(build, limit, outer, item);
			said++;
		}
		/* Of the same network the first stays. */
		if (depth == 0 || open[depth - 1]->net.bits != item->net.bits)
			open[depth++] = item;
	}
}

void
validate_nets(const struct build *build, const struct config_limit *limit)
{
	const size_t count = count_nets(limit);
	struct item *items = count == 0 ? NULL : malloc(count * sizeof *items);

	if (count == 0)
		return;
	if (items == NULL) {
		complain_whole(build, "there is no memory to compare the networks of overrides");
		return;
	}
	collect(limit, items);
	qsort(items, count, sizeof *items, compare);
	sweep(build, limit, items, count);
	free(items);
}
