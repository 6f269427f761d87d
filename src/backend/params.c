/*
 * A request's parameters where no name may come twice. The last of a name counts, as for limits
 * (view.h), and for PHP.
 *
 * A client chooses names (of header fields), and how many there are: they are sorted, not looked
 * up among each other, and not hashed, so that no choice of theirs makes it slow.
 */
#include "backend_private.h"

#include <stdlib.h>
#include <string.h>

struct param {
	struct slice name, pair; /* the pair with its lengths, as it came */
};

/* Any order will do that brings the same names together. Of these the first is the first. */
static int
compare_names(const void *one, const void *other)
{
	const struct param *a = one, *b = other;

	if (a->name.len != b->name.len)
		return a->name.len < b->name.len ? -1 : 1;
	const int differ = a->name.len == 0 ? 0 : memcmp(a->name.ptr, b->name.ptr, a->name.len);

	return differ != 0 ? differ : (a->pair.ptr > b->pair.ptr) - (a->pair.ptr < b->pair.ptr);
}

static int
compare_places(const void *one, const void *other)
{
	const struct param *a = one, *b = other;

	return (a->pair.ptr > b->pair.ptr) - (a->pair.ptr < b->pair.ptr);
}

static size_t
count_pairs(struct slice params)
{
	struct slice name, value;
	size_t count = 0;

	while (fcgi_pair_next(&params, &name, &value) > 0)
		count++;
	return count;
}

static void
fill(struct param *all, struct slice params)
{
	struct slice rest = params, value;

	while (fcgi_pair_next(&rest, &all->name, &value) > 0) {
		all->pair = slice_first(params, params.len - rest.len);
		params = rest;
		all++;
	}
}

/* Returns how many are left. */
static size_t
keep_last(struct param *all, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (i + 1 == count || !slice_is(all[i].name, all[i + 1].name))
			all[kept++] = all[i];
	}
	return kept;
}

int
params_put_last(struct buf *out, struct slice params)
{
	size_t count = count_pairs(params);
	struct param *all;
	int result = 0;

	if (count == 0)
		return 0;
	all = malloc(count * sizeof *all);
	if (all == NULL)
		return -1;
	fill(all, params);
	qsort(all, count, sizeof *all, compare_names);
	count = keep_last(all, count);
	qsort(all, count, sizeof *all, compare_places);
	for (size_t i = 0; i < count && result == 0; i++)
		result = buf_append_slice(out, all[i].pair);
	free(all);
	return result;
}
