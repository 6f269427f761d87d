/*
 * max_identities: how many buckets this process makes in Redis for a limit. Who is new beyond it is
 * decided on a bucket that all such share, if Redis does not know him either.
 */
#include "gate_private.h"

#include "weir/clock.h"

#include <string.h>

/* For how long an identity counts whose check is under way; what it comes to is known then. */
#define PENDING_US US_PER_S

/* How much longer Redis keeps a state than it says something, in whole milliseconds (lua/). */
#define KEPT_US (US_PER_S + 2 * US_PER_MS)

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
	identities_keep(request->plant->identities[ours->limit], number_of(&ours->bucket),
		loop_now_us(request->gate->loop), until_us + KEPT_US);
}

void
bounds_forget(struct gate_request *request, unsigned item)
{
	const struct gate_item *ours = &request->items[item];

	if (request->plant->identities != NULL && !ours->is_overflow)
		identities_forget(
			request->plant->identities[ours->limit], number_of(&ours->bucket));
}

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

bool
bounds_count(struct gate_request *request, unsigned item, const struct decision *decision,
	const struct outcome *outcomes)
{
	const unsigned policies = request->check.items[item].limit->policy_count;

	if ((decision->overflowed >> item & 1) != 0) {
		note_overflow(request, item);
		return false;
	}
	if (decision->verdict == VERDICT_ADMITTED)
		bounds_keep(request, item, clock_monotonic_us() + lasts_us(outcomes, policies));
	return true;
}
