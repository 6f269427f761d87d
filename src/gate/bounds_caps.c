/*
 * local_cap: a bucket of this process for each identity, asked before the store, and asked alone.
 * What it rejects never gets there. It is one bucket however many shards the limit has, and
 * whatever plan the identity is on.
 */
#include "gate_private.h"

struct cap_check {
	struct check check;
	struct decision decision;
};

static void
on_cap(struct check *check, const struct decision *decision)
{
	((struct cap_check *)(void *)check)->decision = *decision;
}

/* An outcome of a cap that only counts stands for its limit: the store is not asked about it, as it
 * would not be if the cap rejected. */
static void
drop_violated(struct gate_request *request, const struct cap_check *cap, const unsigned *items)
{
	struct check *check = &request->check;

	/* From the last on, so that those before keep their places. */
	for (unsigned i = cap->check.count; i-- > 0;) {
		if (!cap->decision.outcomes[i].violated)
			continue;
		for (unsigned at = items[i]; at + 1 < check->count; at++) {
			check->items[at] = check->items[at + 1];
			request->items[at] = request->items[at + 1];
		}
		check->count--;
	}
}

bool
bounds_cap(struct gate_request *request)
{
	const struct snapshot *snapshot = request->plant->snapshot;
	struct cap_check cap = { .check = { .cost = request->check.cost, .done = on_cap } };
	unsigned items[CHECK_LIMITS_MAX];

	for (unsigned i = 0; i < request->check.count; i++) {
		const struct limit *limit = &snapshot->caps[request->items[i].limit];

		if (limit->policy_count == 0)
			continue;
		items[cap.check.count] = i;
		cap.check.items[cap.check.count++] = (struct check_item){ .limit = limit,
			.key = request->items[i].identity,
			.shadow = request->check.items[i].shadow };
	}
	if (cap.check.count == 0)
		return true;
	store_decide(request->plant->caps, &cap.check);
	if (cap.decision.verdict == VERDICT_REJECTED) {
		settle(request, &cap.decision);
		return false;
	}
	settle_shadows(request, &cap.decision);
	if (cap.decision.count > 0)
		drop_violated(request, &cap, items);
	return true;
}
