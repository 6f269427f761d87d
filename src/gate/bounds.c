/*
 * What keeps work from the store: rejections that are known, caps of this process, and the number
 * of identities that are made in Redis.
 */
#include "gate_private.h"

#include "weir/clock.h"

#include <string.h>

/* For how long an identity counts whose check is under way; what it comes to is known then. */
#define PENDING_US US_PER_S

/* ---- rejections ---- */

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

/* ---- local_cap ---- */

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

/* ---- max_identities ---- */

static uint64_t
number_of(const struct hash_wide *bucket)
{
	uint64_t number;

	memcpy(&number, bucket->bytes, sizeof number);
	return number;
}

void
bounds_overflow(struct gate_request *request)
{
	struct check *check = &request->check;
	const int64_t now = loop_now_us(request->gate->loop);

	for (unsigned i = 0; i < check->count; i++) {
		struct check_item *item = &check->items[i];
		const struct gate_item *ours = &request->items[i];

		if (identities_take(request->plant->identities[ours->limit],
			    number_of(&ours->bucket), item->limit->config->max_identities, now,
			    check->deadline_us + PENDING_US))
			continue;
		const char *key =
			arena_printf(front_arena(request->front), "%s:overflow", item->limit->name);

		/* Without memory one bucket more is made. */
		if (key != NULL)
			item->overflow = slice_of(key);
	}
}

void
bounds_keep(struct gate_request *request, unsigned item, int64_t until_us)
{
	const struct gate_item *ours = &request->items[item];

	if (request->plant->identities == NULL || ours->is_overflow)
		return;
	/* Redis drops the state a second after it is worthless. */
	identities_keep(request->plant->identities[ours->limit], number_of(&ours->bucket),
		loop_now_us(request->gate->loop), until_us + US_PER_S);
}

void
bounds_forget(struct gate_request *request, unsigned item)
{
	const struct gate_item *ours = &request->items[item];

	if (request->plant->identities != NULL && !ours->is_overflow)
		identities_forget(
			request->plant->identities[ours->limit], number_of(&ours->bucket));
}

/* ---- learning ---- */

/* Its lease, if it has one, stands there from now on. */
static void
note_overflow(struct gate_request *request, unsigned item)
{
	struct gate *gate = request->gate;
	struct gate_item *ours = &request->items[item];

	ours->is_overflow = true;
	request->check.items[item].key = request->check.items[item].overflow;
	counter_add(request->plant->snapshot->overflows[ours->limit], 1);
	gate_log_once_a_minute(gate, &gate->overflow_log,
		"A limit has max_identities buckets in Redis; identities that are new share one.");
}

/* Until the bucket says nothing. Of leases nobody knows more than that they end. */
static int64_t
lasts_us(const struct outcome *outcomes, unsigned count)
{
	int64_t longest = 0;

	for (unsigned i = 0; i < count; i++) {
		const struct policy *policy = outcomes[i].policy;
		const int64_t us = policy->algorithm == POLICY_CONCURRENT ? policy->lease_us
									  : outcomes[i].reset_us;

		longest = us > longest ? us : longest;
	}
	return longest;
}

static void
learn(struct gate_request *request, unsigned item, const struct decision *decision,
	const struct outcome *outcomes)
{
	const struct rejection_key key = bounds_key(request, item);
	const int64_t now = clock_monotonic_us();

	if ((decision->overflowed >> item & 1) != 0) {
		note_overflow(request, item);
		return;
	}
	if (decision->verdict == VERDICT_ADMITTED)
		bounds_keep(request, item, now + lasts_us(outcomes, key.item->limit->policy_count));
	if (rejections_may_keep(key.item))
		rejections_keep(request->gate->rejections, &key, outcomes, request->check.cost,
			request->sent_us, now, decision->now_us);
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
