/*
 * What keeps work from Redis: rejections that are known, which is learnt from each decision. The
 * caps of this process are in bounds_caps.c, the number of identities in bounds_identities.c.
 */
#include "gate_private.h"

#include "weir/clock.h"

struct rejection_key
bounds_key(const struct gate_request *request, unsigned item)
{
	return (struct rejection_key){ .bucket = request->items[item].bucket,
		.generation = request->plant->generation,
		.item = &request->check.items[item] };
}

/* What only counts is counted with every request, so then nothing may be left out. */
static bool
has_shadow(const struct check *check)
{
	for (unsigned i = 0; i < check->count; i++) {
		const struct check_item *item = &check->items[i];

		if (item->shadow)
			return true;
		for (unsigned j = 0; j < item->limit->policy_count; j++) {
			if (item->limit->policies[j].shadow)
				return true;
		}
	}
	return false;
}

bool
bounds_reject(struct gate_request *request)
{
	struct decision decision = { .verdict = VERDICT_ADMITTED };
	const int64_t now = clock_monotonic_us();
	struct check *check = &request->check;
	bool is_known = false;

	for (unsigned i = 0; i < check->count; i++)
		request->items[i].bucket =
			commons_hash(request->gate->shared.commons, check->items[i].key);
	if (has_shadow(check))
		return false;
	for (unsigned i = 0; i < check->count; i++) {
		const struct rejection_key key = bounds_key(request, i);

		if (rejections_may_keep(key.item) &&
			rejections_find(
				request->gate->rejections, &key, check->cost, now, &decision))
			is_known = true;
	}
	if (!is_known)
		return false;
	counter_add(COUNT_REJECTIONS_CACHED, 1);
	settle(request, &decision);
	return true;
}

/* ---- learning ---- */

static void
learn(struct gate_request *request, unsigned item, const struct decision *decision,
	const struct outcome *outcomes)
{
	const struct rejection_key key = bounds_key(request, item);

	if (bounds_count(request, item, decision, outcomes) && rejections_may_keep(key.item))
		rejections_keep(request->gate->rejections, &key, outcomes, request->check.cost,
			request->sent_us, clock_monotonic_us(), decision->now_us);
}

void
bounds_learn(struct gate_request *request, const struct decision *decision)
{
	const struct outcome *outcomes = decision->outcomes;

	for (unsigned i = 0; i < request->check.count; i++) {
		learn(request, i, decision, outcomes);
		outcomes += request->check.items[i].limit->policy_count;
	}
}
