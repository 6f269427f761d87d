/*
 * Leases: the places of concurrent policies that requests hold. Taken by the decision, renewed when
 * a third of their time is over, given back when the request ends in whatever way. What cannot be
 * given back while the store is away is kept by the store, as long as it lives. What this process
 * does not give back, since it was killed, ends with its time.
 *
 * A renewal that the store does not take is tried again soon, and one that is lost on the way has
 * another before the end: so a store that is away for half of a lease costs no place. Many that are
 * due at once, as after an outage, are made some at a time.
 *
 * Most requests end long before a third of their lease is over, so the list is in no order and the
 * timer goes through it when the first of those that were once in it is due.
 *
 * An old configuration, and this process when it stops, wait for a while for what their stores
 * keep.
 */
#include "gate_private.h"

#define LEASE_NUMBERS (UINT64_C(1) << 53)

enum { PARTS = 3, TRIES = 8, RENEWALS_AT_ONCE = 256 };
#define PAUSE_US (20 * US_PER_MS)

uint64_t
lease_draw(void)
{
	uint64_t number;

	do {
		hash_random(&number, sizeof number);
		number %= LEASE_NUMBERS;
	} while (number == 0);
	return number;
}

struct span {
	int64_t shortest, longest;
};

/* Of the leases of a limit. */
static void
widen(struct span *span, const struct limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		const struct policy *policy = &limit->policies[i];

		if (policy->algorithm != POLICY_CONCURRENT)
			continue;
		if (policy->lease_us < span->shortest)
			span->shortest = policy->lease_us;
		if (policy->lease_us > span->longest)
			span->longest = policy->lease_us;
	}
}

/* Of the shortest lease. */
static int64_t
renewal_us(const struct gate_request *request)
{
	struct span span = { INT64_MAX, 0 };

	for (unsigned i = 0; i < request->check.count; i++)
		widen(&span, request->check.items[i].limit);
	return span.shortest / PARTS;
}

static int64_t
next_try_us(int64_t renewal_us)
{
	return renewal_us / TRIES < US_PER_S ? renewal_us / TRIES : US_PER_S;
}

void
lease_hold(struct gate_request *request, struct store *store)
{
	struct gate *gate = request->gate;
	const int64_t now = loop_now_us(gate->loop);

	if (request->check.lease == 0)
		return;
	request->lease_store = store;
	request->lease_next = gate->leases;
	request->lease_at = &gate->leases;
	if (gate->leases != NULL)
		gate->leases->lease_at = &request->lease_next;
	gate->leases = request;
	counter_add(COUNT_LEASES, 1);
	request->renew_at_us = now + renewal_us(request);
	if (!timer_is_set(gate->renewal) || request->renew_at_us < gate->renew_at_us) {
		gate->renew_at_us = request->renew_at_us;
		timer_set(gate->renewal, gate->renew_at_us);
	}
}

static void
release(const struct gate_request *request, struct store *store)
{
	for (unsigned i = 0; i < request->check.count; i++) {
		if (request->check.items[i].limit->has_leases)
			store_release(store, &request->check.items[i], request->check.lease);
	}
}

/* Where nothing but places is counted, the bucket goes with the last one. */
static bool
has_only_leases(const struct limit *limit)
{
	for (unsigned i = 0; i < limit->policy_count; i++) {
		if (limit->policies[i].algorithm != POLICY_CONCURRENT)
			return false;
	}
	return true;
}

void
lease_end(struct gate_request *request)
{
	struct store *store = request->lease_store;

	if (store == NULL)
		return;
	request->lease_store = NULL;
	*request->lease_at = request->lease_next;
	if (request->lease_next != NULL)
		request->lease_next->lease_at = request->lease_at;
	counter_add(COUNT_LEASES, -1);
	release(request, store);
	for (unsigned i = 0; i < request->check.count; i++) {
		if (has_only_leases(request->check.items[i].limit))
			bounds_forget(request, i);
	}
}

void
lease_give_up(struct gate_request *request, struct store *store)
{
	if (request->check.lease != 0)
		release(request, store);
}

/* ---- renewal ---- */

static bool
renew_item(struct gate_request *request, unsigned i, int64_t now_us)
{
	const struct check_item *item = &request->check.items[i];
	struct span span = { INT64_MAX, 0 };

	if (!item->limit->has_leases)
		return true;
	if (!store_renew(request->lease_store, item, request->check.lease))
		return false;
	widen(&span, item->limit);
	bounds_keep(request, i, now_us + span.longest);
	return true;
}

static bool
renew(struct gate_request *request, int64_t now_us)
{
	const int64_t us = renewal_us(request);
	bool is_told = true;

	for (unsigned i = 0; i < request->check.count; i++)
		is_told = renew_item(request, i, now_us) && is_told;
	request->renew_at_us = now_us + (is_told ? us : next_try_us(us));
	return is_told;
}

void
lease_on_renewal(void *context)
{
	struct gate *gate = context;
	const int64_t now = loop_now_us(gate->loop);
	unsigned left = RENEWALS_AT_ONCE;

	gate->renew_at_us = INT64_MAX;
	for (struct gate_request *request = gate->leases; request != NULL;
		request = request->lease_next) {
		if (request->renew_at_us <= now && left > 0 && renew(request, now))
			left--;
		if (request->renew_at_us < gate->renew_at_us)
			gate->renew_at_us = request->renew_at_us;
	}
	if (gate->leases == NULL)
		return;
	if (gate->renew_at_us < now + PAUSE_US)
		gate->renew_at_us = now + PAUSE_US;
	timer_set(gate->renewal, gate->renew_at_us);
}
